"""Folds: whole problems, balanced, repeatable, and nothing of the tested problems in training."""

from collections import Counter

import numpy as np
import pytest

from hf_qualcode.evaluation.folds import assign_folds, training_pairs
from hf_qualcode.types import QualcodeError


def test_problems_stay_whole_and_folds_are_balanced(pairs_of):
    rng = np.random.default_rng(0)
    for _ in range(20):
        pairs = pairs_of(rng.integers(1, 30, rng.integers(5, 60)))
        folds = assign_folds(pairs, 5, seed=int(rng.integers(100)))
        of_problem = {}
        for pair, fold in zip(pairs, folds, strict=True):
            assert of_problem.setdefault(pair.problem_id, fold) == fold
        sizes = Counter(folds.tolist())
        largest = max(Counter(pair.problem_id for pair in pairs).values())
        assert set(sizes) == set(range(5))
        assert max(sizes.values()) - min(sizes.values()) <= largest


def test_the_order_of_pairs_decides_nothing_and_the_seed_does(pairs_of):
    pairs = pairs_of([3] * 20)
    folds = {pair.id: fold for pair, fold in zip(pairs, assign_folds(pairs), strict=True)}
    backwards = {pair.id: fold for pair, fold in zip(pairs[::-1], assign_folds(pairs[::-1]), strict=True)}
    assert folds == backwards
    assert folds != {pair.id: fold for pair, fold in zip(pairs, assign_folds(pairs, seed=1), strict=True)}


def test_fewer_problems_than_folds_and_too_few(pairs_of):
    assert set(assign_folds(pairs_of([4, 4, 4]), 5)) == {0, 1, 2}
    for sizes, folds in (([4], 5), ([2, 2], 1)):
        with pytest.raises(QualcodeError, match="two folds and two problems"):
            assign_folds(pairs_of(sizes), folds)


def test_what_shares_a_text_with_the_fold_is_not_trained_on(pair):
    pairs = [
        pair(0, "tested"),
        pair(1, "shares the positive", positive="p0"),
        pair(2, "shares the positive"),
        pair(3, "has it as negative", negative="p0"),
        pair(4, "shares the other", positive="n0"),
        pair(5, "free"),
    ]
    kept = training_pairs(pairs, np.array([0, 1, 1, 1, 1, 1]), 0)
    assert [each.problem_id for each in kept] == ["free"]
    with pytest.raises(QualcodeError, match="nothing is left to train on"):
        training_pairs(pairs[:2], np.array([0, 1]), 0)
