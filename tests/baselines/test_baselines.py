"""Every baseline, found by its module: builds over given documents and meets the `Searcher` protocol."""

from importlib import import_module
from pkgutil import iter_modules

import numpy as np
import pytest

from hf_qualcode import baselines
from hf_qualcode.baselines.dense import encoder_searcher
from hf_qualcode.retrieve.encoder import load_encoder


MODULES = [module.name for module in iter_modules(baselines.__path__)]
BASELINES = [name for name in MODULES if hasattr(import_module(f"hf_qualcode.baselines.{name}"), "build")]
IDS = [f"c{i}" for i in range(6)]
TEXTS = [
    "def read_json(path):\n    return json.load(open(path))",
    "def write_json(path, value):\n    json.dump(value, open(path))",
    "def add_item(queue, item):\n    queue.append(item)",
    "def read_json(path):\n    return json.load(open(path))",  # the same text as c0
    "class Queue:\n    def put(self, item):\n        self.items.append(item)",
    "",
]


@pytest.fixture
def tiny_minilm(tiny_bert, monkeypatch, tmp_path):
    """A tiny model in the place of the packaged MiniLM."""
    monkeypatch.setenv("HF_QUALCODE_CACHE", str(tmp_path / "cache"))
    for module in ("hub", "retrieve.building", "retrieve.search", "retrieve.static"):
        monkeypatch.setattr(f"hf_qualcode.{module}.packaged_minilm", lambda: tiny_bert)
    return tiny_bert


def test_there_are_baselines():
    assert {"bm25", "static_embedding", "minilm", "hybrid", "default"} <= set(BASELINES)


@pytest.mark.parametrize("name", BASELINES)
def test_a_baseline_is_a_searcher(name, tiny_minilm):
    searcher = import_module(f"hf_qualcode.baselines.{name}").build(IDS, TEXTS)
    pages = searcher.search(["read json from a path", "put an item into a queue"], 4)
    assert len(pages) == 2
    for page in pages:
        assert 0 < len(page) <= 4
        names = [document.doc_id for document in page]
        assert len(set(names)) == len(names)
        assert set(names) <= set(IDS)
        scores = [document.score for document in page]
        assert scores == sorted(scores, reverse=True)
        assert np.isfinite(scores).all()
    # Equal texts are equally good, and both are named.
    found = {document.doc_id: document.score for document in searcher.search(["read json path"], 6)[0]}
    assert found["c0"] == found["c3"]


def test_dense_is_the_encoders_cosine(tiny_bert):
    query = "write a value as json"
    encoder = load_encoder(str(tiny_bert))
    cosines = encoder.encode(TEXTS) @ encoder.encode([query], is_query=True)[0]
    (page,) = encoder_searcher(str(tiny_bert), IDS, TEXTS).search([query], 6)
    assert {document.doc_id: document.score for document in page} == pytest.approx(
        dict(zip(IDS, cosines.tolist(), strict=True)), abs=1e-5
    )


def test_default_and_hybrid_agree_where_the_candidates_are_all_there_is(tiny_minilm):
    queries = ["read json", "queue item"]
    pages = [
        import_module(f"hf_qualcode.baselines.{name}").build(IDS, TEXTS).search(queries, 6)
        for name in ("default", "hybrid")
    ]
    for default, hybrid in zip(*pages, strict=True):
        assert [document.doc_id for document in default] == [document.doc_id for document in hybrid]
        assert [d.score for d in default] == pytest.approx([h.score for h in hybrid], abs=1e-5)
