"""Retrieval: search every query of a test set once, and say how far up the right code stands.

A document that a searcher does not return is not found, whatever its list might have held further down. Documents with
equal scores count by expectation (`hf_qualcode.metrics`), so a searcher gains nothing by the order in which it returns
them. What a test set excludes from a query's pool is dropped from its list before anything is measured.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

import numpy as np

from hf_qualcode.corpus.retrieval_data import RetrievalData
from hf_qualcode.evaluation.protocols import ScoredDocument, Searcher
from hf_qualcode.evaluation.significance import Interval, bootstrap_mean
from hf_qualcode.metrics import hit_at_k, mean_reciprocal_rank, recall_at_k
from hf_qualcode.types import QualcodeError


# Name -> (scores, grades, number of relevant documents in the corpus) -> value, in the order of the reports.
METRICS: dict[str, Callable[[np.ndarray, np.ndarray, int], float]] = {
    "hit@1": lambda scores, grades, _: hit_at_k(scores, grades, 1),
    "hit@3": lambda scores, grades, _: hit_at_k(scores, grades, 3),
    "hit@5": lambda scores, grades, _: hit_at_k(scores, grades, 5),
    "mrr@20": lambda scores, grades, _: mean_reciprocal_rank(scores, grades, 20),
    "recall@100": lambda scores, grades, num_relevant: recall_at_k(scores, grades, 100, num_relevant),
}
MAX_CUT = 100
_DEPTH = 2 * MAX_CUT


@dataclass(frozen=True)
class RetrievalResult:
    """What a searcher did on a test set, query by query.

    Attributes:
        query_ids (`list[str]`): [num_queries].
        values (`dict[str, np.ndarray]`): Metric name -> float64 [num_queries].
        ranks (`list[float | None]`):
            [num_queries], expected rank of the best-placed relevant document (the middle of its group of ties); `None`
            where none was returned.
        run (`dict[str, list[ScoredDocument]]`): Query id -> documents returned, best first; empty for a closed form.
        cut_ties (`int`): Queries whose list ends within a group of ties that began before rank 100 (run files only):
            the rest of that group is unknown, so their values depend on where the list was cut.
        empty (`int`): Queries without any returned document.
        clusters (`list[str]`, *optional*): [num_queries], what each belongs to; `None` where queries stand alone.
    """

    query_ids: list[str]
    values: dict[str, np.ndarray]
    ranks: list[float | None]
    run: dict[str, list[ScoredDocument]] = field(default_factory=dict, repr=False)
    cut_ties: int = 0
    empty: int = 0
    clusters: list[str] | None = None

    def metrics(self) -> dict[str, float]:
        """Mean of every metric."""
        return {name: float(values.mean()) for name, values in self.values.items()}

    def intervals(self, seed: int = 42) -> dict[str, Interval]:
        """95 % bootstrap interval of every metric; whole clusters are drawn where there are any."""
        return {name: bootstrap_mean(values, self.clusters, seed=seed) for name, values in self.values.items()}

    def rows(self) -> list[dict]:
        """One JSON-ready row a query: id, every metric, rank, and its cluster as `problem_id` where it has one."""
        return [
            {
                "id": query_id, **{name: float(values[i]) for name, values in self.values.items()},
                "rank": self.ranks[i], **({"problem_id": self.clusters[i]} if self.clusters else {}),
            }
            for i, query_id in enumerate(self.query_ids)
        ]  # fmt: skip


def evaluate_retrieval(data: RetrievalData, searcher: Searcher) -> RetrievalResult:
    """Searches all queries of a test set and measures the answers.

    All queries are searched in one call. A list that was cut within a group of ties that reaches into the first 100
    does not tell the size of that group, so those queries alone are asked again, for more.

    Args:
        data (`RetrievalData`): The test set.
        searcher (`Searcher`): Built for `data`'s corpus.

    Returns:
        `RetrievalResult`: Per-query values and the run.

    Raises:
        `QualcodeError`: When an answer holds a document twice, an unknown one, or a score that is not finite.
    """
    texts = dict(zip(data.query_ids, data.query_texts, strict=True))
    corpus = frozenset(data.corpus_ids)
    run: dict[str, list[ScoredDocument]] = {}
    # Deep enough that `_DEPTH` are left of every list when what its query excludes has been dropped.
    pending, depth = list(data.query_ids), min(_DEPTH + max(_num_excluded(data)), len(corpus))
    while pending:
        answers = searcher.search([texts[query_id] for query_id in pending], depth)
        if len(answers) != len(pending):
            raise QualcodeError(f"The searcher gave {len(answers)} answers to {len(pending)} queries.")
        for query_id, answer in zip(pending, answers, strict=True):
            run[query_id] = _checked(query_id, answer, corpus)
        if depth >= len(corpus):
            break
        pending = [
            query_id for query_id in pending if len(run[query_id]) >= depth and _cut_in_ties(data, query_id, run)
        ]
        depth = min(8 * depth, len(corpus))
    return _measure(data, {query_id: _in_pool(data, query_id, run[query_id]) for query_id in data.query_ids})


def evaluate_run(data: RetrievalData, run: Mapping[str, Sequence[ScoredDocument]]) -> RetrievalResult:
    """Measures a run that was made elsewhere. A query that the run lacks counts as not answered.

    Args:
        data (`RetrievalData`): The test set.
        run (`Mapping[str, Sequence[ScoredDocument]]`): Query id -> documents, as from `read_run`.

    Returns:
        `RetrievalResult`: Per-query values; `empty` and `cut_ties` say where the run falls short.

    Raises:
        `QualcodeError`: On a query or document that the test set does not have, a repeated document or a bad score.
    """
    known = set(data.query_ids)
    foreign = [query_id for query_id in run if query_id not in known]
    if foreign:
        raise QualcodeError(
            f"The run has {len(foreign)} queries that {data.name} {data.split} lacks, {foreign[0]!r} among them; "
            "was it made for another split?"
        )
    corpus = frozenset(data.corpus_ids)
    checked = {query_id: _checked(query_id, run.get(query_id, ()), corpus) for query_id in data.query_ids}
    # Only the longest lists of a run were cut; a shorter one held all that its system had to say.
    longest = max(map(len, checked.values()))
    cut = sum(
        longest == len(answer) < len(corpus) and _cut_in_ties(data, query_id, checked)
        for query_id, answer in checked.items()
    )
    return _measure(data, {query_id: _in_pool(data, query_id, checked[query_id]) for query_id in checked}, cut)


def random_baseline(data: RetrievalData) -> RetrievalResult:
    """What a random order of each query's pool gets on average, in closed form: one group of ties that holds it all.

    Args:
        data (`RetrievalData`): The test set.

    Returns:
        `RetrievalResult`: Expected values; no run.
    """

    @cache
    def expected(pool_size: int, num_relevant: int) -> dict[str, float]:
        scores, grades = np.zeros(pool_size), np.zeros(pool_size)
        grades[:num_relevant] = 1
        return {name: metric(scores, grades, num_relevant) for name, metric in METRICS.items()}

    sizes = [(data.pool_size(query_id), _num_relevant(data, query_id)) for query_id in data.query_ids]
    rows = [expected(*size) for size in sizes]
    values = {name: np.array([row[name] for row in rows]) for name in METRICS}
    ranks: list[float | None] = [_expected_first(*size) for size in sizes]
    return RetrievalResult(list(data.query_ids), values, ranks, clusters=_clusters(data, data.query_ids))


def _checked(query_id: str, answer: Sequence[ScoredDocument], corpus: frozenset[str]) -> list[ScoredDocument]:
    seen = set()
    for document in answer:
        if document.doc_id in seen:
            raise QualcodeError(f"Query {query_id}: document {document.doc_id!r} was returned twice.")
        if document.doc_id not in corpus:
            raise QualcodeError(f"Query {query_id}: document {document.doc_id!r} is not in the corpus.")
        if not np.isfinite(document.score):
            raise QualcodeError(f"Query {query_id}: document {document.doc_id!r} has score {document.score}.")
        seen.add(document.doc_id)
    return sorted(answer, key=lambda document: -document.score)


def _num_excluded(data: RetrievalData) -> list[int]:
    return [len(data.corpus_ids) - data.pool_size(query_id) for query_id in data.query_ids]


def _in_pool(data: RetrievalData, query_id: str, answer: list[ScoredDocument]) -> list[ScoredDocument]:
    excluded = frozenset(data.excluded.get(query_id, ()))
    return [document for document in answer if document.doc_id not in excluded] if excluded else answer


def _cut_in_ties(data: RetrievalData, query_id: str, run: Mapping[str, list[ScoredDocument]]) -> bool:
    """Whether a list that was cut ends within a group of ties that begins within the first `MAX_CUT` of the pool."""
    answer = run[query_id]
    if len(answer) < 2 or answer[-1].score != answer[-2].score:
        return False
    return sum(document.score > answer[-1].score for document in _in_pool(data, query_id, answer)) < MAX_CUT


def _expected_first(num_tied: int, num_relevant: int) -> float:
    """Mean place of the first of `num_relevant` items in a random order of `num_tied`: (n + 1) / (r + 1)."""
    return (num_tied + 1) / (num_relevant + 1)


def _num_relevant(data: RetrievalData, query_id: str) -> int:
    return sum(grade > 0 for grade in data.qrels[query_id].values())


def _measure(data: RetrievalData, run: dict[str, list[ScoredDocument]], cut_ties: int = 0) -> RetrievalResult:
    values = {name: np.zeros(len(run)) for name in METRICS}
    ranks: list[float | None] = [None] * len(run)
    for i, (query_id, answer) in enumerate(run.items()):
        if not answer:
            continue
        grades_of = data.qrels[query_id]
        scores = np.array([document.score for document in answer])
        grades = np.array([max(0, grades_of.get(document.doc_id, 0)) for document in answer])
        for name, metric in METRICS.items():
            values[name][i] = metric(scores, grades, _num_relevant(data, query_id))
        if grades.any():
            best = scores[grades > 0].max()
            tied = scores == best
            ranks[i] = float(np.sum(scores > best) + _expected_first(tied.sum(), (tied & (grades > 0)).sum()))
    empty = sum(not answer for answer in run.values())
    return RetrievalResult(list(run), values, ranks, run, cut_ties, empty, _clusters(data, run))


def _clusters(data: RetrievalData, query_ids: Iterable[str]) -> list[str] | None:
    return [data.clusters[query_id] for query_id in query_ids] if data.clusters else None
