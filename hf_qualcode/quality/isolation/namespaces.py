"""Going into namespaces of our own: nobody else's processes, files or network are there.

As root the program becomes user 65534 (the limit on processes does not bind root), and the launcher stays root of its
own namespace; as an ordinary user both keep that user's rights, which outside of the bound folders are of no use.
"""

# In the launcher the package has another name; pathlib would cost each run milliseconds.
# ruff: noqa: TID252, PTH102, PTH103, PTH106, PTH120, PTH211

import os

from .job import PROGRAM_ID, Job
from .linux import (
    CLONE_NEWCGROUP,
    CLONE_NEWIPC,
    CLONE_NEWNET,
    CLONE_NEWNS,
    CLONE_NEWPID,
    CLONE_NEWUSER,
    CLONE_NEWUTS,
    MNT_DETACH,
    MOUNT_ATTR_NODEV,
    MOUNT_ATTR_NOEXEC,
    MOUNT_ATTR_NOSUID,
    MOUNT_ATTR_RDONLY,
    MS_BIND,
    MS_NODEV,
    MS_NOEXEC,
    MS_NOSUID,
    MS_PRIVATE,
    MS_RDONLY,
    MS_REC,
    MS_REMOUNT,
    PR_SET_PDEATHSIG,
    mount,
    pivot_root,
    prctl,
    restrict_mount,
    set_host_name,
    umount,
    unshare,
)


_ALL = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP
# Where the new root is put together; any folder will do, it is covered for this process alone.
_BASE = "/tmp"
_OLD = "/old-root"


def enter(job: Job) -> None:
    """Return as process 1 of new namespaces, in the job's root folder. The old process waits for it and ends.

    Raises:
        OSError: The system does not allow it; names the call.
    """
    prctl(PR_SET_PDEATHSIG, 9)
    if job.parent and os.getppid() != job.parent:
        os._exit(1)
    _unshare()
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        os._exit(os.waitstatus_to_exitcode(status) & 0xFF)
    prctl(PR_SET_PDEATHSIG, 9)
    # A new namespace starts with the old one's name.
    set_host_name("sandbox")
    _build_root(job)


def _unshare() -> None:
    uid, gid = os.geteuid(), os.getegid()
    if uid == 0:
        _unshare_as_root()
        return
    unshare(_ALL)
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"{PROGRAM_ID} {uid} 1\n")
    _write("/proc/self/gid_map", f"{PROGRAM_ID} {gid} 1\n")


def _unshare_as_root() -> None:
    # Two users are mapped, which only a process outside of the namespace may do.
    me = os.getpid()
    ready, ready_writer = os.pipe()
    helper = os.fork()
    if helper == 0:
        code = 1
        try:
            os.close(ready_writer)
            if os.read(ready, 1):
                for kind in ("uid", "gid"):
                    _write(f"/proc/{me}/{kind}_map", f"0 0 1\n{PROGRAM_ID} {PROGRAM_ID} 1\n")
                code = 0
        finally:
            os._exit(code)
    os.close(ready)
    try:
        unshare(_ALL)
        os.write(ready_writer, b"1")
    finally:
        os.close(ready_writer)
        _, status = os.waitpid(helper, 0)
    if status:
        raise OSError(1, f"the users 0 and {PROGRAM_ID} cannot be mapped into a user namespace")
    os.setgroups([])


def _build_root(job: Job) -> None:
    mount("none", "/", None, MS_REC | MS_PRIVATE)
    plain = MS_NOSUID | MS_NODEV
    mount("tmpfs", _BASE, "tmpfs", plain, "mode=0755,size=1m,nr_inodes=4096")
    os.mkdir(_BASE + _OLD, 0o700)
    pivot_root(_BASE, _BASE + _OLD)
    os.chdir("/")
    os.umask(0o022)
    for kind, path, value in job.places:
        os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
        if kind == "folder":
            os.makedirs(path, mode=0o755, exist_ok=True)
            _bind(_OLD + value, path, MOUNT_ATTR_NODEV)
        elif kind == "file":
            _touch(path)
            _bind(_OLD + value, path, MOUNT_ATTR_NODEV)
        elif kind == "device":
            _touch(path)
            mount(_OLD + value, path, None, MS_BIND)
            restrict_mount(path, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC)
        else:
            os.symlink(value, path)
    os.mkdir("/proc", 0o755)
    # Of the processes the program sees its own, of the machine nothing.
    hidden = MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC
    mount("proc", "/proc", "proc", hidden, "hidepid=2,subset=pid")
    os.mkdir(job.scratch, 0o700)
    options = f"mode=0700,uid={PROGRAM_ID},gid={PROGRAM_ID},size={job.scratch_bytes},nr_inodes=16384"
    mount("tmpfs", job.scratch, "tmpfs", plain, options)
    umount(_OLD, MNT_DETACH)
    os.rmdir(_OLD)
    mount("none", "/", None, MS_REMOUNT | MS_BIND | MS_RDONLY | plain)


def _bind(source: str, target: str, attributes: int) -> None:
    mount(source, target, None, MS_BIND | MS_REC)
    restrict_mount(target, attributes | MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID)


def _touch(path: str) -> None:
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o644))


def _write(path: str, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)
