"""The sandbox: every attack is tried in each isolation that works here, and its twin shows that the attack is real."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
import uuid
from pathlib import Path

import pytest

from hf_qualcode.quality.sandbox import Limits, Sandbox
from hf_qualcode.types import QualcodeError, UsageError


pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the sandbox runs on Linux only")
_QUICK = Limits(cpu_seconds=20, wall_seconds=60)


def _open(level):
    try:
        return Sandbox.open(unsafe=True, isolation=level)
    except QualcodeError as error:
        pytest.skip(f"isolation {level} does not work on this machine: {error}")


@pytest.fixture(scope="module", params=["namespaces", "bubblewrap"])
def sandbox(request):
    """Each real isolation that works here."""
    return _open(request.param)


@pytest.fixture(scope="module")
def unsafe():
    """No isolation: where attacks succeed."""
    return _open("unsafe")


@pytest.fixture(scope="module")
def any_sandbox():
    """The best isolation, for what does not depend on it."""
    try:
        return Sandbox.open(unsafe=True)
    except QualcodeError as error:
        pytest.skip(f"no program can be run on this machine: {error}")


def _run(sandbox, text, stdin=b"", limits=_QUICK, **options):
    return sandbox.run(textwrap.dedent(text), stdin, limits=limits, **options)


def _succeeds(sandbox, attack, *arguments, **options):
    """Whether an attack that prints WIN when it gets through did."""
    return b"WIN" in _run(sandbox, attack, arguments=[str(argument) for argument in arguments], **options).stdout


def _processes_with(marker):
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if marker.encode() in path.read_bytes():
                found.append(int(path.parent.name))
    return found


def _gone(marker, seconds=20):
    """Whether no process carries the marker, now or soon (a killed process takes a moment to vanish)."""
    end = time.monotonic() + seconds
    while _processes_with(marker):
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


@pytest.fixture
def victim():
    """A process of this user's that waits, with a secret in its environment."""
    environment = {**os.environ, "QUALCODE_SECRET": "WIN"}
    with subprocess.Popen(["sleep", "300"], env=environment) as process:
        yield process
        process.kill()


# --- what must not be reached --------------------------------------------------------------------------------------

_READ = """
    import sys
    for path in sys.argv[1:]:
        try:
            print(open(path).read())
        except OSError as error:
            print("no:", error)
"""


