"""Training lists: what is in them, that draws do not depend on the order of the data, and what is refused."""

import random
from collections import Counter
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from hf_qualcode.quality import instruction_for
from hf_qualcode.rerank import RankingList, build_lists, lists_from_pairs, srcl_lists
from hf_qualcode.rerank.data import GradedVariant, lists_from_dataset, lists_to_dataset, negated_instruction
from hf_qualcode.types import PreferencePair, QualcodeError, UsageError


def variant(task, dimension, level, number):
    code = f"{task} {dimension} {level} {number}"
    return GradedVariant(f"task {task}", dimension, instruction_for(dimension), f"do {task}", code, level)


def variants(num_tasks=6, num_high=4, num_low=4, dimensions=("speed", "memory")):
    return [
        variant(task, dimension, level, i)
        for task in range(num_tasks)
        for dimension in dimensions
        for level, number in (("high", num_high), ("low", num_low))
        for i in range(number)
    ]


def pair(problem, positive, negative, dimensions=("speed",), instruction=None):
    return PreferencePair(
        f"{problem}/{positive}/{negative}/{dimensions}", instruction or instruction_for(dimensions), f"do {problem}",
        positive, negative, dimensions, "", problem, positive, negative,
    )  # fmt: skip


def test_a_list_holds_a_high_variant_low_ones_of_its_task_and_an_irrelevant_one():
    lists = build_lists(variants())
    assert len(lists) == 6 * 2 * 4
    for each in lists:
        task = each.problem_id.removeprefix("task ")
        dimension = each.id.split("/")[1]
        high, *low, other = each.codes
        assert each.grades == (2, 1, 1, 1, 1, 0)
        assert high.startswith(f"{task} {dimension} high")
        assert len(set(low)) == 4 and all(code.startswith(f"{task} {dimension} low") for code in low)
        assert not other.startswith(f"{task} ")
        assert (each.instruction, each.query) == (instruction_for(dimension), f"do {task}")
    assert len({each.codes[0] for each in lists}) == len(lists)
    assert len({each.codes[-1] for each in lists}) > 20  # drawn anew for each list


def test_draws_do_not_depend_on_the_order_of_the_data_and_do_on_the_seed():
    made = variants(num_low=9)
    shuffled = random.Random(1).sample(made, len(made)) + made[:5]
    for build in (build_lists, srcl_lists, partial(build_lists, one_list_per_query=True)):
        assert build(made) == build(shuffled)
        assert build(made) != build(made, seed=43)


def test_numbers_of_low_and_irrelevant_variants():
    lists = build_lists(variants(num_low=3), num_low=2, num_irrelevant=3)
    assert {each.grades for each in lists} == {(2, 1, 1, 0, 0, 0)}
    assert all(len(set(each.codes)) == 6 for each in lists)
    assert {each.grades for each in build_lists(variants(num_low=1), num_irrelevant=0)} == {(2, 1)}
    with pytest.raises(UsageError, match="num_low is 0; expected 1 or more"):
        build_lists(variants(), num_low=0)


def test_all_low_variants_are_drawn_alike_often():
    drawn = Counter(code for each in build_lists(variants(num_tasks=100, num_low=8)) for code in each.codes[1:5])
    by_number = Counter()
    for code, count in drawn.items():
        by_number[code.split()[-1]] += count
    assert max(by_number.values()) < 1.2 * min(by_number.values())


def test_one_list_per_query_draws_one_of_the_high_variants():
    lists = build_lists(variants(num_tasks=40), one_list_per_query=True)
    assert len({(each.problem_id, each.instruction) for each in lists}) == len(lists) == 80
    assert len({each.codes[0][-1] for each in lists}) == 4


def test_a_task_without_low_variants_makes_no_list_and_is_reported(caplog):
    made = [each for each in variants() if (each.task_id, each.level) != ("task 0", "low")]
    assert {each.problem_id for each in build_lists(made)} == {f"task {n}" for n in range(1, 6)}
    assert "2 of 12 tasks and dimensions make no list" in caplog.text
    with pytest.raises(QualcodeError, match="none of 2 tasks and dimensions has both a high and a low program"):
        build_lists(made[:8])


def test_what_is_relevant_is_never_irrelevant():
    # A second task has the same texts, a third one the same query, and only the last one is another.
    own = variants(num_tasks=1)
    copies = [replace(each, task_id="copy", query="do it again") for each in own]
    twins = [replace(each, task_id="twin", code=f"twin {each.code}") for each in own]
    others = [replace(each, task_id="other", query="do another", code=f"other {each.code}") for each in own]
    for each in build_lists(own + copies + twins + others, num_irrelevant=3):
        drawn = each.codes[5:]
        if each.problem_id in ("task 0", "twin"):
            assert all(code.startswith("other ") for code in drawn)
        elif each.problem_id == "copy":
            assert not {variant.code for variant in own} & set(drawn)


