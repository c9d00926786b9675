"""Builds training lists of graded programs.

Draws come from SHA-256 of the seed and of names and texts: the same data and seed give the same lists on every
machine, whatever order the data came in. Store lists (`lists_to_dataset`), and a run can be repeated.
"""

import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import combinations

from hf_qualcode.benchmark.drawing import Draws
from hf_qualcode.quality import dimension_names, instruction_for
from hf_qualcode.rerank.list_parts import (
    BEST_GRADE,
    LOW_GRADE,
    Choice,
    Group,
    Pool,
    check_numbers,
    chosen,
    drawn,
    finished,
)
from hf_qualcode.rerank.ranking_list import RankingList, lists_from_dataset, lists_to_dataset
from hf_qualcode.types import PreferencePair, QualcodeError


__all__ = [
    "GradedVariant", "RankingList", "build_lists", "lists_from_dataset", "lists_from_pairs", "lists_to_dataset",
    "negated_instruction", "srcl_lists",
]  # fmt: skip

logger = logging.getLogger(__name__)

HIGH, LOW = "high", "low"


@dataclass(frozen=True, slots=True)
class GradedVariant:
    """One program of a task that is known to be good or bad in one dimension.

    Attributes:
        task_id (`str`): The task that it solves.
        dimension (`str`): A quality, or several joined by "+".
        instruction, query (`str`): What is asked.
        code (`str`): The program.
        level (`str`): `"high"` or `"low"`.
    """

    task_id: str
    dimension: str
    instruction: str
    query: str
    code: str
    level: str


def build_lists(
    variants: Iterable[GradedVariant],
    *,
    num_low: int = 4,
    num_irrelevant: int = 1,
    one_list_per_query: bool = False,
    negate: Callable[[str], str] | None = None,
    seed: int = 42,
) -> list[RankingList]:
    """Lists of three levels: one good program, bad ones of the same task, and others (SynH-Rank, section 5.4).

    There is one list a good program of a task and dimension. It holds that program (grade 2), `num_low` bad ones of
    the same task and dimension (grade 1; all there are when they are fewer, at least 1) and `num_irrelevant` of other
    tasks (grade 0), whose text is that of no program of this task or of another task with the same query.

    Args:
        variants (`Iterable[GradedVariant]`): In any order; a repeated one counts once.
        num_low (`int`, *optional*, defaults to 4): At least 1.
        num_irrelevant (`int`, *optional*, defaults to 1): 0 makes lists of two levels.
        one_list_per_query (`bool`, *optional*, defaults to `False`): Draw one good program a task and dimension.
        negate (`Callable`, *optional*):
            Turns an instruction into its opposite, for example [`negated_instruction`]. Each list is then given a twin
            (id ending in "/negated") under the opposite instruction, in which grades 1 and 2 change places.
        seed (`int`, *optional*, defaults to 42): Of the draws.

    Returns:
        `list[RankingList]`: Sorted by id.

    Raises:
        `QualcodeError`: When no list can be made, a task has too few programs of other tasks to draw from, a text is
            both good and bad, or one task has two queries.
        `UsageError`: On numbers out of range.
    """
    check_numbers(num_low=(num_low, 1), num_irrelevant=(num_irrelevant, 0))
    groups, pool = _read_variants(variants)
    choices = []
    for group in groups:
        for number in chosen(group, one_list_per_query, seed):
            best = group.high[number]
            low = drawn(group.low, num_low, Draws(seed, "low", group.name, best))
            grades = (BEST_GRADE, *[LOW_GRADE] * len(low))
            choices.append(Choice(group, number, (best, *low), grades))
    return finished(choices, pool, num_irrelevant, negate, seed)


def srcl_lists(
    variants: Iterable[GradedVariant], *, num_irrelevant: int = 5, one_list_per_query: bool = False, seed: int = 42
) -> list[RankingList]:
    """Lists that know relevance only, for the SRCL baseline (SynH-Rank, section 6.1).

    As many lists as `build_lists` makes of the same variants, each of one program of the task and dimension, good or
    bad (grade 1), and `num_irrelevant` of other tasks (grade 0).

    Args:
        variants (`Iterable[GradedVariant]`), one_list_per_query (`bool`), seed (`int`): As for `build_lists`.
        num_irrelevant (`int`, *optional*, defaults to 5): At least 1.

    Returns:
        `list[RankingList]`: Sorted by id.

    Raises:
        `QualcodeError`, `UsageError`: As `build_lists`.
    """
    check_numbers(num_irrelevant=(num_irrelevant, 1))
    groups, pool = _read_variants(variants)
    choices = []
    for group in groups:
        numbers = chosen(group, one_list_per_query, seed)
        relevant = drawn(sorted(group.high + group.low), len(numbers), Draws(seed, "relevant", group.name))
        for number, code in zip(numbers, relevant, strict=True):
            choices.append(Choice(group, number, (code,), (1,)))
    return finished(choices, pool, num_irrelevant, None, seed)


