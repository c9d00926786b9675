"""Reranking: values equal to scikit-learn's and ir-measures', ties by expectation, runs in and out, clusters."""

import json
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest

from hf_qualcode.evaluation.protocols import ScoredDocument
from hf_qualcode.evaluation.report import comparison_report, ranking_table, reranking_report
from hf_qualcode.evaluation.reranking import evaluate_reranking, evaluate_reranking_run, random_reranking
from hf_qualcode.evaluation.significance import bootstrap_mean
from hf_qualcode.evaluation.trec import read_run, write_run
from hf_qualcode.types import GradedList, QualcodeError


def make_list(number, grades, problem=None, dimension="speed"):
    problem = f"p{number}" if problem is None else problem
    return GradedList(
        id=f"{problem}/{dimension}",
        instruction="Retrieve code that is fast",
        query=f"statement of {problem}",
        doc_ids=tuple(f"d{i}" for i in range(len(grades))),
        documents=tuple(f"code {number} {i}" for i in range(len(grades))),
        grades=tuple(grades),
        problem_id=problem,
        dimension=dimension,
    )


@pytest.fixture
def lists():
    rng = np.random.default_rng(0)
    made = []
    for number in range(30):
        grades = np.zeros(rng.integers(12, 40), dtype=int)
        grades[rng.choice(len(grades), 3, replace=False)] = rng.integers(1, 3, 3)
        made.append(make_list(number, grades.tolist(), f"p{number // 2}", ("speed", "memory")[number % 2]))
    return made


def by_table(lists, levels):
    rng = np.random.default_rng(1)
    table = {text: float(rng.integers(levels)) for each in lists for text in each.documents}
    return table, lambda instructions, queries, codes: [table[code] for code in codes]


def test_ndcg_with_ties_equals_scikit_learn(lists):
    metrics = pytest.importorskip("sklearn.metrics")
    table, scorer = by_table(lists, levels=4)
    result = evaluate_reranking(lists, scorer)
    for each, value in zip(lists, result.values["ndcg@10"], strict=True):
        # scikit-learn's gain is the relevance itself.
        gains = [[2**grade - 1 for grade in each.grades]]
        scores = [[table[text] for text in each.documents]]
        assert value == pytest.approx(metrics.ndcg_score(gains, scores, k=10), abs=1e-12)


def test_both_equal_ir_measures_where_nothing_is_tied(lists):
    ir_measures = pytest.importorskip("ir_measures")
    table, scorer = by_table(lists, levels=10**9)
    result = evaluate_reranking(lists, scorer)
    run = [
        ir_measures.ScoredDoc(each.id, doc_id, table[text])
        for each in lists
        for doc_id, text in zip(each.doc_ids, each.documents, strict=True)
    ]
    qrels = [
        ir_measures.Qrel(each.id, doc_id, grade)
        for each in lists
        for doc_id, grade in zip(each.doc_ids, each.grades, strict=True)
    ]
    measures = {ir_measures.RR @ 10: "mrr@10", ir_measures.nDCG(gains={0: 0, 1: 1, 2: 3}) @ 10: "ndcg@10"}
    row = {name: i for i, name in enumerate(result.query_ids)}
    for value in ir_measures.iter_calc(list(measures), qrels, run):
        ours = result.values[measures[value.measure]][row[value.query_id]]
        assert ours == pytest.approx(value.value, abs=1e-9)


def test_mrr_with_ties_is_the_mean_over_their_orders():
    each = make_list(0, [0, 1, 0, 1, 0])
    scores = [3.0, 2.0, 2.0, 2.0, 1.0]
    result = evaluate_reranking([each], lambda i, q, codes: [scores[int(code[-1])] for code in codes])
    orders = [order for order in permutations(range(5)) if sorted(scores, reverse=True) == [scores[i] for i in order]]
    expected = np.mean([next(1 / r for r, i in enumerate(order, 1) if each.grades[i]) for order in orders])
    assert result.values["mrr@10"][0] == pytest.approx(expected)


def test_mrr_and_ndcg_with_ties_are_ir_measures_averaged_over_names():
    """TREC's tools order ties by document id: over every assignment of ids, that is every order of the ties."""
    ir_measures = pytest.importorskip("ir_measures")
    rng = np.random.default_rng(3)
    measures = {ir_measures.RR @ 10: "mrr@10", ir_measures.nDCG(gains={0: 0, 1: 1, 2: 3}) @ 10: "ndcg@10"}
    for _ in range(3):
        scores, grades = rng.integers(0, 3, 5).tolist(), [0, 2, 0, 1, 0]
        one = [make_list(0, grades)]
        result = evaluate_reranking(one, lambda i, q, codes, s=scores: [s[int(code[-1])] for code in codes])
        names = [[f"d{place}" for place in order] for order in permutations(range(5))]
        run = [
            ir_measures.ScoredDoc(str(n), doc_id, score)
            for n, ids in enumerate(names)
            for doc_id, score in zip(ids, scores, strict=True)
        ]
        qrels = [
            ir_measures.Qrel(str(n), doc_id, grade)
            for n, ids in enumerate(names)
            for doc_id, grade in zip(ids, grades, strict=True)
        ]
        for measure, value in ir_measures.calc_aggregate(list(measures), qrels, run).items():
            assert result.values[measures[measure]][0] == pytest.approx(value, abs=1e-9)


