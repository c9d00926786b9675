"""The seccomp filter: which system calls a program does not get, as classic BPF.

A list of the dangerous ones and not of the allowed ones: programs with NumPy and threads use many harmless calls,
which change with the C library. Calls newer than the list do not exist for the program.
"""

# In the launcher the package has another name: imports are relative.
# ruff: noqa: TID252

import struct

from .linux import COLUMN


# name: (number on x86_64, number on aarch64), from the kernel's headers.
DENIED = {
    # other processes
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "process_mrelease": (448, 448),
    "kcmp": (312, 272),
    "pidfd_getfd": (438, 438),
    # file systems and namespaces
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "move_mount": (429, 429),
    "open_tree": (428, 428),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "unshare": (272, 97),
    "setns": (308, 268),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "fanotify_init": (300, 262),
    "fanotify_mark": (301, 263),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    # parts of the kernel with a history of holes
    "keyctl": (250, 219),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "vmsplice": (278, 75),
    "lookup_dcookie": (212, 18),
    "nfsservctl": (180, 42),
    "modify_ldt": (154, None),
    "uselib": (134, None),
    "ustat": (136, None),
    "sysfs": (139, None),
    "_sysctl": (156, None),
    "create_module": (174, None),
    "get_kernel_syms": (177, None),
    "query_module": (178, None),
    # the machine
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "syslog": (103, 116),
    "acct": (163, 89),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "clock_adjtime": (305, 266),
    "adjtimex": (159, 171),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "iopl": (172, None),
    "ioperm": (173, None),
    "vhangup": (153, 58),
    "personality": (135, 92),
    "move_pages": (279, 239),
    "migrate_pages": (256, 238),
    "mbind": (237, 235),
    "set_mempolicy": (238, 237),
    "set_mempolicy_home_node": (450, 450),
    # memory that no process is charged for
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "shmget": (29, 194),
    "shmat": (30, 196),
    "shmctl": (31, 195),
    "shmdt": (67, 197),
    "semget": (64, 190),
    "semop": (65, 193),
    "semctl": (66, 191),
    "semtimedop": (220, 192),
    "msgget": (68, 186),
    "msgsnd": (69, 189),
    "msgrcv": (70, 188),
    "msgctl": (71, 187),
    "mq_open": (240, 180),
    "mq_unlink": (241, 181),
    "mq_timedsend": (242, 182),
    "mq_timedreceive": (243, 183),
    "mq_notify": (244, 184),
    "mq_getsetattr": (245, 185),
    # the network; socketpair, which asyncio needs, is below
    "socket": (41, 198),
    "bind": (49, 200),
    "connect": (42, 203),
    "listen": (50, 201),
    "accept": (43, 202),
    "accept4": (288, 242),
}
_CLONE, _CLONE3 = (56, 220), (435, 435)
_SOCKETPAIR, _SIGACTION, _IOCTL = (53, 199), (13, 134), (16, 29)
# Limits and scheduling of another process, by its id. The supervisor is process 1 and, unless root started it, of the
# program's own user: without files or time it could not watch, and what it does not answer ends the caller's work.
_OF_A_PROCESS = {
    "prlimit64": (302, 261),
    "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119),
    "sched_setaffinity": (203, 122),
    "sched_setattr": (314, 274),
}
# The same for a process, a group or all of a user: (numbers, the value that means a process).
_OF_A_PROCESS_OR_MORE = {"setpriority": ((141, 140), 0), "ioprio_set": ((251, 30), 1)}
_SUPERVISOR = 1
_FIRST_UNKNOWN = 452
_AUDIT_ARCH = (0xC000003E, 0xC00000B7)
# CLONE_NEWNS, CGROUP, UTS, IPC, USER, PID, NET; and CLONE_PTRACE, by which a child gets its parent's tracer.
_REFUSED_CLONES = 0x7E020000 | 0x2000
_SIGCHLD = 17
_AF_UNIX = 1
_TERMINAL_INPUT = (0x5412, 0x541C)  # TIOCSTI, TIOCLINUX: typing into the user's terminal