def lists_from_pairs(
    pairs: Iterable[PreferencePair],
    *,
    num_low: int = 4,
    num_irrelevant: int = 1,
    one_list_per_query: bool = False,
    negate: Callable[[str], str] | None = None,
    seed: int = 42,
) -> list[RankingList]:
    """Lists of preference pairs, for example of QualCode.

    There is one list a problem, instruction and positive program: it (grade 2), at most `num_low` of the programs it
    is preferred to (grade 1), and `num_irrelevant` programs of other problems (grade 0), as in `build_lists`.

    Args:
        pairs (`Iterable[PreferencePair]`): In any order, of any dimensions.
        num_low, num_irrelevant (`int`), negate (`Callable`), seed (`int`): As for `build_lists`.
        one_list_per_query (`bool`, *optional*, defaults to `False`):
            Draw one positive program a problem and instruction; its list is the one that it has otherwise.

    Returns:
        `list[RankingList]`: Sorted by id.

    Raises:
        `QualcodeError`, `UsageError`: As `build_lists`.
    """
    check_numbers(num_low=(num_low, 1), num_irrelevant=(num_irrelevant, 0))
    groups: dict[tuple[str, ...], Group] = {}
    lower: dict[tuple[str, ...], dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    pool = Pool()
    for pair in pairs:
        key = (pair.problem_id, "+".join(pair.dimensions), pair.instruction, pair.query)
        groups.setdefault(key, Group(*key))
        if pair.positive == pair.negative:
            raise QualcodeError(f"pair {pair.id!r} prefers a program to itself; both texts are equal")
        lower[key][pair.positive].add(pair.negative)
        for code in (pair.positive, pair.negative):
            pool.add(pair.problem_id, pair.query, code)
    choices = []
    numbers: Counter[str] = Counter()  # a problem may be asked for under several instructions
    for key, group in sorted(groups.items()):
        positives = sorted(lower[key])
        draws = Draws(seed, "best", group.name, group.instruction)
        one = draws.below(len(positives)) if one_list_per_query else None
        for place, best in enumerate(positives):
            number = numbers[group.name]
            numbers[group.name] += 1
            if one not in (None, place):
                continue
            low = drawn(sorted(lower[key][best]), num_low, Draws(seed, "low", group.name, best))
            grades = (BEST_GRADE, *[LOW_GRADE] * len(low))
            choices.append(Choice(group, number, (best, *low), grades))
    return finished(choices, pool, num_irrelevant, negate, seed)


def negated_instruction(instruction: str) -> str:
    """The opposite of an instruction of `instruction_for`: "Retrieve code that is slow" of "... that is fast".

    Raises:
        `QualcodeError`: On any other text.
    """
    names = dimension_names()
    for size in range(1, len(names) + 1):
        for qualities in combinations(names, size):
            both = [instruction_for(qualities, negated=negated) for negated in (False, True)]
            if instruction in both:
                return both[1 - both.index(instruction)]
    raise QualcodeError(
        f"instruction {instruction!r} has no known opposite; give `negate`, a function from an instruction to its own"
    )


def _read_variants(variants: Iterable[GradedVariant]) -> tuple[list[Group], Pool]:
    """Groups that can make a list, sorted, and the texts of all."""
    groups: dict[tuple[str, str], Group] = {}
    pool = Pool()
    for each in variants:
        if each.level not in (HIGH, LOW):
            raise QualcodeError(f"a program of task {each.task_id!r} has level {each.level!r}; expected high or low")
        group = groups.setdefault(
            (each.task_id, each.dimension), Group(each.task_id, each.dimension, each.instruction, each.query)
        )
        if (group.instruction, group.query) != (each.instruction, each.query):
            raise QualcodeError(
                f"task {each.task_id!r}, dimension {each.dimension!r}, has two instructions or queries; give each a "
                "task id of its own"
            )
        (group.high if each.level == HIGH else group.low).append(each.code)
        pool.add(each.task_id, each.query, each.code)
    usable = []
    for _, group in sorted(groups.items()):
        if both := set(group.high) & set(group.low):
            raise QualcodeError(
                f"task {group.task_id!r}, dimension {group.dimension!r}: {len(both)} texts are both high and low; "
                "remove them"
            )
        # A text counts once, however often it was given.
        group.high, group.low = sorted(set(group.high)), sorted(set(group.low))
        if group.high and group.low:
            usable.append(group)
    if not usable:
        raise QualcodeError(
            f"no list can be made: none of {len(groups)} tasks and dimensions has both a high and a low program"
        )
    if len(usable) < len(groups):
        logger.warning(
            "%d of %d tasks and dimensions make no list: each needs a high and a low program",
            len(groups) - len(usable), len(groups),
        )  # fmt: skip
    return usable, pool
