"""Saved rerankers: equal scores in every tool that reads a folder, adapters, and folders that are whole or not there.

Tiny real models, made in code. Text-embeddings-inference is no Python package: its own rules for a folder are checked.
"""

import fcntl
import json
import os
import resource
import shutil

import numpy as np
import pytest

from hf_qualcode import Reranker
from hf_qualcode.rerank.adapters import WEIGHTS_FILE
from hf_qualcode.rerank.backbones import load_backbone
from hf_qualcode.rerank.tags import with_tags
from hf_qualcode.types import QualcodeError, UsageError
from tests.rerank.tiny import byte_pairs, save_tiny_decoder, save_tiny_encoder


INSTRUCTION = "Retrieve code that is fast"
CODES = [
    "def read_json(path):\n    return json.load(open(path))",
    "def write_json(path, value):\n    json.dump(value, open(path))",
    "class Queue:\n    def put(self, item):\n        self.items.append(item)",
    "import json\nprint(json.load(open(0)))\n",
    "x = 1",
    "[SEP] <|im_end|> yes",
]
QUERIES = ["read json", "read json", "put an item into a queue", "read json", "", "sort a list of numbers"]
KINDS = ["bert", "xlm-roberta", "qwen3", "llama"]
MAX_LENGTHS = {"bert": None, "xlm-roberta": 120, "qwen3": 400, "llama": 300}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    made = {kind: save_tiny_encoder(tmp_path_factory.mktemp("sources") / kind, kind=kind) for kind in KINDS[:2]}
    for kind in KINDS[2:]:
        made[kind] = save_tiny_decoder(tmp_path_factory.mktemp("sources") / kind, kind=kind)
    return made


class Loops:
    """Tags of a test: how many loops there are."""

    name = "python-1"

    def __call__(self, code):
        return f"loops: {code.count('for ')}\n{code}"


class Doubling:
    """A fusion of a test, saved as a file of its own."""

    description = "it is doubled."

    def scores(self, instructions, queries, codes, logits):
        return 2 * logits

    def save(self, folder):
        (folder / "fusion_words.json").write_text("{}")
        return {"kind": "doubling"}


def load(folder, **options):
    return Reranker.from_pretrained(folder, device="cpu", precision="float32", **options)


def assert_close(given, expected):
    """Within 1e-5, of the largest score where that is above 1: random weights make scores that real ones do not."""
    np.testing.assert_allclose(given, expected, atol=1e-5 * max(1, np.abs(expected).max()), rtol=0)


def score(reranker):
    return reranker.score(QUERIES, CODES, instruction=INSTRUCTION)


@pytest.mark.parametrize("kind", KINDS)
def test_every_tool_gives_the_same_scores_of_tagged_text(folders, kind, tmp_path):
    import torch
    from sentence_transformers import CrossEncoder
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    options = {"device": "cpu", "precision": "float32", "max_length": MAX_LENGTHS[kind]}
    backbone = load_backbone(folders[kind], **options)
    tagged = Reranker(backbone, Loops())
    expected = score(tagged)
    assert len(np.unique(expected)) == len(CODES)
    folder = tagged.save_pretrained(tmp_path / "saved")
    pairs = [backbone.text_pair(INSTRUCTION, query, Loops()(code)) for query, code in zip(QUERIES, CODES, strict=True)]

    stock = CrossEncoder(str(folder), device="cpu", local_files_only=True)
    assert stock.max_seq_length == backbone.max_length
    given = stock.predict(pairs, batch_size=4, show_progress_bar=False)
    assert_close(given, expected)
    assert list(np.argsort(given)) == list(np.argsort(expected))

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model, report = AutoModelForSequenceClassification.from_pretrained(folder, output_loading_info=True)
    assert not report["missing_keys"] and not report["unexpected_keys"]
    texts, seconds = zip(*pairs, strict=True)
    inputs = tokenizer(list(texts), list(seconds), padding=True, return_tensors="pt")
    with torch.inference_mode():
        logits = model.eval()(**inputs).logits
    assert_close(logits[:, 0].numpy(), expected)
    encoded = backbone.encode([INSTRUCTION] * 6, QUERIES, [Loops()(code) for code in CODES]).inputs
    for row, mask, ours in zip(inputs["input_ids"], inputs["attention_mask"], encoded, strict=True):
        assert row[mask.bool()].tolist() == ours.ids

    assert json.loads((folder / "config.json").read_text())["hf_qualcode"]["tags"] == "python-1"
    again = load(folder)
    assert again.backbone.name == backbone.name and again.backbone.max_length == backbone.max_length
    again.tags = Loops()
    assert_close(score(again), expected)


