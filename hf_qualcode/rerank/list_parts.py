"""What lists are put together from: the programs of a task, draws among them, and programs of other tasks."""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from hf_qualcode.benchmark.drawing import Draws
from hf_qualcode.rerank.ranking_list import RankingList
from hf_qualcode.types import QualcodeError, UsageError


# Three levels of relevance (SynH-Rank, section 4.2).
BEST_GRADE, LOW_GRADE, IRRELEVANT_GRADE = 2, 1, 0


@dataclass(slots=True)
class Group:
    """All programs of one task under one instruction, sorted."""

    task_id: str
    dimension: str
    instruction: str
    query: str
    high: list[str] = field(default_factory=list)
    low: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        return f"{self.task_id}/{self.dimension}"


class Choice(NamedTuple):
    """A list before its irrelevant candidates are drawn."""

    group: Group
    number: int
    codes: tuple[str, ...]
    grades: tuple[int, ...]


class Pool:
    """All distinct texts, and to which tasks and queries each is relevant."""

    def __init__(self):
        self._queries: dict[str, set[str]] = defaultdict(set)
        self._tasks: dict[str, set[str]] = defaultdict(set)
        self._texts: list[str] = []

    def add(self, task_id: str, query: str, code: str) -> None:
        self._tasks[code].add(task_id)
        self._queries[code].add(query)

    def irrelevant(self, choice: Choice, size: int, seed: int) -> list[str]:
        """`size` distinct texts that are relevant neither to the task nor to its query, drawn for this list."""
        if len(self._texts) != len(self._tasks):
            self._texts = sorted(self._tasks)
        group, found = choice.group, []
        draws = Draws(seed, "irrelevant", group.name, group.instruction, choice.codes[0])
        places = draws.permutation(len(self._texts)) if size else ()
        for place in places:
            code = self._texts[place]
            if group.task_id not in self._tasks[code] and group.query not in self._queries[code]:
                found.append(code)
            if len(found) == size:
                return found
        if len(found) < size:
            raise QualcodeError(
                f"task {group.task_id!r} needs {size} irrelevant programs and other tasks have {len(found)}; give "
                "programs of more tasks, or a smaller num_irrelevant"
            )
        return found


def check_numbers(**numbers: tuple[int, int]) -> None:
    """A `UsageError` for the first of the named numbers, each given with its smallest, that is too small."""
    for name, (value, smallest) in numbers.items():
        if value < smallest:
            raise UsageError(f"{name} is {value}; expected {smallest} or more")


def chosen(group: Group, one_list_per_query: bool, seed: int) -> list[int]:
    """The good programs of a group that get a list, by number."""
    if one_list_per_query:
        return [Draws(seed, "best", group.name).below(len(group.high))]
    return list(range(len(group.high)))


def drawn(codes: list[str], size: int, draws: Draws) -> list[str]:
    """`size` of the codes in random order, all where there are fewer."""
    places = draws.permutation(len(codes))
    return [codes[next(places)] for _ in range(min(size, len(codes)))]


def finished(
    choices: list[Choice], pool: Pool, num_irrelevant: int, negate: Callable[[str], str] | None, seed: int
) -> list[RankingList]:
    """The lists with their irrelevant candidates and, where `negate` is given, their twins, sorted by id."""
    if not choices:
        raise QualcodeError("no list can be made of no pairs")
    lists = []
    for choice in choices:
        irrelevant = pool.irrelevant(choice, num_irrelevant, seed)
        each = RankingList(
            id=f"{choice.group.name}/{choice.number}",
            instruction=choice.group.instruction,
            query=choice.group.query,
            codes=(*choice.codes, *irrelevant),
            grades=(*choice.grades, *[IRRELEVANT_GRADE] * len(irrelevant)),
            problem_id=choice.group.task_id,
        )
        lists.append(each)
        if negate is not None:
            # Upside down among what is relevant: the best and the worst change places.
            top = max(each.grades) + LOW_GRADE
            grades = tuple(top - grade if grade else IRRELEVANT_GRADE for grade in each.grades)
            lists.append(replace(each, id=f"{each.id}/negated", instruction=negate(each.instruction), grades=grades))
    return sorted(lists, key=lambda each: each.id)
