"""`hf-qualcode evaluate retrieval`, as a user calls it, on three documents and baselines made here."""

import argparse
import json
import sys
from types import ModuleType

import pytest

from hf_qualcode import baselines
from hf_qualcode.cli import evaluate
from hf_qualcode.evaluation.protocols import ScoredDocument
from hf_qualcode.types import QualcodeError, UsageError


CODES = ["def read(): pass", "def write(): pass", "def close(): pass"]


class ToySearcher:
    """Scores by the position of the right answer, shifted."""

    def __init__(self, shift):
        self.shift = shift

    def search(self, queries, top_k):
        return [
            [ScoredDocument(str((int(query[-1]) + self.shift + i) % 3), 3.0 - i) for i in range(3)]
            for query in queries
        ]


@pytest.fixture
def folder(tmp_path):
    data = tmp_path / "cosqa"
    data.mkdir()
    (data / "code_idx_map.txt").write_text(json.dumps({code: i for i, code in enumerate(CODES)}))
    rows = [{"idx": f"q{i}", "doc": f"find {i}", "retrieval_idx": i, "label": 1} for i in range(3)]
    (data / "cosqa-retrieval-dev-500.json").write_text(json.dumps(rows))
    return data


@pytest.fixture(autouse=True)
def toy_baselines(monkeypatch, tmp_path):
    """Two modules that are found by name like the real ones, and one without `build`."""
    names = tmp_path / "modules"
    names.mkdir()
    for name, shift in (("right", 0), ("wrong", 1), ("helper", None)):
        module = ModuleType(f"hf_qualcode.baselines.{name}")
        if shift is not None:
            module.build = lambda ids, texts, *, progress=None, shift=shift: ToySearcher(shift)
        (names / f"{name}.py").touch()
        monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(baselines, "__path__", [str(names)])


def call(*arguments):
    parser = argparse.ArgumentParser()
    evaluate.add_parser(parser.add_subparsers(dest="command"))
    args = parser.parse_args(["evaluate", "retrieval", *map(str, arguments)])
    return args.run(args)


def test_json_is_one_object(folder, capsys):
    assert call("--data", f"cosqa:{folder}", "--model", "right", "--baseline", "wrong", "--json") == 0
    out = capsys.readouterr().out
    report = json.loads(out)
    assert out.count("\n") == 1
    assert report["model"] == "right"
    assert report["n"] == 3
    assert report["config"] == {"split": "dev", "seed": 42}
    assert report["metrics"]["hit@1"] == 1
    assert list(report["baselines"]) == ["wrong", "random"]
    assert report["baselines"]["wrong"]["metrics"]["hit@1"] == 0
    assert report["baselines"]["random"]["metrics"]["hit@1"] == pytest.approx(1 / 3)
    assert report["baselines"]["wrong"]["differences"]["hit@1"]["difference"] == 1


def test_table_on_stdout_and_nothing_on_stderr(folder, capsys):
    assert call("--data", f"cosqa:{folder}", "--model", "wrong") == 0
    captured = capsys.readouterr()
    assert "mrr@20" in captured.out
    assert "random" in captured.out
    assert captured.err == ""


def test_a_saved_run_and_saved_scores_can_be_used_again(folder, capsys, tmp_path):
    data = f"cosqa:{folder}"
    assert (
        call(
            "--data",
            data,
            "--model",
            "wrong",
            "--save-run",
            tmp_path / "run",
            "--save-scores",
            tmp_path / "w",
            "--json",
        )
        == 0
    )
    direct = json.loads(capsys.readouterr().out)
    assert call("--data", data, "--run", tmp_path / "run", "--json") == 0
    assert json.loads(capsys.readouterr().out)["metrics"] == direct["metrics"]
    assert (
        call(
            "--data",
            data,
            "--model",
            "right",
            "--baseline",
            tmp_path / "run",
            "--save-scores",
            tmp_path / "r",
            "--json",
        )
        == 0
    )
    assert json.loads(capsys.readouterr().out)["baselines"][str(tmp_path / "run")]["metrics"] == direct["metrics"]
    rows = [json.loads(line) for line in (tmp_path / "w").read_text().splitlines()]
    shares = {"hit@1": 0.0, "hit@3": 1.0, "hit@5": 1.0, "mrr@20": pytest.approx(1 / 3), "recall@100": 1.0}
    assert rows[0] == {"id": "q0", **shares, "rank": 3.0}
    assert call("--compare", tmp_path / "r", tmp_path / "w", "--json") == 0
    report = json.loads(capsys.readouterr().out)
    assert report["metrics"]["hit@1"]["difference"] == 1
    assert report["mcnemar"]["only_first"] == 3
    assert call("--compare", tmp_path / "r", tmp_path / "w") == 0
    assert "McNemar" in capsys.readouterr().out