@pytest.mark.parametrize("kind", KINDS)
def test_a_folder_meets_the_rules_of_text_embeddings_inference(folders, kind, tmp_path):
    folder = load(folders[kind]).save_pretrained(tmp_path / "saved")
    config = json.loads((folder / "config.json").read_text())
    (architecture,) = config["architectures"]
    assert architecture.endswith("Classification") and architecture.startswith(("Bert", "XLM", "Qwen3", "Llama"))
    assert len(config["id2label"]) == 1
    assert config["label2id"] == {label: int(number) for number, label in config["id2label"].items()}
    assert "auto_map" not in config and isinstance(config["pad_token_id"], int)
    assert (folder / "tokenizer.json").is_file()
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    assert tokenizer["truncation"] is None and tokenizer["padding"] is None
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    assert settings.get("padding_side", "right") == ("left" if kind in ("qwen3", "llama") else "right")
    names = {file.name for file in folder.rglob("*") if file.is_file()}
    assert not any(name.endswith((".py", ".bin", ".pt")) for name in names)
    assert {"modules.json", "config_sentence_transformers.json", "sentence_bert_config.json", "README.md"} <= names
    for name in names - {"model.safetensors"}:
        text = (folder / name).read_text()
        assert str(tmp_path) not in text and str(folders[kind]) not in text


def test_what_other_tools_did_to_the_tokenizer_is_not_saved(folders, tmp_path):
    reranker = load(folders["bert"])
    expected = score(reranker)
    reranker.backbone.tokenizer("text", padding="max_length", truncation=True, max_length=8)
    folder = reranker.save_pretrained(tmp_path / "saved")
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    assert tokenizer["truncation"] is None and tokenizer["padding"] is None
    np.testing.assert_array_equal(score(load(folder)), expected)


def test_saved_and_loaded_and_saved_again_is_the_same(folders, tmp_path):
    first = load(folders["qwen3"]).save_pretrained(tmp_path / "first")
    second = load(first).save_pretrained(tmp_path / "second")
    for name in sorted(file.name for file in first.iterdir()):
        texts = [(folder / name).read_bytes() for folder in (first, second)]
        if name == "README.md":
            texts = [text.replace(b"qwen3", b"").replace(b"first", b"") for text in texts]
        assert texts[0] == texts[1], name


def test_an_earlier_reranker_is_replaced_and_nothing_else(folders, tmp_path):
    reranker = load(folders["bert"])
    place = tmp_path / "deep" / "saved"
    assert reranker.save_pretrained(place) == place
    (place / "model-00001-of-00002.safetensors").touch()
    reranker.save_pretrained(str(place))
    assert not (place / "model-00001-of-00002.safetensors").exists()
    assert [entry.name for entry in place.parent.iterdir()] == ["saved"]
    (place / "notes.txt").write_text("mine")
    with pytest.raises(UsageError, match="holds 'notes.txt'"):
        reranker.save_pretrained(place)
    assert (place / "notes.txt").read_text() == "mine"
    foreign = save_tiny_encoder(tmp_path / "foreign")
    with pytest.raises(UsageError, match="model of another kind"):
        reranker.save_pretrained(foreign)
    with pytest.raises(UsageError, match="is a file"):
        reranker.save_pretrained(foreign / "config.json")
    with pytest.raises(QualcodeError, match="no reranker can be saved to"):
        reranker.save_pretrained(foreign / "config.json" / "below")
    (tmp_path / "empty").mkdir()
    reranker.save_pretrained(tmp_path / "empty")
    assert load(tmp_path / "empty").backbone.name == "encoder"


def test_a_failure_leaves_what_was_there(folders, tmp_path, monkeypatch):
    reranker = load(folders["bert"])
    place = reranker.save_pretrained(tmp_path / "saved")
    before = (place / "model.safetensors").read_bytes()

    class Failing(Doubling):
        def save(self, folder):
            raise OSError(28, "No space left on device")

    reranker.fusion = Failing()
    with pytest.raises(QualcodeError, match="No space left on device"):
        reranker.save_pretrained(place)
    assert (place / "model.safetensors").read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["saved"]


