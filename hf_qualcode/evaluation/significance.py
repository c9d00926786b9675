"""Intervals and tests over per-item results: how sure is a mean, and is a difference more than chance.

Items that belong together (pairs of one problem, variants of one task) are not independent. Where `clusters` is given,
whole clusters are resampled or exchanged, and the mean stays the mean over items.
"""

from typing import NamedTuple

import numpy as np

from hf_qualcode.resampling import cluster_sums, percentile_interval


_BLOCK = 4_000_000  # Draws held at once: 32 MB.
_EXACT_LIMIT = 12  # Non-zero differences up to which all 2^n exchanges are tried.


class Interval(NamedTuple):
    """A mean and its confidence interval."""

    mean: float
    low: float
    high: float


class McNemarResult(NamedTuple):
    """Exact McNemar test of two yes/no results on the same items.

    Attributes:
        only_first (`int`): Items that only the first got right.
        only_second (`int`): Items that only the second got right.
        p_value (`float`): Two-sided.
    """

    only_first: int
    only_second: int
    p_value: float


def bootstrap_mean(
    values, clusters=None, *, num_resamples: int = 10_000, seed: int = 42, level: float = 0.95
) -> Interval:
    """Percentile bootstrap interval of a mean.

    Args:
        values (`array-like`): [n].
        clusters (`array-like`, *optional*): [n], labels of any type.
        num_resamples (`int`, *optional*, defaults to 10,000): Resamples.
        seed (`int`, *optional*, defaults to 42): Equal seeds give equal intervals.
        level (`float`, *optional*, defaults to 0.95): Coverage.

    Returns:
        `Interval`: The sample mean, and the interval's ends.

    Raises:
        `ValueError`: On no values, NaN, or clusters of another length.
    """
    values = _checked(values)
    sums, sizes = _cluster_sums(values, clusters)
    low, high = percentile_interval(sums, sizes, num_resamples=num_resamples, seed=seed, level=level)
    return Interval(float(values.mean()), low, high)


def paired_bootstrap(
    first, second, clusters=None, *, num_resamples: int = 10_000, seed: int = 42, level: float = 0.95
) -> Interval:
    """Percentile bootstrap interval of the mean difference `first - second` on the same items.

    Args:
        first, second (`array-like`): [n], results of two systems, item by item.
        clusters (`array-like`, *optional*): [n], labels of any type.
        num_resamples, seed, level: As in `bootstrap_mean`.

    Returns:
        `Interval`: Of the difference.

    Raises:
        `ValueError`: On no values, NaN, or unequal lengths.
    """
    differences = _differences(first, second)
    return bootstrap_mean(differences, clusters, num_resamples=num_resamples, seed=seed, level=level)


def paired_permutation(first, second, clusters=None, *, num_resamples: int = 10_000, seed: int = 42) -> float:
    """Two-sided p-value of a paired permutation test on the mean difference.

    Under the null hypothesis either system may have produced either result of an item (a cluster), so the signs of the
    differences are random. With at most 12 non-zero differences every assignment is tried and the value is exact; else
    it is (1 + as extreme) / (1 + `num_resamples`).

    Args:
        first, second (`array-like`): [n], results of two systems, item by item.
        clusters (`array-like`, *optional*): [n], labels of any type.
        num_resamples (`int`, *optional*, defaults to 10,000): Random assignments.
        seed (`int`, *optional*, defaults to 42): Equal seeds give equal values.

    Returns:
        `float`: In (0, 1]; 1 when the systems never differ.

    Raises:
        `ValueError`: On no values, NaN, or unequal lengths.
    """
    sums, _ = _cluster_sums(_differences(first, second), clusters)
    sums = sums[sums != 0]
    if not len(sums):
        return 1.0
    # Equal assignments must compare equal whatever the order of summation.
    observed = abs(sums.sum()) - 1e-9 * np.abs(sums).sum()
    if len(sums) <= _EXACT_LIMIT:
        signs = 1 - 2 * (np.arange(2 ** len(sums))[:, None] >> np.arange(len(sums)) & 1)
        return float(np.mean(np.abs(signs @ sums) >= observed))
    rng = np.random.default_rng(seed)
    # Differences of equal size are exchangeable: one binomial draw stands for all their signs.
    sizes, counts = np.unique(np.abs(sums), return_counts=True)
    extreme = 0
    if len(sizes) <= len(sums) // 8:
        for done in range(0, num_resamples, max(1, _BLOCK // len(sizes))):
            block = min(num_resamples - done, max(1, _BLOCK // len(sizes)))
            totals = (2 * rng.binomial(counts, 0.5, size=(block, len(sizes))) - counts) @ sizes
            extreme += int(np.sum(np.abs(totals) >= observed))
    else:
        for done in range(0, num_resamples, max(1, _BLOCK // len(sums))):
            block = min(num_resamples - done, max(1, _BLOCK // len(sums)))
            bits = np.unpackbits(rng.integers(0, 256, (block, -(-len(sums) // 8)), np.uint8), axis=1, count=len(sums))
            totals = 2.0 * (bits.astype(np.float64) @ sums) - sums.sum()
            extreme += int(np.sum(np.abs(totals) >= observed))
    return (1 + extreme) / (1 + num_resamples)


def mcnemar(first_correct, second_correct) -> McNemarResult:
    """Exact two-sided McNemar test: a sign test on the items that only one of the two got right.

    Args:
        first_correct, second_correct (`array-like` of `bool`): [n], item by item.

    Returns:
        `McNemarResult`: The two counts and the p-value, 1 when no item differs.

    Raises:
        `ValueError`: On no values or unequal lengths.
    """
    difference = _differences(np.asarray(first_correct, dtype=bool), np.asarray(second_correct, dtype=bool))
    only_first, only_second = int(np.sum(difference > 0)), int(np.sum(difference < 0))
    total = only_first + only_second
    term = tail = 1  # binomial coefficients as whole numbers: exact for any count
    for i in range(min(only_first, only_second)):
        term = term * (total - i) // (i + 1)
        tail += term
    return McNemarResult(only_first, only_second, min(1.0, 2 * tail / (1 << total)))


def _checked(values) -> np.ndarray:
    values = np.asarray(values, dtype=np.float64)
    if values.ndim != 1 or not len(values):
        raise ValueError(f"values has shape {values.shape}; expected a list of at least one number.")
    if np.isnan(values).any():
        raise ValueError(f"values holds NaN at position {int(np.flatnonzero(np.isnan(values))[0])}.")
    return values


def _differences(first, second) -> np.ndarray:
    first, second = _checked(first), _checked(second)
    if len(first) != len(second):
        raise ValueError(f"The two systems have {len(first)} and {len(second)} results; a paired test needs the same.")
    return first - second


def _cluster_sums(values: np.ndarray, clusters) -> tuple[np.ndarray, np.ndarray]:
    if clusters is not None:
        clusters = np.asarray(clusters)
        if clusters.shape != values.shape:
            raise ValueError(
                f"clusters has shape {clusters.shape}; expected one label for each of {len(values)} values."
            )
    return cluster_sums(values, clusters)
