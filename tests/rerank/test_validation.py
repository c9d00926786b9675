"""Cross-validation of the bundled recipe: no fold is scored by what has seen it, and an interrupted run goes on."""

from pathlib import Path

import numpy as np
import pytest

from hf_qualcode.quality import dimension_names, instruction_for
from hf_qualcode.rerank.backbones import load_backbone
from hf_qualcode.rerank.recipe import validation
from hf_qualcode.rerank.recipe.report import validation_report
from hf_qualcode.rerank.recipe.sources import RelevantPairs, Sources
from hf_qualcode.rerank.recipe.validation import validate
from hf_qualcode.rerank.relevance import TextVectors
from hf_qualcode.rerank.reranker import Reranker
from hf_qualcode.types import GradedList
from tests.rerank.test_fusion import vectors_of
from tests.rerank.test_recipe import make_pairs
from tests.rerank.tiny import save_tiny_encoder


WORDINGS = {"wording": dict.fromkeys(dimension_names(), "something quick")}


@pytest.fixture
def material(tmp_path, monkeypatch):
    monkeypatch.setattr("hf_qualcode.rerank.fusion_training._STEPS", 3)
    pairs = make_pairs(7, 4)
    words = RelevantPairs("docs", tuple("abcdef"), tuple("ABCDEF"), tuple("GHIJ"))
    reader = Reranker(load_backbone(save_tiny_encoder(tmp_path / "tiny"), device="cpu"))
    lists = [
        GradedList(
            id=f"p{problem}/speed", instruction=instruction_for("speed"), query=f"Task {problem}",
            doc_ids=("a", "b", "c"), documents=(pairs[0].positive, "x = 1\n", "y = 2\n"), grades=(1, 0, 0),
            problem_id=f"p{problem}", dimension="speed",
        )
        for problem in range(7)
    ]  # fmt: skip
    return Sources(pairs, (words,)), reader, TextVectors(vectors_of), pairs[:30], lists


@pytest.fixture
def seen(monkeypatch):
    """Which problems each fold was trained on; what is trained is not changed."""
    calls = []
    original = validation.train_bundled

    def watched(sources, problem_ids, *arguments, **options):
        calls.append(set(problem_ids))
        return original(sources, problem_ids, *arguments, **options)

    monkeypatch.setattr(validation, "train_bundled", watched)
    return calls


def test_each_problem_is_scored_by_what_has_not_seen_it(material, tmp_path, seen, monkeypatch):
    scored = []
    original = validation.score_parts

    def watched(reranker, instructions, queries, codes, **options):
        scored.append({f"p{query.removeprefix('Task ')}" for query in queries})
        return original(reranker, instructions, queries, codes, **options)

    monkeypatch.setattr(validation, "score_parts", watched)
    result = validate(*material, tmp_path / "out", rewordings=WORDINGS)
    assert len(seen) == len(scored) == 5
    for trained, tested in zip(seen, scored, strict=True):
        assert tested
        assert not trained & tested
        assert trained | tested == {f"p{number}" for number in range(7)}
    assert set().union(*scored) == {f"p{number}" for number in range(7)}
    assert result.conditions["plain"].shape == (len(result.pairs), 2, 3)
    assert np.isfinite(result.conditions["negated"]).all()


def test_an_interrupted_run_gives_what_an_uninterrupted_one_gives(material, tmp_path, seen):
    whole = validate(*material, tmp_path / "whole", rewordings=WORDINGS)
    assert len(seen) == 5

    class StopError(Exception):
        pass

    def stop(stage, done, total):
        if stage.startswith("folds") and done == 2:
            raise StopError

    with pytest.raises(StopError):
        validate(*material, tmp_path / "parts", rewordings=WORDINGS, progress=stop)
    again = validate(*material, tmp_path / "parts", rewordings=WORDINGS)
    assert len(seen) == 10
    for name, parts in whole.conditions.items():
        np.testing.assert_array_equal(parts, again.conditions[name])
    np.testing.assert_array_equal(whole.triplet_parts, again.triplet_parts)


def test_parts_add_up_to_the_score(material, tmp_path):
    sources, reader, vectors, _, _ = material
    reranker = validation.train_bundled(sources, sources.problem_ids, reader, vectors)
    texts = [instruction_for("speed")] * 2, ["Task 1"] * 2, [sources.pairs[0].positive, "def f():\n    pass\n"]
    parts = validation.score_parts(reranker, *texts)
    np.testing.assert_allclose(parts.sum(axis=1), reranker.score_triples(*texts), atol=1e-5)


def test_the_report_counts_what_was_scored(material, tmp_path):
    results = [validate(*material, Path(tmp_path / str(seed)), rewordings=WORDINGS, fold_seed=seed) for seed in (0, 1)]
    single = {"first": np.tile([1.0, 0.0], (len(results[0].pairs), 1))}
    report = validation_report(results, {}, single=single)
    for name in ("speed", "maintainability"):
        numbers = report["mean"]["preference"][name]["all"]
        own = [row for row, pair in enumerate(results[0].pairs) if pair.dimensions == (name,)]
        by_hand = [
            np.mean([part[row, 0].sum() > part[row, 1].sum() for row in own])
            for part in (result.conditions["plain"] for result in results)
        ]
        assert numbers["pairs"] == len(own)
        assert numbers["problems"] == 7
        assert numbers["all"]["value"] == pytest.approx(np.mean(by_hand))
        assert numbers["first (half credit)"] == 1
        assert numbers["against first (half credit)"]["value"] == pytest.approx(np.mean(by_hand) - 1, abs=0.02)
    assert "memory" not in report["mean"]["preference"] or not report["mean"]["preference"]["memory"]
    assert report["mean"]["relevance"]["lists"] == 7
    assert set(report["seeds"]) == {"0", "1"}
