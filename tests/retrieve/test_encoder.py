"""Transformer encoders give what sentence-transformers gives, in any batch, and refuse what they cannot trust."""

import json
import shutil
import subprocess
import sys

import numpy as np
import pytest
import torch

from hf_qualcode.encoders.backbones import TransformersBackbone, packed_bert
from hf_qualcode.encoders.recipe import POOLING_MODES, EncoderRecipe
from hf_qualcode.encoders.transformer import (
    SentenceTransformerEncoder,
    TransformerEncoder,
    choose_dtype,
    token_batches,
)
from hf_qualcode.packed_bert import PackedBert
from hf_qualcode.retrieve.encoder import encoder_fingerprint, is_present, load_encoder
from hf_qualcode.types import QualcodeError, UsageError


CODES = [
    "def read_json(path):\n    with open(path) as file:\n        return json.load(file)",
    "def write_json(path, value):\n    path.write_text(json.dumps(value))",
    "class Queue:\n    def put(self, item):\n        self.items.append(item)",
    "def biggest(numbers):\n    return sorted(numbers)[-1]",
]
TEXTS = [*CODES, "open a file", "", "x", "json " * 200, "sort", "ünïcödé λ 中文"]


def reference(folder, texts, **options):
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(folder), device="cpu")
    return model.encode(texts, normalize_embeddings=True, show_progress_bar=False, **options)


def changed(source, target, file, **values):
    """A copy of a model folder with values of one JSON file replaced."""
    shutil.copytree(source, target)
    content = json.loads((target / file).read_text())
    (target / file).write_text(json.dumps(content | values))
    return target


@pytest.mark.parametrize("pooling", [*POOLING_MODES, ["cls", "mean"]], ids=str)
def test_equals_sentence_transformers_for_each_pooling(tmp_path, tiny_bert, pooling, make_sentence_transformer):
    folder = make_sentence_transformer(tmp_path / "model", tiny_bert, pooling=pooling)
    encoder = load_encoder(str(folder), device="cpu", precision="float32")
    assert isinstance(encoder.backbone, PackedBert)
    np.testing.assert_allclose(encoder.encode(TEXTS), reference(folder, TEXTS), atol=1e-5)


def test_plain_folder_is_mean_pooled(tiny_bert):
    encoder = load_encoder(str(tiny_bert), device="cpu", precision="float32")
    assert encoder.recipe.max_length == 64
    np.testing.assert_allclose(encoder.encode(TEXTS), reference(tiny_bert, TEXTS), atol=1e-5)


def test_old_pooling_keys_are_read(tmp_path, tiny_sentence_transformer):
    old = {f"pooling_mode_{name}": name == "cls_token" for name in ("cls_token", "mean_tokens", "max_tokens")}
    folder = shutil.copytree(tiny_sentence_transformer, tmp_path / "model")
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"word_embedding_dimension": 32, **old}))
    assert EncoderRecipe.read(folder).pooling == ("cls",)


@pytest.mark.parametrize("model_type", ["bert", "roberta"])
def test_packed_equals_transformers(tmp_path, model_type, make_tiny_bert):
    recipe = EncoderRecipe.read(make_tiny_bert(tmp_path, model_type=model_type))
    generator = torch.Generator().manual_seed(0)
    batch = [torch.randint(5, 100, (length,), generator=generator).tolist() for length in (9, 7, 7, 7, 3, 1)]
    with torch.inference_mode():
        packed = list(packed_bert(recipe, torch.float32)(batch))
        padded = list(TransformersBackbone(recipe, torch.float32, torch.device("cpu"))(batch))
    assert [span for span, _ in packed] == [span for span, _ in padded]
    for (_, ours), (_, theirs) in zip(packed, padded, strict=True):
        torch.testing.assert_close(ours, theirs, atol=2e-5, rtol=1e-4)


def test_other_architectures_run_padded(tmp_path, tiny_bert):
    from transformers import DistilBertConfig, DistilBertModel

    folder = shutil.copytree(tiny_bert, tmp_path / "model")
    torch.manual_seed(0)
    config = DistilBertConfig(
        vocab_size=300, dim=32, n_layers=2, n_heads=4, hidden_dim=64, max_position_embeddings=64, initializer_range=0.5
    )
    DistilBertModel(config).save_pretrained(folder)
    encoder = load_encoder(str(folder), device="cpu", precision="float32")
    assert isinstance(encoder.backbone, TransformersBackbone)
    np.testing.assert_allclose(encoder.encode(TEXTS), reference(folder, TEXTS), atol=1e-5)


