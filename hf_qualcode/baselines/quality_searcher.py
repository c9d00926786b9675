"""Any searcher with its best hits put in the quality order of `search --quality`."""

from collections.abc import Callable, Sequence

from hf_qualcode.evaluation.protocols import ScoredDocument, Searcher
from hf_qualcode.retrieve.quality_order import NUM_JUDGED, QUALITY_WEIGHT, QualityReranker, judge, quality_order
from hf_qualcode.retrieve.tables import embedding_text


# Equal mixtures stand in the retriever's order; scores that differ by this much say so to whoever counts ties by
# expectation.
_STEP = 1e-9
# Documents asked of the searcher, so that enough distinct texts are among them.
_DEPTH = 200


class QualitySearcher:
    """A `Searcher` over another: the best 50 distinct texts of each list, judged and ordered as `CodeSearcher` does.

    Documents with equal text stand together, with one score.

    Args:
        searcher (`Searcher`): What finds.
        texts (`dict[str, str]`): Document id -> code.
        reranker (`QualityReranker`): What judges. What it said of a query and a text is kept.
        quality (`Sequence[str]`): Names of dimensions.
        weight (`float`, *optional*, defaults to 0.5): Of the reranker's order.
        progress (`Callable`, *optional*): Given to the reranker.
    """

    def __init__(
        self,
        searcher: Searcher,
        texts: dict[str, str],
        reranker: QualityReranker,
        quality: Sequence[str],
        weight: float = QUALITY_WEIGHT,
        *,
        progress: Callable[[str, int, int | None], None] | None = None,
    ):
        self._searcher, self._reranker = searcher, reranker
        self._texts = texts
        self._quality, self._weight, self._progress = tuple(quality), weight, progress
        self._kept: dict[tuple[str, str], float] = {}

    def search(self, queries: Sequence[str], top_k: int) -> list[list[ScoredDocument]]:
        """See `Searcher.search`."""
        found = self._searcher.search(queries, max(top_k, _DEPTH))
        groups = [self._by_text(documents) for documents in found]
        self._judge(queries, [list(each)[:NUM_JUDGED] for each in groups])
        return [self._ordered(query, each)[:top_k] for query, each in zip(queries, groups, strict=True)]

    def _by_text(self, documents: Sequence[ScoredDocument]) -> dict[str, list[ScoredDocument]]:
        groups: dict[str, list[ScoredDocument]] = {}
        for document in documents:
            groups.setdefault(embedding_text(self._texts[document.doc_id]), []).append(document)
        return groups

    def _judge(self, queries: Sequence[str], texts: list[list[str]]) -> None:
        new = [
            [text for text in each if (query, text) not in self._kept]
            for query, each in zip(queries, texts, strict=True)
        ]
        judged = judge(self._reranker, queries, new, self._quality, self._progress)
        for query, each, scores in zip(queries, new, judged, strict=True):
            self._kept.update(((query, text), score) for text, score in zip(each, scores.tolist(), strict=True))

    def _ordered(self, query: str, groups: dict[str, list[ScoredDocument]]) -> list[ScoredDocument]:
        texts = list(groups)
        retrieved = [documents[0].score for documents in groups.values()]
        quality = [self._kept[query, text] for text in texts[:NUM_JUDGED]]
        new = quality_order(retrieved, quality, self._weight)
        ordered: list[ScoredDocument] = []
        step, before = -1, None
        for place, score in zip(new.order.tolist(), new.scores.tolist(), strict=True):
            step, before = step + (before != (score, retrieved[place])), (score, retrieved[place])
            ordered += [ScoredDocument(document.doc_id, score - _STEP * step) for document in groups[texts[place]]]
        return ordered