def test_a_short_run_is_evaluated_with_a_warning(folder, capsys, tmp_path):
    (tmp_path / "run").write_text("q0 Q0 0 1 1.0 t\n")
    assert call("--data", f"cosqa:{folder}", "--run", tmp_path / "run", "--json") == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["metrics"]["hit@1"] == pytest.approx(1 / 3)
    assert "2 queries have no answer" in captured.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--model", "right"], "--data is missing"),
        (["--data", "cosqa:DIR"], "--model NAME or --run FILE"),
        (["--data", "DIR", "--model", "right"], "expected cosqa:DIR"),
        (["--data", "procqa:DIR", "--model", "right"], "expected cosqa:DIR"),
        (
            ["--data", "cosqa:DIR", "--model", "nothing"],
            "unknown model 'nothing': one of right, wrong, an encoder's folder",
        ),
        (["--data", "cosqa:DIR", "--model", "helper"], "unknown model 'helper'"),
        (["--data", "cosqa:DIR", "--model", "right", "--baseline", "nothing"], "unknown model 'nothing'"),
        (["--data", "cosqa:DIR", "--model", "right", "--baseline", "right"], "there already"),
        (["--data", "cosqa:DIR", "--model", "right", "--split", "train"], "no split 'train'"),
        (["--data", "cosqa:DIR", "--model", "right", "--seed", "-1"], "--seed -1"),
        (["--compare", "a", "b", "--save-run", "x"], "--save-run has no part"),
    ],
)
def test_wrong_usage(folder, arguments, words):
    with pytest.raises(UsageError, match=words):
        call(
            *[argument.replace("DIR", str(folder)) if argument == "cosqa:DIR" else argument for argument in arguments]
        )


def test_an_absent_split_or_run_is_a_failure_not_wrong_usage(folder, tmp_path):
    with pytest.raises(QualcodeError, match="is missing"):
        call("--data", f"cosqa:{folder}", "--model", "right", "--split", "test")
    with pytest.raises(QualcodeError, match="cannot be read"):
        call("--data", f"cosqa:{folder}", "--run", tmp_path / "absent")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "holds no results"),
        ("{", "line 1: not JSON"),
        ('["q"]', "line 1: expected"),
        ('{"id": "q", "hit@1": "yes"}', "line 1: hit@1 is 'yes'"),
        ('{"id": "q", "hit@1": NaN}', "line 1: hit@1 is nan"),
        ('{"id": "q", "hit@1": 1}\n{"id": "q", "hit@1": 1}', "line 2: id q appears twice"),
    ],
)
def test_bad_score_files(tmp_path, text, words):
    (tmp_path / "a").write_text(text)
    with pytest.raises(QualcodeError, match=words):
        call("--compare", tmp_path / "a", tmp_path / "a")


def test_score_files_of_other_queries_cannot_be_compared(tmp_path):
    (tmp_path / "a").write_text('{"id": "q1", "hit@1": 1}\n')
    (tmp_path / "b").write_text('{"id": "q2", "hit@1": 1}\n')
    with pytest.raises(QualcodeError, match="different queries"):
        call("--compare", tmp_path / "a", tmp_path / "b")