def test_a_vector_depends_on_its_text_alone(tiny_sentence_transformer):
    encoder = load_encoder(str(tiny_sentence_transformer), device="cpu", precision="float32")
    texts = [f"{text} {number}" for number in range(30) for text in TEXTS]
    together = encoder.encode(texts)
    order = np.random.default_rng(0).permutation(len(texts))
    np.testing.assert_allclose(encoder.encode([texts[row] for row in order]), together[order], atol=1e-5)
    for row in order[:20]:
        np.testing.assert_allclose(encoder.encode([texts[row]])[0], together[row], atol=1e-5)


def test_equal_texts_are_encoded_once(tiny_sentence_transformer, monkeypatch):
    encoder = load_encoder(str(tiny_sentence_transformer), device="cpu", precision="float32")
    ran, run = [], encoder._run
    monkeypatch.setattr(encoder, "_run", lambda batch: ran.extend(batch) or run(batch))
    vectors = encoder.encode(["a", "b", "a", "a"])
    assert len(ran) == 2
    np.testing.assert_array_equal(vectors[[0, 0, 0]], vectors[[0, 2, 3]])


def test_windows_join(tiny_sentence_transformer, monkeypatch):
    encoder = load_encoder(str(tiny_sentence_transformer), device="cpu", precision="float32")
    texts = [f"text {number}" for number in range(50)]
    whole = encoder.encode(texts)
    monkeypatch.setattr("hf_qualcode.encoders.transformer._TEXTS_A_WINDOW", 7)
    seen = []
    np.testing.assert_allclose(encoder.encode(texts, progress=lambda *step: seen.append(step)), whole, atol=1e-5)
    assert seen[-1] == (50, 50) and [done for done, _ in seen] == sorted({done for done, _ in seen})


def test_hostile_texts(tiny_sentence_transformer):
    encoder = load_encoder(str(tiny_sentence_transformer), device="cpu", precision="float32")
    texts = ["", " \n\t", "\x00", "lone \ud800 surrogate", "lone \ufffd surrogate", "word " * 200_000, "x" * 10**6]
    vectors = encoder.encode(texts)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    np.testing.assert_array_equal(vectors[3], vectors[4])
    assert encoder.encode([]).shape == (0, 32)


def test_start_of_a_long_text_gives_its_tokens(tiny_sentence_transformer):
    tokenizer = load_encoder(str(tiny_sentence_transformer), device="cpu").tokenizer
    texts = ["json " * 5000, " " * 5000 + "open a file", "=" * 3000 + " x", "a" * 700 + " b" * 700]
    expected = tokenizer._encode(texts)
    assert tokenizer(texts) == expected


def test_prompts(tmp_path, tiny_bert, make_sentence_transformer):
    prompts = {"query": "read: ", "document": "json "}
    folder = make_sentence_transformer(tmp_path / "model", tiny_bert, prompts=prompts)
    encoder = load_encoder(str(folder), device="cpu", precision="float32")
    queries = encoder.encode(TEXTS, is_query=True)
    np.testing.assert_allclose(queries, reference(folder, TEXTS, prompt="read: "), atol=1e-5)
    np.testing.assert_allclose(encoder.encode(TEXTS), reference(folder, TEXTS, prompt="json "), atol=1e-5)


def test_bfloat16_is_close(tiny_sentence_transformer):
    exact = load_encoder(str(tiny_sentence_transformer), device="cpu", precision="float32")
    coarse = load_encoder(str(tiny_sentence_transformer), device="cpu", precision="bfloat16")
    assert coarse.dtype == torch.bfloat16 and coarse.fingerprint == exact.fingerprint
    vectors = coarse.encode(TEXTS)
    assert vectors.dtype == np.float32
    assert (vectors * exact.encode(TEXTS)).sum(axis=1).min() > 0.99


def test_precision_follows_the_hardware(monkeypatch):
    cpu = torch.device("cpu")
    monkeypatch.setattr("torch.cpu._is_amx_tile_supported", lambda: False)
    monkeypatch.setattr("torch.cpu._is_avx512_bf16_supported", lambda: False)
    assert choose_dtype("auto", cpu) == torch.float32
    assert choose_dtype("bfloat16", cpu) == torch.bfloat16
    monkeypatch.setattr("torch.cpu._is_amx_tile_supported", lambda: True)
    assert choose_dtype("auto", cpu) == torch.bfloat16
    assert choose_dtype("float32", cpu) == torch.float32
    with pytest.raises(UsageError, match="float16"):
        load_encoder("minilm", precision="float16")


