"""What an evaluation asks of the thing it evaluates. Any object with these methods will do; nothing is inherited."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np

from hf_qualcode.types import PreferencePair


LOG_ODDS = "log-odds"


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
    """Scores triplets of instruction, query and code.

    One whose scores are log-odds, so that their sigmoid is a probability, says so by an attribute `scale = LOG_ODDS`;
    only then are margins shown as probabilities.
    """

    def score(self, instructions: Sequence[str], queries: Sequence[str], codes: Sequence[str]) -> np.ndarray:
        """Scores three parallel lists.

        Returns:
            `np.ndarray`: float32 [n], higher is better.
        """
        ...


@runtime_checkable
class TrainableScorer(Protocol):
    """Makes a `Scorer` from labelled pairs. The driver fits it on other problems than those it is scored on."""

    def fit(self, pairs: Sequence[PreferencePair]) -> Scorer:
        """Trains on preference pairs and returns the trained scorer."""
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


class NamedScorer(NamedTuple):
    """A scorer with the name that a report shows.

    Attributes:
        name (`str`): Distinct within a report.
        scorer (`Scorer` or `TrainableScorer`): A trainable one is run out-of-fold.
    """

    name: str
    scorer: Scorer | TrainableScorer


class Slice(NamedTuple):
    """A part of the pairs that is reported on its own, chosen without looking at scores.

    Attributes:
        name (`str`): Short, distinct within a report.
        description (`str`): What is in it, in words.
        select (`Callable`):
            `select(pairs, labels) -> bool array [n]`, where `labels` maps a submission id to its row of the data set's
            labels and may be empty.
    """

    name: str
    description: str
    select: Callable[[Sequence[PreferencePair], Mapping[str, Any]], np.ndarray]


class Perturbation(NamedTuple):
    """A change to the pairs, and what it should do to the scores of a model that judges code by its quality.

    Attributes:
        name (`str`): Short, distinct within a report.
        description (`str`): What is changed, in words.
        transform (`Callable`):
            `transform(pairs) -> list[PreferencePair]`, [n] in the same order with the same ids and problem ids;
            `positive` stays the changed text of what was `positive`.
        expected (`str`):
            `"same"`: scores should not move. `"reversed"`: the order within each pair should turn round.
    """

    name: str
    description: str
    transform: Callable[[Sequence[PreferencePair]], list[PreferencePair]]
    expected: Literal["same", "reversed"]
