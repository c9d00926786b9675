"""Two systems on the same pairs: is one better, and where does the second get right what the first gets wrong?"""

from collections.abc import Mapping, Sequence

import numpy as np

from hf_qualcode.evaluation.report import Table, clusters_of, difference_cell, paired_numbers, paired_rows
from hf_qualcode.evaluation.score_files import scale_of_rows
from hf_qualcode.evaluation.scoring import PairScores
from hf_qualcode.evaluation.significance import mcnemar
from hf_qualcode.types import PreferencePair


_EXCERPT_LINES = 12
_EXCERPT_CHARACTERS = 300


def compare_preferences(
    first_name: str,
    first: Sequence[Mapping],
    second_name: str,
    second: Sequence[Mapping],
    *,
    num_cases: int = 0,
    pairs: Sequence[PreferencePair] = (),
    seed: int = 42,
) -> dict:
    """Compares two result files on the same pairs, pair by pair.

    Args:
        first_name, second_name (`str`): For messages and the report.
        first, second (`Sequence[Mapping]`): Rows of `read_pair_rows`, in any order.
        num_cases (`int`, *optional*, defaults to 0):
            So many pairs that the second gets right and the first wrong are listed, those with the largest gain first.
        pairs (`Sequence[PreferencePair]`, *optional*): The data set, for the texts of the cases.
        seed (`int`, *optional*, defaults to 42): Of intervals and the permutation test, which draw whole problems.

    Returns:
        `dict`: Keys compare, n, metrics (strict and half_credit: first, second, difference = first minus second, low,
        high, p_value), mcnemar, by_group (the same by dimension), margins (what the margins of cases are, for first
        and second) and cases.

    Raises:
        `QualcodeError`: When the two do not hold the same pairs.
    """
    rows, ids = paired_rows(first_name, first, second_name, second, "pairs")
    ordered = [[side[name] for name in ids] for side in rows.values()]
    scores = [_scores(side) for side in ordered]
    clusters = clusters_of(ordered[0]) or clusters_of(ordered[1])
    clusters = None if clusters is None else np.array(clusters)
    dimensions = np.array([str(a.get("dimension") or b.get("dimension") or "") for a, b in zip(*ordered, strict=True)])
    groups = {name: dimensions == name for name in dict.fromkeys(dimensions.tolist()) if name}
    everything = np.ones(len(ids), dtype=bool)
    report = {
        "compare": [first_name, second_name],
        **_numbers(*scores, everything, clusters, seed),
        "by_group": {name: _numbers(*scores, chosen, clusters, seed) for name, chosen in groups.items()},
        "margins": {name: _margin_kind(side) for name, side in zip(rows, scores, strict=True)},
    }
    if num_cases:
        report["cases"] = _cases(ordered, scores, num_cases, {pair.id: pair for pair in pairs})
    return report


def _scores(rows: Sequence[Mapping]) -> PairScores:
    positive, negative = (np.array([float(row[f"{side}_score"]) for row in rows]) for side in ("positive", "negative"))
    return PairScores(positive, negative, scale_of_rows(rows))


def _numbers(first: PairScores, second: PairScores, chosen: np.ndarray, clusters, seed: int) -> dict:
    clusters = None if clusters is None else clusters[chosen]
    metrics = {}
    for name, ours, theirs in (
        ("strict", first.right, second.right), ("half_credit", first.half_credit, second.half_credit)
    ):  # fmt: skip
        means = {"first": float(ours[chosen].mean()), "second": float(theirs[chosen].mean())}
        metrics[name] = {**means, **paired_numbers(ours[chosen], theirs[chosen], seed, clusters)}
    return {
        "n": int(chosen.sum()),
        "problems": None if clusters is None else len(np.unique(clusters)),
        "metrics": metrics,
        "mcnemar": mcnemar(first.right[chosen], second.right[chosen])._asdict(),
    }


def _margin_kind(scores: PairScores) -> str:
    return "probability" if scores.scale else "score"


def _margins(scores: PairScores) -> np.ndarray:
    """Positive minus negative, in probability (the paper's Eq. 1) where the scores are log-odds."""
    if scores.scale:
        return _sigmoid(scores.positive) - _sigmoid(scores.negative)
    return scores.margins


def _sigmoid(scores: np.ndarray) -> np.ndarray:
    return 0.5 * (1 + np.tanh(scores / 2))  # never overflows


