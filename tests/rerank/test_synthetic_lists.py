"""Lists of synthesised variants and the data set of them: grades, several conditions, what is refused, loading it."""

import json
import random
import runpy
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from datasets import load_dataset

from hf_qualcode.quality import instruction_for
from hf_qualcode.rerank.data import lists_from_dataset
from hf_qualcode.rerank.lists import build_lists, srcl_lists
from hf_qualcode.rerank.synthetic_data_set import build_synth_rank_train
from hf_qualcode.rerank.synthetic_lists import graded_variants, multi_condition_lists, synthetic_lists
from hf_qualcode.synthesis.variants import Variant, write_variants
from hf_qualcode.types import QualcodeError, UsageError


SCRIPT = Path(__file__).parents[2] / "dataset_scripts" / "synth_rank_train.py"


def variant(task, dimension, level, code, group="algorithm"):
    return Variant(
        task_id=f"task {task}", dimension=dimension, level=level, group=f"{dimension}/{group}", query=f"do {task}",
        code=f"{task}: {code}", source="rules", evidence={},
    )  # fmt: skip


def single(num_tasks=4):
    """Each program known in one dimension."""
    return [
        variant(task, dimension, level, f"{dimension} {level} {i}")
        for task in range(num_tasks)
        for dimension in ("speed", "memory")
        for level in ("high", "low")
        for i in range(3)
    ]


# Program -> speed, memory, maintainability.
KNOWN = {"all": "+++", "not memory": "+-+", "not speed": "-++", "none": "---", "fast alone": "+  ", "heavy": " - "}


def several(num_tasks=3, known=KNOWN):
    return [
        variant(task, dimension, "high" if sign == "+" else "low", code)
        for task in range(num_tasks)
        for code, signs in known.items()
        for dimension, sign in zip(("speed", "memory", "maintainability"), signs, strict=True)
        if sign != " "
    ]


def graded(each):
    """Program of the list's own task -> grade, and the grades of others."""
    own = each.problem_id.removeprefix("task ") + ": "
    grades = dict(zip(each.codes, each.grades, strict=True))
    return (
        {code.removeprefix(own): grade for code, grade in grades.items() if code.startswith(own)},
        [grade for code, grade in grades.items() if not code.startswith(own)],
    )


def test_one_condition_and_relevance_alone_are_the_lists_of_the_library():
    variants = list(graded_variants(single()))
    assert synthetic_lists(single()) == build_lists(variants)
    options = {"one_list_per_query": True, "seed": 3}
    assert synthetic_lists(single(), **options) == build_lists(variants, **options)
    assert synthetic_lists(single(), "srcl") == srcl_lists(variants, num_irrelevant=5)
    assert {each.grades for each in synthetic_lists(single())} == {(2, 1, 1, 1, 0)}
    assert {each.grades for each in synthetic_lists(single(), "srcl")} == {(1, 0, 0, 0, 0, 0)}


def test_grades_say_how_many_conditions_are_met():
    lists = {each.id: each for each in synthetic_lists(several(), "multi-condition")}
    three = lists["task 0/speed+memory+maintainability/0"]
    assert three.instruction == instruction_for(["speed", "memory", "maintainability"])
    assert graded(three) == ({"all": 4, "not memory": 3, "not speed": 3, "none": 1}, [0])
    # Two programs are good in speed and maintainability, and each is the best of a list.
    two = [each for name, each in lists.items() if name.startswith("task 0/speed+maintainability/")]
    assert sorted(each.codes[0] for each in two) == ["0: all", "0: not memory"]
    for each in two:
        own, others = graded(each)
        assert (own.pop("none"), own.pop("not speed"), others) == (1, 2, [0])
        assert list(own.values()) == [3]
    # What is not known in all that is asked is in no list.
    assert not any("fast alone" in code or "heavy" in code for each in lists.values() for code in each.codes[:-1])
    assert {each.problem_id for each in lists.values()} == {"task 0", "task 1", "task 2"}


def test_with_one_condition_they_are_the_usual_lists():
    variants = list(graded_variants(single()))
    assert multi_condition_lists(variants, num_conditions=[1]) == build_lists(variants)


def test_the_opposite_instruction_turns_the_grades_upside_down():
    lists = {each.id: each for each in synthetic_lists(several(), "multi-condition", negated=True)}
    twin = lists["task 0/speed+memory+maintainability/0/negated"]
    assert twin.instruction == instruction_for(["speed", "memory", "maintainability"], negated=True)
    assert graded(twin) == ({"all": 1, "not memory": 2, "not speed": 2, "none": 4}, [0])


def test_partly_known_programs_are_below_the_best_where_one_flaw_is_known():
    known = {"all": "+++", "slow": "-  ", "heavy": " - ", "slow and heavy": "-- ", "fast": "+  "}
    with pytest.raises(QualcodeError, match="no list of 2 or 3 conditions can be made"):
        synthetic_lists(several(known=known | {"slow and heavy": "   "}), "multi-condition")
    lists = {each.id: each for each in synthetic_lists(several(known=known), "multi-condition", partial=True)}
    assert graded(lists["task 1/speed+memory+maintainability/0"]) == (
        {"all": 4, "slow": 3, "heavy": 3, "slow and heavy": 2}, [0],
    )  # fmt: skip
    assert graded(lists["task 1/memory+maintainability/0"])[0] == {"all": 3, "heavy": 2, "slow and heavy": 2}
    with pytest.raises(UsageError, match="opposite"):
        synthetic_lists(several(known=known), "multi-condition", partial=True, negated=True)
    with pytest.raises(UsageError, match="partial is for 'multi-condition'"):
        synthetic_lists(single(), partial=True)


