"""Metrics as pure functions: of one ranked list (scores and grades), and of pairs with a better and a worse side.

A list's order must not decide where a scorer did not: documents with equal scores are worth what they are worth on
average over every order of them. Each function computes that expectation in closed form.

All functions take 1-D arrays in any order. A grade above 0 is relevant. A list without a relevant document scores 0.
Infinite scores are scores: they compare as numbers do, and two equal ones are tied. NaN is an error.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from hf_qualcode.resampling import cluster_sums, percentile_interval


@dataclass(frozen=True)
class PreferenceResult:
    """How often the better of two programs got the higher score.

    Attributes:
        accuracy (`float`): Share of pairs with positive > negative, strictly: a tie is a miss. QPA, and on MC-QualCode
            MCA.
        ties (`int`): Pairs with equal scores.
        tie_rate (`float`): Their share.
        half_credit (`float`): As `accuracy`, a tie counting one half: the expectation when ties are broken at random.
        n (`int`): Pairs.
        ci_low, ci_high (`float`): 95 % interval of `accuracy`.
        by_group (`Mapping[str, PreferenceResult]`): One result a group, sorted by name; empty without groups.
    """

    accuracy: float
    ties: int
    tie_rate: float
    half_credit: float
    n: int
    ci_low: float
    ci_high: float
    by_group: Mapping[str, "PreferenceResult"] = field(default_factory=dict)


def quality_preference_accuracy(
    positive_scores, negative_scores, problem_ids=None, groups=None, seed: int = 42, num_resamples: int = 10_000
) -> PreferenceResult:
    """Quality preference accuracy: the share of pairs whose positive program has the strictly higher score.

    Args:
        positive_scores, negative_scores (`array-like`): [n], compared as float64, pair by pair.
        problem_ids (`array-like`, *optional*):
            [n], labels of any one type. Pairs of one problem are not independent: with ids the bootstrap draws whole
            problems.
        groups (`array-like`, *optional*): [n], labels, for example dimensions; each group gets its own result.
        seed (`int`, *optional*, defaults to 42): Of the bootstrap; equal seeds give equal intervals.
        num_resamples (`int`, *optional*, defaults to 10,000): Resamples of the percentile bootstrap.

    Returns:
        `PreferenceResult`: Strict value, ties, half credit and interval.

    Raises:
        `ValueError`: On unequal lengths, no pairs, NaN, or labels that are missing or of another length.
    """
    positive, negative = check_scores(positive_scores, negative_scores)
    problem_ids = check_labels("problem_ids", problem_ids, positive)
    groups = check_labels("groups", groups, positive)
    parts = {}
    for name in [] if groups is None else np.unique(groups).tolist():
        rows = groups == name
        ids = None if problem_ids is None else problem_ids[rows]
        parts[str(name)] = PreferenceResult(**preference(positive[rows], negative[rows], ids, seed, num_resamples))
    return PreferenceResult(**preference(positive, negative, problem_ids, seed, num_resamples), by_group=parts)


# The three functions from here on, and those of `resampling`, are also in `metrics/qpa` and `metrics/mca`, which
# import nothing of this package; a test holds the copies equal.
def check_scores(positive_scores, negative_scores) -> tuple[np.ndarray, np.ndarray]:
    """Both sides as float64 [n]; a `ValueError` where they cannot be compared pair by pair."""
    positive, negative = np.asarray(positive_scores, np.float64), np.asarray(negative_scores, np.float64)
    if positive.ndim != 1 or positive.shape != negative.shape:
        raise ValueError(
            f"positive_scores has shape {positive.shape} and negative_scores {negative.shape}; "
            "expected two 1-D lists of equal length."
        )
    if not len(positive):
        raise ValueError("positive_scores and negative_scores are empty; at least one pair is needed.")
    for name, scores in (("positive_scores", positive), ("negative_scores", negative)):
        if np.isnan(scores).any():
            raise ValueError(f"{name} holds NaN at position {int(np.flatnonzero(np.isnan(scores))[0])}.")
    return positive, negative


def check_labels(name: str, labels, scores: np.ndarray) -> np.ndarray | None:
    """Labels as an array [n] that can be sorted; a `ValueError` where one is missing."""
    if labels is None:
        return None
    labels = np.asarray(labels)
    if labels.shape != scores.shape:
        raise ValueError(f"{name} has shape {labels.shape}; expected one label for each of {len(scores)} pairs.")
    missing = [i for i, label in enumerate(labels.tolist()) if label is None or label != label]
    if missing:
        raise ValueError(f"{name} holds no label at position {missing[0]}.")
    return labels.astype(str) if labels.dtype == object else labels


def preference(positive: np.ndarray, negative: np.ndarray, problem_ids, seed: int, num_resamples: int) -> dict:
    """The numbers of one set of pairs, as keyword arguments of `PreferenceResult`."""
    if num_resamples < 1:
        raise ValueError(f"num_resamples is {num_resamples}; expected 1 or more.")
    right, ties = (positive > negative).astype(np.float64), int(np.sum(positive == negative))
    accuracy, n = float(right.mean()), len(right)
    sums, sizes = cluster_sums(right, problem_ids)
    low, high = percentile_interval(sums, sizes, num_resamples=num_resamples, seed=seed)
    return {
        "accuracy": accuracy, "ties": ties, "tie_rate": ties / n, "half_credit": (float(right.sum()) + ties / 2) / n,
        "n": n, "ci_low": low, "ci_high": high,
    }  # fmt: skip


class _TieGroups(NamedTuple):
    """Runs of equal scores, best first.

    Attributes:
        starts (`np.ndarray`): int64 [num_groups], how many documents stand before the group.
        sizes (`np.ndarray`): int64 [num_groups].
        grades (`np.ndarray`): float64 [list], sorted like the documents.
    """

    starts: np.ndarray
    sizes: np.ndarray
    grades: np.ndarray

    def sums(self, values: np.ndarray) -> np.ndarray:
        return np.add.reduceat(values, self.starts) if len(self.starts) else np.empty(0)


def mean_reciprocal_rank(scores, grades, k: int | None = None) -> float:
    """Expected reciprocal rank of the first relevant document: E[1 / rank], 0 beyond `k`.

    In a group of n tied documents, r of them relevant, with only irrelevant documents before it, the first
    relevant one stands at place p of the group with probability C(n - p, r - 1) / C(n, r).

    Args:
        scores (`array-like`): [list], higher is better.
        grades (`array-like`): [list], 0 or more.
        k (`int`, *optional*): Cut; the whole list when absent.

    Returns:
        `float`: In [0, 1].

    Raises:
        `ValueError`: On unequal lengths, an empty list, NaN, a negative grade or `k` below 1.
    """
    groups, k = _tie_groups(scores, grades, k)
    relevant = groups.sums((groups.grades > 0).astype(float))
    if not relevant.any():
        return 0.0
    first = int(np.argmax(relevant > 0))
    above, size, num_relevant = int(groups.starts[first]), int(groups.sizes[first]), int(relevant[first])
    places = np.arange(1, min(size - num_relevant + 1, k - above) + 1)
    # P(first at p + 1) / P(first at p) = (n - p - r + 1) / (n - p)
    ratios = (size - places - num_relevant + 1) / np.maximum(size - places, 1)
    probabilities = num_relevant / size * np.concatenate([[1.0], np.cumprod(ratios)])[: len(places)]
    return float(np.sum(probabilities / (above + places)))


def ndcg(scores, grades, k: int | None = None) -> float:
    """Expected normalised discounted cumulative gain, with gain 2^grade - 1 and discount 1 / log2(1 + rank).

    Args:
        scores (`array-like`): [list], higher is better.
        grades (`array-like`): [list], 0 or more.
        k (`int`, *optional*): Cut, of the ideal order too; the whole list when absent.

    Returns:
        `float`: In [0, 1].

    Raises:
        `ValueError`: On unequal lengths, an empty list, NaN, a negative grade or `k` below 1.
    """
    groups, k = _tie_groups(scores, grades, k)
    gains = np.exp2(groups.grades) - 1
    discounts = 1 / np.log2(np.arange(2, len(gains) + 2))
    discounts[k:] = 0
    ideal = float(np.sort(gains)[::-1] @ discounts)
    # Every member of a group is equally likely at each of the group's places.
    expected = float(np.sum(groups.sums(gains) / groups.sizes * groups.sums(discounts)))
    return expected / ideal if ideal > 0 else 0.0


def hit_at_k(scores, grades, k: int) -> float:
    """Probability that at least one relevant document is among the first `k`.

    Where the cut leaves m places to a group of n tied documents, r of them relevant, it is 1 - C(n - r, m) / C(n, m).

    Args:
        scores (`array-like`): [list], higher is better.
        grades (`array-like`): [list], 0 or more.
        k (`int`): Cut.

    Returns:
        `float`: In [0, 1].

    Raises:
        `ValueError`: On unequal lengths, an empty list, NaN, a negative grade or `k` below 1.
    """
    groups, k = _tie_groups(scores, grades, k)
    relevant = groups.sums((groups.grades > 0).astype(float))
    places = np.clip(k - groups.starts, 0, groups.sizes)
    miss = 1.0
    for i in np.flatnonzero((relevant > 0) & (places > 0)):
        size, num_relevant, num_places = groups.sizes[i], relevant[i], places[i]
        # Over the r relevant documents one by one: each falls outside the cut given that those before it did.
        left = size - np.arange(num_relevant)
        miss *= float(np.prod(np.maximum(left - num_places, 0) / left))
    return 1.0 - miss


def recall_at_k(scores, grades, k: int, num_relevant: int | None = None) -> float:
    """Expected share of the relevant documents that is among the first `k`.

    Args:
        scores (`array-like`): [list], higher is better.
        grades (`array-like`): [list], 0 or more.
        k (`int`): Cut.
        num_relevant (`int`, *optional*):
            How many relevant documents there are in all, when the list does not hold every one; those in the list when
            absent.

    Returns:
        `float`: In [0, 1].

    Raises:
        `ValueError`: On unequal lengths, an empty list, NaN, a negative grade, `k` below 1, or `num_relevant` below
            what the list holds.
    """
    groups, k = _tie_groups(scores, grades, k)
    relevant = groups.sums((groups.grades > 0).astype(float))
    in_list = int(relevant.sum())
    total = in_list if num_relevant is None else num_relevant
    if total < in_list:
        raise ValueError(f"num_relevant is {num_relevant}, but the list itself holds {in_list} relevant documents.")
    if total == 0:
        return 0.0
    places = np.clip(k - groups.starts, 0, groups.sizes)
    return float(np.sum(relevant * places / groups.sizes)) / total


def _tie_groups(scores, grades, k: int | None) -> tuple[_TieGroups, int]:
    scores, grades = np.asarray(scores, dtype=np.float64), np.asarray(grades, dtype=np.float64)
    if scores.ndim != 1 or grades.ndim != 1 or len(scores) != len(grades):
        raise ValueError(
            f"scores has shape {scores.shape} and grades {grades.shape}; expected two 1-D arrays of equal length."
        )
    if len(scores) == 0:
        raise ValueError("The list is empty; a metric needs at least one document.")
    for name, values in (("scores", scores), ("grades", grades)):
        if np.isnan(values).any():
            raise ValueError(f"{name} holds NaN at position {int(np.flatnonzero(np.isnan(values))[0])}.")
    if (grades < 0).any():
        raise ValueError(f"grades holds {grades.min():g}; expected 0 (not relevant) or more. Remove padding first.")
    if k is not None and k < 1:
        raise ValueError(f"k is {k}; expected 1 or more.")
    order = np.argsort(-scores, kind="stable")
    ranked = scores[order]
    starts = np.flatnonzero(np.concatenate([[True], ranked[1:] != ranked[:-1]]))
    sizes = np.diff(starts, append=len(ranked))
    return _TieGroups(starts, sizes, grades[order]), len(ranked) if k is None else min(k, len(ranked))
