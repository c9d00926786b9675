"""The static encoder: distilled once, healed when damaged, light to load, one vector for a text in any company."""

import shutil
import subprocess
import sys

import numpy as np
import pytest

from hf_qualcode.retrieve import static
from hf_qualcode.retrieve.distillation import distill, distillation_key, reduce_and_weight
from hf_qualcode.retrieve.encoder import encoder_fingerprint
from hf_qualcode.retrieve.static import StaticEncoder, packaged_static
from hf_qualcode.types import QualcodeError


TEXTS = [
    "def read_json(path):\n    with open(path) as file:\n        return json.load(file)",
    "function readJson(path) { return open(path) }",
    "class Queue:\n    def put(self, item):\n        self.items.append(item)",
    "sort a list of numbers",
]


@pytest.fixture(scope="module")
def tiny_static(tmp_path_factory, tiny_bert):
    folder = tmp_path_factory.mktemp("static")
    distill(tiny_bert, folder)
    return folder


@pytest.fixture
def packaged(monkeypatch, tmp_path, tiny_bert):
    """An empty cache, and the tiny BERT in the place of the packaged MiniLM. Gives where the encoder will lie."""
    monkeypatch.setenv("HF_QUALCODE_CACHE", str(tmp_path))
    monkeypatch.setattr(static, "packaged_minilm", lambda: tiny_bert)
    return tmp_path / "static" / distillation_key(tiny_bert)


def test_vectors_have_unit_norm_or_are_zero(tiny_static):
    vectors = StaticEncoder(tiny_static, id="static").encode([*TEXTS, "", "(){};", "\ud800", "x" * 10**6])
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), [1, 1, 1, 1, 0, 0, 0, 0], atol=1e-6)
    assert StaticEncoder(tiny_static, id="static").encode([]).shape == (0, vectors.shape[1])


def test_equals_its_definition(tiny_static):
    encoder = StaticEncoder(tiny_static, id="static")
    json, read, file = encoder.word_vectors(["json", "read", "file"])
    expected = json * np.sqrt(3) + read + file * np.sqrt(2)
    got = encoder.encode(["readJSON(json, file) + json_file"])[0]
    np.testing.assert_allclose(got, expected / np.linalg.norm(expected), atol=1e-6)


def test_a_vector_depends_on_its_text_alone(tiny_static, monkeypatch):
    encoder = StaticEncoder(tiny_static, id="static")
    texts = [f"{text} {number}" for number in range(40) for text in TEXTS]
    together = encoder.encode(texts)
    order = np.random.default_rng(0).permutation(len(texts))
    np.testing.assert_allclose(encoder.encode([texts[row] for row in order]), together[order], atol=1e-6)
    np.testing.assert_allclose(np.stack([encoder.encode([text])[0] for text in texts]), together, atol=1e-6)
    monkeypatch.setattr(static, "_TEXTS_A_BATCH", 3)
    monkeypatch.setattr(static, "_WORDS_HELD", 5)
    seen = []
    np.testing.assert_allclose(encoder.encode(texts, progress=lambda *step: seen.append(step)), together, atol=1e-6)
    assert seen[-1] == (160, 160)


def test_distilling_twice_gives_the_same_bytes(tmp_path, tiny_bert, tiny_static):
    seen = []
    distill(tiny_bert, tmp_path, progress=lambda *step: seen.append(step))
    for file in tiny_static.iterdir():
        assert (tmp_path / file.name).read_bytes() == file.read_bytes()
    assert seen[-1][0] == seen[-1][1] > 0


def test_reduction_keeps_what_varies_and_weighs_down_what_is_frequent():
    vectors = np.random.default_rng(0).standard_normal((500, 6)).astype(np.float32) * [9, 5, 3, 1, 0.1, 0.01]
    full = reduce_and_weight(vectors, dimension=6, sif_coefficient=1e9)
    centred = vectors - vectors.mean(axis=0)
    np.testing.assert_allclose(full @ full.T, centred @ centred.T, atol=1e-2)
    np.testing.assert_allclose(reduce_and_weight(vectors, dimension=3, sif_coefficient=1e9), full[:, :3], atol=1e-4)
    weighted = reduce_and_weight(vectors, dimension=6, sif_coefficient=1e-3)
    factors = np.linalg.norm(weighted, axis=1) / np.linalg.norm(full, axis=1)
    assert (np.diff(factors) > 0).all()


