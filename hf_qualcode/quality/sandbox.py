"""Run a stranger's Python program: shut in, limited, measured.

    sandbox = Sandbox.open()
    run = sandbox.run("print(int(input()) ** 2)", b"12\\n", limits=Limits(cpu_seconds=2))
    run.outcome, run.stdout, run.cpu_seconds, run.peak_memory_bytes

The program gets an interpreter of its own with the packages that are installed beside this one, an empty environment,
a scratch folder in memory, and nothing else: no network, no other process, no file of the user's. How it is shut in,
best first (`Sandbox.isolation`):

- `"bubblewrap"`: the `bwrap` command makes the namespaces;
- `"namespaces"`: our own launcher does (`isolation/namespaces.py`). As root it is tried first: it turns the program
  into an ordinary user, while under bubblewrap root stays root in the eyes of the limit on processes;
- `"unsafe"`: neither works here, and the caller said that the programs are to be trusted. Limits still hold, the
  process tree still ends, but the program can read and write what the user can.

In the first two a seccomp filter, empty capability sets and `no_new_privs` come on top. Which level works is found by
running a program in it.
"""

import contextlib
import fcntl
import os
import re
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from hf_qualcode.quality.isolation.job import Job, Report, pack_job, unpack_answer
from hf_qualcode.quality.isolation.places import interpreter_places
from hf_qualcode.types import QualcodeError, UsageError


LEVELS = ("bubblewrap", "namespaces", "unsafe")
_SCRATCH = "/scratch"
_INSIDE = "/launcher"
_MIB = 1 << 20
# Address space beyond the memory limit: libraries and the stacks of threads are mapped and hardly used.
_ADDRESS_HEADROOM = 1 << 30
# What Valgrind itself needs, for its translations.
_VALGRIND_MEMORY = 1 << 30
# Deep recursion through C functions is common in competitive programs; judges allow large stacks.
_STACK_BYTES = 256 * _MIB
_OPEN_FILES = 256
# The launcher enforces the wall limit; if it does not answer this long after, it is killed.
_GRACE_S = 20.0
_MEMORY_ERROR = re.compile(rb"^(\w+\.)*_?(Array)?MemoryError\b")
# PEP 263.
_ENCODING = re.compile(r"^([ \t\f]*#.*?coding[:=][ \t]*)[-\w.]+")
_PROBE = "import os; os.write(1, b'%d %d' % (os.getpid() > 1, hash('a') == hash('a')))"


@dataclass(frozen=True, slots=True)
class Limits:
    """What a program may use.

    Attributes:
        cpu_seconds (`float`, defaults to 10): User and system time, of the program and all it starts.
        wall_seconds (`float`, *optional*): Defaults to 5 times the CPU time and 5 seconds: a busy machine is not the
            program's fault.
        memory_bytes (`int`, defaults to 1 GiB): Resident memory of all its processes, looked at every 10 ms. The
            address space of each is limited to 1 GiB more, so one large allocation is a `MemoryError` at once.
        output_bytes (`int`, defaults to 64 MiB): Of stdout and stderr together.
        processes (`int`, defaults to 32): Processes and threads.
        file_bytes (`int`, defaults to 64 MiB): Of one file, and of the whole scratch folder, which lies in
            memory, on top of `memory_bytes`.
    """

    cpu_seconds: float = 10.0
    wall_seconds: float | None = None
    memory_bytes: int = 1 << 30
    output_bytes: int = 64 * _MIB
    processes: int = 32
    file_bytes: int = 64 * _MIB

    def __post_init__(self):
        for name in self.__slots__:
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise UsageError(f"limit {name}={value}: a positive number is needed")

    @property
    def wall(self) -> float:
        """The wall time that holds, in seconds."""
        return 5 * self.cpu_seconds + 5 if self.wall_seconds is None else self.wall_seconds


DEFAULT_LIMITS = Limits()


class Run(NamedTuple):
    """One run of a program.

    Attributes:
        outcome (`str`): `"ok"` (exit code 0), `"failed"` (another exit code), `"timeout"` (CPU or wall), `"memory"`,
            `"output"` (too much of it), or `"killed"` (by a signal, or for too many processes).
        exit_code (`int`): As of `subprocess`: minus the signal's number where one ended it.
        stdout, stderr (`bytes`): At most `Limits.output_bytes` together.
        cpu_seconds (`float`): User and system time of the program and every process that it started. From the
            interpreter's start, so with start-up and imports: see `measuring.calibrate`.
        wall_seconds (`float`): From the interpreter's start to the program's end.
        peak_memory_bytes (`int`): VmHWM at the program's end, that of its largest process where it has several.
        instructions (`int`, *optional*): Executed, by Valgrind's count; `None` unless asked. CPU time and memory of
            such a run are Valgrind's.
    """

    outcome: str
    exit_code: int
    stdout: bytes
    stderr: bytes
    cpu_seconds: float
    wall_seconds: float
    peak_memory_bytes: int
    instructions: int | None = None


