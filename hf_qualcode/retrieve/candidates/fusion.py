"""The hybrid: how a cosine and a BM25 score become one, and which documents are worth an exact cosine.

    score = w x cosine + (1 - w) x BM25 / (the query's best BM25)

The cosine is taken as it is and BM25 is divided by its best value over the corpus, which is always known because BM25
is computed for every document. So a document's score does not depend on which others got a cosine: the product's path
(200 candidates with cosines computed on demand) gives its documents the very scores that the full hybrid gives them.

Chosen by `benchmarks/tune_fusion.py` on the 279 positive pairs of CoSQA's `cosqa-train-570.json` with MiniLM's cosine
(cross-validated MRR@20): this form .612; BM25 over its upper bound, raw, or squashed by tanh or x / (x + 5), .610 to
.614; min-max and z-score, which need every document's cosine, .616 and .619; weighted reciprocal ranks .596; cosine
alone .596. The forms that fit the product's path lie within .004 of one another, so the simplest one stays.

On CoSQA dev, which took no part in the choice, the hybrid is level with the cosine alone: MRR@20 .536 against .538,
Hit@1 .390 against .396 (paired 95 % intervals -.018 to +.015 and -.032 to +.020); plain reciprocal ranks give .463.
"""

import numpy as np

from hf_qualcode.retrieve.candidates.embedding import top_k


# Share of MiniLM's cosine, beside BM25, in the final score.
DENSE_WEIGHT = 0.9
# Share of the static cosine in the score that draws the candidates: their 200 best hold .928 of the training targets,
# those of BM25 alone .910, of the static cosine alone .842. Other forms of fusion draw .914 to .932.
STATIC_WEIGHT = 0.68


def fuse(
    bm25_scores: np.ndarray,
    cosines: np.ndarray,
    bm25_best: np.ndarray | float,
    dense_weight: float = DENSE_WEIGHT,
) -> np.ndarray:
    """Weighted sum of cosine and normalised BM25.

    Args:
        bm25_scores (`np.ndarray`): [..., num_documents], of any subset of the corpus.
        cosines (`np.ndarray`): [..., num_documents], of the same documents; `-inf` for one that must not be found.
        bm25_best (`np.ndarray` or `float`): [..., 1], the query's best BM25 over the corpus (under a filter: over
            what the filter leaves). Where it is 0 no document shares a token and the cosine stands alone.
        dense_weight (`float`, *optional*): Share of the cosine, 0 to 1.

    Returns:
        `np.ndarray`: float32 [..., num_documents].
    """
    bm25_scores = np.asarray(bm25_scores, dtype=np.float32)
    best = np.broadcast_to(np.asarray(bm25_best, dtype=np.float32), bm25_scores.shape)
    normalised = np.divide(bm25_scores, best, out=np.zeros_like(bm25_scores), where=best > 0)
    return np.float32(dense_weight) * np.asarray(cosines, dtype=np.float32) + np.float32(1 - dense_weight) * normalised


def select_candidates(bm25_scores: np.ndarray, static_cosines: np.ndarray | None, num_candidates: int) -> np.ndarray:
    """Picks the documents of one query that get an exact cosine, from two scores that every document has.

    Args:
        bm25_scores (`np.ndarray`): float32 [num_documents].
        static_cosines (`np.ndarray`, *optional*): float32 [num_documents], cosines of the static encoder, `-inf` for a
            document that must not be found. Without them the candidates are those that share a token with the query.
        num_candidates (`int`): How many at most.

    Returns:
        `np.ndarray`: int64 [at most num_candidates], best first.
    """
    if static_cosines is None:
        candidates = top_k(bm25_scores, num_candidates)
        return candidates[bm25_scores[candidates] > 0]
    scores = fuse(bm25_scores, static_cosines, bm25_scores.max(initial=0), STATIC_WEIGHT)
    candidates = top_k(scores, num_candidates)
    return candidates[scores[candidates] > -np.inf]
