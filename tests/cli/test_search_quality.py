"""`search --quality` as a user meets it, with a tiny real reranker."""

import json
import subprocess
import sys

import numpy as np
import pytest

from hf_qualcode.cli.main import main
from hf_qualcode.rerank.reranker import Reranker
from hf_qualcode.rerank.results import Part
from tests.cli.test_search import KEYS, on_terminal
from tests.rerank.tiny import save_tiny_encoder


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return save_tiny_encoder(tmp_path_factory.mktemp("reranker"))


@pytest.fixture
def code(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_QUALCODE_CACHE", str(tmp_path / "cache"))
    root = tmp_path / "code"
    root.mkdir()
    for i in range(20):
        body = "".join("    item += 1\n" for _ in range(i % 4))
        (root / f"m{i}.py").write_text(f"def put_item_{i}(item):\n{body}    return item\n")
    return root


@pytest.fixture
def search(code, model, capsys):
    """Runs `search "put item"` by words; exit code, hits and stderr."""

    def run(*arguments, query="put item", quality=("--quality", "speed", "--reranker", str(model))):
        exit_code = main(["search", query, str(code), "--retriever", "bm25", "--json", *quality, *map(str, arguments)])
        streams = capsys.readouterr()
        return exit_code, [json.loads(line) for line in streams.out.splitlines()], streams.err

    return run


def test_hits_come_in_the_order_of_both_with_their_scores(search, model):
    _, plain, _ = search("--top-k", 20, quality=())
    exit_code, hits, err = search("--top-k", 20)
    assert (exit_code, err) == (0, "")
    assert [list(hit) for hit in hits] == [KEYS] * 20
    retrieval = {hit["path"]: hit["score"] for hit in plain}
    expected = Reranker.from_pretrained(model).score(
        ["put item"] * 20, [hit["code"] for hit in hits], quality=("speed",)
    )
    np.testing.assert_allclose([hit["quality_score"] for hit in hits], expected, atol=1e-5)
    assert all(hit["retrieval_score"] == retrieval[hit["path"]] for hit in hits)

    def percentile(values, value):
        return (sum(other < value for other in values) + sum(other == value for other in values) / 2) / len(values)

    for hit in hits:
        by_retrieval = percentile(list(retrieval.values()), hit["retrieval_score"])
        by_quality = percentile([other["quality_score"] for other in hits], hit["quality_score"])
        assert hit["score"] == pytest.approx((by_retrieval + by_quality) / 2)
    scores = [hit["score"] for hit in hits]
    assert scores == sorted(scores, reverse=True)


def test_the_weight_goes_from_the_retrievers_order_to_the_rerankers(search):
    _, plain, _ = search("--top-k", 5, quality=())
    _, as_found, _ = search("--top-k", 5, "--quality-weight", 0)
    assert [hit["path"] for hit in as_found] == [hit["path"] for hit in plain]
    _, judged, _ = search("--top-k", 20, "--quality-weight", 1)
    quality = [hit["quality_score"] for hit in judged]
    assert quality == sorted(quality, reverse=True)
    assert all(hit["quality_score"] is None for hit in plain)


def test_explanations_are_the_largest_parts_and_only_there_when_asked_for(search, model, monkeypatch, capsys, code):
    _, hits, _ = search("--top-k", 3, "--explain")
    assert [list(hit) for hit in hits] == [[*KEYS, "explanation"]] * 3
    for hit in hits:
        (part,) = hit["explanation"]
        assert part["name"] == "model"
        assert part["value"] == pytest.approx(hit["quality_score"], abs=1e-5)
    parts = [Part(f"part {value}", value) for value in (0.1, -3.0, 0.0, 0.5, 2.0, -0.2, 0.3)]
    real = Reranker.explain

    def explain(self, *arguments, **options):
        explanation = real(self, *arguments, **options)
        explanation.parts[:] = parts
        return explanation

    monkeypatch.setattr(Reranker, "explain", explain)
    _, hits, _ = search("--top-k", 1, "--explain")
    assert [part["value"] for part in hits[0]["explanation"]] == [-3.0, 2.0, 0.5, 0.3, -0.2]
    options = ["--retriever", "bm25", "--quality", "speed", "--reranker", str(model), "--top-k", "1"]
    assert main(["search", "put item", str(code), *options, "--explain"]) == 0
    out = capsys.readouterr().out
    assert "  retrieval " in out.splitlines()[0] and ", quality " in out.splitlines()[0]
    assert "        because of part -3.0 -3.00, part 2.0 +2.00, part 0.5 +0.50" in out.splitlines()[-2]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--quality", "beauty"], "unknown quality 'beauty': choose from speed, memory, maintainability"),
        (["--quality", ""], "--quality names nothing"),
        (["--quality", "speed", "--quality-weight", "1.5"], "--quality-weight 1.5"),
        (["--quality", "speed", "--quality-weight", "-0.1"], "--quality-weight -0.1"),
        (["--quality", "speed", "--quality-weight", "nan"], "--quality-weight nan"),
        (["--quality-weight", "0"], "--quality-weight needs --quality"),
        (["--explain"], "--explain needs --quality"),
        (["--reranker", "bundled"], "--reranker needs --quality"),
        (["--quality", "speed", "--reranker", "nowhere-at-all"], "no model 'nowhere-at-all'"),
    ],
)
def test_wrong_calls_are_one_clear_line(search, arguments, message):
    exit_code, hits, err = search(quality=arguments)
    assert (exit_code, hits) == (2, [])
    assert message in err and err.count("\n") == 1


def test_without_the_bundled_reranker_one_line_says_what_to_do(search, monkeypatch):
    monkeypatch.setattr("hf_qualcode.rerank.reranker._BUNDLED", "none")
    exit_code, hits, err = search(quality=["--quality", "speed"])
    assert (exit_code, hits) == (1, [])
    assert "no bundled reranker" in err and err.count("\n") == 1


def test_the_reranker_is_loaded_only_where_there_is_something_to_judge(search):
    # One that does not exist is not missed.
    assert search(query="zzzz", quality=["--quality", "speed", "--reranker", "nowhere-at-all"]) == (0, [], "")


def test_one_line_says_what_the_bundled_reranker_has_learnt_from(search, code, model, monkeypatch):
    monkeypatch.setattr(Reranker, "bundled", lambda: Reranker.from_pretrained(model))
    _, hits, err = search("--top-k", 20, quality=["--quality", "speed"])
    assert (len(hits), err) == (20, "")
    (code / "main.go").write_text("package main\n\nfunc putItem(item int) int {\n\treturn item\n}\n")
    _, hits, err = search("--top-k", 30, quality=["--quality", "speed,memory"])
    assert len(hits) == 21
    assert "learnt from Python; of 21 hits 1 are in other languages" in err and err.count("\n") == 1


def test_without_quality_no_reranker_is_imported(code):
    program = (
        "import sys; from hf_qualcode.cli.main import main\n"
        f"assert main(['search', 'put item', {str(code)!r}, '--retriever', 'bm25']) == 0\n"
        "rerankers = [name for name in sys.modules if name.startswith('hf_qualcode.rerank') or name == 'torch']\n"
        "assert not rerankers, rerankers"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_on_a_terminal_hits_by_words_are_shown_while_quality_is_judged(code, model):
    options = ["--retriever", "bm25", "--quality", "speed", "--reranker", str(model), "--explain"]
    exit_code, shown = on_terminal("search", "put item", str(code), *options)
    assert exit_code == 0
    assert "by words so far; judging quality ..." in shown
    assert "because of model" in shown