def test_no_file_of_the_user_can_be_read(sandbox, unsafe, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("WIN")
    places = [secret]
    with contextlib.ExitStack() as stack:
        home = Path.home()
        if os.access(home, os.W_OK):
            in_home = home / f".qualcode-test-{uuid.uuid4().hex}"
            in_home.write_text("WIN")
            stack.callback(in_home.unlink)
            places.append(in_home)
        for place in places:
            assert _succeeds(unsafe, _READ, place)
            assert not _succeeds(sandbox, _READ, place, f"/proc/1/root{place}", f"/proc/self/root{place}")


_ENVIRONMENTS = """
    import os
    print(dict(os.environ))
    for pid in [name for name in os.listdir("/proc") if name.isdigit()]:
        try:
            print(open(f"/proc/{pid}/environ").read())
        except OSError:
            pass
"""


def test_no_environment_is_seen(sandbox, unsafe, victim, monkeypatch):
    monkeypatch.setenv("QUALCODE_OTHER_SECRET", "LEAK")
    assert _succeeds(unsafe, _ENVIRONMENTS)
    run = _run(sandbox, _ENVIRONMENTS)
    assert run.outcome == "ok"
    assert b"WIN" not in run.stdout
    assert b"LEAK" not in run.stdout
    assert b"LEAK" not in _run(unsafe, "import os; print(os.environ)").stdout


def test_other_processes_do_not_exist(sandbox, unsafe, victim):
    seen = "import os; print(*[name for name in os.listdir('/proc') if name.isdigit()])"
    assert str(victim.pid).encode() in _run(unsafe, seen).stdout.split()
    assert len(_run(sandbox, seen).stdout.split()) <= 2
    assert not _succeeds(sandbox, _READ, "/proc/1/environ")
    refused = _run(sandbox, "print(len(open('/proc/1/environ').read()), open('/proc/1/mem', 'rb'))")
    assert refused.outcome == "failed"


_CONNECT = """
    import socket, sys
    try:
        if sys.argv[1] == "tcp":
            connection = socket.create_connection(("127.0.0.1", int(sys.argv[2])), 5)
        else:
            connection = socket.socket(socket.AF_UNIX)
            connection.connect("\\0" + sys.argv[2])
        print(connection.recv(10).decode())
    except OSError as error:
        print("no:", error)
"""


@pytest.mark.parametrize("kind", ["tcp", "abstract"])
def test_no_network(sandbox, unsafe, kind):
    name = f"qualcode-{uuid.uuid4().hex}"
    server = socket.create_server(("127.0.0.1", 0)) if kind == "tcp" else socket.socket(socket.AF_UNIX)
    with server:
        if kind == "abstract":
            server.bind("\0" + name)
            server.listen()

        def serve():
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    with connection:
                        connection.sendall(b"WIN")

        threading.Thread(target=serve, daemon=True).start()
        address = server.getsockname()[1] if kind == "tcp" else name
        assert _succeeds(unsafe, _CONNECT, kind, address)
        assert not _succeeds(sandbox, _CONNECT, kind, address)
        server.shutdown(socket.SHUT_RDWR)


_PTRACE = """
    import ctypes, sys
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)
    for pid in map(int, sys.argv[1:]):
        print(pid, "WIN" if libc.ptrace(0x4206, pid, None, None) == 0 else ctypes.get_errno())
"""


def test_nothing_can_be_traced(sandbox, unsafe, victim):
    scope = Path("/proc/sys/kernel/yama/ptrace_scope")
    if not scope.exists() or scope.read_text().strip() == "0":
        assert _succeeds(unsafe, _PTRACE, victim.pid)
    assert not _succeeds(sandbox, _PTRACE, victim.pid, 1, 2, 3)


_KILL = """
    import os, sys
    try:
        os.kill(int(sys.argv[1]), 9)
        print("WIN")
    except OSError as error:
        print("no:", error)
"""


def test_nobody_else_can_be_signalled(sandbox, unsafe, victim):
    assert not _succeeds(sandbox, _KILL, victim.pid)
    assert victim.poll() is None
    assert _succeeds(unsafe, _KILL, victim.pid)
    assert victim.wait(20) == -signal.SIGKILL


def test_the_supervisor_cannot_be_killed(sandbox, unsafe):
    attack = """
        import os
        supervisor = os.getppid()
        for number in range(1, 65):
            try:
                os.kill(supervisor, number)
            except OSError:
                pass
        print("done")
    """
    run = _run(sandbox, attack)
    assert (run.outcome, run.stdout) == ("ok", b"done\n")
    with pytest.raises(QualcodeError, match="gave no answer"):
        _run(unsafe, attack)


_HINDER = """
    import ctypes, os, resource
    supervisor = os.getppid()
    attempts = {
        "files": lambda: resource.prlimit(supervisor, resource.RLIMIT_NOFILE, (1 << 8, 1 << 8)),
        "core": lambda: os.sched_setaffinity(supervisor, os.sched_getaffinity(0)),
        "scheduling": lambda: os.sched_setscheduler(supervisor, os.SCHED_BATCH, os.sched_param(0)),
        "priority": lambda: os.setpriority(os.PRIO_PROCESS, supervisor, 1),
        "of a user": lambda: os.setpriority(os.PRIO_USER, 0, 1),
        "of a group": lambda: os.setpriority(os.PRIO_PGRP, os.getpgid(supervisor), 1),
    }
    for name, attempt in attempts.items():
        try:
            attempt()
            print("WIN", name)
        except OSError as error:
            print("no:", name, error)
"""


def test_the_supervisor_cannot_be_hindered(sandbox, unsafe):
    """Its limits and scheduling are its own. Without root it is of the program's own user, which may change them."""
    succeeded = _run(unsafe, _HINDER).stdout
    assert b"WIN files" in succeeded
    assert b"WIN core" in succeeded
    assert not _succeeds(sandbox, _HINDER)
    own = """
        import os, resource
        resource.prlimit(0, resource.RLIMIT_NOFILE, (100, 100))
        os.sched_setaffinity(0, os.sched_getaffinity(0))
        os.nice(1)
        print(resource.prlimit(os.getpid(), resource.RLIMIT_NOFILE))
    """
    assert _run(sandbox, own).stdout == b"(100, 100)\n"


def test_a_child_with_the_parents_tracer(sandbox, unsafe):
    """CLONE_PTRACE hands the supervisor's trace on; such a child stops once more on its way out."""
    attack = """
        import ctypes, time
        clone = ctypes.CDLL(None).syscall
        for flags in (0x2000 | 17, 0x8000 | 0x2000 | 17, 0x8000 | 17):
            if clone(ctypes.c_long(56), ctypes.c_long(flags), 0, 0, 0, 0) == 0:
                time.sleep(1000)
        print("done")
    """
    if os.uname().machine != "x86_64":
        pytest.skip("this system call number is of x86-64")
    for one in (sandbox, unsafe):
        run = _run(one, attack)
        assert (run.outcome, run.stdout) == ("ok", b"done\n")


def test_the_machines_name_is_not_told(sandbox, unsafe):
    name = "import os; print(os.uname().nodename)"
    assert _run(sandbox, name).stdout == b"sandbox\n"
    assert _run(unsafe, name).stdout.decode().strip() == os.uname().nodename


_WRITE = """
    import os, sys
    for path in sys.argv[1:]:
        try:
            with open(path, "w") as file:
                file.write("x")
            print("WIN", path)
        except OSError as error:
            print("no:", error)
"""


def test_nothing_is_written_outside_the_scratch_folder(sandbox, unsafe, tmp_path):
    there = tmp_path / "written"
    assert _succeeds(unsafe, _WRITE, there)
    there.unlink()
    in_tmp = f"/tmp/qualcode-{uuid.uuid4().hex}"
    # There the program has a folder of that name, or none, but not this one.
    _run(sandbox, _WRITE, arguments=[in_tmp])
    closed = ["/x", "/usr/x", "/dev/x", "/proc/x", f"{sys.prefix}/lib/x", f"{sys.base_prefix}/lib/x"]
    assert not _succeeds(sandbox, _WRITE, there, *closed)
    assert not there.exists()
    assert not Path(in_tmp).exists()
    assert _succeeds(sandbox, _WRITE, "here")


def test_the_kernels_settings_cannot_be_opened(sandbox, unsafe):
    # Only opened, nothing is written: an isolation that fails here must not change the machine.
    attack = """
        import sys
        for path in sys.argv[1:]:
            try:
                open(path, "r+b").close()
                print("WIN", path)
            except OSError as error:
                print("no:", error)
    """
    settings = ["/proc/sys/kernel/core_pattern", "/proc/sys/vm/drop_caches", "/proc/sysrq-trigger", sys.executable]
    if os.geteuid() == 0 and os.access(settings[0], os.W_OK):
        assert _succeeds(unsafe, attack, settings[0])
    assert not _succeeds(sandbox, attack, *settings)


def test_links_in_the_scratch_folder_lead_nowhere(sandbox, unsafe, tmp_path):
    attack = """
        import os, sys
        os.symlink(sys.argv[1], "folder")
        os.remove("program.py")
        os.symlink(sys.argv[1] + "/kept", "program.py")
        try:
            open("folder/new", "w").write("x")
            print("WIN")
        except OSError as error:
            print("no:", error)
    """
    (tmp_path / "kept").write_text("kept")
    assert not _succeeds(sandbox, attack, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
    # Clearing up behind the program follows no link, even without isolation.
    assert _succeeds(unsafe, attack, tmp_path)
    assert (tmp_path / "kept").read_text() == "kept"


def test_privileges_are_gone(sandbox):
    status = dict(
        line.split(":\t", 1)
        for line in _run(sandbox, "print(open('/proc/self/status').read())").stdout.decode().splitlines()
        if ":\t" in line
    )
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert int(status[name], 16) == 0, name
    assert status["NoNewPrivs"] == "1"
    assert status["Seccomp"] == "2"


_CALLS = """
    import ctypes, sys
    libc = ctypes.CDLL(None, use_errno=True)
    for call in sys.argv[1:]:
        number, *values = map(int, call.split(","))
        result = libc.syscall(ctypes.c_long(number), *map(ctypes.c_long, values))
        print(call, "WIN" if result != -1 else f"errno {ctypes.get_errno()}")
"""


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="these system call numbers are of x86-64")
def test_the_filter_refuses_system_calls(sandbox, unsafe):
    # memfd_create, keyctl(GET_KEYRING_ID, session), personality, shmget, a user namespace by clone: each harmless
    memory, keys, nature, shared = "319,0", "250,0,-3,1", "135,0", "29,0,4096,896"
    harmless = [nature, shared]
    run = _run(unsafe, _CALLS, arguments=harmless)
    assert run.stdout.count(b"WIN") == len(harmless)
    more = [memory, keys, "272,268435456", f"56,{0x10000011},0,0,0,0", "435,0,0", "425,1,0", "321,0,0,0", "323,0"]
    more += [f"41,{family},1,0" for family in (1, 2, 10, 16, 17)] + ["53,2,1,0,0", "1000,0", f"{0x40000000 + 101},0"]
    assert not _succeeds(sandbox, _CALLS, *harmless, *more)
    # What asyncio and multiprocessing need is there.
    assert _run(sandbox, "import socket; print(socket.socketpair())").outcome == "ok"


def test_unshare(sandbox, unsafe):
    attack = """
        import ctypes
        print("WIN" if ctypes.CDLL(None).unshare(0x10000000) == 0 else "no")
    """
    assert not _succeeds(sandbox, attack)
    if sandbox.isolation == "namespaces":
        # It works where nothing forbids it, as the level itself shows.
        assert _succeeds(unsafe, attack)


def test_only_three_descriptors_are_there(sandbox):
    extra = os.open("/dev/null", os.O_RDWR)
    os.set_inheritable(extra, True)
    try:
        listing = "import os; print(sorted(fd for fd in range(1000) if os.path.exists(f'/proc/self/fd/{fd}')))"
        assert _run(sandbox, listing).stdout == b"[0, 1, 2]\n"
    finally:
        os.close(extra)


# --- limits --------------------------------------------------------------------------------------------------------


def test_a_fork_bomb_is_bounded(sandbox):
    marker = uuid.uuid4().hex
    run = _run(
        sandbox,
        """
        import os
        while True:
            try:
                os.fork()
            except OSError:
                pass
        """,
        limits=Limits(cpu_seconds=0.5, wall_seconds=5, processes=16),
        arguments=[marker],
    )
    assert run.outcome in ("timeout", "killed")
    assert _gone(marker)


_FORKS = """
    import os, sys, time
    started = 0
    for _ in range(60):
        try:
            if os.fork() == 0:
                time.sleep(1000)
        except OSError:
            break
        started += 1
    print(started)
"""


def test_processes_are_counted(sandbox):
    few = _run(sandbox, _FORKS, limits=Limits(processes=16, wall_seconds=60))
    # Where the kernel does not hold root to the limit, the supervisor does, and ends the program.
    assert few.outcome == "killed" or int(few.stdout) <= 17
    many = _run(sandbox, _FORKS, limits=Limits(processes=100, wall_seconds=60))
    assert (many.outcome, int(many.stdout)) == ("ok", 60)


def test_one_large_allocation(sandbox):
    run = _run(sandbox, "data = bytearray(10 * 2**30)")
    assert (run.outcome, run.exit_code) == ("memory", 1)
    # Nothing of it was ever there.
    assert run.peak_memory_bytes < 1 << 30


def test_memory_that_grows(any_sandbox):
    grow = """
        import sys
        data = []
        while len(data) < int(sys.argv[1]):
            data.append(b"x" * (1 << 20))
    """
    assert _run(any_sandbox, grow, arguments=["300"]).outcome == "ok"
    run = _run(any_sandbox, grow, limits=Limits(memory_bytes=200 << 20), arguments=["10000"])
    assert run.outcome == "memory"
    assert 200 << 20 <= run.peak_memory_bytes < 2 << 30


def test_memory_of_many_processes_counts_together(sandbox):
    attack = """
        import os, sys, time
        for _ in range(6):
            if os.fork() == 0:
                data = b"x" * (60 << 20)
                time.sleep(1000)
        time.sleep(float(sys.argv[1]))
    """
    assert _run(sandbox, attack, limits=Limits(memory_bytes=200 << 20), arguments=["1000"]).outcome == "memory"
    assert _run(sandbox, attack, limits=Limits(memory_bytes=600 << 20), arguments=["0.3"]).outcome == "ok"


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_endless_output(any_sandbox, stream):
    run = _run(
        any_sandbox,
        f"import sys\nwhile True: print('x' * 1000, file=sys.{stream})",
        limits=Limits(output_bytes=100_000),
    )
    assert run.outcome == "output"
    assert len(run.stdout) + len(run.stderr) == 100_000


def test_much_output_within_the_limit_arrives(any_sandbox):
    run = _run(any_sandbox, "print('x' * 5_000_000)")
    assert (run.outcome, len(run.stdout)) == ("ok", 5_000_001)


_FILL = """
    import os
    total = 0
    try:
        for index in range(20):
            with open(f"file{index}", "wb", buffering=0) as file:
                total += file.write(bytes(1 << 20))
    except OSError as error:
        print(error)
    print(total)
"""


def test_the_scratch_folder_has_an_end(sandbox, unsafe):
    limits = Limits(file_bytes=4 << 20)
    full = int(_run(sandbox, _FILL, limits=limits).stdout.split()[-1])
    assert 3 << 20 <= full <= 5 << 20
    assert int(_run(unsafe, _FILL, limits=limits).stdout.split()[-1]) == 20 << 20
    # Files without content end too.
    flood = """
        import os
        try:
            for count in range(100_000):
                os.mknod(f"f{count}")
        except OSError as error:
            print(count)
    """
    run = _run(sandbox, flood)
    # Under bubblewrap the supervisor sees to it.
    assert run.outcome == "killed" or int(run.stdout) < 20_000
    one = "open('big', 'wb', buffering=0).truncate(100 << 20)"
    assert _run(sandbox, one).outcome == "failed"


def test_open_files_are_limited(any_sandbox):
    run = _run(any_sandbox, "files = []\nwhile len(files) < 5000: files.append(open('/dev/null'))")
    assert run.outcome == "failed"
    assert b"Too many open files" in run.stderr


def test_sleeping_ends_by_the_wall(any_sandbox):
    run = _run(any_sandbox, "import time; time.sleep(10_000)", limits=Limits(wall_seconds=0.5))
    assert run.outcome == "timeout"
    assert run.cpu_seconds < 10


def test_signals_that_ask_are_not_waited_for(any_sandbox):
    stubborn = """
        import signal
        for number in (signal.SIGXCPU, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        while True:
            try:
                while True: pass
            except BaseException:
                pass
    """
    run = _run(any_sandbox, stubborn, limits=Limits(cpu_seconds=0.3, wall_seconds=60))
    assert (run.outcome, run.exit_code) == ("timeout", -signal.SIGKILL)
    assert run.cpu_seconds >= 0.3


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT, signal.SIGUSR1])
def test_an_end_by_signal(any_sandbox, number):
    run = _run(any_sandbox, f"import os; print('x', flush=True); os.kill(os.getpid(), {int(number)})")
    assert (run.outcome, run.exit_code, run.stdout) == ("killed", -number, b"x\n")


