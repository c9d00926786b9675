"""Loading backbones: families, heads that were never trained, conversion of language models, hostile folders."""

import json
import pickle
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification, AutoTokenizer

from hf_qualcode.rerank.backbones import backbone_names, load_backbone
from hf_qualcode.types import QualcodeError, UsageError
from tests.rerank.tiny import byte_pairs, save_tiny_decoder, save_tiny_encoder


INSTRUCTION = "Retrieve code that is fast"
QUERIES = ["read json", "sort a list of numbers", "read json"]
CODES = ["def read_json(path):\n    return 1\n", "\n\nclass Queue:\n    pass", "x"]


def inputs_of(backbone):
    return backbone.encode([INSTRUCTION] * 3, QUERIES, CODES).inputs


@torch.no_grad()
def scores_of(backbone):
    return backbone.scores(backbone.model, backbone.collate(inputs_of(backbone)))


def change_config(folder, **values):
    config = json.loads((folder / "config.json").read_text())
    config.update(values)
    (folder / "config.json").write_text(json.dumps(config))


def change_tensors(folder, change):
    file = folder / "model.safetensors"
    save_file(change(load_file(file)), file, {"format": "pt"})


def test_names():
    assert backbone_names() == ("bge", "causal", "encoder", "jina", "qwen3")


@pytest.mark.parametrize("kind", ["bert", "xlm-roberta"])
def test_an_encoder_reads_and_scores_as_stock_tools_do(kind, tmp_path):
    folder = save_tiny_encoder(tmp_path, kind=kind)
    backbone = load_backbone(folder, device="cpu")
    assert (backbone.name, backbone.is_decoder, backbone.license) == ("encoder", False, None)
    assert not backbone.model.training
    assert backbone.settings() == {"backbone": "encoder", "max_length": 128}
    assert backbone.text_pair("fast", "read", "x") == ("fast\nread", "x")
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    given = scores_of(backbone)
    assert given.dtype == torch.float32
    for encoded, query, code, score in zip(inputs_of(backbone), QUERIES, CODES, given, strict=True):
        stock = tokenizer(*backbone.text_pair(INSTRUCTION, query, code), return_tensors="pt")
        assert encoded.ids == stock["input_ids"][0].tolist()
        assert encoded.prefix_length == 0
        if kind == "bert":
            assert encoded.type_ids == stock["token_type_ids"][0].tolist()
        with torch.no_grad():
            assert float(score) == pytest.approx(float(model(**stock).logits), abs=1e-5)


@pytest.mark.parametrize(("kind", "name"), [("qwen3", "qwen3"), ("llama", "causal")])
@pytest.mark.parametrize("tied", [True, False])
def test_a_language_model_scores_by_the_log_odds_of_yes(kind, name, tied, tmp_path):
    folder = save_tiny_decoder(tmp_path, kind=kind, tied=tied)
    backbone = load_backbone(folder, device="cpu")
    assert (backbone.name, backbone.is_decoder) == (name, True)
    assert not [text for text in backbone.model.state_dict() if "lm_head" in text]
    tokenizer = AutoTokenizer.from_pretrained(folder)
    language_model = AutoModelForCausalLM.from_pretrained(folder).eval()
    yes, no = tokenizer.convert_tokens_to_ids(["yes", "no"])
    for encoded, query, code, score in zip(inputs_of(backbone), QUERIES, CODES, scores_of(backbone), strict=True):
        first, second = backbone.text_pair(INSTRUCTION, query, code)
        assert encoded.ids == tokenizer(first, second)["input_ids"] == tokenizer(first + second)["input_ids"]
        assert tokenizer.decode(encoded.ids[: encoded.prefix_length]) == first + "<Document>:"
        with torch.no_grad():
            logits = language_model(torch.tensor([encoded.ids])).logits[0, -1]
        assert float(score) == pytest.approx(float(logits[yes] - logits[no]), abs=1e-4)


