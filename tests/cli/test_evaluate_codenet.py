"""`evaluate` on QualCode and MC-QualCode as built from real submissions."""

import argparse
import json
import os
from pathlib import Path

import pytest

from hf_qualcode.cli import dataset, evaluate


pytestmark = pytest.mark.slow


def call(command, *arguments):
    parser = argparse.ArgumentParser()
    command.add_parser(parser.add_subparsers(dest="command"))
    args = parser.parse_args([command.__name__.rpartition(".")[2], *map(str, arguments)])
    return args.run(args)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    data = os.environ.get("HF_QUALCODE_TEST_DATA")
    if not data or not (Path(data) / "codenet-mini").is_dir():
        pytest.skip("set HF_QUALCODE_TEST_DATA to a folder that has codenet-mini")
    folder = tmp_path_factory.mktemp("built")
    for name in ("qualcode", "mc-qualcode"):
        out = folder / name
        assert call(dataset, "build", name, Path(data) / "codenet-mini", "--out", out, "--smells", "none") == 0
    return folder


def report_of(capsys, *arguments):
    capsys.readouterr()
    assert call(evaluate, *arguments, "--json") == 0
    return json.loads(capsys.readouterr().out)


def test_static_features_are_far_from_chance_and_what_is_trivial_stays_behind(built, capsys):
    data = ("preference", "--data", built / "qualcode", "--config", "all-pairs")
    report = report_of(capsys, *data, "--model", "static")
    assert report["by_group"]["speed"]["metrics"]["half_credit"] > 0.7
    assert report["baselines"]["shorter"]["differences"]["half_credit"]["low"] > 0
    assert report["controls"]["negated instruction"]["turns_round"]
    assert report["controls"]["swapped presentation"]["decision_changed"] == 0
    assert all(part["n"] > 100 for part in report["slices"].values())
    assert 0 < report["label_noise"]["same_code"]["speed"]["differ_by_2"] < 0.5


def test_every_task_runs_on_it(built, capsys):
    mca = report_of(capsys, "preference", "--data", built / "mc-qualcode", "--model", "shorter", "--no-controls")
    assert mca["metric"] == "mca"
    assert mca["by_group"]["2-condition"]["n"] > 100
    lists = report_of(capsys, "reranking", "--data", built / "qualcode", "--model", "bm25")
    assert lists["baselines"]["random"]["differences"]["mrr@10"]["low"] > 0
    found = report_of(capsys, "retrieval", "--data", f"qualcode:{built / 'qualcode'}", "--model", "bm25")
    assert found["baselines"]["random"]["differences"]["mrr@20"]["low"] > 0
