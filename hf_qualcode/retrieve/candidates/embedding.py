"""Exact cosine scores over a matrix of unit vectors, and the one way in which scorers pick their best documents."""

from typing import NamedTuple

import numpy as np


# Bytes of float32 held at once: large enough for BLAS, small enough that a memory-mapped matrix is never copied whole.
_BLOCK_BYTES = 32 << 20


class Ranking(NamedTuple):
    """The best documents of each query, best first.

    Attributes:
        documents (`np.ndarray`): int64 [num_queries, k], positions in the scorer's corpus.
        scores (`np.ndarray`): float [num_queries, k], descending.
    """

    documents: np.ndarray
    scores: np.ndarray


def top_k(scores: np.ndarray, k: int) -> np.ndarray:
    """Positions of the `k` best scores, best first. Equal scores keep their order, so the result is unique.

    Args:
        scores (`np.ndarray`): [num_documents] or [num_queries, num_documents]; `-inf` is allowed, NaN is not.
        k (`int`): How many; fewer come back when there are fewer documents.

    Returns:
        `np.ndarray`: int64 [min(k, num_documents)] or [num_queries, min(k, num_documents)].

    Raises:
        `ValueError`: On a NaN, a negative `k` or scores of another shape.
    """
    scores = np.asarray(scores)
    if scores.ndim not in (1, 2):
        raise ValueError(f"scores has shape {scores.shape}; expected [num_documents] or [num_queries, num_documents].")
    if k < 0:
        raise ValueError(f"k is {k}; expected 0 or more.")
    if np.isnan(scores).any():
        raise ValueError("scores holds NaN, which has no place in an order; look for a failed encoder.")
    k = min(k, scores.shape[-1])
    best = np.empty((*scores.shape[:-1], k), dtype=np.int64)
    for row, best_of_row in zip(np.atleast_2d(scores), np.atleast_2d(best), strict=True):
        best_of_row[:] = _best_of(row, k)
    return best


def _best_of(row: np.ndarray, k: int) -> np.ndarray:
    if 0 < k < len(row):
        # The k-th best value is unique even where the documents that have it are not: take all better ones, then fill
        # up in document order. (Sorting all of a BM25 row costs many times more; most of it is zeros.)
        last = np.partition(row, len(row) - k)[len(row) - k]
        better = np.flatnonzero(row > last)
        chosen = np.concatenate([better, np.flatnonzero(row == last)[: k - len(better)]])
    else:
        chosen = np.arange(k)
    # Both halves ascend, so a stable sort keeps equal scores in document order.
    return chosen[np.argsort(-row[chosen], kind="stable")]


class EmbeddingScorer:
    """Exact cosine over stored unit vectors.

    Args:
        vectors (`np.ndarray`): float32 or float16 [num_documents, dimension], unit norm; a memory map is read in
            blocks and never copied whole.
    """

    def __init__(self, vectors: np.ndarray):
        if vectors.ndim != 2:
            raise ValueError(f"vectors has shape {vectors.shape}; expected [num_documents, dimension].")
        self.vectors = vectors

    @property
    def num_documents(self) -> int:
        return self.vectors.shape[0]

    def score(self, query_vectors: np.ndarray) -> np.ndarray:
        """Cosine of every query with every document.

        Args:
            query_vectors (`np.ndarray`): [num_queries, dimension], unit norm.

        Returns:
            `np.ndarray`: float32 [num_queries, num_documents].
        """
        query_vectors = self._checked(query_vectors)
        num_documents, dimension = self.vectors.shape
        scores = np.empty((query_vectors.shape[0], num_documents), dtype=np.float32)
        rows = max(1, _BLOCK_BYTES // (4 * max(1, dimension)))
        for start in range(0, num_documents, rows):
            block = np.asarray(self.vectors[start : start + rows], dtype=np.float32)
            np.matmul(query_vectors, block.T, out=scores[:, start : start + rows])
        return scores

    def rank(self, query_vectors: np.ndarray, k: int) -> Ranking:
        """The `k` nearest documents of each query, without holding all scores at once.

        Args:
            query_vectors (`np.ndarray`): [num_queries, dimension], unit norm.
            k (`int`): How many.

        Returns:
            `Ranking`: [num_queries, min(k, num_documents)].
        """
        query_vectors = self._checked(query_vectors)
        return rank_in_blocks(self.score, query_vectors, k, self.num_documents)

    def _checked(self, query_vectors: np.ndarray) -> np.ndarray:
        query_vectors = np.asarray(query_vectors, dtype=np.float32)
        if query_vectors.ndim != 2 or query_vectors.shape[1] != self.vectors.shape[1]:
            raise ValueError(
                f"query_vectors has shape {query_vectors.shape}; the documents' vectors need "
                f"[num_queries, {self.vectors.shape[1]}]. Were both made by the same encoder?"
            )
        return query_vectors


def rank_in_blocks(score, queries, k: int, num_documents: int) -> Ranking:
    """Scores and ranks a few queries at a time, so that memory does not grow with queries x documents.

    Args:
        score (`Callable`): Maps a slice of `queries` to float32 [num_queries, num_documents].
        queries (`Sequence`): Anything that can be sliced.
        k (`int`): How many documents a query.
        num_documents (`int`): Size of the corpus.

    Returns:
        `Ranking`: [num_queries, min(k, num_documents)].
    """
    step = max(1, _BLOCK_BYTES // (4 * max(1, num_documents)))
    shape = (len(queries), min(k, num_documents))
    ranking = Ranking(np.empty(shape, dtype=np.int64), np.empty(shape, dtype=np.float32))
    for start in range(0, len(queries), step):
        scores = score(queries[start : start + step])
        best = top_k(scores, k)
        ranking.documents[start : start + step] = best
        ranking.scores[start : start + step] = np.take_along_axis(scores, best, axis=1)
    return ranking
