"""Intervals and tests: coverage, exact values, clusters, repeatability, speed on large inputs."""

import math
from itertools import product

import numpy as np
import pytest

from hf_qualcode.evaluation.significance import bootstrap_mean, mcnemar, paired_bootstrap, paired_permutation


def test_interval_matches_the_normal_approximation_with_few_and_many_distinct_values():
    rng = np.random.default_rng(0)
    for values in (rng.integers(0, 2, 500).astype(float), rng.normal(size=500)):
        interval = bootstrap_mean(values)
        error = 1.96 * values.std() / math.sqrt(500)
        assert interval.mean == pytest.approx(values.mean())
        assert interval.low == pytest.approx(values.mean() - error, abs=0.15 * error)
        assert interval.high == pytest.approx(values.mean() + error, abs=0.15 * error)


def test_equal_seeds_repeat_and_others_differ():
    values = np.random.default_rng(1).normal(size=50)
    assert bootstrap_mean(values, seed=7) == bootstrap_mean(values, seed=7)
    assert bootstrap_mean(values, seed=7) != bootstrap_mean(values, seed=8)


def test_interval_covers_the_truth_as_often_as_it_says():
    rng = np.random.default_rng(2)
    covered = 0
    for _ in range(300):
        interval = bootstrap_mean(rng.normal(size=60), num_resamples=500)
        covered += interval.low <= 0 <= interval.high
    assert 0.90 <= covered / 300 <= 0.98


def test_clusters_widen_the_interval_and_trivial_ones_do_not():
    rng = np.random.default_rng(3)
    clusters = np.repeat(np.arange(40), 25)
    values = np.repeat(rng.normal(size=40), 25) + 0.01 * rng.normal(size=1000)
    alone, together = bootstrap_mean(values), bootstrap_mean(values, clusters)
    assert together.mean == pytest.approx(alone.mean)
    assert together.high - together.low > 3 * (alone.high - alone.low)
    # Labels of any type; a cluster a value is no clustering.
    named = bootstrap_mean(values[:100], [f"p{i}" for i in range(100)])
    plain = bootstrap_mean(values[:100])
    assert named.low == pytest.approx(plain.low, abs=0.15 * (plain.high - plain.low))


def test_clusters_of_unequal_size_keep_the_mean_over_items():
    interval = bootstrap_mean([1.0, 1.0, 1.0, 0.0], ["a", "a", "a", "b"])
    assert interval == pytest.approx((0.75, 0.0, 1.0))


def test_one_value_and_constant_values():
    assert bootstrap_mean([0.4]) == (0.4, 0.4, 0.4)
    assert bootstrap_mean([1.0] * 20) == (1.0, 1.0, 1.0)


def test_paired_interval_is_that_of_the_differences():
    rng = np.random.default_rng(4)
    first, second = rng.random(80), rng.random(80)
    assert paired_bootstrap(first, second) == bootstrap_mean(first - second)
    assert paired_bootstrap(first, first) == (0, 0, 0)


def every_assignment(differences):
    observed = abs(sum(differences))
    totals = [
        abs(sum(s * d for s, d in zip(signs, differences, strict=True)))
        for signs in product((1, -1), repeat=len(differences))
    ]
    return sum(total >= observed - 1e-9 for total in totals) / len(totals)


def test_permutation_is_exact_for_few_and_close_for_many():
    rng = np.random.default_rng(5)
    few = rng.integers(-3, 4, 9).astype(float)
    assert paired_permutation(few, np.zeros(9)) == pytest.approx(every_assignment(few[few != 0]))
    for many in (rng.normal(0.3, 1, 14), rng.choice([-0.5, 1.0], 14)):
        assert paired_permutation(many, np.zeros(14)) == pytest.approx(every_assignment(many), abs=0.02)


def test_permutation_of_equal_systems_and_of_a_clear_difference():
    values = np.random.default_rng(6).random(100)
    assert paired_permutation(values, values) == 1
    assert paired_permutation(values + 1, values) == pytest.approx(1 / 10_001)
    assert paired_permutation(values + 1, values) == paired_permutation(values, values + 1)


def test_permutation_exchanges_whole_clusters():
    # Three clusters that all point one way can come about by chance in a quarter of all cases, however many items.
    clusters = np.repeat([0, 1, 2], 50)
    assert paired_permutation(np.ones(150), np.zeros(150), clusters) == pytest.approx(0.25)


def test_mcnemar_by_hand():
    first = [True] * 8 + [False] * 2 + [True] * 5
    second = [False] * 8 + [True] * 2 + [True] * 5
    result = mcnemar(first, second)
    assert result[:2] == (8, 2)
    assert result.p_value == pytest.approx(2 * (1 + 10 + 45) / 1024)
    assert mcnemar([True], [True]).p_value == 1
    assert mcnemar([True, False], [False, True]).p_value == 1
    large = mcnemar([True] * 6000 + [False] * 5800, [False] * 6000 + [True] * 5800)
    assert large.p_value == pytest.approx(math.erfc(199 / math.sqrt(11_800) / math.sqrt(2)), rel=0.02)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: bootstrap_mean([]), "at least one"),
        (lambda: bootstrap_mean([1.0, math.nan]), "NaN at position 1"),
        (lambda: bootstrap_mean([1.0, 2.0], ["a"]), "one label"),
        (lambda: paired_bootstrap([1.0], [1.0, 2.0]), "1 and 2 results"),
        (lambda: paired_permutation([1.0], [1.0, 2.0]), "1 and 2 results"),
        (lambda: mcnemar([True], []), "at least one"),
    ],
)
def test_errors_say_what_came(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_ten_thousand_items_are_resampled_ten_thousand_times():
    rng = np.random.default_rng(7)
    first, second = rng.normal(size=10_000), rng.normal(size=10_000)
    interval = paired_bootstrap(first, second)
    # The standard error of a difference of two independent means of unit variance.
    assert (interval.high - interval.low) / 2 == pytest.approx(1.96 * np.sqrt(2 / 10_000), rel=0.05)
    assert 0 < paired_permutation(first, second) <= 1
