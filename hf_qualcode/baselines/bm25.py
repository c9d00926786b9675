"""`bm25`: search and score by words alone."""

from collections.abc import Callable, Sequence

import numpy as np

from hf_qualcode.baselines.index_searcher import IndexSearcher
from hf_qualcode.retrieve.candidates.bm25 import BM25Scorer, TokenTable


def build(corpus_ids: Sequence[str], corpus_texts: Sequence[str], *, progress=None) -> IndexSearcher:
    """A searcher over the given documents."""
    return IndexSearcher(corpus_ids, corpus_texts, retriever="bm25", progress=progress)


class BM25CodeScorer:
    """A `Scorer`: BM25 of the code for the query.

    The query is the statement alone: an instruction is the same for every code it is put to, and its words
    ("retrieve", "code", "fast") would only meet variables of that name. How rare a word is, and the mean length, are
    taken over the distinct codes of the call.
    """

    def __init__(self, progress: Callable[[str, int, int | None], None] | None = None):
        self.progress = progress

    def score(self, instructions: Sequence[str], queries: Sequence[str], codes: Sequence[str]) -> np.ndarray:
        """See `Scorer.score`."""
        distinct = list(dict.fromkeys(codes))
        ranker = BM25Scorer.from_tokens(TokenTable.from_texts(distinct))
        column = {code: number for number, code in enumerate(distinct)}
        columns = np.array([column[code] for code in codes], dtype=np.int64)
        rows_of_query: dict[str, list[int]] = {}
        for row, query in enumerate(queries):
            rows_of_query.setdefault(query, []).append(row)
        scores = np.zeros(len(codes), dtype=np.float32)
        # One query at a time: all of them with all codes would be a matrix of gigabytes.
        for number, (query, rows) in enumerate(rows_of_query.items()):
            scores[rows] = ranker.score([query])[0, columns[rows]]
            if self.progress is not None:
                self.progress("scoring by words", number + 1, len(rows_of_query))
        return scores


def scorer(progress=None) -> BM25CodeScorer:
    """A scorer of single programs."""
    return BM25CodeScorer(progress)
