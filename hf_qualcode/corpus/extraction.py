"""One file: open, read, decode, extract. Whatever a file holds, it ends as a record with an outcome."""

import hashlib
import os
import stat
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import NamedTuple

from hf_qualcode.corpus.generated import generated_by_content, generated_by_name
from hf_qualcode.corpus.guarded import ParserCrashError, extract_guarded, is_repetitive
from hf_qualcode.corpus.notebooks import NotebookError, UnknownKernelError, extract_notebook_units, read_notebook
from hf_qualcode.corpus.outcomes import INDEXED, FileRecord
from hf_qualcode.corpus.reading import BinaryFileError, decode
from hf_qualcode.corpus.units import extract_units
from hf_qualcode.corpus.walking import NOTEBOOK_SUFFIX
from hf_qualcode.languages import ParseLimitError, language_of
from hf_qualcode.languages._lookup import header_language
from hf_qualcode.languages._parsing import TIME_LIMIT_SECONDS
from hf_qualcode.types import Unit


NOTEBOOK_MAX_BYTES = 20_000_000


@dataclass(frozen=True)
class ScanOptions:
    """What a scan takes in.

    Attributes:
        max_file_bytes (`int`, *optional*, defaults to 1,000,000): Larger files are left out, and notebooks with more
            than this in their code cells.
        include_generated (`bool`, *optional*, defaults to `False`): Take in files that programs wrote.
        exclude (`tuple[str, ...]`, *optional*): Rules in the syntax of `.gitignore`, relative to each root; they
            overrule those in the folders.
        parse_seconds (`float`, *optional*, defaults to 2.0): Seconds that the parser may take for a file.
    """

    max_file_bytes: int = 1_000_000
    include_generated: bool = False
    exclude: tuple[str, ...] = ()
    parse_seconds: float = TIME_LIMIT_SECONDS

    def max_bytes_of(self, path: str) -> int:
        """Returns how large the file at `path` may be; most of a notebook is output, which is not taken in."""
        is_notebook = path.lower().endswith(NOTEBOOK_SUFFIX)
        return max(self.max_file_bytes, NOTEBOOK_MAX_BYTES) if is_notebook else self.max_file_bytes


class Task(NamedTuple):
    """A file to read: where it is, what it is called, and the hash it had when last seen (`""` for a new one)."""

    root: int
    path: str
    real_path: str
    known_sha256: str


class ScannedFile(NamedTuple):
    """A file that a scan saw. `units` is `None` for one that has not changed: keep what you have of it."""

    record: FileRecord
    units: list[Unit] | None


class _SkipFile(Exception):
    """Ends the reading of a file with a reason."""

    def __init__(self, reason: str, detail: str = "", language: str = ""):
        super().__init__(reason)
        self.reason = reason
        self.detail = detail
        self.language = language


def id_prefix_of(root: int) -> str:
    """Returns what unit ids of a root start with: nothing for the first root, `@2/` for the second."""
    return f"@{root + 1}/" if root else ""


def read_file(task: Task, options: ScanOptions) -> ScannedFile:
    """Reads one file and extracts its units.

    Args:
        task ([`Task`]): The file.
        options ([`ScanOptions`]): Limits.

    Returns:
        [`ScannedFile`]: With `units=None` and no outcome of its own where the bytes are those already known.
    """
    record = FileRecord(task.root, task.path)
    try:
        data, status = _read_bytes(task.real_path, options.max_bytes_of(task.path))
        record = record._replace(size=status.st_size, mtime_ns=status.st_mtime_ns, inode=status.st_ino)
        record = record._replace(sha256=hashlib.sha256(data).hexdigest())
        if record.sha256 == task.known_sha256:
            return ScannedFile(record, None)
        units, language, detail = _extract(task, data, options)
    except _SkipFile as skip:
        return ScannedFile(record._replace(outcome=skip.reason, detail=skip.detail, language=skip.language), [])
    # The one border behind which nothing a file holds may end a scan of thousands of others: an error in this
    # package or in a library below becomes the file's outcome, with its text, and the scan goes on.
    except Exception as error:
        detail = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        return ScannedFile(record._replace(outcome="failed", detail=detail), [])
    return ScannedFile(record._replace(outcome=INDEXED, language=language, detail=detail, num_units=len(units)), units)


def _read_bytes(real_path: str, max_bytes: int) -> tuple[bytes, os.stat_result]:
    try:
        # The file may have been swapped for a link or a pipe since it was seen; neither is followed or waited for.
        descriptor = os.open(real_path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError as error:
        raise _SkipFile("vanished") from error
    except OSError as error:
        raise _SkipFile("unreadable", error.strerror or type(error).__name__) from error
    with open(descriptor, "rb") as file:  # noqa: PTH123  (a descriptor)
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise _SkipFile("special")
        try:
            data = file.read(max_bytes + 1)  # the file may have grown, and still grow
        except OSError as error:
            raise _SkipFile("unreadable", error.strerror or type(error).__name__) from error
    if len(data) > max_bytes:
        raise _SkipFile("too-large", f"{max(len(data), status.st_size)} bytes")
    return data, status


def _extract(task: Task, data: bytes, options: ScanOptions) -> tuple[list[Unit], str, str]:
    """Returns the units, the language's name and the detail for the record."""
    name = PurePosixPath(task.path).name
    suffix = PurePosixPath(name).suffix.lower()
    is_notebook = suffix == NOTEBOOK_SUFFIX
    language = None
    if not is_notebook:
        first_line = "" if suffix else data[:256].split(b"\n", 1)[0].decode("utf-8", "replace")
        language = language_of(name, first_line)
        if language is None:
            raise _SkipFile("unsupported", suffix or "no suffix")
    language_name = language.name if language else ""
    if not data.strip():
        raise _SkipFile("empty", language=language_name)
    try:
        text, encoding = decode(data, is_python=language_name == "python")
    except BinaryFileError as error:
        raise _SkipFile("binary", str(error), language_name) from error
    if not text.strip():
        raise _SkipFile("empty", language=language_name)
    if suffix == ".h":
        language = header_language(text)
        language_name = language.name
    why = "" if options.include_generated or is_notebook else generated_by_name(name) or generated_by_content(text)
    if why:
        raise _SkipFile("generated", why, language_name)
    limits = {"id_prefix": id_prefix_of(task.root), "time_limit": options.parse_seconds}
    try:
        if is_notebook:
            notebook = read_notebook(text)
            language_name = notebook.language
            num_bytes = len(notebook.source.encode())
            if num_bytes > options.max_file_bytes:
                raise _SkipFile("too-large", f"{num_bytes} bytes of code", language_name)
            if is_repetitive(notebook.source):
                units, has_errors = extract_guarded(text, task.path, "", **limits)
            else:
                units, has_errors = extract_notebook_units(notebook, task.path, **limits)
        elif is_repetitive(text):
            units, has_errors = extract_guarded(text, task.path, language_name, **limits)
        else:
            units, has_errors = extract_units(text, task.path, language, **limits)
    except NotebookError as error:
        raise _SkipFile("malformed", str(error)) from error
    except UnknownKernelError as error:
        raise _SkipFile("unsupported", str(error)) from error
    except ParseLimitError as error:
        raise _SkipFile("too-slow", str(error), language_name) from error
    except ParserCrashError as error:
        raise _SkipFile("crashed", str(error), language_name) from error
    if not units:
        raise _SkipFile("no-code", language=language_name)
    notes = [encoding] if encoding != "utf-8" else []
    if has_errors:
        notes.append("syntax errors")
    return units, language_name, ", ".join(notes)
