"""The numbers of a preference report: one JSON object with the keys of every `evaluate` command, and its tables.

Every interval and test draws or exchanges whole problems. `qpa` (on MC-QualCode `mca`) is strict: a tie is a miss.
Systems are compared by `half_credit`, which a rule that often ties does not lose by.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from hf_qualcode.evaluation.label_noise import label_noise
from hf_qualcode.evaluation.preference import PerturbedScores, PreferenceReportData
from hf_qualcode.evaluation.report import Table, difference_cell, mean_cell, paired_numbers
from hf_qualcode.evaluation.scoring import PairScores
from hf_qualcode.evaluation.significance import bootstrap_mean, mcnemar


# More groups than this (the combinations of MC-QualCode) are not repeated below each slice of the tables.
_MAX_GROUPS = 4


def preference_report(
    data: PreferenceReportData, *, source: str, config: Mapping[str, Any], metric: str = "qpa", seed: int = 42
) -> dict:
    """Turns scores into the form of `evaluate --json`.

    Args:
        data (`PreferenceReportData`): Of `evaluate_preference`.
        source (`str`): The data set, as the user named it.
        config (`Mapping[str, Any]`): What else decides the numbers.
        metric (`str`, *optional*, defaults to `"qpa"`): `"qpa"` or `"mca"`: the name of the strict value.
        seed (`int`, *optional*, defaults to 42): Of intervals and tests.

    Returns:
        `dict`: Keys data, config, model, metric, n, problems, metrics, intervals, baselines, by_group, slices,
        controls, label_noise, notes.
        A set of pairs has n, problems, metrics (the strict value, half_credit, ties, tie_rate, macro and
        macro_half_credit: means over problems) and intervals. A baseline adds differences (model minus baseline, with
        interval and p-value of a paired permutation) and mcnemar; in a slice it has its metrics and the difference of
        half credit. A control has the model's metrics after the change, score_change and decision_changed; one that
        should turn the order round has flip_rate (strict), flip_rate_with_ties, exchanged (positives and negatives
        exchanged) and turns_round.
    """
    numbers = _Numbers(data, metric, seed)
    everything = np.ones(len(data.pairs), dtype=bool)
    groups = data.groups()
    return {
        "data": source,
        "config": dict(config),
        "model": data.name,
        "metric": metric,
        **numbers.of_model(everything, with_macro=True),
        "baselines": numbers.of_baselines(everything, in_full=True),
        "by_group": {
            name: {**numbers.of_model(rows, with_macro=True), "baselines": numbers.of_baselines(rows, in_full=True)}
            for name, rows in groups.items()
        },
        "slices": {
            name: {
                "description": part.description,
                **numbers.of_model(part.rows),
                "baselines": numbers.of_baselines(part.rows),
                "by_group": {
                    group: {**numbers.of_model(part.rows & rows), "baselines": numbers.means(part.rows & rows)}
                    for group, rows in groups.items()
                }
                if len(groups) > 1
                else {},
            }
            for name, part in data.slices.items()
        },
        "controls": {
            name: {
                **numbers.of_control(changed, everything),
                "by_group": {group: numbers.of_control(changed, rows) for group, rows in groups.items()}
                if len(groups) > 1
                else {},
            }
            for name, changed in data.perturbations.items()
        },
        "label_noise": label_noise(data.labels, seed),
        "notes": list(data.notes),
    }


class _Numbers:
    def __init__(self, data: PreferenceReportData, metric: str, seed: int):
        self._data, self._metric, self._seed = data, metric, seed
        self._problem_ids = data.problem_ids

    def of_model(self, rows: np.ndarray, with_macro: bool = False) -> dict:
        """n, problems, metrics and intervals of the model on some pairs."""
        counts = {"n": int(rows.sum()), "problems": len(np.unique(self._problem_ids[rows]))}
        return {**counts, **self._of(self._data.scores, rows, with_macro)}

    def of_baselines(self, rows: np.ndarray, in_full: bool = False) -> dict[str, dict]:
        """Each baseline on the same pairs, and the model's difference to it."""
        return {name: self._of_baseline(scores, rows, in_full) for name, scores in self._data.baselines.items()}

    def means(self, rows: np.ndarray) -> dict[str, dict]:
        """Each baseline's means alone."""
        return {name: {"metrics": self._metrics(scores, rows)} for name, scores in self._data.baselines.items()}

    def of_control(self, changed: PerturbedScores, rows: np.ndarray) -> dict:
        """What the model does after a change to its input."""
        before, after = self._data.scores, changed.scores
        moves = np.concatenate([(after.positive - before.positive)[rows], (after.negative - before.negative)[rows]])
        spread = float(np.std(np.concatenate([before.positive[rows], before.negative[rows]])))
        old, new = np.sign(before.margins[rows]), np.sign(after.margins[rows])
        numbers = {
            "description": changed.description, "expected": changed.expected, "n": int(rows.sum()),
            "changed_inputs": int(changed.changed[rows].sum()), **self._of(after, rows),
            "score_change": {
                "mean": float(np.abs(moves).mean()),
                "in_standard_deviations": float(np.abs(moves).mean() / spread) if spread > 0 else None,
            },
            "decision_changed": float(np.mean(old != new)),
        }  # fmt: skip
        if changed.expected == "reversed":
            exchanged = PairScores(after.negative, after.positive)
            numbers["flip_rate"] = float(np.mean(old * new < 0))
            # A tie on either side counts: an upper bound for a model whose scores are coarse.
            numbers["flip_rate_with_ties"] = float(np.mean(old * new <= 0))
            numbers["exchanged"] = self._of(exchanged, rows)
            numbers["turns_round"] = numbers["exchanged"]["intervals"][self._metric][0] > 0.5
        return numbers

    def _of(self, scores: PairScores, rows: np.ndarray, with_macro: bool = False) -> dict:
        if not rows.any():
            return {"metrics": {}, "intervals": {}}
        problems = self._problem_ids[rows]
        intervals = {
            self._metric: bootstrap_mean(scores.right[rows], problems, seed=self._seed),
            "half_credit": bootstrap_mean(scores.half_credit[rows], problems, seed=self._seed),
        }
        if with_macro:
            for name, values in (("macro", scores.right), ("macro_half_credit", scores.half_credit)):
                intervals[name] = bootstrap_mean(_problem_means(values[rows], problems), seed=self._seed)
        return {
            "metrics": {
                **{name: interval.mean for name, interval in intervals.items()}, **_ties(scores.ties[rows])
            },
            "intervals": {name: [interval.low, interval.high] for name, interval in intervals.items()},
        }  # fmt: skip

    def _metrics(self, scores: PairScores, rows: np.ndarray) -> dict:
        if not rows.any():
            return {}
        means = {self._metric: float(scores.right[rows].mean()), "half_credit": float(scores.half_credit[rows].mean())}
        return {**means, **_ties(scores.ties[rows])}

    def _of_baseline(self, scores: PairScores, rows: np.ndarray, in_full: bool) -> dict:
        if not rows.any():
            return {"metrics": {}, "differences": {}}
        model, problems = self._data.scores, self._problem_ids[rows]

        def difference(ours: np.ndarray, theirs: np.ndarray) -> dict:
            return paired_numbers(ours[rows], theirs[rows], self._seed, problems, with_p_value=in_full)

        half_credit = difference(model.half_credit, scores.half_credit)
        if not in_full:
            return {"metrics": self._metrics(scores, rows), "differences": {"half_credit": half_credit}}
        strict = difference(model.right, scores.right)
        return {
            **self._of(scores, rows, with_macro=True),
            "differences": {self._metric: strict, "half_credit": half_credit},
            "mcnemar": mcnemar(model.right[rows], scores.right[rows])._asdict(),
        }


