"""`default`: what `hf-qualcode search` does.

Candidates by words and static vectors, the best 200 ranked as in `hybrid` by MiniLM vectors computed on demand.
"""

from collections.abc import Sequence

from hf_qualcode.baselines.index_searcher import IndexSearcher


def build(corpus_ids: Sequence[str], corpus_texts: Sequence[str], *, progress=None) -> IndexSearcher:
    """A searcher over the given documents."""
    return IndexSearcher(
        corpus_ids, corpus_texts, retriever="hybrid", encoder="static", ranking_encoder="minilm", progress=progress
    )