def test_a_stopped_program_ends_by_the_wall(any_sandbox):
    stop = "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)"
    assert _run(any_sandbox, stop, limits=Limits(wall_seconds=0.5)).outcome == "timeout"


_DAEMON = """
    import os, sys, time
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for fd in (0, 1, 2):
                os.close(fd)
            time.sleep(1000)
        os._exit(0)
    os.wait()
    print("parent done", flush=True)
"""


@pytest.mark.parametrize("level", ["namespaces", "bubblewrap", "unsafe"])
def test_a_daemon_ends_with_the_program(level):
    marker = uuid.uuid4().hex
    run = _run(_open(level), _DAEMON, arguments=[marker])
    assert (run.outcome, run.stdout) == ("ok", b"parent done\n")
    assert _gone(marker)


def test_a_daemon_lives_on_without_the_sandbox():
    marker = uuid.uuid4().hex
    subprocess.run([sys.executable, "-c", textwrap.dedent(_DAEMON), marker], check=True, capture_output=True)
    left = _processes_with(marker)
    assert left
    for pid in left:
        os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("level", ["namespaces", "bubblewrap", "unsafe"])
def test_the_program_ends_with_its_caller(level):
    _open(level)
    marker = uuid.uuid4().hex
    caller = f"""
        from hf_qualcode.quality.sandbox import Limits, Sandbox
        print("ready", flush=True)
        Sandbox.open(unsafe=True, isolation={level!r}).run(
            "import os, time; os.fork(); time.sleep(1000)",
            limits=Limits(wall_seconds=500),
            arguments=[{marker!r}[::-1]],
        )
    """
    marker = marker[::-1]
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(caller)], stdout=subprocess.PIPE, cwd=Path(__file__).parents[2]
    )
    with process:
        process.stdout.readline()
        end = time.monotonic() + 60
        while len(_processes_with(marker)) < 2 and time.monotonic() < end:
            time.sleep(0.02)
        assert len(_processes_with(marker)) >= 2
        process.kill()
    assert _gone(marker)


