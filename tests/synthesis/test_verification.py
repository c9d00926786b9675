"""Verification: arguments grow in their own types, results are compared in full, and verdicts rest on measurements."""

import ast

import pytest

from hf_qualcode.quality.sandbox import Sandbox
from hf_qualcode.quality.smells import load_engine
from hf_qualcode.synthesis.verification import (
    MIN_BYTES,
    MIN_SECONDS,
    OUTCOMES,
    Candidate,
    FunctionSubject,
    ProgramSubject,
    _judge_memory,
    _judge_speed,
    verify,
)
from hf_qualcode.synthesis.verifying.comparing import same, settled
from hf_qualcode.synthesis.verifying.enlarging import enlarge, linked_lengths, modes_for
from hf_qualcode.synthesis.verifying.subjects import literal_calls
from hf_qualcode.types import QualcodeError, UsageError


@pytest.fixture(scope="module")
def sandbox():
    try:
        return Sandbox.open()
    except QualcodeError as error:
        pytest.skip(f"no program can be run on this machine: {error}")


# --- larger arguments


def shape(value):
    """The types in a value, with how many of each left out."""
    if isinstance(value, list | set | frozenset):
        return (type(value), frozenset(map(shape, value)))
    if isinstance(value, tuple):
        return (tuple, frozenset(map(shape, value)))
    if isinstance(value, dict):
        return (dict, frozenset(map(shape, value)), frozenset(map(shape, value.values())))
    return type(value)


@pytest.mark.parametrize(
    "value",
    [
        [1, 5, 3], (4, 4, 2), ["ab", "c"], "abcab", {3, 4}, [1.5, 2.0], [(1, "a"), (2, "b")],
        {"ab": [1], "cd": [2]}, {10: "x", 20: "y"}, frozenset(["ab"]),
        [True, False],
        [[1, 2], [3, 4]], [[1], [2, 3]], b"abc", ["a", 1], [None, 1],
    ],
    ids=repr,
)  # fmt: skip
@pytest.mark.parametrize("scale", [2.0, 10.0, 50.0])
def test_containers_grow_in_their_types(value, scale):
    (larger,) = enlarge([value], scale, "containers", {})
    assert shape(larger) == shape(value)
    assert len(larger) > len(value) or (isinstance(value, list) and len(larger[0]) > len(value[0]))
    assert enlarge([value], scale, "containers", {}) == [larger], "the same again"


def test_no_more_distinct_values_than_there_are():
    assert enlarge([{"a": 1, "b": 2}], 1000.0, "containers", {}) == [{"a": 1, "b": 2}]


def test_what_lists_were_they_still_are():
    (ascending,) = enlarge([[1, 3, 8, 9]], 20.0, "containers", {})
    assert ascending == sorted(ascending) and len(set(ascending)) == len(ascending) == 80
    (descending,) = enlarge([[9, 5, 5, 2]], 5.0, "containers", {})
    assert descending == sorted(descending, reverse=True)
    (bits,) = enlarge([[0, 1, 1]], 30.0, "containers", {})
    assert set(bits) == {0, 1} and len(bits) == 90
    (square,) = enlarge([[[1, 2], [3, 4]]], 16.0, "containers", {})
    assert len(square) == 8 and {len(row) for row in square} == {8}
    (long,) = enlarge([[[1, 2], [3, 4], [5, 6]]], 16.0, "rows", {})
    assert len(long) == 48 and {len(row) for row in long} == {2}
    (pairs,) = enlarge([[(1, "a"), (2, "b")]], 5.0, "containers", {})
    assert len(pairs) == 10 and {tuple(map(type, pair)) for pair in pairs} == {(int, str)}


def test_numbers_grow_in_their_kind():
    (prime, even, odd, negative, real, zero) = enlarge([13, 12, 15, -4, 2.5, 0], 1000.0, "numbers", {})
    assert prime > 13_000 and all(prime % divisor for divisor in range(2, int(prime**0.5) + 1))
    assert even % 2 == 0 and even >= 12_000
    assert odd % 2 == 1 and odd >= 15_000
    assert negative == -4000 and real == 2500.0 and zero == 0
    with pytest.raises(OverflowError):
        enlarge([10**6], 10.0**6, "numbers", {})


