"""What every baseline on a `CodeIndex` shares: index given documents, search them as the product would."""

import tempfile
from collections.abc import Callable, Sequence

from hf_qualcode.evaluation.protocols import ScoredDocument
from hf_qualcode.retrieve.index import CodeIndex
from hf_qualcode.retrieve.search import NUM_CANDIDATES, CodeSearcher


class IndexSearcher:
    """A `Searcher` over given documents that is the product's own `CodeSearcher` on an index of them.

    Documents with equal text are one hit with copies there; here each is named, one after the other with one score.

    Args:
        corpus_ids (`list[str]`): Distinct ids.
        corpus_texts (`list[str]`): The code of each document.
        retriever (`str`): As in `CodeSearcher.search`.
        encoder (`str`): Whose vectors the index holds, as in `CodeIndex.build`.
        ranking_encoder (`str`, *optional*): The encoder that ranks; defaults to what `CodeSearcher` chooses.
        progress (`Callable`, *optional*): Called as `progress(stage, done, total)`.
    """

    def __init__(
        self,
        corpus_ids: Sequence[str],
        corpus_texts: Sequence[str],
        *,
        retriever: str,
        encoder: str = "none",
        ranking_encoder: str | None = None,
        progress: Callable[[str, int, int | None], None] | None = None,
    ):
        self._folder = tempfile.TemporaryDirectory(prefix="hf-qualcode-")
        index = CodeIndex.from_documents(corpus_ids, corpus_texts, self._folder.name, encoder, progress=progress)
        self._ids = list(corpus_ids)
        self._searcher = CodeSearcher(index, encoder=ranking_encoder)
        self._retriever = retriever
        stored = [info.encoder for info in index.vector_sets if info.complete]
        self._complete = retriever == "bm25" or ranking_encoder in stored
        self._progress = progress
        self._rows_of_hash: dict[bytes, list[int]] = {}
        for row, text_hash in enumerate(index.text_hashes):
            self._rows_of_hash.setdefault(text_hash.tobytes(), []).append(row)
        self._row_of_id = {name: row for row, name in enumerate(self._ids)}
        self._hash_of_row = [text_hash.tobytes() for text_hash in index.text_hashes]

    def search(self, queries: Sequence[str], top_k: int) -> list[list[ScoredDocument]]:
        """The best `top_k` documents of each query, best first."""

        def on_encoded(done: int, total: int) -> None:
            if self._progress is not None:
                self._progress("encoding candidates", done, total)

        # The product re-scores so many candidates for a page of this length or less; asked for more, it would be
        # another system.
        depth = top_k if self._complete else min(top_k, NUM_CANDIDATES)
        pages = self._searcher.search_many(queries, depth, retriever=self._retriever, progress=on_encoded)
        return [
            [
                ScoredDocument(self._ids[row], hit.score)
                for hit in page
                for row in self._rows_of_hash[self._hash_of_row[self._row_of_id[hit.unit_id]]]
            ][:top_k]
            for page in pages
        ]
