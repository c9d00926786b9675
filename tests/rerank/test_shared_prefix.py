"""One computation of instruction and query for all candidates: equal scores, equal gradients."""

import numpy as np
import pytest
import torch
from transformers import AutoConfig, AutoModelForSequenceClassification

from hf_qualcode.rerank import shared_prefix
from hf_qualcode.rerank.backbones import load_backbone
from hf_qualcode.rerank.modeling import score_at_positions
from hf_qualcode.rerank.prefix_attention import PrefixStates, use_prefix_attention
from hf_qualcode.rerank.shared_prefix import can_share_prefix, pack, score_with_shared_prefix
from hf_qualcode.types import QualcodeError
from tests.rerank.tiny import save_tiny_decoder, save_tiny_encoder


QUERIES = ["read json", "sort a list of numbers", "", "a queue of items " * 12]
CODES = ["", "x", "def read_json(path):\n    return path\n", "y = [1, 2, 3]\n" * 9, "class Queue:\n    pass\n" * 3]


@pytest.fixture(scope="module", params=["qwen3", "llama"])
def backbone(request, tmp_path_factory):
    return load_backbone(save_tiny_decoder(tmp_path_factory.mktemp("lm"), kind=request.param), device="cpu")


def inputs_of(backbone, queries=QUERIES, codes=CODES):
    """Every query with every code, queries in turn."""
    pairs = [(query, code) for code in codes for query in queries]
    return backbone.encode(["fast"] * len(pairs), *zip(*pairs, strict=True)).inputs


@torch.no_grad()
def plain_scores(backbone, inputs):
    return backbone.scores(backbone.model, backbone.collate(inputs)).numpy()


def test_the_models_have_grouped_queries(backbone):
    config = backbone.model.config
    assert config.num_key_value_heads < config.num_attention_heads
    assert can_share_prefix(backbone)


@pytest.mark.parametrize(("row_tokens", "attention"), [(1, "sdpa"), (300, "sdpa"), (2048, "sdpa"), (300, "eager")])
def test_packed_rows_score_as_single_inputs_do(backbone, row_tokens, attention):
    inputs = inputs_of(backbone)
    backbone.model.set_attn_implementation(attention)
    try:
        with torch.no_grad():
            given = backbone.scores(backbone.model, pack(inputs, row_tokens=row_tokens)).numpy()
    finally:
        backbone.model.set_attn_implementation("sdpa")
    np.testing.assert_allclose(given, plain_scores(backbone, inputs), atol=1e-4)
    assert len(set(given.tolist())) == len(inputs)


def test_packing_saves_the_prefix_and_bounds_the_rows(backbone):
    inputs = inputs_of(backbone, queries=["read json"], codes=[f"x = {number}\n" * 8 for number in range(40)])
    whole = sum(len(encoded.ids) for encoded in inputs)
    batch = pack(inputs)
    assert batch["input_ids"].numel() < 0.6 * whole
    assert batch["input_ids"].shape[1] <= 2048
    short = pack(inputs, row_tokens=400)
    assert short["input_ids"].shape[1] <= 400 and len(short["input_ids"]) > 1
    assert len(short["score_positions"]) == len(inputs)


def gradients(backbone, batch):
    backbone.model.zero_grad()
    scores = backbone.scores(backbone.model, batch)
    (scores * torch.linspace(-1, 1, len(scores), dtype=scores.dtype)).sum().backward()
    return {name: tensor.grad.clone() for name, tensor in backbone.model.named_parameters()}


@pytest.mark.parametrize(("dtype", "row_tokens"), [(torch.float64, 300), (torch.float32, 2048)])
def test_gradients_of_every_parameter_are_those_of_the_unshared_form(backbone, dtype, row_tokens):
    inputs = inputs_of(backbone)
    backbone.model.to(dtype)
    expected = gradients(backbone, backbone.collate(inputs))
    given = gradients(backbone, pack(inputs, row_tokens=row_tokens))
    backbone.model.to(torch.float32)
    assert given.keys() == expected.keys() == dict(backbone.model.named_parameters()).keys()
    # The norms of these models compute in float32 whatever the model is in.
    tolerance = 1e-6 if dtype == torch.float64 else 1e-4
    for name, tensor in expected.items():
        largest = tensor.abs().max()
        assert largest > 0, name
        assert (given[name] - tensor).abs().max() <= tolerance * largest, name


@pytest.mark.parametrize(
    ("packed_tokens", "joined"), [(0, True), (0, False), (10**9, False)], ids=["joined", "kept keys", "packed"]
)
@pytest.mark.parametrize("budget", [60, 10**6])
def test_inference_with_kept_keys_or_packed_rows(backbone, packed_tokens, joined, budget, monkeypatch):
    monkeypatch.setattr(shared_prefix, "_PACKED_TOKENS", packed_tokens)
    if joined:
        assert use_prefix_attention(backbone.model)
    else:
        monkeypatch.setattr(shared_prefix, "use_prefix_attention", lambda model: False)
    inputs = inputs_of(backbone)
    calls = []
    given = score_with_shared_prefix(backbone, inputs, budget, lambda *call: calls.append(call))
    assert given.dtype == np.float32
    np.testing.assert_allclose(given, plain_scores(backbone, inputs), atol=1e-4)
    assert calls[-1] == ("scoring programs", len(inputs), len(inputs))
    assert score_with_shared_prefix(backbone, [], budget).shape == (0,)


