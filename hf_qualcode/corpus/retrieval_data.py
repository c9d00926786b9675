"""A retrieval test set: documents, queries, and which documents answer which query."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


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
    """

    name: str
    split: str
    corpus_ids: Sequence[str]
    corpus_texts: Sequence[str]
    query_ids: Sequence[str]
    query_texts: Sequence[str]
    qrels: Mapping[str, Mapping[str, int]]

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
        known = set(self.corpus_ids)
        for query_id in self.query_ids:
            grades = self.qrels.get(query_id, {})
            if not any(grade > 0 for grade in grades.values()):
                raise ValueError(f"{self.name}: query {query_id} has no relevant document.")
            if not known.issuperset(grades):
                raise ValueError(f"{self.name}: query {query_id} has a judged document outside the corpus.")
