"""Encoders without padding: the scores of the stock forward."""

import numpy as np
import peft
import pytest
import torch

from hf_qualcode.rerank.backbones import load_backbone
from hf_qualcode.rerank.packed import PackedScorer, score_packed
from hf_qualcode.types import QualcodeError
from tests.rerank.tiny import save_tiny_decoder, save_tiny_encoder


CODES = ["", "x", "def read_json(path):\n" * 9, "class Queue:\n    pass", "y", "x y z\n" * 30, "def f(): pass"]


@pytest.fixture(params=["bert", "xlm-roberta"])
def folder(request, tmp_path):
    return save_tiny_encoder(tmp_path, kind=request.param)


def inputs_of(backbone):
    return backbone.encode(["fast"] * 14, ["read json"] * 7 + ["a queue " * 7] * 7, CODES * 2).inputs


@torch.no_grad()
def padded(backbone, model=None):
    return backbone.scores(model or backbone.model, backbone.collate(inputs_of(backbone))).numpy()


def test_scores_are_those_of_the_stock_forward(folder):
    backbone = load_backbone(folder, device="cpu")
    calls = []
    expected = padded(backbone)
    given = score_packed(backbone, inputs_of(backbone), token_budget=90, progress=lambda *call: calls.append(call))
    assert given.dtype == np.float32
    np.testing.assert_allclose(given, expected, atol=1e-5)
    assert len(set(given.tolist())) == 14
    assert calls[-1] == ("scoring programs", 14, 14)
    assert score_packed(backbone, []).shape == (0,)


def test_adapters_take_part_merged_or_not(folder):
    backbone = load_backbone(folder, device="cpu")
    before = padded(backbone)
    config = peft.LoraConfig(
        task_type="SEQ_CLS", r=4, target_modules=["query", "dense", "word_embeddings"], init_lora_weights=False
    )
    wrapped = peft.get_peft_model(backbone.model, config).eval()
    expected = padded(backbone, wrapped)
    assert abs(expected - before).max() > 1e-3
    np.testing.assert_allclose(score_packed(backbone, inputs_of(backbone)), expected, atol=2e-5)
    wrapped.disable_adapter_layers()
    np.testing.assert_allclose(score_packed(backbone, inputs_of(backbone)), before, atol=1e-5)
    wrapped.enable_adapter_layers()
    assert wrapped.merge_and_unload() is backbone.model
    np.testing.assert_allclose(score_packed(backbone, inputs_of(backbone)), expected, atol=2e-5)


def test_bfloat16_has_a_float32_head(folder):
    exact = padded(load_backbone(folder, device="cpu"))
    backbone = load_backbone(folder, device="cpu", precision="bfloat16")
    given = score_packed(backbone, inputs_of(backbone))
    assert given.dtype == np.float32
    assert len(set(given.tolist())) == 14
    # As far from the exact scores as the padded form is.
    assert abs(given - exact).max() <= 3 * abs(padded(backbone) - exact).max()


def test_what_it_cannot_run_is_refused(folder, tmp_path):
    for backbone in (load_backbone(folder, training=True), load_backbone(save_tiny_decoder(tmp_path / "lm"))):
        assert not PackedScorer.fits(backbone)
        with pytest.raises(QualcodeError, match="score its inputs padded"):
            PackedScorer(backbone)
    variants = [
        peft.LoraConfig(task_type="SEQ_CLS", r=4, target_modules=["query"], use_dora=True),
        peft.LoraConfig(task_type="SEQ_CLS", r=4, target_modules=["query"], lora_bias=True),
        peft.IA3Config(task_type="SEQ_CLS", target_modules=["query"], feedforward_modules=[]),
    ]
    for config in variants:
        backbone = load_backbone(folder, device="cpu")
        assert PackedScorer.fits(backbone)
        peft.get_peft_model(backbone.model, config).eval()
        assert not PackedScorer.fits(backbone)
