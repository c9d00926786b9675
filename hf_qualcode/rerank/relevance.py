"""Whether a program belongs to a query, by the vectors of a text encoder: a cosine that has learnt what tells tasks
apart.

A plain cosine prefers some programs whatever is asked, and is moved by how a program is written. Both are mended by a
correction of low rank.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class RelevanceMap:
    """Log-odds that a code is relevant to a query, against a code drawn at random:

        scale x (query + shift) . code + (query, 1) left right^T (code, 1) + bias

    Args:
        scale, bias (`float`): Of the whole.
        shift (`np.ndarray`): float32 [dimension]; near the mean query, negated: what every query has is no evidence.
        left, right (`np.ndarray`): float32 [dimension + 1, rank].
    """

    scale: float
    bias: float
    shift: np.ndarray
    left: np.ndarray
    right: np.ndarray

    def __call__(self, queries: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """Args: queries, codes (`np.ndarray`): [n, dimension] unit vectors. Returns float64 [n]."""
        cosine = np.einsum("ij,ij->i", queries + self.shift, codes)
        return self.scale * cosine + np.einsum(
            "ij,ij->i", _with_one(queries) @ self.left, _with_one(codes) @ self.right
        ) + self.bias  # fmt: skip


def _with_one(vectors: np.ndarray) -> np.ndarray:
    return np.concatenate([vectors, np.ones((len(vectors), 1), dtype=vectors.dtype)], axis=1)


class TextVectors:
    """Vectors of texts, each encoded once while it is remembered.

    Args:
        encode (`Callable`): `encode(texts, is_query=...) -> float32 [n, dimension]`.
    """

    _MOST = 50_000

    def __init__(self, encode: Callable[..., np.ndarray]):
        self._encode = encode
        self._known: dict[tuple[bool, str], np.ndarray] = {}

    def __call__(self, texts: Sequence[str], *, is_query: bool) -> np.ndarray:
        """float32 [n, dimension]."""
        new = [text for text in dict.fromkeys(texts) if (is_query, text) not in self._known]
        if len(self._known) + len(new) > self._MOST:
            self._known.clear()
            new = list(dict.fromkeys(texts))
        if new:
            for text, vector in zip(new, self._encode(new, is_query=is_query), strict=True):
                self._known[is_query, text] = vector
        return np.stack([self._known[is_query, text] for text in texts])
