"""Results for people and programs: one table, one JSON object with the keys every `evaluate` command uses."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from hf_qualcode.evaluation.retrieval import METRICS, RetrievalResult
from hf_qualcode.evaluation.significance import mcnemar, paired_bootstrap, paired_permutation
from hf_qualcode.types import QualcodeError


def retrieval_report(
    data: str,
    config: Mapping[str, Any],
    model: str,
    result: RetrievalResult,
    baselines: Mapping[str, RetrievalResult],
    seed: int = 42,
) -> dict:
    """Puts a result and its baselines into the form of `evaluate --json`.

    Args:
        data (`str`): As the user named it.
        config (`Mapping[str, Any]`): What else decides the numbers: split, seed.
        model (`str`): As the user named it.
        result (`RetrievalResult`): Of the model.
        baselines (`Mapping[str, RetrievalResult]`): Name -> result on the same queries.
        seed (`int`, *optional*, defaults to 42): Of the intervals.

    Returns:
        `dict`: Keys data, config, model, n, metrics, intervals, baselines, by_group. A baseline has metrics, intervals
        and differences: per metric the mean of model minus baseline, query by query, with its interval and p-value.
    """
    return {
        "data": data,
        "config": dict(config),
        "model": model,
        "n": len(result.query_ids),
        **_numbers(result, seed),
        "baselines": {
            name: {**_numbers(baseline, seed), "differences": _differences(result.values, baseline.values, seed)}
            for name, baseline in baselines.items()
        },
        "by_group": {},
    }


def comparison_report(
    first_name: str, first: Sequence[Mapping], second_name: str, second: Sequence[Mapping], seed: int = 42
) -> dict:
    """Compares two sets of per-query rows, as `RetrievalResult.rows` makes them, query by query.

    Args:
        first_name, second_name (`str`): For messages and the report.
        first, second (`Sequence[Mapping]`): Rows with `id` and metrics, in any order.
        seed (`int`, *optional*, defaults to 42): Of the intervals and the permutation test.

    Returns:
        `dict`: Keys compare, n, metrics (per metric first, second, difference, low, high, p_value) and mcnemar (of
        `hit@1`, where a query counts as right when its first place is certain).

    Raises:
        `QualcodeError`: When the two do not hold the same queries, or share no metric.
    """
    rows = {name: {row["id"]: row for row in side} for name, side in (("first", first), ("second", second))}
    only_first = rows["first"].keys() - rows["second"].keys()
    only_second = rows["second"].keys() - rows["first"].keys()
    if only_first or only_second:
        example = min(only_first or only_second)
        raise QualcodeError(
            f"{first_name} and {second_name} hold different queries: {len(only_first)} only in the first, "
            f"{len(only_second)} only in the second (for example {example!r})."
        )
    ids = list(rows["first"])
    shared = [name for name in METRICS if all(name in row for side in rows.values() for row in side.values())]
    if not shared:
        raise QualcodeError(f"{first_name} and {second_name} share none of the metrics {', '.join(METRICS)}.")
    values = {side: {name: [rows[side][i][name] for i in ids] for name in shared} for side in rows}
    differences = _differences(values["first"], values["second"], seed)
    report: dict = {"compare": [first_name, second_name], "n": len(ids), "metrics": {}}
    for name in shared:
        means = {side: sum(values[side][name]) / len(ids) for side in rows}
        report["metrics"][name] = {**means, **differences[name]}
    if "hit@1" in shared:
        test = mcnemar(*([value == 1 for value in values[side]["hit@1"]] for side in rows))
        report["mcnemar"] = test._asdict()
    return report


class Table(NamedTuple):
    """A table for people: a title, rows of cells of which the first is the header, and a closing note."""

    title: str
    rows: list[list[str]]
    note: str = ""

    def to_text(self) -> str:
        """The table as plain text, in aligned columns."""
        widths = [max(len(row[i]) for row in self.rows) for i in range(len(self.rows[0]))]
        lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in self.rows]
        return "\n".join([self.title, *lines, *([self.note] if self.note else [])]) + "\n"


def retrieval_table(report: Mapping) -> Table:
    """A retrieval report as a table: means with their intervals, differences below each baseline."""
    names = list(report["metrics"])
    rows = [["", *names], [report["model"], *(_mean_cell(report, name) for name in names)]]
    for baseline, numbers in report["baselines"].items():
        rows.append([baseline, *(_mean_cell(numbers, name) for name in names)])
        rows.append(["  difference", *(_difference_cell(numbers["differences"][name]) for name in names)])
    config = ", ".join(f"{key} {value}" for key, value in report["config"].items())
    return Table(f"{report['data']} ({config}), {report['n']} queries, 95 % intervals", rows)


def comparison_table(report: Mapping) -> Table:
    """A comparison report as a table."""
    rows = [["", "first", "second", "difference", "p (permutation)"]]
    for name, numbers in report["metrics"].items():
        cells = [f"{numbers['first']:.3f}", f"{numbers['second']:.3f}", _difference_cell(numbers)]
        rows.append([name, *cells, f"{numbers['p_value']:.4f}"])
    first, second = report["compare"]
    note = ""
    if "mcnemar" in report:
        test = report["mcnemar"]
        counts = f"{test['only_first']} right in the first only, {test['only_second']} in the second only"
        note = f"hit@1: {counts}, exact McNemar p = {test['p_value']:.4f}"
    return Table(f"first {first}, second {second}, {report['n']} queries", rows, note)


def _numbers(result: RetrievalResult, seed: int) -> dict:
    intervals = {name: [interval.low, interval.high] for name, interval in result.intervals(seed).items()}
    return {"metrics": result.metrics(), "intervals": intervals}


def _differences(first: Mapping, second: Mapping, seed: int) -> dict[str, dict[str, float]]:
    differences = {}
    for name in first:
        interval = paired_bootstrap(first[name], second[name], seed=seed)
        p_value = paired_permutation(first[name], second[name], seed=seed)
        differences[name] = {
            "difference": interval.mean, "low": interval.low, "high": interval.high, "p_value": p_value
        }  # fmt: skip
    return differences


def _mean_cell(numbers: Mapping, name: str) -> str:
    low, high = numbers["intervals"][name]
    return f"{numbers['metrics'][name]:.3f} [{low:.3f}, {high:.3f}]"


def _difference_cell(numbers: Mapping) -> str:
    return f"{numbers['difference']:+.3f} [{numbers['low']:+.3f}, {numbers['high']:+.3f}]"

