"""The fused score: its formula by hand, its parts, what a folder keeps, and what a damaged one says."""

import hashlib
import json
import math
from dataclasses import replace

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from hf_qualcode.quality import dimension_names, instruction_for
from hf_qualcode.quality.function_features import FUNCTION_FEATURE_NAMES, function_features
from hf_qualcode.quality.static_features import FEATURE_NAMES, static_features
from hf_qualcode.rerank.fusion import Fusion, FusionWeights
from hf_qualcode.rerank.literals import literal_overlap
from hf_qualcode.rerank.relevance import RelevanceMap, TextVectors
from hf_qualcode.types import QualcodeError


SIZE, RANK = 6, 2
WEIGHTS = FusionWeights(
    model_weight=0.5, literal_weight=3.0, slope=0.7, threshold=1.0, leak=0.1, fragment_certainty=0.25,
    quality_weights=(1.0, 2.0, 3.0),
)  # fmt: skip
PROGRAM = "n = int(input())\nprint('Yes' if n > 41 else 'No')\n"
FRAGMENT = "def f(n):\n    return [i for i in range(n)]\n"
QUERY = "Print Yes when the number is large."


def vectors_of(texts, is_query):
    rows = []
    for text in texts:
        seed = int.from_bytes(hashlib.sha256(f"{is_query}{text}".encode()).digest()[:4])
        row = np.random.default_rng(seed).normal(size=SIZE).astype(np.float32)
        rows.append(row / np.linalg.norm(row))
    return np.stack(rows)


@pytest.fixture
def fusion():
    rng = np.random.default_rng(0)
    relevance = RelevanceMap(
        2.0, -0.5, *(rng.normal(size=shape).astype(np.float32) for shape in (SIZE, (SIZE + 1, RANK), (SIZE + 1, RANK)))
    )
    static = rng.normal(size=(len(dimension_names()), len(FEATURE_NAMES)))
    functions = rng.normal(size=(len(dimension_names()), len(FUNCTION_FEATURE_NAMES)))
    return Fusion(WEIGHTS, static, functions, relevance, {"Yes": 1, "No": 2}, 4, vectors=TextVectors(vectors_of))


def by_hand(fusion, instruction_wishes, query, code, logit):
    [q], [c] = vectors_of([query], True), vectors_of([code], False)
    relevance, weights = fusion.relevance, fusion.weights
    meaning = relevance.scale * float((q + relevance.shift) @ c) + relevance.bias
    meaning += float((np.append(q, 1) @ relevance.left) @ (np.append(c, 1) @ relevance.right))
    evidence = meaning + weights.literal_weight * literal_overlap(query, code, {"Yes": 1, "No": 2}, 4)
    relevant = weights.leak * evidence - math.log1p(math.exp(-weights.slope * (evidence - weights.threshold)))
    if code == PROGRAM:
        static = fusion.static_weights @ static_features(code)
    else:
        static = weights.fragment_certainty * (fusion.function_weights @ function_features(code))
    quality = sum(
        wish * weight * value
        for wish, weight, value in zip(instruction_wishes, weights.quality_weights, static, strict=True)
    )
    return weights.model_weight * logit + relevant + quality


@pytest.mark.parametrize(
    ("instruction", "wishes"),
    [
        ("Retrieve code that is fast", (1, 0, 0)),
        ("Retrieve code that is slow and memory-hungry", (-1, -1, 0)),
        ("code that is easy to read", (0, 0, 1)),
        ("Retrieve code that is relevant", (0, 0, 0)),
    ],
)
@pytest.mark.parametrize("code", [PROGRAM, FRAGMENT])
def test_score_is_the_formula(fusion, instruction, wishes, code):
    (score,) = fusion.scores([instruction], [QUERY], [code], np.array([1.5], dtype=np.float32))
    assert score == pytest.approx(by_hand(fusion, wishes, QUERY, code, 1.5), abs=1e-5)


def test_parts_add_up_to_the_score(fusion):
    for code in (PROGRAM, FRAGMENT, "not Python at all {"):
        for instruction in (instruction_for(("speed", "memory")), instruction_for(())):
            (score,) = fusion.scores([instruction], [QUERY], [code], np.array([-2.0], dtype=np.float32))
            parts = fusion.explain(instruction, QUERY, code, -2.0)
            assert sum(value for _, value in parts) == pytest.approx(float(score), abs=1e-5)
            assert [name for name, _ in parts][:2] == ["model", "relevance to the query"]
    assert any(name.startswith("speed: ") for name, _ in fusion.explain(instruction_for("speed"), QUERY, PROGRAM, 0.0))


def test_code_in_another_language_has_no_quality_of_its_own(fusion):
    code = "int main() { return 0; }"
    first, second = fusion.scores(
        [instruction_for("speed"), instruction_for("speed", negated=True)], [QUERY] * 2, [code] * 2, np.zeros(2)
    )
    assert first == second


