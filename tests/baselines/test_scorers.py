"""Scorers of single programs: BM25 and an encoder's cosine. Tiny real models, made in code."""

from importlib import import_module

import numpy as np
import pytest

from hf_qualcode.baselines import bm25
from hf_qualcode.baselines.dense import encoder_scorer
from hf_qualcode.evaluation.protocols import Scorer
from hf_qualcode.lexical import query_subtokens, subtokens
from hf_qualcode.retrieve.encoder import load_encoder


CODES = [
    "def read_json(path):\n    return json.load(open(path))",
    "def write_json(path, value):\n    json.dump(value, open(path))",
    "class Queue:\n    def put(self, item):\n        self.items.append(item)",
    "def read_json(path):\n    return json.load(open(path))",  # the same text as the first
    "",
    "x = '\ud800'",
]
QUERIES = ["read json", "read json", "put an item into a queue", "put an item into a queue", "read json", "\ud800"]
INSTRUCTIONS = ["Retrieve code that is fast"] * 5 + [""]


def lucene_bm25(query, code, codes, k1=0.9, b=0.8):
    """BM25 as its formula says, one document at a time."""
    documents = [subtokens(text) for text in dict.fromkeys(codes)]
    mean_length = sum(map(len, documents)) / len(documents)
    tokens = subtokens(code)
    score = 0.0
    for token in query_subtokens(query):
        frequency = sum(token in document for document in documents)
        if frequency and token in tokens:
            idf = np.log(1 + (len(documents) - frequency + 0.5) / (frequency + 0.5))
            count = tokens.count(token)
            score += idf * count / (count + k1 * (1 - b + b * len(tokens) / mean_length))
    return score


def test_bm25_is_its_formula():
    given = bm25.scorer().score(INSTRUCTIONS, QUERIES, CODES)
    assert given.dtype == np.float32
    expected = [lucene_bm25(query, code, CODES) for query, code in zip(QUERIES, CODES, strict=True)]
    np.testing.assert_allclose(given, expected, rtol=1e-5)
    assert given[0] > 0
    assert bm25.scorer().score([], [], []).shape == (0,)


def test_bm25_reads_the_query_alone():
    given = bm25.scorer().score(INSTRUCTIONS, QUERIES, CODES)
    np.testing.assert_array_equal(given, bm25.scorer().score(["read put json"] * 6, QUERIES, CODES))


def test_the_cosine_of_an_encoder(tiny_bert):
    encoder = load_encoder(str(tiny_bert))
    scorer = encoder_scorer(str(tiny_bert))
    assert isinstance(scorer, Scorer)
    given = scorer.score(INSTRUCTIONS, QUERIES, CODES)
    for value, instruction, query, code in zip(given, INSTRUCTIONS, QUERIES, CODES, strict=True):
        vectors = encoder.encode([f"{instruction}\n{query}"], is_query=True)[0], encoder.encode([code])[0]
        assert value == pytest.approx(float(vectors[0] @ vectors[1]), abs=1e-5)
    assert given.dtype == np.float32
    assert scorer.score([], [], []).shape == (0,)


def test_an_encoders_query_prompt_goes_before_the_instruction(tiny_bert, make_sentence_transformer, tmp_path):
    folder = make_sentence_transformer(tmp_path / "prompted", tiny_bert, prompts={"query": "sort a list: "})
    plain = encoder_scorer(str(tiny_bert)).score(["read"], ["a file"], CODES[:1])
    prompted = encoder_scorer(str(folder)).score(["read"], ["a file"], CODES[:1])
    np.testing.assert_allclose(
        prompted, encoder_scorer(str(tiny_bert)).score(["sort a list: read"], ["a file"], CODES[:1]), atol=1e-5
    )
    assert abs(prompted - plain) > 1e-4


def test_each_distinct_text_is_encoded_once(tiny_bert):
    calls = []
    scorer = encoder_scorer(str(tiny_bert), progress=lambda *call: calls.append(call))
    scorer.score(INSTRUCTIONS, QUERIES, CODES)
    assert ("encoding queries", 3, 3) in calls
    assert ("encoding programs", 5, 5) in calls


def test_only_texts_that_no_call_before_had_are_encoded(tiny_bert, monkeypatch):
    calls = []
    scorer = encoder_scorer(str(tiny_bert), progress=lambda *call: calls.append(call))
    first = scorer.score(INSTRUCTIONS, QUERIES, CODES)
    calls.clear()
    changed = [CODES[0] + " # changed", *CODES[1:]]
    again = scorer.score(INSTRUCTIONS[::-1], QUERIES[::-1], changed[::-1])[::-1]
    assert set(calls) == {("encoding programs", 1, 1)}
    np.testing.assert_array_equal(again[1:], first[1:])
    fresh = encoder_scorer(str(tiny_bert)).score(INSTRUCTIONS, QUERIES, changed)
    np.testing.assert_allclose(again, fresh, atol=1e-6)
    # A text that was a query is not taken for a program.
    assert scorer.score(["a"], ["b"], [f"{INSTRUCTIONS[0]}\n{QUERIES[0]}"]).shape == (1,)
    assert ("encoding programs", 1, 1) in calls[1:]


def test_no_more_vectors_are_kept_than_there_is_room_for(tiny_bert, monkeypatch):
    calls = []
    scorer = encoder_scorer(str(tiny_bert), progress=lambda *call: calls.append(call))
    monkeypatch.setattr("hf_qualcode.baselines.dense._KEPT_BYTES", 4 * scorer.encoder.dimension * 4)
    first = scorer.score(INSTRUCTIONS, QUERIES, CODES)
    calls.clear()
    np.testing.assert_allclose(scorer.score(INSTRUCTIONS, QUERIES, CODES), first, atol=1e-6)
    assert calls[-1] == ("encoding programs", 4, 4)  # three queries and one program were kept


@pytest.mark.parametrize("name", ["minilm", "static_embedding", "bm25"])
def test_named_baselines_score(name, tiny_bert, monkeypatch, tmp_path):
    monkeypatch.setenv("HF_QUALCODE_CACHE", str(tmp_path / "cache"))
    for module in ("hub", "retrieve.static"):
        monkeypatch.setattr(f"hf_qualcode.{module}.packaged_minilm", lambda: tiny_bert)
    given = import_module(f"hf_qualcode.baselines.{name}").scorer().score(INSTRUCTIONS[:4], QUERIES[:4], CODES[:4])
    assert np.isfinite(given).all()
    assert given[0] != given[1]


@pytest.mark.slow
def test_the_packaged_minilm_tells_programs_apart(minilm_folder):
    scorer = import_module("hf_qualcode.baselines.minilm").scorer()
    given = scorer.score(["", ""], ["read a json file"] * 2, [CODES[0], CODES[2]])
    assert given[0] > given[1]
