"""Which two programs of a problem are compared: its one pair a dimension, and every pair that differs clearly."""

import functools
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, islice

from hf_qualcode.benchmark.drawing import Draws, draw_key
from hf_qualcode.benchmark.programs import Problem, Program
from hf_qualcode.quality import get_dimension


EQUAL_TEXTS = "only_equal_texts"
MAX_PAIRS_PER_PROBLEM = 50

# Every reason of `choose_pair`, for cards and reports.
REASONS = {
    "no_program_measured": "no program of the problem has a usable measurement",
    "one_program_measured": "a pair needs two measured programs, and there is one",
    "less_than_twice_apart": "2 x the least value is not below the greatest one",
    "no_program_analysed": "no program of the problem was analysed for smells",
    "no_program_without_smells": "there is no program to be the positive",
    "no_program_with_smells": "there is no program to be the negative",
    EQUAL_TEXTS: "only programs of the very same text are far enough apart",
}


@dataclass(frozen=True, slots=True)
class Chosen:
    """A positive and a negative program of one problem in one dimension."""

    dimension: str
    positive: Program
    negative: Program


def choose_pair(problem: Problem, dimension: str, seed: int) -> Chosen | str:
    """The problem's one pair of a dimension, or the reason why it has none (SynH-Rank, section 3.1).

    Speed and memory: the least value against the greatest. Maintainability: a program without smells, drawn with the
    seed, against the one of most smells, then most distinct rules. Ties go to the lesser submission id. Two programs
    of the same text are never paired: an equally good positive is taken, else the next-worst negative for which the
    rule holds, else the next-best positive.

    Args:
        problem (`Problem`): Its programs in any order.
        dimension (`str`): Name of the dimension.
        seed (`int`): For drawn positives.

    Returns:
        `Chosen` or `str`: The pair, or a key of `REASONS`.
    """
    rules = get_dimension(dimension)
    measured = [program for program in problem.programs if dimension in program.values]
    reason = rules.reason_without_pair([program.values[dimension] for program in measured])
    if reason is not None:
        return reason

    def best_first(program: Program):
        drawn = draw_key(seed, "positive", problem.problem_id, program.submission_id) if rules.POSITIVE_IS_DRAWN else 0
        return program.values[dimension], drawn, program.submission_id

    def worst_first(program: Program):
        # Kinds of smells say nothing about time or memory, whose pairs must not depend on the engine.
        kinds = len(set(program.smell_rules or ())) if dimension == "maintainability" else 0
        return -program.values[dimension], -kinds, program.submission_id

    # With one program a text, the first two of each side are all that can matter.
    legal = [
        Chosen(dimension, positive, negative)
        for positive in _first_of_each_text(measured, best_first, 2)
        for negative in _first_of_each_text(measured, worst_first, 2)
        if positive.text_digest != negative.text_digest
        and rules.is_pair(positive.values[dimension], negative.values[dimension])
    ]
    if not legal:
        return EQUAL_TEXTS
    # Where the very best and worst share a text, an equally good positive comes before a less bad negative.
    return min(legal, key=lambda pair: (pair.positive.values[dimension], worst_first(pair.negative)[:-1]))


def _first_of_each_text(programs: Sequence[Program], order, count: int) -> list[Program]:
    first: dict[str, Program] = {}
    for program in sorted(programs, key=order):
        first.setdefault(program.text_digest, program)
        if len(first) == count:
            break
    return list(first.values())


class LegalPairs:
    """Numbers all pairs of a positive and a negative program without listing them.

    Args:
        positives (`Sequence[Program]`): [n].
        negatives (`Sequence[Program]`): [m].
        starts (`Sequence[int]`): [n], the negatives from this place on are far enough from the positive.

    Pairs of equal text are not counted.
    """

    def __init__(self, positives: Sequence[Program], negatives: Sequence[Program], starts: Sequence[int]):
        self.positives, self.negatives, self.starts = positives, negatives, starts
        self._places: dict[str, list[int]] = defaultdict(list)
        for place, negative in enumerate(negatives):
            self._places[negative.text_digest].append(place)
        rows = map(self._row, range(len(starts)))
        sizes = (len(negatives) - start - (len(same) - first) for start, (same, first) in rows)
        self._ends = list(accumulate(sizes))

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def __getitem__(self, number: int) -> tuple[Program, Program]:
        if not 0 <= number < len(self):
            raise IndexError(number)
        # `_ends` rises where there are pairs: the first end above the number is that of its positive.
        i = bisect_left(self._ends, number + 1)
        start, (same, first) = self._row(i)
        place = start + number - (self._ends[i - 1] if i else 0)
        # Ascending places, so every one that is skipped moves the rest by one.
        while first < len(same) and same[first] <= place:
            place += 1
            first += 1
        return self.positives[i], self.negatives[place]

    def _row(self, i: int) -> tuple[int, tuple[list[int], int]]:
        """Where the negatives of positive `i` start; the places of its text, and the first of them that counts."""
        start, same = self.starts[i], self._places.get(self.positives[i].text_digest, [])
        return start, (same, bisect_left(same, start))

    def draw(self, draws: Draws, count: int) -> list[tuple[Program, Program]]:
        """At most `count` distinct pairs, drawn without replacement; all, in random order, where there are no more."""
        return [self[number] for number in islice(draws.permutation(len(self)), count)]


def all_pairs(problem: Problem, dimension: str) -> LegalPairs:
    """Every pair of the problem that `is_clear` in the dimension (an addition of ours, not the paper's)."""
    rules = get_dimension(dimension)
    measured = [program for program in problem.programs if dimension in program.values]
    measured.sort(key=lambda program: (program.values[dimension], program.submission_id))
    values = [program.values[dimension] for program in measured]

    @functools.cache
    def start(value: float) -> int:
        # What is clear against a value is clear against every greater one.
        return bisect_left(values, True, key=lambda other: rules.is_clear(value, other))

    return LegalPairs(measured, measured, [start(value) for value in values])


def draw_all_pairs(problem: Problem, dimension: str, seed: int) -> tuple[list[Chosen], int]:
    """At most 50 of the problem's clear pairs, by values and ids, and how many there were."""
    legal = all_pairs(problem, dimension)
    drawn = legal.draw(Draws(seed, "all-pairs", dimension, problem.problem_id), MAX_PAIRS_PER_PROBLEM)
    drawn.sort(key=lambda pair: (pair[0].submission_id, pair[1].submission_id))
    return [Chosen(dimension, positive, negative) for positive, negative in drawn], len(legal)


def count_reasons(reasons: Sequence[str]) -> dict[str, int]:
    """How often each reason of `choose_pair` was given, in the order of `REASONS`."""
    counts = Counter(reasons)
    return {reason: counts[reason] for reason in REASONS if counts[reason]}