def test_made_once_then_loaded(packaged, monkeypatch, caplog):
    first = packaged_static()
    assert "once" in caplog.text and packaged.is_dir()
    monkeypatch.setattr("hf_qualcode.retrieve.distillation.distill", None)  # must not be called again
    again = packaged_static()
    assert (again.id, again.fingerprint) == ("static", first.fingerprint)
    np.testing.assert_array_equal(again.encode(TEXTS), first.encode(TEXTS))


@pytest.mark.parametrize("file", ["config.json", "model.safetensors", "tokenizer.json"])
@pytest.mark.parametrize("content", [None, b"", b"damaged"])
def test_damage_heals(packaged, tiny_static, file, content):
    shutil.copytree(tiny_static, packaged)
    (packaged.parent / f"{packaged.name}.killed.tmp").mkdir()
    if content is None:
        (packaged / file).unlink()
    else:
        (packaged / file).write_bytes(content)
    packaged_static()
    assert (packaged / file).read_bytes() == (tiny_static / file).read_bytes()
    assert [entry.name for entry in packaged.parent.iterdir() if entry.is_dir()] == [packaged.name]


def test_two_processes_at_once(packaged, tiny_bert):
    program = (
        "import sys; from pathlib import Path; from hf_qualcode.retrieve import static; "
        "static.packaged_minilm = lambda: Path(sys.argv[1]); print(static.packaged_static().fingerprint)"
    )
    command = [sys.executable, "-c", program, str(tiny_bert)]
    runs = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    outputs = {run.communicate(timeout=100)[0] for run in runs}
    assert len(outputs) == 1 and [run.returncode for run in runs] == [0, 0]
    assert [entry.name for entry in packaged.parent.iterdir() if entry.is_dir()] == [packaged.name]


def test_absent_minilm_names_the_extra(monkeypatch):
    monkeypatch.setattr(static, "packaged_minilm", lambda: None)
    with pytest.raises(QualcodeError, match=r"hf-qualcode\[offline\]"):
        packaged_static()


def test_fingerprint_is_known_before_distilling(packaged, monkeypatch, tiny_bert):
    monkeypatch.setattr("hf_qualcode.retrieve.encoder.packaged_minilm", lambda: tiny_bert)
    before = encoder_fingerprint("static")
    assert not packaged.exists()
    assert packaged_static().fingerprint == before == encoder_fingerprint("static")


def test_a_table_in_the_cache_does_not_outlive_minilm(packaged, tiny_static, monkeypatch):
    # The table is known by the files it was made from; without them no one can say whether it is the right one.
    shutil.copytree(tiny_static, packaged)
    packaged_static()
    monkeypatch.setattr(static, "packaged_minilm", lambda: None)
    with pytest.raises(QualcodeError, match=r"hf-qualcode\[offline\]"):
        packaged_static()


def test_unwritable_cache_says_what_to_do(packaged, monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("HF_QUALCODE_CACHE", str(tmp_path / "file"))
    with pytest.raises(QualcodeError, match="HF_QUALCODE_CACHE"):
        packaged_static()


def test_loads_without_torch(tiny_static):
    program = (
        "import sys; from pathlib import Path; from hf_qualcode.retrieve.static import StaticEncoder; "
        "StaticEncoder(Path(sys.argv[1]), id='static').encode(['read json']); "
        "print([m for m in ('torch', 'transformers', 'huggingface_hub', 'sklearn') if m in sys.modules])"
    )
    assert subprocess.check_output([sys.executable, "-c", program, str(tiny_static)], text=True).strip() == "[]"
