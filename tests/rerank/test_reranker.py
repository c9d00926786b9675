"""`Reranker`: scores, orders, explanations, and what it refuses. Tiny real models, made in code."""

import json
import logging

import numpy as np
import pytest

from hf_qualcode import Reranker, instruction_for
from hf_qualcode.evaluation.protocols import LOG_ODDS
from hf_qualcode.rerank import scoring
from hf_qualcode.rerank.backbones import load_backbone
from hf_qualcode.rerank.results import RankedCode
from hf_qualcode.types import QualcodeError, UsageError
from tests.rerank.tiny import save_tiny_decoder, save_tiny_encoder


CODES = [
    "def read_json(path):\n    return json.load(open(path))",
    "def write_json(path, value):\n    json.dump(value, open(path))",
    "class Queue:\n    def put(self, item):\n        self.items.append(item)",
    "def read_json(path):\n    return json.load(open(path))",  # the same text as the first
    "",
    "x = '\ud800'",
]
QUERIES = ["read json", "read json", "put an item into a queue", "read json", "read json", "\ud800"]
KINDS = ["bert", "xlm-roberta", "qwen3", "llama"]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    made = {kind: save_tiny_encoder(tmp_path_factory.mktemp("rerankers") / kind, kind=kind) for kind in KINDS[:2]}
    for kind in KINDS[2:]:
        made[kind] = save_tiny_decoder(tmp_path_factory.mktemp("rerankers") / kind, kind=kind)
    return made


@pytest.fixture(scope="module")
def rerankers(folders):
    options = {"device": "cpu", "precision": "float32"}
    return {kind: Reranker.from_pretrained(folder, **options) for kind, folder in folders.items()}


class LengthFusion:
    """Half the logit, and a bonus for short code."""

    def scores(self, instructions, queries, codes, logits):
        return logits / 2 - np.array([len(code) for code in codes], dtype=np.float32) / 100

    def explain(self, instruction, query, code, logit):
        return [("model", logit / 2), ("length", -len(code) / 100)]


@pytest.mark.parametrize("kind", KINDS)
def test_scores_are_the_models_logits(rerankers, kind):
    import torch

    reranker = rerankers[kind]
    given = reranker.score(QUERIES, CODES, quality="speed")
    assert given.dtype == np.float32 and given.shape == (6,)
    backbone = reranker.backbone
    for value, query, code in zip(given, QUERIES, CODES, strict=True):
        encoded = backbone.encode([instruction_for("speed")], [query], [code]).inputs
        with torch.inference_mode():
            expected = float(backbone.scores(backbone.model, backbone.collate(encoded))[0])
        assert value == pytest.approx(expected, abs=1e-4)
    assert len(set(given.tolist())) >= 4
    assert given[0] == given[3]
    assert reranker.trims == (5, 0, 0)
    assert reranker.scale == LOG_ODDS


@pytest.mark.parametrize("kind", KINDS)
def test_scores_depend_on_no_neighbour_and_no_window(rerankers, kind, monkeypatch):
    reranker = rerankers[kind]
    together = reranker.score(QUERIES, CODES)
    backwards = reranker.score(QUERIES[::-1], CODES[::-1])[::-1]
    alone = [reranker.score([query], [code])[0] for query, code in zip(QUERIES, CODES, strict=True)]
    np.testing.assert_allclose(together, backwards, atol=1e-4)
    np.testing.assert_allclose(together, alone, atol=1e-4)
    monkeypatch.setattr(scoring, "_INPUTS_A_WINDOW", 2)
    monkeypatch.setattr(scoring, "_TOKENS_A_BATCH", 60)
    calls = []
    windows = reranker.score(QUERIES, CODES, progress=lambda *call: calls.append(call))
    np.testing.assert_allclose(together, windows, atol=1e-4)
    assert calls[-1] == (scoring.STAGE, 5, 5) and calls == sorted(calls)
    assert reranker.trims == (5, 0, 0)


def test_equal_inputs_are_computed_once(rerankers):
    calls = []
    codes = [CODES[0], CODES[1], CODES[0], CODES[0]]
    given = rerankers["bert"].score(["q"] * 4, codes, progress=lambda *call: calls.append(call))
    assert calls[-1] == (scoring.STAGE, 2, 2)
    assert given[0] == given[2] == given[3] != given[1]


@pytest.mark.parametrize("kind", ["bert", "qwen3"])
def test_empty_lists_give_an_empty_array(rerankers, kind):
    given = rerankers[kind].score([], [])
    assert given.shape == (0,) and given.dtype == np.float32
    assert rerankers[kind].rank("query", []) == []
    assert rerankers[kind].trims == (0, 0, 0)


