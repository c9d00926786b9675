"""Every file under a root, in the order of their paths, each with what can be said without opening it."""

import os
import re
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from hf_qualcode.corpus.ignoring import (
    ENVIRONMENT_MARK,
    PRUNED_FOLDERS,
    Rules,
    is_ignored,
    rules_above,
    rules_of_folder,
    rules_of_lines,
)
from hf_qualcode.languages._lookup import suffix_table
from hf_qualcode.types import UsageError


NOTEBOOK_SUFFIX = ".ipynb"


class Root(NamedTuple):
    """Where a scan starts.

    Attributes:
        path (`Path`): A folder, absolute and without links.
        only (`str`, *optional*): Name of the one file in it that was asked for.
    """

    path: Path
    only: str | None = None


class Seen(NamedTuple):
    """A file or unentered folder. `skip` is the reason not to open it, `""` where it should be."""

    path: str
    real_path: str
    skip: str = ""
    detail: str = ""
    size: int = 0
    mtime_ns: int = 0
    inode: int = 0


def find_roots(paths: Iterable[str | Path]) -> list[Root]:
    """Turns the paths a user gave into roots.

    A path inside another one given is dropped, as is the second of two equal ones, so that every file is seen once.

    Args:
        paths (`Iterable[str | Path]`): Folders and files.

    Returns:
        `list[Root]`: In the order given.

    Raises:
        `UsageError`: A path does not exist, or is neither a folder nor a file; or none was given.
    """
    roots: list[Root] = []
    for path in paths:
        if not str(path):
            raise UsageError("a path is empty (an unset variable?); give an existing file or folder")
        try:
            resolved = Path(path).expanduser().resolve(strict=True)
            mode = resolved.stat().st_mode
        except (OSError, RuntimeError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            raise UsageError(f"cannot read {str(path)!r}: {reason}; give an existing file or folder") from error
        if stat.S_ISDIR(mode):
            root = Root(resolved)
        elif stat.S_ISREG(mode):
            root = Root(resolved.parent, resolved.name)
        else:
            raise UsageError(f"{str(path)!r} is neither a file nor a folder; give one of these")
        if root not in roots:
            roots.append(root)
    if not roots:
        raise UsageError("no path to scan; give at least one file or folder")
    return [root for root in roots if not any(_holds(outer, root) for outer in roots if outer != root)]


def _holds(outer: Root, root: Root) -> bool:
    return outer.only is None and (outer.path == root.path or outer.path in root.path.parents)


def shown_path(path: str) -> str:
    """Returns a path as text that can be written: bytes that are not UTF-8 become `\\xff`."""
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:
        return os.fsencode(path).decode("utf-8", "backslashreplace")
    return path


def real_path(shown: str) -> str:
    """Returns the name by which a path that `shown_path` made is opened: the inverse, as far as there is one."""
    if os.path.exists(shown) or "\\x" not in shown:  # noqa: PTH110 (a plain string, as it may hold any bytes)
        return shown
    raw = re.sub(rb"\\x([0-9a-f]{2})", lambda match: bytes.fromhex(match[1].decode()), shown.encode())
    return os.fsdecode(raw)


def walk(root: Root, exclude: tuple[str, ...] = ()) -> Iterator[Seen]:
    """Walks a root without following links. Yields files, and the folders that it does not enter, sorted by path.

    Args:
        root ([`Root`]): Where to start.
        exclude (`tuple[str, ...]`, *optional*): Ignore rules that overrule those in the folders.
    """
    if root.only is not None:
        yield _see_file(str(root.path / root.only), root.only)
        return
    yield from _Walk(root, exclude).run()


def _see_file(real_path: str, path: str) -> Seen:
    try:
        status = os.lstat(real_path)
    except OSError as error:
        return Seen(shown_path(path), real_path, *_system_reason(error))
    return Seen(shown_path(path), real_path, "", "", status.st_size, status.st_mtime_ns, status.st_ino)


def _system_reason(error: OSError) -> tuple[str, str]:
    if isinstance(error, FileNotFoundError):
        return "vanished", ""
    return "unreadable", error.strerror or type(error).__name__


class _Walk:
    def __init__(self, root: Root, exclude: tuple[str, ...]):
        self.root = root
        self.excluded = rules_of_lines(exclude)
        self.suffixes = {*suffix_table(), NOTEBOOK_SUFFIX}

    def run(self) -> Iterator[Seen]:
        """Depth first, without recursion: folders may be nested deeper than Python's stack."""
        stack = [self._folder(str(self.root.path), "", rules_above(self.root.path))]
        while stack:
            item = next(stack[-1], None)
            if item is None:
                stack.pop()
            elif isinstance(item, Seen):
                yield item
            else:
                stack.append(self._folder(*item))

    def _folder(self, real_path: str, path: str, outer: Rules) -> Iterator[Seen | tuple[str, str, Rules]]:
        """Yields what is in one folder; its folders as the arguments of this function."""
        try:
            with os.scandir(real_path) as scan:
                entries = list(scan)
        except OSError as error:
            yield Seen(shown_path(path) or "./", real_path, *_system_reason(error))
            return
        names = {entry.name for entry in entries}
        if path and ENVIRONMENT_MARK in names:
            yield Seen(shown_path(path), real_path, "ignored", "a Python environment")
            return
        rules = rules_of_folder(real_path, names, outer, path)
        named = []
        for entry in entries:
            try:
                is_folder = entry.is_dir(follow_symlinks=False)
            except OSError:
                is_folder = False
            named.append((entry.name + "/" if is_folder else entry.name, entry, is_folder))
        # With `/` after folders this is the order of the whole paths.
        named.sort(key=lambda item: item[0])
        for name, entry, is_folder in named:
            if not is_folder:
                yield self._file(entry, path + name, rules)
            elif entry.name in PRUNED_FOLDERS:
                yield Seen(shown_path(path + name), entry.path, "ignored", "never searched")
            elif is_ignored(self.excluded, path + name) or is_ignored(rules, path + name):
                yield Seen(shown_path(path + name), entry.path, "ignored", "by rule")
            else:
                yield (entry.path, path + name, rules)

    def _file(self, entry: os.DirEntry, path: str, rules: Rules) -> Seen:
        # The cheap questions first: most files of a repository end here.
        name = entry.name
        dot = name.rfind(".", 1)
        shown = path if path.isascii() else shown_path(path)
        try:
            if entry.is_symlink():
                return Seen(shown, entry.path, "symlink")
            if not entry.is_file(follow_symlinks=False):
                return Seen(shown, entry.path, "special")
            if dot > 0 and name[dot:].lower() not in self.suffixes:
                return Seen(shown, entry.path, "unsupported", name[dot:])
            if is_ignored(self.excluded, path) or is_ignored(rules, path):
                return Seen(shown, entry.path, "ignored", "by rule")
            status = entry.stat(follow_symlinks=False)
        except OSError as error:
            return Seen(shown, entry.path, *_system_reason(error))
        # Without a suffix only a script can tell its language, and scripts can be run.
        if dot <= 0 and not status.st_mode & 0o111:
            return Seen(shown, entry.path, "unsupported", "no suffix")
        return Seen(shown, entry.path, "", "", status.st_size, status.st_mtime_ns, status.st_ino)