def test_zombies(any_sandbox):
    flood = """
        import os
        for _ in range(200):
            try:
                if os.fork() == 0:
                    os._exit(0)
            except OSError:
                pass
        print("done")
    """
    run = _run(any_sandbox, flood)
    assert run.outcome in ("ok", "killed")


# --- numbers that cannot be forged ---------------------------------------------------------------------------------


@pytest.mark.parametrize("ignoring", [False, True])
def test_the_time_of_abandoned_children_counts(sandbox, ignoring):
    attack = f"""
        import os, signal, time
        if {ignoring}:
            try:
                signal.signal(signal.SIGCHLD, signal.SIG_IGN)
            except OSError:
                pass
        reader, writer = os.pipe()
        if os.fork() == 0:
            if os.fork() == 0:
                t = time.process_time()
                while time.process_time() < t + 0.3: pass
                os.write(writer, b"x")
            os._exit(0)
        os.read(reader, 1)
    """
    assert _run(sandbox, attack).cpu_seconds >= 0.3


def test_the_time_of_waited_children_counts(any_sandbox):
    run = _run(
        any_sandbox,
        """
        import os, time
        if os.fork() == 0:
            t = time.process_time()
            while time.process_time() < t + 0.3: pass
            os._exit(0)
        os.wait()
        """,
    )
    assert run.cpu_seconds >= 0.3