def test_everything_is_scored_in_one_call_and_list_order_never_matters(lists, by_text):
    table, _ = by_table(lists, levels=3)
    scorer = by_text(table)
    result = evaluate_reranking(lists, scorer)
    assert len(scorer.calls) == 1
    order = {each.id: np.random.default_rng(2).permutation(len(each.grades)) for each in lists}
    columns = ("doc_ids", "documents", "grades")
    shuffled = [
        replace(each, **{c: tuple(getattr(each, c)[i] for i in order[each.id]) for c in columns}) for each in lists
    ]
    again = evaluate_reranking(shuffled, by_text(table))
    for name, values in result.values.items():
        assert again.values[name].tolist() == values.tolist()


def test_random_baseline_is_the_mean_of_random_orders():
    lists = [make_list(0, [0, 1] + [0] * 18)]
    expected = random_reranking(lists)
    assert expected.values["mrr@10"][0] == pytest.approx(sum(1 / rank for rank in range(1, 11)) / 20)
    assert expected.values["ndcg@10"][0] == pytest.approx(sum(1 / np.log2(1 + rank) for rank in range(1, 11)) / 20)
    assert expected.run == {}


def test_a_run_goes_out_and_comes_back(lists, tmp_path):
    _, scorer = by_table(lists, levels=5)
    result = evaluate_reranking(lists, scorer)
    write_run(tmp_path / "run", result.run)
    again = evaluate_reranking_run(lists, read_run(tmp_path / "run"))
    assert (again.missing, again.empty) == (0, 0)
    for name, values in result.values.items():
        assert again.values[name] == pytest.approx(values)


def test_what_a_run_does_not_rank_is_not_found():
    lists = [make_list(0, [0, 1, 2]), make_list(1, [1, 0])]
    run = {"p0/speed": [ScoredDocument("d0", 1.0), ScoredDocument("d1", 1e300)]}
    result = evaluate_reranking_run(lists, run)
    assert (result.missing, result.empty) == (1, 1)
    assert result.values["mrr@10"].tolist() == [1, 0]
    ideal = 3 + 1 / np.log2(3)
    assert result.values["ndcg@10"].tolist() == pytest.approx([1 / ideal, 0])
    nothing = evaluate_reranking_run(lists, {"p0/speed": [ScoredDocument("d0", 1.0)]})
    assert nothing.values["mrr@10"].tolist() == [0, 0]
    assert nothing.values["ndcg@10"].tolist() == [0, 0]


def test_report_by_dimension_with_intervals_over_problems(lists):
    table, scorer = by_table(lists, levels=5)
    result = evaluate_reranking(lists, scorer)
    report = reranking_report("DIR", {"split": "test"}, "m", result, {"random": random_reranking(lists)})
    assert json.loads(json.dumps(report)) == report
    assert list(report) == ["data", "config", "model", "n", "metrics", "intervals", "baselines", "by_group"]
    assert report["n"] == 30
    for number, name in enumerate(("speed", "memory")):
        assert report["by_group"][name]["n"] == 15
        mean = result.values["mrr@10"][number::2].mean()
        assert report["by_group"][name]["metrics"]["mrr@10"] == pytest.approx(mean)
    # Two equal lists a problem: clusters are wider than lists.
    twice = [make_list(i, each.grades, f"p{i}", name) for i, each in enumerate(lists) for name in ("speed", "memory")]
    doubled = evaluate_reranking(
        twice, lambda i, q, codes: [table[f"code {code.split()[1]} {code.split()[2]}"] for code in codes]
    )
    width = {name: interval.high - interval.low for name, interval in doubled.intervals().items()}
    for name, values in doubled.values.items():
        alone = bootstrap_mean(values)
        assert width[name] > 1.25 * (alone.high - alone.low)
    text = ranking_table(report, "lists").to_text()
    assert all(word in text for word in ("30 lists", "mrr@10", "random", "speed (15)", "difference"))


def test_rows_can_be_compared(lists):
    _, scorer = by_table(lists, levels=5)
    rows = evaluate_reranking(lists, scorer).rows()
    assert set(rows[0]) == {"id", "mrr@10", "ndcg@10", "problem_id", "dimension"}
    report = comparison_report("a", rows, "b", random_reranking(lists).rows()[::-1])
    assert set(report["metrics"]) == {"mrr@10", "ndcg@10"}
    assert "mcnemar" not in report


def test_errors_say_what_came(lists):
    one = make_list(0, [1, 0])
    ranked = [ScoredDocument("d0", 1.0)]
    for call, words in (
        (lambda: evaluate_reranking([], len), "no lists"),
        (lambda: evaluate_reranking([one, one], len), "appears twice"),
        (lambda: evaluate_reranking([make_list(0, [])], len), "is empty"),
        (lambda: evaluate_reranking([one], lambda i, q, c: [0, np.nan]), "nan to document 'd1' of list 'p0/speed'"),
        (lambda: evaluate_reranking([one], type("T", (), {"fit": 1})()), "evaluate preference"),
        (lambda: evaluate_reranking_run([one], {"x": ranked}), "list 'x'"),
        (lambda: evaluate_reranking_run([one], {"p0/speed": [ScoredDocument("x", 1.0)]}), "document 'x' is not in it"),
        (lambda: evaluate_reranking_run([one], {"p0/speed": ranked * 2}), "twice"),
    ):
        with pytest.raises(QualcodeError, match=words):
            call()
