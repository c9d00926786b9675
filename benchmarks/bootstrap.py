"""Seconds for the intervals of `quality_preference_accuracy`, beside scipy's bootstrap (or a plain numpy loop).

    python benchmarks/bootstrap.py [--pairs 10000] [--resamples 10000] [--json FILE]

Contestants take turns and the fastest turn of each counts. scipy resamples pairs; it has no clusters, so beside the
rows with problem ids stands a loop that draws problems one resample at a time, timed on a part of the resamples and
projected. The ends of the intervals are shown, for speed alone proves nothing.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np

from hf_qualcode.metrics import quality_preference_accuracy


LOOP_SHARE = 50  # one in so many resamples of the plain loop is run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=10_000, help="number of pairs (default 10000)")
    parser.add_argument("--resamples", type=int, default=10_000, help="number of resamples (default 10000)")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each contestant (default 3)")
    parser.add_argument("--json", type=Path, help="write the figures to this file as well")
    arguments = parser.parse_args()
    rng = np.random.default_rng(0)
    positive, negative = rng.normal(0.3, 1, arguments.pairs).round(1), rng.normal(0, 1, arguments.pairs).round(1)
    rows = []
    for num_problems in (None, 50, 400, 4_000):
        problems = None if num_problems is None else np.sort(rng.integers(0, num_problems, arguments.pairs))
        rows.append(compare(positive, negative, problems, arguments.resamples, arguments.rounds))
    # Problems of very unequal size: hardly two are alike.
    skewed = (4_000 * rng.random(arguments.pairs) ** 3).astype(int)
    rows.append(compare(positive, negative, skewed, arguments.resamples, arguments.rounds))
    print(f"{arguments.pairs:,} pairs, {arguments.resamples:,} resamples")
    for row in rows:
        print(
            f"  {row['problems'] or 'no':>6} problem ids: {row['ours_s']:7.3f} s {row['ours']}; "
            f"{row['other']} {row['other_s']:8.3f} s {row['theirs']}; ratio {row['other_s'] / row['ours_s']:.0f}"
        )
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=2), encoding="utf-8")


def compare(positive: np.ndarray, negative: np.ndarray, problems, num_resamples: int, rounds: int) -> dict:
    """One row: our seconds and interval, and the other contestant's."""
    right = (positive > negative).astype(float)
    name, other, factor = contestant(right, problems, num_resamples)
    best = {"ours": np.inf, "other": np.inf}
    for _ in range(rounds):
        start = time.perf_counter()
        result = quality_preference_accuracy(positive, negative, problems, num_resamples=num_resamples)
        best["ours"] = min(best["ours"], time.perf_counter() - start)
        start = time.perf_counter()
        theirs = other()
        best["other"] = min(best["other"], (time.perf_counter() - start) * factor)
    return {
        "problems": None if problems is None else len(np.unique(problems)),
        "ours_s": best["ours"],
        "ours": [round(result.ci_low, 4), round(result.ci_high, 4)],
        "other": name,
        "other_s": best["other"],
        "theirs": [round(float(end), 4) for end in theirs],
    }


def contestant(right: np.ndarray, problems, num_resamples: int):
    """Name, function that gives an interval, and by how much its time is to be multiplied."""
    if problems is None:
        try:
            from scipy.stats import bootstrap
        except ImportError:
            return "plain loop", lambda: plain_loop(right, None, num_resamples // LOOP_SHARE), LOOP_SHARE

        def scipy_bootstrap():
            interval = bootstrap(
                (right,), np.mean, n_resamples=num_resamples, method="percentile", batch=100, rng=0
            ).confidence_interval
            return interval.low, interval.high

        return "scipy.stats.bootstrap", scipy_bootstrap, 1
    return "plain loop", lambda: plain_loop(right, problems, num_resamples // LOOP_SHARE), LOOP_SHARE


def plain_loop(right: np.ndarray, problems, num_resamples: int):
    """What one would write first: draw, gather, average, one resample at a time."""
    rng = np.random.default_rng(0)
    members = [[i] for i in range(len(right))]
    if problems is not None:
        members = [np.flatnonzero(problems == name) for name in np.unique(problems)]
    means = [
        right[np.concatenate([members[i] for i in rng.integers(0, len(members), len(members))])].mean()
        for _ in range(num_resamples)
    ]
    return np.quantile(means, [0.025, 0.975])


if __name__ == "__main__":
    main()
