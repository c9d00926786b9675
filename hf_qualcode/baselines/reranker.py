"""Any reranker as a `Scorer`."""

from collections.abc import Callable, Sequence

import numpy as np

from hf_qualcode.rerank.reranker import Reranker


class RerankerScorer:
    """A `Scorer` around a `Reranker`: its score under the instruction that each pair or list comes with.

    Args:
        reranker (`Reranker`): The model.
        progress (`Callable`, *optional*): Called as `progress(stage, done, total)`.

    Attributes:
        scale (`str`): As the reranker's: log-odds.
    """

    def __init__(self, reranker: Reranker, progress: Callable[[str, int, int | None], None] | None = None):
        self.reranker, self.progress = reranker, progress
        self.scale = reranker.scale

    def score(self, instructions: Sequence[str], queries: Sequence[str], codes: Sequence[str]) -> np.ndarray:
        """See `Scorer.score`."""
        return self.reranker.score(queries, codes, instruction=list(instructions), progress=self.progress)


def reranker_scorer(name: str, *, progress: Callable[[str, int, int | None], None] | None = None) -> RerankerScorer:
    """A scorer of single programs.

    Args:
        name (`str`): A folder or a Hub id, as for `Reranker.from_pretrained`.
        progress (`Callable`, *optional*): Called as `progress(stage, done, total)`.

    Raises:
        `QualcodeError`: If there is no such model, it cannot be loaded, or its head was never trained.
    """
    return RerankerScorer(Reranker.from_pretrained(name), progress)
