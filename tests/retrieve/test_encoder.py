"""Transformer encoders give what sentence-transformers gives, in any batch, and refuse what they cannot trust."""

import json
import shutil
import subprocess
import sys

import numpy as np
import pytest
import torch

from hf_qualcode.retrieve.backbones import PackedBert, TransformersBackbone
from hf_qualcode.retrieve.encoder import load_encoder
from hf_qualcode.retrieve.recipe import POOLING_MODES, EncoderRecipe
from hf_qualcode.retrieve.transformer import (
    SentenceTransformerEncoder,
    TransformerEncoder,
    choose_dtype,
    token_batches,
)
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
        packed = list(PackedBert(recipe, torch.float32)(batch))
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
    monkeypatch.setattr("hf_qualcode.retrieve.transformer._TEXTS_A_WINDOW", 7)
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
