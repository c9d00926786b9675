"""`CodeSearcher`: every way of ranking against a brute-force twin, and what is said when one cannot be had."""

import shutil

import numpy as np
import pytest

from hf_qualcode.retrieve import search as search_module
from hf_qualcode.retrieve.candidates.fusion import fuse
from hf_qualcode.retrieve.encoder import load_encoder
from hf_qualcode.retrieve.index import CodeIndex
from hf_qualcode.retrieve.search import CodeSearcher
from hf_qualcode.types import QualcodeError, UsageError


WORDS = ["read", "write", "json", "file", "queue", "item", "socket", "date", "parse", "merge", "sort", "list", "open"]


def documents(count, seed=0):
    generator = np.random.default_rng(seed)
    texts = []
    for i in range(count):
        words = generator.choice(WORDS, size=generator.integers(2, 7))
        texts.append(f"def {'_'.join(words[:2])}_{i}({', '.join(words[2:])}):\n    return {i}")
    return [f"d{i}" for i in range(count)], texts


@pytest.fixture(scope="module")
def corpus():
    return documents(60)


@pytest.fixture
def words_only(corpus, tmp_path):
    return CodeIndex.from_documents(*corpus, tmp_path / "index", "none")


@pytest.fixture
def complete(corpus, tmp_path, tiny_bert):
    return CodeIndex.from_documents(*corpus, tmp_path / "complete", str(tiny_bert))


QUERY = "parse a json file line"


def expected_order(scores, ids, top_k):
    order = sorted(range(len(ids)), key=lambda row: (-scores[row], row))
    return [(ids[row], pytest.approx(scores[row], abs=1e-5)) for row in order[:top_k]]


def found(hits):
    return [(hit.unit_id, hit.score) for hit in hits]


def brute_force(corpus, tiny_bert, index):
    encoder = load_encoder(str(tiny_bert))
    cosines = encoder.encode(corpus[1]) @ encoder.encode([QUERY], is_query=True)[0]
    return index.lexical.score([QUERY])[0], cosines


def test_bm25_is_the_lexical_order_without_units_that_share_no_word(corpus, words_only):
    scores = words_only.lexical.score([QUERY])[0]
    hits = CodeSearcher(words_only).search(QUERY, top_k=60, retriever="bm25")
    assert found(hits) == expected_order(scores, corpus[0], int((scores > 0).sum()))
    assert 0 < len(hits) < 60
    assert all(hit.retrieval_score == hit.score and hit.quality_score is None for hit in hits)


@pytest.mark.parametrize("retriever", ["dense", "hybrid"])
def test_over_all_vectors_dense_is_the_cosine_and_hybrid_the_fusion(corpus, complete, tiny_bert, retriever):
    lexical, cosines = brute_force(corpus, tiny_bert, complete)
    scores = cosines if retriever == "dense" else fuse(lexical, cosines, bm25_best=lexical.max())
    hits = CodeSearcher(complete).search(QUERY, top_k=15, retriever=retriever)
    assert found(hits) == expected_order(scores, corpus[0], 15)


def test_scores_on_demand_are_those_of_the_full_hybrid(corpus, words_only, complete, tiny_bert, monkeypatch):
    monkeypatch.setattr(search_module, "NUM_CANDIDATES", 8)
    on_demand = CodeSearcher(words_only, encoder=str(tiny_bert)).search(QUERY, top_k=5, retriever="hybrid")
    full = CodeSearcher(complete).search(QUERY, top_k=60, retriever="hybrid")
    scores = dict(found(full))
    candidates = {corpus[0][row] for row in np.argsort(-words_only.lexical.score([QUERY])[0], kind="stable")[:8]}
    assert len(on_demand) == 5
    assert {hit.unit_id for hit in on_demand} <= candidates
    for hit in on_demand:
        assert hit.score == pytest.approx(scores[hit.unit_id], abs=1e-5)


def test_vectors_on_demand_are_kept_and_may_be_deleted_or_unwritable(words_only, tiny_bert, encoded):

    def search():
        encoded.clear()
        hits = CodeSearcher(words_only, encoder=str(tiny_bert)).search(QUERY, retriever="hybrid")
        return found(hits), len([text for text in encoded if text != QUERY])

    first, computed = search()
    assert computed > 0
    assert search() == (first, 0)
    cache = words_only.directory / "on-demand"
    shutil.rmtree(cache)
    assert search() == (first, computed)
    shutil.rmtree(cache)
    cache.write_text("in the way")  # as good as a folder that cannot be written, also for root
    assert search() == (first, computed)
    cache.unlink()
    # It is no part of the index's state.
    assert not [name for name in words_only.manifest["parts"] if "demand" in name]


