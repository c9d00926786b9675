"""Run the program under its limits, watch it, measure it, and leave nothing of it running.

The supervisor is process 1 of the program's namespace (its end is everybody's end), or, without isolation, the
subreaper of what the program starts. It keeps its numbers to itself: the program inherits descriptors 0, 1 and 2 only
and can neither trace nor read the supervisor.

CPU time is the sum over every process that the supervisor reaps, so also of those that the program left behind. Peak
memory is VmHWM as it stands when the program ends, read while it is held at its exit by `ptrace`: `ru_maxrss` would
start from the supervisor's own size. It counts only where it is larger than that size could explain (a child, or what
ran before an exec).
"""

# In the launcher the package has another name; pathlib and contextlib would cost each run milliseconds.
# ruff: noqa: TID252, SIM105, PTH116, PTH123, PTH208

# Not `signal`, whose enumerations cost each run milliseconds.
import _signal as signal
import os
import resource
import select
import time

from .filter import build_filter
from .job import PROGRAM_ID, Job, Report
from .linux import (
    ADDR_NO_RANDOMIZE,
    PR_SET_CHILD_SUBREAPER,
    PR_SET_DUMPABLE,
    PR_SET_NO_NEW_PRIVS,
    PR_SET_PDEATHSIG,
    PTRACE_CONT,
    PTRACE_EVENT_EXEC,
    PTRACE_EVENT_EXIT,
    PTRACE_EVENT_STOP,
    PTRACE_LISTEN,
    PTRACE_O_TRACEEXEC,
    PTRACE_O_TRACEEXIT,
    PTRACE_SEIZE,
    WALL,
    drop_bounding_capabilities,
    drop_capabilities,
    install_filter,
    prctl,
    ptrace,
    set_personality,
)


# Seconds between two looks at the program's memory, processes and time.
_TICK_S = 0.01
_PAGE = os.sysconf("SC_PAGE_SIZE")
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
# Pages that a fork of the supervisor may touch before it becomes the program.
_FORK_SLACK = 2 << 20
_LOG_BYTES = 1 << 16
# In an ordinary user's own namespace the launcher counts as processes of the same user.
_OWN_PROCESSES = 2
_MOST_FILES = 16384


def supervise(job: Job, control: int) -> Report:
    """Run a job in the isolation that this process is in already.

    Raises:
        OSError: The program could not be started.
    """
    if job.level == "unsafe":
        prctl(PR_SET_CHILD_SUBREAPER, 1)
    elif os.getpid() != 1:
        raise OSError(1, "the launcher is not process 1 of its namespace")
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2:
            try:
                os.set_inheritable(int(name), False)
            except OSError:
                pass  # the listing's own descriptor is closed by now
    with open(job.program_path, "xb") as file:
        file.write(job.program)
    if job.core >= 0 and len(others := os.sched_getaffinity(0) - {job.core}):
        os.sched_setaffinity(0, others)
    return _Watch(job, control).run()