@pytest.fixture(scope="module")
def large_parent():
    """This process holds half a gigabyte, which a child's `ru_maxrss` would start from."""
    return b"x" * (500 << 20)


@pytest.mark.parametrize(
    "ending",
    [
        "",
        "os._exit(3)",
        "sys.exit(4)",
        "os.kill(os.getpid(), 15)",
        "threading.Thread(target=os._exit, args=(0,)).start(); time.sleep(100)",
    ],
    ids=["plain", "_exit", "exit", "signal", "thread"],
)
def test_peak_memory_is_the_programs_own(any_sandbox, large_parent, ending):
    empty = _run(any_sandbox, "").peak_memory_bytes
    run = _run(any_sandbox, f"import os, sys, threading, time\ndata = b'x' * (100 << 20)\ndel data\n{ending}")
    assert 5 << 20 < empty < 60 << 20
    assert 99 << 20 < run.peak_memory_bytes - empty < 115 << 20


@pytest.mark.parametrize(
    "hiding",
    [
        "os.execv(sys.executable, [sys.executable, '-S', '-c', ''])",
        "",
    ],
    ids=["exec", "child"],
)
def test_memory_cannot_be_hidden(any_sandbox, hiding):
    attack = f"""
        import os, sys
        if {not hiding} and os.fork():
            os.wait()
        else:
            data = b"x" * (100 << 20)
            {hiding or "os._exit(0)"}
    """
    assert _run(any_sandbox, attack).peak_memory_bytes > 100 << 20


