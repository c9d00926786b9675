"""Reports: the keys of every evaluate command, values that fit the results, and tables that line up."""

import json

import numpy as np
import pytest

from hf_qualcode.evaluation.report import comparison_report, comparison_table, ranking_table, retrieval_report
from hf_qualcode.evaluation.retrieval import METRICS, RetrievalResult
from hf_qualcode.types import QualcodeError


def make_result(hits):
    values = {name: np.asarray(hits, dtype=float) for name in METRICS}
    return RetrievalResult([f"q{i}" for i in range(len(hits))], values, [None] * len(hits))


def test_json_has_the_common_keys_and_round_trips():
    report = retrieval_report(
        "cosqa:DIR", {"split": "dev"}, "m", make_result([1, 1, 0, 1]), {"b": make_result([1, 0, 0, 0])}
    )
    assert list(report) == ["data", "config", "model", "n", "metrics", "intervals", "baselines", "by_group"]
    assert json.loads(json.dumps(report)) == report
    assert report["n"] == 4
    assert report["metrics"]["hit@1"] == 0.75
    low, high = report["intervals"]["hit@1"]
    assert low <= 0.75 <= high
    difference = report["baselines"]["b"]["differences"]["mrr@20"]
    assert difference["difference"] == 0.5
    assert difference["low"] <= 0.5 <= difference["high"]
    assert 0 < difference["p_value"] <= 1


def test_table_names_everything():
    report = retrieval_report("cosqa:DIR", {"split": "dev"}, "m", make_result([1, 0]), {"b": make_result([1, 0])})
    text = ranking_table(report).to_text()
    assert "2 queries" in text
    assert "0.500" in text
    assert "+0.000 [+0.000, +0.000]" in text
    assert all(name in text for name in (*METRICS, "m", "b"))
    assert all(line == line.rstrip() for line in text.splitlines())


def test_comparison_pairs_by_id_not_by_line():
    first = make_result([1, 1, 1, 0]).rows()
    second = make_result([0, 0, 1, 0]).rows()
    report = comparison_report("a.jsonl", first, "b.jsonl", second[::-1])
    assert report["n"] == 4
    assert report["metrics"]["hit@1"]["first"] == 0.75
    assert report["metrics"]["hit@1"]["second"] == 0.25
    assert report["metrics"]["hit@1"]["difference"] == 0.5
    assert report["mcnemar"] == {"only_first": 2, "only_second": 0, "p_value": 0.5}
    assert json.loads(json.dumps(report)) == report
    assert "exact McNemar p = 0.5000" in comparison_table(report).to_text()


def test_other_queries_or_metrics_cannot_be_compared():
    rows = make_result([1, 0]).rows()
    with pytest.raises(QualcodeError, match="1 only in the first, 0 only in the second.*'q1'"):
        comparison_report("a", rows, "b", rows[:1])
    with pytest.raises(QualcodeError, match="share none of the metrics"):
        comparison_report("a", [{"id": "q"}], "b", [{"id": "q"}])