class _Watch:
    def __init__(self, job: Job, control: int):
        self.job, self.control = job, control
        self.reason = ""
        self.reaped_cpu = 0.0
        self.peak = 0
        self.status: int | None = None
        self.max_rss = 0
        self.log = b""
        self.log_descriptor = -1
        self.started = 0.0
        self.cpu_before = 0.0

    def run(self) -> Report:
        job = self.job
        wake, wake_writer = os.pipe()
        os.set_blocking(wake, False)
        os.set_blocking(wake_writer, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        # Process 1 gets from inside only those signals that it handles, and Python handles this one.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.set_wakeup_fd(wake_writer, warn_on_full_buffer=False)
        self._start(wake)
        floor = _high_water(os.getpid()) + _FORK_SLACK
        watched = [wake, self.control] + ([self.log_descriptor] if job.count_instructions else [])
        deadline = self.started + job.wall_seconds
        next_look = self.started
        while True:
            self._reap()
            if self.status is not None:
                break
            now = time.monotonic()
            if now >= deadline:
                self._stop("timeout")
            elif now >= next_look:
                self._look()
                next_look = now + _TICK_S
            wait = max(0.0, min(next_look, deadline) - time.monotonic()) if not self.reason else _TICK_S
            ready, _, _ = select.select(watched, [], [], wait)
            if wake in ready:
                _drain(wake)
            if self.log_descriptor in ready:
                self._read_log()
            if self.control in ready:
                # A byte asks for the end; no byte: the parent is gone.
                watched.remove(self.control)
                self._stop("stopped")
        wall = time.monotonic() - self.started
        self._end_all()
        if job.count_instructions:
            self._read_log()
        peak = max(self.peak, self.max_rss) if self.max_rss > floor or not self.peak else self.peak
        cpu = max(0.0, self.reaped_cpu - self.cpu_before)
        return Report(self.reason, self.status, cpu, wall, peak, self._instructions())

    def _start(self, wake: int) -> None:
        job = self.job
        filter_bytes = b"" if job.level == "unsafe" else build_filter(keep_child_accounting=not job.count_instructions)
        limits = _limits(job)
        command = job.command
        log_writer = -1
        if job.count_instructions:
            self.log_descriptor, log_writer = os.pipe()
            os.set_blocking(self.log_descriptor, False)
            command = [part.replace("{log}", str(log_writer)) for part in command]
        go, go_writer = os.pipe()
        failed, failed_writer = os.pipe()
        self.program = os.fork()
        if self.program == 0:
            try:
                os.close(go_writer)
                if os.read(go, 1):
                    _become(job, command, limits, filter_bytes, log_writer)
            except (OSError, ValueError) as error:
                os.write(failed_writer, str(error).encode())
            finally:
                os._exit(127)
        os.close(go)
        os.close(failed_writer)
        if log_writer >= 0:
            os.close(log_writer)
        try:
            ptrace(PTRACE_SEIZE, self.program, PTRACE_O_TRACEEXIT | PTRACE_O_TRACEEXEC)
        except OSError as error:
            os.kill(self.program, signal.SIGKILL)
            raise OSError(1, f"the peak memory cannot be read: {error.strerror}") from None
        # From here on nobody may look into the supervisor. (Not earlier: its fork would be as closed to itself.)
        prctl(PR_SET_DUMPABLE, 0)
        os.write(go_writer, b"1")
        os.close(go_writer)
        while not self.started and self.status is None:
            if wake in select.select([wake, failed], [], [])[0]:
                _drain(wake)
            self._reap()
        reason = os.read(failed, 1000)
        os.close(failed)
        if reason or not self.started:
            raise OSError(1, f"{command[0]} cannot be started: {reason.decode(errors='replace')}")

    def _reap(self) -> None:
        """Take note of every process that has stopped or ended."""
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG | WALL)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if os.WIFSTOPPED(status):
                self._let_on(pid, status)
                continue
            self.reaped_cpu += usage.ru_utime + usage.ru_stime
            self.max_rss = max(self.max_rss, usage.ru_maxrss * 1024)
            if pid == self.program:
                self.status = status

    def _let_on(self, pid: int, status: int) -> None:
        """Continue the traced program. (Only it is traced, and where there is no filter what it passes that on to.)"""
        event, number = status >> 16, os.WSTOPSIG(status)
        request, passed_on = PTRACE_CONT, 0
        if event == PTRACE_EVENT_EXIT:
            self.peak = max(self.peak, _high_water(pid))
        elif event == PTRACE_EVENT_EXEC:
            if not self.started:
                # What it used before was the launcher's own doing.
                self.cpu_before = _cpu_seconds(pid)
                self.started = time.monotonic()
        elif event == PTRACE_EVENT_STOP:
            if number in (signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU):
                request = PTRACE_LISTEN
        else:
            passed_on = number
        try:
            ptrace(request, pid, passed_on)
        except OSError:
            pass  # killed in the meantime: wait says so next

    def _look(self) -> None:
        """Compare what the program and all that it started use with the limits."""
        if self.reason:
            self._kill()
            return
        job = self.job
        pids = self._processes()
        cpu = self.reaped_cpu
        usages = [_usage(pid) for pid in pids]
        cpu += sum(usage[0] for usage in usages)
        resident = sum(usage[1] for usage in usages)
        tasks = sum(usage[2] for usage in usages)
        if cpu > job.cpu_seconds:
            self._stop("timeout")
        elif resident > job.memory_bytes and (
            len(pids) == 1 or sum(map(_proportional, pids, usages)) > job.memory_bytes
        ):
            self._stop("memory")
        elif tasks > job.processes + _OWN_PROCESSES:
            # Where the kernel's own limit does not bind (root under bubblewrap, or without isolation).
            self._stop("processes")
        elif job.level != "unsafe" and _files_in(job.scratch) > _MOST_FILES:
            # Bubblewrap cannot limit them, and each takes the kernel's memory.
            self._stop("files")

    def _stop(self, reason: str) -> None:
        if not self.reason:
            self.reason = reason
        self.peak = max(self.peak, _high_water(self.program))
        self._kill()

    def _kill(self) -> None:
        if self.job.level != "unsafe":
            try:
                os.kill(-1, signal.SIGKILL)
            except ProcessLookupError:
                pass
            return
        for pid in self._processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def _end_all(self) -> None:
        """Kill what the program left, and wait for each, so that its CPU time is counted."""
        while True:
            self._kill()
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG | WALL)
            except ChildProcessError:
                return
            if pid == 0:
                time.sleep(0.001)
            elif os.WIFSTOPPED(status):
                # What is traced stops once more on its way out, and would stay there.
                self._let_on(pid, status)
            else:
                self.reaped_cpu += usage.ru_utime + usage.ru_stime
                self.max_rss = max(self.max_rss, usage.ru_maxrss * 1024)

    def _processes(self) -> list[int]:
        """Every process of the job but this one."""
        numbers = [int(name) for name in os.listdir("/proc") if name.isdigit()]
        me = os.getpid()
        if self.job.level != "unsafe":
            return [pid for pid in numbers if pid != me]
        parents = {pid: _parent(pid) for pid in numbers}
        found, edge = [], [me]
        while edge:
            edge = [pid for pid, parent in parents.items() if parent in edge]
            found += edge
        return found

    def _read_log(self) -> None:
        while True:
            try:
                part = os.read(self.log_descriptor, _LOG_BYTES)
            except BlockingIOError:
                return
            if not part:
                return
            self.log = (self.log + part)[-_LOG_BYTES:]

    def _instructions(self) -> int:
        if not self.job.count_instructions:
            return -1
        prefix = f"=={self.program}== I".encode()
        for line in reversed(self.log.splitlines()):
            if line.startswith(prefix) and b"refs:" in line:
                return int(line.split(b":")[1].replace(b",", b""))
        return -1


