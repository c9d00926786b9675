"""Folders that ask for more than weights and a configuration: other files, other places, code, layers that are not."""

import json
import os
import shutil

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from hf_qualcode.rerank.backbones import load_backbone
from hf_qualcode.rerank.config import RerankConfig
from hf_qualcode.rerank.reranker import Reranker
from hf_qualcode.rerank.trainer import RerankTrainer
from hf_qualcode.types import QualcodeError, UsageError
from tests.rerank.tiny import byte_pairs, save_tiny_decoder, save_tiny_encoder


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


def test_nothing_waits_at_a_pipe_far_down(folder):
    reranker = Reranker(load_backbone(folder, device="cpu"))
    saved = reranker.save_pretrained(folder.parent / "saved")
    (saved / "a" / "b" / "c").mkdir(parents=True)
    os.mkfifo(saved / "a" / "b" / "c" / "config.json")
    (saved / "round").symlink_to(saved)
    with pytest.raises(QualcodeError, match="a/b/c/config.json is neither a file nor a folder"):
        Reranker.from_pretrained(saved)


def test_links_to_above_are_followed_once(folder):
    (folder / "round").symlink_to(folder)
    load_backbone(folder)


@pytest.mark.parametrize("name", ["tokenizer_config.json", "modules.json", "reranker_config.json"])
def test_a_file_that_was_lost_is_missed(folder, name):
    (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to(folder / "nowhere")
    with pytest.raises(QualcodeError, match="a link to what is not there"):
        load_backbone(folder)


@pytest.mark.parametrize(("name", "size"), [("config.json", 2**24 + 1), ("tokenizer.json", 2**29 + 1)])
def test_configurations_without_end_are_not_read(folder, name, size):
    os.truncate(folder / name, size)
    with pytest.raises(QualcodeError, match="larger than"):
        load_backbone(folder)


def change_weights(folder, **tensors):
    weights = load_file(folder / "model.safetensors")
    save_file(weights | {name.replace("__", "."): tensor for name, tensor in tensors.items()},
              folder / "model.safetensors", metadata={"format": "pt"})  # fmt: skip


def test_weights_of_another_shape_are_named(folder):
    change_weights(folder, classifier__weight=torch.zeros(2, 32))
    with pytest.raises(QualcodeError, match=r"classifier.weight of shape \[2, 32\], and its config.json \[1, 32\]"):
        load_backbone(folder)


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.complex64])
def test_weights_are_floating_point_numbers(folder, dtype):
    change_weights(folder, classifier__weight=torch.ones(1, 32).to(dtype))
    with pytest.raises(QualcodeError, match="expected floating point numbers"):
        load_backbone(folder)


def test_tokens_without_embeddings_are_refused(folder):
    name = "bert.embeddings.word_embeddings.weight"
    change_weights(folder, **{name: load_file(folder / "model.safetensors")[name][:60].clone()})
    change(folder, vocab_size=60)
    with pytest.raises(QualcodeError, match="its model has 60 embeddings of tokens"):
        load_backbone(folder)


def test_special_tokens_that_no_text_becomes_need_no_embeddings(tmp_path):
    tokenizer = byte_pairs(chat_template=None)
    folder = save_tiny_decoder(tmp_path / "tiny", tokenizer=tokenizer, classifier=True, vocab_size=len(tokenizer))
    tokenizer.add_special_tokens({"additional_special_tokens": ["<image>"]})
    tokenizer.save_pretrained(folder)
    assert len(tokenizer) > json.loads((folder / "config.json").read_text())["vocab_size"]
    reranker = Reranker(load_backbone(folder, device="cpu"))
    assert np.isfinite(reranker.score(["<image>"], ["<image>"])).all()