def test_numbers_that_count_follow():
    calls = [[[1, 2, 3], 3, "x"], [[4, 5], 2, "y"]]
    links = linked_lengths(calls)
    assert links == {1: (0, 0)}
    larger = enlarge(calls[0], 10.0, "containers", links)
    assert larger[1] == len(larger[0]) == 30 and larger[2] == "x"
    assert linked_lengths([[[1, 2, 3], 2], [[4, 5], 1]]) == {1: (0, -1)}
    assert linked_lengths([[[1, 2, 3], 3], [[4, 5], 1]]) == {}
    assert modes_for(calls) == ("containers",)
    assert modes_for([[[1], 7]]) == ("containers", "all", "numbers")
    assert modes_for([[7]]) == ("numbers",)
    assert modes_for([["a", None]]) == ()
    assert modes_for([[[[1, 2], [3, 4]]]]) == ("containers",)
    assert modes_for([[[[1, 2], [3, 4]]], [[[1, 2], [3, 4], [5, 6]]]]) == ("rows", "containers")
    with pytest.raises(OverflowError):
        enlarge([[1, 2]], 10.0**6, "containers", {})


# --- comparing


@pytest.mark.parametrize(
    ("first", "second", "is_same"),
    [
        (1, 1, True), (1, True, False), (1, 1.0, False), ([1, 2], [1, 2], True), ([1, 2], (1, 2), False),
        ([1, True], [1, 1], False), (0.1 + 0.2, 0.3, True), (0.1, 0.2, False), (float("nan"), float("nan"), True),
        ([float("nan")], [float("nan")], True), ({1: 2, 3: 4}, {3: 4, 1: 2}, False), ({1, 2}, {2, 1}, True),
        ([[1.0]], [[1]], False), ("a", b"a", False), (object(), object(), False), (None, None, True),
    ],
)  # fmt: skip
def test_same(first, second, is_same):
    assert same(first, second) is is_same


def test_iterators_are_compared_by_their_items():
    assert same(settled(x for x in [1, 2]), settled(x for x in [1, 2]))
    assert not same(settled(map(int, "12")), settled(map(int, "13")))


def test_calls_are_read_from_assertions():
    code = "def f(x, y=1):\n    return x\n\ndef g(x):\n    return x\n"
    tests = [
        "assert f([1, 2], y=3) == 1",
        "assert f([1, 2], y=3) == 2",
        "assert set(g((1, -2))) == {1}",
        "assert f(open('x')) == 1",
        "assert h(1) == 2",
        "assert f(float('inf')) == 1",
        "not python (",
    ]
    found = literal_calls(code, tests)
    assert found == [("f", [[1, 2]], {"y": 3}), ("g", [(1, -2)], {})]
    assert ast.literal_eval(repr(found)) == found


# --- verdicts

SEARCH = "def f(xs):\n    known = set(xs)\n    return sum(x in known for x in xs)\n"
TESTS = ("assert f([1, 2, 3]) == 3", "assert f([1, 2, 3, 5, 5]) == 5")


def outcomes(sandbox, subject, *candidates, engine=None):
    verdicts = verify(sandbox, subject, [Candidate(*one) for one in candidates], engine)
    assert {verdict.outcome for verdict in verdicts} <= set(OUTCOMES)
    return verdicts


def test_speed_and_memory_of_functions(sandbox):
    slower = SEARCH.replace("set(xs)", "list(xs)")
    larger = SEARCH.replace("set(xs)", "set(xs)\n    kept = [[x] for x in xs]")
    slow, alike, large, wrong = outcomes(
        sandbox,
        FunctionSubject(SEARCH, TESTS),
        ("speed", "low", slower),
        ("speed", "low", SEARCH.replace("known", "other")),
        ("memory", "low", larger),
        ("memory", "low", SEARCH.replace("sum(", "len(xs) - sum(")),
    )
    assert slow.outcome == "verified"
    assert slow.evidence["low"] >= MIN_SECONDS and slow.evidence["low"] > 1.5 * slow.evidence["high"]
    assert alike.outcome == "not_worse"
    assert large.outcome == "verified"
    assert large.evidence["low"] - large.evidence["high"] >= MIN_BYTES
    assert wrong.outcome == "wrong_output"


def test_levels_say_which_side_should_be_worse():
    trial = {"seconds": (0.1, 0.4), "peaks": (1_000_000, 5_000_000), "mode": "all"}
    for judge in (_judge_speed, _judge_memory):
        assert judge(Candidate("speed", "low", ""), trial).outcome == "verified"
        assert judge(Candidate("speed", "high", ""), trial).outcome == "not_worse"
    assert _judge_speed(Candidate("speed", "low", ""), {"seconds": (0.01, 0.09)}).outcome == "too_small"
    # Half as much again, but less than 1 MB more.
    assert _judge_memory(Candidate("memory", "low", ""), {"peaks": (1_200_000, 2_000_000)}).outcome == "not_worse"
    assert _judge_memory(Candidate("memory", "low", ""), {"peaks": (9_000_000, 11_000_000)}).outcome == "not_worse"


