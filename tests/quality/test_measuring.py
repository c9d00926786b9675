"""Comparing measured programs: statistics against brute force, verdicts on made-up and on real runs."""

import ast
import itertools
import json
import math
import random
import statistics

import pytest

from hf_qualcode.quality.measuring import (
    Comparison,
    Measured,
    Startup,
    calibrate,
    compare_instructions,
    compare_memory,
    compare_speed,
    hodges_lehmann,
    import_only,
    measure,
    outputs_equal,
)
from hf_qualcode.quality.sandbox import Limits, Run, Sandbox
from hf_qualcode.types import QualcodeError, UsageError


_STARTUP = Startup(0.02, 0.001, 10 << 20, 1_000_000)


def _measured(seconds, memory=(50 << 20,), outcome="ok", instructions=None):
    return Measured(outcome, 0, b"", b"", tuple(seconds), tuple(memory), instructions)


def _verdict(first, second, **options):
    return compare_speed(_measured(first), _measured(second), _STARTUP, _STARTUP, **options).verdict


# --- statistics ----------------------------------------------------------------------------------------------------


def _signed_rank_p(values, centre):
    """Two-sided exact p of the signed-rank test, by all sign patterns."""
    shifted = sorted((value - centre for value in values), key=abs)
    ranks = range(1, len(values) + 1)
    observed = sum(rank for rank, value in zip(ranks, shifted, strict=True) if value > 0)
    sums = [
        sum(r for r, s in zip(ranks, signs, strict=True) if s)
        for signs in itertools.product((0, 1), repeat=len(values))
    ]
    low = sum(total <= observed for total in sums) / len(sums)
    high = sum(total >= observed for total in sums) / len(sums)
    return min(1.0, 2 * min(low, high))


@pytest.mark.parametrize("count", [6, 7, 9])
def test_the_interval_is_the_tests_inversion(count):
    values = [random.Random(count).gauss(0, 1) * (index + 1) for index in range(count)]
    estimate = hodges_lehmann(values)
    step = 1e-6
    for bound, inside in ((estimate.low, step), (estimate.high, -step)):
        assert _signed_rank_p(values, bound + inside) > 0.05
        assert _signed_rank_p(values, bound - inside) <= 0.05
    means = [(a + b) / 2 for a, b in itertools.combinations_with_replacement(values, 2)]
    assert estimate.centre == pytest.approx(statistics.median(means))


def test_too_few_values_have_no_interval():
    for count in range(1, 6):
        estimate = hodges_lehmann([1.0] * count)
        assert estimate == (1.0, None, None)
    assert hodges_lehmann([1.0, 2, 3, 4, 5, 6])[1:] == (1.0, 6.0)
    with pytest.raises(ValueError, match="at least one"):
        hodges_lehmann([])


def test_the_interval_covers_as_it_says():
    generator = random.Random(1)
    missed = 0
    for _ in range(2000):
        estimate = hodges_lehmann([generator.gauss(0, 1) for _ in range(7)])
        missed += not estimate.low <= 0 <= estimate.high
    # 4.7 % by theory; three standard errors.
    assert 0.03 < missed / 2000 < 0.062


# --- verdicts ------------------------------------------------------------------------------------------------------


def test_verdicts_on_speed():
    slow = [0.52, 0.53, 0.55, 0.52, 0.53, 0.56, 0.52]
    fast = [0.12, 0.13, 0.12, 0.14, 0.12, 0.12, 0.13]
    assert _verdict(fast, slow) == "faster"
    assert _verdict(slow, fast) == "slower"
    assert _verdict(slow, slow) == "undecided"
    # 0.5 over 0.1 with start-up off: about 5.
    comparison = compare_speed(_measured(slow), _measured(fast), _STARTUP, _STARTUP)
    assert comparison.ratio == pytest.approx(4.8, rel=0.1)
    assert comparison.interval[0] < comparison.ratio < comparison.interval[1]
    assert _verdict(fast, slow, factor=2) == "faster"
    assert _verdict(fast, slow, factor=10) == "undecided"


def test_exchanged_programs_exchange_the_verdict():
    generator = random.Random(3)
    for _ in range(50):
        first = [0.1 * generator.lognormvariate(0, 0.3) + 0.02 for _ in range(7)]
        second = [0.13 * generator.lognormvariate(0, 0.3) + 0.02 for _ in range(7)]
        one = compare_speed(_measured(first), _measured(second), _STARTUP, _STARTUP)
        other = compare_speed(_measured(second), _measured(first), _STARTUP, _STARTUP)
        assert one.ratio * other.ratio == pytest.approx(1)
        assert one.interval[0] * other.interval[1] == pytest.approx(1)
        exchanged = {"faster": "slower", "slower": "faster", "undecided": "undecided"}
        assert other.verdict == exchanged[one.verdict]


def test_what_start_up_hides_is_undecided():
    # Both take about 1 ms beyond start-up, which itself varies by 1 ms.
    assert _verdict([0.0203] * 7, [0.0225] * 7) == "undecided"
    assert _verdict([0.0203] * 7, [0.0625] * 7) == "faster"
    # Faster than the empty program was: no logarithm of a negative number.
    assert math.isfinite(compare_speed(_measured([0.01] * 7), _measured([0.5] * 7), _STARTUP, _STARTUP).ratio)


def test_few_rounds_and_failures_are_undecided():
    assert _verdict([0.1] * 5, [0.9] * 5) == "undecided"
    failed = _measured([0.1], outcome="failed")
    assert compare_speed(failed, _measured([0.9] * 7), _STARTUP, _STARTUP) == Comparison(
        "undecided", None, None, "cpu_seconds"
    )
    with pytest.raises(UsageError, match=r"factor 0\.5"):
        _verdict([0.1] * 7, [0.9] * 7, factor=0.5)


def test_start_up_can_differ():
    heavy = Startup(0.22, 0.001, 40 << 20)
    first, second = _measured([0.32] * 7), _measured([0.17] * 7)
    assert compare_speed(first, second, _STARTUP, _STARTUP).verdict == "slower"
    assert compare_speed(first, second, heavy, _STARTUP).verdict == "faster"


def test_verdicts_on_memory():
    def compare(first, second, **options):
        return compare_memory(_measured([1], first), _measured([1], second), _STARTUP, _STARTUP, **options)

    mib = 1 << 20
    assert compare([20 * mib, 20 * mib + 5000], [40 * mib, 40 * mib]).verdict == "smaller"
    assert compare([40 * mib], [20 * mib]).ratio == pytest.approx(3)
    assert compare([40 * mib], [20 * mib], factor=4).verdict == "undecided"
    # Below the floor nothing is told apart.
    assert compare([10 * mib + 4096], [10 * mib + 900_000]).verdict == "undecided"


def test_verdicts_on_instructions():
    def compare(first, second):
        one, other = (_measured([1], instructions=count) for count in (first, second))
        return compare_instructions(one, other, _STARTUP, _STARTUP)

    assert compare(3_000_000, 5_000_000).verdict == "faster"
    assert compare(3_000_000, 5_000_000).ratio == pytest.approx(0.5)
    assert compare(3_000_000, 3_010_000).verdict == "undecided"
    assert compare(3_000_000, None).ratio is None


# --- real runs -----------------------------------------------------------------------------------------------------


class _Recorder:
    """Stands where the sandbox does and keeps the order of the runs."""

    def __init__(self, outcomes=None):
        self.order, self.outcomes = [], outcomes or {}

    def run(self, program, stdin=b"", **options):
        self.order.append((program, options.get("count_instructions", False)))
        outcome = self.outcomes.get(program, "ok")
        return Run(outcome, outcome != "ok", b"", b"", 1.0, 1.0, 1, 5 if options.get("count_instructions") else None)


def test_rounds_are_interleaved():
    recorder = _Recorder()
    steps = []
    measure(recorder, ["a", "b", "c"], rounds=3, progress=lambda *step: steps.append(step))
    assert "".join(program for program, _ in recorder.order) == "abccbaabc"
    assert steps[-1] == ("measuring", 9, 9)