def test_fingerprint_covers_what_shapes_a_vector(
    tmp_path, tiny_bert, tiny_sentence_transformer, make_sentence_transformer, make_tiny_bert
):
    base = EncoderRecipe.read(tiny_sentence_transformer).fingerprint()
    assert EncoderRecipe.read(shutil.copytree(tiny_sentence_transformer, tmp_path / "copy")).fingerprint() == base
    other_weights = make_tiny_bert(tmp_path / "weights", seed=1)
    variants = [
        make_sentence_transformer(tmp_path / "weights_", other_weights),
        make_sentence_transformer(tmp_path / "pooling", tiny_bert, pooling="cls"),
        make_sentence_transformer(tmp_path / "prompt", tiny_bert, prompts={"query": "q: "}),
        make_sentence_transformer(tmp_path / "length", tiny_bert, max_length=32),
        changed(tiny_sentence_transformer, tmp_path / "config", "config.json", layer_norm_eps=1e-3),
        changed(tiny_sentence_transformer, tmp_path / "tokenizer", "tokenizer.json", normalizer=None),
    ]
    fingerprints = [EncoderRecipe.read(folder).fingerprint() for folder in variants]
    assert len({base, *fingerprints}) == 1 + len(variants)


def _with_tensors(source, target, change):
    from safetensors.torch import load_file, save_file

    shutil.copytree(source, target)
    tensors = load_file(target / "model.safetensors")
    change(tensors)
    save_file(tensors, target / "model.safetensors", metadata={"format": "pt"})
    return str(target)


def test_checkpoint_with_missing_weights_is_refused(tmp_path, tiny_bert):
    lost = "encoder.layer.1.output.dense.weight"
    folder = _with_tensors(tiny_bert, tmp_path / "packed", lambda tensors: tensors.pop(lost))
    with pytest.raises(QualcodeError, match=lost):
        load_encoder(folder, device="cpu")
    with pytest.raises(QualcodeError, match=lost):
        TransformersBackbone(EncoderRecipe.read(tmp_path / "packed"), torch.float32, torch.device("cpu"))


def test_checkpoint_without_its_pooler_is_fine(tmp_path, tiny_bert):
    def drop(tensors):
        for name in [name for name in tensors if name.startswith("pooler")]:
            del tensors[name]

    encoder = load_encoder(_with_tensors(tiny_bert, tmp_path / "model", drop), device="cpu", precision="float32")
    whole = load_encoder(str(tiny_bert), device="cpu", precision="float32")
    np.testing.assert_array_equal(encoder.encode(TEXTS), whole.encode(TEXTS))


def test_wrong_shape_and_damage_are_refused(tmp_path, tiny_bert):
    with pytest.raises(QualcodeError, match="shape"):
        load_encoder(str(changed(tiny_bert, tmp_path / "a", "config.json", intermediate_size=65)), device="cpu")
    for file in ("tokenizer.json", "model.safetensors", "config.json"):
        folder = shutil.copytree(tiny_bert, tmp_path / file)
        (folder / file).write_bytes(b"damaged")
        with pytest.raises(QualcodeError, match="damaged|cannot be read") as caught:
            load_encoder(str(folder), device="cpu")
        assert "\n" not in str(caught.value)


def test_nan_is_an_error(tmp_path, tiny_bert):
    def poison(tensors):
        tensors["encoder.layer.0.output.dense.bias"][0] = float("nan")

    encoder = load_encoder(_with_tensors(tiny_bert, tmp_path / "model", poison), device="cpu")
    with pytest.raises(QualcodeError, match="NaN"):
        encoder.encode(["text"])


def test_own_code_is_refused(tmp_path, tiny_bert, tiny_sentence_transformer):
    own = {"auto_map": {"AutoModel": "modeling.Own"}, "model_type": "own"}
    with pytest.raises(QualcodeError, match="code of its own"):
        load_encoder(str(changed(tiny_bert, tmp_path / "a", "config.json", **own)))
    folder = shutil.copytree(tiny_sentence_transformer, tmp_path / "b")
    modules = json.loads((folder / "modules.json").read_text())
    (folder / "modules.json").write_text(json.dumps([*modules, {"type": "own.Module", "path": "3_Own"}]))
    with pytest.raises(QualcodeError, match="code of its own"):
        load_encoder(str(folder))


