"""`evaluate preference` and `evaluate reranking`, as a user calls them, on small programs with the real baselines."""

import argparse
import json

import pytest

from hf_qualcode.benchmark import loading
from hf_qualcode.benchmark.loading import PreferenceData
from hf_qualcode.cli import evaluate
from hf_qualcode.cli.evaluating.models import find_scorer
from hf_qualcode.quality import instruction_for
from hf_qualcode.types import GradedList, PreferencePair, QualcodeError, UsageError


def fast(number):
    return f"import sys\nvalue_{number} = sum(map(int, sys.stdin.read().split()))\nprint(value_{number} + {number})\n"


def slow(number):
    loops = f"    for j in range(n):\n        total += i * j % {number + 2}\n"
    return f"import numpy as np\nn = int(input())\ntotal = 0\nfor i in range(n):\n{loops}print(np.int64(total))\n"


def make_pairs():
    return [
        PreferencePair(
            id=f"speed/s{number}/t{number}",
            instruction=instruction_for(("speed",)),
            query=f"Add up the numbers of task {number // 2}.",
            positive=slow(number) if number % 7 == 6 else fast(number),
            negative=fast(number) if number % 7 == 6 else slow(number),
            dimensions=("speed",),
            missing_dimension="",
            problem_id=f"p{number // 2}",
            positive_id=f"s{number}",
            negative_id=f"t{number}",
            positive_value=10.0,
            negative_value=10.0 * (2 + number % 5),
        )
        for number in range(24)
    ]


@pytest.fixture(autouse=True)
def small_data(monkeypatch):
    def load_pairs(source, config=None, split="test"):
        if source != "DIR":
            raise QualcodeError(f"no data set {source!r}")
        return PreferenceData("qualcode", (config or "speed",), split, "qpa", make_pairs(), {})

    def load_lists(source, split="test"):
        return [
            GradedList(
                f"p{i}/speed", instruction_for(("speed",)), f"Add up the numbers of task {i}.", ("a", "b", "c"),
                (fast(i), slow(i), "print('hello')"), (0, 1, 0), f"p{i}", "speed",
            )
            for i in range(6)
        ]  # fmt: skip

    monkeypatch.setattr(loading, "load_pairs", load_pairs)
    monkeypatch.setattr(loading, "load_lists", load_lists)


def call(task, *arguments):
    parser = argparse.ArgumentParser()
    evaluate.add_parser(parser.add_subparsers(dest="command"))
    args = parser.parse_args(["evaluate", task, *map(str, arguments)])
    return args.run(args)


def test_json_has_the_contract_s_keys_and_every_control(capsys):
    assert call("preference", "--data", "DIR", "--model", "bm25", "--json") == 0
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    report = json.loads(out)
    keys = ["data", "config", "model", "metric", "n", "problems", "metrics", "intervals", "baselines", "by_group"]
    assert list(report) == [*keys, "slices", "controls", "label_noise", "notes"]
    assert report["config"] == {"config": "speed", "split": "test", "seed": 42, "folds": 5}
    assert (report["n"], report["problems"], report["metric"]) == (24, 12, "qpa")
    names = ("shorter", "longer", "fewer-lines", "fewer-imports", "no-numpy", "reads-stdin", "less-loop-nesting")
    assert {*names, "static"} <= report["baselines"].keys()
    assert report["baselines"]["no-numpy"]["metrics"]["qpa"] == pytest.approx(21 / 24)
    assert report["baselines"]["static"]["metrics"]["half_credit"] > 0.8
    assert {"length-matched", "no numpy", "factor 2", "factor 3", "factor 5"} <= report["slices"].keys()
    assert report["slices"]["no numpy"]["n"] == 0
    controls = report["controls"]
    assert {"negated instruction", "swapped presentation"} < controls.keys()
    assert controls["negated instruction"]["turns_round"] is False
    assert controls["swapped presentation"]["decision_changed"] == 0


def test_a_trained_model_under_test_turns_round(capsys):
    assert call("preference", "--data", "DIR", "--model", "static", "--json", "--folds", "3") == 0
    report = json.loads(capsys.readouterr().out)
    assert "static" not in report["baselines"]
    assert report["config"]["folds"] == 3
    assert report["controls"]["negated instruction"]["flip_rate"] == 1
    assert report["controls"]["negated instruction"]["turns_round"] is True


def test_tables_for_people(capsys):
    assert call("preference", "--data", "DIR", "--model", "shorter", "--baseline", "longer") == 0
    captured = capsys.readouterr()
    for words in ("QPA", "half credit", "24 pairs of 12 problems", "static", "slices", "controls", "turns round"):
        assert words in captured.out
    lines = captured.out.splitlines()
    assert lines[2].startswith("shorter")
    assert lines[3].startswith("longer")


def test_without_controls_only_what_was_named(capsys):
    assert call("preference", "--data", "DIR", "--model", "shorter", "--no-controls", "--json") == 0
    report = json.loads(capsys.readouterr().out)
    assert report["baselines"] == report["slices"] == report["controls"] == {}
    assert report["metrics"]["qpa"] == pytest.approx(21 / 24)


