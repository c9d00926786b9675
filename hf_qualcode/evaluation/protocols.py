"""What an evaluation asks of the thing it evaluates. Any object with these methods will do; nothing is inherited."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np


class ScoredDocument(NamedTuple):
    """One hit of a `Searcher`.

    Attributes:
        doc_id (`str`): Id of the document in the evaluated corpus.
        score (`float`): Higher is better; comparable within one query.
    """

    doc_id: str
    score: float


@runtime_checkable
class Scorer(Protocol):
    """Scores triplets of instruction, query and code."""

    def score(self, instructions: Sequence[str], queries: Sequence[str], codes: Sequence[str]) -> np.ndarray:
        """Scores three parallel lists.

        Returns:
            `np.ndarray`: float32 [n], higher is better.
        """
        ...


@runtime_checkable
class TrainableScorer(Protocol):
    """Makes a `Scorer` from labelled pairs. The driver fits it on other problems than those it is scored on."""

    def fit(self, pairs: Sequence) -> Scorer:
        """Trains on preference pairs (rows of the benchmark's schema) and returns the trained scorer."""
        ...


@runtime_checkable
class Searcher(Protocol):
    """Finds documents of the corpus it was built for."""

    def search(self, queries: Sequence[str], top_k: int) -> list[list[ScoredDocument]]:
        """Searches all queries.

        Returns:
            `list[list[ScoredDocument]]`: One list a query, each of at most `top_k` distinct documents.
        """
        ...