@pytest.mark.parametrize("kind", ["qwen3", "llama"])
def test_what_is_saved_is_a_stock_classifier_and_reads_alike(kind, tmp_path):
    backbone = load_backbone(save_tiny_decoder(tmp_path / "lm", kind=kind), device="cpu")
    saved = tmp_path / "saved"
    backbone.model.config.hf_qualcode = backbone.settings()
    backbone.model.save_pretrained(saved)
    backbone.tokenizer.save_pretrained(saved)
    config = json.loads((saved / "config.json").read_text())
    assert config["architectures"] == [{"qwen3": "Qwen3", "llama": "Llama"}[kind] + "ForSequenceClassification"]
    again = load_backbone(saved, device="cpu")
    assert again.settings() == backbone.settings()
    assert [encoded.ids for encoded in inputs_of(again)] == [encoded.ids for encoded in inputs_of(backbone)]
    torch.testing.assert_close(scores_of(again), scores_of(backbone), atol=1e-6, rtol=0)
    stock = AutoModelForSequenceClassification.from_pretrained(saved).eval()
    tokenizer = AutoTokenizer.from_pretrained(saved)
    pairs = [backbone.text_pair(INSTRUCTION, query, code) for query, code in zip(QUERIES, CODES, strict=True)]
    batch = tokenizer(
        [first for first, _ in pairs], [second for _, second in pairs], padding=True, return_tensors="pt"
    )
    with torch.no_grad():
        logits = stock(batch["input_ids"], attention_mask=batch["attention_mask"]).logits[:, 0]
    torch.testing.assert_close(logits, scores_of(backbone), atol=1e-4, rtol=0)


def test_a_classifier_of_others_made_from_a_decoder_gets_the_pair_as_it_is(tmp_path):
    backbone = load_backbone(save_tiny_decoder(tmp_path, kind="llama", classifier=True), device="cpu")
    assert backbone.text_pair("fast", "read", "x") == ("fast\nread", "x")
    converted = load_backbone(save_tiny_decoder(tmp_path / "q", classifier=True), device="cpu")
    assert converted.text_pair("fast", "read", "x")[0].startswith("<|im_start|>system\nJudge")


def test_a_plain_template_and_no_padding_token(tmp_path):
    tokenizer = byte_pairs(chat_template=None, pad=False)
    backbone = load_backbone(save_tiny_decoder(tmp_path, kind="llama", tokenizer=tokenizer), device="cpu")
    assert backbone.text_pair("fast", "read", "x")[1] == "<Document>: x\n\nAnswer:"
    assert backbone.tokenizer.pad_token_id == backbone.tokenizer.eos_token_id == backbone.model.config.pad_token_id
    scores = scores_of(backbone)
    alone = [backbone.scores(backbone.model, backbone.collate([encoded])) for encoded in inputs_of(backbone)]
    torch.testing.assert_close(scores, torch.cat(alone).detach(), atol=1e-5, rtol=0)


def test_a_beginning_token_goes_into_the_template_once(tmp_path):
    from tokenizers.processors import TemplateProcessing

    tokenizer = byte_pairs(chat_template=None)
    tokenizer.bos_token = "<|im_start|>"
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
        single="<|im_start|> $A", pair="<|im_start|> $A <|im_start|> $B", special_tokens=[("<|im_start|>", 1)]
    )
    backbone = load_backbone(save_tiny_decoder(tmp_path / "lm", kind="llama", tokenizer=tokenizer), device="cpu")
    for encoded in inputs_of(backbone):
        assert encoded.ids.count(1) == 1 and encoded.ids[0] == 1
    backbone.tokenizer.save_pretrained(tmp_path / "saved")
    again = AutoTokenizer.from_pretrained(tmp_path / "saved")
    pair = backbone.text_pair(INSTRUCTION, QUERIES[0], CODES[0])
    assert again(*pair)["input_ids"] == inputs_of(backbone)[0].ids


def test_a_head_that_was_never_trained_is_refused_unless_training(tiny_bert, tmp_path):
    with pytest.raises(QualcodeError, match="no trained head"):
        load_backbone(tiny_bert)
    backbone = load_backbone(tiny_bert, training=True)
    assert backbone.model.training and backbone.model.config.num_labels == 1
    backbone.scores(backbone.model, backbone.collate(inputs_of(backbone))).sum().backward()
    assert all(tensor.grad is not None for tensor in backbone.model.classifier.parameters())
    headless = save_tiny_encoder(tmp_path / "headless")
    change_tensors(headless, lambda tensors: {name: tensors[name] for name in tensors if "classifier" not in name})
    for training in (False, True):  # it says that it has a head: its copy is incomplete
        with pytest.raises(QualcodeError, match=r"lack classifier.* random"):
            load_backbone(headless, training=training)
    bodiless = shutil.copytree(tiny_bert, tmp_path / "bodiless")
    change_tensors(bodiless, lambda tensors: {name: tensors[name] for name in tensors if "layer.1" not in name})
    with pytest.raises(QualcodeError, match=r"lack bert.encoder"):
        load_backbone(bodiless, training=True)
    with pytest.raises(QualcodeError, match="3 labels"):
        load_backbone(save_tiny_encoder(tmp_path / "three", num_labels=3), training=True)
    decoder = save_tiny_decoder(tmp_path / "untied", tied=False)
    change_tensors(decoder, lambda tensors: {name: tensors[name] for name in tensors if "lm_head" not in name})
    with pytest.raises(QualcodeError, match="lack lm_head"):
        load_backbone(decoder)


def test_half_precision_checkpoints_are_trained_in_float32(tmp_path):
    folder = save_tiny_decoder(tmp_path / "half", dtype=torch.float16)
    model = load_backbone(folder, training=True).model
    assert {tensor.dtype for tensor in model.parameters()} == {torch.float32}
    model = load_backbone(folder, device="cpu", precision="bfloat16").model
    dtypes = {name: tensor.dtype for name, tensor in model.named_parameters()}
    assert dtypes.pop("score.weight") == torch.float32
    assert set(dtypes.values()) == {torch.bfloat16}


@pytest.mark.parametrize("kind", ["bert", "xlm-roberta"])
def test_the_head_keeps_its_digits_beside_a_bfloat16_body(kind, tmp_path):
    folder = save_tiny_encoder(tmp_path, kind=kind)
    model = load_backbone(folder, device="cpu", precision="bfloat16").model
    assert model.base_model.encoder.layer[0].output.dense.weight.dtype == torch.bfloat16
    saved = load_file(folder / "model.safetensors")
    for name, tensor in model.named_parameters():
        if "classifier" in name or "pooler" in name:
            torch.testing.assert_close(tensor.detach(), saved[name], atol=0, rtol=0)


def test_families_by_name_and_by_what_was_saved(tmp_path):
    bge = load_backbone(save_tiny_encoder(tmp_path / "bge-reranker-v2-m3", kind="xlm-roberta"))
    assert (bge.name, bge.license) == ("bge", "apache-2.0")
    folder = save_tiny_encoder(tmp_path / "mine", kind="xlm-roberta")
    # Read like BGE, on weights that are not known to be BGE's; then as one that was made from it says.
    assert load_backbone(folder, backbone="bge").license is None
    change_config(folder, hf_qualcode=bge.settings())
    assert (load_backbone(folder).name, load_backbone(folder).license) == ("bge", "apache-2.0")
    change_config(folder, hf_qualcode={"backbone": "jina", "max_length": 40})
    jina = load_backbone(folder)
    assert (jina.name, jina.license, jina.max_length) == ("jina", "cc-by-nc-4.0", 40)
    assert load_backbone(folder, max_length=64).max_length == 64
    assert load_backbone(folder, max_length=4000).max_length == 128
    with pytest.raises(UsageError, match="unknown backbone 'gpt'; choose one of: bge"):
        load_backbone(folder, backbone="gpt")
    with pytest.raises(UsageError, match="precision"):
        load_backbone(folder, precision="int8")
    with pytest.raises(QualcodeError, match="is no decoder"):
        load_backbone(folder, backbone="causal")
    with pytest.raises(QualcodeError, match="is a decoder"):
        load_backbone(save_tiny_decoder(tmp_path / "llama", kind="llama"), backbone="encoder")
    with pytest.raises(QualcodeError, match="too few for two texts"):
        load_backbone(folder, max_length=6)


