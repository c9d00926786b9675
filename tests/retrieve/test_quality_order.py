"""The order of relevance and quality together, against a brute-force twin."""

import numpy as np
import pytest

from hf_qualcode.retrieve.quality_order import asked_qualities, check_weight, judge, percentiles, quality_order
from hf_qualcode.types import QualcodeError, UsageError


def slow_percentile(scores, place):
    below = sum(score < scores[place] for score in scores)
    equal = sum(score == scores[place] for score in scores)
    return (below + equal / 2) / len(scores)


def test_percentiles_count_what_is_below_and_half_of_what_is_equal():
    np.testing.assert_allclose(percentiles(np.array([3.0, 1.0, 2.0, 2.0])), [0.875, 0.125, 0.5, 0.5])
    assert percentiles(np.array([7.0])).tolist() == [0.5]
    assert percentiles(np.zeros(0)).shape == (0,)


@pytest.mark.parametrize("weight", [0, 0.1, 0.5, 0.9, 1])
def test_the_order_is_that_of_the_formula(weight):
    generator = np.random.default_rng(0)
    for _ in range(30):
        size = int(generator.integers(1, 60))
        retrieval = np.sort(generator.integers(0, 20, size).astype(np.float32))[::-1]
        judged = generator.integers(-10, 10, min(size, 50)).astype(np.float32)
        given = quality_order(retrieval, judged, weight)
        mixed = [
            (1 - weight) * slow_percentile(retrieval[: len(judged)], i) + weight * slow_percentile(judged, i)
            for i in range(len(judged))
        ]
        expected = sorted(range(len(judged)), key=lambda i: (-round(mixed[i], 9), i))
        assert given.order.tolist() == [*expected, *range(len(judged), size)]
        np.testing.assert_allclose(given.scores[: len(judged)], [mixed[i] for i in expected], atol=1e-9)
        assert (np.diff(given.scores) <= 0).all()


def test_weight_0_keeps_the_retrievers_order_and_1_is_the_rerankers():
    retrieval, judged = np.array([5.0, 4.0, 4.0, 1.0]), np.array([0.0, 2.0, 3.0, 3.0])
    assert quality_order(retrieval, judged, 0).order.tolist() == [0, 1, 2, 3]
    assert quality_order(retrieval, judged, 1).order.tolist() == [2, 3, 1, 0]
    # Places 1 and 3 in one order, 3 and 1 in the other: one mixture, and the retriever decides.
    given = quality_order(np.array([3.0, 2.0, 1.0]), np.array([1.0, 2.0, 3.0]))
    assert given.order.tolist() == [0, 1, 2]
    assert given.scores.tolist() == [0.5] * 3


def test_what_was_not_judged_stays_below_as_it_was():
    given = quality_order(np.array([9.0, 8.0, 7.0, 6.0, 6.0, 5.0]), np.array([0.0, 1.0, 2.0]), 1)
    assert given.order.tolist() == [2, 1, 0, 3, 4, 5]
    assert given.scores[3:].tolist() == [-1, -1, -3]
    assert (given.scores[:3] > 0).all()


def test_a_score_depends_on_no_scale():
    retrieval = np.linspace(1, 0, 50)
    judged = np.random.default_rng(1).normal(size=50)
    first = quality_order(retrieval, judged)
    second = quality_order(np.exp(retrieval) * 100, judged * 7 - 3)
    assert first.order.tolist() == second.order.tolist()
    np.testing.assert_array_equal(first.scores, second.scores)


@pytest.mark.parametrize("weight", [-0.1, 1.1, float("nan"), float("inf"), "0.5", None, True])
def test_a_weight_outside_0_to_1_is_refused(weight):
    with pytest.raises(UsageError, match="quality weight"):
        check_weight(weight)


def test_qualities_are_named_once_in_the_order_of_instructions():
    assert asked_qualities(["memory", "speed", "memory"]) == ("speed", "memory")
    assert asked_qualities("speed") == ("speed",)
    assert asked_qualities([]) == ()
    for wrong in ("beauty", ["speed", "beauty"], "", [["speed"]], 7):
        with pytest.raises(UsageError, match="quality"):
            asked_qualities(wrong)


class Lengths:
    """Judges by length: a reranker as far as the protocol goes."""

    def __init__(self):
        self.calls = []

    def score(self, queries, codes, *, quality=(), instruction=None):
        self.calls.append((list(queries), list(codes), tuple(quality)))
        return np.array([-len(code) for code in codes], dtype=np.float32)


def test_all_queries_are_judged_in_one_call():
    reranker = Lengths()
    given = judge(reranker, ["a", "b", "c"], [["x", "xx"], [], ["xxx"]], ("speed",))
    assert [scores.tolist() for scores in given] == [[-1, -2], [], [-3]]
    assert reranker.calls == [(["a", "a", "c"], ["x", "xx", "xxx"], ("speed",))]
    assert [len(scores) for scores in judge(reranker, ["a"], [[]], ("speed",))] == [0]
    assert len(reranker.calls) == 1


@pytest.mark.parametrize("scores", [[float("nan"), 1], [1], [[1, 2]], [float("inf"), 0]])
def test_unusable_scores_are_refused(scores):
    class Broken:
        def score(self, queries, codes, *, quality=(), instruction=None):
            return np.array(scores, dtype=np.float32)

    with pytest.raises(QualcodeError, match="the reranker gave"):
        judge(Broken(), ["q"], [["a", "b"]], ("speed",))
