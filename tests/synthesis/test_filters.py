"""Which answers become variants: METHODS' filters, on each task and dimension."""

import random
import re
from collections import Counter, defaultdict
from itertools import product

import pytest

from hf_qualcode.quality.sandbox import Sandbox
from hf_qualcode.synthesis.answers import Answer
from hf_qualcode.synthesis.filters import (
    LEAST_PROGRAMS,
    REASONS,
    Candidate,
    filter_candidates,
    passes_tests,
    read_candidates,
    unfiltered,
)
from hf_qualcode.synthesis.plan import Plan
from hf_qualcode.synthesis.store import Record, RunStore
from hf_qualcode.synthesis.tasks import Task
from hf_qualcode.types import QualcodeError


TASKS = [Task("a", "Add.", ("assert f(1) == 2",)), Task("b", "Sort.")]
# Programs that differ in more than names, comments and layout, each in spellings that do not.
PROGRAMS = [
    [f"def f(x):\n    return x + {number}\n", f"def f(y):  # same\n    return (y + {number})\n"] for number in range(6)
]
PLAN = Plan(TASKS, "m", {"seed": 1}, dimensions=["speed", "memory"], num_samples=3)
KEYS = list(PLAN.request_keys())


def kept(key, code):
    return Candidate(key, Answer("kept", code))


def own(task="a", dimension="speed", level=None):
    return [key for key in KEYS if key.task_id == task and key.dimension == dimension and level in (None, key.level)]


def first_of(codes, task="a", dimension="speed"):
    """Candidates of one task and dimension with these programs, in the order of the plan."""
    return [kept(key, code) for key, code in zip(own(task, dimension), codes, strict=False)]


def test_different_programs_are_kept_with_all_that_is_known_of_them():
    codes = [PROGRAMS[number][0] for number in range(6)]
    found = filter_candidates(first_of(codes), TASKS, "model-x")
    assert found.counts == {"kept": 6}
    assert [variant.code for variant in found.variants] == codes
    for variant, key in zip(found.variants, own(), strict=True):
        assert (variant.task_id, variant.dimension) == ("a", "speed")
        assert (variant.level, variant.group) == (key.level, key.group)
        assert (variant.query, variant.source) == ("Add.", "model-x")


def test_what_repeats_another_one_of_its_side_goes():
    codes = [PROGRAMS[0][0], PROGRAMS[0][1], PROGRAMS[1][0], PROGRAMS[2][0], PROGRAMS[3][0], PROGRAMS[3][0]]
    found = filter_candidates(first_of(codes), TASKS, "m")
    assert found.counts == {"kept": 4, "duplicate": 2}
    assert [variant.code for variant in found.variants] == [codes[0], codes[2], codes[3], codes[4]]


def test_what_is_called_good_and_bad_goes_on_both_sides():
    codes = [PROGRAMS[0][0], PROGRAMS[1][0], PROGRAMS[2][0], PROGRAMS[0][1], PROGRAMS[3][0], PROGRAMS[4][0]]
    found = filter_candidates(first_of(codes), TASKS, "m")
    assert found.counts == {"kept": 4, "high_and_low": 2}
    assert PROGRAMS[0][0] not in {variant.code for variant in found.variants}


@pytest.mark.parametrize("number", range(1, 6))
def test_fewer_than_three_programs_are_none(number):
    """Counted after duplicates are gone (METHODS)."""
    codes = [PROGRAMS[0][1]] * (number > 0) + [PROGRAMS[place][0] for place in range(number)]
    found = filter_candidates(first_of(codes), TASKS, "m")
    assert len(found.variants) == (number if number >= LEAST_PROGRAMS else 0)
    assert LEAST_PROGRAMS == 3


def test_a_program_may_serve_two_dimensions_and_two_tasks():
    codes = [PROGRAMS[number][0] for number in range(6)]
    candidates = first_of(codes) + first_of(codes, dimension="memory") + first_of(codes, task="b")
    assert filter_candidates(candidates, TASKS, "m").counts == {"kept": 18}


def _by_hand(candidates):
    """The rule again, in other words: programs by what is left without names, comments and layout."""

    def mark(code):
        return re.search(r"\d+", code)[0]

    groups = defaultdict(list)
    for candidate in candidates:
        groups[candidate.key.task_id, candidate.key.dimension].append(candidate)
    left = []
    for group in groups.values():
        sides = defaultdict(set)
        for candidate in group:
            sides[mark(candidate.answer.code)].add(candidate.key.level)
        first = {}
        for candidate in group:
            if len(sides[mark(candidate.answer.code)]) == 1:
                first.setdefault(mark(candidate.answer.code), candidate)
        left += list(first.values()) if len(first) >= 3 else []
    return [(c.key, c.answer.code) for c in left]