def test_search_many_is_search_for_each(complete, words_only, tiny_bert):
    queries = [QUERY, "open a socket", "merge sort", QUERY]
    for searcher in (CodeSearcher(complete), CodeSearcher(words_only, encoder=str(tiny_bert))):
        for retriever in ("bm25", "dense", "hybrid"):
            together = searcher.search_many(queries, 5, retriever=retriever)
            for query, hits in zip(queries, together, strict=True):
                alone = searcher.search(query, 5, retriever=retriever)
                assert [hit.unit_id for hit in hits] == [hit.unit_id for hit in alone]
                assert [hit.score for hit in hits] == pytest.approx([hit.score for hit in alone], abs=1e-5)


def test_a_partial_set_serves_what_it_covers_and_the_rest_is_computed(words_only, complete, tiny_bert):
    words_only.add_vectors(str(tiny_bert), limit=30)
    partial = CodeSearcher(words_only).search(QUERY, retriever="hybrid")
    scores = dict(found(CodeSearcher(complete).search(QUERY, top_k=60, retriever="hybrid")))
    assert partial
    for hit in partial:
        assert hit.score == pytest.approx(scores[hit.unit_id], abs=1e-5)


def test_filters_leave_the_best_of_what_is_left(tmp_path, tiny_bert):
    root = tmp_path / "code"
    for i in range(40):
        file = root / ("kept" if i % 4 == 0 else "dropped") / f"m{i}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"def parse_json_{i}(file):\n    return {i}\n")
    index = CodeIndex.build([root], tmp_path / "index", str(tiny_bert))
    searcher = CodeSearcher(index)
    for retriever in ("bm25", "dense", "hybrid"):
        for options in ({"include": ["kept/"]}, {"exclude": ["dropped/**"]}):
            hits = searcher.search("parse json", top_k=40, retriever=retriever, **options)
            assert len(hits) == 10
            assert all(hit.path.startswith("kept/") for hit in hits)
        assert searcher.search("parse json", retriever=retriever, language="go") == []
    with pytest.raises(UsageError, match="cobol"):
        searcher.search("parse json", language="cobol")


def test_auto_is_hybrid_where_an_encoder_can_rank_and_else_bm25_with_one_line(
    words_only, complete, monkeypatch, caplog, corpus
):
    assert CodeSearcher(complete).resolve_retriever("auto") == "hybrid"
    monkeypatch.setattr(search_module, "packaged_minilm", lambda: None)
    assert CodeSearcher(words_only).resolve_retriever("auto") == "bm25"
    (line,) = caplog.messages
    assert "hf-qualcode[offline]" in line and "\n" not in line
    with pytest.raises(QualcodeError, match=r"hf-qualcode\[offline\]"):
        CodeSearcher(words_only).search(QUERY, retriever="dense")
    # What was asked for by name is not made into something else, and what needs no encoder says nothing.
    caplog.clear()
    assert CodeSearcher(words_only).search(QUERY, retriever="bm25")
    assert not caplog.messages


def test_an_index_made_without_vectors_by_choice_is_searched_by_words(words_only, monkeypatch, caplog, tiny_bert):
    monkeypatch.setattr(search_module, "packaged_minilm", lambda: tiny_bert)
    assert CodeSearcher(words_only).resolve_retriever("auto") == "bm25"
    assert not caplog.messages
    # Vectors that were added later are a choice as well.
    words_only.add_vectors(str(tiny_bert))
    assert CodeSearcher(words_only).resolve_retriever("auto") == "hybrid"
    assert not caplog.messages


