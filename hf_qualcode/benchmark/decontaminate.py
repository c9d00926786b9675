"""Training data without what the tests hold: 10-grams that training rows share with test sets.

SynH-Rank decontaminates its seed tasks against the test sets (section 5.4); the rules are ours. Statements are
compared by their words, programs by their Python tokens with literals made equal (see `ngrams`). One shared run of n
tokens is a hit. A text of fewer than n tokens is compared whole, with texts as short. Programs share boilerplate
(reading input, the main guard), so a run of code that more than three test problems have is no evidence; that guard
can be set or switched off, and one of statements switched on.

Test sets are held in memory; training rows pass by in batches, however many there are.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from typing import NamedTuple

from hf_qualcode.benchmark.held_out import HeldOutSet, HeldOutText, read_held_out
from hf_qualcode.benchmark.ngram_index import Hit, NgramIndex, Progress, TrainingRow
from hf_qualcode.benchmark.ngrams import KINDS


__all__ = [
    "Decontaminated", "Decontamination", "HeldOutSet", "HeldOutText", "Hit", "NgramIndex", "TrainingRow",
    "decontaminate", "read_held_out",
]  # fmt: skip

_MAX_LISTED_HITS = 100_000


class Decontamination:
    """Rows pass through `keep`, which counts; `report` says what was found.

    Args:
        index (`NgramIndex`): The test sets.
        max_listed (`int`, *optional*, defaults to 100,000): Hits that the report lists; the rest is only counted.
    """

    def __init__(self, index: NgramIndex, *, max_listed: int = _MAX_LISTED_HITS):
        self.index = index
        self.hits: list[Hit] = []
        self.num_rows = 0
        self._max_listed = max_listed
        self._counts: Counter[tuple[str, str]] = Counter()

    def keep(
        self,
        rows: Iterable,
        *,
        as_row: Callable[[object], TrainingRow] | None = None,
        progress: Progress | None = None,
        total: int | None = None,
    ) -> Iterator:
        """The rows without a hit, in order, as they are read.

        Args:
            rows (`Iterable`): Tasks, or anything else.
            as_row (`Callable`, *optional*): What of a row is looked up; defaults to its `id`, `query` and, where it
                has one, `code`.
            progress (`Callable`, *optional*): Called as `progress(stage, done, total)`.
            total (`int`, *optional*): Rows in all, for `progress`.
        """
        as_row = as_row or _task_row
        waiting: list = []  # rows that are being looked up: at most a batch

        def looked_up() -> Iterator[TrainingRow]:
            for row in rows:
                waiting.append(row)
                yield as_row(row)

        done = 0
        for hit in self.index.scan(looked_up()):
            row = waiting[done]
            done += 1
            self.num_rows += 1
            if done == len(waiting):
                waiting.clear()
                done = 0
                if progress is not None:
                    progress("decontaminating", self.num_rows, total)
            if hit is None:
                yield row
                continue
            self._counts[hit.test_set, hit.kind] += 1
            if len(self.hits) < self._max_listed:
                self.hits.append(hit)

    @property
    def num_hits(self) -> int:
        """Rows with a hit so far."""
        return self._counts.total()

    def report(self) -> dict:
        """Rows, hits and the index as JSON can hold them."""
        described = self.index.describe()
        for name, counts in described["test_sets"].items():
            counts["rows_hit"] = {kind: self._counts[name, kind] for kind in KINDS}
        return {
            **described,
            "rows": self.num_rows,
            "kept": self.num_rows - self.num_hits,
            "contaminated": {kind: sum(self._counts[name, kind] for name in self.index.names) for kind in KINDS},
            "hits": [asdict(hit) for hit in self.hits],
            "hits_not_listed": self.num_hits - len(self.hits),
        }

    def table(self) -> str:
        """The counts as lines of text, one a test set."""
        report = self.report()
        header = ("test set", "problems", "statements", "programs", "rows hit by statement", "by program")
        cells = [header] + [
            (name, *(f"{counts[column]:,}" for column in ("problems", "queries", "codes")),
             *(f"{counts['rows_hit'][kind]:,}" for kind in KINDS))
            for name, counts in report["test_sets"].items()
        ]  # fmt: skip
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines = [
            "  ".join([row[0].ljust(widths[0]), *(map(str.rjust, row[1:], widths[1:]))]) for row in cells
        ]  # fmt: skip
        kept = f"{report['kept']:,} of {report['rows']:,} rows share no {self.index.n}-gram with a test set"
        return "\n".join([*lines, kept])


class Decontaminated(NamedTuple):
    """The rows that may be trained on, and what was found."""

    kept: list
    decontamination: Decontamination


def decontaminate(
    rows: Iterable, test_sets: Iterable[HeldOutSet] | NgramIndex, *, progress: Progress | None = None, **options
) -> Decontaminated:
    """Leaves out the rows that share an n-gram with a test set.

    Args:
        rows (`Iterable`): Tasks with `id`, `query` and perhaps `code`.
        test_sets (`Iterable[HeldOutSet]` or `NgramIndex`): See `read_held_out`.
        progress (`Callable`, *optional*): Called as `progress(stage, done, total)`.
        options: Of `NgramIndex.build`.

    Returns:
        `Decontaminated`: What is kept, and the findings with their `report()` and `table()`.
    """
    index = test_sets
    if not isinstance(index, NgramIndex):
        index = NgramIndex.build(test_sets, progress=progress, **options)
    found = Decontamination(index)
    total = len(rows) if hasattr(rows, "__len__") else None
    return Decontaminated(list(found.keep(rows, progress=progress, total=total)), found)


def _task_row(task) -> TrainingRow:
    return TrainingRow(str(task.id), task.query, getattr(task, "code", None))
