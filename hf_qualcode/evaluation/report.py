"""Results for people and programs: one table, one JSON object with the keys every `evaluate` command uses."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from hf_qualcode.evaluation.reranking import METRICS as RERANKING_METRICS
from hf_qualcode.evaluation.reranking import RerankingResult
from hf_qualcode.evaluation.retrieval import METRICS as RETRIEVAL_METRICS
from hf_qualcode.evaluation.retrieval import RetrievalResult
from hf_qualcode.evaluation.significance import mcnemar, paired_bootstrap, paired_permutation
from hf_qualcode.types import QualcodeError


Result = RetrievalResult | RerankingResult
# Every metric that a result file may hold.
METRICS = (*RETRIEVAL_METRICS, *RERANKING_METRICS)


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
        Intervals and tests draw and exchange whole clusters (the problems of QualCode) where the data have them.
    """
    compared = {name: _baseline(result, baseline, seed, result.clusters) for name, baseline in baselines.items()}
    return {
        "data": data,
        "config": dict(config),
        "model": model,
        "n": len(result.query_ids),
        **_numbers(result, seed),
        "baselines": compared,
        "by_group": {},
    }


def reranking_report(
    data: str,
    config: Mapping[str, Any],
    model: str,
    result: RerankingResult,
    baselines: Mapping[str, RerankingResult],
    seed: int = 42,
) -> dict:
    """As `retrieval_report`, of graded lists: whole problems are drawn, and `by_group` has every dimension.

    Args:
        data, config, model, seed: As in `retrieval_report`.
        result (`RerankingResult`): Of the model.
        baselines (`Mapping[str, RerankingResult]`): Name -> result on the same lists.
    """

    def part(chosen: RerankingResult, others: Mapping[str, RerankingResult]) -> dict:
        compared = {name: _baseline(chosen, other, seed, chosen.problem_ids) for name, other in others.items()}
        return {"n": len(chosen.query_ids), **_numbers(chosen, seed), "baselines": compared}

    groups = {
        name: part(result.of_dimension(name), {key: other.of_dimension(name) for key, other in baselines.items()})
        for name in dict.fromkeys(result.dimensions)
    }
    return {"data": data, "config": dict(config), "model": model, **part(result, baselines), "by_group": groups}


def comparison_report(
    first_name: str, first: Sequence[Mapping], second_name: str, second: Sequence[Mapping], seed: int = 42
) -> dict:
    """Compares two sets of per-query rows, as `RetrievalResult.rows` or `RerankingResult.rows` makes them.

    Args:
        first_name, second_name (`str`): For messages and the report.
        first, second (`Sequence[Mapping]`):
            Rows with `id` and metrics, in any order. Where all have a `problem_id`, whole problems are drawn.
        seed (`int`, *optional*, defaults to 42): Of the intervals and the permutation test.

    Returns:
        `dict`: Keys compare, n, metrics (per metric first, second, difference, low, high, p_value) and mcnemar (of
        `hit@1`, where a query counts as right when its first place is certain).

    Raises:
        `QualcodeError`: When the two do not hold the same queries, or share no metric.
    """
    rows, ids = paired_rows(first_name, first, second_name, second, "queries")
    shared = [name for name in METRICS if all(name in row for side in rows.values() for row in side.values())]
    if not shared:
        raise QualcodeError(f"{first_name} and {second_name} share none of the metrics {', '.join(METRICS)}.")
    values = {side: {name: [rows[side][i][name] for i in ids] for name in shared} for side in rows}
    differences = _differences(values["first"], values["second"], seed, clusters_of(rows["first"][i] for i in ids))
    report: dict = {"compare": [first_name, second_name], "n": len(ids), "metrics": {}}
    for name in shared:
        means = {side: sum(values[side][name]) / len(ids) for side in rows}
        report["metrics"][name] = {**means, **differences[name]}
    if "hit@1" in shared:
        test = mcnemar(*([value == 1 for value in values[side]["hit@1"]] for side in rows))
        report["mcnemar"] = test._asdict()
    return report