FIRST, SECOND = {"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}


@pytest.mark.parametrize("pair", [[FIRST], [SECOND], [SECOND, FIRST], [FIRST, FIRST, SECOND], [FIRST, SECOND, SECOND]])
def test_a_tokenizer_that_loses_a_text_of_a_pair_is_refused(folder, pair):
    content = json.loads((folder / "tokenizer.json").read_text())
    content["post_processor"] = {
        "type": "TemplateProcessing", "single": [FIRST], "pair": pair, "special_tokens": {},
    }  # fmt: skip
    (folder / "tokenizer.json").write_text(json.dumps(content))
    with pytest.raises(QualcodeError, match="does not join the two texts of a pair"):
        load_backbone(folder)


def test_segments_that_the_model_lacks_are_refused(folder):
    content = json.loads((folder / "tokenizer.json").read_text())
    for piece in content["post_processor"]["pair"]:
        for part in piece.values():
            part["type_id"] *= 7
    (folder / "tokenizer.json").write_text(json.dumps(content))
    with pytest.raises(QualcodeError, match="makes segment 7"):
        load_backbone(folder)


def test_a_model_that_loads_and_cannot_run_is_one_line(folder):
    change(folder, num_attention_heads=-1)
    with pytest.raises(QualcodeError, match="cannot be run on cpu") as error:
        Reranker(load_backbone(folder, device="cpu")).score(["a"], ["b"])
    assert "\n" not in str(error.value)


def test_an_encoder_that_sees_nothing_behind_is_refused(folder):
    change(folder, is_decoder=True)
    with pytest.raises(QualcodeError, match="is_decoder"):
        load_backbone(folder)


def test_a_trained_head_is_not_left_aside(tmp_path):
    folder = save_tiny_decoder(tmp_path / "tiny", classifier=True)
    change(folder, architectures=None)
    with pytest.raises(QualcodeError, match="has a trained head"):
        load_backbone(folder)


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        ("{{ 'a' * 1000000 }}", "it makes 1000000 characters"),
        ("{{ 'a' * 10000000000 }}", "it fills the memory"),
        pytest.param(
            "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}", "not done after",
            marks=pytest.mark.slow,
        ),
    ],
)  # fmt: skip
def test_a_template_that_does_not_end_is_ended(tmp_path, template, reason):
    folder = save_tiny_decoder(tmp_path / "tiny", kind="llama", tokenizer=byte_pairs(chat_template=template))
    with pytest.raises(QualcodeError, match=reason):
        load_backbone(folder)


def test_a_backbone_of_a_later_version_is_damage_not_usage(folder):
    change(folder, hf_qualcode={"backbone": "of-tomorrow"})
    with pytest.raises(QualcodeError, match="which this version does not have") as error:
        Reranker.from_pretrained(folder)
    assert not isinstance(error.value, UsageError)


@pytest.mark.parametrize(
    "settings",
    [{"lora_alpha": 10**400}, {"alpha_pattern": {"a": 10**400}}, {"use_rslora": "no"}, {"fan_in_fan_out": [1]}],
)
def test_odd_settings_of_an_adapter_are_one_line(tmp_path, settings):
    config = {"peft_type": "LORA", "task_type": "SEQ_CLS", "lora_alpha": 4, **settings}
    (tmp_path / "adapter_config.json").write_text(json.dumps(config))
    save_file({"base_model.model.classifier.bias": torch.zeros(1)}, tmp_path / "adapter_model.safetensors")
    with pytest.raises(QualcodeError, match="download it again"):
        Reranker.from_pretrained(tmp_path, base="minilm")


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


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A tiny model, settings and rows of a run that left checkpoints."""
    place = tmp_path_factory.mktemp("run")
    folder = save_tiny_encoder(place / "tiny")
    rows = [{"instruction": "fast", "query": "q", "codes": ["a", "b"], "grades": [1, 0]}] * 4
    config = RerankConfig(
        str(place / "out"), use_cpu=True, report_to="none", save_steps=1, max_steps=2, per_device_train_batch_size=2
    )
    RerankTrainer(load_backbone(folder, training=True), config, train_dataset=rows).train()
    return folder, config, rows


@pytest.fixture
def resume(run, tmp_path):
    """Resumes from a copy of a checkpoint, after a change to it."""

    def resume(change):
        folder, config, rows = run
        checkpoint = shutil.copytree(f"{config.output_dir}/checkpoint-1", tmp_path / "copy")
        change(checkpoint)
        trainer = RerankTrainer(load_backbone(folder, training=True), config, train_dataset=rows)
        trainer.train(resume_from_checkpoint=str(checkpoint))

    return resume


WHOLE = ["optimizer.pt", "scheduler.pt", "rng_state.pth", "trainer_state.json", "model.safetensors"]


@pytest.mark.parametrize("missing", WHOLE)
def test_a_checkpoint_that_is_not_whole_is_refused(resume, missing):
    with pytest.raises(QualcodeError, match="not whole"):
        resume(lambda checkpoint: (checkpoint / missing).unlink())


@pytest.mark.parametrize("cut", [*WHOLE, "config.json"])
def test_a_checkpoint_that_was_cut_is_refused(resume, cut):
    def cut_in_half(checkpoint):
        content = (checkpoint / cut).read_bytes()
        (checkpoint / cut).write_bytes(content[: len(content) // 2])

    with pytest.raises(QualcodeError, match=f"{cut} is damaged") as error:
        resume(cut_in_half)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "values", [{"global_step": 99}, {"global_step": "x"}, {"log_history": 5}, {"epoch": None}, {"unknown": 1}]
)
def test_a_state_that_no_trainer_writes_is_refused(resume, values):
    def write(checkpoint):
        path = checkpoint / "trainer_state.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | values))

    with pytest.raises(QualcodeError, match="which no trainer writes"):
        resume(write)


def test_a_checkpoint_of_another_model_is_refused(resume, tmp_path):
    other = save_tiny_encoder(tmp_path / "other", kind="xlm-roberta")
    with pytest.raises(QualcodeError, match="of another model"):
        resume(lambda checkpoint: shutil.copy(other / "model.safetensors", checkpoint))


@pytest.mark.parametrize("given", [True, 5, ""])
def test_resuming_needs_a_checkpoint(run, tmp_path, given):
    folder, _, rows = run
    config = RerankConfig(str(tmp_path / "out"), use_cpu=True, report_to="none")
    trainer = RerankTrainer(load_backbone(folder, training=True), config, train_dataset=rows)
    with pytest.raises(UsageError, match="checkpoint"):
        trainer.train(resume_from_checkpoint=given)
    with pytest.raises(QualcodeError, match="no such folder"):
        trainer.train(resume_from_checkpoint=str(tmp_path / "nowhere"))


def test_the_newest_checkpoint_is_looked_at_as_any_other(run, tmp_path):
    folder, config, rows = run
    shutil.copytree(f"{config.output_dir}/checkpoint-1", tmp_path / "out" / "checkpoint-1")
    (tmp_path / "out" / "checkpoint-1" / "optimizer.pt").write_bytes(b"")
    config = RerankConfig(str(tmp_path / "out"), use_cpu=True, report_to="none", max_steps=2)
    trainer = RerankTrainer(load_backbone(folder, training=True), config, train_dataset=rows)
    with pytest.raises(QualcodeError, match="optimizer.pt is damaged"):
        trainer.train(resume_from_checkpoint=True)


def test_workers_say_what_is_wrong_in_one_line(run, tmp_path):
    folder, _, rows = run
    config = RerankConfig(
        str(tmp_path / "out"), use_cpu=True, report_to="none", max_steps=1, dataloader_num_workers=1
    )  # fmt: skip
    rows = [*rows, rows[0] | {"grades": [1]}]
    trainer = RerankTrainer(load_backbone(folder, training=True), config, train_dataset=rows)
    with pytest.raises(QualcodeError, match="^list 'row .' has 2 codes and 1 grades[^\n]*$"):
        trainer.train()


@pytest.mark.parametrize("rows", [None, []])
def test_training_on_nothing_is_wrong_usage(folder, tmp_path, rows):
    config = RerankConfig(str(tmp_path / "out"), use_cpu=True, report_to="none")
    with pytest.raises(UsageError, match="no lists to train on"):
        RerankTrainer(load_backbone(folder, training=True), config, train_dataset=rows).train()