class Sandbox:
    """A way to run strangers' programs. Make one by `Sandbox.open()`; it holds nothing open.

    Attributes:
        isolation (`str`): `"bubblewrap"`, `"namespaces"` or `"unsafe"`.
    """

    def __init__(self, isolation: str):
        # Not used here: imported so that they are compiled once, and not by each launcher.
        from hf_qualcode.quality.isolation import namespaces, supervise  # noqa: F401

        self.isolation = isolation
        self._places = interpreter_places(_SCRATCH)

    @classmethod
    def open(cls, unsafe: bool = False, *, isolation: str | None = None) -> "Sandbox":
        """The best isolation that works on this machine.

        Args:
            unsafe (`bool`, *optional*, defaults to `False`): Go on without isolation where none works.
            isolation (`str`, *optional*): This level or none; `"unsafe"` needs `unsafe=True` as well.

        Raises:
            QualcodeError: No isolation works here; says why for each level.
        """
        if isolation is not None and isolation not in LEVELS:
            raise UsageError(f"isolation {isolation!r}: one of {', '.join(LEVELS)} is needed")
        if sys.platform != "linux":
            raise QualcodeError(f"programs are run on Linux only: this is {sys.platform}")
        if not sys.executable:
            raise QualcodeError("programs cannot be run: this interpreter does not know its own executable")
        wanted = (isolation,) if isolation else LEVELS
        if os.geteuid() == 0 and not isolation:
            wanted = ("namespaces", "bubblewrap", "unsafe")
        reasons = []
        for level in wanted:
            if level == "unsafe" and not unsafe:
                continue
            sandbox = cls(level)
            reason = sandbox._why_not()
            if reason is None:
                return sandbox
            reasons.append(f"{level}: {reason}")
        raise QualcodeError(
            f"programs cannot be shut in here ({'; '.join(reasons) or 'not asked to go without'}); install bubblewrap "
            "or allow unprivileged user namespaces (containers often forbid them), or, for programs that you trust, "
            "say unsafe (--unsafe)"
        )

    def run(
        self,
        program: str | Path,
        stdin: bytes = b"",
        *,
        limits: Limits = DEFAULT_LIMITS,
        count_instructions: bool = False,
        arguments: Sequence[str] = (),
        core: int | None = None,
    ) -> Run:
        """Run a program once, in a fresh interpreter.

        `PYTHONHASHSEED=0`, one thread for BLAS and OpenMP, neither the current folder nor the user's site on the path:
        what `-I` does, by `-s -P` and an empty environment (`-I` itself would ignore the hash seed).

        Args:
            program (`str` or `Path`): The text, or a file with it.
            stdin (`bytes`, *optional*): Its input, as a file that can be read but not written.
            limits (`Limits`, *optional*): See there.
            count_instructions (`bool`, *optional*, defaults to `False`): Under Valgrind, with the addresses fixed. 40
                to 100 times slower, so give more `cpu_seconds`.
            arguments (`Sequence[str]`, *optional*): The program's `sys.argv[1:]`.
            core (`int`, *optional*): The only core it may use; defaults to any.

        Raises:
            QualcodeError: The program could not be started at all, or Valgrind is not there.
        """
        text = _in_utf8(program) if isinstance(program, str) else program.read_bytes()
        if core is not None and core not in os.sched_getaffinity(0):
            raise UsageError(f"core {core}: one of {sorted(os.sched_getaffinity(0))} is needed")
        with contextlib.ExitStack() as stack:
            scratch = _SCRATCH
            if self.isolation == "unsafe":
                scratch = tempfile.mkdtemp(prefix="qualcode-run-")
                stack.callback(shutil.rmtree, scratch, ignore_errors=True)
            job = self._job(text, scratch, limits, count_instructions, arguments, core)
            captured = self._execute(job, stdin, limits, stack)
        report = captured.report
        run = Run(
            _outcome(captured, limits),
            os.waitstatus_to_exitcode(report.status),
            bytes(captured.stdout),
            bytes(captured.stderr),
            report.cpu_seconds,
            report.wall_seconds,
            report.peak_bytes,
            report.instructions if report.instructions >= 0 else None,
        )
        if count_instructions and run.outcome in ("ok", "failed") and run.instructions is None:
            raise QualcodeError(f"Valgrind gave no count: {_last_line(run.stderr) or 'it said nothing'}")
        return run

    def _why_not(self) -> str | None:
        """Run a small program; `None` if it works, else what was wrong."""
        if self.isolation == "bubblewrap" and shutil.which("bwrap") is None:
            return "the command bwrap is not installed"
        try:
            run = self.run(_PROBE, limits=Limits(cpu_seconds=10, wall_seconds=30))
        except QualcodeError as error:
            return str(error)
        if run.outcome != "ok" or run.stdout != b"1 1":
            return f"a first program ended with {run.outcome}: {_last_line(run.stderr) or f'exit {run.exit_code}'}"
        return None

    def _job(
        self,
        text: bytes,
        scratch: str,
        limits: Limits,
        count_instructions: bool,
        arguments: Sequence[str],
        core: int | None,
    ) -> Job:
        path = f"{scratch}/program.py"
        command = [sys.executable, "-s", "-P", "-B", path, *arguments]
        memory = limits.memory_bytes
        if count_instructions:
            command = [_valgrind(self.isolation), *_VALGRIND_OPTIONS, *command]
            memory += _VALGRIND_MEMORY
        threads = ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "VECLIB_MAXIMUM", "NUMBA")
        environment = {
            "HOME": scratch,
            "TMPDIR": scratch,
            "PATH": "/usr/bin:/bin",
            "LC_CTYPE": "C.UTF-8",
            "PYTHONHASHSEED": "0",
            **{f"{name}_NUM_THREADS": "1" for name in threads},
        }
        return Job(
            level=self.isolation,
            parent=0 if self.isolation == "bubblewrap" else os.getpid(),
            places=self._places,
            scratch=scratch,
            # The program's own text lies there too.
            scratch_bytes=limits.file_bytes + len(text) + _MIB,
            program=text,
            program_path=path,
            command=command,
            environment=environment,
            cpu_seconds=float(limits.cpu_seconds),
            wall_seconds=float(limits.wall),
            memory_bytes=memory,
            address_bytes=memory + _ADDRESS_HEADROOM,
            processes=limits.processes,
            file_bytes=limits.file_bytes,
            open_files=_OPEN_FILES,
            stack_bytes=_STACK_BYTES,
            core=-1 if core is None else core,
            count_instructions=count_instructions,
        )

    def _launch_command(self, job: Job, control: int) -> list[str]:
        here = Path(__file__).resolve().parent / "isolation"
        if self.isolation != "bubblewrap":
            return [sys.executable, "-I", "-S", str(here / "launcher.py"), str(control)]
        # As process 1 the launcher cannot be killed from inside.
        command = [shutil.which("bwrap"), "--unshare-all", "--unshare-user", "--die-with-parent", "--as-pid-1"]
        command += ["--uid", "65534", "--gid", "65534", "--cap-drop", "ALL", "--hostname", "sandbox"]
        for kind, path, value in job.places:
            option = {"folder": "--ro-bind", "file": "--ro-bind", "device": "--dev-bind", "link": "--symlink"}[kind]
            command += [option, value, path]
        command += ["--ro-bind", str(here), f"{_INSIDE}/isolation", "--proc", "/proc"]
        # Root outside is still root to the kernel's settings in there.
        command += ["--remount-ro", "/proc"]
        command += ["--perms", "0700", "--size", str(job.scratch_bytes), "--tmpfs", job.scratch]
        command += ["--remount-ro", "/", "--chdir", "/"]
        return [*command, sys.executable, "-I", "-S", f"{_INSIDE}/isolation/launcher.py", str(control)]

    def _execute(self, job: Job, stdin: bytes, limits: Limits, stack: contextlib.ExitStack) -> "_Captured":
        input_fd = stack.enter_context(_read_only_file(stdin))
        control, launcher_end = socket.socketpair()
        stack.enter_context(control)
        with launcher_end:
            launcher = subprocess.Popen(
                self._launch_command(job, launcher_end.fileno()),
                stdin=input_fd,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=[launcher_end.fileno()],
                env={},
                cwd="/",
                start_new_session=True,
            )
        captured = _Captured()
        try:
            # A launcher that has ended already says so by the end of its streams.
            with contextlib.suppress(ConnectionError):
                control.sendall(pack_job(job))
            _collect(launcher, control, captured, limits, time.monotonic() + limits.wall + _GRACE_S)
        finally:
            control.close()
            _end(launcher, patient=job.level == "unsafe")
        answer = unpack_answer(bytes(captured.answer))
        if answer is None:
            why = _last_line(captured.stderr) or f"exit code {launcher.returncode}"
            raise QualcodeError(f"the launcher of programs ({self.isolation}) gave no answer: {why}")
        if isinstance(answer, str):
            raise QualcodeError(answer)
        captured.report = answer
        return captured