def test_memory_of_threads_that_outlive_the_first(any_sandbox):
    attack = """
        import ctypes, os, threading, time
        def later():
            time.sleep(0.2)
            data = b"x" * (100 << 20)
            os._exit(0)
        threading.Thread(target=later).start()
        ctypes.CDLL(None).syscall(ctypes.c_long(60 if os.uname().machine == "x86_64" else 93), ctypes.c_long(0))
    """
    run = _run(any_sandbox, attack)
    assert run.peak_memory_bytes > 100 << 20


# --- an ordinary program finds what it expects ---------------------------------------------------------------------


def test_a_plain_program(any_sandbox):
    run = _run(
        any_sandbox,
        """
        import os, sys
        assert __name__ == "__main__"
        assert open(0).readline() == "1 2\\n"
        print(sys.argv[1:], sys.flags.dont_write_bytecode, file=sys.stderr)
        sys.exit(7)
        """,
        b"1 2\n3\n",
        arguments=["a", "b c"],
    )
    assert (run.outcome, run.exit_code, run.stdout) == ("failed", 7, b"")
    assert run.stderr == b"['a', 'b c'] 1\n"


@pytest.mark.parametrize(
    "reading",
    ["open(0).read()", "sys.stdin.read()", "sys.stdin.buffer.read().decode()", "os.read(0, 99).decode()",
     "open('/dev/stdin').read()", "''.join(iter(lambda: sys.stdin.read(1), ''))"],
)  # fmt: skip
def test_input(any_sandbox, reading):
    assert _run(any_sandbox, f"import os, sys; print({reading}, end='')", b"some\ninput").stdout == b"some\ninput"


