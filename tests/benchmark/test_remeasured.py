"""Programs run again: which have values, what the values are made of, and that nothing is done twice."""

import json
import shutil

import pytest

from hf_qualcode.benchmark import remeasured
from hf_qualcode.benchmark.remeasured import PROBLEM_REASONS, PROGRAM_REASONS, remeasure
from hf_qualcode.quality.sandbox import Sandbox
from hf_qualcode.types import QualcodeError


PAGE = """<h2>Sum</h2><p>Given N, print the sum of the whole numbers from 1 to N.</p>
<h3>Sample Input 1</h3><pre>3</pre><h3>Sample Output 1</h3><pre>6</pre>"""
CLOSED = "n = int(input())\nprint(n * (n + 1) // 2)\n"
LOOP = "n = int(input())\ntotal = 0\nfor i in range(n + 1):\n    total += i\nprint(total)\n"
HEAVY = "n = int(input())\nnumbers = list(range(n + 1))\ntotal = 0\nfor i in numbers:\n    total += i\nprint(total)\n"
IMPORTS = "import json, decimal, fractions, statistics\n" + CLOSED
SMALL_ONLY = "n = int(input())\nprint(n * (n + 1) // 2 if n < 10 ** 6 else 0)\n"
CRASHES = "n = int(input())\nprint([6][n - 3])\n"
ABSENT = "import a_module_that_does_not_exist\n" + CLOSED
COOKIE = "# -*- coding: cp932 -*-\n" + CLOSED + "# \u548c\n"
PROGRAMS = {
    "s1": CLOSED, "s2": LOOP, "s3": HEAVY, "s4": IMPORTS, "s5": SMALL_ONLY, "s6": CRASHES, "s7": ABSENT, "s8": COOKIE,
}  # fmt: skip
SIZES = (10**4, 10**5, 4 * 10**6)


@pytest.fixture(scope="module", autouse=True)
def can_run_programs():
    try:
        Sandbox.open()
    except QualcodeError as error:
        pytest.skip(f"no program can be run on this machine: {error}")


@pytest.fixture
def collection(memory_collection):
    return fill(memory_collection)


def fill(collection):
    for name, text in PROGRAMS.items():
        collection.add("p00001", name, text=text)
    collection.add("p00002", "s9", text=CLOSED)
    collection.description = lambda problem_id: PAGE.encode()
    return collection


def write_inputs(folder, sizes):
    (folder / "p00001").mkdir(parents=True)
    for number, size in enumerate(sizes):
        (folder / "p00001" / f"{number}.in").write_text(f"{size}\n")
    return folder


@pytest.fixture
def inputs(tmp_path):
    return write_inputs(tmp_path / "inputs", SIZES)


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    return tmp_path_factory.mktemp("work")


@pytest.fixture(scope="module")
def measured(work, tmp_path_factory, can_run_programs, empty_collection):
    inputs = write_inputs(tmp_path_factory.mktemp("given") / "inputs", SIZES)
    return remeasure(fill(empty_collection), work, inputs=inputs, count_instructions=False)


def test_every_program_has_values_or_a_reason(measured):
    outcomes = {name: row["outcome"] for name, row in measured.report["by_problem"]["p00001"]["programs"].items()}
    assert outcomes == {
        "s1": "measured", "s2": "measured", "s3": "measured", "s4": "measured", "s5": "disagrees", "s6": "fails",
        "s7": "fails_on_samples", "s8": "measured",
    }  # fmt: skip
    assert set(outcomes.values()) <= PROGRAM_REASONS.keys()
    assert sum(measured.report["programs"].values()) == len(PROGRAMS)
    assert measured.report["problems"] == {"measured": 1, "too_few_programs": 1}
    assert measured.report["problems"].keys() <= PROBLEM_REASONS.keys()
    assert {key for key, value in measured.values.items()} == {("p00001", f"s{i}") for i in (1, 2, 3, 4, 8)}


