"""Scorers of single programs: BM25, an encoder's cosine, cross-encoders. Tiny real models, made in code."""

import json
import shutil
from importlib import import_module

import numpy as np
import pytest

from hf_qualcode.baselines import bm25
from hf_qualcode.baselines.cross_encoder import CrossEncoderScorer, cross_encoder_scorer
from hf_qualcode.baselines.dense import encoder_scorer
from hf_qualcode.evaluation.protocols import LOG_ODDS, Scorer
from hf_qualcode.lexical import query_subtokens, subtokens
from hf_qualcode.retrieve.encoder import load_encoder
from hf_qualcode.types import QualcodeError, UsageError


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


@pytest.fixture(scope="module")
def tiny_cross_encoder(tmp_path_factory):
    """A transformers folder of a two-layer BERT with one label and pairs as BERT separates them."""
    return save_cross_encoder(tmp_path_factory.mktemp("cross_encoder"))


def save_cross_encoder(folder, num_labels=1, model_type="bert"):
    import torch
    from tokenizers import BertWordPieceTokenizer
    from tokenizers.processors import TemplateProcessing
    from transformers import AutoConfig, AutoModelForSequenceClassification, PreTrainedTokenizerFast

    words = BertWordPieceTokenizer(lowercase=True)
    words.train_from_iterator([*CODES[:3], *QUERIES[:3]], vocab_size=200, min_frequency=1, show_progress=False)
    words.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(token, words.token_to_id(token)) for token in ("[CLS]", "[SEP]")],
    )
    torch.manual_seed(3)
    config = AutoConfig.for_model(
        model_type, vocab_size=words.get_vocab_size(), hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=64, max_position_embeddings=64, pad_token_id=words.token_to_id("[PAD]"),
        num_labels=num_labels, initializer_range=0.5, type_vocab_size=2,
    )  # fmt: skip
    AutoModelForSequenceClassification.from_config(config).eval().save_pretrained(folder)
    PreTrainedTokenizerFast(
        tokenizer_object=words._tokenizer, model_max_length=48, pad_token="[PAD]", unk_token="[UNK]",
        cls_token="[CLS]", sep_token="[SEP]", mask_token="[MASK]",
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
    ).save_pretrained(folder)  # fmt: skip
    return folder


def test_a_cross_encoder_gives_what_sentence_transformers_gives(tiny_cross_encoder):
    import torch
    from sentence_transformers import CrossEncoder

    scorer = cross_encoder_scorer(str(tiny_cross_encoder), device="cpu")
    assert isinstance(scorer, Scorer)
    assert scorer.scale == LOG_ODDS
    given = scorer.score(INSTRUCTIONS[:5], QUERIES[:5], CODES[:5])
    assert given.dtype == np.float32
    pairs = [(f"{i}\n{q}", code) for i, q, code in zip(INSTRUCTIONS[:5], QUERIES[:5], CODES[:5], strict=True)]
    twin = CrossEncoder(str(tiny_cross_encoder), device="cpu", local_files_only=True)
    np.testing.assert_allclose(given, twin.predict(pairs, activation_fn=torch.nn.Identity()), atol=1e-5)
    assert scorer.trims == (5, 0, 0)
    assert len(set(given.tolist())) >= 4


def test_scores_depend_on_no_neighbour(tiny_cross_encoder):
    scorer = cross_encoder_scorer(str(tiny_cross_encoder), device="cpu")
    together = scorer.score(INSTRUCTIONS, QUERIES, CODES)
    backwards = scorer.score(INSTRUCTIONS[::-1], QUERIES[::-1], CODES[::-1])[::-1]
    alone = [scorer.score([i], [q], [c])[0] for i, q, c in zip(INSTRUCTIONS, QUERIES, CODES, strict=True)]
    np.testing.assert_allclose(together, backwards, atol=1e-5)
    np.testing.assert_allclose(together, alone, atol=1e-5)
    assert scorer.score([], [], []).shape == (0,)


def test_the_code_is_cut_first_then_the_query(tiny_cross_encoder, caplog):
    scorer = cross_encoder_scorer(str(tiny_cross_encoder), device="cpu")
    room = 48 - 3
    word = scorer._tokenizer.encode("json", add_special_tokens=False).ids
    assert len(word) == 1

    def segments(query_words, code_words):
        # One token each: the instruction here is empty, and a newline is none.
        scorer.trims = scorer.trims._replace(codes=0, queries=0)
        (encoding,) = scorer._encode([("\n" + "json " * query_words, "json " * code_words)])
        assert len(encoding.ids) <= 48
        types = np.array(encoding.type_ids)
        return int((types == 0).sum()) - 2, int((types == 1).sum()) - 1, scorer.trims[1:]

    assert segments(20, 25) == (20, 25, (0, 0))
    assert segments(20, 26) == (20, 25, (1, 0))
    assert segments(30, 500) == (30, 15, (1, 0))
    assert segments(34, 500) == (34, 11, (1, 0))
    assert segments(35, 500) == (34, 11, (1, 1))
    assert segments(500, 500) == (room - 11, 11, (1, 1))
    assert segments(500, 5) == (room - 5, 5, (0, 1))
    scorer.score(["i", "i", "i"], ["json " * 30] * 3, ["json " * 40, "json " * 41, "json"])
    assert scorer.trims == (3, 2, 0)
    assert "of 3 inputs, the code of 2 was cut, and the query of 0" in caplog.text