def test_the_input_cannot_be_written(any_sandbox):
    assert _run(any_sandbox, "import os; os.write(0, b'x')").outcome == "failed"
    assert (
        _run(any_sandbox, "file = open('/proc/self/fd/0', 'r+b', buffering=0); file.write(b'x')").outcome == "failed"
    )
    assert _run(any_sandbox, "open('/proc/self/fd/0', 'r+b', buffering=0).truncate(9)", b"12").outcome == "failed"


def test_closed_streams(any_sandbox):
    assert _run(any_sandbox, "import os\nfor fd in (0, 1, 2): os.close(fd)\nos._exit(5)").exit_code == 5


def test_fixed_hash_seed_and_isolated_path(any_sandbox):
    show = "import sys; print(hash('a'), sys.path)\nopen('shadow.py', 'w').close()\nimport shadow"
    first, second = _run(any_sandbox, show), _run(any_sandbox, show)
    assert first.stdout == second.stdout
    assert b"No module named 'shadow'" in first.stderr
    path = first.stdout.decode().partition(" ")[2]
    assert "''" not in path
    assert "/scratch" not in path
    assert "/.local/" not in path


def test_packages_threads_and_depth(sandbox):
    numpy = pytest.importorskip("numpy", reason="this interpreter has no NumPy for the program to find")
    if not Path(numpy.__file__).is_relative_to(sys.prefix):
        pytest.skip("NumPy is not installed in this interpreter's own folder, and programs see no other")
    run = _run(
        sandbox,
        """
        import sys, threading
        import numpy
        from functools import lru_cache
        sys.setrecursionlimit(10**7)
        threading.stack_size(512 << 20)
        def depth(n):
            return 0 if n == 0 else 1 + depth(n - 1)
        thread = threading.Thread(target=lambda: print(depth(100_000), int(numpy.arange(10).sum())))
        thread.start()
        thread.join()
        """,
    )
    assert (run.outcome, run.stdout) == ("ok", b"100000 45\n")


