"""From ranked units to a page a person can read: copies folded, no overlaps, changed files marked."""

import hashlib
from pathlib import Path

import numpy as np

from hf_qualcode.retrieve.index import CodeIndex
from hf_qualcode.types import Hit, Location


def build_page(
    index: CodeIndex, rows: np.ndarray, scores: np.ndarray, top_k: int, eligible: np.ndarray | None = None
) -> list[Hit]:
    """The first `top_k` hits of a ranking.

    A unit whose text a better hit has is one of that hit's copies; a unit whose lines overlap those of a better hit of
    the same file is passed over.

    Args:
        index (`CodeIndex`): Where the rows are.
        rows (int `[n]`): Units, best first.
        scores (float32 `[n]`): Their scores.
        top_k (`int`): Length of the page.
        eligible (bool `[num_units]`, *optional*): Units that may be named as copies.
    """
    table, hashes = index.table, index.text_hashes
    hits: list[Hit] = []
    seen: set[bytes] = set()
    taken: dict[tuple[str, str], list[tuple[int, int]]] = {}
    stale: dict[tuple[int, str], bool] = {}
    for row, score in zip(rows.tolist(), scores.tolist(), strict=True):
        text_hash = hashes[row].tobytes()
        if text_hash in seen:
            continue
        place = _location(index, row)
        spans = taken.setdefault((place.root, place.path), [])
        if place.path and any(place.start_line <= end and start <= place.end_line for start, end in spans):
            continue
        seen.add(text_hash)
        spans.append((place.start_line, place.end_line))
        same = hashes == hashes[row]
        if eligible is not None:
            same &= eligible
        file = (table["root"][row].as_py(), place.path)
        if file not in stale:
            stale[file] = bool(place.root) and _is_stale(index, *file)
        hits.append(
            Hit(
                rank=len(hits) + 1,
                score=score,
                path=place.path,
                root=place.root,
                start_line=place.start_line,
                end_line=place.end_line,
                name=table["name"][row].as_py(),
                language=table["language"][row].as_py(),
                code=index.codes([row])[0],
                retrieval_score=score,
                copies=[_location(index, other) for other in np.flatnonzero(same).tolist() if other != row],
                stale=stale[file],
                unit_id=table["id"][row].as_py(),
            )
        )
        if len(hits) == top_k:
            break
    return hits


def _location(index: CodeIndex, row: int) -> Location:
    table = index.table
    return Location(
        path=table["path"][row].as_py(),
        root=index.root_of(row),
        start_line=table["start_line"][row].as_py(),
        end_line=table["end_line"][row].as_py(),
    )


def _is_stale(index: CodeIndex, root: int, path: str) -> bool:
    """Whether the file is gone or its content is not what was indexed."""
    record = index.file_records[root, path]
    file = Path(index.roots[root]) / path
    try:
        stat = file.stat()
        if stat.st_size != record.size:
            return True
        if stat.st_mtime_ns == record.mtime_ns and stat.st_ino == record.inode:
            return False
        with file.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest() != record.sha256
    except OSError:
        return True