def _limits(job: Job) -> list[tuple[int, int, int]]:
    processes = job.processes + (0 if os.geteuid() == 0 else _OWN_PROCESSES)
    if job.level == "unsafe" or _kernel_version() < (5, 14):
        # There the limit counts all processes of the user, not those of the namespace.
        processes += sum(_owner(name) == os.getuid() for name in os.listdir("/proc") if name.isdigit())
    cpu = int(job.cpu_seconds) + 1
    wanted = {
        resource.RLIMIT_CPU: (cpu, cpu + 1),
        resource.RLIMIT_AS: (job.address_bytes, job.address_bytes),
        resource.RLIMIT_NPROC: (processes, processes),
        resource.RLIMIT_FSIZE: (job.file_bytes, job.file_bytes),
        resource.RLIMIT_NOFILE: (job.open_files, job.open_files),
        resource.RLIMIT_CORE: (0, 0),
        resource.RLIMIT_MSGQUEUE: (0, 0),
        resource.RLIMIT_MEMLOCK: (0, 0),
        resource.RLIMIT_STACK: (job.stack_bytes, resource.RLIM_INFINITY),
    }
    limits = []
    for kind, (soft, hard) in wanted.items():
        highest = resource.getrlimit(kind)[1]
        if highest != resource.RLIM_INFINITY:
            hard = highest if hard == resource.RLIM_INFINITY else min(hard, highest)
            soft = min(soft, hard)
        limits.append((kind, soft, hard))
    return limits


