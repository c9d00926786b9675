"""Quality dimensions: found by module name, instructions, rules for pairs and labels against brute force."""

import itertools
import random
import subprocess
import sys

import pytest

from hf_qualcode.quality import dimension_names, get_dimension, instruction_for
from hf_qualcode.quality.label_rules import label_thirds


def test_names_are_in_the_order_of_instructions():
    assert dimension_names() == ("speed", "memory", "maintainability")


@pytest.mark.parametrize("name", dimension_names())
def test_a_dimension_has_every_part(name):
    module = get_dimension(name)
    assert dimension_names().index(name) + 1 == module.PLACE
    for part in ("PHRASE", "NEGATED_PHRASE", "UNIT"):
        assert getattr(module, part)
    assert module.reason_without_pair([]) is not None
    assert module.label([]) == []
    assert not module.is_pair(5.0, 5.0)
    assert not module.is_clear(5.0, 5.0)


def test_names_are_found_without_importing_anything_large():
    program = (
        "import sys; from hf_qualcode.quality import dimension_names; dimension_names();"
        "loaded = [n for n in sys.modules if n.startswith('hf_qualcode.quality.')]; assert not loaded, loaded"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize(
    ("quality", "negated", "instruction"),
    [
        ((), False, "Retrieve code that is relevant"),
        ((), True, "Retrieve code that is relevant"),
        ("speed", False, "Retrieve code that is fast"),
        (["memory"], False, "Retrieve code that is memory-efficient"),
        (("maintainability",), False, "Retrieve code that is maintainable"),
        (("memory", "speed"), False, "Retrieve code that is fast and memory-efficient"),
        (("maintainability", "speed", "speed"), False, "Retrieve code that is fast and maintainable"),
        (("maintainability", "memory", "speed"), False,
         "Retrieve code that is fast, memory-efficient and maintainable"),
        ("speed", True, "Retrieve code that is slow"),
        (("maintainability", "memory", "speed"), True,
         "Retrieve code that is slow, memory-hungry and hard to maintain"),
    ],
)  # fmt: skip
def test_instructions(quality, negated, instruction):
    assert instruction_for(quality, negated=negated) == instruction


@pytest.mark.parametrize("quality", ["fast", ["speed", "sandbox"], [""], [None]])
def test_an_unknown_quality_lists_the_legal_ones(quality):
    with pytest.raises(ValueError, match="speed, memory, maintainability"):
        instruction_for(quality)


def test_speed_and_memory_need_more_than_twice():
    for name in ("speed", "memory"):
        module = get_dimension(name)
        assert module.is_pair(10, 21)
        assert not module.is_pair(10, 20)
        assert module.is_pair(0, 1)
        assert [module.reason_without_pair(values) for values in ([], [3], [10, 20], [10, 15, 21])] == [
            "no_program_measured", "one_program_measured", "less_than_twice_apart", None
        ]  # fmt: skip


def test_smells_need_one_and_for_all_pairs_twice_and_three_more():
    module = get_dimension("maintainability")
    assert module.is_pair(0, 1)
    assert not module.is_pair(1, 9)
    clear = {(p, n) for p in range(6) for n in range(13) if module.is_clear(p, n)}
    assert clear == {(p, n) for p in range(6) for n in range(13) if n >= max(2 * p, p + 3)}
    assert [module.reason_without_pair(values) for values in ([], [1, 2], [0, 0], [0, 1])] == [
        "no_program_analysed", "no_program_without_smells", "no_program_with_smells", None
    ]  # fmt: skip
    assert module.label([0, 1, 7, 0]) == [1, 0, 0, 1]


@pytest.mark.parametrize(
    ("values", "labels"),
    [
        ([1, 2], [None, None]),
        ([3, 1, 2], [0, 1, None]),
        ([1, 1, 2], [None, None, 0]),
        ([1, 2, 2], [1, None, None]),
        ([5, 5, 5], [None, None, None]),
        ([1, 2, 3, 4, 5], [1, None, None, None, 0]),
        ([1, 1, 2, 3, 4, 4], [1, 1, None, None, 0, 0]),
        ([1, 2, 2, 3, 4, 5], [1, None, None, None, 0, 0]),
        ([1, 2, 3, 3, 3, 4, 5, 5, 6], [1, 1, None, None, None, None, 0, 0, 0]),
    ],
)
def test_thirds_by_hand(values, labels):
    assert label_thirds(values) == labels


def test_thirds_keep_their_promises_on_random_values():
    rng = random.Random(0)
    for _ in range(300):
        values = [rng.randrange(rng.choice((3, 8, 100))) for _ in range(rng.randrange(20))]
        labels, third = label_thirds(values), len(values) // 3
        for (a, label_a), (b, label_b) in itertools.combinations(zip(values, labels, strict=True), 2):
            assert a != b or label_a == label_b
            if {label_a, label_b} == {0, 1}:
                assert (a < b) == (label_a == 1)
        assert labels.count(1) <= third
        assert labels.count(0) <= third
        for label, side in ((1, sorted(values)), (0, sorted(values, reverse=True))):
            if third and side[third - 1] != side[third]:
                assert labels.count(label) == third