@pytest.mark.parametrize("kind", shared_prefix._PLAIN_ATTENTION)
def test_every_family_hands_the_prefix_to_its_attention(kind):
    torch.manual_seed(0)
    config = AutoConfig.for_model(
        kind, vocab_size=50, hidden_size=32, intermediate_size=48, num_hidden_layers=4, num_attention_heads=4,
        num_key_value_heads=2, head_dim=8, num_labels=1, pad_token_id=0, initializer_range=0.3, sliding_window=None,
        bos_token_id=None, eos_token_id=None,
    )  # fmt: skip
    model = AutoModelForSequenceClassification.from_config(config).eval()
    score_at_positions(model)
    ids = torch.randint(1, 50, (3, 12))
    ids[:, :7] = ids[0, :7]
    assert use_prefix_attention(model)
    with torch.no_grad():
        expected = model(ids, attention_mask=torch.ones_like(ids)).logits
        layers = model.base_model(ids[:1, :7], use_cache=True).cache.layers
        given = model(
            ids[:, 7:],
            position_ids=torch.arange(7, 12).expand(3, -1),
            score_positions=torch.tensor([4, 9, 14]),
            prefix_states=[PrefixStates(layer.keys, layer.values) for layer in layers],
        ).logits
    torch.testing.assert_close(given, expected, atol=1e-5, rtol=0)
    assert expected.std() > 1e-2


def test_no_trace_in_what_is_saved_and_other_attention_is_left_alone(tmp_path):
    backbone = load_backbone(save_tiny_decoder(tmp_path / "model"), device="cpu")
    assert use_prefix_attention(backbone.model)
    backbone.model.save_pretrained(tmp_path / "saved")
    assert "behind_prefix" not in (tmp_path / "saved" / "config.json").read_text(encoding="utf-8")
    backbone.model.set_attn_implementation("eager")
    assert not use_prefix_attention(backbone.model)
    inputs = inputs_of(backbone)
    np.testing.assert_allclose(
        score_with_shared_prefix(backbone, inputs, 300), plain_scores(backbone, inputs), atol=1e-4
    )
    assert backbone.model.config._attn_implementation == "eager"


def test_the_keys_of_a_prefix_stay_as_they_are(backbone, monkeypatch):
    monkeypatch.setattr(shared_prefix, "_PACKED_TOKENS", 0)
    caches = []
    original = shared_prefix._prefix_cache
    monkeypatch.setattr(shared_prefix, "_prefix_cache", lambda *args: caches.append(original(*args)) or caches[-1])
    inputs = inputs_of(backbone, queries=["read json"])
    score_with_shared_prefix(backbone, inputs, 50)
    (cache,) = caches
    fresh = original(backbone, inputs[0].ids[: inputs[0].prefix_length])
    assert cache.get_seq_length() == inputs[0].prefix_length
    for kept, made in zip(cache.layers, fresh.layers, strict=True):
        assert torch.equal(kept.keys, made.keys) and torch.equal(kept.values, made.values)
        assert len(kept.keys) == 1


def test_an_adapter_takes_part(tmp_path):
    import peft

    backbone = load_backbone(save_tiny_decoder(tmp_path), device="cpu")
    inputs = inputs_of(backbone)
    before = score_with_shared_prefix(backbone, inputs, 300)
    config = peft.LoraConfig(task_type="SEQ_CLS", r=4, target_modules=["q_proj"], init_lora_weights=False)
    wrapped = peft.get_peft_model(backbone.model, config).eval()
    with torch.no_grad():
        expected = backbone.scores(wrapped, backbone.collate(inputs)).numpy()
    given = score_with_shared_prefix(backbone, inputs, 300)
    np.testing.assert_allclose(given, expected, atol=1e-4)
    assert abs(given - before).max() > 1e-3


def test_models_that_look_elsewhere_are_refused(tmp_path):
    encoder = load_backbone(save_tiny_encoder(tmp_path / "bert"), device="cpu")
    windowed = load_backbone(
        save_tiny_decoder(tmp_path / "windowed", use_sliding_window=True, sliding_window=16, max_window_layers=0),
        device="cpu",
    )
    for backbone in (encoder, windowed):
        assert not can_share_prefix(backbone)
        inputs = backbone.encode(["fast"], ["read"], ["x"]).inputs
        with pytest.raises(QualcodeError, match="score them without sharing"):
            score_with_shared_prefix(backbone, inputs, 100)
