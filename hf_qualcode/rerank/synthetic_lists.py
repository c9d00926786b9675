"""Training lists of synthesised variants: one condition at a time, several at once, or relevance alone.

Variants are the output of data synthesis: programs of a task, each written or rewritten to be good ("high") or bad
("low") in one dimension. See `hf_qualcode.synthesis.variants`.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations

from hf_qualcode.benchmark.drawing import Draws
from hf_qualcode.quality import dimension_names, instruction_for
from hf_qualcode.rerank.list_parts import LOW_GRADE, Choice, Group, Pool, check_numbers, chosen, drawn, finished
from hf_qualcode.rerank.lists import HIGH, LOW, GradedVariant, build_lists, negated_instruction, srcl_lists
from hf_qualcode.rerank.ranking_list import RankingList
from hf_qualcode.synthesis.variants import Variant
from hf_qualcode.types import QualcodeError, UsageError


SYNH_RANK, MULTI_CONDITION, SRCL = "synh-rank", "multi-condition", "srcl"
KINDS = {
    SYNH_RANK: "one condition: a good program, bad ones of the same task, one of another task",
    MULTI_CONDITION: "several conditions at once: programs graded by how many they meet, one of another task",
    SRCL: "relevance alone: a program of the task, good or bad, and five of other tasks",
}
# Programs of other tasks a list (SynH-Rank, sections 5.4 and 6.1).
NUM_IRRELEVANT = {SYNH_RANK: 1, MULTI_CONDITION: 1, SRCL: 5}
NUM_LOW = 4


def graded_variants(variants: Iterable[Variant]) -> Iterator[GradedVariant]:
    """Variants with the instruction that asks for their dimension."""
    instructions = {name: instruction_for(name) for name in dimension_names()}
    for each in variants:
        if each.dimension not in instructions:
            raise QualcodeError(
                f"a variant of task {each.task_id!r} has dimension {each.dimension!r}; known are: "
                f"{', '.join(instructions)}"
            )
        yield GradedVariant(
            each.task_id, each.dimension, instructions[each.dimension], each.query, each.code, each.level
        )


def synthetic_lists(
    variants: Iterable[Variant],
    kind: str = SYNH_RANK,
    *,
    num_low: int = NUM_LOW,
    num_irrelevant: int | None = None,
    one_list_per_query: bool = False,
    negated: bool = False,
    partial: bool = False,
    seed: int = 42,
) -> list[RankingList]:
    """Lists of one kind.

    Args:
        variants (`Iterable[Variant]`): In any order.
        kind (`str`, *optional*, defaults to `"synh-rank"`):
            `"synh-rank"` (`build_lists`), `"multi-condition"` (`multi_condition_lists`) or `"srcl"` (`srcl_lists`).
        num_low (`int`, *optional*, defaults to 4): Relevant programs beside the best; no use for `"srcl"`.
        num_irrelevant (`int`, *optional*): Programs of other tasks; defaults to 1, for `"srcl"` to 5.
        one_list_per_query (`bool`, *optional*, defaults to `False`): Draw one best program a task and instruction.
        negated (`bool`, *optional*, defaults to `False`):
            Give each list a twin under the opposite instruction, grades of what is relevant turned upside down.
        partial (`bool`, *optional*, defaults to `False`): See `multi_condition_lists`.
        seed (`int`, *optional*, defaults to 42): Of the draws.

    Returns:
        `list[RankingList]`: Sorted by id.

    Raises:
        `QualcodeError`: When no list can be made, or variants contradict each other.
        `UsageError`: On another kind, numbers out of range, or opposites of lists that know relevance only.
    """
    if kind not in KINDS:
        raise UsageError(f"no lists of kind {kind!r}; choose from: {', '.join(KINDS)}")
    if partial and kind != MULTI_CONDITION:
        raise UsageError(f"lists of kind {kind!r} ask for one quality; partial is for {MULTI_CONDITION!r}")
    graded = graded_variants(variants)
    options = {
        "num_irrelevant": NUM_IRRELEVANT[kind] if num_irrelevant is None else num_irrelevant,
        "one_list_per_query": one_list_per_query,
        "seed": seed,
    }
    if kind == SRCL:
        if negated:
            raise UsageError("lists of kind 'srcl' know relevance only, and have no opposite; leave --negated out")
        return srcl_lists(graded, **options)
    options |= {"num_low": num_low, "negate": negated_instruction if negated else None}
    if kind == SYNH_RANK:
        return build_lists(graded, **options)
    return multi_condition_lists(graded, partial=partial, **options)


def multi_condition_lists(
    variants: Iterable[GradedVariant],
    *,
    num_conditions: Sequence[int] = (2, 3),
    num_low: int = NUM_LOW,
    num_irrelevant: int = 1,
    one_list_per_query: bool = False,
    negate: Callable[[str], str] | None = None,
    partial: bool = False,
    seed: int = 42,
) -> list[RankingList]:
    """Lists that ask for several qualities at once.

    What is known of a program is what the variants with its text say, each of one dimension. A list is made for k
    dimensions of programs of one task that are known, good or bad, in all k; nothing is taken for granted of a
    dimension that no variant speaks of. Grades:

    - 1 + m: a program of the task that is good in m of the k dimensions and bad in the others, m from 0 to k;
    - 0: a program of another task.

    With `partial`, a program may also be one that is known to be bad in some of the k dimensions and unknown in
    others. It surely ranks below one that is good in all; m is then the most that it can be good in.

    There is one list for each program that is good in all k: it (grade k + 1), up to `num_low` others of the task
    (at least one), and `num_irrelevant` programs of other tasks. For k = 1 these would be the lists of `build_lists`.

    Args:
        variants (`Iterable[GradedVariant]`): Each of one dimension, in any order.
        num_conditions (`Sequence[int]`, *optional*, defaults to `(2, 3)`): Values of k; all combinations of each.
        num_low, num_irrelevant (`int`), one_list_per_query (`bool`), negate (`Callable`), seed (`int`):
            As for `build_lists`. Under the opposite instruction a grade of 1 + m becomes 1 + k - m.
        partial (`bool`, *optional*, defaults to `False`):
            Take programs that are not known in all k dimensions, as said above. Not together with `negate`: what may
            be good is not known to be bad.

    Returns:
        `list[RankingList]`: Sorted by id.

    Raises:
        `QualcodeError`: When no task has programs to make a list of, or variants contradict each other.
        `UsageError`: On numbers out of range, or `partial` with `negate`.
    """
    check_numbers(num_low=(num_low, 1), num_irrelevant=(num_irrelevant, 0))
    if partial and negate is not None:
        raise UsageError("partial knowledge of programs makes no lists under the opposite instruction; choose one")
    names = dimension_names()
    for number in num_conditions:
        if not 1 <= number <= len(names):
            raise UsageError(f"num_conditions has {number}; there are 1 to {len(names)} dimensions")
    known, queries, pool = _known_levels(variants)
    choices = []
    for task_id, programs in sorted(known.items()):
        for size in num_conditions:
            for asked in combinations(names, size):
                num_good = _num_good(programs, asked, partial)
                group = Group(task_id, "+".join(asked), instruction_for(asked), queries[task_id])
                choices += _choices(group, num_good, len(asked), num_low, one_list_per_query, seed)
    if not choices:
        raise QualcodeError(
            f"no list of {' or '.join(map(str, num_conditions))} conditions can be made: no task of {len(known)} has "
            "a program known to be good in all of them beside another that is known in them; give variants whose "
            "texts appear under several dimensions"
        )
    return finished(choices, pool, num_irrelevant, negate, seed)


def _known_levels(
    variants: Iterable[GradedVariant],
) -> tuple[dict[str, dict[str, dict[str, str]]], dict[str, str], Pool]:
    """Task -> program -> dimension -> level; the query of each task; and all programs."""
    known: dict[str, dict[str, dict[str, str]]] = defaultdict(lambda: defaultdict(dict))
    queries: dict[str, str] = {}
    pool = Pool()
    for each in variants:
        if each.level not in (HIGH, LOW):
            raise QualcodeError(f"a program of task {each.task_id!r} has level {each.level!r}; expected high or low")
        if queries.setdefault(each.task_id, each.query) != each.query:
            raise QualcodeError(f"task {each.task_id!r} has two queries; give each a task id of its own")
        if known[each.task_id][each.code].setdefault(each.dimension, each.level) != each.level:
            raise QualcodeError(
                f"task {each.task_id!r}, dimension {each.dimension!r}: a text is both high and low; remove it"
            )
        pool.add(each.task_id, each.query, each.code)
    return known, queries, pool


def _num_good(programs: dict[str, dict[str, str]], asked: tuple[str, ...], partial: bool) -> dict[str, int]:
    """Program -> in how many of the asked dimensions it is good, of those programs that are known well enough."""
    counts = {}
    for code, levels in sorted(programs.items()):
        bad = sum(levels.get(dimension) == LOW for dimension in asked)
        if all(dimension in levels for dimension in asked) or (partial and bad):
            counts[code] = len(asked) - bad
    return counts


def _choices(
    group: Group, num_good: dict[str, int], num_asked: int, num_low: int, one_list_per_query: bool, seed: int
) -> list[Choice]:
    """The lists of one task and combination of dimensions, without candidates of other tasks."""
    group.high = [code for code, good in num_good.items() if good == num_asked]
    group.low = [code for code, good in num_good.items() if good < num_asked]
    if not group.high or not group.low:
        return []
    found = []
    for number in chosen(group, one_list_per_query, seed):
        best = group.high[number]
        codes = (best, *drawn(group.low, num_low, Draws(seed, "low", group.name, best)))
        found.append(Choice(group, number, codes, tuple(LOW_GRADE + num_good[code] for code in codes)))
    return found
