"""Test sets as an index of the runs of n tokens that they hold.

A sorted array of 64-bit numbers, about 13 bytes a run, and one byte for each sixteenth of a run that turns nearly all
runs of clean texts away. Every hit is checked token by token, so a number that two runs share makes no hit.
"""

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hf_qualcode.benchmark.held_out import HeldOutSet, HeldOutText
from hf_qualcode.benchmark.ngrams import CODE, KINDS, QUERY, Rule, find_run, ngram_hashes, rule_for
from hf_qualcode.types import UsageError


NGRAM_SIZE = 10
MAX_CODE_PROBLEMS = 3
# What is looked up at once: enough for numpy, little enough for the caches.
_BATCH_ROWS, _BATCH_CHARACTERS = 1024, 2_000_000

Progress = Callable[[str, int, int | None], None]


class TrainingRow(NamedTuple):
    """What is looked up: an id for the report, a statement and a program, either of which may be absent."""

    id: str
    query: str | None = None
    code: str | None = None


@dataclass(frozen=True, slots=True)
class Hit:
    """A run of tokens that a training row and a test set share.

    Attributes:
        row_id (`str`): The training row.
        kind (`str`): `"query"` or `"code"`.
        test_set, test_id, problem_id (`str`): Where the test set has it; the first place of several.
        ngram (`str`): The run's tokens, separated by spaces.
    """

    row_id: str
    kind: str
    test_set: str
    test_id: str
    problem_id: str
    ngram: str


@dataclass(frozen=True)
class _Side:
    """The runs of all texts of one kind.

    Attributes:
        numbers (`np.ndarray`): uint64 [runs], ascending; a run that several texts have is there for each.
        places (`np.ndarray`): int32 [runs], which text.
        texts (`list[tuple[str, HeldOutText]]`): Name of the test set and text.
        seen (`np.ndarray`): bool, by the low bits of a number: `False` where no run has them.
        num_common (`int`): Distinct runs that the guard left out.
    """

    numbers: np.ndarray
    places: np.ndarray
    texts: list[tuple[str, HeldOutText]]
    seen: np.ndarray
    num_common: int

    @property
    def num_runs(self) -> int:
        return int((np.diff(self.numbers) != 0).sum()) + bool(len(self.numbers))


class NgramIndex:
    """Runs of n tokens of any number of test sets. Made by `build`."""

    def __init__(self, n: int, limits: dict[str, int | None], sides: dict[str, _Side], names: Sequence[str]):
        self.n = n
        self.limits = limits
        self.names = tuple(names)
        self._sides = sides
        self._rules = {kind: rule_for(kind) for kind in KINDS}
        # Test texts that hits are checked against, over and over.
        self._tokens = functools.lru_cache(maxsize=2048)(lambda kind, text: self._rules[kind].tokens(text))

    @classmethod
    def build(
        cls,
        test_sets: Iterable[HeldOutSet],
        *,
        n: int = NGRAM_SIZE,
        max_code_problems: int | None = MAX_CODE_PROBLEMS,
        max_query_problems: int | None = None,
        progress: Progress | None = None,
    ) -> "NgramIndex":
        """Reads the runs of test sets.

        Args:
            test_sets (`Iterable[HeldOutSet]`): Of distinct names; see `read_held_out`.
            n (`int`, *optional*, defaults to 10): Tokens a run.
            max_code_problems (`int`, *optional*, defaults to 3):
                A run of code counts only if at most so many problems have it; `None` counts all. Problems of one id
                are one, also in different test sets.
            max_query_problems (`int`, *optional*): The same for runs of statements; without it all count.
            progress (`Callable`, *optional*): Called as `progress(stage, done, total)`.

        Returns:
            `NgramIndex`: To look rows up in.

        Raises:
            `UsageError`: On numbers out of range, or two test sets of one name.
        """
        limits = {QUERY: max_query_problems, CODE: max_code_problems}
        for name, value in (("n", n), *((f"max_{kind}_problems", limit) for kind, limit in limits.items())):
            if value is not None and value < 1:
                raise UsageError(f"{name} is {value}; expected 1 or more")
        texts: dict[str, list[tuple[str, HeldOutText]]] = {kind: [] for kind in KINDS}
        names = []
        for test_set in test_sets:
            if test_set.name in names:
                raise UsageError(f"test set {test_set.name!r} is given twice; give each a name of its own")
            names.append(test_set.name)
            for text in test_set.texts:
                texts[text.kind].append((test_set.name, text))
        sides = {kind: _build_side(texts[kind], rule_for(kind), n, limits[kind], progress) for kind in KINDS}
        return cls(n, limits, sides, names)

    def check(self, *, query: str | None = None, code: str | None = None, id: str = "") -> Hit | None:
        """The first overlap of one training row, its statement before its program; `None` where there is none."""
        return next(self.scan([TrainingRow(id, query, code)]))

    def scan(self, rows: Iterable[TrainingRow]) -> Iterator[Hit | None]:
        """What `check` says of each row, in order. Rows are read as they are needed, about a thousand at a time."""
        for batch in _batches(rows):
            hits: list[Hit | None] = [None] * len(batch)
            for kind in KINDS:
                asked = [
                    (place, row.id, text) for place, row in enumerate(batch)
                    if hits[place] is None and (text := getattr(row, kind))
                ]  # fmt: skip
                for place, hit in self._look_up(kind, asked):
                    hits[place] = hit
            yield from hits

    def _look_up(self, kind: str, asked: Sequence[tuple[int, str, str]]) -> Iterator[tuple[int, Hit]]:
        """The first hit of each text that has one. `asked` has what to call it, its row's id, and the text."""
        side, rule = self._sides[kind], self._rules[kind]
        if not len(side.numbers) or not asked:
            return
        numbers, rows, offsets = ngram_hashes([text for _, _, text in asked], rule, self.n)
        possible = np.flatnonzero(side.seen[numbers & np.uint64(len(side.seen) - 1)])
        numbers, rows, offsets = numbers[possible], rows[possible], offsets[possible]
        firsts = np.searchsorted(side.numbers, numbers)
        found = np.flatnonzero(side.numbers[np.minimum(firsts, len(side.numbers) - 1)] == numbers)
        done, tokens = -1, []
        for at in found:
            row = int(rows[at])
            if row == done:
                continue
            name, row_id, text = asked[row]
            tokens = rule.tokens(text)
            run = tokens[offsets[at] : offsets[at] + self.n]
            place = self._first_place(kind, side, int(firsts[at]), numbers[at], run)
            if place is not None:
                done = row
                test_set, test = side.texts[place]
                yield name, Hit(row_id, kind, test_set, test.id, test.problem_id, " ".join(run))

    def _first_place(self, kind: str, side: _Side, first: int, number: np.uint64, run: list[str]) -> int | None:
        while first < len(side.numbers) and side.numbers[first] == number:
            place = int(side.places[first])
            if find_run(self._tokens(kind, side.texts[place][1].text), run, self.n):
                return place
            first += 1
        return None

    def describe(self) -> dict:
        """What the index holds, for reports."""
        sets = {name: {"queries": 0, "codes": 0, "problems": set()} for name in self.names}
        for kind, column in ((QUERY, "queries"), (CODE, "codes")):
            for name, text in self._sides[kind].texts:
                sets[name][column] += 1
                sets[name]["problems"].add(text.problem_id)
        return {
            "n": self.n,
            "max_problems": dict(self.limits),
            "test_sets": {name: counts | {"problems": len(counts["problems"])} for name, counts in sets.items()},
            "ngrams": {kind: self._sides[kind].num_runs for kind in KINDS},
            "ngrams_too_common": {kind: self._sides[kind].num_common for kind in KINDS},
        }


