"""Rerankers in `evaluate`: as models of preference and reranking, and as the quality order of retrieval."""

import argparse
import json

import pytest

from hf_qualcode.cli import evaluate
from hf_qualcode.cli.evaluating.models import find_scorer
from hf_qualcode.rerank.reranker import Reranker
from hf_qualcode.types import QualcodeError, UsageError
from tests.rerank.tiny import save_tiny_decoder, save_tiny_encoder


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return save_tiny_encoder(tmp_path_factory.mktemp("reranker"))


@pytest.fixture
def cosqa(tmp_path):
    folder = tmp_path / "cosqa"
    folder.mkdir()
    words = ["read", "write", "close", "open", "sort", "merge"]
    codes = [f"def {first}_{second}(item):\n    return {second}(item)" for first in words for second in words]
    (folder / "code_idx_map.txt").write_text(json.dumps({code: i for i, code in enumerate(codes)}))
    rows = [
        {"idx": f"q{i}", "doc": f"{words[i]} and sort an item", "retrieval_idx": 6 * i + 4, "label": 1}
        for i in range(6)
    ]
    (folder / "cosqa-retrieval-dev-500.json").write_text(json.dumps(rows))
    return f"cosqa:{folder}"


def retrieval(capsys, *arguments):
    parser = argparse.ArgumentParser()
    evaluate.add_parser(parser.add_subparsers(dest="command"))
    args = parser.parse_args(["evaluate", "retrieval", *map(str, arguments), "--json"])
    assert args.run(args) == 0
    return json.loads(capsys.readouterr().out)


def test_retrieval_with_quality_stands_beside_retrieval_without(cosqa, model, capsys):
    quality = ["--quality", "speed,memory", "--reranker", model]
    report = retrieval(capsys, "--data", cosqa, "--model", "bm25", *quality, "--baseline", "bm25")
    assert report["model"] == "bm25 + speed,memory"
    assert report["config"] == {
        "split": "dev", "seed": 42, "quality": "speed,memory", "quality_weight": 0.5, "reranker": str(model),
    }  # fmt: skip
    plain = retrieval(capsys, "--data", cosqa, "--model", "bm25")
    assert report["baselines"]["bm25"]["metrics"] == plain["metrics"]
    assert report["metrics"] != plain["metrics"]
    as_found = retrieval(capsys, "--data", cosqa, "--model", "bm25", *quality, "--quality-weight", 0)
    assert as_found["metrics"] == pytest.approx(plain["metrics"])
    assert plain["config"] == {"split": "dev", "seed": 42}


def test_wrong_usage(cosqa, capsys, tmp_path):
    (tmp_path / "run").write_text("q0 Q0 1 1 1.0 x\n")
    for arguments, message in (
        (["--model", "bm25", "--quality", "beauty"], "unknown quality"),
        (["--model", "bm25", "--quality-weight", "0.5"], "needs --quality"),
        (["--model", "bm25", "--quality", "speed", "--quality-weight", "7"], "--quality-weight 7"),
        (["--run", tmp_path / "run", "--quality", "speed"], "evaluated as it is"),
    ):
        with pytest.raises(UsageError, match=message):
            retrieval(capsys, "--data", cosqa, *arguments)
    with pytest.raises(UsageError, match="--quality has no part"):
        retrieval(capsys, "--compare", tmp_path / "a", tmp_path / "b", "--quality", "speed")


def test_what_a_folder_holds_decides_what_it_is(tiny_bert, model, make_sentence_transformer, tmp_path):
    kinds = {
        tiny_bert: "CosineScorer",
        model: "RerankerScorer",
        save_tiny_encoder(tmp_path / "xlm", kind="xlm-roberta"): "RerankerScorer",
        save_tiny_decoder(tmp_path / "causal"): "RerankerScorer",
        make_sentence_transformer(tmp_path / "embedder", tiny_bert): "CosineScorer",
    }
    for folder, kind in kinds.items():
        scorer = find_scorer(str(folder))
        assert type(scorer).__name__ == kind
        assert scorer.score(["fast"], ["sort"], ["def f(): pass"]).shape == (1,)


def test_an_embedding_decoder_is_not_taken_for_a_reranker(model, make_sentence_transformer, tmp_path):
    from hf_qualcode.cli.evaluating.models import _is_reranker

    folder = make_sentence_transformer(tmp_path / "decoder", save_tiny_decoder(tmp_path / "causal"))
    assert not _is_reranker(str(folder))
    for damaged in ("{", "[1]", '{"architectures": 3}'):
        (folder / "config.json").write_text(damaged)
        assert not _is_reranker(str(folder))


def test_bundled_is_the_reranker_of_the_package(model, monkeypatch):
    monkeypatch.setattr("hf_qualcode.rerank.reranker._BUNDLED", "none")
    with pytest.raises(QualcodeError, match="no bundled reranker"):
        find_scorer("bundled")
    monkeypatch.setattr(Reranker, "bundled", lambda: Reranker.from_pretrained(model))
    scorer = find_scorer("bundled")
    assert scorer.scale == "log-odds"
    given = scorer.score(["a", "b"], ["q", "q"], ["x", "y"])
    expected = Reranker.from_pretrained(model).score(["q", "q"], ["x", "y"], instruction=["a", "b"])
    assert given.tolist() == pytest.approx(expected.tolist(), abs=1e-6)
    with pytest.raises(UsageError, match="one of .*bundled"):
        find_scorer("nothing")
