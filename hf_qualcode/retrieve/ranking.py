"""Ranking units: by words, by an encoder's cosine, by both; vectors that are missing are computed for candidates."""

import logging
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hf_qualcode.retrieve.candidates.embedding import top_k as best_rows
from hf_qualcode.retrieve.candidates.fusion import fuse, select_candidates
from hf_qualcode.retrieve.completing import STATIC_ENCODERS, encode_cached, on_demand_cache
from hf_qualcode.retrieve.encoder import is_present, load_encoder
from hf_qualcode.retrieve.index import CodeIndex
from hf_qualcode.retrieve.tables import embedding_text
from hf_qualcode.retrieve.vector_cache import VectorCache
from hf_qualcode.retrieve.vector_sets import VectorSet


if TYPE_CHECKING:
    from hf_qualcode.retrieve.encoder import Encoder

logger = logging.getLogger(__name__)

_REMEMBERED_QUERIES = 256


class RankedUnits(NamedTuple):
    """The best units of one query.

    Attributes:
        rows (`np.ndarray`): int64 `[n]`, best first.
        scores (`np.ndarray`): float `[n]`, what they are ordered by.
        retrieval_scores (`np.ndarray`, *optional*): float32 `[n]`, the retriever's, where `scores` are others.
        quality_scores (`np.ndarray`, *optional*): float32 `[n]`, NaN where a unit was not judged.
    """

    rows: np.ndarray
    scores: np.ndarray
    retrieval_scores: np.ndarray | None = None
    quality_scores: np.ndarray | None = None