def test_cut_inputs_keep_instruction_and_start(tiny_cross_encoder):
    scorer = cross_encoder_scorer(str(tiny_cross_encoder), device="cpu")
    long = "read json path " * 20
    codes = ["queue item " + long, "queue item " + long + "more"]
    first, second = scorer.score(["put an item"] * 2, [long] * 2, codes)
    assert first == second  # they differ only in what is cut away
    assert first != scorer.score(["read"], [long], ["queue item " + long])[0]
    # A megabyte costs what its first kilobytes cost.
    assert scorer.score(["put an item"], [long], ["queue item " + long + "x = 1\n" * 200_000])[0] == first


def test_equal_inputs_are_scored_once_and_counted(tiny_cross_encoder):
    calls = []
    scorer = cross_encoder_scorer(str(tiny_cross_encoder), device="cpu", progress=lambda *call: calls.append(call))
    given = scorer.score(["i"] * 4, ["q"] * 4, [CODES[0], CODES[1], CODES[0], CODES[0]])
    assert calls[-1] == ("scoring programs", 2, 2)
    assert given[0] == given[2] == given[3] != given[1]


def test_roberta_reads_no_segment_numbers(tmp_path):
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    folder = save_cross_encoder(tmp_path, model_type="roberta")
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    settings["model_input_names"] = ["input_ids", "attention_mask"]
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    scorer = cross_encoder_scorer(str(folder), device="cpu")
    model = AutoModelForSequenceClassification.from_pretrained(folder)
    inputs = AutoTokenizer.from_pretrained(folder)("fast\nread json", CODES[0], return_tensors="pt")
    with torch.inference_mode():
        expected = float(model.eval()(**inputs).logits)
    assert scorer.score(["fast"], ["read json"], CODES[:1])[0] == pytest.approx(expected, abs=1e-5)


def test_a_head_that_was_never_trained_is_refused(tiny_bert, tiny_cross_encoder, tmp_path):
    # An encoder's folder: no head at all.
    with pytest.raises(UsageError, match="1 label"):
        cross_encoder_scorer(str(tiny_bert))
    shutil.copytree(tiny_bert, tmp_path / "headless")
    config = json.loads((tmp_path / "headless" / "config.json").read_text())
    config.update(architectures=["BertForSequenceClassification"], id2label={"0": "x"}, label2id={"x": 0})
    (tmp_path / "headless" / "config.json").write_text(json.dumps(config))
    with pytest.raises(QualcodeError, match=r"lack .*classifier.* random"):
        cross_encoder_scorer(str(tmp_path / "headless"))
    with pytest.raises(UsageError, match="3 labels"):
        cross_encoder_scorer(str(save_cross_encoder(tmp_path / "three", num_labels=3)))


def test_only_safetensors_and_never_code_of_the_folder(tiny_cross_encoder, tmp_path):
    import torch

    shutil.copytree(tiny_cross_encoder, tmp_path / "pickled")
    torch.save({}, tmp_path / "pickled" / "pytorch_model.bin")
    (tmp_path / "pickled" / "model.safetensors").unlink()
    with pytest.raises(QualcodeError, match="pickled weights"):
        cross_encoder_scorer(str(tmp_path / "pickled"))
    shutil.copytree(tiny_cross_encoder, tmp_path / "own")
    config = json.loads((tmp_path / "own" / "config.json").read_text())
    config.update(model_type="mine", auto_map={"AutoModelForSequenceClassification": "mine.Model"})
    (tmp_path / "own" / "config.json").write_text(json.dumps(config))
    (tmp_path / "own" / "mine.py").write_text("raise SystemExit('this code was run')")
    with pytest.raises(QualcodeError, match="code of its own"):
        cross_encoder_scorer(str(tmp_path / "own"))
    with pytest.raises(UsageError, match="no model"):
        cross_encoder_scorer("nowhere-at-all")


def test_damaged_weights_and_lengths(tiny_cross_encoder, tmp_path):
    from safetensors.torch import load_file, save_file

    shutil.copytree(tiny_cross_encoder, tmp_path / "nan")
    tensors = load_file(tmp_path / "nan" / "model.safetensors")
    broken = {name: tensor * float("nan") for name, tensor in tensors.items()}
    save_file(broken, tmp_path / "nan" / "model.safetensors", {"format": "pt"})
    with pytest.raises(QualcodeError, match="NaN or infinite"):
        cross_encoder_scorer(str(tmp_path / "nan"), device="cpu").score(["i"], ["q"], ["c"])
    with pytest.raises(QualcodeError, match="too few"):
        CrossEncoderScorer(tiny_cross_encoder, name="tiny", device="cpu", max_length=5)
    shorter = CrossEncoderScorer(tiny_cross_encoder, name="tiny", device="cpu", max_length=20)
    assert len(shorter._encode([("json " * 50, "json " * 50)])[0].ids) == 20


@pytest.mark.slow
def test_the_packaged_minilm_tells_programs_apart(minilm_folder):
    scorer = import_module("hf_qualcode.baselines.minilm").scorer()
    given = scorer.score(["", ""], ["read a json file"] * 2, [CODES[0], CODES[2]])
    assert given[0] > given[1]
