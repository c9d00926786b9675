"""Dense search with any encoder: exact cosine over the vectors of all documents."""

from collections.abc import Sequence

from hf_qualcode.baselines.index_searcher import IndexSearcher


def encoder_searcher(
    name: str, corpus_ids: Sequence[str], corpus_texts: Sequence[str], *, progress=None
) -> IndexSearcher:
    """A searcher over the given documents.

    Args:
        name (`str`): `"minilm"`, `"static"`, a Hub id or a folder.
        corpus_ids (`list[str]`): Distinct ids.
        corpus_texts (`list[str]`): The code of each document.
        progress (`Callable`, *optional*): Called as `progress(stage, done, total)`.
    """
    return IndexSearcher(
        corpus_ids, corpus_texts, retriever="dense", encoder=name, ranking_encoder=name, progress=progress
    )
