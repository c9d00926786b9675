"""The one order of scores, exact cosines, and the hybrid's two properties: subsets agree, masks hold."""

import numpy as np
import pytest

from hf_qualcode.retrieve.candidates import embedding
from hf_qualcode.retrieve.candidates.embedding import EmbeddingScorer, top_k
from hf_qualcode.retrieve.candidates.fusion import DENSE_WEIGHT, fuse, select_candidates


def unit(rng, *shape):
    vectors = rng.normal(size=shape).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_top_k_equals_a_stable_sort(dtype):
    rng = np.random.default_rng(0)
    for _ in range(100):
        scores = rng.integers(-2, 3, (3, rng.integers(1, 40))).astype(dtype)
        scores[rng.random(scores.shape) < 0.1] = -np.inf
        k = int(rng.integers(0, 45))
        expected = np.argsort(-scores, axis=1, kind="stable")[:, :k]
        assert np.array_equal(top_k(scores, k), expected)
        assert np.array_equal(top_k(scores[0], k), expected[0])


def test_top_k_edges():
    assert top_k(np.array([0.0, -0.0, 0.0], dtype=np.float32), 2).tolist() == [0, 1]
    assert top_k(np.zeros((0, 5)), 3).shape == (0, 3)
    assert top_k(np.zeros((2, 0)), 3).shape == (2, 0)
    with pytest.raises(ValueError, match="NaN"):
        top_k(np.array([1.0, np.nan]), 1)
    with pytest.raises(ValueError, match="k is -1"):
        top_k(np.zeros(3), -1)
    with pytest.raises(ValueError, match="shape"):
        top_k(np.zeros((1, 1, 1)), 1)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_cosines_are_exact_in_blocks_and_over_a_memory_map(tmp_path, monkeypatch, dtype):
    rng = np.random.default_rng(1)
    documents, queries = unit(rng, 57, 8).astype(dtype), unit(rng, 4, 8)
    np.save(tmp_path / "vectors.npy", documents)
    monkeypatch.setattr(embedding, "_BLOCK_BYTES", 4 * 8 * 10)
    scorer = EmbeddingScorer(np.load(tmp_path / "vectors.npy", mmap_mode="r"))
    expected = queries @ documents.astype(np.float32).T
    assert scorer.score(queries).dtype == np.float32
    np.testing.assert_allclose(scorer.score(queries), expected, atol=1e-6)
    ranking = scorer.rank(queries, 5)
    assert np.array_equal(ranking.documents, top_k(scorer.score(queries), 5))
    np.testing.assert_allclose(ranking.scores, np.take_along_axis(expected, ranking.documents, 1), atol=1e-6)


def test_wrong_vectors_are_named():
    scorer = EmbeddingScorer(np.zeros((3, 8), dtype=np.float32))
    with pytest.raises(ValueError, match="same encoder"):
        scorer.score(np.zeros((2, 7)))
    with pytest.raises(ValueError, match="dimension"):
        EmbeddingScorer(np.zeros(3))
    empty = EmbeddingScorer(np.zeros((0, 8), dtype=np.float32))
    assert empty.rank(np.zeros((2, 8)), 3).documents.shape == (2, 0)


def test_a_candidate_scores_as_in_the_full_hybrid():
    rng = np.random.default_rng(2)
    bm25, cosines = rng.random((5, 50)).astype(np.float32) * 20, rng.uniform(-1, 1, (5, 50)).astype(np.float32)
    best = bm25.max(axis=1, keepdims=True)
    full = fuse(bm25, cosines, bm25_best=best)
    rows = rng.choice(50, 12, replace=False)
    assert np.array_equal(fuse(bm25[:, rows], cosines[:, rows], bm25_best=best), full[:, rows])
    assert np.array_equal(fuse(bm25[0], cosines[0], bm25_best=float(best[0, 0])), full[0])
    np.testing.assert_allclose(full, DENSE_WEIGHT * cosines + (1 - DENSE_WEIGHT) * bm25 / best, rtol=1e-5, atol=1e-6)


def test_weights_of_one_and_zero_are_the_single_scorers():
    rng = np.random.default_rng(3)
    bm25, cosines = rng.random(50).astype(np.float32), rng.uniform(-1, 1, 50).astype(np.float32)
    assert np.array_equal(top_k(fuse(bm25, cosines, bm25.max(), 1.0), 50), top_k(cosines, 50))
    assert np.array_equal(top_k(fuse(bm25, cosines, bm25.max(), 0.0), 50), top_k(bm25, 50))


def test_without_a_shared_word_the_cosine_stands_alone():
    cosines = np.array([0.1, 0.9, -0.5], dtype=np.float32)
    scores = fuse(np.zeros(3), cosines, bm25_best=0.0)
    assert np.isfinite(scores).all()
    assert top_k(scores, 3).tolist() == [1, 0, 2]


def test_candidates_come_from_both_and_never_from_what_is_masked():
    bm25 = np.array([9.0, 0, 0, 0, 3.0, 0], dtype=np.float32)
    static = np.array([0.0, 0.4, 0.1, 0.3, 0.0, 0.5], dtype=np.float32)
    chosen = select_candidates(bm25, static, 3)
    assert 0 in chosen
    assert 5 in chosen
    assert select_candidates(bm25, np.where(np.arange(6) == 5, np.float32(-np.inf), static), 10).tolist().count(5) == 0
    assert select_candidates(bm25, None, 10).tolist() == [0, 4]
    assert select_candidates(np.zeros(0, np.float32), None, 10).tolist() == []
    assert select_candidates(np.zeros(0, np.float32), np.zeros(0, np.float32), 10).tolist() == []
