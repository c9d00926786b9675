"""A Project_CodeNet folder: its problem list, its tables of submissions, its programs and its statements.

    metadata/problem_list.csv           id, name, ...
    metadata/pNNNNN.csv                 submission_id, problem_id, language, status, cpu_time, memory, ...
    data/pNNNNN/Python/sNNN.py
    problem_descriptions/pNNNNN.html

All of it is strangers' text. A line of a table is a row whatever its quotes say, so that one stray quote cannot
swallow the rows below it and the order of lines does not matter. Ids name files only where they are plain words, and
no link inside the three folders is followed out of them (the folders themselves may be links: those are the user's).
"""

import csv
import errno
import functools
import hashlib
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hf_qualcode.benchmark.sources import UndecodableError, decode_source
from hf_qualcode.types import QualcodeError


PROBLEM_LIST = "problem_list"
LANGUAGE = "Python"
SUFFIX = ".py"
# What the compiler check takes. AtCoder takes twice as much, but real programs are a hundredth of it.
MAX_SOURCE_BYTES = 1 << 18
MAX_STATEMENT_BYTES = 8 << 20
# Rows of the real metadata are about 120 bytes. A file without line ends must not be read into memory whole.
MAX_LINE_BYTES = 1 << 16

_SAFE_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}", re.ASCII)


class SourceError(Exception):
    """A file that cannot be had.

    Attributes:
        outcome (`str`): `"missing_file"`, `"unreadable_file"`, `"unsafe_path"`, `"too_large"` or `"not_utf8"`.
    """

    def __init__(self, outcome: str, detail: str = ""):
        super().__init__(f"{outcome}: {detail}")
        self.outcome = outcome


def is_safe_id(text: str) -> bool:
    """Says whether an id is a plain word, so that it can stand in a path."""
    return _SAFE_ID.fullmatch(text) is not None


class Table:
    """A CSV file read line by line, in memory that does not depend on its length.

    Args:
        path (`Path`): The file.
        required (`tuple[str, ...]`): Columns without which no row can be understood.

    Attributes:
        has_columns (`bool`): The head has all required columns, and no column twice.

    Raises:
        [`SourceError`]: The file cannot be opened.
    """

    def __init__(self, path: Path, required: tuple[str, ...]):
        self.path = path
        head = next(self._lines(), None)
        self._columns = (parse_line(head.removeprefix("\ufeff")) if head is not None else None) or []
        self._columns = [name.strip() for name in self._columns]
        self.has_columns = set(required) <= set(self._columns) and len(set(self._columns)) == len(self._columns)

    def rows(self) -> Iterator[list[str] | None]:
        """Yields the fields of every line below the head, `None` for a line that is no row. Blank lines are not there.

        Raises:
            [`SourceError`]: Reading failed midway.
        """
        lines = self._lines()
        next(lines, None)
        for line in lines:
            fields = parse_line(line) if line is not None and self.has_columns else None
            yield fields if fields is not None and len(fields) == len(self._columns) else None

    def position(self, column: str) -> int | None:
        """Returns where in a row a column stands; `None` where there is no such column."""
        return self._columns.index(column) if column in self._columns else None

    def _lines(self) -> Iterator[str | None]:
        try:
            with os.fdopen(_open_regular(self.path), "rb") as file:
                while line := file.readline(MAX_LINE_BYTES):
                    if not line.endswith(b"\n") and len(line) == MAX_LINE_BYTES:
                        while (rest := file.readline(MAX_LINE_BYTES)) and not rest.endswith(b"\n"):
                            pass
                        yield None
                    elif text := line.rstrip(b"\r\n").decode("utf-8", "replace"):
                        yield text
        except OSError as error:
            raise SourceError("unreadable_file", error.strerror or str(error)) from error


def parse_line(line: str) -> list[str] | None:
    """Returns the fields of one CSV line, `None` where its quotes do not pair up."""
    if '"' not in line:
        return line.split(",")
    try:
        return next(csv.reader([line], strict=True))
    except csv.Error:
        return None