def paired_rows(
    first_name: str, first: Sequence[Mapping], second_name: str, second: Sequence[Mapping], kind: str
) -> tuple[dict[str, dict[str, Mapping]], list[str]]:
    """Rows of two result files by their ids, and the ids in the order of the first.

    Raises:
        `QualcodeError`: When the two do not hold the same ids; `kind` says of what.
    """
    rows = {name: {row["id"]: row for row in side} for name, side in (("first", first), ("second", second))}
    only_first = rows["first"].keys() - rows["second"].keys()
    only_second = rows["second"].keys() - rows["first"].keys()
    if only_first or only_second:
        example = min(only_first or only_second)
        raise QualcodeError(
            f"{first_name} and {second_name} hold different {kind}: {len(only_first)} only in the first, "
            f"{len(only_second)} only in the second (for example {example!r})."
        )
    return rows, list(rows["first"])


def clusters_of(rows: Iterable[Mapping]) -> list[str] | None:
    """The problem of every row, `None` where one lacks it."""
    problem_ids = [row.get("problem_id") for row in rows]
    return problem_ids if all(isinstance(name, str) and name for name in problem_ids) else None


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


def ranking_table(report: Mapping, kind: str = "queries") -> Table:
    """A retrieval or reranking report as a table: means with their intervals, differences below each baseline, then
    the groups."""
    names = list(report["metrics"])
    rows = [["", *names], [report["model"], *(mean_cell(report, name) for name in names)]]
    for baseline, numbers in report["baselines"].items():
        rows.append([baseline, *(mean_cell(numbers, name) for name in names)])
        rows.append(["  difference", *(difference_cell(numbers["differences"][name]) for name in names)])
    for group, numbers in report["by_group"].items():
        rows.append([f"{group} ({numbers['n']})", *(mean_cell(numbers, name) for name in names)])
    config = ", ".join(f"{key} {value}" for key, value in report["config"].items())
    return Table(f"{report['data']} ({config}), {report['n']} {kind}, 95 % intervals", rows)


def comparison_table(report: Mapping) -> Table:
    """A comparison report as a table."""
    rows = [["", "first", "second", "difference", "p (permutation)"]]
    for name, numbers in report["metrics"].items():
        cells = [f"{numbers['first']:.3f}", f"{numbers['second']:.3f}", difference_cell(numbers)]
        rows.append([name, *cells, f"{numbers['p_value']:.4f}"])
    first, second = report["compare"]
    note = ""
    if "mcnemar" in report:
        test = report["mcnemar"]
        counts = f"{test['only_first']} right in the first only, {test['only_second']} in the second only"
        note = f"hit@1: {counts}, exact McNemar p = {test['p_value']:.4f}"
    return Table(f"first {first}, second {second}, {report['n']} queries", rows, note)


def mean_cell(numbers: Mapping, name: str) -> str:
    """A metric with its interval."""
    low, high = numbers["intervals"][name]
    return f"{numbers['metrics'][name]:.3f} [{low:.3f}, {high:.3f}]"


def difference_cell(numbers: Mapping) -> str:
    """A paired difference with its interval."""
    return f"{numbers['difference']:+.3f} [{numbers['low']:+.3f}, {numbers['high']:+.3f}]"


def paired_numbers(first, second, seed: int = 42, clusters=None, *, with_p_value: bool = True) -> dict[str, float]:
    """The mean of first minus second with its interval and the p-value of a paired permutation.

    Args:
        first, second (`array-like`): [n], results of two systems, item by item.
        seed (`int`, *optional*, defaults to 42): Of both.
        clusters (`array-like`, *optional*): [n], what is drawn and exchanged as a whole.
        with_p_value (`bool`, *optional*, defaults to `True`): Run the permutation test.
    """
    interval = paired_bootstrap(first, second, clusters, seed=seed)
    numbers = {"difference": interval.mean, "low": interval.low, "high": interval.high}
    if with_p_value:
        numbers["p_value"] = paired_permutation(first, second, clusters, seed=seed)
    return numbers


def _numbers(result: Result, seed: int) -> dict:
    intervals = {name: [interval.low, interval.high] for name, interval in result.intervals(seed).items()}
    return {"metrics": result.metrics(), "intervals": intervals}


def _differences(first: Mapping, second: Mapping, seed: int, clusters=None) -> dict[str, dict[str, float]]:
    return {name: paired_numbers(first[name], second[name], seed, clusters) for name in first}


def _baseline(model: Result, baseline: Result, seed: int, clusters=None) -> dict:
    return {**_numbers(baseline, seed), "differences": _differences(model.values, baseline.values, seed, clusters)}