def test_saved_scores_are_used_again_and_compared(capsys, tmp_path):
    files = {name: tmp_path / name for name in ("shorter", "longer")}
    for name, path in files.items():
        assert call("preference", "--data", "DIR", "--model", name, "--no-controls", "--save-scores", path) == 0
    capsys.readouterr()
    assert (
        call("preference", "--data", "DIR", "--scores", files["shorter"], "--baseline", files["longer"], "--json") == 0
    )
    report = json.loads(capsys.readouterr().out)
    assert report["metrics"]["qpa"] == pytest.approx(21 / 24)
    assert report["baselines"][str(files["longer"])]["metrics"]["qpa"] == pytest.approx(3 / 24)
    assert report["controls"] == {}
    assert "without the model" in report["notes"][0]
    assert call("preference", "--compare", files["longer"], files["shorter"], "--json") == 0
    report = json.loads(capsys.readouterr().out)
    assert report["mcnemar"]["only_second"] == 21
    assert report["metrics"]["strict"]["difference"] == pytest.approx(-18 / 24)
    compare = ("--compare", files["longer"], files["shorter"], "--cases", "2")
    assert call("preference", *compare, "--data", "DIR") == 0
    out = capsys.readouterr().out
    assert "2 pairs that the second gets right" in out
    assert "not known to be log-odds" in out
    assert "import numpy as np" in out
    assert call("preference", *compare, "--json") == 0
    assert len(json.loads(capsys.readouterr().out)["cases"]) == 2


def test_reranking_with_runs_in_and_out(capsys, tmp_path):
    run, rows = tmp_path / "run", tmp_path / "rows"
    saved = ("--save-run", run, "--save-scores", rows)
    assert call("reranking", "--data", "DIR", "--model", "longer", *saved, "--json") == 0
    first = json.loads(capsys.readouterr().out)
    assert first["metrics"]["mrr@10"] == 1
    assert first["baselines"]["random"]["metrics"]["mrr@10"] == pytest.approx((1 + 1 / 2 + 1 / 3) / 3)
    assert first["by_group"]["speed"]["n"] == 6
    assert call("reranking", "--data", "DIR", "--run", run, "--baseline", "bm25", "--json") == 0
    again = json.loads(capsys.readouterr().out)
    assert again["metrics"] == first["metrics"]
    assert list(again["baselines"]) == ["bm25", "random"]
    assert call("reranking", "--compare", rows, rows) == 0
    assert "mrr@10" in capsys.readouterr().out
    run.write_text("p0/speed Q0 a 1 2.0 t\n")
    assert call("reranking", "--data", "DIR", "--run", run) == 0
    assert "5 lists are not in the run" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("task", "arguments", "words"),
    [
        ("preference", ["--model", "bm25"], "--data is missing"),
        ("preference", ["--data", "DIR"], "--model NAME or --scores FILE"),
        ("preference", ["--data", "DIR", "--model", "nothing"], "unknown model 'nothing': one of .*static.*shorter"),
        ("preference", ["--data", "DIR", "--model", "bm25", "--baseline", "bm25"], "there already"),
        ("preference", ["--data", "DIR", "--model", "bm25", "--folds", "1"], "--folds 1"),
        ("preference", ["--data", "DIR", "--model", "bm25", "--seed", "-1"], "--seed -1"),
        ("preference", ["--data", "DIR", "--model", "bm25", "--cases", "3"], "--cases 3"),
        ("preference", ["--data", "DIR", "--model", "bm25", "--save-scores", "/nowhere/x"], "no folder /nowhere"),
        ("preference", ["--compare", "a", "b", "--baseline", "x"], "--baseline has no part"),
        ("preference", ["--compare", "a", "b", "--data", "DIR"], "shows the code of --cases"),
        ("reranking", ["--model", "bm25"], "--data is missing"),
        ("reranking", ["--data", "DIR"], "--model NAME or --run FILE"),
        ("reranking", ["--data", "DIR", "--model", "bm25", "--baseline", "random"], "random always is"),
        ("retrieval", ["--data", "qualcode:", "--model", "bm25"], "or qualcode:DIR"),
    ],
)
def test_wrong_usage(task, arguments, words):
    with pytest.raises(UsageError, match=words):
        call(task, *arguments)


def test_failures_are_one_line(tmp_path):
    for arguments, words in (
        (["--data", "elsewhere", "--model", "bm25"], "no data set"),
        (["--data", "DIR", "--scores", tmp_path / "absent"], "cannot be read"),
        (["--compare", tmp_path / "a", tmp_path / "b"], "cannot be read"),
    ):
        with pytest.raises(QualcodeError, match=words):
            call("preference", *arguments)
    with pytest.raises(QualcodeError, match="use `evaluate preference`"):
        call("reranking", "--data", "DIR", "--model", "static")


def test_a_folder_is_a_cross_encoder_or_an_encoder_as_its_configuration_says(tiny_bert, tmp_path):
    import shutil

    import torch
    from transformers import AutoModelForSequenceClassification

    assert type(find_scorer(str(tiny_bert))).__name__ == "CosineScorer"
    torch.manual_seed(0)
    model = AutoModelForSequenceClassification.from_pretrained(tiny_bert, num_labels=1)
    folder = tmp_path / "cross"
    shutil.copytree(tiny_bert, folder)
    model.save_pretrained(folder)
    scorer = find_scorer(str(folder))
    assert scorer.scale == "log-odds"
    assert scorer.score(["fast"], ["sort"], ["def f(): pass"]).shape == (1,)