OWN_CODE = """
from pathlib import Path
Path(__file__).with_name("canary").touch()
from transformers import PreTrainedConfig as EvilConfig, PreTrainedTokenizerFast as EvilTokenizer
"""


def test_own_code_is_neither_run_nor_asked_about(tmp_path, tiny_bert, tiny_sentence_transformer):
    evil = {"model_type": "evil"}
    config = {"AutoConfig": "evil.EvilConfig"}
    tokenizer = {"auto_map": {"AutoTokenizer": ["evil.EvilTokenizer", "evil.EvilTokenizer"]}}
    lone = changed(tiny_bert, tmp_path / "lone", "config.json", auto_map=config, **evil)
    both = changed(tiny_bert, tmp_path / "both", "config.json", auto_map=config | {"AutoModel": "evil.Evil"}, **evil)
    other = changed(tiny_bert, tmp_path / "config", "config.json", **evil)
    words = changed(other, tmp_path / "words", "tokenizer_config.json", **tokenizer)
    # Types that transformers knows and `PackedBert` does not, so that `AutoModel` and `AutoTokenizer` are asked.
    known = changed(tiny_bert, tmp_path / "known", "config.json", model_type="electra", auto_map=config)
    custom = changed(known, tmp_path / "custom", "tokenizer_config.json", tokenizer_class="EvilTokenizer", **tokenizer)
    nested = shutil.copytree(tiny_sentence_transformer, tmp_path / "nested")
    shutil.copytree(lone, nested / "3_Evil")
    kinds = json.loads((nested / "modules.json").read_text())
    kinds.append({"type": "sentence_transformers.models.Transformer", "path": "3_Evil"})
    (nested / "modules.json").write_text(json.dumps(kinds))
    module = shutil.copytree(tiny_sentence_transformer, tmp_path / "module")
    (module / "modules.json").write_text(json.dumps([*kinds[:-1], {"type": "evil.EvilConfig", "path": ""}]))
    folders = [lone, both, words, known, custom, nested, module]
    for folder in folders:
        for place in {folder, folder / "3_Evil"}:
            if place.is_dir():
                (place / "evil.py").write_text(OWN_CODE)
    program = """
import sys
from hf_qualcode.retrieve.encoder import load_encoder
from hf_qualcode.types import QualcodeError
for folder in sys.argv[1:]:
    try:
        load_encoder(folder, device="cpu")
        print("loaded")
    except QualcodeError as error:
        print(error)
"""
    run = subprocess.run(
        [sys.executable, "-c", program, *map(str, folders)],
        input="y\n" * 50, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    said = run.stdout.splitlines()
    assert len(said) == len(folders), run.stdout + run.stderr
    assert "[y/N]" not in run.stdout + run.stderr
    assert list(tmp_path.rglob("canary")) == []
    for place in (0, 1, 2, 5, 6):
        assert "code of its own" in said[place], said[place]


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("config.json", [1], "expected an object"),
        ("config.json", {"model_type": "bert", "auto_map": "x"}, "'auto_map' is \"x\""),
        ("config.json", {"model_type": ["bert"]}, "expected a string"),
        ("config.json", {"model_type": "bert", "num_hidden_layers": 10**12}, "more than"),
        ("modules.json", {}, "expected a list"),
        ("modules.json", [{"path": ""}], "expected an object with a 'type'"),
        ("modules.json", [{"type": "sentence_transformers.models.Transformer", "path": "/etc"}], "out of the encoder"),
        ("modules.json", [{"type": "sentence_transformers.models.Pooling", "path": "a/../.."}], "out of the encoder"),
        ("1_Pooling/config.json", [], "expected an object"),
        ("1_Pooling/config.json", {"pooling_mode": []}, "asks for pooling null"),
        ("1_Pooling/config.json", {"pooling_mode": [{}]}, "asks for pooling {}"),
        ("sentence_bert_config.json", {"max_seq_length": "x"}, "expected a number"),
        ("sentence_bert_config.json", {"max_seq_length": 1}, "reads 1 tokens"),
        ("config_sentence_transformers.json", {"prompts": []}, "expected an object"),
        ("tokenizer.json", {}, "tokenizer of encoder"),
    ],
)
def test_an_odd_folder_is_one_clear_line(tmp_path, tiny_sentence_transformer, file, content, said):
    folder = shutil.copytree(tiny_sentence_transformer, tmp_path / "model")
    (folder / file).write_text(json.dumps(content))
    with pytest.raises(QualcodeError) as caught:
        load_encoder(str(folder), device="cpu")
    assert said in str(caught.value) and "\n" not in str(caught.value)


