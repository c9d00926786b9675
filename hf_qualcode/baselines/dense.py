"""Any encoder's cosine, exact: as a search over the vectors of all documents, and as a score of single programs."""

from collections.abc import Callable, Sequence

import numpy as np

from hf_qualcode.baselines.index_searcher import IndexSearcher
from hf_qualcode.retrieve.encoder import Encoder, load_encoder


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


# Vectors that are kept from one call to the next: 170,000 texts of MiniLM.
_KEPT_BYTES = 1 << 28


class CosineScorer:
    """A `Scorer`: the cosine of the code's vector with that of instruction, newline and query.

    A text's vector depends on no other text, so it is kept: a call with other instructions, or with the same texts in
    another order, encodes only what no call before it had.

    Args:
        encoder (`Encoder`): Its query prompt, if it has one, goes before the instruction.
        progress (`Callable`, *optional*): Called as `progress(stage, done, total)`.
    """

    def __init__(self, encoder: Encoder, progress: Callable[[str, int, int | None], None] | None = None):
        self.encoder, self.progress = encoder, progress
        self._kept: dict[bool, dict[str, np.ndarray]] = {True: {}, False: {}}  # of queries and of programs

    def score(self, instructions: Sequence[str], queries: Sequence[str], codes: Sequence[str]) -> np.ndarray:
        """See `Scorer.score`. Each distinct text is encoded once."""
        asked = [f"{instruction}\n{query}" for instruction, query in zip(instructions, queries, strict=True)]
        query_rows, query_vectors = self._encode(asked, "encoding queries", is_query=True)
        code_rows, code_vectors = self._encode(codes, "encoding programs", is_query=False)
        scores = np.empty(len(codes), dtype=np.float32)
        block = 8192  # rows of vectors gathered at once
        for start in range(0, len(codes), block):
            part = slice(start, start + block)
            scores[part] = np.einsum("ij,ij->i", query_vectors[query_rows[part]], code_vectors[code_rows[part]])
        return scores

    def _encode(self, texts: Sequence[str], stage: str, is_query: bool) -> tuple[np.ndarray, np.ndarray]:
        """Rows, int64 [n], in the vectors of the distinct texts."""
        row: dict[str, int] = {}
        rows = np.array([row.setdefault(text, len(row)) for text in texts], dtype=np.int64)
        kept = self._kept[is_query]
        new = [text for text in row if text not in kept]
        progress = None if self.progress is None else lambda done, total: self.progress(stage, done, total)
        vectors = np.empty((len(row), self.encoder.dimension), dtype=np.float32)
        vectors[[row[text] for text in new]] = self.encoder.encode(new, is_query=is_query, progress=progress)
        for text in row.keys() & kept.keys():
            vectors[row[text]] = kept[text]
        room = _KEPT_BYTES // vectors.itemsize // self.encoder.dimension - sum(map(len, self._kept.values()))
        kept.update((text, vectors[row[text]].copy()) for text in new[: max(0, room)])
        return rows, vectors


def encoder_scorer(name: str, *, progress=None) -> CosineScorer:
    """A scorer of single programs.

    Args:
        name (`str`): As for `encoder_searcher`.
        progress (`Callable`, *optional*): Called as `progress(stage, done, total)`.

    Raises:
        `QualcodeError`: If there is no such encoder, or it cannot be loaded.
    """
    return CosineScorer(load_encoder(name), progress)
