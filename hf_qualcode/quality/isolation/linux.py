"""The Linux calls that Python has no function for, by `ctypes`. Each raises `OSError` with the call's name."""

import ctypes
import os


_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)
_libc.ptrace.restype = ctypes.c_long
_libc.syscall.restype = ctypes.c_long

MACHINE = os.uname().machine
# Column of a machine in the tables of numbers; None where we know none.
COLUMN = {"x86_64": 0, "aarch64": 1}.get(MACHINE)
_PIVOT_ROOT = (155, 41)
_SECCOMP = (317, 277)
_CAPSET = (126, 91)
_MOUNT_SETATTR = (442, 442)

CLONE_NEWNS, CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC = 0x20000, 0x2000000, 0x4000000, 0x8000000
CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = (
    1, 2, 4, 8, 32, 4096, 16384, 1 << 18,
)  # fmt: skip
MNT_DETACH = 2
MOUNT_ATTR_RDONLY, MOUNT_ATTR_NOSUID, MOUNT_ATTR_NODEV, MOUNT_ATTR_NOEXEC = 1, 2, 4, 8
AT_FDCWD, AT_RECURSIVE = -100, 0x8000

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_CAPBSET_DROP, PR_SET_CHILD_SUBREAPER = 1, 4, 24, 36
PR_SET_NO_NEW_PRIVS, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL = 38, 47, 4

PTRACE_CONT, PTRACE_SEIZE, PTRACE_LISTEN = 7, 0x4206, 0x4208
PTRACE_O_TRACEEXEC, PTRACE_O_TRACEEXIT = 0x10, 0x40
PTRACE_EVENT_EXEC, PTRACE_EVENT_EXIT, PTRACE_EVENT_STOP = 4, 6, 128
# Wait for every child, also those that a raw clone() made without an exit signal.
WALL = 0x40000000

ADDR_NO_RANDOMIZE = 0x0040000


def _check(value: int, what: str) -> int:
    if value == -1:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return value


def _number(pair: tuple[int, int], what: str) -> int:
    if COLUMN is None:
        raise OSError(38, f"{what}: not known on {MACHINE} (x86_64 and aarch64 are)")
    return pair[COLUMN]


def unshare(flags: int) -> None:
    _check(_libc.unshare(flags), "unshare")


def mount(source: str, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    encoded = [None if text is None else os.fsencode(text) for text in (source, target, kind, data)]
    source_bytes, target_bytes, kind_bytes, data_bytes = encoded
    _check(
        _libc.mount(source_bytes, target_bytes, kind_bytes, ctypes.c_ulong(flags), data_bytes),
        f"mount of {source} on {target}",
    )


def umount(target: str, flags: int) -> None:
    _check(_libc.umount2(os.fsencode(target), flags), f"umount of {target}")


def pivot_root(new_root: str, old_root: str) -> None:
    number = _number(_PIVOT_ROOT, "pivot_root")
    _check(_libc.syscall(ctypes.c_long(number), os.fsencode(new_root), os.fsencode(old_root)), "pivot_root")


def restrict_mount(target: str, attributes: int) -> None:
    """Set MOUNT_ATTR_* on a mount and on all mounts below it (Linux 5.12 and newer)."""
    wanted = (ctypes.c_uint64 * 4)(attributes, 0, 0, 0)
    number = _number(_MOUNT_SETATTR, "mount_setattr")
    _check(
        _libc.syscall(
            ctypes.c_long(number),
            ctypes.c_long(AT_FDCWD),
            os.fsencode(target),
            ctypes.c_long(AT_RECURSIVE),
            ctypes.byref(wanted),
            ctypes.c_long(ctypes.sizeof(wanted)),
        ),
        f"mount_setattr on {target}",
    )


def set_host_name(name: str) -> None:
    """Name the machine, in a namespace of our own."""
    encoded = name.encode()
    _check(_libc.sethostname(encoded, ctypes.c_size_t(len(encoded))), "sethostname")


def prctl(option: int, *values: int) -> int:
    padded = [ctypes.c_ulong(value) for value in (*values, 0, 0, 0, 0)[:4]]
    return _check(_libc.prctl(option, *padded), f"prctl({option})")


def drop_bounding_capabilities() -> None:
    """Empty the bounding set, as far as this process may: no program can then give capabilities back."""
    for capability in range(64):
        try:
            prctl(PR_CAPBSET_DROP, capability)
        except OSError:
            return  # past the last one, or without the right to: then the sets below are all that counts


def drop_capabilities() -> None:
    """Empty the ambient, inheritable, permitted and effective sets."""
    try:
        prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL)
    except OSError as error:
        if error.errno != 22:
            raise
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    empty = (ctypes.c_uint32 * 6)()
    number = _number(_CAPSET, "capset")
    _check(_libc.syscall(ctypes.c_long(number), ctypes.byref(header), ctypes.byref(empty)), "capset")


def ptrace(request: int, pid: int, data: int = 0) -> None:
    _check(_libc.ptrace(request, pid, None, ctypes.c_void_p(data)), f"ptrace({request})")


def set_personality(value: int) -> None:
    _check(_libc.personality(ctypes.c_ulong(value)), "personality")


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


def install_filter(instructions: bytes) -> None:
    """Install a seccomp filter on this thread and what it starts. Needs no_new_privs."""
    buffer = ctypes.create_string_buffer(instructions, len(instructions))
    program = _Program(len(instructions) // 8, ctypes.cast(buffer, ctypes.c_void_p))
    number = _number(_SECCOMP, "seccomp")
    # Flag 4, SPEC_ALLOW: without it kernels before 5.16 slow the filtered program down, and we measure its time.
    for flags in (4, 0):
        if _libc.syscall(ctypes.c_long(number), ctypes.c_long(1), ctypes.c_long(flags), ctypes.byref(program)) == 0:
            return
    _check(-1, "seccomp")
