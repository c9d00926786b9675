"""From ranked units to a page a person can read: copies folded, no overlaps, changed files marked."""

import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np

from hf_qualcode.corpus.walking import real_path
from hf_qualcode.retrieve.index import CodeIndex
from hf_qualcode.retrieve.ranking import RankedUnits
from hf_qualcode.types import Hit, Location


def build_page(index: CodeIndex, ranking: RankedUnits, top_k: int, eligible: np.ndarray | None = None) -> list[Hit]:
    """The first `top_k` hits of a ranking.

    A unit whose text a better hit has is one of that hit's copies; a unit whose lines overlap those of a better hit of
    the same file is passed over.

    Args:
        index (`CodeIndex`): Where the rows are.
        ranking (`RankedUnits`): Units, best first.
        top_k (`int`): Length of the page.
        eligible (bool `[num_units]`, *optional*): Units that may be named as copies.
    """
    hits: list[Hit] = []
    chosen: list[int] = []
    seen: set[bytes] = set()
    taken: dict[tuple[int, str], list[tuple[int, int]]] = {}
    stale: dict[tuple[int, str], bool] = {}
    for place, row in enumerate(ranking.rows.tolist()):
        unit = index.summary(row)
        file = (unit["root"], unit["path"])
        start, end = unit["start_line"], unit["end_line"]
        spans = taken.setdefault(file, [])
        is_copy = unit["text_hash"] in seen
        if is_copy or (unit["path"] and any(start <= last and first <= end for first, last in spans)):
            continue
        seen.add(unit["text_hash"])
        spans.append((start, end))
        chosen.append(row)
        root = index.root_of(row)
        if file not in stale:
            stale[file] = bool(root) and _is_stale(index, *file)
        copies = index.copies_of(row)
        if eligible is not None:
            copies = copies[eligible[copies]]
        hits.append(
            Hit(
                rank=len(hits) + 1,
                score=float(ranking.scores[place]),
                path=unit["path"],
                root=root,
                start_line=start,
                end_line=end,
                name=unit["name"],
                language=unit["language"],
                code="",
                retrieval_score=_score_at(ranking.retrieval_scores, place, float(ranking.scores[place])),
                quality_score=_score_at(ranking.quality_scores, place, None),
                copies=[_location(index, copy) for copy in copies.tolist()],
                stale=stale[file],
                unit_id=unit["id"],
            )
        )
        if len(hits) == top_k:
            break
    return [replace(hit, code=code) for hit, code in zip(hits, index.codes(chosen), strict=True)]


def _score_at(scores: np.ndarray | None, place: int, default: float | None) -> float | None:
    return default if scores is None or np.isnan(scores[place]) else float(scores[place])


def _location(index: CodeIndex, row: int) -> Location:
    unit = index.summary(row)
    return Location(unit["path"], index.root_of(row), unit["start_line"], unit["end_line"])


def _is_stale(index: CodeIndex, root: int, path: str) -> bool:
    """Whether the file is gone or its content is not what was indexed."""
    record = index.file_records.get((root, path))
    if record is None:
        return True
    file = Path(real_path(f"{index.roots[root]}/{path}"))
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