def test_numbers_of_programs_and_one_list_a_query():
    lists = synthetic_lists(several(), "multi-condition", num_low=1, num_irrelevant=2, one_list_per_query=True)
    assert len(lists) == 3 * 4  # tasks, and combinations of two and of three
    assert all(len(each.codes) == 4 and each.grades[2:] == (0, 0) for each in lists)
    assert all(len(set(each.codes)) == len(each.codes) for each in lists)


@pytest.mark.parametrize("kind", ["synh-rank", "multi-condition", "srcl"])
def test_draws_do_not_depend_on_the_order_of_variants_and_do_on_the_seed(kind):
    variants = several(num_tasks=8)
    shuffled = random.Random(0).sample(variants, len(variants))
    assert synthetic_lists(variants, kind) == synthetic_lists(shuffled, kind)
    assert synthetic_lists(variants, kind) != synthetic_lists(variants, kind, seed=7)


def test_variants_that_contradict_each_other_are_refused():
    both = [*several(), variant(0, "speed", "low", "all")]
    with pytest.raises(QualcodeError, match="both high and low"):
        synthetic_lists(both, "multi-condition")
    with pytest.raises(QualcodeError, match="1 texts are both high and low"):
        synthetic_lists(both)
    with pytest.raises(QualcodeError, match="has dimension 'beauty'; known are: speed, memory"):
        synthetic_lists([variant(0, "beauty", "low", "x")])
    with pytest.raises(UsageError, match="choose from: synh-rank, multi-condition, srcl"):
        synthetic_lists(single(), "pairs")
    with pytest.raises(UsageError, match="no opposite"):
        synthetic_lists(single(), "srcl", negated=True)
    with pytest.raises(UsageError, match="there are 1 to 3 dimensions"):
        multi_condition_lists(graded_variants(several()), num_conditions=[4])


# ---- The data set ----


@pytest.fixture
def stored(tmp_path):
    def store(variants, name="variants.jsonl"):
        write_variants(tmp_path / name, variants)
        return tmp_path / name

    return store


def run_script(*arguments):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["synth_rank_train.py", *map(str, arguments)])
        with pytest.raises(SystemExit) as exit_:
            runpy.run_path(str(SCRIPT), run_name="__main__")
    return exit_.value.code


@pytest.mark.parametrize("kind", ["synh-rank", "multi-condition", "srcl"])
def test_the_data_set_loads_as_it_was_made(tmp_path, stored, kind, capsys):
    out = tmp_path / "lists"
    assert run_script(stored(several()), "--out", out, "--kind", kind, "--seed", 5) == 0
    summary = json.loads(capsys.readouterr().out)
    expected = synthetic_lists(several(), kind, seed=5)
    assert summary["configs"] == {kind: len(expected)}
    rows = load_dataset(str(out), split="train", streaming=True)
    assert list(rows.features) == ["id", "instruction", "query", "codes", "grades", "problem_id"]
    assert lists_from_dataset(rows) == expected
    card = (out / "README.md").read_text(encoding="utf-8")
    assert f"{len(expected)} lists of 3 tasks" in card and "{{" not in card and "{%" not in card
    report = json.loads((out / "report.json").read_text(encoding="utf-8"))
    assert report["lists"]["grades"] == Counter(str(grade) for each in expected for grade in each.grades)
    assert report["variants"]["total"] == len(several())


def test_the_same_variants_make_the_same_bytes_and_a_build_is_replaced(tmp_path, stored):
    out = tmp_path / "lists"
    first = build_synth_rank_train([stored(single())], out)
    content = {path.relative_to(out): path.read_bytes() for path in out.rglob("*") if path.is_file()}
    halves = [stored(single()[::2], "a.jsonl"), stored(single()[1::2], "b.jsonl")]
    assert build_synth_rank_train(halves[::-1], out) == first
    assert {path.relative_to(out): path.read_bytes() for path in out.rglob("*") if path.is_file()} == content
    build_synth_rank_train(halves, out, kind="srcl", license="cc-by-4.0")
    assert sorted(path.name for path in out.iterdir()) == ["README.md", "report.json", "srcl"]
    assert "license: cc-by-4.0" in (out / "README.md").read_text()


def test_what_cannot_be_made_leaves_nothing_behind(tmp_path, stored, capsys):
    out = tmp_path / "lists"
    assert run_script(stored(single()), "--out", out, "--kind", "multi-condition") == 1
    assert "no list of 2 or 3 conditions" in capsys.readouterr().err
    assert run_script(stored(single()), "--out", out, "--kind", "pairs") == 2
    assert run_script(tmp_path / "absent.jsonl", "--out", out) == 1
    assert list(tmp_path.iterdir()) == [tmp_path / "variants.jsonl"]
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes").write_text("x")
    assert run_script(stored(single()), "--out", tmp_path / "mine") == 2


def test_text_from_outside_cannot_end_a_table(tmp_path, stored):
    hostile = [replace(each, source="a | b <script>\n# x") for each in single()]
    build_synth_rank_train([stored(hostile)], tmp_path / "lists", license="other")
    card = (tmp_path / "lists" / "README.md").read_text()
    assert "<script>" not in card and "\n# x" not in card