def _cases(ordered: Sequence[Sequence[Mapping]], scores: Sequence[PairScores], limit: int, pairs: Mapping) -> list:
    margins = [_margins(side) for side in scores]
    # Probabilities are comparable as they are; other scores only once each system's own spread is taken out.
    comparable = [
        values if side.scale else values / (np.std(values) or 1.0)
        for values, side in zip(margins, scores, strict=True)
    ]
    gains = comparable[1] - comparable[0]
    corrected = np.flatnonzero((scores[0].right == 0) & (scores[1].right == 1))
    cases = []
    for row in corrected[np.argsort(-gains[corrected], kind="stable")][:limit]:
        known = {**ordered[1][row], **ordered[0][row]}
        case = {
            "id": known["id"],
            **{
                name: known.get(name, "")
                for name in ("problem_id", "dimension", "missing_dimension", "positive_id", "negative_id")
            },
            "first_margin": float(margins[0][row]),
            "second_margin": float(margins[1][row]),
        }
        pair = pairs.get(known["id"])
        if pair is not None:
            case.update(
                instruction=pair.instruction,
                query=_shortened(pair.query),
                positive=_excerpt(pair.positive),
                negative=_excerpt(pair.negative),
                positive_value=pair.positive_value,
                negative_value=pair.negative_value,
            )
        cases.append(case)
    return cases


def _shortened(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _EXCERPT_CHARACTERS else text[: _EXCERPT_CHARACTERS - 3] + "..."


def _excerpt(code: str) -> str:
    lines = [line.rstrip()[:119] for line in code.splitlines() if line.strip()]
    left_out = len(lines) - _EXCERPT_LINES
    return "\n".join(lines[:_EXCERPT_LINES] + ([f"... {left_out} more lines"] if left_out > 0 else []))


def comparison_tables(report: Mapping) -> list[Table]:
    """A comparison as a table of metrics."""
    rows = [["", "first", "second", "first minus second", "p (permutation)", "p (exact McNemar)"]]
    for group, numbers in (("", report), *report["by_group"].items()):
        if group and len(report["by_group"]) < 2:
            continue
        for name, values in numbers["metrics"].items():
            label = f"{name.replace('_', ' ')}{f', {group}' if group else ''}"
            cells = [f"{values['first']:.3f}", f"{values['second']:.3f}", difference_cell(values)]
            test = f"{numbers['mcnemar']['p_value']:.4f}" if name == "strict" else ""
            rows.append([label, *cells, f"{values['p_value']:.4f}", test])
    first, second = report["compare"]
    counts = report["mcnemar"]
    note = f"{counts['only_first']} pairs right in the first only, {counts['only_second']} in the second only"
    known = report["problems"] is not None
    clusters = f"of {report['problems']} problems" if known else "(no problem ids: pairs are drawn one by one)"
    return [Table(f"first {first}, second {second}, {report['n']} pairs {clusters}", rows, note)]


def cases_text(report: Mapping) -> str:
    """The cases for people: ids, both margins, and the code where the data set was given."""
    kinds = report["margins"]
    lines = [f"{len(report['cases'])} pairs that the second gets right and the first wrong, largest gain first"]
    if set(kinds.values()) == {"probability"}:
        lines.append("margins are differences of probabilities, sigmoid(score)")
    else:
        raw = " and ".join(name for name, kind in kinds.items() if kind == "score")
        lines.append(f"the scores of the {raw} system are not known to be log-odds: those margins are of raw scores")
    for number, case in enumerate(report["cases"], start=1):
        # Ids come from files: each stays on its line.
        name, problem, dimension, lacks = (
            " ".join(str(case[key] or "").split()) for key in ("id", "problem_id", "dimension", "missing_dimension")
        )
        missing = f", lacks {lacks}" if lacks else ""
        lines += [
            "",
            f"{number}. {name}  (problem {problem or '?'}, {dimension or '?'}{missing})",
            f"   margin first {case['first_margin']:+.4g}, second {case['second_margin']:+.4g}",
        ]
        if "positive" in case:
            lines.append(f"   {case['instruction']}: {case['query']}")
            for side in ("positive", "negative"):
                value = case[f"{side}_value"]
                lines.append(f"   --- {side}" + ("" if value is None else f", measured {value:g}"))
                lines += [f"   {line}" for line in case[side].splitlines()]
    return "\n".join(lines) + "\n"