def test_the_instruction_wins_over_quality_and_may_be_one_for_each(rerankers):
    reranker = rerankers["bert"]
    fast = reranker.score(QUERIES, CODES, quality=["speed"])
    np.testing.assert_array_equal(fast, reranker.score(QUERIES, CODES, quality="speed"))
    np.testing.assert_array_equal(fast, reranker.score(QUERIES, CODES, instruction=instruction_for("speed")))
    np.testing.assert_array_equal(
        fast, reranker.score(QUERIES, CODES, instruction=instruction_for("speed"), quality="no such quality")
    )
    asked = [instruction_for("speed")] * 3 + [instruction_for("memory")] * 3
    mixed = reranker.score(QUERIES, CODES, instruction=asked)
    np.testing.assert_allclose(mixed[:3], fast[:3], atol=1e-5)
    np.testing.assert_allclose(mixed[3:], reranker.score(QUERIES, CODES, quality={"memory"})[3:], atol=1e-5)
    np.testing.assert_allclose(mixed, reranker.score_triples(asked, QUERIES, CODES), atol=1e-5)
    assert np.abs(fast - reranker.score(QUERIES, CODES)).max() > 1e-3


@pytest.mark.parametrize(
    ("arguments", "options", "said"),
    [
        ((["q"], ["a", "b"]), {}, "1 queries and 2 codes"),
        (("q", ["a"]), {}, "queries is of type str"),
        ((["q"], "a"), {}, "codes is of type str"),
        ((None, ["a"]), {}, "queries is None"),
        ((["q", "q"], ["a", None]), {}, r"codes\[1\] is None"),
        ((["q", 3], ["a", "b"]), {}, r"queries\[1\] is of type int"),
        ((["q"], ["a"]), {"quality": "sped"}, "unknown quality 'sped'"),
        ((["q"], ["a"]), {"quality": [3]}, "unknown quality 3"),
        ((["q"], ["a"]), {"quality": 3}, "quality is 3; give a list of names"),
        ((["q"], {"a": 1}), {}, "codes is of type dict"),
        ((["q", "q"], {"a", "b"}), {}, "codes is of type set"),  # in no order that its giver chose
        ((["q"], np.array("a")), {}, "codes is of type ndarray"),
        ((["q"], ["a"]), {"instruction": ["i", "j"]}, "2 instructions for 1 codes"),
        ((["q"], ["a"]), {"instruction": [7]}, "instruction is of type int"),
        ((["q"], ["a"]), {"instruction": 7}, "instruction is of type int"),
    ],
)
def test_what_is_no_list_of_texts_is_one_line(rerankers, arguments, options, said):
    with pytest.raises(UsageError, match=said) as caught:
        rerankers["bert"].score(*arguments, **options)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("triples", "said"),
    [
        ((["i"], ["q", "q"], ["a"]), "1 instructions, 2 queries and 1 codes"),
        (([5], ["q"], ["a"]), "instructions is of type int"),
        (("i", "q", "a"), "instructions is of type str"),
    ],
)
def test_what_are_no_triples_is_one_line(rerankers, triples, said):
    with pytest.raises(UsageError, match=said):
        rerankers["bert"].score_triples(*triples)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"device": []}, "cannot be used here"),
        ({"device": "meta"}, "cannot be used here"),
        ({"max_length": "long"}, "maximum length 'long' is no integer"),
        ({"max_length": 1.5}, "no integer"),
        ({"max_length": True}, "no integer"),
        ({"max_length": float("nan")}, "no integer"),
        ({"base": 5}, "base is of type int"),
    ],
)
def test_odd_options_of_loading_are_one_line(folders, options, said):
    with pytest.raises(UsageError, match=said) as caught:
        Reranker.from_pretrained(folders["bert"], **options)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("named", [None, 5, b"x", [], "x" * 5000])
def test_odd_names_of_models_are_one_short_line(named):
    with pytest.raises(UsageError) as caught:
        Reranker.from_pretrained(named)
    assert len(str(caught.value)) < 200


def test_rank_orders_by_score_then_place(rerankers):
    assert len(rerankers["bert"].rank("q", ["a", "b"], top_k=np.int64(1))) == 1
    reranker = rerankers["bert"]
    ranked = reranker.rank("read json", CODES, quality="speed")
    scores = reranker.score(["read json"] * 6, CODES, quality="speed")
    assert all(isinstance(place, RankedCode) for place in ranked)
    assert [place.index for place in ranked] == sorted(range(6), key=lambda at: (-scores[at], at))
    np.testing.assert_allclose([place.score for place in ranked], np.sort(scores)[::-1], atol=1e-6)
    places = [place.index for place in ranked]
    assert places.index(3) == places.index(0) + 1  # equal texts, in the order given
    assert reranker.rank("read json", CODES, quality="speed", top_k=2) == ranked[:2]
    assert len(reranker.rank("read json", CODES, top_k=99)) == 6
    for wrong in (0, -1, 1.5, True):
        with pytest.raises(UsageError, match="top_k"):
            reranker.rank("q", CODES, top_k=wrong)
    with pytest.raises(UsageError, match="query is of type list"):
        reranker.rank(["q"], CODES)
    with pytest.raises(UsageError, match="codes is of type str"):
        reranker.rank("q", "code")


