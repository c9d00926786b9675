"""Ranking metrics against values worked out by hand, a twin that tries every order of ties, and ir-measures."""

from itertools import pairwise, permutations

import numpy as np
import pytest

from hf_qualcode.metrics import hit_at_k, mean_reciprocal_rank, ndcg, quality_preference_accuracy, recall_at_k


def plain_mrr(grades, k):
    return next((1 / rank for rank, grade in enumerate(grades[:k], 1) if grade > 0), 0.0)


def plain_ndcg(grades, k):
    def dcg(values):
        return sum((2**grade - 1) / np.log2(1 + rank) for rank, grade in enumerate(values[:k], 1))

    ideal = dcg(sorted(grades, reverse=True))
    return dcg(grades) / ideal if ideal else 0.0


def plain_hit(grades, k):
    return float(any(grade > 0 for grade in grades[:k]))


def plain_recall(grades, k):
    total = sum(grade > 0 for grade in grades)
    return sum(grade > 0 for grade in grades[:k]) / total if total else 0.0


METRICS = [(mean_reciprocal_rank, plain_mrr), (ndcg, plain_ndcg), (hit_at_k, plain_hit), (recall_at_k, plain_recall)]


def every_order(scores, grades, plain, k):
    """Mean of the plain metric over all orders of the list that the scores allow."""
    values = []
    for order in permutations(range(len(scores))):
        ranked = [scores[i] for i in order]
        if all(a >= b for a, b in pairwise(ranked)):
            values.append(plain([grades[i] for i in order], k))
    return np.mean(values)


@pytest.mark.parametrize(("metric", "plain"), METRICS)
def test_equals_the_mean_over_all_orders_of_ties(metric, plain):
    rng = np.random.default_rng(0)
    for _ in range(120):
        size = rng.integers(1, 7)
        scores = rng.integers(0, 3, size).tolist()
        grades = rng.integers(0, 3, size).tolist()
        k = int(rng.integers(1, size + 2))
        assert metric(scores, grades, k) == pytest.approx(every_order(scores, grades, plain, k), abs=1e-12)


@pytest.mark.parametrize(("metric", "plain"), METRICS)
def test_no_ties_is_the_plain_metric_and_order_never_matters(metric, plain):
    rng = np.random.default_rng(1)
    for _ in range(50):
        scores, grades = rng.permutation(30).astype(float), rng.integers(0, 3, 30)
        ranked = grades[np.argsort(-scores)].tolist()
        order = rng.permutation(30)
        assert metric(scores, grades, 10) == pytest.approx(plain(ranked, 10), abs=1e-12)
        assert metric(scores[order], grades[order], 10) == metric(scores, grades, 10)


def test_values_by_hand():
    # Two tied documents, one relevant: first place half of the time.
    assert mean_reciprocal_rank([1, 1], [1, 0], 10) == pytest.approx((1 + 1 / 2) / 2)
    assert mean_reciprocal_rank([1, 1, 1], [1, 0, 0], 2) == pytest.approx((1 + 1 / 2 + 0) / 3)
    assert mean_reciprocal_rank([3, 2, 1], [0, 0, 1], 2) == 0
    assert mean_reciprocal_rank([0, 0, 0, 0], [1, 1, 0, 0]) == pytest.approx((3 * 1 + 2 / 2 + 1 / 3) / 6)
    assert ndcg([3, 2, 1], [2, 1, 0], 3) == 1
    assert ndcg([0, 1, 2], [2, 1, 0], 3) == pytest.approx((3 / 2 + 1 / np.log2(3)) / 3.6309297535714578)
    assert hit_at_k([0] * 100, [1] + [0] * 99, 5) == pytest.approx(0.05)
    assert hit_at_k([0] * 4, [1, 1, 0, 0], 2) == pytest.approx(1 - 1 / 6)
    assert hit_at_k([0, 0], [1, 1], 1) == 1
    assert recall_at_k([0] * 4, [1, 1, 0, 0], 1) == pytest.approx(0.25)
    assert recall_at_k([2, 1], [1, 0], 1, num_relevant=4) == pytest.approx(0.25)
    assert recall_at_k([2, 1], [0, 0], 1, num_relevant=4) == 0


