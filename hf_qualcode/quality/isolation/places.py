"""What a program may see of the file system: the interpreter, its libraries and the system's, read-only.

A place is `(kind, path, value)`: `"folder"` and `"file"` are bound read-only from `value` (a resolved path),
`"device"` is bound as it is, `"link"` is a symbolic link to `value`. Parents come before what lies in them.
"""

# Links are followed one by one, and paths kept as they are spelt.
# ruff: noqa: PTH110, PTH112, PTH113, PTH114, PTH115, PTH118, PTH120

import os
import sys


_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store")
# The loader's cache; Debian's choice of BLAS libraries; the time zone.
_SETTINGS = ("/etc/ld.so.cache", "/etc/alternatives", "/etc/localtime")
# Of a prefix only these: a virtual environment may be the project's own folder.
_PARTS = ("bin", "lib", "lib64", "pyvenv.cfg")
_DEVICES = ("null", "zero", "full", "random", "urandom")
_TEMPORARY = ("/tmp", "/var/tmp", "/dev/shm")


def interpreter_places(scratch: str) -> list[tuple[str, str, str]]:
    """The places that `sys.executable` needs, with its installed packages, in this very environment."""
    places: list[tuple[str, str, str]] = []
    for path in (*_SYSTEM, *_SETTINGS):
        _add(places, path)
    prefixes = dict.fromkeys((sys.base_prefix, sys.base_exec_prefix, sys.prefix, sys.exec_prefix))
    for prefix in prefixes:
        for folder in dict.fromkeys((prefix, os.path.realpath(prefix))):
            for part in _PARTS:
                _add(places, os.path.join(folder, part))
    for step in _links_of(sys.executable):
        _add(places, step)
    for name in _DEVICES:
        if os.path.exists(f"/dev/{name}"):
            places.append(("device", f"/dev/{name}", f"/dev/{name}"))
    for name, target in (("fd", ""), ("stdin", "/0"), ("stdout", "/1"), ("stderr", "/2")):
        places.append(("link", f"/dev/{name}", f"/proc/self/fd{target}"))
    for path in _TEMPORARY:
        # An interpreter below /tmp makes it a plain folder; TMPDIR names the scratch folder in any case.
        if not any(place.startswith(path + "/") for _, place, _ in places):
            places.append(("link", path, scratch))
    return places


def _add(places: list[tuple[str, str, str]], path: str) -> None:
    if not os.path.lexists(path) or _covered(places, path):
        return
    parent = os.path.dirname(path)
    if os.path.islink(path) and path in _SYSTEM:
        places.append(("link", path, os.readlink(path)))
    elif os.path.islink(path) and os.path.realpath(path).startswith(os.path.realpath(parent) + "/"):
        # lib64 -> lib
        places.append(("link", path, os.readlink(path)))
    elif os.path.isdir(path):
        places.append(("folder", path, os.path.realpath(path)))
    elif os.path.isfile(path):
        places.append(("file", path, os.path.realpath(path)))


def _covered(places: list[tuple[str, str, str]], path: str) -> bool:
    return any(path == place or (kind == "folder" and path.startswith(place + "/")) for kind, place, _ in places)


def _links_of(path: str) -> list[str]:
    """A path and the paths that it leads to, link by link."""
    steps = [path]
    while os.path.islink(steps[-1]) and len(steps) < 40:
        steps.append(os.path.normpath(os.path.join(os.path.dirname(steps[-1]), os.readlink(steps[-1]))))
    return steps