def _problem_means(values: np.ndarray, problems: np.ndarray) -> np.ndarray:
    _, labels = np.unique(problems, return_inverse=True)
    return np.bincount(labels, values) / np.bincount(labels)


def _ties(ties: np.ndarray) -> dict:
    return {"ties": int(ties.sum()), "tie_rate": float(ties.mean())}


def preference_tables(report: Mapping) -> list[Table]:
    """A preference report for people: systems, groups, slices, controls, label noise; empty parts are left out."""
    tables = [_systems(report), _groups(report), _slices(report), _controls(report), *_noise(report)]
    return [table for table in tables if len(table.rows) > 1]


def _systems(report: Mapping) -> Table:
    metric = report["metric"]
    rows = [["", metric.upper(), "half credit", "ties", "macro", "model minus it (half credit)", "p"]]
    for name, numbers in ((report["model"], report), *report["baselines"].items()):
        cells = [mean_cell(numbers, metric), mean_cell(numbers, "half_credit"), _share(numbers["metrics"]["tie_rate"])]
        row = [name, *cells, f"{numbers['metrics']['macro']:.3f}", "", ""]
        if "differences" in numbers:
            difference = numbers["differences"]["half_credit"]
            row[-2:] = [difference_cell(difference), f"{difference['p_value']:.4f}"]
        rows.append(row)
    config = ", ".join(f"{key} {value}" for key, value in report["config"].items())
    title = f"{report['data']} ({config}), {report['n']} pairs of {report['problems']} problems, 95 % intervals"
    return Table(title, rows, "; ".join(report["notes"]))


