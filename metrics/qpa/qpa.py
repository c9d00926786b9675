"""QPA: quality preference accuracy."""

import datasets
import evaluate
import numpy as np


_CITATION = """\
@misc{synhrank,
    title = {SynH-Rank: Quality-Aware Code Search via Diverse Data Synthesis and Hierarchical Ranking Training},
}
"""

_DESCRIPTION = """\
Quality preference accuracy (QPA): the share of pairs in which the program that is better in the asked quality (speed,
memory, maintainability) got a strictly higher score than the worse one. A tie is a miss; ties and half credit are
reported beside it, with a 95 % bootstrap interval that draws whole problems when their ids are given.
"""

_KWARGS_DESCRIPTION = """
Args:
    positive_scores (`list` of `float`): Score of the better program of each pair, higher is better.
    negative_scores (`list` of `float`): Score of the worse program of each pair.
    problem_ids (`list`, *optional*): Problem of each pair; with ids the bootstrap draws whole problems.
    groups (`list`, *optional*): Group of each pair, for example its dimension; adds `by_group`.
    seed (`int`, defaults to 42): Of the bootstrap.
    num_resamples (`int`, defaults to 10000): Resamples of the bootstrap.

Returns:
    qpa (`float`): Share of pairs with positive > negative, strictly.
    ties (`int`), tie_rate (`float`): Pairs with equal scores, and their share.
    half_credit (`float`): As `qpa`, a tie counting one half.
    n (`int`): Pairs.
    ci_low, ci_high (`float`): 95 % interval of `qpa`.
    by_group (`dict`): The same keys for each group; only when `groups` is given.

Examples:
    >>> import evaluate
    >>> qpa = evaluate.load("metrics/qpa")
    >>> scores = {"positive_scores": [0.9, 0.2, 0.5, 0.7], "negative_scores": [0.1, 0.4, 0.5, 0.3]}
    >>> results = qpa.compute(**scores)
    >>> results["qpa"], results["ties"], results["half_credit"], results["n"]
    (0.5, 1, 0.625, 4)
    >>> problem_ids, groups = ["p1", "p1", "p2", "p2"], ["speed", "speed", "memory", "speed"]
    >>> results = qpa.compute(**scores, problem_ids=problem_ids, groups=groups)
    >>> results["ci_low"], results["ci_high"]
    (0.5, 0.5)
    >>> {group: numbers["n"] for group, numbers in results["by_group"].items()}
    {'memory': 1, 'speed': 3}
"""


@evaluate.utils.file_utils.add_start_docstrings(_DESCRIPTION, _KWARGS_DESCRIPTION)
class QPA(evaluate.Metric):
    """Quality preference accuracy."""

    def _info(self):
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_KWARGS_DESCRIPTION,
            # float64: in float32 two scores that differ may become a tie.
            features=datasets.Features(
                {"positive_scores": datasets.Value("float64"), "negative_scores": datasets.Value("float64")}
            ),
        )

    def _compute(
        self, positive_scores, negative_scores, problem_ids=None, groups=None, seed=42, num_resamples=10_000
    ):
        positive, negative = check_scores(positive_scores, negative_scores)
        problem_ids = check_labels("problem_ids", problem_ids, positive)
        groups = check_labels("groups", groups, positive)
        results = keyed(preference(positive, negative, problem_ids, seed, num_resamples))
        if groups is not None:
            results["by_group"] = {}
            for name in np.unique(groups).tolist():
                rows = groups == name
                ids = None if problem_ids is None else problem_ids[rows]
                numbers = preference(positive[rows], negative[rows], ids, seed, num_resamples)
                results["by_group"][str(name)] = keyed(numbers)
        return results


def keyed(numbers):
    """The numbers under this metric's name."""
    return {"qpa" if key == "accuracy" else key: value for key, value in numbers.items()}


# From here on: what every metric on pairs shares. Each module holds its own copy, so that it runs on its own.
_BLOCK = 4_000_000  # Draws held at once: 32 MB.


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