def test_what_a_killed_process_left_is_removed_and_nothing_else(folders, tmp_path):
    reranker = Reranker(load_backbone(folders["bert"], device="cpu"))
    dead, mine = tmp_path / ".saved.saving-0123abcd", tmp_path / ".saved.saving-of_mine_"
    alive = tmp_path / ".saved.saving-4567cdef"
    for place, name in ((dead, "new"), (mine, "thesis"), (alive, "new")):
        (place / name).mkdir(parents=True)
    lock = os.open(alive, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)  # as a process that is amid saving does
        reranker.save_pretrained(tmp_path / "saved")
        assert sorted(place.name for place in tmp_path.iterdir()) == [alive.name, mine.name, "saved"]
    finally:
        os.close(lock)
    reranker.save_pretrained(tmp_path / "saved")
    assert sorted(place.name for place in tmp_path.iterdir()) == [mine.name, "saved"]


def test_a_folder_under_the_name_of_a_file_is_not_replaced(folders, tmp_path):
    reranker = Reranker(load_backbone(folders["bert"], device="cpu"))
    saved = reranker.save_pretrained(tmp_path / "saved")
    (saved / "vocab.txt").mkdir()
    (saved / "vocab.txt" / "precious").write_text("mine")
    with pytest.raises(UsageError, match="no part of a reranker"):
        reranker.save_pretrained(saved)
    assert (saved / "vocab.txt" / "precious").read_text() == "mine"


def test_a_pipe_in_the_place_is_not_waited_at(folders, tmp_path):
    reranker = Reranker(load_backbone(folders["bert"], device="cpu"))
    saved = reranker.save_pretrained(tmp_path / "saved")
    (saved / "config.json").unlink()
    os.mkfifo(saved / "config.json")
    with pytest.raises(UsageError, match="no part of a reranker"):
        reranker.save_pretrained(saved)