_EPERM, _ENOSYS = 1, 38
_ALLOW, _ERRNO, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
# Offsets in struct seccomp_data: number, architecture, then six 64-bit arguments (low word first on both machines).
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16


def _op(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("HBBI", code, if_true, if_false, value & 0xFFFFFFFF)


def _argument(index: int, high: bool = False) -> bytes:
    return _op(_LOAD, _ARGUMENTS + 8 * index + 4 * high)


def _refuse(errno: int = _EPERM) -> bytes:
    return _op(_RETURN, _ERRNO | errno)


def _when(number: int, body: bytes) -> bytes:
    """`body` for one system call; the number is in the accumulator before, and only `body` may lose it."""
    return _op(_EQUAL, number, 0, len(body) // 8) + body


def build_filter(*, keep_child_accounting: bool = True) -> bytes:
    """The filter for this machine.

    Args:
        keep_child_accounting (`bool`, *optional*, defaults to `True`): Refuse to change what SIGCHLD does. A process
            that ignores it has its children's CPU time forgotten by the kernel. (Valgrind must be allowed to.)

    Raises:
        OSError: Neither x86_64 nor aarch64.
    """
    if COLUMN is None:
        raise OSError(_ENOSYS, "seccomp: the system call numbers of this machine are not known (x86_64 and aarch64)")
    allow = _op(_RETURN, _ALLOW)
    # Another architecture's numbers (32-bit calls) would slip through.
    program = _op(_LOAD, _ARCHITECTURE) + _op(_EQUAL, _AUDIT_ARCH[COLUMN], 1, 0) + _op(_RETURN, _KILL)
    # So would x32's, which are above all known ones as well.
    program += _op(_LOAD, _NUMBER) + _op(_AT_LEAST, _FIRST_UNKNOWN, 0, 1) + _refuse(_ENOSYS)
    # glibc falls back to clone, whose flags can be looked at.
    program += _when(_CLONE3[COLUMN], _refuse(_ENOSYS))
    program += _when(_CLONE[COLUMN], _argument(0) + _op(_ANY_BIT, _REFUSED_CLONES, 0, 1) + _refuse() + allow)
    program += _when(_SOCKETPAIR[COLUMN], _argument(0) + _op(_EQUAL, _AF_UNIX, 1, 0) + _refuse() + allow)
    typing = b"".join(_op(_EQUAL, request, 0, 1) + _refuse() for request in _TERMINAL_INPUT)
    program += _when(_IOCTL[COLUMN], _argument(1) + typing + allow)
    not_the_supervisor = _op(_EQUAL, _SUPERVISOR, 0, 1) + _refuse() + allow
    for numbers in _OF_A_PROCESS.values():
        program += _when(numbers[COLUMN], _argument(0) + not_the_supervisor)
    for numbers, a_process in _OF_A_PROCESS_OR_MORE.values():
        only_one = _argument(0) + _op(_EQUAL, a_process, 1, 0) + _refuse()
        program += _when(numbers[COLUMN], only_one + _argument(1) + not_the_supervisor)
    if keep_child_accounting:
        # sigaction(SIGCHLD, NULL, old) only reads and stays allowed.
        reads_only = _argument(1) + _op(_EQUAL, 0, 0, 3) + _argument(1, high=True) + _op(_EQUAL, 0, 0, 1) + allow
        body = _argument(0) + _op(_EQUAL, _SIGCHLD, 1, 0) + allow + reads_only + _refuse()
        program += _when(_SIGACTION[COLUMN], body)
    numbers = sorted(numbers[COLUMN] for numbers in DENIED.values() if numbers[COLUMN] is not None)
    # One jump a call to the refusal at the end; a jump reaches 255 instructions.
    for position, number in enumerate(numbers):
        program += _op(_EQUAL, number, len(numbers) - position, 0)
    return program + allow + _refuse()