def _build_side(
    texts: list[tuple[str, HeldOutText]], rule: Rule, n: int, limit: int | None, progress: Progress | None
) -> _Side:
    problems: dict[str, int] = {}
    numbers, places = [np.empty(0, dtype=np.uint64)], [np.empty(0, dtype=np.int32)]
    for start in range(0, len(texts), _BATCH_ROWS):
        batch = [text.text for _, text in texts[start : start + _BATCH_ROWS]]
        found, rows, _ = ngram_hashes(batch, rule, n)
        found, rows = _distinct(found, rows)  # a text has some runs several times
        numbers.append(found)
        places.append((rows + start).astype(np.int32))
        if progress is not None:
            progress("reading test sets", min(start + _BATCH_ROWS, len(texts)), len(texts))
    all_numbers, all_places = np.concatenate(numbers), np.concatenate(places)
    order = np.lexsort((all_places, all_numbers))
    all_numbers, all_places = all_numbers[order], all_places[order]
    num_common = 0
    if limit is not None and len(texts):
        problem_of = np.array([problems.setdefault(text.problem_id, len(problems)) for _, text in texts])
        kinds, counts = np.unique(_distinct(all_numbers, problem_of[all_places])[0], return_counts=True)
        common = kinds[counts > limit]
        num_common = len(common)
        rare = ~np.isin(all_numbers, common)
        all_numbers, all_places = all_numbers[rare], all_places[rare]
    # One byte for about a sixteenth of a run: nearly all runs of clean rows end here.
    seen = np.zeros(1 << max(16, (16 * len(all_numbers)).bit_length()), dtype=bool)
    seen[all_numbers & np.uint64(len(seen) - 1)] = True
    return _Side(all_numbers, all_places, texts, seen, num_common)


def _distinct(numbers: np.ndarray, owners: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Each pair of a number and an owner once, sorted."""
    order = np.lexsort((owners, numbers))
    numbers, owners = numbers[order], owners[order]
    first = np.ones(len(numbers), dtype=bool)
    first[1:] = (np.diff(numbers) != 0) | (np.diff(owners) != 0)
    return numbers[first], owners[first]


def _batches(rows: Iterable[TrainingRow]) -> Iterator[list[TrainingRow]]:
    batch, characters = [], 0
    for row in rows:
        batch.append(row)
        characters += len(row.query or "") + len(row.code or "")
        if len(batch) == _BATCH_ROWS or characters >= _BATCH_CHARACTERS:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch
