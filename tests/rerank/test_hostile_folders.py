"""Folders that ask for more than weights and a configuration: other files, other places, code, layers that are not."""

import json
import os
import shutil

import numpy as np
import pytest

from hf_qualcode.rerank.backbones import load_backbone
from hf_qualcode.rerank.config import RerankConfig
from hf_qualcode.rerank.reranker import Reranker
from hf_qualcode.rerank.trainer import RerankTrainer
from hf_qualcode.types import QualcodeError, UsageError
from tests.rerank.tiny import save_tiny_decoder, save_tiny_encoder


@pytest.fixture
def folder(tmp_path):
    return save_tiny_encoder(tmp_path / "tiny")


def change(folder, **values):
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


@pytest.mark.parametrize("name", ["pytorch_model.bin", "../other/model.safetensors", "/etc/passwd", 5])
def test_an_index_names_safetensors_beside_it_and_nothing_else(folder, name):
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"classifier.weight": name}}))
    with pytest.raises(QualcodeError, match="no \\*.safetensors file beside it"):
        load_backbone(folder)


@pytest.mark.parametrize("content", ["[1]", "{", '{"weight_map": 3}'])
def test_an_index_that_is_none_is_one_line(folder, content):
    (folder / "model.safetensors.index.json").write_text(content)
    with pytest.raises(QualcodeError) as error:
        load_backbone(folder)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "name", ["model.safetensors", "config.json", "tokenizer.json", "adapter_config.json", "1_Pooling/config.json"]
)
def test_nothing_waits_at_a_pipe(folder, name):
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).unlink(missing_ok=True)
    os.mkfifo(folder / name)
    with pytest.raises(QualcodeError, match="is neither a file nor a folder"):
        Reranker.from_pretrained(folder)


@pytest.mark.parametrize("key", ["attn_implementation", "_attn_implementation"])
def test_code_from_the_hub_is_refused(folder, key):
    change(folder, **{key: "kernels-community/flash-attn"})
    with pytest.raises(QualcodeError, match="code from the Hub"):
        load_backbone(folder)


@pytest.mark.parametrize("layers", [0, 1])
def test_weights_of_layers_that_are_not_there_are_damage(folder, layers):
    change(folder, num_hidden_layers=layers)
    with pytest.raises(QualcodeError, match="has no layer"):
        load_backbone(folder)


def test_sizes_that_no_model_has_are_refused_before_they_are_laid_out(folder):
    change(folder, num_hidden_layers=5000)
    with pytest.raises(QualcodeError, match="more than 1000"):
        load_backbone(folder)


@pytest.mark.parametrize("kind", ["qwen3", "llama"])
def test_an_empty_code_has_a_score_of_its_own(kind, tmp_path):
    reranker = Reranker(load_backbone(save_tiny_decoder(tmp_path, kind=kind, classifier=True), device="cpu"))
    codes = ["", "a = 1 b", "c"]
    together = reranker.score(["s"] * 3, codes, instruction="x")
    alone = [reranker.score(["s"], [code], instruction="x")[0] for code in codes]
    np.testing.assert_allclose(together, alone, atol=1e-5)
    turned = reranker.score(["s"] * 3, codes[::-1], instruction="x")
    np.testing.assert_allclose(turned[::-1], together, atol=1e-5)


def test_files_of_others_are_not_replaced(folder, tmp_path):
    reranker = Reranker(load_backbone(folder, device="cpu"))
    saved = reranker.save_pretrained(tmp_path / "saved")
    reranker.save_pretrained(saved)
    for name in ("tags_of_my_thesis.txt", "fusion_notes.md", ".eval_results/precious.txt"):
        (saved / name).parent.mkdir(exist_ok=True)
        (saved / name).write_text("mine")
        with pytest.raises(UsageError, match="no part of a reranker"):
            reranker.save_pretrained(saved)
        assert (saved / name).read_text() == "mine"
        (saved / name).unlink()


@pytest.mark.parametrize("missing", ["optimizer.pt", "scheduler.pt", "trainer_state.json", "model.safetensors"])
def test_a_checkpoint_that_is_not_whole_is_refused(folder, tmp_path, missing):
    rows = [{"instruction": "fast", "query": "q", "codes": ["a", "b"], "grades": [1, 0]}] * 4
    config = RerankConfig(
        str(tmp_path / "out"), use_cpu=True, report_to="none", save_steps=1, max_steps=2, per_device_train_batch_size=2
    )
    RerankTrainer(load_backbone(folder, training=True), config, train_dataset=rows).train()
    checkpoint = shutil.copytree(tmp_path / "out" / "checkpoint-1", tmp_path / "copy")
    (checkpoint / missing).unlink()
    trainer = RerankTrainer(load_backbone(folder, training=True), config, train_dataset=rows)
    with pytest.raises(QualcodeError, match="not whole"):
        trainer.train(resume_from_checkpoint=str(checkpoint))
    with pytest.raises(QualcodeError, match="no such folder"):
        trainer.train(resume_from_checkpoint=str(tmp_path / "nowhere"))


@pytest.mark.parametrize("rows", [None, []])
def test_training_on_nothing_is_wrong_usage(folder, tmp_path, rows):
    config = RerankConfig(str(tmp_path / "out"), use_cpu=True, report_to="none")
    with pytest.raises(UsageError, match="no lists to train on"):
        RerankTrainer(load_backbone(folder, training=True), config, train_dataset=rows).train()