# Cachegrind without its cache model is the fastest tool that counts every instruction: a third of Lackey's time.
_VALGRIND_OPTIONS = (
    "--tool=cachegrind",
    "--cache-sim=no",
    "--cachegrind-out-file=/dev/null",
    "--log-fd={log}",
    # A child would count its parent's instructions again.
    "--child-silent-after-fork=yes",
)


def _in_utf8(program: str) -> bytes:
    """A text as a file. What was decoded may still name the encoding that it had."""
    lines = program.split("\n", 2)
    for number, line in enumerate(lines[:2]):
        lines[number] = _ENCODING.sub(r"\1utf-8", line)
    return "\n".join(lines).encode("utf-8", "surrogatepass")


def _valgrind(isolation: str) -> str:
    path = shutil.which("valgrind", path="/usr/bin:/usr/local/bin:/bin")
    if path is None and isolation == "unsafe":
        path = shutil.which("valgrind")
    if path is None:
        raise QualcodeError("instructions are counted by Valgrind, which is not in /usr: install the package valgrind")
    return path


@dataclass(slots=True)
class _Captured:
    stdout: bytearray = field(default_factory=bytearray)
    stderr: bytearray = field(default_factory=bytearray)
    answer: bytearray = field(default_factory=bytearray)
    report: Report | None = None
    overflowed: bool = False


