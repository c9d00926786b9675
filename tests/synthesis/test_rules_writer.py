"""The rules writer: pairs that are proven, work that is done once, counts that add up."""

import json

import pytest

from hf_qualcode.quality.sandbox import Sandbox
from hf_qualcode.synthesis.rule_sources import codenet_sources, function_source, read_sources
from hf_qualcode.synthesis.rules import load_transformation
from hf_qualcode.synthesis.tasks import Task
from hf_qualcode.synthesis.variants import read_variants
from hf_qualcode.synthesis.writers import WriterSettings, load_writer, rules
from hf_qualcode.types import QualcodeError


NAMES = ("concatenated_comprehensions", "listed_loops", "unused_variables", "direct_extremes", "sorted_extremes")
TASKS = [
    Task("a", "Squares.", ("assert f([1, 2]) == [1, 4]",), "", "def f(xs):\n    return [x * x for x in xs]\n"),
    Task(
        "b", "The sum up to n.", ("assert g(4) == 6", "assert g(9) == 36"), "",
        "def g(n):\n    total = 0\n    for i in range(n):\n        total += i\n    return total\n",
    ),
    Task("c", "The largest.", ("assert h([3, 9, 5, 7]) == 9",), "", "def h(xs):\n    return sorted(xs)[-1]\n"),
    Task("d", "Nothing to change.", ("assert k(1) == 1",), "", "def k(x):\n    return x\n"),
    Task("e", "No code.", ("assert k(1) == 1",)),
]  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def can_run_programs():
    try:
        Sandbox.open()
    except QualcodeError as error:
        pytest.skip(f"no program can be run on this machine: {error}")


def write(out, tasks=TASKS, **options):
    stages = []
    report = rules.write_variants(
        tasks, out, WriterSettings(seed=1), lambda *state: stages.append(state), names=NAMES, **options
    )
    return report, stages


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    out = tmp_path_factory.mktemp("rules")
    return out, write(out)[0]


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_is_found_among_the_writers():
    assert load_writer("rules") is rules
    assert not rules.ANSWERS_PROMPTS


def test_pairs_are_verified(finished):
    out, report = finished
    pairs = {(pair["task_id"], pair["transformation"]): pair for pair in lines(out / "pairs.jsonl")}
    assert set(pairs) >= {("a", "concatenated_comprehensions"), ("b", "listed_loops"), ("c", "direct_extremes")}
    assert report["pairs"] == len(pairs)
    slow = pairs["a", "concatenated_comprehensions"]
    assert slow["high"] == TASKS[0].code and slow["group"] == "speed/data structure" and slow["query"] == "Squares."
    assert slow["evidence"]["low"] >= 1.5 * slow["evidence"]["high"]
    # The way up: the changed program is the better one.
    better = pairs["c", "direct_extremes"]
    assert better["low"] == TASKS[2].code and "max(xs)" in better["high"]
    assert pairs["b", "listed_loops"]["evidence"]["unit"] == "peak_bytes"
    for pair in pairs.values():
        assert pair["dimension"] == load_transformation(pair["transformation"].split("+")[0]).DIMENSION


def test_variants_are_never_both_good_and_bad(finished):
    out, report = finished
    variants = list(read_variants(out / "variants.jsonl"))
    assert len(variants) == report["variants"]
    keys = [(one.task_id, one.dimension, one.code) for one in variants]
    assert len(set(keys)) == len(keys)
    for task_id, dimension in {(one.task_id, one.dimension) for one in variants}:
        levels = {one.level for one in variants if (one.task_id, one.dimension) == (task_id, dimension)}
        assert levels == {"high", "low"}
    assert {one.source for one in variants} == {"rules"}
    assert all("transformation" in one.evidence for one in variants)


def test_counts_add_up(finished):
    _, report = finished
    assert report["tasks"] == 4 and report["tasks_without_code_or_tests"] == 1
    for name in NAMES:
        assert sum(report["table"][name].values()) == 4
    verified = sum(counts.get("verified", 0) for counts in report["table"].values())
    assert verified == report["pairs"] == sum(report["pairs_by_group"].values())
    assert "direct_extremes" in rules.format_table(report)


def test_bettered_and_worsened_program_is_a_low_one():
    source = function_source("t", "q", "original", ["assert True"])
    rows = [
        rules._pair(source, "direct_extremes", load_transformation("direct_extremes"), {"code": "up", "evidence": {}}),
        rules._pair(
            source, "sorted_extremes", load_transformation("sorted_extremes"), {"code": "down", "evidence": {}}
        ),
    ]
    levels = {one.code: one.level for one in rules._variants(rows)}
    assert levels == {"up": "high", "original": "low", "down": "low"}


