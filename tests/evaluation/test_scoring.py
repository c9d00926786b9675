"""Scoring: each distinct text once, in one call; trained models never see what they are tested on; named errors."""

import numpy as np
import pytest

from hf_qualcode.evaluation.protocols import LOG_ODDS
from hf_qualcode.evaluation.scoring import PairScorer, score_pairs, score_triples
from hf_qualcode.types import QualcodeError


def test_distinct_triples_are_scored_once_in_one_call_and_split_back(pair, by_text):
    pairs = [
        pair(0, "q0", "a", "b"),
        pair(1, "q0", "a", "c"),
        pair(2, "q1", "a", "b"),
        pair(3, "q0", "b", "a", dimension="memory"),
    ]
    scorer = by_text(lambda instruction, query, code: len(instruction) * 100 + int(query[-1]) * 10 + ord(code) - 96)
    scores = score_pairs(scorer, pairs)
    assert len(scorer.calls) == 1
    assert len(scorer.calls[0]) == len(set(scorer.calls[0])) == 7
    for side in ("positive", "negative"):
        expected = [scorer.table(each.instruction, each.query, getattr(each, side)) for each in pairs]
        assert getattr(scores, side).tolist() == expected
    assert scores.right.tolist() == [0, 0, 0, 1]


def test_the_other_presentation_has_the_same_scores_of_a_pointwise_scorer(pairs_of, by_text):
    pairs = pairs_of([2, 3])
    scorer = by_text(lambda instruction, query, code: float(code[1:]) + (code[0] == "p"))
    first, second = score_pairs(scorer, pairs), score_pairs(scorer, pairs, negatives_first=True)
    assert first.positive.tolist() == second.positive.tolist()
    assert first.negative.tolist() == second.negative.tolist()
    assert scorer.calls[1] == scorer.calls[0][::-1]
    by_place = [scorer.calls[1].index((each.instruction, each.query, each.negative)) for each in pairs]
    assert all(
        place < scorer.calls[1].index((each.instruction, each.query, each.positive))
        for place, each in zip(by_place, pairs, strict=True)
    )


def test_functions_lists_and_tensors_will_do(pairs_of):
    import torch

    pairs = pairs_of([2])
    for function in (
        lambda instructions, queries, codes: [float(code[0] == "p") for code in codes],
        lambda instructions, queries, codes: torch.tensor([float(code[0] == "p") for code in codes]),
    ):
        assert PairScorer(function, pairs)(pairs).right.tolist() == [1, 1]


def test_ties_and_margins(pairs_of):
    scores = score_pairs(lambda instructions, queries, codes: [1, 0, 2, 2, 0, 3], pairs_of([3]))
    assert scores.right.tolist() == [1, 0, 0]
    assert scores.half_credit.tolist() == [1, 0.5, 0]
    assert scores.margins.tolist() == [1, 0, -3]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (lambda n: [0.0] * (n - 1), r"shape \(3,\) for 4 texts, of which the first is the positive of pair 'speed/a0"),
        (lambda n: np.zeros((n, 1)), r"shape \(4, 1\)"),
        (lambda n: 0.5, r"shape \(\)"),
        (lambda n: None, "not finite|shape"),
        (lambda n: ["x"] * n, "no list of numbers"),
        (lambda n: [0, 0, 0, np.nan], r"gave nan to the negative of pair 'speed/a1/b1' \(1 of 4"),
        (lambda n: [0, np.inf, 0, 0], "gave inf to the negative of pair 'speed/a0/b0'"),
    ],
)
def test_bad_scores_name_the_first_pair(pairs_of, given, words):
    with pytest.raises(QualcodeError, match=words):
        score_pairs(lambda instructions, queries, codes: given(len(codes)), pairs_of([2]))


def test_no_scorer_is_said(pairs_of):
    with pytest.raises(QualcodeError, match="str is no scorer"):
        PairScorer("bm25", pairs_of([2]))


def test_scores_keep_float64_and_a_scale():
    def tiny(instructions, queries, codes):
        return [1.0, 1.0 + 1e-12]

    assert np.diff(score_triples(tiny, [("i", "q", "a"), ("i", "q", "b")], ["x", "y"]))[0] > 0


class Spy:
    """A trainable scorer that knows what it was fitted on."""

    def __init__(self):
        self.fits = []

    def fit(self, pairs):
        self.fits.append(pairs)
        return Fitted(pairs)


class Fitted:
    scale = LOG_ODDS

    def __init__(self, pairs):
        self.problems = {pair.problem_id for pair in pairs}
        self.texts = {text for pair in pairs for text in (pair.query, pair.positive, pair.negative)}
        self.calls = 0

    def score(self, instructions, queries, codes):
        self.calls += 1
        seen = [query in self.texts or code in self.texts for query, code in zip(queries, codes, strict=True)]
        assert not any(seen)
        return np.full(len(codes), float(len(self.texts)))


def test_a_trained_scorer_never_sees_its_problem_nor_a_text_of_it(pair):
    rng = np.random.default_rng(1)
    for _ in range(10):
        # Common texts are shared by some problems.
        pairs = [
            pair(i, f"q{rng.integers(12)}", f"p{rng.integers(300)}", f"n{rng.integers(300)}") for i in range(60)
        ]
        spy = Spy()
        scorer = PairScorer(spy, pairs, num_folds=4)
        scores = scorer(pairs)
        assert scores.scale == LOG_ODDS
        assert len(spy.fits) == 4
        scorer(pairs)
        assert len(spy.fits) == 4  # fitted once, however often it is asked
        tested = [np.flatnonzero(scorer._folds == fold) for fold in range(4)]
        assert sorted(np.concatenate(tested)) == list(range(60))
        for rows, fitted in zip(tested, spy.fits, strict=True):
            assert {pairs[row].problem_id for row in rows}.isdisjoint(each.problem_id for each in fitted)


def test_what_can_be_fitted_is_fitted_whatever_else_it_can(pairs_of):
    class Both(Spy):
        def score(self, instructions, queries, codes):
            raise AssertionError("scored without being fitted")

    pairs = pairs_of([2, 2, 2])
    assert PairScorer(Both(), pairs, num_folds=3)(pairs).ties.all()