def test_a_score_depends_on_nothing_beside_it(fusion):
    texts = [PROGRAM, FRAGMENT, PROGRAM]
    together = fusion.scores([instruction_for("memory")] * 3, [QUERY] * 3, texts, np.array([0.1, 0.2, 0.1]))
    alone = [fusion.scores([instruction_for("memory")], [QUERY], [t], np.array([x]))[0]
             for t, x in zip(texts, (0.1, 0.2, 0.1), strict=True)]  # fmt: skip
    np.testing.assert_allclose(together, alone, atol=1e-6)
    assert together[0] == together[2]


def save(fusion, folder):
    settings = {"backbone": "encoder", "fusion": fusion.save(folder)}
    (folder / "config.json").write_text(json.dumps({"hf_qualcode": settings}))
    return settings


def test_a_folder_keeps_every_score(fusion, tmp_path):
    save(fusion, tmp_path)
    loaded = Fusion.load(tmp_path)
    loaded._vectors = TextVectors(vectors_of)
    arguments = ([instruction_for(dimension_names())] * 2, [QUERY] * 2, [PROGRAM, FRAGMENT], np.array([1.0, 2.0]))
    np.testing.assert_array_equal(loaded.scores(*arguments), fusion.scores(*arguments))
    assert loaded.weights == fusion.weights


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "static-9"}, "does not know"),
        ({"kind": None}, "does not know"),
        ({"encoder": "someone/else"}, "only 'minilm'"),
        ({"encoder": "/etc"}, "only 'minilm'"),
        ({"quality_weights": [1.0]}, "incomplete"),
        ({"qualities": ["speed"]}, "other qualities"),
        ({"slope": "steep"}, "cannot be read"),
        ({"scale": None}, "cannot be read"),
    ],
)
def test_foreign_settings_are_one_line(fusion, tmp_path, change, message):
    settings = save(fusion, tmp_path)
    settings["fusion"] |= change
    (tmp_path / "config.json").write_text(json.dumps({"hf_qualcode": settings}))
    with pytest.raises(QualcodeError, match=message) as error:
        Fusion.load(tmp_path)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["fusion.safetensors", "fusion_words.json"])
@pytest.mark.parametrize(
    "content",
    [
        None, b"", b"\x08\x00\x00\x00\x00\x00\x00\x00{}garbage", b"[1, 2]", b"[" * 100_000,
        b'{"num_queries": 1e999, "frequencies": {}}', b'{"num_queries": 9, "frequencies": {"a": -5}}',
    ],
)  # fmt: skip
def test_damaged_files_are_one_line(fusion, tmp_path, name, content):
    save(fusion, tmp_path)
    (tmp_path / name).unlink()
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(QualcodeError, match=r"cannot be read.*fusion=False"):
        Fusion.load(tmp_path)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), [1.0, 2.0], 10**400, None])
def test_weights_are_single_finite_numbers(fusion, tmp_path, value):
    settings = save(fusion, tmp_path)
    settings["fusion"]["model_weight"] = value
    (tmp_path / "config.json").write_text(json.dumps({"hf_qualcode": settings}))
    with pytest.raises(QualcodeError, match="cannot be read.*fusion=False"):
        Fusion.load(tmp_path)


@pytest.mark.parametrize("dtype", [np.int64, np.complex64])
def test_arrays_are_floating_point_numbers(fusion, tmp_path, dtype):
    save(fusion, tmp_path)
    arrays = load_file(tmp_path / "fusion.safetensors")
    save_file(arrays | {"left": arrays["left"].astype(dtype)}, tmp_path / "fusion.safetensors")
    with pytest.raises(QualcodeError, match="no floating point numbers"):
        Fusion.load(tmp_path)


@pytest.mark.parametrize("broken", ["static_weights", "function_weights"])
def test_nan_in_a_file_is_refused(fusion, tmp_path, broken):
    weights = {name: getattr(fusion, name) for name in ("static_weights", "function_weights")}
    weights[broken] = np.full_like(weights[broken], np.nan)
    broken = Fusion(WEIGHTS, *weights.values(), fusion.relevance, fusion.frequencies, 4)
    save(broken, tmp_path)
    with pytest.raises(QualcodeError, match="NaN"):
        Fusion.load(tmp_path)


def test_relevance_saturates_and_leaks():
    weights = replace(WEIGHTS, slope=1.0, threshold=0.0, leak=0.0)
    evidence = np.array([-50.0, 0.0, 50.0])
    np.testing.assert_allclose(weights.saturated(evidence), [-50.0, -math.log(2), 0.0], atol=1e-9)
    assert np.all(np.diff(replace(weights, leak=0.1).saturated(np.linspace(-30, 30, 50))) > 0)


def test_vectors_are_encoded_once():
    calls = []

    def encode(texts, is_query):
        calls.append(list(texts))
        return vectors_of(texts, is_query)

    vectors = TextVectors(encode)
    first = vectors(["a", "b", "a"], is_query=False)
    again = vectors(["b", "a"], is_query=False)
    assert calls == [["a", "b"]]
    np.testing.assert_array_equal(first[[1, 0]], again)
    vectors(["a"], is_query=True)
    assert calls[-1] == ["a"]
