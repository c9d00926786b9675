"""Folders to units: walks the roots, reads what changed, and says of every file what became of it."""

from collections.abc import Callable, Iterable, Iterator, Mapping

from hf_qualcode.corpus.extraction import ScannedFile, ScanOptions, Task, read_file
from hf_qualcode.corpus.outcomes import OUTCOMES_OF_CONTENT, FileRecord, ScanReport
from hf_qualcode.corpus.pool import read_files_in_processes
from hf_qualcode.corpus.walking import Root, Seen, find_roots, walk
from hf_qualcode.types import UsageError


__all__ = ["FileRecord", "Root", "ScanOptions", "ScanReport", "ScannedFile", "find_roots", "scan"]

# A file written again within the same tick of its time stamp looks unchanged (git calls this racy), so a time stamp
# is believed only when it is older than the last scan by more than the coarsest clock of a file system.
RACY_NS = 2_000_000_000


def scan(
    roots: Iterable[Root],
    options: ScanOptions = ScanOptions(),  # noqa: B008  (immutable)
    known: Mapping[tuple[int, str], FileRecord] | None = None,
    known_at_ns: int = 0,
    num_proc: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> Iterator[ScannedFile]:
    """Reads every file under the roots, one after the other.

    Args:
        roots (`Iterable[Root]`): From `find_roots`.
        options ([`ScanOptions`], *optional*): Limits.
        known (`Mapping[tuple[int, str], FileRecord]`, *optional*): Records of the last scan by root and path. Files
            that have not changed since come back with `units=None`.
        known_at_ns (`int`, *optional*, defaults to 0): When the last scan *began*, as `time.time_ns()`.
        num_proc (`int`, *optional*, defaults to 1): Processes that read. Few files are read in this one.
        progress (`Callable[[int, int], None]`, *optional*): Called after each file with the numbers of files and of
            units so far.

    Yields:
        [`ScannedFile`]: Every file seen, by root and path. Memory does not grow with their number.

    Raises:
        `UsageError`: `num_proc` is less than 1.
    """
    if num_proc < 1:
        raise UsageError(f"num_proc={num_proc} is not a number of processes; give 1 or more")
    known = known or {}
    num_units = 0
    items = _look(list(roots), options, known, known_at_ns)
    for num_files, (item, old) in enumerate(_read(items, options, num_proc), 1):
        if item.units is None and old is not None:
            record = item.record
            item = ScannedFile(old._replace(size=record.size, mtime_ns=record.mtime_ns, inode=record.inode), None)
        num_units += item.record.num_units
        if progress is not None:
            progress(num_files, num_units)
        yield item


# What the walk makes of a file: done, or a task; with its old record.
Looked = tuple[ScannedFile | Task, FileRecord | None]


def _look(
    roots: list[Root], options: ScanOptions, known: Mapping[tuple[int, str], FileRecord], known_at_ns: int
) -> Iterator[Looked]:
    for position, root in enumerate(roots):
        for seen in walk(root, options.exclude):
            old = known.get((position, seen.path))
            if seen.skip or seen.size > options.max_bytes_of(seen.path):
                yield ScannedFile(_skipped(position, seen), []), None
                continue
            if old is not None and old.outcome not in OUTCOMES_OF_CONTENT:
                old = None
            if old is not None and _is_unchanged(seen, old, known_at_ns):
                yield ScannedFile(old, None), None
            else:
                yield Task(position, seen.path, seen.real_path, old.sha256 if old is not None else ""), old


def _skipped(position: int, seen: Seen) -> FileRecord:
    outcome, detail = (seen.skip, seen.detail) if seen.skip else ("too-large", f"{seen.size} bytes")
    return FileRecord(position, seen.path, seen.size, seen.mtime_ns, seen.inode, outcome=outcome, detail=detail)


def _is_unchanged(seen: Seen, old: FileRecord, known_at_ns: int) -> bool:
    return (
        seen.size == old.size
        and seen.mtime_ns == old.mtime_ns
        and seen.inode == old.inode
        and seen.mtime_ns < known_at_ns - RACY_NS
    )


def _read(
    items: Iterator[Looked], options: ScanOptions, num_proc: int
) -> Iterator[tuple[ScannedFile, FileRecord | None]]:
    if num_proc > 1:
        yield from read_files_in_processes(items, options, num_proc)
        return
    for item, old in items:
        yield (read_file(item, options) if isinstance(item, Task) else item), old