def test_failures_are_not_repeated():
    recorder = _Recorder({"b": "timeout"})
    first, second = measure(recorder, ["a", "b"], rounds=4, count_instructions=True)
    assert "".join(program for program, _ in recorder.order) == "abaaa" + "a"
    assert [count for _, count in recorder.order] == [False] * 5 + [True]
    assert (first.outcome, len(first.cpu_seconds), first.instructions) == ("ok", 4, 5)
    assert (second.outcome, len(second.cpu_seconds), second.instructions) == ("timeout", 1, None)
    with pytest.raises(UsageError, match="rounds 0"):
        measure(recorder, ["a"], rounds=0)


@pytest.fixture(scope="module")
def sandbox():
    try:
        return Sandbox.open(unsafe=True)
    except QualcodeError as error:
        pytest.skip(f"no program can be run on this machine: {error}")


def test_a_slow_program_is_slower(sandbox):
    slow = "print(sum(i * i for i in range(1_000_000)))"
    fast = "n = 999_999\nprint(n * (n + 1) * (2 * n + 1) // 6)"
    startup = calibrate(sandbox, rounds=3)
    first, second = measure(sandbox, [slow, fast], rounds=6)
    assert outputs_equal(first.stdout, second.stdout)
    assert compare_speed(first, second, startup, startup).verdict == "slower"
    # Everything can be written down.
    json.dumps([startup._asdict(), compare_speed(first, second, startup, startup)._asdict()])


def test_memory_without_the_interpreter(sandbox):
    startup = calibrate(sandbox, rounds=1)
    (large,) = measure(sandbox, ["data = b'x' * (64 << 20)"], rounds=1)
    assert large.net_memory_bytes(startup) == pytest.approx(64 << 20, rel=0.05)


def test_imports_alone(sandbox):
    text = "import sys\nimport fractions\nn = int(input())\nprint(n)\n"
    (whole,) = measure(sandbox, [import_only(text)], rounds=1, limits=Limits(cpu_seconds=20))
    assert (whole.outcome, whole.stdout) == ("ok", b"")


def test_import_only_keeps_imports_and_nothing_else():
    text = '''
"""Doc."""
from __future__ import annotations
import os, sys as system
from math import *
try:
    import numpy as np
except ImportError:
    import array
if sys.version_info > (3, 8):
    from collections import deque
def f():
    import json
import nothing_like_this
print("never", open(0).read())
'''
    kept = import_only(text)
    namespace = {}
    exec(compile(kept.replace("import numpy as np", "import cmath"), "kept", "exec"), namespace)
    assert {"os", "system", "sqrt", "array", "deque"} <= namespace.keys()
    assert "json" not in namespace
    calls = [node for node in ast.walk(ast.parse(kept)) if isinstance(node, ast.Call)]
    assert not calls
    assert import_only("print 'two'") == ""
    assert import_only("") == ""


# --- outputs -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second", "exact", "near"),
    [
        (b"1 2\n3\n", "1 2  \r\n3\n\n\n", True, True),
        ("", "\n \n", True, True),
        ("1 2", "1\n2", False, True),
        ("a", "b", False, False),
        ("1.0000001", "1.0", False, True),
        ("1e9", "1000000000.5", False, True),
        ("0.1", "0.2", False, False),
        ("1", "1 1", False, False),
        ("nan", "nan", True, True),
        ("nan", "1", False, False),
        ("10000000000000001", "10000000000000002", False, False),
        (" 1", "1", False, True),
        (b"\xff", b"\xff\n", True, True),
    ],
)
def test_outputs(first, second, exact, near):
    assert outputs_equal(first, second) is exact
    assert outputs_equal(second, first) is exact
    assert outputs_equal(first, second, tolerance=1e-6) is near


def test_import_only_says_nothing_about_odd_literals(recwarn):
    assert import_only("import os\nprint(1or 2, '\\d', 1 is 1)\n").count("import os") == 1
    assert not recwarn.list
