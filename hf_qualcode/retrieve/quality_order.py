"""Relevance and quality in one order: what a retriever found, judged by a reranker.

The two give scores of different scales, so places are mixed: each score becomes the share of the judged units that it
is above.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from hf_qualcode.quality import dimension_names, instruction_for
from hf_qualcode.types import QualcodeError, UsageError


Progress = Callable[[str, int, int | None], None]

# Of each query's ranking, so many are judged.
NUM_JUDGED = 50
QUALITY_WEIGHT = 0.5
# Equal mixtures are equal numbers, whatever the weight's rounding.
_DECIMALS = 12


class QualityReranker(Protocol):
    """What judges: `hf_qualcode.Reranker`, or any object with this method."""

    def score(
        self,
        queries: Sequence[str],
        codes: Sequence[str],
        *,
        quality: Sequence[str] = (),
        instruction: str | Sequence[str] | None = None,
        progress: Progress | None = None,
    ) -> np.ndarray:
        """Scores parallel lists. `progress` is given only where somebody wants to know.

        Returns:
            `np.ndarray`: float32 `[n]`, higher is better.
        """
        ...


class QualityOrder(NamedTuple):
    """A ranking in a new order.

    Attributes:
        order (`np.ndarray`): int64 `[n]`, places in the old ranking, best first.
        scores (`np.ndarray`): float64 `[n]` in the new order, descending.
    """

    order: np.ndarray
    scores: np.ndarray


def asked_qualities(quality: str | Iterable[str]) -> tuple[str, ...]:
    """Names of dimensions in the order of instructions, each once.

    Raises:
        `UsageError`: An unknown name; the message lists those there are.
    """
    if not isinstance(quality, str) and not quality:
        return ()
    try:
        asked = {quality} if isinstance(quality, str) else set(quality)
        instruction_for(asked)
    except (TypeError, ValueError) as error:
        raise UsageError(f"quality {quality!r}: {error}") from None
    return tuple(name for name in dimension_names() if name in asked)


def check_weight(weight: float) -> None:
    """Refuse a weight outside [0, 1], NaN among them.

    Raises:
        `UsageError`: When it is.
    """
    if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 <= weight <= 1:
        raise UsageError(f"quality weight {weight!r}: a number from 0 (as retrieved) to 1 (the reranker) is needed")


def percentiles(scores: np.ndarray) -> np.ndarray:
    """The share of the scores that each is above, equal ones and itself counted half.

    Args:
        scores (`np.ndarray`): `[n]`, finite.

    Returns:
        `np.ndarray`: float64 `[n]`, from 1 / 2n (the lowest) to 1 - 1 / 2n.
    """
    _, place, counts = np.unique(scores, return_inverse=True, return_counts=True)
    below = np.cumsum(counts) - counts
    return (below + counts / 2)[place] / max(1, len(scores))


def quality_order(
    retrieval_scores: np.ndarray, quality_scores: np.ndarray, weight: float = QUALITY_WEIGHT
) -> QualityOrder:
    """Mixes the retriever's order with the reranker's.

    The first `m` units get `(1 - weight) x percentile(retrieval) + weight x percentile(quality)`, of those `m`; equal
    mixtures stay in the retriever's order. Units beyond them follow as they were retrieved, with scores -1, -2
    and so on, equal where the retriever's are.

    Args:
        retrieval_scores (`np.ndarray`): `[n]`, best first.
        quality_scores (`np.ndarray`): `[m]`, m <= n: of the first m units.
        weight (`float`, *optional*, defaults to 0.5): 0 keeps the retriever's order, 1 is the reranker's alone.

    Returns:
        `QualityOrder`: all n units.
    """
    num_judged = len(quality_scores)
    retrieval_scores = np.asarray(retrieval_scores, dtype=np.float64)
    mixed = (1 - weight) * percentiles(retrieval_scores[:num_judged]) + weight * percentiles(quality_scores)
    mixed = np.round(mixed, _DECIMALS)
    order = np.argsort(-mixed, kind="stable")
    rest = retrieval_scores[num_judged:]
    below = -1.0 - np.searchsorted(-rest, -rest, side="left")
    return QualityOrder(
        np.concatenate([order, np.arange(num_judged, len(retrieval_scores))]), np.concatenate([mixed[order], below])
    )


def judge(
    reranker: QualityReranker,
    queries: Sequence[str],
    code_lists: Sequence[Sequence[str]],
    quality: Sequence[str],
    progress: Progress | None = None,
) -> list[np.ndarray]:
    """The reranker's scores of several queries' codes, all in one call; none where there is no code.

    Args:
        reranker (`QualityReranker`): What judges.
        queries (`Sequence[str]`): `[num_queries]`.
        code_lists (`Sequence[Sequence[str]]`): `[num_queries]`, the codes of each.
        quality (`Sequence[str]`): What is asked for, as from `asked_qualities`.
        progress (`Callable`, *optional*): Called as `progress(stage, done, total)`.

    Returns:
        `list[np.ndarray]`: float32 `[len(codes)]` for each query.

    Raises:
        `QualcodeError`: On scores that are not finite, or not one for each code.
    """
    codes = [code for each in code_lists for code in each]
    lengths = [len(each) for each in code_lists]
    if not codes:
        return [np.zeros(0, dtype=np.float32) for _ in code_lists]
    repeated = [query for query, length in zip(queries, lengths, strict=True) for _ in range(length)]
    told = {} if progress is None else {"progress": progress}
    scores = np.asarray(reranker.score(repeated, codes, quality=quality, **told), dtype=np.float32)
    if scores.shape != (len(codes),):
        raise QualcodeError(f"the reranker gave scores of shape {scores.shape} for {len(codes)} codes")
    if not np.isfinite(scores).all():
        raise QualcodeError("the reranker gave NaN or infinite scores: its weights are damaged")
    return np.split(scores, np.cumsum(lengths)[:-1])