class UnitRanker:
    """Ranks the units of one `CodeIndex`. Encoders, their vectors and those of past queries are kept.

    Args:
        index (`CodeIndex`): Where the units are.
    """

    def __init__(self, index: CodeIndex):
        self.index = index
        self._encoders: dict[str, Encoder] = {}
        self._caches: dict[str, VectorCache] = {}
        self._query_vectors: OrderedDict[tuple[str, str], np.ndarray] = OrderedDict()

    def rank_bm25(self, query: str, depth: int, eligible: np.ndarray | None) -> RankedUnits:
        """The best `depth` of the units that share a term with the query; `eligible` is bool `[units]`."""
        scores = self._lexical_scores(query, eligible)
        scores[self._shadowed(scores, eligible)] = 0.0
        rows = best_rows(scores, depth)
        rows = rows[scores[rows] > 0]
        return RankedUnits(rows, scores[rows])

    def rank_with_encoder(
        self,
        encoder_name: str,
        queries: list[str],
        depth: int,
        num_candidates: int,
        eligible: np.ndarray | None,
        mode: str,
        progress: Callable[[int, int], None] | None,
    ) -> list[RankedUnits]:
        """The best `depth` units of each query, in mode `"dense"` or `"hybrid"`: of all where the index holds the
        encoder's vectors of all, else of `num_candidates` drawn by words and static vectors.
        """
        encoder = self.encoder(encoder_name)
        query_vectors = self._encode_queries(encoder, queries)
        held = self._held_vectors(encoder)
        if held is not None and held.info.complete:
            return [
                self._rank_all(query, query_vectors[i], held, depth, eligible, mode) for i, query in enumerate(queries)
            ]
        candidates = [self._candidates(query, num_candidates, eligible) for query in queries]
        needed = np.unique(np.concatenate([rows for rows, _ in candidates]))
        vectors = self._candidate_vectors(encoder, held, needed, progress)
        rankings = []
        for query_vector, (rows, lexical) in zip(query_vectors, candidates, strict=True):
            cosines = vectors[np.searchsorted(needed, rows)] @ query_vector
            rankings.append(_rank_scored(rows, lexical, cosines, depth, mode))
        return rankings

    def _rank_all(
        self,
        query: str,
        query_vector: np.ndarray,
        held: VectorSet,
        depth: int,
        eligible: np.ndarray | None,
        mode: str,
    ) -> RankedUnits:
        """Rank every unit by vectors that the index holds."""
        lexical = self._lexical_scores(query, eligible)
        cosines = held.cosine(query_vector[None])[0]
        if eligible is not None:
            cosines[~eligible] = -np.inf
        cosines[self._shadowed(lexical, eligible)] = -np.inf
        rows = np.flatnonzero(np.isfinite(cosines))
        return _rank_scored(rows, _Lexical(lexical[rows], float(lexical.max())), cosines[rows], depth, mode)

    def _candidates(
        self, query: str, num_candidates: int, eligible: np.ndarray | None
    ) -> tuple[np.ndarray, "_Lexical"]:
        """The units that get a cosine, by words and static vectors."""
        lexical = self._lexical_scores(query, eligible)
        best = float(lexical.max())
        static = self._static_scores(query)
        shadowed = self._shadowed(lexical, eligible)
        lexical[shadowed] = 0.0
        if static is not None:
            if eligible is not None:
                static[~eligible] = -np.inf
            static[shadowed] = -np.inf
        rows = select_candidates(lexical, static, num_candidates)
        return rows, _Lexical(lexical[rows], best)

    def _lexical_scores(self, query: str, eligible: np.ndarray | None) -> np.ndarray:
        """float32 `[units]`, 0 where a unit shares no term with the query or is not eligible."""
        scores = self.index.lexical.score([query])[0]
        if eligible is not None:
            scores[~eligible] = 0.0
        return scores

    def _shadowed(self, lexical: np.ndarray, eligible: np.ndarray | None) -> np.ndarray:
        """Units whose text another unit has with a better lexical score (their vectors are equal): only the best copy
        is ranked, so that copies take no places."""
        units, texts = self.index.copies
        if eligible is not None:
            units, texts = units[eligible[units]], texts[eligible[units]]
        order = np.lexsort((units, -lexical[units], texts))
        is_later = np.zeros(len(order), dtype=bool)
        is_later[1:] = texts[order][1:] == texts[order][:-1]
        return units[order[is_later]]

    def _static_scores(self, query: str) -> np.ndarray | None:
        """float32 `[units]`: cosine with the static vectors, or `None` where the index has none of this machine's."""
        info = next((i for i in self.index.vector_sets if i.encoder in STATIC_ENCODERS and i.complete), None)
        if info is None or not is_present(info.encoder):
            return None
        encoder = self.encoder(info.encoder)
        if encoder.fingerprint != info.fingerprint:
            logger.warning("the index's static vectors are of another encoder: run `hf-qualcode index` to renew them")
            return None
        return self.index.vectors(info).cosine(self._encode_queries(encoder, [query]))[0]

    def _held_vectors(self, encoder: "Encoder") -> VectorSet | None:
        for info in self.index.vector_sets:
            if info.fingerprint == encoder.fingerprint:
                return self.index.vectors(info)
        return None

    def _candidate_vectors(self, encoder: "Encoder", held: VectorSet | None, rows: np.ndarray, progress) -> np.ndarray:
        """float32 `[len(rows), dimension]`: from the index, else from the cache beside it, else computed now."""
        vectors = np.empty((len(rows), encoder.dimension), dtype=np.float32)
        have = np.zeros(len(rows), dtype=bool) if held is None else held.covers(rows)
        if held is not None:
            vectors[have] = held.of_units(rows[have])
        rest = np.flatnonzero(~have)
        if len(rest):
            keys = [self.index.text_hashes[row].tobytes() for row in rows[rest]]
            row_of_key = dict(zip(keys, rows[rest].tolist(), strict=True))
            distinct = list(row_of_key)

            def texts_of(positions: np.ndarray) -> list[str]:
                codes = self.index.codes([row_of_key[distinct[i]] for i in positions])
                return [embedding_text(code) for code in codes]

            computed = encode_cached(encoder, self._cache(encoder), distinct, texts_of, progress)
            position = {key: i for i, key in enumerate(distinct)}
            vectors[rest] = computed[[position[key] for key in keys]]
        return vectors

    def _cache(self, encoder: "Encoder") -> VectorCache:
        if encoder.fingerprint not in self._caches:
            self._caches[encoder.fingerprint] = on_demand_cache(
                self.index.directory, encoder.fingerprint, encoder.dimension
            )
        return self._caches[encoder.fingerprint]

    def encoder(self, name: str) -> "Encoder":
        """An encoder by name, loaded once."""
        if name not in self._encoders:
            self._encoders[name] = load_encoder(name)
        return self._encoders[name]

    def _encode_queries(self, encoder: "Encoder", queries: list[str]) -> np.ndarray:
        keys = [(encoder.fingerprint, query) for query in queries]
        new = list(dict.fromkeys(key for key in keys if key not in self._query_vectors))
        if new:
            for key, vector in zip(new, encoder.encode([query for _, query in new], is_query=True), strict=True):
                self._query_vectors[key] = vector
        result = np.stack([self._query_vectors[key] for key in keys])
        while len(self._query_vectors) > _REMEMBERED_QUERIES:
            self._query_vectors.popitem(last=False)
        return result


class _Lexical(NamedTuple):
    """BM25 scores of some units, float32 `[n]`, and the query's best over all."""

    scores: np.ndarray
    best: float


def _rank_scored(rows: np.ndarray, lexical: _Lexical, cosines: np.ndarray, depth: int, mode: str) -> RankedUnits:
    scores = cosines if mode == "dense" else fuse(lexical.scores, cosines, bm25_best=lexical.best)
    scores = np.asarray(scores, dtype=np.float32)
    order = best_rows(scores, depth)
    return RankedUnits(rows[order], scores[order])