def _become(job: Job, command: list, limits: list, filter_bytes: bytes, log_writer: int) -> None:
    """In the forked child: give everything up and execute the command."""
    os.setsid()
    os.chdir(job.scratch)
    os.umask(0o077)
    for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    if job.core >= 0:
        os.sched_setaffinity(0, {job.core})
    if job.count_instructions:
        os.set_inheritable(log_writer, True)
        set_personality(ADDR_NO_RANDOMIZE)
    for kind, soft, hard in limits:
        resource.setrlimit(kind, (soft, hard))
    if job.level != "unsafe":
        drop_bounding_capabilities()
        if os.geteuid() == 0:
            os.setresgid(PROGRAM_ID, PROGRAM_ID, PROGRAM_ID)
            os.setresuid(PROGRAM_ID, PROGRAM_ID, PROGRAM_ID)
        drop_capabilities()
        prctl(PR_SET_NO_NEW_PRIVS, 1)
        prctl(PR_SET_PDEATHSIG, 9)
        install_filter(filter_bytes)
    else:
        prctl(PR_SET_PDEATHSIG, 9)
    os.execve(command[0], command, job.environment)


def _read(path: str) -> bytes:
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return b""  # the process has ended
    try:
        return os.read(descriptor, 1 << 16)
    except OSError:
        return b""
    finally:
        os.close(descriptor)


def _high_water(pid: int) -> int:
    """Bytes of VmHWM; 0 for a process without memory (it has ended)."""
    for line in _read(f"/proc/{pid}/status").splitlines():
        if line.startswith(b"VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0


def _cpu_seconds(pid: int) -> float:
    return int((_read(f"/proc/{pid}/schedstat").split() or [0])[0]) * 1e-9


def _stat(pid: int) -> list[bytes]:
    # The name, in parentheses, may hold anything; the fields after it count from the state, field 3.
    return _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()


def _parent(pid: int) -> int:
    fields = _stat(pid)
    return int(fields[1]) if fields else 0


def _owner(pid: str) -> int:
    try:
        return os.stat(f"/proc/{pid}").st_uid
    except OSError:
        return -1


def _usage(pid: int) -> tuple[float, int, int]:
    """CPU seconds (waited children too), resident bytes and threads of a process."""
    fields = _stat(pid)
    if not fields:
        return 0.0, 0, 0
    resident = int(fields[21]) * _PAGE
    threads = int(fields[17])
    if threads > 1 and not resident:
        # Its first thread has ended and shows nothing; the memory is there with the others.
        try:
            for name in os.listdir(f"/proc/{pid}/task"):
                pages = _read(f"/proc/{pid}/task/{name}/statm").split()
                resident = max(resident, int(pages[1]) * _PAGE if pages else 0)
        except OSError:
            pass  # ended while it was looked at
    return sum(int(field) for field in fields[11:15]) / _TICKS_PER_S, resident, threads


def _proportional(pid: int, usage: tuple[float, int, int]) -> int:
    """Resident bytes where a page shared by n processes counts 1/n; where that cannot be read, the plain ones."""
    for line in _read(f"/proc/{pid}/smaps_rollup").splitlines():
        if line.startswith(b"Pss:"):
            return int(line.split()[1]) * 1024
    return usage[1]


def _files_in(scratch: str) -> int:
    state = os.statvfs(scratch)
    return state.f_files - state.f_ffree


def _drain(descriptor: int) -> None:
    try:
        while os.read(descriptor, 4096):
            pass
    except BlockingIOError:
        pass


def _kernel_version() -> tuple[int, int]:
    major, minor = os.uname().release.split(".")[:2]
    return int(major), int("".join(character for character in minor if character.isdigit()) or 0)
