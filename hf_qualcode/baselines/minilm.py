"""`minilm`: the packaged MiniLM's cosine."""

from collections.abc import Sequence

from hf_qualcode.baselines.dense import CosineScorer, encoder_scorer, encoder_searcher
from hf_qualcode.baselines.index_searcher import IndexSearcher


def build(corpus_ids: Sequence[str], corpus_texts: Sequence[str], *, progress=None) -> IndexSearcher:
    """A searcher over the given documents."""
    return encoder_searcher("minilm", corpus_ids, corpus_texts, progress=progress)


def scorer(progress=None) -> CosineScorer:
    """A scorer of single programs."""
    return encoder_scorer("minilm", progress=progress)