@pytest.mark.parametrize("metric", [metric for metric, _ in METRICS])
def test_nothing_relevant_is_zero_and_infinities_are_scores(metric):
    assert metric([1.0, 2.0], [0, 0], 1) == 0
    assert metric([np.inf, 0, -np.inf], [1, 0, 0], 1) == 1


@pytest.mark.parametrize("metric", [metric for metric, _ in METRICS])
@pytest.mark.parametrize(
    ("scores", "grades", "k", "words"),
    [
        ([1.0, np.nan], [1, 0], 1, "NaN at position 1"),
        ([1.0], [np.nan], 1, "NaN"),
        ([1.0, 2.0], [1], 1, "equal length"),
        ([[1.0]], [[1]], 1, "1-D"),
        ([], [], 1, "empty"),
        ([1.0], [-1], 1, "padding"),
        ([1.0], [1], 0, "k is 0"),
    ],
)
def test_errors_say_what_came(metric, scores, grades, k, words):
    with pytest.raises(ValueError, match=words):
        metric(scores, grades, k)


def test_more_relevant_in_the_list_than_in_all_is_an_error():
    with pytest.raises(ValueError, match="holds 2"):
        recall_at_k([1, 2], [1, 1], 1, num_relevant=1)


def test_a_large_group_of_ties_is_exact_and_cheap():
    scores, grades = np.zeros(100_000), np.zeros(100_000)
    grades[:3] = 1
    assert hit_at_k(scores, grades, 1) == pytest.approx(3 / 100_000)
    assert mean_reciprocal_rank(scores, grades, 1) == pytest.approx(3 / 100_000)


def test_equals_ir_measures_where_nothing_is_tied():
    ir_measures = pytest.importorskip("ir_measures")
    rng = np.random.default_rng(2)
    run, qrels, lists = [], [], {}
    for query in range(20):
        scores, grades = rng.permutation(25).astype(float), rng.integers(0, 4, 25)
        lists[str(query)] = (scores, grades)
        run += [ir_measures.ScoredDoc(str(query), str(i), score) for i, score in enumerate(scores)]
        qrels += [ir_measures.Qrel(str(query), str(i), int(grade)) for i, grade in enumerate(grades)]
    measures = {
        ir_measures.RR @ 10: lambda s, g: mean_reciprocal_rank(s, g, 10),
        ir_measures.nDCG(gains={0: 0, 1: 1, 2: 3, 3: 7}) @ 10: lambda s, g: ndcg(s, g, 10),
        ir_measures.Success @ 3: lambda s, g: hit_at_k(s, g, 3),
        ir_measures.R @ 10: lambda s, g: recall_at_k(s, g, 10),
    }
    for result in ir_measures.iter_calc(list(measures), qrels, run):
        assert measures[result.measure](*lists[result.query_id]) == pytest.approx(result.value, abs=1e-9)


