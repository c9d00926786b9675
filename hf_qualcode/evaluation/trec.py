"""TREC files: a run (`query Q0 document rank score tag`) and relevance judgements (`query 0 document grade`).

The format separates columns by white space, so an id must not hold any: writing one is refused, never mended.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from hf_qualcode.evaluation.protocols import ScoredDocument
from hf_qualcode.types import QualcodeError


def read_run(path: str | Path) -> dict[str, list[ScoredDocument]]:
    """Reads a run. A query's documents are ordered by score, descending; the rank column is not used (TREC's rule).

    Args:
        path (`str` or `Path`): The file.

    Returns:
        `dict[str, list[ScoredDocument]]`: Query id -> its documents, in the order of the file among equal scores.

    Raises:
        `QualcodeError`: On an unreadable file, a malformed line (named), or a document twice for one query.
    """
    run: dict[str, list[ScoredDocument]] = {}
    seen = set()
    for where, fields in _lines(path, 6, "query Q0 document rank score tag"):
        query_id, _, doc_id, _, score, _ = fields
        if (query_id, doc_id) in seen:
            raise QualcodeError(f"{where}: document {doc_id} appears twice for query {query_id}.")
        seen.add((query_id, doc_id))
        run.setdefault(query_id, []).append(ScoredDocument(doc_id, _number(where, "score", score)))
    for documents in run.values():
        documents.sort(key=lambda document: -document.score)
    return run


def write_run(path: str | Path, run: Mapping[str, Sequence[ScoredDocument]], tag: str = "hf-qualcode") -> None:
    """Writes a run. Scores keep every digit, so a run that is read back evaluates to the same numbers.

    Args:
        path (`str` or `Path`): The file; replaced where it exists.
        run (`Mapping[str, Sequence[ScoredDocument]]`): Query id -> its documents, best first.
        tag (`str`, *optional*, defaults to `"hf-qualcode"`): The system's name; white space becomes `-`.

    Raises:
        `QualcodeError`: On an id that is empty or holds white space.
    """
    tag = "-".join(tag.split()) or "run"
    lines = []
    for query_id, documents in run.items():
        for rank, document in enumerate(documents, start=1):
            ids = f"{_one_column(query_id)} Q0 {_one_column(document.doc_id)}"
            lines.append(f"{ids} {rank} {float(document.score)!r} {tag}\n")
    Path(path).write_text("".join(lines), encoding="utf-8")


def read_qrels(path: str | Path) -> dict[str, dict[str, int]]:
    """Reads relevance judgements.

    Args:
        path (`str` or `Path`): The file.

    Returns:
        `dict[str, dict[str, int]]`: Query id -> document id -> grade.

    Raises:
        `QualcodeError`: On an unreadable file, a malformed line (named), or two grades for one pair.
    """
    qrels: dict[str, dict[str, int]] = {}
    for where, (query_id, _, doc_id, grade) in _lines(path, 4, "query 0 document grade"):
        value = _number(where, "grade", grade)
        if value != int(value):
            raise QualcodeError(f"{where}: grade {grade} is not a whole number.")
        if qrels.setdefault(query_id, {}).setdefault(doc_id, int(value)) != value:
            raise QualcodeError(f"{where}: document {doc_id} has two grades for query {query_id}.")
    return qrels


def write_qrels(path: str | Path, qrels: Mapping[str, Mapping[str, int]]) -> None:
    """Writes relevance judgements.

    Args:
        path (`str` or `Path`): The file; replaced where it exists.
        qrels (`Mapping[str, Mapping[str, int]]`): Query id -> document id -> grade.

    Raises:
        `QualcodeError`: On an id that is empty or holds white space.
    """
    lines = [
        f"{_one_column(query_id)} 0 {_one_column(doc_id)} {int(grade)}\n"
        for query_id, grades in qrels.items()
        for doc_id, grade in grades.items()
    ]
    Path(path).write_text("".join(lines), encoding="utf-8")


def _lines(path: str | Path, num_columns: int, columns: str):
    try:
        # A BOM is no part of the first id.
        text = Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise QualcodeError(f"{path}: cannot be read as UTF-8 text ({error}).") from error
    for number, line in enumerate(text.split("\n"), start=1):
        fields = line.split()
        if not fields:
            continue
        where = f"{path}, line {number}"
        if len(fields) != num_columns:
            raise QualcodeError(f"{where}: {len(fields)} columns; expected {num_columns}: {columns}.")
        yield where, fields


def _number(where: str, name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise QualcodeError(f"{where}: {name} {text!r} is not a finite number.")
    return value


def _one_column(identifier: str) -> str:
    if len(identifier.split()) != 1 or identifier != identifier.strip():
        raise QualcodeError(f"Id {identifier!r} is empty or holds white space, which a TREC file cannot carry.")
    return identifier
