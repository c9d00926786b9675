"""`bundled`: the small trained reranker inside the package."""

from hf_qualcode.baselines.reranker import RerankerScorer
from hf_qualcode.rerank.reranker import Reranker


def scorer(progress=None) -> RerankerScorer:
    """A scorer of single programs."""
    return RerankerScorer(Reranker.bundled(), progress)