def test_too_few_other_tasks():
    with pytest.raises(QualcodeError, match=r"task 'task 0' needs 1 irrelevant programs and other tasks have 0"):
        build_lists(variants(num_tasks=1))
    with pytest.raises(QualcodeError, match="needs 5 irrelevant programs and other tasks have 4; give programs"):
        srcl_lists(variants(num_tasks=2, num_high=1, num_low=1))


def test_contradictions_are_refused():
    made = variants(num_tasks=2)
    with pytest.raises(QualcodeError, match="task 'task 0', dimension 'speed': 1 texts are both high and low"):
        build_lists([*made, replace(made[0], level="low")])
    with pytest.raises(QualcodeError, match="has two instructions or queries"):
        build_lists([*made, replace(made[0], query="do more")])
    with pytest.raises(QualcodeError, match="has level 'medium'; expected high or low"):
        build_lists([replace(made[0], level="medium")])


def test_srcl_lists_know_relevance_only():
    lists = srcl_lists(variants(num_tasks=30))
    assert len(lists) == len(build_lists(variants(num_tasks=30)))
    for each in lists:
        task = each.problem_id.removeprefix("task ")
        assert each.grades == (1, 0, 0, 0, 0, 0)
        assert len(set(each.codes)) == 6
        assert each.codes[0].startswith(f"{task} ") and not any(c.startswith(f"{task} ") for c in each.codes[1:])
    assert {each.codes[0].split()[2] for each in lists} == {"high", "low"}
    assert len({each.codes[0] for each in lists}) == len(lists)  # of one task, no program twice


def test_negated_lists_swap_grades():
    plain, both = build_lists(variants()), build_lists(variants(), negate=negated_instruction)
    assert [each for each in both if not each.id.endswith("/negated")] == plain
    twins = {each.id: each for each in both}
    for each in plain:
        twin = twins[f"{each.id}/negated"]
        assert (twin.codes, twin.grades) == (each.codes, (1, 2, 2, 2, 2, 0))
        assert twin.instruction == instruction_for(each.id.split("/")[1], negated=True)


@pytest.mark.parametrize("qualities", [("speed",), ("memory", "maintainability"), ("speed", "memory")])
def test_negated_instruction_goes_both_ways(qualities):
    assert negated_instruction(instruction_for(qualities)) == instruction_for(qualities, negated=True)
    assert negated_instruction(instruction_for(qualities, negated=True)) == instruction_for(qualities)


def test_an_instruction_without_a_known_opposite():
    with pytest.raises(QualcodeError, match="'Be quick' has no known opposite; give `negate`"):
        negated_instruction("Be quick")


def test_lists_of_pairs():
    pairs = [pair(p, f"{p} fast {i}", f"{p} slow {j}") for p in "abc" for i in range(2) for j in range(5)]
    pairs += [pair(p, f"{p} lean", f"{p} fast 0", ("memory",)) for p in "abc"]
    lists = lists_from_pairs(pairs)
    assert len(lists) == 9
    assert lists == lists_from_pairs(reversed(pairs))
    for each in lists:
        problem = each.problem_id
        *relevant, other = each.codes
        assert all(code.startswith(problem) for code in relevant) and not other.startswith(problem)
        assert each.grades == ((2, 1, 0) if "memory" in each.id else (2, 1, 1, 1, 1, 0))
        assert len(set(each.codes)) == len(each.codes)


def test_pairs_under_several_instructions_give_lists_of_distinct_ids():
    pairs = [pair(p, f"{p}+", f"{p}-", instruction=text) for p in "ab" for text in ("Find fast code", "Be quick")]
    lists = lists_from_pairs(pairs)
    assert len({each.id for each in lists}) == len(lists) == 4
    assert {each.instruction for each in lists} == {"Find fast code", "Be quick"}


def test_pairs_that_make_no_list():
    with pytest.raises(QualcodeError, match="of no pairs"):
        lists_from_pairs([])
    with pytest.raises(QualcodeError, match="prefers a program to itself"):
        lists_from_pairs([pair("a", "same", "same")])
    with pytest.raises(QualcodeError, match="problem|task 'a' needs 1 irrelevant"):
        lists_from_pairs([pair("a", "+", "-")])


def test_lists_survive_a_data_set(tmp_path):
    from datasets import Dataset

    lists = build_lists(variants(num_tasks=2), negate=negated_instruction)
    stored = lists_to_dataset(lists)
    stored.to_parquet(tmp_path / "lists.parquet")
    assert lists_from_dataset(Dataset.from_parquet(str(tmp_path / "lists.parquet"), cache_dir=tmp_path)) == lists
    taught = [replace(each, teacher_scores=tuple(map(float, each.grades))) for each in lists]
    assert lists_from_dataset(lists_to_dataset(taught)) == taught
    with pytest.raises(QualcodeError, match=r"has no teacher scores and others have \(1 of 17 without\)"):
        lists_to_dataset([*taught[:16], lists[16]])


