"""Result files: one JSON object a line, written by `--save-scores` or by a system outside."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from hf_qualcode.evaluation.protocols import LOG_ODDS
from hf_qualcode.evaluation.scoring import PairScores
from hf_qualcode.types import PreferencePair, QualcodeError


_PAIR_FORM = '{"id": ..., "positive_score": ..., "negative_score": ...}'


def write_rows(path: Path, rows: Sequence[Mapping]) -> None:
    """Writes rows, one JSON object a line."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def read_pair_rows(path: Path) -> list[dict]:
    """Reads rows with `id`, `positive_score` and `negative_score`, finite; other keys are kept as they are.

    Raises:
        `QualcodeError`: On an unreadable file, a malformed line (named), a score that is no finite number, an id
            twice, or no rows.
    """

    def check(row: Mapping) -> str | None:
        if not {"positive_score", "negative_score"} <= row.keys():
            return f"expected {_PAIR_FORM}"
        wrong = [name for name in ("positive_score", "negative_score") if not _is_finite(row[name])]
        return f"{wrong[0]} is {row[wrong[0]]!r}; expected a finite number" if wrong else None

    return _read_rows(path, check, _PAIR_FORM)


def read_metric_rows(path: Path) -> list[dict]:
    """Reads rows with `id` and per-query metrics (every key with an `@`, in [0, 1]); other keys are kept as they are.

    Raises:
        `QualcodeError`: On an unreadable file, a malformed line (named), a metric out of range, an id twice, or no
            rows.
    """

    def check(row: Mapping) -> str | None:
        wrong = [name for name, value in row.items() if "@" in name and not (_is_finite(value) and 0 <= value <= 1)]
        return f"{wrong[0]} is {row[wrong[0]]!r}; expected a number in [0, 1]" if wrong else None

    return _read_rows(path, check, '{"id": ..., "hit@1": ...} of --save-scores')


def read_pair_scores(path: Path, pairs: Sequence[PreferencePair], data: str) -> PairScores:
    """Reads what a system outside gave to pairs, in any order of lines.

    Args:
        path (`Path`): Lines with `id`, `positive_score`, `negative_score` and, where scores are log-odds,
            `"scale": "log-odds"`.
        pairs (`Sequence[PreferencePair]`): [n], whose scores the file must hold, no more and no fewer.
        data (`str`): Name of the data set, for messages.

    Raises:
        `QualcodeError`: On the errors of `read_pair_rows`, missing ids, or ids that the data set lacks.
    """
    rows = {row["id"]: row for row in read_pair_rows(path)}
    known = {pair.id for pair in pairs}
    unknown = [name for name in rows if name not in known]
    if unknown:
        raise QualcodeError(
            f"{path} has {len(unknown)} ids that {data} lacks, {unknown[0]!r} among them (one that it has is "
            f"{pairs[0].id!r}); were the scores made for another configuration (--config) or split?"
        )
    missing = [pair.id for pair in pairs if pair.id not in rows]
    if missing:
        raise QualcodeError(
            f"{path} lacks the scores of {len(missing)} of {len(pairs)} pairs of {data}, {missing[0]!r} among them; "
            "every pair needs a line"
        )
    positive, negative = (
        np.array([float(rows[pair.id][f"{side}_score"]) for pair in pairs]) for side in ("positive", "negative")
    )
    return PairScores(positive, negative, scale_of_rows(rows.values()))


def scale_of_rows(rows) -> str:
    """`"log-odds"` where every row says so, else `""`."""
    return LOG_ODDS if all(row.get("scale") == LOG_ODDS for row in rows) else ""


def _read_rows(path: Path, check: Callable[[Mapping], str | None], form: str) -> list[dict]:
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise QualcodeError(f"{path} cannot be read ({error})") from error
    rows, seen = [], set()
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise QualcodeError(f"{path}, line {number}: not JSON ({error})") from error
        if not isinstance(row, dict) or not isinstance(row.get("id"), str):
            raise QualcodeError(f"{path}, line {number}: expected {form}")
        message = check(row)
        if message:
            raise QualcodeError(f"{path}, line {number}: {message}")
        if row["id"] in seen:
            raise QualcodeError(f"{path}, line {number}: id {row['id']} appears twice")
        seen.add(row["id"])
        rows.append(row)
    if not rows:
        raise QualcodeError(f"{path} holds no results")
    return rows


def _is_finite(value: object) -> bool:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number beyond every float
        return False
