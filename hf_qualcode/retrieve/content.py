"""From folders to what an index is made of: new units read, unchanged ones taken over, all in the index's order."""

import time
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from hf_qualcode.corpus.folder import RACY_NS, FileRecord, Root, ScanOptions, ScanReport, scan
from hf_qualcode.retrieve.candidates.bm25 import TokenTable
from hf_qualcode.retrieve.index import CodeIndex, Progress
from hf_qualcode.retrieve.storage import DamagedStoreError
from hf_qualcode.retrieve.tables import files_table, lexical_text, sort_order, take_rows, units_table
from hf_qualcode.types import Unit


# Raised when units, ids or sub-tokens of the same file would come out different: an older index is then read anew.
EXTRACTION_VERSION = 1
_GRAMMARS = ("c", "cpp", "go", "java", "javascript", "python", "rust", "typescript")


class Content(NamedTuple):
    """What an index is made of, before vectors.

    Attributes:
        roots (`list[Root]`): The folders; empty for documents.
        exclude (`tuple[str, ...]`): What is left out of them.
        report (`ScanReport`): What became of every file seen.
        scanned_at_ns (`int`): When the scan began, or that of the present index where a new one would change nothing.
        files, units, tokens (*optional*): `None` for a part of the present index that stays as it is.
    """

    roots: list[Root]
    exclude: tuple[str, ...]
    report: ScanReport
    scanned_at_ns: int
    files: pa.Table | None
    units: pa.Table | None
    tokens: TokenTable | None


def read_folders(
    out: Path,
    old: CodeIndex | None,
    roots: list[Root],
    exclude: tuple[str, ...],
    num_proc: int,
    progress: Progress | None,
) -> Content:
    """Scan the roots; what did not change since `old` is not opened."""
    comparable = (
        old is not None
        and old.manifest["roots"] == root_entries(roots)
        and old.manifest["exclude"] == list(exclude)
        and old.manifest["made_with"] == made_with()
    )
    known = old.file_records if comparable else {}
    known_at_ns = old.manifest["scanned_at_ns"] if comparable else 0
    scanned_at_ns = time.time_ns()
    own = out.resolve()
    # The index's own folder, relative to each root that holds it.
    own_paths = [
        f"{own.relative_to(root.path).as_posix()}/" if own.is_relative_to(root.path) else "" for root in roots
    ]
    report = ScanReport()
    records: list[FileRecord] = []
    unchanged: set[tuple[int, str]] = set()
    new_units = _UnitTables()
    on_files = None if progress is None else lambda files, units: progress("reading", files, None)
    for scanned in scan(roots, ScanOptions(exclude=exclude), known, known_at_ns, num_proc=num_proc, progress=on_files):
        record = scanned.record
        if own_paths[record.root] and record.path.startswith(own_paths[record.root]):
            continue  # an index inside the folder it indexes is not part of the code
        report.add(record)
        records.append(record)
        if scanned.units is None:
            unchanged.add((record.root, record.path))
        elif scanned.units:
            new_units.add(scanned.units, record.root)

    files = None if comparable and records == list(known.values()) else files_table(records)
    # Files written just before a scan are read again at the next one; this scan is the first to vouch for some of them
    # or it has nothing to add.
    if files is None and not any(known_at_ns <= r.mtime_ns + RACY_NS < scanned_at_ns for r in records):
        scanned_at_ns = known_at_ns
    lost = any(record.num_units and key not in unchanged for key, record in known.items())
    new = new_units.finish()
    if comparable and not len(new) and not lost:
        return Content(roots, exclude, report, scanned_at_ns, files, None, None)

    new_tokens = TokenTable.from_texts(
        lexical_text(path, name, code)
        for path, name, code in zip(*(new[column].to_pylist() for column in ("path", "name", "code")), strict=True)
    )
    if not comparable:
        order = sort_order(new)
        return Content(roots, exclude, report, scanned_at_ns, files, take_rows(new, order), new_tokens.take(order))
    keys = zip(old.table["root"].to_pylist(), old.table["path"].to_pylist(), strict=True)
    kept = np.flatnonzero(np.fromiter((key in unchanged for key in keys), bool, len(old)))
    units = pa.concat_tables([take_rows(old.full_table(), kept), new])
    order = sort_order(units)
    if old.tokens.num_documents != len(old):
        raise DamagedStoreError(f"{out} is damaged (tokens of another index): make the index again")
    tokens = old.tokens.take(kept).concat(new_tokens).take(order)
    return Content(roots, exclude, report, scanned_at_ns, files, take_rows(units, order), tokens)


class _UnitTables:
    """Collects units as Arrow rows, some thousand at a time: far smaller than as objects."""

    BLOCK = 8192

    def __init__(self):
        self._tables = [units_table([], 0)]
        self._units: list[Unit] = []
        self._root = 0

    def add(self, units: list[Unit], root: int) -> None:
        if root != self._root or len(self._units) >= self.BLOCK:
            self._flush()
        self._root = root
        self._units += units

    def finish(self) -> pa.Table:
        self._flush()
        return pa.concat_tables(self._tables)

    def _flush(self) -> None:
        if self._units:
            self._tables.append(units_table(self._units, self._root))
            self._units = []


def made_with() -> dict:
    """What decides the units of a given file."""
    return {"extraction": EXTRACTION_VERSION, **{g: version(f"tree-sitter-{g}") for g in _GRAMMARS}}


def root_entries(roots: Sequence[Root]) -> list[dict]:
    return [{"path": str(root.path), "only": root.only} for root in roots]
