"""Rerankers as scorers: what any sequence classifier with one label gives. Tiny real models, made in code."""

import json
import shutil

import numpy as np
import pytest

from hf_qualcode.baselines.reranker import RerankerScorer, reranker_scorer
from hf_qualcode.evaluation.protocols import LOG_ODDS, Scorer
from hf_qualcode.rerank.reranker import Reranker
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
QUERIES = ["read json", "read json", "put an item into a queue", "put an item into a queue", "read json", "\ud800"]
INSTRUCTIONS = ["Retrieve code that is fast"] * 5 + [""]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return save_tiny_encoder(tmp_path_factory.mktemp("reranker"))


@pytest.fixture(params=["bert", "xlm-roberta", "decoder"])
def any_model(request, tmp_path):
    if request.param == "decoder":
        return save_tiny_decoder(tmp_path / "model")
    return save_tiny_encoder(tmp_path / "model", kind=request.param)


@pytest.mark.parametrize("kind", ["bert", "xlm-roberta"])
def test_a_scorer_gives_what_sentence_transformers_gives(kind, tmp_path):
    import torch
    from sentence_transformers import CrossEncoder

    folder = save_tiny_encoder(tmp_path / "model", kind=kind)
    scorer = RerankerScorer(Reranker.from_pretrained(folder, device="cpu", precision="float32"))
    assert isinstance(scorer, Scorer)
    assert scorer.scale == LOG_ODDS
    given = scorer.score(INSTRUCTIONS[:5], QUERIES[:5], CODES[:5])
    assert given.dtype == np.float32
    pairs = [(f"{i}\n{q}", code) for i, q, code in zip(INSTRUCTIONS[:5], QUERIES[:5], CODES[:5], strict=True)]
    twin = CrossEncoder(str(folder), device="cpu", local_files_only=True)
    np.testing.assert_allclose(given, twin.predict(pairs, activation_fn=torch.nn.Identity()), atol=1e-5)
    assert len(set(given.tolist())) >= 4


def test_scores_depend_on_no_neighbour(any_model):
    scorer = RerankerScorer(Reranker.from_pretrained(any_model, device="cpu", precision="float32"))
    together = scorer.score(INSTRUCTIONS, QUERIES, CODES)
    backwards = scorer.score(INSTRUCTIONS[::-1], QUERIES[::-1], CODES[::-1])[::-1]
    alone = [scorer.score([i], [q], [c])[0] for i, q, c in zip(INSTRUCTIONS, QUERIES, CODES, strict=True)]
    np.testing.assert_allclose(together, backwards, atol=1e-5)
    np.testing.assert_allclose(together, alone, atol=1e-5)
    assert scorer.score([], [], []).shape == (0,)


def test_each_row_is_scored_under_its_own_instruction(model):
    scorer = reranker_scorer(str(model))
    fast, slow = scorer.score(["Retrieve code that is fast", "Retrieve code that is slow"], ["q", "q"], CODES[:1] * 2)
    assert fast != slow
    assert scorer.score(["Retrieve code that is slow"], ["q"], CODES[:1])[0] == pytest.approx(slow, abs=1e-5)


def test_equal_inputs_are_scored_once_and_counted(model):
    calls = []
    scorer = reranker_scorer(str(model), progress=lambda *call: calls.append(call))
    given = scorer.score(["i"] * 4, ["q"] * 4, [CODES[0], CODES[1], CODES[0], CODES[0]])
    assert calls[-1][1:] == (2, 2)
    assert given[0] == given[2] == given[3] != given[1]


def test_cut_inputs_keep_instruction_and_start(model):
    scorer = reranker_scorer(str(model))
    long = "read json path " * 60
    codes = ["queue item " + long, "queue item " + long + "more"]
    first, second = scorer.score(["put an item"] * 2, [long] * 2, codes)
    assert first == pytest.approx(second, abs=1e-6)  # they differ only in what is cut away
    assert abs(first - scorer.score(["read"], [long], ["queue item " + long])[0]) > 1e-4
    # A megabyte costs what its first kilobytes cost.
    megabyte = "queue item " + long + "x = 1\n" * 200_000
    assert scorer.score(["put an item"], [long], [megabyte])[0] == pytest.approx(first, abs=1e-6)


def test_a_head_that_was_never_trained_is_refused(tiny_bert, tmp_path):
    shutil.copytree(tiny_bert, tmp_path / "headless")
    config = json.loads((tmp_path / "headless" / "config.json").read_text())
    config.update(architectures=["BertForSequenceClassification"], id2label={"0": "x"}, label2id={"x": 0})
    (tmp_path / "headless" / "config.json").write_text(json.dumps(config))
    for folder in (tiny_bert, tmp_path / "headless", save_tiny_encoder(tmp_path / "three", num_labels=3)):
        with pytest.raises(QualcodeError, match="label|head|classifier"):
            reranker_scorer(str(folder))
    with pytest.raises(UsageError, match="no model"):
        reranker_scorer("nowhere-at-all")


def test_only_safetensors_and_never_code_of_the_folder(model, tmp_path):
    import torch

    shutil.copytree(model, tmp_path / "pickled")
    torch.save({}, tmp_path / "pickled" / "pytorch_model.bin")
    (tmp_path / "pickled" / "model.safetensors").unlink()
    with pytest.raises(QualcodeError, match="pickled weights"):
        reranker_scorer(str(tmp_path / "pickled"))
    shutil.copytree(model, tmp_path / "own")
    config = json.loads((tmp_path / "own" / "config.json").read_text())
    config.update(model_type="mine", auto_map={"AutoModelForSequenceClassification": "mine.Model"})
    (tmp_path / "own" / "config.json").write_text(json.dumps(config))
    (tmp_path / "own" / "mine.py").write_text("raise SystemExit('this code was run')")
    with pytest.raises(QualcodeError, match="code of its own"):
        reranker_scorer(str(tmp_path / "own"))


def test_damaged_weights_are_named(model, tmp_path):
    from safetensors.torch import load_file, save_file

    shutil.copytree(model, tmp_path / "nan")
    tensors = load_file(tmp_path / "nan" / "model.safetensors")
    broken = {name: tensor * float("nan") for name, tensor in tensors.items()}
    save_file(broken, tmp_path / "nan" / "model.safetensors", {"format": "pt"})
    with pytest.raises(QualcodeError, match="NaN or infinite"):
        reranker_scorer(str(tmp_path / "nan")).score(["i"], ["q"], ["c"])