def test_values_are_what_the_program_itself_costs(measured):
    values = {name: value for (_, name), value in measured.values.items()}
    # Imports are not the program's own cost; a small one is below the floor of memory.
    for name in ("s1", "s4", "s8"):
        assert remeasured.MIN_CPU_MS <= values[name]["speed"] < values["s2"]["speed"] / 2
        assert values[name]["memory"] == remeasured.MIN_MEMORY_KB
    # Four million steps of bytecode take more than 50 ms on any machine; a list of as many numbers 8 bytes each.
    assert values["s2"]["speed"] > 50
    assert values["s2"]["memory"] == remeasured.MIN_MEMORY_KB
    assert values["s3"]["memory"] > 8 * 4 * 10**6 / 1024
    row = measured.report["by_problem"]["p00001"]["programs"]["s2"]
    assert values["s2"]["speed"] == pytest.approx(1000 * (row["cpu_seconds"] - row["import_cpu_seconds"]))
    assert measured.unit["speed"].startswith("ms of CPU time")
    json.dumps(measured.report)


def test_a_second_run_measures_nothing_again(collection, inputs, work, measured, monkeypatch):
    monkeypatch.setattr(Sandbox, "run", lambda *_, **__: pytest.fail("a program was run again"))
    monkeypatch.setattr(Sandbox, "open", classmethod(lambda cls, unsafe=False: cls(measured.report["isolation"])))
    again = remeasure(collection, work, inputs=inputs, count_instructions=False)
    assert again == measured


@pytest.mark.parametrize("cut", [False, True])
def test_a_cut_off_result_and_another_input_are_measured_anew(collection, inputs, tmp_path, work, measured, cut):
    shutil.copytree(work, tmp_path / "copy")
    result = tmp_path / "copy" / "remeasured" / "p00001.json"
    if cut:
        result.write_text(result.read_text()[:100])
    (inputs / "p00001" / "2.in").write_text("3\n")
    again = remeasure(collection, tmp_path / "copy", inputs=inputs, count_instructions=False)
    assert again.report["by_problem"]["p00001"]["outcome"] == "never_slow"
    assert not again.values


@pytest.mark.parametrize(("num_inputs", "outcome"), [(0, "no_inputs"), (2, "too_few_sizes")])
def test_too_few_inputs(collection, inputs, tmp_path, num_inputs, outcome):
    for number in range(num_inputs, len(SIZES)):
        (inputs / "p00001" / f"{number}.in").unlink()
    other = inputs / "p00009"
    other.mkdir()
    (other / "1.in").write_text("1\n")
    report = remeasure(collection, tmp_path / "work", inputs=inputs, count_instructions=False).report
    assert report["by_problem"]["p00001"]["outcome"] == outcome


def test_a_folder_without_inputs_is_an_error(collection, tmp_path):
    with pytest.raises(QualcodeError, match=r"holds no inputs; expected files like .*p00001/1\.in"):
        remeasure(collection, tmp_path / "work", inputs=tmp_path)


def test_a_statement_that_is_not_understood_gives_no_inputs(collection, tmp_path):
    report = remeasure(collection, tmp_path / "work", count_instructions=False).report
    assert report["by_problem"]["p00001"]["outcome"] == "no_inputs"
    assert report["by_problem"]["p00001"]["why"]


@pytest.mark.slow
def test_instructions_are_the_same_every_time(collection, inputs, tmp_path):
    if shutil.which("valgrind") is None:
        pytest.skip("Valgrind, which counts instructions, is not installed")
    first = remeasure(collection, tmp_path / "1", inputs=inputs, count_instructions=True)
    second = remeasure(collection, tmp_path / "2", inputs=inputs, count_instructions=True)
    assert first.unit["speed"].startswith("millions of instructions")
    for key, value in first.values.items():
        assert value["speed"] == pytest.approx(second.values[key]["speed"], rel=0.01)
    assert first.values["p00001", "s2"]["speed"] > 20 * first.values["p00001", "s1"]["speed"]
