"""The bootstrap that every interval of this package is made with.

Items that belong together (pairs of one problem) are drawn together: whole clusters are resampled, and the mean stays
the mean over items. An interval depends on the values and the clusters they stand in, not on the order of the items or
the clusters' names.
"""

import numpy as np


_BLOCK = 4_000_000  # Draws held at once: 32 MB.


def percentile_interval(
    sums: np.ndarray, sizes: np.ndarray, *, num_resamples: int = 10_000, seed: int = 42, level: float = 0.95
) -> tuple[float, float]:
    """Percentile bootstrap interval of the mean over all items.

    Args:
        sums, sizes (`np.ndarray`): float64 [num_clusters], of `cluster_sums`; at least one, finite.
        num_resamples (`int`, *optional*, defaults to 10,000): Resamples.
        seed (`int`, *optional*, defaults to 42): Equal seeds give equal intervals.
        level (`float`, *optional*, defaults to 0.95): Coverage.

    Returns:
        `tuple[float, float]`: The interval's ends.
    """
    means = resampled_means(sums, sizes, num_resamples, np.random.default_rng(seed))
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def cluster_sums(values: np.ndarray, clusters=None) -> tuple[np.ndarray, np.ndarray]:
    """Sum and number of values of each cluster, both float64 [num_clusters]; each value alone without clusters.

    Args:
        values (`np.ndarray`): float64 [n].
        clusters (`np.ndarray`, *optional*): [n], labels that can be sorted.
    """
    if clusters is None:
        return values, np.ones(len(values))
    _, labels = np.unique(clusters, return_inverse=True)
    return np.bincount(labels, values), np.bincount(labels).astype(np.float64)


def resampled_means(sums: np.ndarray, sizes: np.ndarray, num_resamples: int, rng: np.random.Generator) -> np.ndarray:
    """Means over items, float64 [num_resamples], of as many clusters as there are, drawn with replacement."""
    num_clusters = len(sums)
    # Sorted, so that the order of the clusters decides nothing.
    kinds, counts = np.unique(np.stack([sums, sizes]), axis=1, return_counts=True)
    means = np.empty(num_resamples)
    if len(counts) <= max(2, num_clusters // 8):
        # Few distinct results (hits, reciprocal ranks): one multinomial draw a resample instead of one draw a cluster.
        step = max(1, _BLOCK // len(counts))
        for start in range(0, num_resamples, step):
            drawn = rng.multinomial(num_clusters, counts / num_clusters, size=min(step, num_resamples - start))
            means[start : start + step] = (drawn @ kinds[0]) / (drawn @ kinds[1])
        return means
    sums, sizes = np.repeat(kinds, counts, axis=1)
    step = max(1, _BLOCK // num_clusters)
    equal_sizes = bool((sizes == sizes[0]).all())
    for start in range(0, num_resamples, step):
        drawn = rng.integers(0, num_clusters, (min(step, num_resamples - start), num_clusters), np.int32)
        totals = sums[drawn].sum(axis=1)
        weights = sizes[0] * num_clusters if equal_sizes else sizes[drawn].sum(axis=1)
        means[start : start + step] = totals / weights
    return means
