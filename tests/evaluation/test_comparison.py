"""Two systems on the same pairs: exact counts, clusters, cases and their margins; odd score files."""

import json
import math

import numpy as np
import pytest

from hf_qualcode.evaluation.comparison import cases_text, compare_preferences, comparison_tables
from hf_qualcode.evaluation.score_files import read_metric_rows, read_pair_rows, read_pair_scores, write_rows
from hf_qualcode.evaluation.significance import mcnemar, paired_bootstrap, paired_permutation
from hf_qualcode.types import QualcodeError


def make_row(number, positive, negative, problem="q", **extra):
    scores = {"positive_score": float(positive), "negative_score": float(negative)}
    return {"id": f"speed/a{number}/b{number}", **scores, "problem_id": problem, "dimension": "speed", **extra}


def random_rows(seed, n=80):
    rng = np.random.default_rng(seed)
    problems = np.random.default_rng(9).integers(0, 15, n)
    names = ("speed", "memory")
    return [
        {**make_row(i, rng.integers(4), rng.integers(4), f"q{problems[i]}"), "dimension": names[i % 2]}
        for i in range(n)
    ]


def test_numbers_are_those_of_the_tests():
    first, second = random_rows(1), random_rows(2)
    report = compare_preferences("a", first, "b", second[::-1])
    assert json.loads(json.dumps(report)) == report
    right = [np.array([row["positive_score"] > row["negative_score"] for row in rows]) for rows in (first, second)]
    clusters = [row["problem_id"] for row in first]
    strict = report["metrics"]["strict"]
    assert (strict["first"], strict["second"]) == (right[0].mean(), right[1].mean())
    interval = paired_bootstrap(*right, clusters)
    assert (strict["difference"], strict["low"], strict["high"]) == tuple(interval)
    assert strict["p_value"] == paired_permutation(*right, clusters)
    assert report["mcnemar"] == mcnemar(*right)._asdict()
    assert (report["n"], report["problems"]) == (80, len(set(clusters)))
    assert report["by_group"]["speed"]["metrics"]["strict"]["first"] == right[0][::2].mean()
    text = comparison_tables(report)[0].to_text()
    assert "right in the first only" in text
    assert "half credit, memory" in text


def test_files_without_problems_are_compared_pair_by_pair():
    rows = [
        [{key: row[key] for key in ("id", "positive_score", "negative_score")} for row in random_rows(seed)]
        for seed in (1, 2)
    ]
    report = compare_preferences("a", rows[0], "b", rows[1])
    assert report["problems"] is None
    assert report["by_group"] == {}
    assert "one by one" in comparison_tables(report)[0].title
    # Problems that one of the two knows are enough.
    assert compare_preferences("a", rows[0], "b", random_rows(2))["problems"] == 15


def test_other_pairs_cannot_be_compared():
    with pytest.raises(QualcodeError, match="different pairs: 1 only in the first"):
        compare_preferences("a", random_rows(1), "b", random_rows(2)[1:])


def test_cases_are_what_the_second_alone_gets_right_with_margins_in_probability(pair):
    scale = {"scale": "log-odds"}
    first = [
        make_row(0, -1, 1, **scale),
        make_row(1, 0, 0, **scale),
        make_row(2, 2, 1, **scale),
        make_row(3, 0, 4, **scale),
    ]
    second = [
        make_row(0, 3, -2, **scale),
        make_row(1, 1, 0, **scale),
        make_row(2, 3, 1, **scale),
        make_row(3, 0, 9, **scale),
    ]
    code = "\n".join(f"line_{i} = {i}\n" for i in range(40))
    pairs = [pair(0, "q", code, "print(2)", positive_value=10.0, negative_value=99.0)]
    report = compare_preferences("a", first, "b", second, num_cases=5, pairs=pairs)
    assert [case["id"] for case in report["cases"]] == ["speed/a0/b0", "speed/a1/b1"]

    def sigmoid(x):
        return 1 / (1 + math.exp(-x))

    case = report["cases"][0]
    assert case["first_margin"] == pytest.approx(sigmoid(-1) - sigmoid(1))
    assert case["second_margin"] == pytest.approx(sigmoid(3) - sigmoid(-2))
    assert case["positive"].splitlines()[-1] == "... 28 more lines"
    assert (case["negative"], case["positive_value"], case["problem_id"]) == ("print(2)", 10, "q")
    assert report["margins"] == {"first": "probability", "second": "probability"}
    text = cases_text(report)
    assert "sigmoid" in text
    assert "line_0 = 0" in text
    assert "measured 99" in text
    assert compare_preferences("a", first, "b", second, num_cases=1)["cases"][0]["id"] == "speed/a0/b0"


