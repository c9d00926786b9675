"""Scores pairs: every distinct text once, in one call, whatever kind of scorer it is."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from hf_qualcode.evaluation.folds import assign_folds, training_pairs
from hf_qualcode.evaluation.protocols import LOG_ODDS, Scorer, TrainableScorer
from hf_qualcode.types import PreferencePair, QualcodeError


# What may be scored with: `f(instructions, queries, codes) -> scores` as well as the two protocols.
AnyScorer = Scorer | TrainableScorer | Callable
_Triple = tuple[str, str, str]


@dataclass(frozen=True)
class PairScores:
    """What a system gave to both sides of every pair.

    Attributes:
        positive, negative (`np.ndarray`): float64 [n], finite.
        scale (`str`): `"log-odds"` where the sigmoid of a score is a probability, else `""`.
    """

    positive: np.ndarray
    negative: np.ndarray
    scale: str = ""

    @property
    def margins(self) -> np.ndarray:
        """float64 [n]: positive minus negative."""
        return self.positive - self.negative

    @property
    def right(self) -> np.ndarray:
        """float64 [n]: 1 where the positive has the strictly higher score, else 0."""
        return (self.positive > self.negative).astype(np.float64)

    @property
    def ties(self) -> np.ndarray:
        """bool [n]: where both have one score."""
        return self.positive == self.negative

    @property
    def half_credit(self) -> np.ndarray:
        """float64 [n]: as `right`, 1/2 for a tie."""
        return self.right + self.ties / 2


class PairScorer:
    """One system, ready to score pairs.

    A trainable one is fitted once for each fold of `pairs`, when first asked, and each fold is scored by the model
    that has not seen it.

    Args:
        scorer (`Scorer`, `TrainableScorer` or `Callable`): One with `fit` is trained here, whatever else it has.
        pairs (`Sequence[PreferencePair]`): [n], what the folds are made of.
        num_folds (`int`, *optional*, defaults to 5), seed (`int`, *optional*, defaults to 42): As in `assign_folds`.
    """

    def __init__(self, scorer: AnyScorer, pairs: Sequence[PreferencePair], num_folds: int = 5, seed: int = 42):
        if not (hasattr(scorer, "fit") or hasattr(scorer, "score") or callable(scorer)):
            raise QualcodeError(
                f"{type(scorer).__name__} is no scorer; expected `score(instructions, queries, codes)`, `fit(pairs)` "
                "or a function of the three lists"
            )
        self.trainable = hasattr(scorer, "fit")
        self._scorer = scorer
        self._pairs = pairs
        self._num_folds, self._seed = num_folds, seed
        self._folds: np.ndarray | None = None
        self._fitted: list = []

    def __call__(self, pairs: Sequence[PreferencePair], *, negatives_first: bool = False) -> PairScores:
        """Scores pairs, [n], that stand in the order of those given first (and may differ from them in their texts).

        Raises:
            `QualcodeError`: On scores of a wrong number or shape, or that are not finite; the first pair is named.
        """
        if not self.trainable:
            return score_pairs(self._scorer, pairs, negatives_first=negatives_first)
        self._fit()
        positive, negative = np.empty(len(pairs)), np.empty(len(pairs))
        scales = set()
        for fold, scorer in enumerate(self._fitted):
            rows = np.flatnonzero(self._folds == fold)
            part = score_pairs(scorer, [pairs[row] for row in rows], negatives_first=negatives_first)
            positive[rows], negative[rows] = part.positive, part.negative
            scales.add(part.scale)
        return PairScores(positive, negative, scales.pop() if len(scales) == 1 else "")

    def _fit(self) -> None:
        if self._folds is not None:
            return
        folds = assign_folds(self._pairs, self._num_folds, self._seed)
        for fold in range(int(folds.max()) + 1):
            self._fitted.append(self._scorer.fit(training_pairs(self._pairs, folds, fold)))
        self._folds = folds


def score_pairs(
    scorer: Scorer | Callable, pairs: Sequence[PreferencePair], *, negatives_first: bool = False
) -> PairScores:
    """Scores both sides of all pairs in one call.

    Args:
        scorer (`Scorer` or `Callable`): The system.
        pairs (`Sequence[PreferencePair]`): [n].
        negatives_first (`bool`, *optional*, defaults to `False`):
            Present everything the other way round: the last pair first, each pair's negative before its positive.

    Raises:
        `QualcodeError`: On scores of a wrong number or shape, or that are not finite; the first pair is named.
    """
    sides = [(pair, text, side) for pair in pairs for side, text in (("positive", pair.positive),
                                                                     ("negative", pair.negative))]  # fmt: skip
    triples = [(pair.instruction, pair.query, text) for pair, text, _ in sides]
    names = [f"the {side} of pair {pair.id!r}" for pair, _, side in sides]
    if negatives_first:
        scores = score_triples(scorer, triples[::-1], names[::-1])[::-1]
    else:
        scores = score_triples(scorer, triples, names)
    return PairScores(scores[0::2], scores[1::2], scale_of(scorer))


def score_triples(scorer: Scorer | Callable, triples: Sequence[_Triple], names: Sequence[str]) -> np.ndarray:
    """Scores (instruction, query, code) triples, each distinct one once, in one call.

    Args:
        scorer (`Scorer` or `Callable`): The system.
        triples (`Sequence[tuple[str, str, str]]`): [n].
        names (`Sequence[str]`): [n], what each is, for messages.

    Returns:
        `np.ndarray`: float64 [n], finite.

    Raises:
        `QualcodeError`: On scores of a wrong number or shape, or that are not finite.
    """
    place: dict[_Triple, int] = {}
    first_name = []
    rows = np.empty(len(triples), dtype=np.int64)
    for i, (triple, name) in enumerate(zip(triples, names, strict=True)):
        rows[i] = place.setdefault(triple, len(place))
        if rows[i] == len(first_name):
            first_name.append(name)
    instructions, queries, codes = map(list, zip(*place, strict=True)) if place else ([], [], [])
    given = getattr(scorer, "score", scorer)(instructions, queries, codes)
    try:
        scores = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        kind = type(given).__name__
        raise QualcodeError(f"the scorer gave {kind}, which is no list of numbers ({error})") from error
    if scores.shape != (len(place),):
        raise QualcodeError(
            f"the scorer gave scores of shape {scores.shape} for {len(place)} texts, of which the first is "
            f"{first_name[0] if first_name else 'none'}; expected one number for each"
        )
    bad = np.flatnonzero(~np.isfinite(scores))
    if len(bad):
        raise QualcodeError(
            f"the scorer gave {scores[bad[0]]} to {first_name[bad[0]]} ({len(bad)} of {len(place)} scores are not "
            "finite); half precision that overflows does this"
        )
    return scores[rows]


def scale_of(scorer: object) -> str:
    """What a system's scores are, as far as it says: `"log-odds"` or nothing."""
    return LOG_ODDS if getattr(scorer, "scale", None) == LOG_ODDS else ""
