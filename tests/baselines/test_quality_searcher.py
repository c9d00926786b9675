"""The quality order over any searcher is the one of the product."""

import numpy as np
import pytest

from hf_qualcode.baselines import bm25
from hf_qualcode.baselines.quality_searcher import QualitySearcher
from hf_qualcode.retrieve.index import CodeIndex
from hf_qualcode.retrieve.search import CodeSearcher


class Lengths:
    """Judges by length: a reranker as far as the protocol goes."""

    def __init__(self):
        self.num_judged = 0

    def score(self, queries, codes, *, quality=(), instruction=None, progress=None):
        self.num_judged += len(codes)
        return np.array([-(len(code) % 7) for code in codes], dtype=np.float32)


@pytest.fixture
def corpus():
    generator = np.random.default_rng(0)
    texts = [
        f"def parse_{i % 60}(text):\n    return {' + '.join(['text'] * (1 + i % 60 % 11))}"
        for i in generator.permutation(70)
    ]
    return [f"d{i}" for i in range(70)], texts


def test_it_is_what_the_product_does(corpus, tmp_path):
    ids, texts = corpus
    index = CodeIndex.from_documents(ids, texts, tmp_path / "index", "none")
    product = CodeSearcher(index, reranker=Lengths())
    searcher = QualitySearcher(bm25.build(ids, texts), dict(zip(ids, texts, strict=True)), Lengths(), ("speed",), 0.3)
    queries = ["parse text", "parse_7", "zzzz"]
    for query, documents in zip(queries, searcher.search(queries, 70), strict=True):
        hits = product.search(query, 70, "speed", "bm25", quality_weight=0.3)
        firsts, seen = [], set()
        for document in documents:
            text = texts[ids.index(document.doc_id)]
            if text not in seen:
                firsts.append(document)
            seen.add(text)
        assert [texts[ids.index(first.doc_id)] for first in firsts] == [hit.code for hit in hits]
        assert [first.score for first in firsts] == pytest.approx([hit.score for hit in hits], abs=1e-6)


def test_scores_tell_the_order_and_equal_texts_are_equal(corpus):
    ids, texts = corpus
    searcher = QualitySearcher(bm25.build(ids, texts), dict(zip(ids, texts, strict=True)), Lengths(), ("speed",))
    (documents,) = searcher.search(["parse text"], 70)
    assert len(documents) == len({document.doc_id for document in documents}) == 70
    scores = [document.score for document in documents]
    assert scores == sorted(scores, reverse=True)
    score_of = {document.doc_id: document.score for document in documents}
    for first, text in zip(ids, texts, strict=True):
        for second, other in zip(ids, texts, strict=True):
            if text == other:
                assert score_of[first] == score_of[second]
    assert len(searcher.search(["parse text"], 5)[0]) == 5


def test_what_was_judged_is_not_judged_again(corpus):
    ids, texts = corpus
    reranker = Lengths()
    searcher = QualitySearcher(bm25.build(ids, texts), dict(zip(ids, texts, strict=True)), reranker, ("speed",))
    first = searcher.search(["parse text"], 10)
    assert reranker.num_judged == 50
    assert searcher.search(["parse text"], 10) == first
    assert reranker.num_judged == 50