@pytest.mark.parametrize("place", [None, 5, b"x", "\0", "~nobody-of-this-name/x", "x" * 5000, "\ud800", "loop"])
def test_what_is_no_place_is_one_line(folders, tmp_path, place, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(QualcodeError) as error:
        Reranker(load_backbone(folders["bert"], device="cpu")).save_pretrained(place)
    assert "\n" not in str(error.value)


def test_a_disk_that_is_full_at_the_tokenizer_is_one_line(folders, tmp_path):
    tokenizer = byte_pairs(vocab_size=3000)
    for number in range(4000):
        tokenizer.add_tokens(f"token-{number}-{'x' * 60}")
    folder = save_tiny_decoder(tmp_path / "tiny", tokenizer=tokenizer, classifier=True, hidden_size=8, head_dim=2)
    reranker = Reranker(load_backbone(folder, device="cpu"))
    sizes = [(folder / name).stat().st_size for name in ("model.safetensors", "tokenizer.json")]
    assert sizes[0] < sizes[1]
    process = os.fork()
    if not process:  # the limit cannot be taken back
        code = 1
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (sum(sizes) // 2,) * 2)
            with pytest.raises(QualcodeError, match="can be saved .*File too large"):
                reranker.save_pretrained(tmp_path / "saved")
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(process, 0)[1] == 0
    assert [place.name for place in tmp_path.iterdir()] == ["tiny"]


def test_a_card_that_is_no_text_of_utf8_is_one_line(folders, tmp_path):
    with pytest.raises(QualcodeError, match="surrogates not allowed"):
        Reranker(load_backbone(folders["bert"], device="cpu")).save_pretrained(tmp_path / "saved", card="\ud800")
    assert not list(tmp_path.iterdir())


def test_modes_are_those_of_any_new_file(folders, tmp_path):
    (tmp_path / "like").mkdir()
    place = load(folders["bert"]).save_pretrained(tmp_path / "saved")
    assert place.stat().st_mode == (tmp_path / "like").stat().st_mode


def test_fusion_is_saved_beside_the_model_and_can_be_left_out(folders, tmp_path):
    reranker = Reranker(load_backbone(folders["bert"], device="cpu", precision="float32"), fusion=Doubling())
    folder = reranker.save_pretrained(tmp_path / "saved")
    assert json.loads((folder / "config.json").read_text())["hf_qualcode"]["fusion"] == {"kind": "doubling"}
    assert (folder / "fusion_words.json").is_file()
    logits = score(load(folder, fusion=False))
    np.testing.assert_allclose(score(reranker), 2 * logits, atol=1e-5)
    reranker.fusion = None
    reranker.save_pretrained(folder)
    assert not (folder / "fusion_words.json").exists()


def test_the_fusion_of_static_features_and_text_vectors_survives(folders, tiny_bert, tmp_path):
    from hf_qualcode.encoders.transformer import load_transformer
    from hf_qualcode.quality import dimension_names
    from hf_qualcode.quality.function_features import FUNCTION_FEATURE_NAMES
    from hf_qualcode.quality.static_features import FEATURE_NAMES
    from hf_qualcode.rerank.fusion import Fusion, FusionWeights
    from hf_qualcode.rerank.relevance import RelevanceMap, TextVectors

    draw = np.random.default_rng(0)
    qualities = len(dimension_names())
    weights = FusionWeights(0.5, 0.3, 1.0, 0.2, 0.1, 0.4, tuple(draw.normal(size=qualities)))
    left, right = draw.normal(size=(2, 33, 3)).astype(np.float32)
    relevance = RelevanceMap(2.0, -1.0, draw.normal(size=32).astype(np.float32), left, right)
    static = draw.normal(size=(qualities, len(FEATURE_NAMES)))
    vectors = TextVectors(load_transformer(tiny_bert, id="tiny").encode)
    functions = draw.normal(size=(qualities, len(FUNCTION_FEATURE_NAMES)))
    fusion = Fusion(weights, static, functions, relevance, {"json": 2}, 3, vectors=vectors)

    def load_again():
        again = load(folder)
        again.fusion._vectors = vectors  # not those of MiniLM, which is not needed here
        return again

    backbone = load_backbone(folders["bert"], device="cpu", precision="float32")
    reranker = Reranker(backbone, with_tags, fusion)
    folder = reranker.save_pretrained(tmp_path / "saved")
    again = load_again()
    np.testing.assert_allclose(score(again), score(reranker), atol=1e-4)
    assert again.tags is with_tags
    explained = again.explain(QUERIES[0], CODES[0], quality="speed")
    assert sum(part.value for part in explained.parts) == pytest.approx(explained.score, abs=1e-4)
    assert explained.tags.startswith("imports: ") and "\n" not in explained.tags
    again.save_pretrained(folder)
    np.testing.assert_allclose(score(load_again()), score(reranker), atol=1e-4)
    (folder / "fusion.safetensors").unlink()
    with pytest.raises(QualcodeError, match="fusion of .* cannot be read") as caught:
        load(folder)
    assert "\n" not in str(caught.value)
    assert np.isfinite(score(load(folder, fusion=False))).all()


def test_tags_without_a_name_cannot_be_saved(folders, tmp_path):
    reranker = Reranker(load_backbone(folders["bert"], device="cpu"), tags=lambda code: code)
    with pytest.raises(UsageError, match="no name"):
        reranker.save_pretrained(tmp_path / "saved")
    assert list(tmp_path.iterdir()) == []


def make_adapter(source, *, kind, alpha_pattern=None, use_rslora=False, modules_to_save=None):
    """A reranker with a LoRA adapter in which nothing is zero."""
    import torch
    from peft import LoraConfig, get_peft_model

    backbone = load_backbone(source, device="cpu", precision="float32", training=True)
    targets = ["query", "value"] if kind in KINDS[:2] else ["q_proj", "down_proj"]
    config = LoraConfig(
        task_type="SEQ_CLS", r=3, lora_alpha=7, target_modules=targets, alpha_pattern=alpha_pattern or {},
        rank_pattern={targets[1]: 2}, use_rslora=use_rslora, modules_to_save=modules_to_save,
    )  # fmt: skip
    backbone.model = get_peft_model(backbone.model, config).eval()
    torch.manual_seed(5)
    with torch.no_grad():
        for name, parameter in backbone.model.named_parameters():
            if parameter.requires_grad:
                parameter.add_(torch.randn_like(parameter) * (0.2 if "lora" in name else 0.5))
    return Reranker(backbone)


@pytest.mark.parametrize(("kind", "use_rslora"), [("bert", False), ("bert", True), ("qwen3", False)])
def test_an_adapter_is_saved_small_and_merged_when_loaded(folders, kind, use_rslora, tmp_path):
    patterns = {"layer.0.attention.self.value": 3} if kind == "bert" else {"down_proj": 3}
    reranker = make_adapter(folders[kind], kind=kind, use_rslora=use_rslora, alpha_pattern=patterns)
    expected, untrained = score(reranker), load(folders[kind])
    folder = reranker.save_pretrained(tmp_path / "adapter", base="org/name")
    names = {file.name for file in folder.iterdir()}
    assert names == {"adapter_config.json", WEIGHTS_FILE, "reranker_config.json", "README.md"}
    config = json.loads((folder / "adapter_config.json").read_text())
    assert config["base_model_name_or_path"] == "org/name" and config["task_type"] == "SEQ_CLS"
    assert json.loads((folder / "reranker_config.json").read_text())["base"] == "org/name"
    loaded = load(folder, base=str(folders[kind]))
    # A merged matrix is rounded once more than its parts.
    np.testing.assert_allclose(score(loaded), expected, atol=2e-4)
    assert not loaded.backbone.model.training and loaded.backbone.name == reranker.backbone.name
    assert np.abs(score(untrained) - expected).max() > 0.01

    whole = reranker.save_pretrained(tmp_path / "whole", merge=True)
    np.testing.assert_allclose(score(load(whole)), expected, atol=2e-4)
    again = loaded.save_pretrained(tmp_path / "again")
    np.testing.assert_allclose(score(load(again)), score(loaded), atol=1e-5)
    np.testing.assert_allclose(score(reranker), expected, atol=1e-6)  # merging left it alone


def test_an_adapter_without_its_wrapper_is_not_saved_as_a_model(folders, tmp_path):
    reranker = make_adapter(folders["bert"], kind="bert")
    reranker.backbone.model = reranker.backbone.model.get_base_model()
    with pytest.raises(UsageError, match="what get_peft_model gave"):
        reranker.save_pretrained(tmp_path / "saved")
    assert list(tmp_path.iterdir()) == []


def test_an_adapter_is_what_peft_reads(folders, tmp_path):
    import torch
    from peft import PeftModel
    from transformers import AutoModelForSequenceClassification

    reranker = make_adapter(folders["bert"], kind="bert")
    folder = reranker.save_pretrained(tmp_path / "adapter", base="org/name")
    base = AutoModelForSequenceClassification.from_pretrained(folders["bert"], num_labels=1)
    model = PeftModel.from_pretrained(base, str(folder)).eval()
    encoded = reranker.backbone.encode([INSTRUCTION] * 6, QUERIES, CODES).inputs
    with torch.inference_mode():
        logits = model(**reranker.backbone.collate(encoded)).logits[:, 0]
    np.testing.assert_allclose(logits.numpy(), score(reranker), atol=1e-5)


def test_an_adapter_names_its_base(folders, tmp_path, caplog):
    reranker = make_adapter(folders["bert"], kind="bert")
    place = reranker.save_pretrained(tmp_path / "here")
    assert "by a folder of this machine" in caplog.text
    np.testing.assert_allclose(score(load(place)), score(reranker), atol=2e-4)
    folder = reranker.save_pretrained(tmp_path / "adapter", base="minilm")
    config = json.loads((folder / "adapter_config.json").read_text())
    assert config["base_model_name_or_path"] == "sentence-transformers/all-MiniLM-L6-v2"
    assert json.loads((folder / "reranker_config.json").read_text())["base"] == "minilm"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"task_type": "CAUSAL_LM"}, "for task 'CAUSAL_LM'"),
        ({"peft_type": "IA3"}, "of type 'IA3'"),
        ({"peft_type": None}, "of type 'None'"),
        ({"use_dora": True}, "use_dora"),
        ({"init_lora_weights": "pissa"}, "init_lora_weights"),
        ({"init_lora_weights": {}}, "init_lora_weights"),
        ({"layer_replication": [[0, 9]]}, "layer_replication"),
        ({"lora_alpha": "16"}, "no number"),
        ({"lora_alpha": float("nan")}, "no number"),
        ({"alpha_pattern": {"(a+)+$": 1}}, "patterns"),
        ({"alpha_pattern": [1]}, "no number"),
        ({"base_model_name_or_path": 3}, "names no base"),
    ],
)
def test_adapters_of_another_kind_are_refused(folders, tmp_path, change, said):
    folder = make_adapter(folders["bert"], kind="bert").save_pretrained(tmp_path / "adapter", base="org/name")
    config = json.loads((folder / "adapter_config.json").read_text())
    (folder / "adapter_config.json").write_text(json.dumps(config | change))
    with pytest.raises(QualcodeError, match=said) as caught:
        load(folder, base=str(folders["bert"]))
    assert "\n" not in str(caught.value)


