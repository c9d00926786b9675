"""The retrieval driver on small searchers: values by hand, ties, cut lists, wrong answers, runs."""

import numpy as np
import pytest

from hf_qualcode.corpus.retrieval_data import RetrievalData
from hf_qualcode.evaluation.protocols import ScoredDocument, Searcher
from hf_qualcode.evaluation.report import comparison_report, retrieval_report
from hf_qualcode.evaluation.retrieval import evaluate_retrieval, evaluate_run, random_baseline
from hf_qualcode.evaluation.score_files import read_metric_rows, write_rows
from hf_qualcode.evaluation.significance import bootstrap_mean, paired_bootstrap, paired_permutation
from hf_qualcode.evaluation.trec import read_run, write_run
from hf_qualcode.metrics import hit_at_k, mean_reciprocal_rank, recall_at_k
from hf_qualcode.types import QualcodeError


class MatrixSearcher:
    """Answers query number i from row i of a score matrix, best first."""

    def __init__(self, scores):
        self.scores = np.asarray(scores, dtype=float)
        self.calls = []

    def search(self, queries, top_k):
        self.calls.append((list(queries), top_k))
        rows = [self.scores[int(query.removeprefix("query "))] for query in queries]
        return [[ScoredDocument(f"d{i}", float(row[i])) for i in np.argsort(-row)[:top_k]] for row in rows]


class FixedSearcher:
    def __init__(self, answer):
        self.answer = answer

    def search(self, queries, top_k):
        return [self.answer] * len(queries)


def make_data(num_queries, num_documents, relevant=None):
    return RetrievalData(
        name="toy",
        split="dev",
        corpus_ids=[f"d{i}" for i in range(num_documents)],
        corpus_texts=["code"] * num_documents,
        query_ids=[f"q{i}" for i in range(num_queries)],
        query_texts=[f"query {i}" for i in range(num_queries)],
        qrels={f"q{i}": {f"d{d}": 1 for d in (relevant[i] if relevant else [i])} for i in range(num_queries)},
    )


def test_values_by_hand():
    searcher = MatrixSearcher([[5, 4, 3, 2], [5, 4, 3, 2], [5, 4, 1, 2], [1, 1, 1, 1]])
    result = evaluate_retrieval(make_data(4, 4), searcher)
    assert isinstance(searcher, Searcher)
    assert result.values["hit@1"].tolist() == [1, 0, 0, 0.25]
    assert result.values["hit@3"].tolist() == pytest.approx([1, 1, 0, 0.75])
    assert result.values["mrr@20"].tolist() == pytest.approx([1, 1 / 2, 1 / 4, (1 + 1 / 2 + 1 / 3 + 1 / 4) / 4])
    assert result.ranks == [1, 2, 4, 2.5]
    assert result.metrics()["hit@1"] == pytest.approx(1.25 / 4)
    interval = result.intervals()["hit@1"]
    assert interval.low <= interval.mean <= interval.high
    assert result.rows()[1] == {
        "id": "q1", "hit@1": 0.0, "hit@3": 1.0, "hit@5": 1.0, "mrr@20": 0.5, "recall@100": 1.0, "rank": 2.0
    }  # fmt: skip


def test_equals_the_metrics_on_whole_rows_with_ties_across_every_cut():
    rng = np.random.default_rng(0)
    relevant = [rng.choice(700, rng.integers(1, 5), replace=False).tolist() for _ in range(30)]
    # Few distinct scores: groups of ties reach across the depth of the first search.
    scores = rng.integers(0, rng.integers(2, 60, (30, 1)), (30, 700))
    scores[::7] = 0
    searcher = MatrixSearcher(scores)
    result = evaluate_retrieval(make_data(30, 700, relevant), searcher)
    for i in range(30):
        grades = np.isin(np.arange(700), relevant[i]).astype(int)
        assert result.values["hit@1"][i] == pytest.approx(hit_at_k(scores[i], grades, 1))
        assert result.values["mrr@20"][i] == pytest.approx(mean_reciprocal_rank(scores[i], grades, 20))
        assert result.values["recall@100"][i] == pytest.approx(recall_at_k(scores[i], grades, 100))
    assert len(searcher.calls[0][0]) == 30
    assert all(len(queries) < 30 for queries, _ in searcher.calls[1:])


def test_queries_are_searched_once_where_scores_differ():
    searcher = MatrixSearcher(np.random.default_rng(1).permutation(5 * 1000).reshape(5, 1000))
    evaluate_retrieval(make_data(5, 1000), searcher)
    assert [len(queries) for queries, _ in searcher.calls] == [5]