def test_what_only_larger_inputs_show(sandbox):
    """Equal on the tests, and not beyond: another answer, or a failure."""
    code = "def f(xs):\n    return sum(xs)\n"
    tests = ("assert f([1, 2, 3]) == 6", "assert f([4]) == 4")
    other = "def f(xs):\n    return sum(xs[:5])\n"
    fails = "def f(xs):\n    return sum(xs) if len(xs) < 5 else xs[-10**9]\n"
    changes = "def f(xs):\n    total = sum(xs)\n    if len(xs) > 5:\n        xs.clear()\n    return total\n"
    found = outcomes(
        sandbox, FunctionSubject(code, tests), *(("speed", "low", text) for text in (other, fails, changes))
    )
    assert [verdict.outcome for verdict in found] == ["wrong_output"] * 3


def test_candidates_cannot_report_for_themselves(sandbox):
    code = "def f(xs):\n    return sum(xs)\n"
    fakes = 'import os\nos.write(1, b\'0 {"outcome": "measured", "trials": []}\\n\')\n' + code
    ends = "import os\nos._exit(0)\n"
    first, second, fine = outcomes(
        sandbox,
        FunctionSubject(code, ("assert f([1, 2]) == 3",)),
        ("speed", "low", fakes),
        ("memory", "low", ends),
        ("memory", "low", "def f(xs):\n    kept = [[x] for x in xs]\n    return sum(xs)\n"),
    )
    assert first.outcome != "verified"
    assert second.outcome == "over_the_limits"
    assert fine.outcome == "verified"


def test_originals_that_cannot_be_used(sandbox):
    code = "def f(xs):\n    return sum(xs)\n"
    same_code = ("speed", "low", code.replace("xs", "ys"))
    assert outcomes(sandbox, FunctionSubject(code, ("assert f([1]) == 2",)), same_code)[0].outcome == "original_fails"
    assert outcomes(sandbox, FunctionSubject(code, ("assert True",)), same_code)[0].outcome == "no_inputs"
    assert outcomes(sandbox, ProgramSubject("print(1)\n"), ("speed", "low", "print(1)\n"))[0].outcome == "no_inputs"
    small = FunctionSubject("def f(x):\n    return x\n", ("assert f(None) is None",))
    assert outcomes(sandbox, small, ("speed", "low", "def f(y):\n    return y\n"))[0].outcome == "no_inputs"
    assert verify(sandbox, small, []) == []


def test_programs(sandbox):
    code = "n = int(input())\nxs = list(map(int, input().split()))\nprint(sum(xs))\n"
    subject = ProgramSubject(
        code, ("3\n1 2 3\n",), tuple(f"{n}\n{' '.join(map(str, range(n)))}\n" for n in (100, 1000, 20_000))
    )
    quadratic = code.replace("print(sum(xs))", "ys = []\nfor x in xs:\n    ys = ys + [x]\nprint(sum(ys))")
    boxed = code.replace("print(sum(xs))", "ys = [[[x]] for x in xs]\nprint(sum(xs))")
    late = code.replace("print(sum(xs))", "print(sum(xs) + (n > 5))")
    ends = code + "raise SystemExit(1)\n"
    found = outcomes(
        sandbox,
        subject,
        ("speed", "low", quadratic),
        ("memory", "low", boxed),
        ("speed", "low", late),
        ("speed", "low", ends),
        ("memory", "low", code.replace("n =", "count =")),
    )
    assert [verdict.outcome for verdict in found] == [
        "verified",
        "verified",
        "wrong_output",
        "wrong_output",
        "not_worse",
    ]
    assert found[0].evidence["unit"] == "cpu_seconds" and found[1].evidence["unit"] == "peak_bytes"


def test_smells(sandbox):
    code = "def f(xs):\n    return len(xs)\n"
    worse = "def f(xs):\n    unused = 1\n    return len(xs)\n"
    wrong = "def f(xs):\n    unused = 1\n    return len(xs) + (len(xs) > 4)\n"
    subject = FunctionSubject(code, ("assert f([1]) == 1",))
    with load_engine("ruff") as engine:
        low, high, other = outcomes(
            sandbox,
            subject,
            ("maintainability", "low", worse),
            ("maintainability", "high", worse),
            ("maintainability", "low", wrong),
            engine=engine,
        )
    assert low.outcome == "verified"
    assert low.evidence["rules"] == {"F841": 1} and (low.evidence["high"], low.evidence["low"]) == (0, 1)
    assert high.outcome == "not_worse"
    assert other.outcome == "wrong_output"


def test_wrong_calls(sandbox):
    subject = FunctionSubject("def f():\n    pass\n", ())
    with pytest.raises(UsageError, match="beauty"):
        verify(sandbox, subject, [Candidate("beauty", "low", "")])
    with pytest.raises(UsageError, match="smell engine"):
        verify(sandbox, subject, [Candidate("maintainability", "low", "")])
