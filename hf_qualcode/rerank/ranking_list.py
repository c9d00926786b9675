"""One query, its instruction, and candidates with grades; alone, and as rows of a data set."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from hf_qualcode.types import QualcodeError


_COLUMNS = ("instruction", "query", "codes", "grades")


@dataclass(frozen=True, slots=True)
class RankingList:
    """One query with candidates to order.

    Attributes:
        id (`str`): What messages call it.
        instruction, query (`str`): What is asked.
        codes (`tuple[str, ...]`): [list], in any order.
        grades (`tuple[int, ...]`): [list], 0 or more, more is better.
        teacher_scores (`tuple[float, ...]`, *optional*): [list], for distillation.
        problem_id (`str`): Where it came from.

    Raises:
        `QualcodeError`: On no candidate, unequal lengths, or a negative grade.
    """

    id: str
    instruction: str
    query: str
    codes: tuple[str, ...]
    grades: tuple[int, ...]
    teacher_scores: tuple[float, ...] | None = None
    problem_id: str = ""

    def __post_init__(self):
        if not self.codes or len(self.codes) != len(self.grades):
            raise QualcodeError(
                f"list {self.id!r} has {len(self.codes)} codes and {len(self.grades)} grades; expected one grade for "
                "each of at least one code"
            )
        if min(self.grades) < 0:
            raise QualcodeError(f"list {self.id!r} has grade {min(self.grades)}; grades are 0 or more")
        if self.teacher_scores is not None and len(self.teacher_scores) != len(self.codes):
            raise QualcodeError(
                f"list {self.id!r} has {len(self.codes)} codes and {len(self.teacher_scores)} teacher scores; "
                "expected equally many"
            )


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
    if missing := [name for name in _COLUMNS if row.get(name) is None]:
        raise QualcodeError(
            f"row {number} has no {missing[0]}; a training list has the columns {', '.join(_COLUMNS)} and may have "
            "id, problem_id and teacher_scores"
        )
    teacher_scores = row.get("teacher_scores")
    return RankingList(
        id=row.get("id") or f"row {number}",
        instruction=row["instruction"],
        query=row["query"],
        codes=tuple(row["codes"]),
        grades=tuple(row["grades"]),
        teacher_scores=None if teacher_scores is None else tuple(teacher_scores),
        problem_id=row.get("problem_id") or "",
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
