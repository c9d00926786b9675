"""Jina-reranker-v2 under the key names it is published with: a round trip without its code."""

import json
import re
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForSequenceClassification

from hf_qualcode.rerank.backbones import load_backbone
from hf_qualcode.types import QualcodeError
from tests.rerank.tiny import save_tiny_encoder


# From stock to published names, as the weights were once converted; see the model's implementation of XLM-RoBERTa.
PUBLISHED = [
    (r"^roberta\.embeddings\.LayerNorm\.", "roberta.emb_ln."),
    (r"^roberta\.encoder\.layer\.", "roberta.encoder.layers."),
    (r"\.attention\.output\.LayerNorm\.", ".norm1."),
    (r"(layers\.\d+)\.output\.LayerNorm\.", r"\1.norm2."),
    (r"\.intermediate\.dense\.", ".mlp.fc1."),
    (r"(layers\.\d+)\.output\.dense\.", r"\1.mlp.fc2."),
    (r"\.attention\.output\.dense\.", ".mixer.out_proj."),
]
LAYER = {
    f"{module}.{kind}"
    for module in ("mixer.Wqkv", "mixer.out_proj", "norm1", "mlp.fc1", "mlp.fc2", "norm2")
    for kind in ("weight", "bias")
}
KEYS = {
    "roberta.embeddings.word_embeddings.weight",
    "roberta.embeddings.position_embeddings.weight",
    "roberta.embeddings.token_type_embeddings.weight",
    "roberta.emb_ln.weight",
    "roberta.emb_ln.bias",
    *(f"roberta.encoder.layers.{number}.{name}" for number in (0, 1) for name in LAYER),
    "classifier.dense.weight",
    "classifier.dense.bias",
    "classifier.out_proj.weight",
    "classifier.out_proj.bias",
}


def published(tensors):
    renamed = {}
    for name, tensor in tensors.items():
        for pattern, replacement in PUBLISHED:
            name = re.sub(pattern, replacement, name)
        renamed[name] = tensor
    for layer in (0, 1):
        for kind in ("weight", "bias"):
            parts = [
                renamed.pop(f"roberta.encoder.layers.{layer}.attention.self.{part}.{kind}")
                for part in ("query", "key", "value")
            ]
            renamed[f"roberta.encoder.layers.{layer}.mixer.Wqkv.{kind}"] = torch.cat(parts)
    return renamed


@pytest.fixture
def folder(tmp_path):
    """The stock twin is in `stock`."""
    stock = save_tiny_encoder(tmp_path / "stock", kind="xlm-roberta")
    folder = shutil.copytree(stock, tmp_path / "jina")
    tensors = published(load_file(folder / "model.safetensors"))
    assert tensors.keys() == KEYS
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    config = json.loads((folder / "config.json").read_text())
    config["auto_map"] = {
        "AutoConfig": "configuration_xlm_roberta.XLMRobertaFlashConfig",
        "AutoModel": "modeling_xlm_roberta.XLMRobertaModel",
        "AutoModelForSequenceClassification": "modeling_xlm_roberta.XLMRobertaForSequenceClassification",
    }
    config.update(emb_pooler=None, use_flash_attn=True, position_embedding_type="absolute")
    (folder / "config.json").write_text(json.dumps(config))
    for file in ("configuration_xlm_roberta.py", "modeling_xlm_roberta.py"):
        (folder / file).write_text("raise SystemExit('this code was run')")
    return folder


def scores_of(backbone):
    inputs = backbone.encode(["fast"] * 3, ["read", "json", "x"], ["def f():", "", "a list " * 30]).inputs
    with torch.no_grad():
        return backbone.scores(backbone.model, backbone.collate(inputs))


def test_logits_equal_those_of_the_stock_model(folder, monkeypatch):
    monkeypatch.setattr("builtins.input", lambda *_: pytest.fail("asked on standard input"))
    backbone = load_backbone(folder, device="cpu")
    assert (backbone.name, backbone.license) == ("jina", "cc-by-nc-4.0")
    stock = load_backbone(folder.parent / "stock", device="cpu")
    torch.testing.assert_close(scores_of(backbone), scores_of(stock), atol=0, rtol=0)
    for name, tensor in stock.model.state_dict().items():
        assert torch.equal(backbone.model.state_dict()[name], tensor), name


def test_what_is_saved_needs_no_code_and_keeps_the_licence(folder, tmp_path):
    backbone = load_backbone(folder, training=True)
    saved = tmp_path / "saved"
    backbone.model.config.hf_qualcode = backbone.settings()
    backbone.model.eval().save_pretrained(saved)
    backbone.tokenizer.save_pretrained(saved)
    assert "auto_map" not in (saved / "config.json").read_text()
    assert "auto_map" not in (saved / "tokenizer_config.json").read_text()
    AutoModelForSequenceClassification.from_pretrained(saved, trust_remote_code=False)
    again = load_backbone(saved, device="cpu")
    assert (again.name, again.license) == ("jina", "cc-by-nc-4.0")
    torch.testing.assert_close(scores_of(again), scores_of(backbone), atol=0, rtol=0)


def test_missing_weights_and_rotary_positions_are_errors(folder):
    tensors = load_file(folder / "model.safetensors")
    lacking = {name: tensor for name, tensor in tensors.items() if "layers.1.mixer.Wqkv.bias" not in name}
    save_file(lacking, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(QualcodeError, match="lack roberta.encoder.layer.1.attention.self.key.bias"):
        load_backbone(folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "position_embedding_type": "rotary"}))
    with pytest.raises(QualcodeError, match="absolute positions"):
        load_backbone(folder)