def test_an_index_whose_encoder_is_gone_is_searched_by_words_and_kept_up_to_date(
    tmp_path, tiny_bert, monkeypatch, caplog
):
    monkeypatch.setattr(search_module, "packaged_minilm", lambda: None)
    encoder, code = tmp_path / "encoder", tmp_path / "code"
    shutil.copytree(tiny_bert, encoder)
    code.mkdir()
    (code / "a.py").write_text("def parse_json(file):\n    return file\n")
    index = CodeIndex.build([code], tmp_path / "index", "none").add_vectors(str(encoder))
    shutil.rmtree(encoder)
    (code / "b.py").write_text("def parse_date(text):\n    return text\n")
    index.update()
    assert "new code has no vectors" in caplog.text
    (info,) = index.vector_sets
    assert (info.covered, info.of) == (1, 2)
    caplog.clear()
    hits = CodeSearcher(index).search("parse date")
    assert [hit.path for hit in hits] == ["b.py", "a.py"]
    (line,) = caplog.messages
    assert str(encoder) in line and "is not on this machine" in line


def test_copies_take_no_places(tmp_path, tiny_bert):
    root = tmp_path / "code"
    root.mkdir()
    for i in range(250):
        (root / f"copy{i}.py").write_text("def parse_json(file):\n    return load(file)\n")
    for i in range(12):
        (root / f"other{i}.py").write_text(f"def parse_json_{WORDS[i]}(file):\n    return {i}\n")
    index = CodeIndex.build([root], tmp_path / "index", "none")
    for options in ({}, {"include": ["other*", "copy1*"]}):
        for retriever in ("bm25", "dense", "hybrid"):
            hits = CodeSearcher(index, encoder=str(tiny_bert)).search("parse json", retriever=retriever, **options)
            assert len(hits) == 10
            copies = [len(hit.copies) for hit in hits if hit.name == "parse_json"]
            assert copies in ([249 if not options else 110], [])


def test_the_best_copy_speaks_for_all(tmp_path):
    root = tmp_path / "code"
    (root / "socket").mkdir(parents=True)
    for place in ("aaa.py", "socket/retry.py", "zzz.py"):
        (root / place).write_text("def run(call):\n    return call()\n")
    hits = CodeSearcher(CodeIndex.build([root], tmp_path / "index", "none")).search("socket retry run")
    assert [hit.path for hit in hits] == ["socket/retry.py"]
    assert [copy.path for copy in hits[0].copies] == ["aaa.py", "zzz.py"]


@pytest.mark.parametrize("query", ["", "  \n"])
def test_an_empty_query_is_an_error(words_only, query):
    with pytest.raises(UsageError, match="query is empty"):
        CodeSearcher(words_only).search(query)


def test_odd_queries_are_answered(complete):
    searcher = CodeSearcher(complete)
    for query in ("\ud800 json", "json\0file", "json " * 20_000, "日本語", "🙂", "(" * 500, "a\tb\u2028c"):
        for retriever in ("bm25", "hybrid"):
            for hit in searcher.search(query, retriever=retriever):
                assert np.isfinite(hit.score)


def test_an_index_of_nothing_has_no_hits(tmp_path, tiny_bert):
    index = CodeIndex.from_documents([], [], tmp_path / "index", str(tiny_bert))
    assert CodeSearcher(index).search(QUERY, retriever="hybrid") == []
    (tmp_path / "empty").mkdir()
    index = CodeIndex.build([tmp_path / "empty"], tmp_path / "index2", "none")
    assert CodeSearcher(index).search(QUERY, retriever="bm25") == []


@pytest.mark.parametrize(
    ("retriever", "top_k", "message"), [("fuzzy", 5, "unknown retriever"), ("bm25", 0, "top_k is 0")]
)
def test_illegal_arguments_are_named(words_only, retriever, top_k, message):
    with pytest.raises(UsageError, match=message):
        CodeSearcher(words_only).search(QUERY, top_k, retriever=retriever)


def test_vectors_of_a_changed_encoder_are_never_compared(corpus, tmp_path, tiny_bert, other_tiny_bert):
    """The encoder under a name was replaced: its old vectors in the index are not used for its new queries."""
    folder = tmp_path / "encoder"
    shutil.copytree(tiny_bert, folder)
    index = CodeIndex.from_documents(*corpus, tmp_path / "index", str(folder))
    shutil.rmtree(folder)
    shutil.copytree(other_tiny_bert, folder)
    hits = CodeSearcher(index).search(QUERY, retriever="dense", top_k=5)
    encoder = load_encoder(str(folder))
    query = encoder.encode([QUERY], is_query=True)[0]
    texts = dict(zip(*corpus, strict=True))
    for hit in hits:
        assert hit.score == pytest.approx(float(encoder.encode([texts[hit.unit_id]])[0] @ query), abs=1e-5)