def test_an_absent_tokenizer_is_one_clear_line(tmp_path, tiny_bert):
    folder = shutil.copytree(tiny_bert, tmp_path / "model")
    for file in folder.glob("tokenizer*"):
        file.unlink()
    with pytest.raises(QualcodeError, match="tokenizer of encoder") as caught:
        load_encoder(str(folder), device="cpu")
    assert "\n" not in str(caught.value)


def test_auto_map_null_is_none(tmp_path, tiny_bert):
    folder = changed(tiny_bert, tmp_path / "model", "config.json", auto_map=None)
    assert load_encoder(str(folder), device="cpu").dimension == 32


def odd_folders(folder):
    """Changes `folder` in place: each JSON file in turn, each key in turn. Gives what is odd just then."""
    for file in sorted(folder.rglob("*.json")):
        sound = file.read_bytes()
        content = json.loads(sound)
        odd = {f"top {value}": value for value in (None, [], [1], "x", -1, 10**12, {})}
        entries = {"": content} if isinstance(content, dict) else dict(enumerate(content))
        for place, entry in entries.items():
            for key in entry:
                changes = [(value, entry | {key: value}) for value in (None, [], "x", -1, 10**12)]
                changes.append(("deleted", {name: value for name, value in entry.items() if name != key}))
                for what, new in changes:
                    whole = new if place == "" else [*content[:place], new, *content[place + 1 :]]
                    odd[f"{place} {key} {what}"] = whole
        for what, new in odd.items():
            file.write_text(json.dumps(new))
            yield f"{file.name}: {what}"
        file.write_bytes(sound)


@pytest.mark.parametrize(
    ("model_type", "step"),
    [("bert", 9), pytest.param("bert", 1, marks=pytest.mark.slow), pytest.param("roberta", 1, marks=pytest.mark.slow)],
)
def test_any_odd_folder_works_or_is_one_line(
    tmp_path, model_type, step, make_tiny_bert, make_sentence_transformer, subtests
):
    source = make_tiny_bert(tmp_path / "source", model_type=model_type)
    folder = make_sentence_transformer(tmp_path / "model", source)
    for number, what in enumerate(odd_folders(folder)):
        if number % step:
            continue
        with subtests.test(what):
            try:
                encoder = load_encoder(str(folder), device="cpu", precision="float32")
                encoder.encode(["text", "open a file " * 40, ""])
                assert encoder_fingerprint(str(folder)) == encoder.fingerprint
            except QualcodeError as error:
                assert "\n" not in str(error)


def test_weights_that_do_not_run_are_one_line(tmp_path, tiny_bert):
    odd = {"num_attention_heads": 5, "model_type": "distilbert"}
    for number, (key, value) in enumerate(odd.items()):
        folder = changed(tiny_bert, tmp_path / str(number), "config.json", **{key: value})
        with pytest.raises(QualcodeError) as caught:
            load_encoder(str(folder), device="cpu")
        assert "\n" not in str(caught.value)


def test_fingerprint_without_loading(tmp_path, tiny_bert, tiny_sentence_transformer):
    for folder in (tiny_bert, tiny_sentence_transformer):
        assert encoder_fingerprint(str(folder)) == load_encoder(str(folder), device="cpu").fingerprint
        assert is_present(str(folder))


def test_fingerprint_without_loading_packaged(minilm_folder):
    assert encoder_fingerprint("minilm") == load_encoder("minilm", device="cpu").fingerprint
    assert is_present("minilm") and is_present("static")


@pytest.mark.parametrize(
    "name", ["org/not-in-the-cache", "/no/such/folder", "no-such-name", "", "~no-user", "x" * 5000]
)
def test_an_absent_encoder_has_no_fingerprint(name):
    assert encoder_fingerprint(name) is None and not is_present(name)


def test_a_folder_that_is_gone_or_empty_has_no_fingerprint(tmp_path, tiny_bert):
    folder = shutil.copytree(tiny_bert, tmp_path / "model")
    assert is_present(str(folder))
    (folder / "model.safetensors").unlink()
    assert encoder_fingerprint(str(folder)) is None and not is_present(str(folder))
    shutil.rmtree(folder)
    assert encoder_fingerprint(str(folder)) is None and not is_present(str(folder))