def test_any_answers_are_filtered_as_by_hand_and_all_are_counted():
    draws = random.Random(0)
    outcomes = ["empty", "truncated", "no_code", "failed", "missing"]
    for _ in range(200):
        candidates = [
            Candidate(key, Answer(draws.choice(outcomes))) if draws.random() < 0.2
            else kept(key, draws.choice(draws.choice(PROGRAMS[: draws.randrange(2, 7)])))
            for key in KEYS
        ]  # fmt: skip
        found = filter_candidates(candidates, TASKS, "m")
        good = [one for one in candidates if one.answer.outcome == "kept"]
        assert [(variant.task_id, variant.dimension, variant.code) for variant in found.variants] == [
            (key.task_id, key.dimension, code) for key, code in _by_hand(good)
        ]
        assert sum(found.counts.values()) == len(candidates)
        assert found.counts.keys() <= REASONS.keys()
        for outcome in outcomes:
            assert found.counts[outcome] == sum(one.answer.outcome == outcome for one in candidates)


def test_without_filters_all_that_could_be_a_program_stays():
    keys = own()
    candidates = [
        kept(keys[0], PROGRAMS[0][0]), kept(keys[1], PROGRAMS[0][1]),
        Candidate(keys[2], Answer("truncated", "", "x =")),
        Candidate(keys[3], Answer("no_code")), Candidate(keys[4], Answer("missing")),
    ]  # fmt: skip
    found = unfiltered(candidates, TASKS, "m")
    assert [variant.code for variant in found.variants] == [PROGRAMS[0][0], PROGRAMS[0][1], "x ="]
    assert found.counts == {"kept": 3, "no_code": 1, "missing": 1}


def test_candidates_are_those_of_the_plan_in_its_order(tmp_path):
    code = "```python\nx = 1\n```"
    with RunStore(tmp_path) as store:
        store.append(Record(KEYS[5], code, "stop"))
        store.append(Record(KEYS[0], "", None, error="status 500"))
        store.append(Record(KEYS[1], "", None, error="status 500"))
        store.append(Record(KEYS[1], code, "length"))
        other = next(Plan(TASKS, "another", {}).request_keys())
        store.append(Record(other, code, "stop"))
        found = read_candidates(PLAN, store)
    assert [candidate.key for candidate in found] == KEYS
    outcomes = Counter(candidate.answer.outcome for candidate in found)
    assert outcomes == {"missing": len(KEYS) - 3, "failed": 1, "truncated": 1, "kept": 1}
    assert found[5].answer.code == "x = 1\n"


def test_an_error_after_an_answer_does_not_take_it_back(tmp_path):
    with RunStore(tmp_path) as store:
        store.append(Record(KEYS[0], "```\nx = 1\n```", "stop"))
        store.append(Record(KEYS[0], "", None, error="late"))
        assert read_candidates(PLAN, store)[0].answer.outcome == "kept"


def test_programs_that_fail_the_tasks_own_tests_are_dropped():
    try:
        is_right = passes_tests(Sandbox.open())
    except QualcodeError as error:
        pytest.skip(f"no program can be run on this machine: {error}")
    right = ["def f(x):\n    return x + 1\n", "def f(x):\n    return 1 + x\n", "f = lambda x: x - -1\n"]
    wrong = ["def f(x):\n    return x\n", "def g(x):\n    return x + 1\n", "raise SystemExit(1)\n"]
    stages = []
    found = filter_candidates(
        first_of(right + wrong), TASKS, "m", is_right=is_right, progress=lambda *state: stages.append(state)
    )
    assert [variant.code for variant in found.variants] == right
    assert found.counts == {"kept": 3, "fails_tests": 3}
    assert stages[-1] == ("programs tested", 6, 6)
    # A task without tests has none to fail.
    assert filter_candidates(first_of(wrong, task="b"), TASKS, "m", is_right=is_right).counts["fails_tests"] == 0


def test_other_languages_are_compared_as_they_stand():
    plan = Plan(TASKS[:1], "m", {}, dimensions=["speed"], language="java", num_samples=2)
    codes = ["int a = 1;", "int b = 1;", "int a = 1;", "int c;"]
    candidates = [kept(key, code) for key, code in zip(plan.request_keys(), codes, strict=True)]
    assert filter_candidates(candidates, TASKS, "m").counts == {"high_and_low": 2, "too_few": 2}


def test_every_combination_of_sides_and_repeats_is_counted_once():
    codes = ["def f(x):\n    return x\n", "def f(x):\n    return -x\n"]
    for chosen in product(codes, repeat=4):
        found = filter_candidates(first_of(chosen), TASKS, "m")
        assert sum(found.counts.values()) == 4
        assert not found.variants