def _groups(report: Mapping) -> Table:
    groups = report["by_group"]
    rows = [["", *(f"{name} ({numbers['n']})" for name, numbers in groups.items())]]
    if len(groups) > 1:
        rows.append([report["model"], *(_both(numbers, report["metric"]) for numbers in groups.values())])
        for baseline in report["baselines"]:
            cells = (_both(numbers["baselines"][baseline], report["metric"]) for numbers in groups.values())
            rows.append([baseline, *cells])
    return Table(f"{report['metric'].upper()} / half credit by group (pairs)", rows)


def _slices(report: Mapping) -> Table:
    metric = report["metric"]
    rows = [["slice", "pairs", "problems", metric.upper(), "half credit", "best baseline", "model minus it"]]
    for name, part in report["slices"].items():
        rows.append([name, *_slice_cells(part, metric)])
        rows += [[f"  {group}", *_slice_cells(numbers, metric)] for group, numbers in _few(part["by_group"]).items()]
    return Table("slices; the best baseline by half credit", rows)


def _slice_cells(part: Mapping, metric: str) -> list[str]:
    counts = [str(part["n"]), str(part["problems"])]
    if not part["n"]:
        return [*counts, "", "", "", ""]
    cells = [*counts, mean_cell(part, metric), mean_cell(part, "half_credit")]
    baselines = {name: numbers["metrics"]["half_credit"] for name, numbers in part["baselines"].items()}
    if not baselines:
        return [*cells, "", ""]
    best = max(baselines, key=baselines.get)
    differences = part["baselines"][best].get("differences")
    difference = difference_cell(differences["half_credit"]) if differences else ""
    return [*cells, f"{best} {baselines[best]:.3f}", difference]


def _controls(report: Mapping) -> Table:
    metric = report["metric"]
    rows = [["control", metric.upper(), "decisions changed", "score change (sd)", "turns round"]]
    for name, control in report["controls"].items():
        groups = _few(control["by_group"]) if control["expected"] == "reversed" else {}
        for group, numbers in (("", control), *groups.items()):
            change = numbers["score_change"]["in_standard_deviations"]
            row = [
                f"  {group}" if group else name,
                mean_cell(numbers, metric),
                _share(numbers["decision_changed"]),
                "" if change is None else f"{change:.2f}",
                "",
            ]
            if numbers["expected"] == "reversed":
                verdict = "yes" if numbers["turns_round"] else "no"
                flips = f"flips {_share(numbers['flip_rate'])}, with ties {_share(numbers['flip_rate_with_ties'])}"
                row[-1] = f"{verdict}: exchanged {mean_cell(numbers['exchanged'], metric)}, {flips}"
            rows.append(row)
    note = ""
    if any(control["expected"] == "reversed" for control in report["controls"].values()):
        note = (
            "turns round: under the negated instruction, with positives and negatives exchanged, the interval of "
            f"{metric.upper()} lies above 0.5. Read it beside the flips: a model that ignores the instruction flips "
            "nothing, and gets a yes all the same where it prefers the worse programs anyhow"
        )
    return Table("controls: the model after a change to its input", rows, note)


def _noise(report: Mapping) -> list[Table]:
    apart = "differ by more than a factor of 2"
    same = [["same code, measured twice", "pairs", "groups", "problems", apart, "median ratio"]]
    for name, numbers in report["label_noise"]["same_code"].items():
        counts = [str(numbers[key]) for key in ("pairs", "groups", "problems")]
        share = _interval(numbers["differ_by_2"], numbers["interval"])
        same.append([name, *counts, share, f"{numbers['median_ratio']:.2f}"])
    again = [["re-measured", "factor", "pairs", "problems", "agree", "contradict"]]
    for name, factors in report["label_noise"]["remeasured"].items():
        for factor, numbers in factors.items():
            agree = _interval(numbers["agree"], numbers["interval"])
            counts = [factor, str(numbers["pairs"]), str(numbers["problems"])]
            again.append([name, *counts, agree, _share(numbers["contradict"])])
    return [
        Table("label noise: programs equal but for names, comments and layout", same),
        Table("label noise: does a repeated measurement order pairs as the judge's does?", again),
    ]


def _few(groups: Mapping) -> Mapping:
    """Groups that a table has room for; all are in the JSON."""
    return groups if len(groups) <= _MAX_GROUPS else {}


def _both(numbers: Mapping, metric: str) -> str:
    return f"{numbers['metrics'][metric]:.3f} / {numbers['metrics']['half_credit']:.3f}"


def _share(value: float) -> str:
    return f"{100 * value:.1f} %"


def _interval(value: float, interval) -> str:
    return f"{value:.3f} [{interval[0]:.3f}, {interval[1]:.3f}]"