def test_damaged_adapters_are_one_line(folders, tmp_path):
    import torch
    from safetensors.torch import load_file, save_file

    good = make_adapter(folders["bert"], kind="bert").save_pretrained(tmp_path / "good", base="org/name")
    tensors = load_file(good / WEIGHTS_FILE)
    low_rank = next(name for name in tensors if name.endswith("query.lora_A.weight"))
    head = next(name for name in tensors if name.endswith("classifier.weight"))
    cases = {
        "one side": ({name: tensor for name, tensor in tensors.items() if name != low_rank}, "no two matrices"),
        "no rank": (tensors | {low_rank: tensors[low_rank][:0]}, "no two matrices"),
        "other rank": (tensors | {low_rank: tensors[low_rank][:1]}, "no two matrices"),
        "vector": (tensors | {low_rank: tensors[low_rank][0]}, "no two matrices"),
        "too wide": (tensors | {low_rank: tensors[low_rank].repeat(1, 2)}, "of shape"),
        "head": (tensors | {head: tensors[head].T.contiguous()}, "of shape"),
        "absent module": (tensors | {"base_model.model.bert.nowhere.weight": torch.ones(1)}, "does not have"),
        "strange": (tensors | {"model.weight": torch.ones(1)}, "none of a LoRA adapter"),
        "integers": (tensors | {head: tensors[head].int()}, "none of a LoRA adapter"),
        "embedding": (tensors | {"base_model.model.x.lora_embedding_A": torch.ones(1, 1)}, "none of a LoRA adapter"),
    }
    for number, (content, said) in enumerate(cases.values()):
        folder = shutil.copytree(good, tmp_path / str(number))
        save_file(content, folder / WEIGHTS_FILE, {"format": "pt"})
        with pytest.raises(QualcodeError, match=said) as caught:
            load(folder, base=str(folders["bert"]))
        assert "\n" not in str(caught.value)
    broken = shutil.copytree(good, tmp_path / "broken")
    (broken / WEIGHTS_FILE).write_bytes(b"\xff" * 100)
    with pytest.raises(QualcodeError, match="cannot be read"):
        load(broken, base=str(folders["bert"]))
    (broken / WEIGHTS_FILE).unlink()
    torch.save({}, broken / "adapter_model.bin")
    with pytest.raises(QualcodeError, match="safetensors"):
        load(broken, base=str(folders["bert"]))