def test_probability_is_the_sigmoid(rerankers):
    scores = np.array([[-1000.0, -40.0, 0.0], [1.0, 40.0, 1000.0]], dtype=np.float32)
    given = rerankers["bert"].probability(scores)
    assert given.shape == scores.shape and given.dtype == np.float32
    np.testing.assert_allclose(given[0], [0, 4.2483543e-18, 0.5], rtol=1e-6)
    np.testing.assert_allclose(given[1], [0.73105858, 1, 1], rtol=1e-6)


@pytest.mark.parametrize("kind", ["bert", "qwen3"])
def test_texts_that_were_cut_are_counted_and_told_of_once(folders, kind, caplog):
    reranker = Reranker.from_pretrained(folders[kind], device="cpu", max_length=64 if kind == "bert" else 200)
    long = "read json path " * 400
    with caplog.at_level(logging.WARNING):
        given = reranker.score(["read"] * 3 + [long], [long, long + "more", "short", long])
    assert reranker.trims == (4, 3, 1)
    (said,) = [record.getMessage() for record in caplog.records]
    assert "of 4 inputs, the code of 3 was cut, and the query of 1" in said
    assert given[0] == pytest.approx(given[1], abs=1e-5)
    reranker.score(["read"], ["short"])
    assert reranker.trims == (1, 0, 0)


def test_tags_are_what_the_model_reads(folders):
    backbone = load_backbone(folders["bert"], device="cpu", precision="float32")
    asked = []

    def tags(code):
        asked.append(code)
        return f"loops: 2\n{code}"

    given = Reranker(backbone, tags).score(QUERIES, CODES)
    assert sorted(asked) == sorted(set(CODES))
    plain = Reranker(backbone).score(QUERIES, [f"loops: 2\n{code}" for code in CODES])
    np.testing.assert_allclose(given, plain, atol=1e-5)
    explained = Reranker(backbone, tags).explain(QUERIES[0], CODES[0])
    assert explained.tags == "loops: 2"


def test_fusion_enters_the_score_and_the_explanation(folders):
    backbone = load_backbone(folders["bert"], device="cpu", precision="float32")
    fused = Reranker(backbone, fusion=LengthFusion())
    plain = Reranker(backbone)
    given = fused.score(QUERIES, CODES, quality="speed")
    logits = plain.score(QUERIES, CODES, quality="speed")
    np.testing.assert_allclose(given, logits / 2 - np.array([len(code) for code in CODES]) / 100, atol=1e-5)
    assert given.dtype == np.float32
    explained = fused.explain(QUERIES[1], CODES[1], quality="speed")
    assert explained.score == pytest.approx(given[1], abs=1e-5)
    assert explained.probability == pytest.approx(1 / (1 + np.exp(-given[1])), abs=1e-5)
    assert explained.instruction == instruction_for("speed") and explained.tags == ""
    assert [part.name for part in explained.parts] == ["model", "length"]
    assert sum(part.value for part in explained.parts) == pytest.approx(explained.score, abs=1e-5)
    alone = plain.explain(QUERIES[1], CODES[1], quality="speed")
    assert [tuple(part) for part in alone.parts] == [("model", pytest.approx(logits[1], abs=1e-5))]
    assert fused.score([], []).shape == (0,)

    class Broken(LengthFusion):
        def scores(self, instructions, queries, codes, logits):
            return logits * np.nan

    with pytest.raises(QualcodeError, match="fusion .* NaN or infinite"):
        Reranker(backbone, fusion=Broken()).score(QUERIES, CODES)
    with pytest.raises(QualcodeError, match="fusion .* NaN or infinite"):
        Reranker(backbone, fusion=Broken()).explain(QUERIES[0], CODES[0])


def test_scores_have_no_dropout_amid_training(folders):
    for kind in ("bert", "qwen3"):
        backbone = load_backbone(folders[kind], device="cpu", precision="float32", training=True)
        expected = Reranker.from_pretrained(folders[kind], device="cpu", precision="float32").score(QUERIES, CODES)
        np.testing.assert_allclose(Reranker(backbone).score(QUERIES, CODES), expected, atol=1e-4)
        assert backbone.model.training