def test_a_data_set_needs_four_columns_only():
    row = {"instruction": "i", "query": "q", "codes": ["a", "b"], "grades": [1, 0]}
    assert lists_from_dataset([row]) == [RankingList("row 0", "i", "q", ("a", "b"), (1, 0))]
    with pytest.raises(QualcodeError, match="row 1 has no grades; a training list has the columns"):
        lists_from_dataset([row, {key: row[key] for key in ("instruction", "query", "codes")}])


@pytest.mark.parametrize(
    ("codes", "grades", "teacher", "message"),
    [
        ((), (), None, "0 codes and 0 grades"),
        (("a",), (1, 0), None, "1 codes and 2 grades"),
        (("a", "b"), (1, -1), None, r"grade -1 \(int\); grades are whole numbers from 0 to 1000"),
        (("a", "b"), (1001, 0), None, "grade 1001"),
        (("a", "b"), (1.5, 0), None, "grade 1.5"),
        (("a", "b"), (float("nan"), 0), None, "grade nan"),
        (("a", "b"), (float("inf"), 0), None, "grade inf"),
        (("a", "b"), ("1", "0"), None, "grade '1'"),
        (("a", "b"), "10", None, "grades '10'"),
        (("a", "b"), (True, False), None, "grade True"),
        (("a", "b"), (None, 0), None, "grade None"),
        (("a", "b"), 1, None, "grades 1"),
        ("ab", (1, 0), None, r"'x' has codes 'ab' \(str\); expected a list"),
        ({"a": 1, "b": 0}, (1, 0), None, "codes .* expected a list"),
        (("a", 2), (1, 0), None, r"codes\[1\] 2 \(int\); expected text"),
        (("a", "b"), (1, 0), (1.0, float("nan")), "teacher score nan"),
        (("a", "b"), (1, 0), (1.0, float("inf")), "teacher score inf"),
        (("a", "b"), (1, 0), ("1", "2"), "teacher score '1'"),
        (("a", "b"), (1, 0), 1.0, "teacher_scores 1.0"),
        (("a", "b"), (1, 0), (1.0,), "2 codes and 1 teacher scores"),
    ],
)
def test_what_is_no_list(codes, grades, teacher, message):
    with pytest.raises(QualcodeError, match=message):
        RankingList("x", "i", "q", codes, grades, teacher)


def test_whole_numbers_of_any_kind_are_grades():
    whole = RankingList("x", "i", "q", ["a", "b", "c"], [2.0, np.int64(1), np.float32(0)], np.array([1, 2.5, 0]))
    assert whole == RankingList("x", "i", "q", ("a", "b", "c"), (2, 1, 0), (1.0, 2.5, 0.0))
    assert [type(grade) for grade in whole.grades] == [int] * 3


@pytest.mark.parametrize("column", ["instruction", "query"])
def test_what_is_asked_is_text(column):
    row = {"instruction": "i", "query": "q", "codes": ["a", "b"], "grades": [1, 0], column: ["q"]}
    with pytest.raises(QualcodeError, match=rf"list 'row 0' has {column} \['q'\] \(list\); expected text"):
        lists_from_dataset([row])


def test_rows_name_their_lists_by_text_or_number():
    row = {"instruction": "i", "query": "q", "codes": ["a", "b"], "grades": [1.0, 0.0]}
    [named, unnamed] = lists_from_dataset([{**row, "id": 0, "problem_id": 7}, row])
    assert (named.id, named.problem_id, unnamed.id, unnamed.problem_id) == ("0", "7", "row 1", "")
    assert lists_from_dataset(lists_to_dataset([named, unnamed])) == [named, unnamed]
    with pytest.raises(QualcodeError, match="row 0 is 'text'"):
        lists_from_dataset(["text"])


def test_one_list_a_query_is_one_of_those_of_all_pairs():
    pairs = [
        PreferencePair(
            f"{task}{i}{j}", "Retrieve code that is fast", f"q{task}", f"c{task}{i}", f"c{task}{j}", ("speed",), "",
            f"p{task}", "a", "b",
        )
        for task in range(12) for i in range(4) for j in range(i + 1, 5)
    ]  # fmt: skip
    every, drawn = lists_from_pairs(pairs), lists_from_pairs(pairs[::-1], one_list_per_query=True)
    assert len(every) == 4 * len(drawn) == 48
    assert {each.problem_id for each in drawn} == {each.problem_id for each in every}
    assert all(each in every for each in drawn)
    assert len({each.id.rpartition("/")[2] for each in drawn}) > 1  # not always the first
    assert drawn != lists_from_pairs(pairs, one_list_per_query=True, seed=7)