def test_an_adapters_base_must_be_there(folders, tmp_path):
    folder = make_adapter(folders["bert"], kind="bert").save_pretrained(tmp_path / "adapter", base="org/absent")
    with pytest.raises(QualcodeError, match="base model of adapter .*'org/absent'"):
        load(folder)
    with pytest.raises(QualcodeError, match="another adapter"):
        load(folder, base=str(folder))
    settings = json.loads((folder / "reranker_config.json").read_text())
    (folder / "reranker_config.json").write_text(json.dumps(settings | {"base": None}))
    config = json.loads((folder / "adapter_config.json").read_text())
    (folder / "adapter_config.json").write_text(json.dumps(config | {"base_model_name_or_path": None}))
    with pytest.raises(QualcodeError, match="does not say which model"):
        load(folder)
    (folder / "reranker_config.json").write_text("[" * 100_000)
    with pytest.raises(QualcodeError, match="cannot be read as JSON") as caught:
        load(folder, base=str(folders["bert"]))
    assert "\n" not in str(caught.value)


def test_an_adapter_without_a_head_on_a_base_without_one_is_refused(tiny_bert, folders, tmp_path):
    from safetensors.torch import load_file, save_file

    folder = make_adapter(tiny_bert, kind="bert").save_pretrained(tmp_path / "adapter", base="org/name")
    expected = score(load(folder, base=str(tiny_bert)))
    np.testing.assert_array_equal(score(load(folder, base=str(tiny_bert))), expected)
    tensors = load_file(folder / WEIGHTS_FILE)
    save_file({name: tensor for name, tensor in tensors.items() if "lora" in name}, folder / WEIGHTS_FILE)
    advice = r"train it with modules_to_save=\['bert.pooler', 'classifier'\], as RerankTrainer does"
    with pytest.raises(QualcodeError, match=f"lacks classifier.weight, so its scores would be random; {advice}"):
        load(folder, base=str(tiny_bert))
    assert np.isfinite(score(load(folder, base=str(folders["bert"])))).all()  # this base has a head of its own


