"""One query, its instruction, and candidates with grades; alone, and as rows of a data set."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

from hf_qualcode.types import QualcodeError


_COLUMNS = ("instruction", "query", "codes", "grades")
# nDCG's gains are powers of two of grades, which overflow beyond.
_BEST_GRADE = 1000


@dataclass(frozen=True, slots=True)
class RankingList:
    """One query with candidates to order.

    Attributes:
        id (`str`): What messages call it.
        instruction, query (`str`): What is asked.
        codes (`tuple[str, ...]`): [list], in any order.
        grades (`tuple[int, ...]`): [list], whole numbers from 0 to 1000 (2.0 is one), more is better.
        teacher_scores (`tuple[float, ...]`, *optional*): [list], finite, for distillation.
        problem_id (`str`): Where it came from.

    Lists and other sequences are taken for tuples.

    Raises:
        `QualcodeError`: On no candidate, unequal lengths, or a value that is not as above.
    """

    id: str
    instruction: str
    query: str
    codes: tuple[str, ...]
    grades: tuple[int, ...]
    teacher_scores: tuple[float, ...] | None = None
    problem_id: str = ""

    def __post_init__(self):
        for name in ("instruction", "query", "problem_id"):
            _check_text(self.id, name, getattr(self, name))
        values = {
            "codes": _values(self.id, "codes", self.codes),
            "grades": tuple(_grade(self.id, grade) for grade in _values(self.id, "grades", self.grades)),
        }
        for place, code in enumerate(values["codes"]):
            _check_text(self.id, f"codes[{place}]", code)
        if self.teacher_scores is not None:
            given = _values(self.id, "teacher_scores", self.teacher_scores)
            values["teacher_scores"] = tuple(_score(self.id, score) for score in given)
        for name, checked in values.items():
            object.__setattr__(self, name, checked)
        if not self.codes or len(self.codes) != len(self.grades):
            raise QualcodeError(
                f"list {self.id!r} has {len(self.codes)} codes and {len(self.grades)} grades; expected one grade for "
                "each of at least one code"
            )
        if self.teacher_scores is not None and len(self.teacher_scores) != len(self.codes):
            raise QualcodeError(
                f"list {self.id!r} has {len(self.codes)} codes and {len(self.teacher_scores)} teacher scores; "
                "expected equally many"
            )


def _values(list_id: str, name: str, values: Any) -> tuple:
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise QualcodeError(f"list {list_id!r} has {name} {_shown(values)}; expected a list, one entry a candidate")
    return tuple(values)


def _check_text(list_id: str, name: str, value: Any) -> None:
    if not isinstance(value, str):
        raise QualcodeError(f"list {list_id!r} has {name} {_shown(value)}; expected text")


def _grade(list_id: str, value: Any) -> int:
    whole = isinstance(value, Real) and not isinstance(value, bool) and value == value // 1
    if not whole or not 0 <= value <= _BEST_GRADE:
        raise QualcodeError(
            f"list {list_id!r} has grade {_shown(value)}; grades are whole numbers from 0 to {_BEST_GRADE}"
        )
    return int(value)


def _score(list_id: str, value: Any) -> float:
    if not isinstance(value, Real) or isinstance(value, bool) or not math.isfinite(value):
        raise QualcodeError(f"list {list_id!r} has teacher score {_shown(value)}; expected a finite number")
    return float(value)


def _shown(value: Any) -> str:
    text = repr(value)
    return f"{text if len(text) <= 40 else f'{text[:40]}...'} ({type(value).__name__})"


def lists_to_dataset(lists: Sequence[RankingList]):
    """A `datasets.Dataset` with the columns id, instruction, query, codes, grades, problem_id and, where all lists
    have them, teacher_scores.

    Raises:
        `QualcodeError`: When some lists have teacher scores and others do not.
    """
    from datasets import Dataset, Features, List, Value

    features = {name: Value("string") for name in ("id", "instruction", "query", "problem_id")}
    features |= {"codes": List(Value("string")), "grades": List(Value("int64"))}
    if any_teacher_scores(lists):
        features["teacher_scores"] = List(Value("float64"))
    columns = {name: [getattr(each, name) for each in lists] for name in features}
    for name in ("codes", "grades", "teacher_scores"):
        if name in columns:
            columns[name] = [list(values) for values in columns[name]]
    return Dataset.from_dict(columns, features=Features(features))


def lists_from_dataset(rows: Iterable[Mapping]) -> list[RankingList]:
    """The lists of a data set with at least the columns instruction, query, codes and grades.

    Raises:
        `QualcodeError`: When a column is missing or a row is no list.
    """
    return [as_ranking_list(row, number) for number, row in enumerate(rows)]


def as_ranking_list(row: "RankingList | Mapping", number: int = 0) -> RankingList:
    """A row of a data set as a list; `number` names it where it has no id."""
    if isinstance(row, RankingList):
        return row
    if not isinstance(row, Mapping):
        raise QualcodeError(f"row {number} is {_shown(row)}; expected a RankingList, or an object of columns")
    if missing := [name for name in _COLUMNS if row.get(name) is None]:
        raise QualcodeError(
            f"row {number} has no {missing[0]}; a training list has the columns {', '.join(_COLUMNS)} and may have "
            "id, problem_id and teacher_scores"
        )
    names = {name: row.get(name) for name in ("id", "problem_id")}
    return RankingList(
        # Numbers are names as well.
        id=f"row {number}" if names["id"] in (None, "") else str(names["id"]),
        problem_id="" if names["problem_id"] is None else str(names["problem_id"]),
        teacher_scores=row.get("teacher_scores"),
        **{name: row[name] for name in _COLUMNS},
    )


def any_teacher_scores(lists: Sequence[RankingList]) -> bool:
    """Whether the lists have teacher scores; a `QualcodeError` when only some have."""
    without = [each.id for each in lists if each.teacher_scores is None]
    if without and len(without) < len(lists):
        raise QualcodeError(
            f"list {without[0]!r} has no teacher scores and others have ({len(without)} of {len(lists)} without); all "
            "or none must have them"
        )
    return bool(lists) and not without
