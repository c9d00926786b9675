"""Numbers of a cross-validation: each with its interval, its ablations and what it must beat beside it."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hf_qualcode.evaluation.protocols import Slice
from hf_qualcode.evaluation.significance import Interval, bootstrap_mean, paired_bootstrap
from hf_qualcode.metrics import mean_reciprocal_rank
from hf_qualcode.quality import dimension_names
from hf_qualcode.rerank.recipe.validation import PARTS, Validation
from hf_qualcode.types import PreferencePair


# What is left out of the score -> the columns of `PARTS` that stay.
ABLATIONS = {"all": (0, 1, 2), "without model": (1, 2), "model alone": (0,), "static alone": (2,)}
_CUT = 10


def validation_report(
    results: Sequence[Validation],
    labels: Mapping[str, Any],
    slices: Sequence[Slice] = (),
    single: Mapping[str, np.ndarray] | None = None,
) -> dict:
    """The report of one or more seeds.

    Args:
        results (`Sequence[Validation]`): One a seed, of the same pairs.
        labels (`Mapping`): Submission id -> row of the data set's labels, for the slices.
        slices (`Sequence[Slice]`, *optional*): Parts of the pairs.
        single (`Mapping[str, np.ndarray]`, *optional*): Baseline -> its scores of both sides of every pair, float64
            [num_pairs, 2]; compared by half credit.

    Returns:
        `dict`: JSON-ready; `mean` of every number over the seeds under `mean`.
    """
    reports = {str(result.seed): _of_seed(result, labels, slices, single or {}) for result in results}
    return {"parts": list(PARTS), "seeds": reports, "mean": _mean(list(reports.values()))}


def _of_seed(result: Validation, labels, slices: Sequence[Slice], single: Mapping[str, np.ndarray]) -> dict:
    pairs = result.pairs
    dimension = np.array([pair.dimensions[0] for pair in pairs])
    problem = np.array([pair.problem_id for pair in pairs])
    chosen = {"all": np.ones(len(pairs), dtype=bool)}
    chosen |= {part.name: np.asarray(part.select(pairs, labels), dtype=bool) for part in slices}
    report: dict[str, Any] = {"preference": {}, "multi-condition": _triplets(result), "relevance": _relevance(result)}
    for name in dimension_names():
        own: dict[str, Any] = {}
        for part, rows in chosen.items():
            here = rows & (dimension == name)
            if here.any():
                own[part] = _preference(result, here, problem[here], single)
        report["preference"][name] = own
    return report


def _preference(result: Validation, rows: np.ndarray, problems: np.ndarray, single) -> dict:
    plain = result.conditions["plain"][rows]
    right = {name: _right(plain[:, :, columns].sum(axis=2)) for name, columns in ABLATIONS.items()}
    numbers: dict[str, Any] = {"pairs": int(rows.sum()), "problems": len(set(problems))}
    for name, values in right.items():
        numbers[name] = interval_numbers(bootstrap_mean(values, problems))
    numbers["against static"] = interval_numbers(paired_bootstrap(right["all"], right["static alone"], problems))
    full = plain.sum(axis=2)
    for name, scores in single.items():
        half = _half_credit(scores[rows])
        numbers[f"{name} (half credit)"] = float(half.mean())
        difference = paired_bootstrap(_half_credit(full), half, problems)
        numbers[f"against {name} (half credit)"] = interval_numbers(difference)
    margins = full[:, 0] - full[:, 1]
    for name, parts in result.conditions.items():
        if name == "plain":
            continue
        scores = parts[rows].sum(axis=2)
        sign = -1 if name.startswith("negated") else 1
        told = sign * (scores[:, 0] - scores[:, 1])
        numbers[name] = {
            **interval_numbers(bootstrap_mean((told > 0).astype(float), problems)),
            "same or reversed": float((told * margins > 0).mean()),
        }
    return numbers


def _triplets(result: Validation) -> dict:
    report = {}
    groups: dict[str, list[int]] = {}
    for row, pair in enumerate(result.triplets):
        groups.setdefault(f"{len(pair.dimensions)}-condition", []).append(row)
        groups.setdefault(_combination(pair), []).append(row)
    for name, rows in sorted(groups.items()):
        problems = [result.triplets[row].problem_id for row in rows]
        parts = result.triplet_parts[rows]
        report[name] = {"triplets": len(rows), "problems": len(set(problems))}
        for ablation, columns in ABLATIONS.items():
            right = _right(parts[:, :, columns].sum(axis=2))
            report[name][ablation] = interval_numbers(bootstrap_mean(right, problems))
    return report


def _combination(pair: PreferencePair) -> str:
    return "+".join(pair.dimensions)


def _relevance(result: Validation) -> dict:
    report: dict[str, Any] = {"lists": len(result.lists)}
    if not result.lists:
        return report
    problems = [each.problem_id for each in result.lists]
    cosine = _reciprocal_ranks(result.lists, result.list_cosines)
    report["cosine"] = interval_numbers(bootstrap_mean(cosine, problems))
    for name, columns in {**ABLATIONS, "relevance alone": (1,)}.items():
        ranks = _reciprocal_ranks(result.lists, [parts[:, columns].sum(axis=1) for parts in result.list_parts])
        report[name] = interval_numbers(bootstrap_mean(ranks, problems))
        if name == "all":
            report["against cosine"] = interval_numbers(paired_bootstrap(ranks, cosine, problems))
    return report


def _reciprocal_ranks(lists, scores) -> np.ndarray:
    return np.array(
        [mean_reciprocal_rank(own, np.array(each.grades), _CUT) for each, own in zip(lists, scores, strict=True)]
    )


def _right(scores: np.ndarray) -> np.ndarray:
    return (scores[:, 0] > scores[:, 1]).astype(np.float64)


def _half_credit(scores: np.ndarray) -> np.ndarray:
    return _right(scores) + (scores[:, 0] == scores[:, 1]) / 2


def interval_numbers(interval: Interval) -> dict[str, float]:
    """A mean and its interval, JSON-ready."""
    return {"value": interval.mean, "low": interval.low, "high": interval.high}


def _mean(reports: list):
    """Numbers averaged, dictionaries key by key; what only some seeds have is averaged over those."""
    first = reports[0]
    if isinstance(first, dict):
        keys = list(dict.fromkeys(key for report in reports for key in report))
        return {key: _mean([report[key] for report in reports if key in report]) for key in keys}
    return float(np.mean(reports))