def test_an_adapter_is_read_as_it_was_trained(folders, tmp_path):
    reranker = make_adapter(folders["bert"], kind="bert")
    reranker.backbone.code_share = 0.5
    folder = reranker.save_pretrained(tmp_path / "adapter", base="org/name")
    assert load(folder, base=str(folders["bert"])).backbone.code_share == 0.5
    whole = reranker.save_pretrained(tmp_path / "whole", merge=True)
    assert load(whole).backbone.code_share == 0.5


def test_adapters_that_peft_saved_alone_are_read(folders, tmp_path):
    reranker = make_adapter(folders["bert"], kind="bert")
    reranker.backbone.model.save_pretrained(tmp_path / "peft", save_embedding_layers=False)
    config = json.loads((tmp_path / "peft" / "adapter_config.json").read_text())
    config["base_model_name_or_path"] = str(folders["bert"])
    (tmp_path / "peft" / "adapter_config.json").write_text(json.dumps(config))
    np.testing.assert_allclose(score(load(tmp_path / "peft")), score(reranker), atol=2e-4)


def test_push_uploads_what_save_pretrained_writes(folders, tmp_path, monkeypatch):
    calls = []

    class Api:
        """The border to the network: what huggingface_hub would send."""

        def create_repo(self, repo_id, *, private, exist_ok):
            calls.append(("create", repo_id, private))

        def create_branch(self, repo_id, *, branch, exist_ok):
            calls.append(("branch", branch))

        def upload_folder(self, *, repo_id, folder_path, revision, commit_message, delete_patterns):
            shutil.copytree(folder_path, tmp_path / "uploaded")
            calls.append(("upload", repo_id, revision, commit_message))
            return type("Commit", (), {"commit_url": f"https://example.org/{repo_id}/commit/1"})

    monkeypatch.setattr("huggingface_hub.HfApi", Api)
    reranker = load(folders["bert"])
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(QualcodeError, match="HF_HUB_OFFLINE"):
        reranker.push_to_hub("org/name")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr("huggingface_hub.get_token", lambda: None)
    with pytest.raises(QualcodeError, match="hf auth login"):
        reranker.push_to_hub("org/name")
    monkeypatch.setattr("huggingface_hub.get_token", lambda: "hf_x")
    for wrong in ("name", "a/b/c", "org/na me"):
        with pytest.raises(UsageError):
            reranker.push_to_hub(wrong)
    with pytest.raises(UsageError, match="which nobody else has"):
        make_adapter(folders["bert"], kind="bert").push_to_hub("org/name", base=str(folders["bert"]))
    assert calls == []
    assert reranker.push_to_hub("org/name", private=True, revision="v2") == "https://example.org/org/name/commit/1"
    assert [call[0] for call in calls] == ["create", "branch", "upload"]
    assert calls[0] == ("create", "org/name", True) and calls[2][:3] == ("upload", "org/name", "v2")
    np.testing.assert_allclose(score(load(tmp_path / "uploaded")), score(reranker), atol=1e-6)

    def refuse(self, *arguments, **options):
        raise OSError("403 Forbidden\nwrite access")

    monkeypatch.setattr(Api, "create_repo", refuse)
    with pytest.raises(QualcodeError, match="was not pushed to org/name .*403 Forbidden write access") as caught:
        reranker.push_to_hub("org/name")
    assert "\n" not in str(caught.value)