def test_a_damaged_encoder_is_present_but_has_no_fingerprint(tmp_path, tiny_bert):
    folder = shutil.copytree(tiny_bert, tmp_path / "model")
    (folder / "config.json").write_text("damaged")
    assert is_present(str(folder))
    with pytest.raises(QualcodeError, match="cannot be read"):
        encoder_fingerprint(str(folder))


def test_fingerprint_of_a_cached_hub_model(monkeypatch, tmp_path, tiny_bert):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    entry = tmp_path / "models--org--encoder"
    shutil.copytree(tiny_bert, entry / "snapshots" / ("0" * 40))
    (entry / "refs").mkdir()
    (entry / "refs" / "main").write_text("0" * 40)
    assert encoder_fingerprint("org/encoder") == encoder_fingerprint(str(tiny_bert))
    assert is_present("org/encoder@main") and not is_present("org/encoder@v2")


def test_absent_minilm_has_no_fingerprint(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    for name in ("minilm", "static"):
        assert encoder_fingerprint(name) is None and not is_present(name)


def test_fingerprint_imports_nothing_large(tiny_bert):
    program = (
        "import sys; from hf_qualcode.retrieve.encoder import encoder_fingerprint as fingerprint; "
        "fingerprint(sys.argv[1]), fingerprint('static'), fingerprint('minilm'), fingerprint('org/absent'); "
        "print([m for m in ('torch', 'transformers', 'sentence_transformers') if m in sys.modules])"
    )
    assert subprocess.check_output([sys.executable, "-c", program, str(tiny_bert)], text=True).strip() == "[]"


def test_other_modules_are_left_to_sentence_transformers(tmp_path, tiny_bert):
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.models import Dense, Pooling, Transformer

    torch.manual_seed(0)
    dense = Dense(32, 8)
    SentenceTransformer(modules=[Transformer(str(tiny_bert)), Pooling(32), dense], device="cpu").save_pretrained(
        str(tmp_path / "model")
    )
    encoder = load_encoder(str(tmp_path / "model"), device="cpu", precision="float32")
    assert isinstance(encoder, SentenceTransformerEncoder) and encoder.dimension == 8
    np.testing.assert_allclose(encoder.encode(TEXTS), reference(tmp_path / "model", TEXTS), atol=1e-5)
    assert encoder.encode([]).shape == (0, 8) and encoder.encode(["\ud800"]).shape == (1, 8)


def test_token_batches_keep_to_the_budget():
    lengths = np.random.default_rng(0).integers(1, 60, 300).tolist()
    lengths.append(500)
    batches = list(token_batches(lengths, 256))
    assert sorted(np.concatenate(batches).tolist()) == list(range(301))
    for batch in batches:
        assert len(batch) == 1 or len(batch) * max(lengths[row] for row in batch) <= 256
    assert list(token_batches([], 256)) == []


def test_minilm_equals_sentence_transformers(minilm_folder):
    encoder = load_encoder("minilm", device="cpu", precision="float32")
    assert isinstance(encoder, TransformerEncoder) and (encoder.id, encoder.dimension) == ("minilm", 384)
    texts = [*CODES, "", "naïve café", "def f(x):\n    return x\n" * 80]
    np.testing.assert_allclose(encoder.encode(texts), reference(minilm_folder, texts), atol=1e-5)
    scores = encoder.encode(["load a json file"], is_query=True) @ encoder.encode(CODES).T
    assert scores.argmax() == 0


def test_minilm_in_bfloat16_is_close(minilm_folder):
    exact = load_encoder("minilm", device="cpu", precision="float32").encode(CODES)
    coarse = load_encoder("minilm", device="cpu", precision="bfloat16").encode(CODES)
    assert 1 - (exact * coarse).sum(axis=1).min() <= 1e-3


def test_minilm_loads_without_transformers(minilm_folder):
    program = (
        "import sys; from hf_qualcode.retrieve.encoder import load_encoder; "
        "load_encoder('minilm', device='cpu').encode(['query'], is_query=True); "
        "print([m for m in ('transformers', 'sentence_transformers') if m in sys.modules])"
    )
    assert subprocess.check_output([sys.executable, "-c", program], text=True).strip() == "[]"