def test_damaged_weights_are_an_error_not_an_order(folders, tmp_path):
    from safetensors.torch import load_file, save_file

    folder = save_tiny_encoder(tmp_path / "nan")
    tensors = load_file(folder / "model.safetensors")
    tensors["classifier.weight"] *= float("nan")
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(QualcodeError, match="NaN or infinite scores for 1 of 1 inputs"):
        Reranker.from_pretrained(folder, device="cpu").rank("q", ["code"])
    (folder / "model.safetensors").write_bytes(b"damaged")
    with pytest.raises(QualcodeError) as caught:
        Reranker.from_pretrained(folder, device="cpu")
    assert "\n" not in str(caught.value)


def test_without_a_bundled_reranker_one_line_says_so(monkeypatch, tmp_path):
    monkeypatch.setattr("hf_qualcode.rerank.reranker.files", lambda package: tmp_path)
    with pytest.raises(QualcodeError, match="no bundled reranker"):
        Reranker.bundled()


def test_what_is_no_reranker_is_one_line(tiny_bert, tiny_sentence_transformer, tmp_path, folders):
    for named, said in [
        (str(tiny_bert), "no trained head"),
        (str(tiny_sentence_transformer), "Pooling module, so it encodes single texts"),
        ("nowhere-at-all", "no model 'nowhere-at-all'"),
        (str(save_tiny_encoder(tmp_path / "three", num_labels=3)), "3 labels"),
    ]:
        with pytest.raises(QualcodeError, match=said) as caught:
            Reranker.from_pretrained(named, device="cpu")
        assert "\n" not in str(caught.value)
    for options, said in [
        ({"device": "nonsense"}, "device 'nonsense'"),
        ({"precision": "float8"}, "precision 'float8'"),
        ({"device": "cpu", "max_length": 0}, "maximum length 0"),
    ]:
        with pytest.raises(UsageError, match=said):
            Reranker.from_pretrained(folders["bert"], **options)


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("hf_qualcode", [], "expected an object"),
        ("max_length", "64", "max_length.*expected an integer"),
        ("max_length", 10**12, "max_length.*expected an integer"),
        ("tags", 3, "tags.*expected a string"),
        ("tags", "rust-7", "tags 'rust-7', which this version does not make"),
        ("fusion", True, "fusion.*expected an object"),
        ("backbone", "no-such-family", "no-such-family"),
        ("backbone", {}, "backbone.*expected a string"),
    ],
)
def test_damaged_settings_are_one_line(folders, tmp_path, key, value, said):
    folder = save_tiny_encoder(tmp_path / "damaged")
    config = json.loads((folder / "config.json").read_text())
    config["hf_qualcode"] = value if key == "hf_qualcode" else {key: value}
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(QualcodeError, match=said) as caught:
        Reranker.from_pretrained(folder, device="cpu")
    assert "\n" not in str(caught.value)


def test_code_of_the_folder_is_never_run(tmp_path):
    folder = save_tiny_encoder(tmp_path / "own")
    config = json.loads((folder / "config.json").read_text())
    config.update(model_type="mine", auto_map={"AutoModelForSequenceClassification": "mine.Model"})
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "mine.py").write_text("raise SystemExit('this code was run')")
    with pytest.raises(QualcodeError, match="code of its own"):
        Reranker.from_pretrained(folder, device="cpu")


def test_what_sentence_transformers_saved_gives_its_logits(folders, tmp_path):
    import torch
    from sentence_transformers import CrossEncoder

    stock = CrossEncoder(str(folders["bert"]), device="cpu", local_files_only=True)
    stock.save_pretrained(str(tmp_path / "cross-encoder"))
    reranker = Reranker.from_pretrained(tmp_path / "cross-encoder", device="cpu", precision="float32")
    pairs = [reranker.backbone.text_pair("Be fast", query, code) for query, code in zip(QUERIES, CODES, strict=True)]
    expected = stock.predict(pairs, activation_fn=torch.nn.Identity(), show_progress_bar=False)
    np.testing.assert_allclose(reranker.score(QUERIES, CODES, instruction="Be fast"), expected, atol=5e-5)
    modules = json.loads((tmp_path / "cross-encoder" / "modules.json").read_text())
    modules.append({"idx": 1, "name": "1", "path": "1_D", "type": "sentence_transformers.base.modules.dense.Dense"})
    (tmp_path / "cross-encoder" / "modules.json").write_text(json.dumps(modules))
    with pytest.raises(QualcodeError, match="Dense module, which is not run here"):
        Reranker.from_pretrained(tmp_path / "cross-encoder", device="cpu")
    (tmp_path / "cross-encoder" / "modules.json").write_text("[3]")
    with pytest.raises(QualcodeError, match="no list of modules"):
        Reranker.from_pretrained(tmp_path / "cross-encoder", device="cpu")
