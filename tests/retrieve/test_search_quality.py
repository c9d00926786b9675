"""`CodeSearcher` with a reranker: what is judged, in what order it comes out, and that the page stays full."""

import numpy as np
import pytest

from hf_qualcode.retrieve.index import CodeIndex
from hf_qualcode.retrieve.quality_order import quality_order
from hf_qualcode.retrieve.search import CodeSearcher
from hf_qualcode.types import UsageError


class Lengths:
    """Judges by length: a reranker as far as the protocol goes."""

    def __init__(self):
        self.judged = []

    def score(self, queries, codes, *, quality=(), instruction=None):
        self.judged += zip(queries, codes, strict=True)
        return np.array([-len(code) for code in codes], dtype=np.float32)

    def explain(self, query, code, *, quality=(), instruction=None):
        return query, code, quality


@pytest.fixture
def documents(tmp_path):
    generator = np.random.default_rng(0)
    texts = [
        f"def parse_{i}(text):\n    return {' + '.join(['text'] * int(generator.integers(1, 30)))}" for i in range(80)
    ]
    return CodeIndex.from_documents([f"d{i}" for i in range(80)], texts, tmp_path / "index", "none")


def ids(hits):
    return [hit.unit_id for hit in hits]


def test_the_best_50_are_judged_and_mixed_and_the_rest_follows(documents):
    plain = CodeSearcher(documents).search("parse text", top_k=80, retriever="bm25")
    assert len(plain) == 80
    reranker = Lengths()
    hits = CodeSearcher(documents, reranker=reranker).search(
        "parse text", 80, quality=("speed",), retriever="bm25", quality_weight=0.7
    )
    assert reranker.judged == [("parse text", hit.code) for hit in plain[:50]]
    lengths = np.array([-len(hit.code) for hit in plain[:50]])
    expected = quality_order(np.array([hit.score for hit in plain]), lengths, 0.7)
    assert ids(hits) == [plain[i].unit_id for i in expected.order]
    assert [hit.score for hit in hits] == expected.scores.tolist()
    assert [hit.rank for hit in hits] == list(range(1, 81))
    by_id = {hit.unit_id: hit for hit in plain}
    assert all(hit.retrieval_score == by_id[hit.unit_id].score for hit in hits)
    assert [hit.quality_score for hit in hits] == [-len(hit.code) for hit in hits[:50]] + [None] * 30


def test_weight_0_is_the_page_without_quality_and_1_the_rerankers(documents):
    searcher = CodeSearcher(documents, None, Lengths())
    plain = searcher.search("parse text", 60, retriever="bm25")
    assert ids(searcher.search("parse text", 60, "speed", "bm25", quality_weight=0)) == ids(plain)
    alone = searcher.search("parse text", 50, "speed", "bm25", quality_weight=1)
    lengths = [len(hit.code) for hit in alone]
    assert lengths == sorted(lengths)


def test_the_reranker_runs_only_where_quality_is_asked_and_something_was_found(documents):
    reranker = Lengths()
    searcher = CodeSearcher(documents, reranker=reranker)
    assert all(hit.quality_score is None for hit in searcher.search("parse", retriever="bm25"))
    assert searcher.search("zzzz", quality="speed", retriever="bm25") == []
    assert searcher.search("parse", quality="speed", retriever="bm25", language="go") == []
    assert not reranker.judged


def test_search_many_is_search_for_each(documents):
    searcher = CodeSearcher(documents, reranker=Lengths())
    queries = ["parse text", "zzzz", "parse_7 text", "return"]
    together = searcher.search_many(queries, 20, ["memory", "speed"], "bm25")
    for query, hits in zip(queries, together, strict=True):
        assert hits == searcher.search(query, 20, ("speed", "memory"), "bm25")


def test_what_copies_and_overlaps_take_is_filled_up(tmp_path):
    root = tmp_path / "code"
    root.mkdir()
    for i in range(30):
        inner = f"    def parse_inner_{i}(text):\n        return text\n"
        (root / f"m{i}.py").write_text(
            f"def parse_outer_{i}(text):\n{inner}\n    return parse_inner_{i}(text) + text\n"
        )
        (root / f"copy{i}.py").write_text((root / f"m{i}.py").read_text())
    index = CodeIndex.build([root], tmp_path / "index", "none")
    hits = CodeSearcher(index, reranker=Lengths()).search("parse inner outer text", 28, "speed", "bm25")
    assert len(hits) == 28
    assert len({hit.path.removeprefix("copy").removeprefix("m") for hit in hits}) == 28
    assert all(len(hit.copies) == 1 for hit in hits)


def test_what_is_judged_and_explained_is_the_text_without_its_indentation(tmp_path):
    (tmp_path / "code").mkdir()
    (tmp_path / "code/a.py").write_text("class A:\n    def parse(self):\n        return 1\n")
    reranker = Lengths()
    searcher = CodeSearcher(CodeIndex.build([tmp_path / "code"], tmp_path / "index", "none"), reranker=reranker)
    (hit, *_) = searcher.search("parse", quality="speed", retriever="bm25")
    text = "def parse(self):\n    return 1"
    assert ("parse", text) in reranker.judged
    assert hit.code == "    def parse(self):\n        return 1"
    assert searcher.explain("parse", hit, "speed") == ("parse", text, ("speed",))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"quality": "beauty"}, "choose from: speed, memory, maintainability"),
        ({"quality": "speed", "quality_weight": 2}, "quality weight 2"),
        ({"quality": "speed", "quality_weight": float("nan")}, "quality weight nan"),
    ],
)
def test_illegal_arguments_are_named(documents, arguments, message):
    with pytest.raises(UsageError, match=message):
        CodeSearcher(documents, reranker=Lengths()).search("parse", **arguments)


def test_quality_without_a_reranker_and_a_generator_are_refused(documents):
    with pytest.raises(UsageError, match=r"Reranker.bundled\(\)"):
        CodeSearcher(documents).search("parse", quality="speed")
    with pytest.raises(UsageError, match=r"Reranker.bundled\(\)"):
        CodeSearcher(documents).explain("parse", None, "speed")
    with pytest.raises(UsageError, match="generator"):
        CodeSearcher(documents, generator=object())
