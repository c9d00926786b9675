"""`static_embedding`: the cosine of word vectors distilled from MiniLM. It finds candidates; alone it ranks poorly."""

from collections.abc import Sequence

from hf_qualcode.baselines.dense import CosineScorer, encoder_scorer, encoder_searcher
from hf_qualcode.baselines.index_searcher import IndexSearcher


def build(corpus_ids: Sequence[str], corpus_texts: Sequence[str], *, progress=None) -> IndexSearcher:
    """A searcher over the given documents."""
    return encoder_searcher("static", corpus_ids, corpus_texts, progress=progress)


def scorer(progress=None) -> CosineScorer:
    """A scorer of single programs."""
    return encoder_scorer("static", progress=progress)