def test_margins_of_other_scores_are_said_to_be_raw():
    first = [make_row(0, 0.1, 0.2), make_row(1, 0.5, 0.9)]
    second = [make_row(0, 1, 0, scale="log-odds"), make_row(1, 800, -800, scale="log-odds")]
    report = compare_preferences("a", first, "b", second, num_cases=2)
    assert report["margins"] == {"first": "score", "second": "probability"}
    cases = {case["id"]: case for case in report["cases"]}
    assert cases["speed/a0/b0"]["first_margin"] == pytest.approx(-0.1)
    assert cases["speed/a1/b1"]["second_margin"] == 1
    assert "the scores of the first system are not known to be log-odds" in cases_text(report)
    assert cases_text(compare_preferences("a", first, "b", first, num_cases=2)).startswith("0 pairs")


def test_scores_come_back_in_any_order(tmp_path, pairs_of):
    pairs = pairs_of([2, 1])
    rows = [make_row(i, i, 1, scale="log-odds") for i in range(3)]
    write_rows(tmp_path / "scores", rows[::-1])
    scores = read_pair_scores(tmp_path / "scores", pairs, "DIR")
    assert scores.positive.tolist() == [0, 1, 2]
    assert scores.scale == "log-odds"
    write_rows(tmp_path / "scores", [*rows[:2], make_row(2, 0, 0)])
    assert read_pair_scores(tmp_path / "scores", pairs, "DIR").scale == ""


LINE = '{"id": "speed/a0/b0", "positive_score": 1, "negative_score": 0}'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "holds no results"),
        ("{", "line 1: not JSON"),
        ("[" * 100_000, "line 1: not JSON"),
        ("[]", 'line 1: expected {"id": ..., "positive_score"'),
        ('{"id": 1}', "line 1: expected"),
        ('{"id": "x", "positive_score": 1}', "line 1: expected"),
        (LINE + "\n\n" + LINE.replace("1,", "NaN,"), "line 3: positive_score is nan"),
        (LINE.replace("0}", "Infinity}"), "line 1: negative_score is inf"),
        (LINE.replace("0}", "true}"), "line 1: negative_score is True"),
        (LINE.replace("0}", "1" + "0" * 400 + "}"), "finite number"),
        (LINE.replace("0}", "null}"), "negative_score is None"),
        (LINE + "\n" + LINE, "line 2: id speed/a0/b0 appears twice"),
        (LINE, "lacks the scores of 2 of 3 pairs of DIR, 'speed/a1/b1' among them"),
        (LINE.replace("a0", "zz"), "has 1 ids that DIR lacks, 'speed/zz/b0' among them"),
    ],
)
def test_bad_score_files_are_one_clear_line(tmp_path, pairs_of, text, words):
    (tmp_path / "scores").write_text(text)
    with pytest.raises(QualcodeError, match=words) as error:
        read_pair_scores(tmp_path / "scores", pairs_of([3]), "DIR")
    assert "\n" not in str(error.value)


def test_unreadable_files_and_metric_rows(tmp_path):
    for path in (tmp_path / "absent", tmp_path):
        with pytest.raises(QualcodeError, match="cannot be read"):
            read_pair_rows(path)
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    with pytest.raises(QualcodeError, match="cannot be read"):
        read_metric_rows(tmp_path / "bytes")
    (tmp_path / "rows").write_text('\ufeff{"id": "q", "mrr@10": 2}')
    with pytest.raises(QualcodeError, match="mrr@10 is 2"):
        read_metric_rows(tmp_path / "rows")
