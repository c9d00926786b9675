"""`bm25`: search by words alone."""

from collections.abc import Sequence

from hf_qualcode.baselines.index_searcher import IndexSearcher


def build(corpus_ids: Sequence[str], corpus_texts: Sequence[str], *, progress=None) -> IndexSearcher:
    """A searcher over the given documents."""
    return IndexSearcher(corpus_ids, corpus_texts, retriever="bm25", progress=progress)