def _collect(launcher, control, captured: _Captured, limits: Limits, deadline: float) -> None:
    """Read all three streams to their ends, but keep no more than the limit allows."""
    left = limits.output_bytes
    with selectors.DefaultSelector() as selector:
        selector.register(launcher.stdout, selectors.EVENT_READ, captured.stdout)
        selector.register(launcher.stderr, selectors.EVENT_READ, captured.stderr)
        selector.register(control, selectors.EVENT_READ, captured.answer)
        while selector.get_map():
            now = time.monotonic()
            if now > deadline:
                raise QualcodeError("the launcher did not end a program in time; both were killed")
            for key, _ in selector.select(deadline - now):
                try:
                    part = os.read(key.fd, 1 << 16)
                except ConnectionError:
                    part = b""  # ended before it had read all of the job
                if not part:
                    selector.unregister(key.fileobj)
                elif key.fileobj is control:
                    captured.answer += part
                else:
                    key.data.extend(part[:left])
                    if len(part) > left and not captured.overflowed:
                        captured.overflowed = True
                        with contextlib.suppress(OSError):  # it has ended by itself
                            control.send(b"!")
                    left -= min(left, len(part))


def _end(launcher: subprocess.Popen, *, patient: bool) -> None:
    """Make sure that the launcher has ended, and with it everything that it started.

    In a namespace its end ends all. Without one the launcher itself kills what it started once its control socket is
    closed, and gets the time for it.
    """
    launcher.stdout.close()
    launcher.stderr.close()
    if patient:
        with contextlib.suppress(subprocess.TimeoutExpired):
            launcher.wait(_GRACE_S)
    if launcher.poll() is None:
        launcher.kill()
    launcher.wait()


@contextlib.contextmanager
def _read_only_file(content: bytes):
    """A descriptor of a file in memory that nobody can change."""
    writable = os.memfd_create("stdin", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        view = memoryview(content)
        while view:
            view = view[os.write(writable, view) :]
        seals = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL
        fcntl.fcntl(writable, fcntl.F_ADD_SEALS, seals)
        # A descriptor of its own: reading starts at the beginning, and writing is not even asked for.
        readable = os.open(f"/proc/self/fd/{writable}", os.O_RDONLY | os.O_CLOEXEC)
    finally:
        os.close(writable)
    try:
        yield readable
    finally:
        os.close(readable)


def _outcome(captured: _Captured, limits: Limits) -> str:
    report = captured.report
    if captured.overflowed:
        return "output"
    if report.reason:
        return {"timeout": "timeout", "memory": "memory"}.get(report.reason, "killed")
    code = os.waitstatus_to_exitcode(report.status)
    if code == 0:
        return "ok"
    if code == -signal.SIGXCPU or (code == -signal.SIGKILL and report.cpu_seconds >= limits.cpu_seconds):
        return "timeout"
    if code < 0:
        return "killed"
    lines = captured.stderr.rstrip().rsplit(b"\n", 1)
    return "memory" if _MEMORY_ERROR.match(lines[-1]) else "failed"


def _last_line(text: bytes) -> str:
    lines = text.decode(errors="replace").strip().splitlines()
    return lines[-1].strip() if lines else ""
