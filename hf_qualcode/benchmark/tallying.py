"""Adds up what became of rows, measurements and problems: the counts that the data set's card and report show."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from hf_qualcode.benchmark.outcomes import (
    KEPT,
    MEASUREMENT_OUTCOMES,
    NONE_KEPT,
    PROBLEM_OUTCOMES,
    SMELL_OUTCOMES,
    SUBMISSION_OUTCOMES,
)
from hf_qualcode.benchmark.sifting import MAX_EXAMPLE_CHARACTERS, MAX_EXAMPLES, smell_worth_of, worth_of
from hf_qualcode.benchmark.spool import Row, Summary


WORTHS = {"speed": MEASUREMENT_OUTCOMES, "memory": MEASUREMENT_OUTCOMES, "maintainability": SMELL_OUTCOMES}


@dataclass
class Tally:
    """Counts over all problems, added in the order of their ids so that the examples are always the same.

    Attributes:
        has_engine (`bool`): A smell engine was asked for.
        keep_zero (`bool`): Measurements of 0 are used.
        num_listed (`int`): Lines of the problem list.
        num_unlisted (`int`): Tables of submissions whose problem is not in the list.
    """

    has_engine: bool
    keep_zero: bool
    num_listed: int = 0
    num_unlisted: int = 0
    _submissions: Counter = field(default_factory=Counter)
    _measurements: dict[str, Counter] = field(default_factory=lambda: {name: Counter() for name in WORTHS})
    _problems: Counter = field(default_factory=Counter)
    _examples: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    _problem_examples: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    def add_problem(self, outcome: str, problem_id: str, count: int = 1) -> None:
        """Counts a problem of which no table was read."""
        self._problems[outcome] += count
        if outcome != KEPT:
            _extend(self._problem_examples[outcome], [problem_id])

    def add_summary(self, problem_id: str, summary: Summary, excluded: Iterable[Row] = ()) -> bool:
        """Counts a problem and its rows.

        Args:
            problem_id (`str`): The problem.
            summary ([`Summary`]): What became of its rows when it was looked at by itself.
            excluded (`Iterable[Row]`): Kept programs whose ids turned out to be another problem's too.

        Returns:
            `bool`: The problem has kept programs.
        """
        submissions = Counter(summary.outcomes)
        measurements = {name: Counter(summary.measurements.get(name, {})) for name in WORTHS}
        for row in excluded:
            submissions[KEPT] -= 1
            submissions["id_in_other_problem"] += 1
            _extend(self._examples["id_in_other_problem"], [row.submission_id])
            measurements["speed"][worth_of(row.cpu_time)] -= 1
            measurements["memory"][worth_of(row.memory)] -= 1
            measurements["maintainability"][smell_worth_of(row, self.has_engine)] -= 1
        self._submissions.update(submissions)
        for name, counts in measurements.items():
            self._measurements[name].update(counts)
        for outcome, examples in summary.examples.items():
            _extend(self._examples[outcome], examples)
        outcome = NONE_KEPT if summary.outcome == KEPT and not submissions[KEPT] else summary.outcome
        self.add_problem(outcome, problem_id)
        return outcome == KEPT

    def to_report(self) -> dict:
        """Returns the counts as JSON can hold them, without those that are 0, in the order of `outcomes`."""
        measurements = {name: Counter(counts) for name, counts in self._measurements.items()}
        if self.keep_zero:
            for name in ("speed", "memory"):
                measurements[name]["used"] += measurements[name].pop("zero", 0)
        return {
            "num_rows": self._submissions.total(),
            "submissions": _in_order(self._submissions, SUBMISSION_OUTCOMES),
            "measurements": {name: _in_order(counts, WORTHS[name]) for name, counts in measurements.items()},
            "num_listed": self.num_listed,
            "num_unlisted": self.num_unlisted,
            "problems": _in_order(self._problems, PROBLEM_OUTCOMES),
            "examples": _in_order(self._examples, SUBMISSION_OUTCOMES),
            "problem_examples": _in_order(self._problem_examples, PROBLEM_OUTCOMES),
        }


def _extend(examples: list[str], others: list[str]) -> None:
    examples.extend(other[:MAX_EXAMPLE_CHARACTERS] for other in others[: MAX_EXAMPLES - len(examples)])


def _in_order(values: Mapping, order: Mapping) -> dict:
    return {name: values[name] for name in order if values.get(name)}