def test_a_document_that_is_not_returned_is_not_found():
    result = evaluate_retrieval(make_data(2, 300), FixedSearcher([ScoredDocument("d1", 0.0)]))
    assert result.values["hit@1"].tolist() == [0, 1]
    assert result.ranks == [None, 1]
    nothing = evaluate_retrieval(make_data(2, 300), FixedSearcher([]))
    assert nothing.metrics()["recall@100"] == 0
    assert nothing.empty == 2


def test_relevant_documents_beyond_the_list_count_in_recall():
    data = make_data(1, 300, relevant=[[0, 1, 2, 3]])
    result = evaluate_retrieval(data, FixedSearcher([ScoredDocument("d0", 2.0), ScoredDocument("d9", 1.0)]))
    assert result.metrics()["recall@100"] == 0.25


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ([ScoredDocument("d1", 1.0), ScoredDocument("d1", 0.5)], "'d1' was returned twice"),
        ([ScoredDocument("x", 1.0)], "'x' is not in the corpus"),
        ([ScoredDocument("d1", float("nan"))], "score nan"),
        ([ScoredDocument("d1", float("inf"))], "score inf"),
    ],
)
def test_wrong_answers_are_errors(answer, words):
    with pytest.raises(QualcodeError, match=words):
        evaluate_retrieval(make_data(2, 5), FixedSearcher(answer))
    with pytest.raises(QualcodeError, match=words):
        evaluate_run(make_data(2, 5), {"q0": answer})


def test_a_searcher_that_loses_queries_is_an_error():
    class Forgetful:
        def search(self, queries, top_k):
            return [[]]

    with pytest.raises(QualcodeError, match="1 answers to 2 queries"):
        evaluate_retrieval(make_data(2, 5), Forgetful())


def test_a_saved_run_gives_the_same_numbers(tmp_path):
    scores = np.random.default_rng(2).integers(0, 40, (6, 500)) / 7
    data = make_data(6, 500)
    result = evaluate_retrieval(data, MatrixSearcher(scores))
    write_run(tmp_path / "run", result.run)
    again = evaluate_run(data, read_run(tmp_path / "run"))
    for name, values in result.values.items():
        assert np.array_equal(again.values[name], values), name


def test_a_run_says_where_it_falls_short():
    data = make_data(3, 50)
    tied = [ScoredDocument(f"d{i}", 1.0) for i in range(5)]
    result = evaluate_run(data, {"q0": tied, "q1": tied[:2]})
    assert result.empty == 1
    assert result.cut_ties == 1
    with pytest.raises(QualcodeError, match="'other'.*another split"):
        evaluate_run(data, {"other": tied})


def test_random_baseline_is_the_mean_over_orders():
    data = make_data(2, 40, relevant=[[0], [1, 2, 3]])
    result = random_baseline(data)
    assert result.values["hit@1"].tolist() == pytest.approx([1 / 40, 3 / 40])
    assert result.values["hit@5"][0] == pytest.approx(5 / 40)
    assert result.values["recall@100"].tolist() == [1, 1]
    assert result.values["mrr@20"][0] == pytest.approx(sum(1 / rank for rank in range(1, 21)) / 40)
    tied = evaluate_retrieval(data, MatrixSearcher(np.zeros((2, 40))))
    for name, values in result.values.items():
        assert values == pytest.approx(tied.values[name]), name


def without_excluded(data, query_number):
    """The same test set for one query, with a corpus that never held what it excludes."""
    query_id = data.query_ids[query_number]
    left_out = data.excluded.get(query_id, ())
    ids = [doc_id for doc_id in data.corpus_ids if doc_id not in left_out]
    return RetrievalData(
        "toy", "dev", ids, ["code"] * len(ids), [query_id], [data.query_texts[query_number]],
        {query_id: {d: g for d, g in data.qrels[query_id].items() if d in ids}},
    )  # fmt: skip


def data_with_excluded(num_queries=12, num_documents=900, seed=3):
    rng = np.random.default_rng(seed)
    relevant = [rng.choice(num_documents, rng.integers(1, 4), replace=False).tolist() for _ in range(num_queries)]
    plain = make_data(num_queries, num_documents, relevant)
    excluded = {
        f"q{i}": [f"d{d}" for d in rng.permutation(num_documents)[: rng.choice([0, 1, 250, 600])] if d not in ours]
        for i, ours in enumerate(relevant)
    }
    fields = {name: getattr(plain, name) for name in RetrievalData.__slots__}
    return RetrievalData(**{**fields, "excluded": excluded})


