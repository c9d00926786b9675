"""How far labels can be trusted: a scorer that reads code cannot agree with them more often than they agree with
themselves."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from hf_qualcode.evaluation.significance import bootstrap_mean


# Dimension -> field of the judge's measurement, field of the repeated one, in a row of the data set's labels.
FIELDS = {
    "speed": ("cpu_time", "remeasured_speed"),
    "memory": ("memory", "remeasured_memory"),
    "maintainability": ("smells", None),
}
FACTORS = (2, 3, 5)
# Of a problem with more programs than this, evenly spread ones are compared: n programs make n^2 / 2 pairs.
_MAX_PROGRAMS = 300


def label_noise(labels: Mapping[str, Any], seed: int = 42) -> dict:
    """Compares labels of programs that cannot differ, and labels of one program that were measured twice.

    Args:
        labels (`Mapping[str, Any]`): Submission id -> row with the columns of the data set's `labels` config.
        seed (`int`, *optional*, defaults to 42): Of the intervals, which draw whole problems.

    Returns:
        `dict`: `same_code`: per dimension, of the pairs of programs of one problem with equal normal form, the share
        whose measurements differ by more than a factor of 2, which is what makes a pair of the benchmark.
        `remeasured`: per dimension and factor, of the pairs of programs of one problem whose judge measurements differ
        by more than that factor, the share that the repeated measurement orders alike (`agree`) or the other way round
        (`contradict`). Empty where there is nothing to compare.
    """
    rows = sorted(
        ((str(_field(row, "problem_id")), str(submission), row) for submission, row in labels.items()),
        key=lambda entry: entry[:2],
    )
    by_problem: dict[str, list] = {}
    for problem_id, _, row in rows:
        by_problem.setdefault(problem_id, []).append(row)
    same_code = {name: _same_code(by_problem, name, seed) for name in FIELDS}
    remeasured = {name: _remeasured(by_problem, name, seed) for name in FIELDS}
    return {
        "same_code": {name: numbers for name, numbers in same_code.items() if numbers},
        "remeasured": {name: numbers for name, numbers in remeasured.items() if numbers},
    }


def _same_code(by_problem: Mapping[str, list], dimension: str, seed: int) -> dict | None:
    field = FIELDS[dimension][0]
    ratios, problems, num_groups = [], [], 0
    for problem_id, rows in by_problem.items():
        groups: dict[str, list[float]] = {}
        for row in rows:
            value, fingerprint = _value(row, field, dimension), _field(row, "fingerprint")
            if value is not None and fingerprint:
                groups.setdefault(fingerprint, []).append(value)
        for values in groups.values():
            if len(values) > 1:
                num_groups += 1
                first, second = np.array(_thinned(values))[np.stack(np.triu_indices(len(_thinned(values)), 1))]
                ratios.append(np.maximum(first, second) / np.minimum(first, second))
                problems += [problem_id] * len(first)
    if not ratios:
        return None
    ratios = np.concatenate(ratios)
    share = bootstrap_mean(ratios > 2, problems, seed=seed)
    return {
        "groups": num_groups, "pairs": len(ratios), "problems": len(set(problems)),
        "median_ratio": float(np.median(ratios)), "differ_by_2": share.mean, "interval": [share.low, share.high],
    }  # fmt: skip


def _remeasured(by_problem: Mapping[str, list], dimension: str, seed: int) -> dict[str, dict] | None:
    field, repeated_field = FIELDS[dimension]
    if repeated_field is None:
        return None
    ratios, signs, problems = [], [], []
    for problem_id, rows in by_problem.items():
        both = [(_value(row, field, dimension), _value(row, repeated_field, dimension)) for row in rows]
        both = [pair for pair in both if None not in pair]
        if len(both) < 2:
            continue
        judge, repeated = np.array(_thinned(both)).T
        first, second = np.triu_indices(len(judge), 1)
        ratios.append(np.maximum(judge[first], judge[second]) / np.minimum(judge[first], judge[second]))
        signs.append(np.sign(judge[first] - judge[second]) * np.sign(repeated[first] - repeated[second]))
        problems.append(np.full(len(first), problem_id))
    if not ratios:
        return None
    ratios, signs, problems = map(np.concatenate, (ratios, signs, problems))
    numbers = {}
    for factor in FACTORS:
        chosen = ratios > factor  # strictly, as the rule of the pairs and the slices
        if chosen.any():
            agree = bootstrap_mean(signs[chosen] > 0, problems[chosen], seed=seed)
            numbers[str(factor)] = {
                "pairs": int(chosen.sum()), "problems": len(np.unique(problems[chosen])), "agree": agree.mean,
                "interval": [agree.low, agree.high], "contradict": float(np.mean(signs[chosen] < 0)),
            }  # fmt: skip
    return numbers or None


def _thinned(values: list) -> list:
    if len(values) <= _MAX_PROGRAMS:
        return values
    return [values[i] for i in np.linspace(0, len(values) - 1, _MAX_PROGRAMS).astype(int)]


def _value(row: Any, field: str, dimension: str) -> float | None:
    """A measurement that ratios can be made of, `None` where there is none."""
    value = _field(row, field)
    if value is None:
        return None
    # Smells may be 0; factors on them are taken on smells + 1.
    value = float(value) + (dimension == "maintainability")
    return value if value > 0 and np.isfinite(value) else None


def _field(row: Any, name: str) -> Any:
    return row.get(name) if isinstance(row, Mapping) else getattr(row, name, None)
