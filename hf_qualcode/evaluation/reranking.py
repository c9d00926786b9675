"""Reranking: put the documents of given lists in order, and say how far up the relevant ones stand.

Documents with equal scores count by expectation (`hf_qualcode.metrics`), so the order in which a list is given decides
nothing.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from hf_qualcode.evaluation.protocols import ScoredDocument, Scorer
from hf_qualcode.evaluation.scoring import score_triples
from hf_qualcode.evaluation.significance import Interval, bootstrap_mean
from hf_qualcode.metrics import mean_reciprocal_rank, ndcg
from hf_qualcode.types import GradedList, QualcodeError


_CUT = 10
METRICS: dict[str, Callable[[np.ndarray, np.ndarray], float]] = {
    f"mrr@{_CUT}": lambda scores, grades: mean_reciprocal_rank(scores, grades, _CUT),
    f"ndcg@{_CUT}": lambda scores, grades: ndcg(scores, grades, _CUT),
}


@dataclass(frozen=True)
class RerankingResult:
    """What a system did on graded lists, list by list.

    Attributes:
        query_ids, problem_ids, dimensions (`list[str]`): [num_lists].
        values (`dict[str, np.ndarray]`): Metric name -> float64 [num_lists].
        run (`dict[str, list[ScoredDocument]]`): List id -> documents, best first; empty for a closed form.
        missing (`int`): Documents that a run lacks, in lists that it has; they count as not found.
        empty (`int`): Lists that a run lacks; they count 0.
    """

    query_ids: list[str]
    problem_ids: list[str]
    dimensions: list[str]
    values: dict[str, np.ndarray]
    run: dict[str, list[ScoredDocument]] = field(default_factory=dict, repr=False)
    missing: int = 0
    empty: int = 0

    def metrics(self) -> dict[str, float]:
        """Mean of every metric."""
        return {name: float(values.mean()) for name, values in self.values.items()}

    def intervals(self, seed: int = 42) -> dict[str, Interval]:
        """95 % bootstrap interval of every metric; whole problems are drawn."""
        return {name: bootstrap_mean(values, self.problem_ids, seed=seed) for name, values in self.values.items()}

    def of_dimension(self, dimension: str) -> "RerankingResult":
        """The lists of one dimension."""
        rows = [i for i, name in enumerate(self.dimensions) if name == dimension]
        ids, problems, dimensions = (
            [column[i] for i in rows] for column in (self.query_ids, self.problem_ids, self.dimensions)
        )
        return RerankingResult(ids, problems, dimensions, {name: values[rows] for name, values in self.values.items()})

    def rows(self) -> list[dict]:
        """One JSON-ready row a list: id, every metric, problem and dimension."""
        return [
            {
                "id": self.query_ids[i], **{name: float(values[i]) for name, values in self.values.items()},
                "problem_id": self.problem_ids[i], "dimension": self.dimensions[i],
            }
            for i in range(len(self.query_ids))
        ]  # fmt: skip


def evaluate_reranking(lists: Sequence[GradedList], scorer: Scorer | Callable) -> RerankingResult:
    """Scores every distinct (instruction, query, document) once, in one call, and measures the order of each list.

    Args:
        lists (`Sequence[GradedList]`): [num_lists], with distinct ids.
        scorer (`Scorer` or `Callable`): The system; `f(instructions, queries, codes) -> scores` will do.

    Raises:
        `QualcodeError`: On no lists, repeated ids, or scores that are not finite or of a wrong shape.
    """
    _check(lists)
    if hasattr(scorer, "fit"):
        raise QualcodeError("a scorer that is trained on pairs cannot be run on lists; use `evaluate preference`")
    triples = [(each.instruction, each.query, text) for each in lists for text in each.documents]
    names = [f"document {doc_id!r} of list {each.id!r}" for each in lists for doc_id in each.doc_ids]
    scores = score_triples(scorer, triples, names)
    ends = np.cumsum([len(each.doc_ids) for each in lists])
    parts = np.split(scores, ends[:-1])
    run = {
        each.id: _best_first(map(ScoredDocument, each.doc_ids, part.tolist()))
        for each, part in zip(lists, parts, strict=True)
    }
    return _measure(lists, run)


def evaluate_reranking_run(
    lists: Sequence[GradedList], run: Mapping[str, Sequence[ScoredDocument]]
) -> RerankingResult:
    """Measures a run that was made elsewhere. What it does not rank counts as not found.

    Args:
        lists (`Sequence[GradedList]`): [num_lists], with distinct ids.
        run (`Mapping[str, Sequence[ScoredDocument]]`): List id -> documents, as from `read_run`.

    Raises:
        `QualcodeError`: On a list or document that the data set does not have, or a document twice.
    """
    _check(lists)
    documents = {each.id: frozenset(each.doc_ids) for each in lists}
    for list_id, answer in run.items():
        if list_id not in documents:
            raise QualcodeError(f"the run has list {list_id!r}, which the data lacks; was it made for another set?")
        for document in answer:
            if document.doc_id not in documents[list_id]:
                raise QualcodeError(f"list {list_id!r}: document {document.doc_id!r} is not in it")
        if len({document.doc_id for document in answer}) != len(answer):
            raise QualcodeError(f"list {list_id!r}: the run has a document twice")
    return _measure(lists, {each.id: _best_first(run.get(each.id, ())) for each in lists})


def random_reranking(lists: Sequence[GradedList]) -> RerankingResult:
    """What a random order of every list gets on average, in closed form: all documents are tied.

    Args:
        lists (`Sequence[GradedList]`): [num_lists].
    """
    _check(lists)
    tied = {each.id: [ScoredDocument(doc_id, 0.0) for doc_id in each.doc_ids] for each in lists}
    return _measure(lists, tied, keep_run=False)


def _check(lists: Sequence[GradedList]) -> None:
    if not lists:
        raise QualcodeError("there are no lists to evaluate")
    seen = set()
    for each in lists:
        if each.id in seen:
            raise QualcodeError(f"list id {each.id!r} appears twice; ids must be distinct")
        if not len(each.doc_ids) == len(each.documents) == len(each.grades) > 0:
            raise QualcodeError(f"list {each.id!r} is empty, or its ids, documents and grades are not equally many")
        seen.add(each.id)


def _best_first(documents) -> list[ScoredDocument]:
    return sorted(documents, key=lambda document: -document.score)


def _measure(lists: Sequence[GradedList], run: dict[str, list[ScoredDocument]], keep_run=True) -> RerankingResult:
    values = {name: np.zeros(len(lists)) for name in METRICS}
    missing = empty = 0
    for i, each in enumerate(lists):
        answer = run[each.id]
        if not answer:
            empty += 1
            continue
        missing += len(each.doc_ids) - len(answer)
        grade_of = dict(zip(each.doc_ids, each.grades, strict=True))
        scores = np.array([document.score for document in answer])
        grades = [grade_of.pop(document.doc_id) for document in answer]
        if grade_of:
            # What is not ranked is not found: it stands beyond the cut, but its grades belong to the ideal order.
            scores = np.unique(scores, return_inverse=True)[1]
            scores = np.concatenate([scores, np.full(_CUT, -1), np.full(len(grade_of), -2)])
            grades += [0] * _CUT + list(grade_of.values())
        for name, metric in METRICS.items():
            values[name][i] = metric(scores, np.array(grades))
    problem_ids, dimensions = [each.problem_id for each in lists], [each.dimension for each in lists]
    ids = [each.id for each in lists]
    return RerankingResult(ids, problem_ids, dimensions, values, run if keep_run else {}, missing, empty)