@dataclass(frozen=True)
class CodeNet:
    """A Project_CodeNet folder. Make it by [`CodeNet.open`]."""

    root: Path

    @classmethod
    def open(cls, root: Path) -> "CodeNet":
        """Checks that a folder is one of CodeNet.

        Raises:
            [`QualcodeError`]: It is not.
        """
        root = Path(root)
        missing = [name for name in ("metadata", "data", "problem_descriptions") if not (root / name).is_dir()]
        if missing:
            raise QualcodeError(
                f"{root} is no Project_CodeNet folder: it lacks {', '.join(f'{name}/' for name in missing)}; "
                "name the folder that holds metadata/, data/ and problem_descriptions/"
            )
        codenet = cls(root.absolute())
        try:
            if not codenet.metadata_ids():
                raise QualcodeError(
                    f"{root}/metadata holds no table of submissions; a Project_CodeNet folder has one a problem, "
                    "such as metadata/p00001.csv"
                )
        except OSError as error:
            raise QualcodeError(f"{root}/metadata cannot be read: {error.strerror}") from error
        return codenet

    def metadata_ids(self) -> list[str]:
        """Returns the names of the submission tables, without `.csv`, sorted. They need not be safe ids."""
        with os.scandir(self.root / "metadata") as entries:
            names = [entry.name for entry in entries if entry.name.endswith(".csv") and not entry.name.startswith(".")]
        return sorted(stem for name in names if (stem := name.removesuffix(".csv")) != PROBLEM_LIST)

    def listed_ids(self) -> Iterator[str | None]:
        """Yields the id of every line of the problem list, `None` for a line that is no row.

        A folder without a list is read by its tables alone.
        """
        path = self.root / "metadata" / f"{PROBLEM_LIST}.csv"
        if not os.path.lexists(path):
            return
        try:
            table = Table(self._inside("metadata", path), ("id",))
            for fields in table.rows():
                yield fields[table.position("id")] if fields is not None else None
        except SourceError as error:
            raise QualcodeError(f"{path} cannot be read ({error})") from error

    def submissions(self, problem_id: str) -> Table:
        """Opens the table of a problem's submissions.

        Raises:
            [`SourceError`]: There is none, it cannot be read, or it is a link that leads out.
        """
        path = self.root / "metadata" / f"{problem_id}.csv"
        return Table(self._inside("metadata", path), ("submission_id", "language", "status"))

    def table_bytes(self, problem_id: str) -> int:
        """Returns the size of a problem's table of submissions, which says how much work it is; 0 if unknown."""
        try:
            return (self.root / "metadata" / f"{problem_id}.csv").stat().st_size
        except OSError:
            return 0

    def description(self, problem_id: str) -> bytes:
        """Returns a problem's page.

        Raises:
            [`SourceError`]: There is none, it cannot be read, or it is a link that leads out.
        """
        path = self.root / "problem_descriptions" / f"{problem_id}.html"
        return _read(self._inside("problem_descriptions", path), MAX_STATEMENT_BYTES)

    def source(self, problem_id: str, submission_id: str) -> str:
        """Returns a Python submission's text: decoded, without byte order mark, line ends written `\\n`.

        Raises:
            [`SourceError`]: There is none, or it cannot be read as text.
        """
        if not is_safe_id(problem_id) or not is_safe_id(submission_id):
            raise SourceError("unsafe_path", "the id is no plain word")
        path = self._inside("data", self.root / "data" / problem_id / LANGUAGE / f"{submission_id}{SUFFIX}")
        try:
            return decode_source(_read(path, MAX_SOURCE_BYTES))
        except UndecodableError as error:
            raise SourceError("not_utf8", str(error)) from error

    def state(self, problem_id: str) -> str:
        """Returns a digest of the sizes and times of change of all that is known about a problem: its table, its page
        and its Python programs. It changes when one of them does."""
        digest = hashlib.sha256()
        for path in (f"metadata/{problem_id}.csv", f"problem_descriptions/{problem_id}.html"):
            digest.update(f"{_stamp(self.root / path)}\n".encode())
        stamps = []
        try:
            with os.scandir(self.root / "data" / problem_id / LANGUAGE) as entries:
                for entry in entries:
                    if entry.name.endswith(SUFFIX):
                        # What a link points to counts, not the link.
                        stamps.append(f"{entry.name!a} {_stamp(entry.path)}")
        except OSError as error:
            stamps.append(str(error.errno))
        digest.update("\n".join(sorted(stamps)).encode())
        return digest.hexdigest()

    def _inside(self, folder: str, path: Path) -> str:
        """Returns the path with links resolved, if it is inside that folder of CodeNet."""
        root, parent = str(self.root / folder), _real_folder(str(path.parent))
        real = f"{parent}{os.sep}{path.name}"
        if os.path.islink(real):  # noqa: PTH114  (False, not an error, where the folder may not be searched)
            real = os.path.realpath(real)
        if not real.startswith(_real_folder(root) + os.sep):
            raise SourceError("unsafe_path", f"leads out of {folder}/")
        return real


@functools.lru_cache(maxsize=64)
def _real_folder(path: str) -> str:
    # Resolving takes a system call for each part of a path, and thousands of programs share a folder.
    return os.path.realpath(path)


def _stamp(path: str | Path) -> tuple[int, int] | int:
    try:
        status = os.stat(path)  # noqa: PTH116  (many of them, by plain name)
    except OSError as error:
        return error.errno
    return status.st_size, status.st_mtime_ns


def _open_regular(path: str | Path) -> int:
    """Opens a file that is neither link, pipe, device nor folder; its links were resolved before."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file")
    return descriptor


def _read(path: str, max_bytes: int) -> bytes:
    try:
        with os.fdopen(_open_regular(path), "rb") as file:
            data = file.read(max_bytes + 1)
    except FileNotFoundError as error:
        raise SourceError("missing_file") from error
    except OSError as error:
        raise SourceError("unreadable_file", error.strerror or str(error)) from error
    if len(data) > max_bytes:
        raise SourceError("too_large", f"over {max_bytes} bytes")
    return data