def test_excluded_documents_are_as_if_the_corpus_lacked_them():
    data = data_with_excluded()
    rng = np.random.default_rng(4)
    scores = rng.integers(0, rng.choice([2, 7, 60, 10_000], (12, 1)), (12, 900)).astype(float)
    # Excluded documents lead some lists: what is left of the first 200 would be too little.
    for i, query_id in enumerate(data.query_ids[::2]):
        scores[2 * i, [int(d[1:]) for d in data.excluded[query_id]]] += 20_000
    result = evaluate_retrieval(data, MatrixSearcher(scores))
    for i in range(12):
        alone = without_excluded(data, i)
        kept = [int(d[1:]) for d in alone.corpus_ids]
        answer = [ScoredDocument(f"d{d}", scores[i, d]) for d in kept]
        expected = evaluate_retrieval(alone, FixedSearcher(answer))
        for name in result.values:
            assert result.values[name][i] == pytest.approx(expected.values[name][0]), (i, name)
        if result.ranks[i] is None:  # beyond the depth of the search
            assert expected.ranks[0] > 200
        else:
            assert result.ranks[i] == pytest.approx(expected.ranks[0])
        assert not {document.doc_id for document in result.run[f"q{i}"]} & set(data.excluded[f"q{i}"])


def test_excluded_documents_leave_runs_and_the_random_baseline():
    data = data_with_excluded()
    scores = np.random.default_rng(5).permutation(12 * 900).reshape(12, 900)
    searched = evaluate_retrieval(data, MatrixSearcher(scores))
    whole = {f"q{i}": [ScoredDocument(f"d{d}", float(scores[i, d])) for d in range(900)] for i in range(12)}
    for run in (whole, searched.run):
        again = evaluate_run(data, run)
        assert all(np.array_equal(again.values[name], values) for name, values in searched.values.items())
    chance = random_baseline(data)
    tied = evaluate_retrieval(data, MatrixSearcher(np.zeros((12, 900))))
    for name, values in chance.values.items():
        assert values == pytest.approx(tied.values[name]), name
    assert chance.ranks == pytest.approx(tied.ranks)
    assert data.pool_size("q0") == len(without_excluded(data, 0).corpus_ids)


def test_queries_of_a_cluster_are_drawn_together(tmp_path):
    data = make_data(30, 60)
    fields = {name: getattr(data, name) for name in RetrievalData.__slots__}
    clustered = RetrievalData(**{**fields, "clusters": {f"q{i}": f"p{i // 3}" for i in range(30)}})
    # All queries of a problem fare alike, so there are ten results, not thirty.
    scores = np.zeros((30, 60))
    rows = np.arange(30)
    scores[rows, np.where(rows // 3 % 2, rows, 59 - rows)] = 1
    alone, together = (evaluate_retrieval(each, MatrixSearcher(scores)) for each in (data, clustered))
    values, problems = together.values["hit@1"], rows // 3
    assert together.clusters == [f"p{i}" for i in problems]
    assert together.metrics() == alone.metrics()
    assert together.intervals()["hit@1"] == bootstrap_mean(values, problems)
    assert alone.intervals()["hit@1"] == bootstrap_mean(values)
    chance = random_baseline(clustered)
    report = retrieval_report("qualcode:DIR", {}, "m", together, {"random": chance})
    difference = report["baselines"]["random"]["differences"]["hit@1"]
    assert difference["p_value"] == paired_permutation(values, chance.values["hit@1"], problems)
    assert (difference["low"], difference["high"]) == paired_bootstrap(values, chance.values["hit@1"], problems)[1:]
    # Saved and read back, a comparison draws the same.
    write_rows(tmp_path / "a", together.rows())
    write_rows(tmp_path / "b", chance.rows())
    compared = comparison_report("a", read_metric_rows(tmp_path / "a"), "b", read_metric_rows(tmp_path / "b"))
    assert compared["metrics"]["hit@1"]["p_value"] == difference["p_value"]
    assert "problem_id" not in alone.rows()[0]
    assert evaluate_run(clustered, together.run).intervals() == together.intervals()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"excluded": {"q0": ["x"]}}, "excluded document outside"),
        ({"clusters": {"q0": "p0"}}, "q1 has no cluster"),
        ({"excluded": {"q1": ["d1"]}}, "q1 has a relevant document that is excluded"),
        ({"corpus_texts": ["code"]}, "ids for 1 texts"),
        ({"corpus_ids": ["d0", "d0", "d1"]}, "corpus ids are not distinct"),
        ({"query_ids": [], "query_texts": []}, "no queries"),
        ({"qrels": {"q0": {"d0": 0}, "q1": {"d1": 1}}}, "q0 has no relevant"),
        ({"qrels": {"q0": {"d0": 1, "x": 0}, "q1": {"d1": 1}}}, "outside the corpus"),
    ],
)
def test_inconsistent_data_is_refused(change, words):
    data = make_data(2, 3)
    fields = {name: getattr(data, name) for name in RetrievalData.__slots__}
    with pytest.raises(ValueError, match=words):
        RetrievalData(**{**fields, **change})