def test_nothing_is_done_twice(finished, tmp_path, monkeypatch):
    out, report = finished
    for name in ("rules.jsonl",):
        (tmp_path / name).write_bytes((out / name).read_bytes())
    again, stages = write(tmp_path)
    assert stages == [("verifying", 0, 0)]
    assert again == report
    for name in ("pairs.jsonl", "variants.jsonl"):
        assert (tmp_path / name).read_bytes() == (out / name).read_bytes()
    # The last line was cut off: that task alone is done again.
    whole = (out / "rules.jsonl").read_bytes()
    (tmp_path / "rules.jsonl").write_bytes(whole[:-40])
    third, stages = write(tmp_path)
    assert stages == [("verifying", 0, 1), ("verifying", 1, 1)]
    assert third["table"].keys() == report["table"].keys()
    # Under another seed those that draw change other places; of the others every verdict is taken over.
    verify, seen = rules.verify, []

    def watched(sandbox, subject, candidates, engine):
        seen.extend(candidate.dimension for candidate in candidates)
        return verify(sandbox, subject, candidates, engine)

    monkeypatch.setattr(rules, "verify", watched)
    other = rules.write_variants(TASKS, tmp_path, WriterSettings(seed=2), names=NAMES, stacked=0)
    assert set(seen) <= {"maintainability"}
    assert other["table"]["direct_extremes"] == report["table"]["direct_extremes"]


def test_processes_give_the_same(finished, tmp_path):
    out, _ = finished
    write(tmp_path, TASKS[2:4], num_proc=2)

    def outcomes(folder):
        rows = {row["task_id"]: row["results"] for row in lines(folder / "rules.jsonl")}
        return {key: {name: one["outcome"] for name, one in rows[key].items()} for key in ("c", "d")}

    assert outcomes(tmp_path) == outcomes(out)


def test_no_more_than_asked_for(tmp_path):
    task = Task(
        "m", "Several.", ("assert f([3, 1]) == 4",), "",
        "def f(xs):\n    ys = [x for x in xs]\n    total = 0\n    for i in range(len(ys)):\n        total += ys[i]\n"
        "    return max(xs) + total - max(ys)\n",
    )  # fmt: skip
    changed = rules._changed(rules._source_of(task), rules.RuleSettings(most=1, stacked=0))
    drawn = [name for name, (outcome, _) in changed.items() if outcome == "changed"]
    dimensions = [load_transformation(name).DIMENSION for name in drawn]
    assert sorted(dimensions) == ["maintainability", "memory", "speed"]
    assert any(outcome == "not_drawn" for outcome, _ in changed.values())
    assert changed == rules._changed(rules._source_of(task), rules.RuleSettings(most=1, stacked=0))
    stacked = rules._changed(rules._source_of(task), rules.RuleSettings(stacked=2))
    both = [name for name in stacked if "+" in name]
    assert both
    for name in both:
        first, second = name.split("+")
        assert load_transformation(first).DIMENSION == load_transformation(second).DIMENSION
        assert stacked[name][1] not in (stacked[first][1], stacked[second][1])


def test_sources_of_a_file(tmp_path):
    path = tmp_path / "tasks.jsonl"
    rows = [
        {"task_id": 7, "text": "q", "code": "def f():\r\n    pass\r\n", "test_list": ["assert True"]},
        {"id": "x", "query": "no code", "tests": ["assert True"]},
    ]
    path.write_text("\n".join(map(json.dumps, rows)) + "\n\n")
    (source,) = read_sources(path)
    assert source.task_id == "7" and source.subject.code == "def f():\n    pass\n"
    path.write_text("[1]\n")
    with pytest.raises(QualcodeError, match="line 1"):
        read_sources(path)
    with pytest.raises(QualcodeError, match="cannot be read"):
        read_sources(tmp_path / "none.jsonl")


PAGE = """<h2>Sum</h2><p>Given N, print the sum of the whole numbers from 1 to N.</p>
<h3>Constraints</h3><ul><li>1 \u2264 N \u2264 10^6</li></ul>
<h3>Input</h3><p>Input is given from Standard Input in the following format:</p><pre>N</pre>
<h3>Sample Input 1</h3><pre>3</pre><h3>Sample Output 1</h3><pre>6</pre>"""


def test_sources_of_codenet(tmp_path):
    (tmp_path / "metadata").mkdir()
    (tmp_path / "problem_descriptions").mkdir()
    programs = tmp_path / "data" / "p00001" / "Python"
    programs.mkdir(parents=True)
    (tmp_path / "metadata" / "problem_list.csv").write_text("id,name\np00001,Sum\n")
    head = "submission_id,problem_id,user_id,date,language,original_language,filename_ext,status,cpu_time,memory"
    rows = [f"s{number},p00001,u,1,Python,Python3,py,{status},10,10"
            for number, status in enumerate(("Accepted", "Accepted", "Wrong Answer"))]  # fmt: skip
    (tmp_path / "metadata" / "p00001.csv").write_text("\n".join([head, *rows]) + "\n")
    (tmp_path / "problem_descriptions" / "p00001.html").write_text(PAGE)
    for number in range(3):
        (programs / f"s{number}.py").write_text("n = int(input())\nprint(sum(range(n + 1)))\n")
    (source,) = codenet_sources(tmp_path)
    assert source.task_id == "p00001/s0"
    assert source.subject.samples == ("3\n",)
    assert [int(text) for text in source.subject.inputs] == sorted(int(text) for text in source.subject.inputs)
    assert read_sources(tmp_path) == [source]