def test_multiprocessing_works(sandbox):
    run = _run(
        sandbox,
        """
        import multiprocessing
        if __name__ == "__main__":
            with multiprocessing.Pool(2) as pool:
                print(sum(pool.map(abs, range(-5, 5))))
        """,
    )
    assert (run.outcome, run.stdout) == ("ok", b"25\n")


def test_a_core_of_its_own(any_sandbox):
    core = max(os.sched_getaffinity(0))
    assert _run(any_sandbox, "import os; print(os.sched_getaffinity(0))", core=core).stdout.strip() == b"{%d}" % core
    with pytest.raises(UsageError, match="core 100000"):
        any_sandbox.run("", core=100_000)


def test_a_program_in_a_file(any_sandbox, tmp_path):
    program = tmp_path / "p.py"
    program.write_bytes(b"# coding: latin-1\nprint(len('\xe4'))")
    assert any_sandbox.run(program).stdout == b"1\n"
    broken = any_sandbox.run("print(")
    assert (broken.outcome, broken.exit_code) == ("failed", 1)
    assert b"SyntaxError" in broken.stderr


def test_instructions_are_counted(any_sandbox):
    try:
        run = any_sandbox.run("print(1)", count_instructions=True, limits=Limits(cpu_seconds=100))
    except QualcodeError as error:
        pytest.skip(f"instructions cannot be counted here: {error}")
    assert run.stdout == b"1\n"
    assert run.instructions > 1_000_000


@pytest.mark.slow
def test_instructions_repeat(any_sandbox):
    text = "print(sum(i * i for i in range(1000)))"
    try:
        counts = [
            any_sandbox.run(text, count_instructions=True, limits=Limits(cpu_seconds=100)).instructions for _ in "abc"
        ]
    except QualcodeError as error:
        pytest.skip(f"instructions cannot be counted here: {error}")
    assert max(counts) / min(counts) < 1.001


def test_without_valgrind_one_line_says_so(any_sandbox, monkeypatch):
    monkeypatch.setattr("hf_qualcode.quality.sandbox.shutil.which", lambda *_, **__: None)
    with pytest.raises(QualcodeError, match="install the package valgrind"):
        any_sandbox.run("", count_instructions=True)


# --- choosing ------------------------------------------------------------------------------------------------------


def test_where_nothing_works_it_refuses(monkeypatch):
    monkeypatch.setattr(Sandbox, "_why_not", lambda self: "not here" if self.isolation != "unsafe" else None)
    with pytest.raises(QualcodeError, match=r"namespaces: not here.*--unsafe"):
        Sandbox.open()
    assert Sandbox.open(unsafe=True).isolation == "unsafe"


def test_a_container_that_forbids_namespaces_is_understood():
    code = """
        from hf_qualcode.quality.isolation import filter, linux
        from hf_qualcode.quality.sandbox import Sandbox
        from hf_qualcode.types import QualcodeError

        # What container engines do: these calls, and clone with new namespaces, are refused.
        names = ("unshare", "mount", "setns")
        numbers = {name: filter.DENIED[name] for name in names}
        filter.DENIED.clear()
        filter.DENIED.update(numbers)
        linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1)
        linux.install_filter(filter.build_filter(keep_child_accounting=False))
        try:
            Sandbox.open()
        except QualcodeError as error:
            print(error)
        sandbox = Sandbox.open(unsafe=True)
        print(sandbox.isolation, sandbox.run("print(6 * 7)").stdout)
    """
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
        check=True,
    )
    refusal, allowed = run.stdout.splitlines()
    assert "namespaces: unshare: Operation not permitted" in refusal
    assert "bubblewrap: " in refusal
    assert "--unsafe" in refusal
    assert allowed == "unsafe b'42\\n'"


def test_unsafe_is_the_last_choice(any_sandbox):
    with pytest.raises(QualcodeError):
        Sandbox.open(isolation="unsafe")
    assert Sandbox.open(unsafe=True).isolation == any_sandbox.isolation


def test_wrong_use():
    with pytest.raises(UsageError, match="isolation 'jail'"):
        Sandbox.open(isolation="jail")
    with pytest.raises(UsageError, match="cpu_seconds=0"):
        Limits(cpu_seconds=0)
