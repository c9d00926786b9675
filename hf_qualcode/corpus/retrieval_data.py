"""A retrieval test set: documents, queries, and which documents answer which query."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class RetrievalData:
    """A retrieval test set, in the three parts that the field uses.

    Attributes:
        name (`str`): For reports, for example `cosqa`.
        split (`str`): For example `dev`.
        corpus_ids (`Sequence[str]`): [num_documents], distinct.
        corpus_texts (`Sequence[str]`): [num_documents].
        query_ids (`Sequence[str]`): [num_queries], distinct.
        query_texts (`Sequence[str]`): [num_queries].
        qrels (`Mapping[str, Mapping[str, int]]`): Query id -> document id -> grade; every query has a grade above 0.
        excluded (`Mapping[str, Collection[str]]`, *optional*): Query id -> documents that are not in this query's
            pool, as if the corpus lacked them; neither right nor wrong to return.
        clusters (`Mapping[str, str]`, *optional*): Query id -> what it belongs to (its problem). Intervals and tests
            draw whole clusters; without them each query stands alone. All queries have one, or none has.
    """

    name: str
    split: str
    corpus_ids: Sequence[str]
    corpus_texts: Sequence[str]
    query_ids: Sequence[str]
    query_texts: Sequence[str]
    qrels: Mapping[str, Mapping[str, int]]
    excluded: Mapping[str, Collection[str]] = field(default_factory=dict)
    clusters: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self):
        for part, ids, texts in (
            ("corpus", self.corpus_ids, self.corpus_texts),
            ("query", self.query_ids, self.query_texts),
        ):
            if len(ids) != len(texts):
                raise ValueError(f"{self.name}: {len(ids)} {part} ids for {len(texts)} texts.")
            if len(set(ids)) != len(ids):
                raise ValueError(f"{self.name}: the {part} ids are not distinct.")
        if not self.query_ids:
            raise ValueError(f"{self.name}: there are no queries.")
        lacking = [query_id for query_id in self.query_ids if not self.clusters.get(query_id)]
        if self.clusters and lacking:
            raise ValueError(f"{self.name}: query {lacking[0]} has no cluster, which others have.")
        known = set(self.corpus_ids)
        for query_id in self.query_ids:
            grades = self.qrels.get(query_id, {})
            if not any(grade > 0 for grade in grades.values()):
                raise ValueError(f"{self.name}: query {query_id} has no relevant document.")
            if not known.issuperset(grades):
                raise ValueError(f"{self.name}: query {query_id} has a judged document outside the corpus.")
            left_out = self.excluded.get(query_id, ())
            if not known.issuperset(left_out):
                raise ValueError(f"{self.name}: query {query_id} has an excluded document outside the corpus.")
            if any(grades.get(document, 0) > 0 for document in left_out):
                raise ValueError(f"{self.name}: query {query_id} has a relevant document that is excluded.")

    def pool_size(self, query_id: str) -> int:
        """Number of documents in a query's pool."""
        return len(self.corpus_ids) - len(set(self.excluded.get(query_id, ())))