def random_pairs(rng, n, num_problems, levels=4):
    """Scores with many ties, and problems of unequal size."""
    positive, negative = rng.integers(0, levels, n) + 0.4, rng.integers(0, levels, n) + 0.4
    return positive, negative, np.array([f"p{i}" for i in np.sort(rng.integers(0, num_problems, n) ** 2 // n)])


def test_preference_equals_plain_counting_and_scikit_learn():
    sklearn_metrics = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(3)
    for n in (1, 2, 17, 80):
        positive, negative, _ = random_pairs(rng, n, 10)
        result = quality_preference_accuracy(positive, negative, num_resamples=10)
        assert result.accuracy == sum(p > q for p, q in zip(positive, negative, strict=True)) / n
        assert result.ties == sum(p == q for p, q in zip(positive, negative, strict=True))
        assert (result.n, result.tie_rate, result.by_group) == (n, result.ties / n, {})
        areas = [sklearn_metrics.roc_auc_score([1, 0], pair) for pair in zip(positive, negative, strict=True)]
        assert result.half_credit == pytest.approx(np.mean(areas), abs=1e-12)


def test_preference_by_hand():
    result = quality_preference_accuracy([3, 1, 2, 2], [1, 3, 2, 1], groups=["b", "a", "a", "b"])
    assert (result.accuracy, result.ties, result.half_credit, result.n) == (0.5, 1, 0.625, 4)
    assert list(result.by_group) == ["a", "b"]
    assert (result.by_group["a"].accuracy, result.by_group["a"].half_credit) == (0, 0.25)
    assert (result.by_group["b"].accuracy, result.by_group["b"].n) == (1, 2)
    constant = quality_preference_accuracy([0.5] * 10, [0.5] * 10)
    assert (constant.accuracy, constant.half_credit, constant.tie_rate) == (0, 0.5, 1)


def test_a_scorer_and_its_negation_share_what_is_not_tied():
    positive, negative, _ = random_pairs(np.random.default_rng(4), 200, 10)
    right, wrong = quality_preference_accuracy(positive, negative), quality_preference_accuracy(-positive, -negative)
    assert right.accuracy + wrong.accuracy + right.tie_rate == pytest.approx(1)
    assert right.half_credit + wrong.half_credit == pytest.approx(1)


def test_infinite_scores_compare_as_numbers_do():
    result = quality_preference_accuracy([np.inf, -np.inf, np.inf, 0], [0, 0, np.inf, -np.inf])
    assert (result.accuracy, result.ties) == (0.5, 1)


@pytest.mark.parametrize("num_problems", [3, 12, 200])
def test_interval_equals_a_plain_loop_over_drawn_problems(num_problems):
    rng = np.random.default_rng(num_problems)
    positive, negative, problems = random_pairs(rng, 400, num_problems)
    result = quality_preference_accuracy(positive, negative, problems, num_resamples=20_000)
    members = [np.flatnonzero(problems == name) for name in np.unique(problems)]
    right = positive > negative
    means = []
    for _ in range(3_000):
        drawn = np.concatenate([members[i] for i in rng.integers(0, len(members), len(members))])
        means.append(right[drawn].mean())
    low, high = np.quantile(means, [0.025, 0.975])
    # Quantiles of a sample of 3,000 scatter by a few percent of the width.
    assert result.ci_low == pytest.approx(low, abs=0.08 * (high - low) + 1e-9)
    assert result.ci_high == pytest.approx(high, abs=0.08 * (high - low) + 1e-9)


def test_interval_depends_neither_on_order_nor_on_names():
    rng = np.random.default_rng(5)
    for num_problems in (4, 40, 150):
        positive, negative, problems = random_pairs(rng, 300, num_problems)
        expected = quality_preference_accuracy(positive, negative, problems)
        order = rng.permutation(300)
        renamed = {name: int(number) for number, name in enumerate(rng.permutation(np.unique(problems)))}
        labels = [renamed[name] for name in problems[order]]
        assert quality_preference_accuracy(positive[order], negative[order], labels) == expected
    assert quality_preference_accuracy(positive, negative, problems, seed=7) == quality_preference_accuracy(
        positive, negative, problems, seed=7
    )
    assert quality_preference_accuracy(positive, negative, problems, seed=7) != expected


def test_pairs_of_one_problem_are_not_independent():
    right = np.repeat([1.0, 0.0], 100)
    alone = quality_preference_accuracy(right, np.full(200, 0.5))
    together = quality_preference_accuracy(right, np.full(200, 0.5), np.repeat(np.arange(20), 10))
    assert together.ci_high - together.ci_low > 2 * (alone.ci_high - alone.ci_low)
    one = quality_preference_accuracy(right, np.full(200, 0.5), ["p"] * 200)
    assert (one.ci_low, one.ci_high) == (0.5, 0.5)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([1.0, np.nan], [0, 0]), "positive_scores holds NaN at position 1"),
        (([1.0], [None]), "negative_scores holds NaN at position 0"),
        (([1.0, 2.0], [1.0]), "equal length"),
        (([[1.0]], [[1.0]]), "1-D"),
        (([], []), "at least one pair"),
        (([1.0], [0.0], ["a", "b"]), r"problem_ids has shape \(2,\)"),
        (([1.0, 1.0], [0.0, 0.0], ["a", None]), "problem_ids holds no label at position 1"),
        (([1.0], [0.0], None, [np.nan]), "groups holds no label at position 0"),
        (([1.0], [0.0], None, None, 42, 0), "num_resamples is 0"),
    ],
)
def test_preference_errors_say_what_came(arguments, words):
    with pytest.raises(ValueError, match=words):
        quality_preference_accuracy(*arguments)