def test_templates_that_drop_a_text_are_refused(tmp_path):
    dropping = "{% for m in messages %}{% if m['role'] == 'system' %}{{ m['content'] }}{% endif %}{% endfor %}Answer:"
    folder = save_tiny_decoder(tmp_path / "a", kind="llama", tokenizer=byte_pairs(chat_template=dropping))
    with pytest.raises(QualcodeError, match=r"template .* \{instruction\} 0 times"):
        load_backbone(folder)
    twice = "{{ messages[0]['content'] }}{{ messages[0]['content'] }}"
    with pytest.raises(QualcodeError, match="2 times"):
        load_backbone(save_tiny_decoder(tmp_path / "b", kind="llama", tokenizer=byte_pairs(chat_template=twice)))
    broken = "{{ raise_exception('no users here') }}"
    with pytest.raises(QualcodeError, match="chat template .* no users here"):
        load_backbone(save_tiny_decoder(tmp_path / "c", kind="llama", tokenizer=byte_pairs(chat_template=broken)))
    folder = save_tiny_decoder(tmp_path / "d", kind="llama")
    change_config(folder, hf_qualcode={"backbone": "causal", "template": ["{instruction} {query}", "yes?"]})
    with pytest.raises(QualcodeError, match=r"\{code\} 0 times"):
        load_backbone(folder)


def test_answers_must_be_single_tokens(tmp_path):
    few = byte_pairs(vocab_size=260)
    with pytest.raises(QualcodeError, match="no single token for 'yes'"):
        load_backbone(save_tiny_decoder(tmp_path, kind="llama", tokenizer=few))


def test_logits_that_a_classifier_cannot_give_are_refused(tmp_path):
    folder = save_tiny_decoder(tmp_path, kind="llama", logit_scale=0.5)
    with pytest.raises(QualcodeError, match="logit_scale"):
        load_backbone(folder)


def test_hostile_folders(tmp_path, monkeypatch):
    monkeypatch.setattr("builtins.input", lambda *_: pytest.fail("asked on standard input"))
    whole = save_tiny_encoder(tmp_path / "whole")
    own = shutil.copytree(whole, tmp_path / "own")
    change_config(own, model_type="mine", auto_map={"AutoModelForSequenceClassification": "mine.Model"})
    (own / "mine.py").write_text("raise SystemExit('this code was run')")
    with pytest.raises(QualcodeError, match="code of its own"):
        load_backbone(own)
    pickled = shutil.copytree(whole, tmp_path / "pickled")
    torch.save({}, pickled / "pytorch_model.bin")
    (pickled / "model.safetensors").unlink()
    with pytest.raises(QualcodeError, match="pickled weights"):
        load_backbone(pickled)
    for number, (file, content) in enumerate(
        [
            ("model.safetensors", b"\xff" * 64),
            ("tokenizer.json", b"{}"),
            ("config.json", b"[1]"),
            ("config.json", b"{"),
            ("config.json", b'{"model_type": "bert", "hf_qualcode": 3, "architectures": [4]}'),
            ("config.json", b'{"model_type": "bert", "num_hidden_layers": 1e30}'),
        ]
    ):
        broken = shutil.copytree(whole, tmp_path / f"broken{number}")
        (broken / file).write_bytes(content)
        with pytest.raises(QualcodeError) as caught:
            load_backbone(broken)
        assert "\n" not in str(caught.value)
    with pytest.raises(UsageError, match="no model"):
        load_backbone("nowhere-at-all")


def test_a_copy_for_another_process_reads_without_the_model(tmp_path):
    backbone = load_backbone(save_tiny_decoder(tmp_path), device="cpu")
    copy = pickle.loads(pickle.dumps(backbone))
    assert copy.model is None and backbone.model is not None
    assert inputs_of(copy) == inputs_of(backbone)
    torch.testing.assert_close(copy.collate(inputs_of(copy)), backbone.collate(inputs_of(backbone)))


@pytest.mark.slow
def test_the_packaged_minilm(minilm_folder):
    backbone = load_backbone("minilm", training=True)
    assert backbone.max_length == 256
    assert load_backbone("minilm", training=True, max_length=512).max_length == 512
    assert scores_of(backbone).shape == (3,)


def test_a_new_head_is_drawn_with_its_seed(tiny_bert):
    def head(seed):
        return load_backbone(tiny_bert, training=True, seed=seed).model.classifier.weight.detach()

    torch.manual_seed(1)
    state = torch.get_rng_state()
    first = head(5)
    assert torch.equal(torch.get_rng_state(), state)  # what is drawn afterwards is what would have been
    torch.manual_seed(2)
    assert torch.equal(head(5), first)
    assert not torch.equal(head(6), first)
