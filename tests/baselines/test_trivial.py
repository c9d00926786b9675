"""Scorers of one idea each, against values counted by hand."""

import numpy as np
import pytest

from hf_qualcode.baselines.trivial import TRIVIAL_SCORERS
from hf_qualcode.evaluation.protocols import Scorer
from hf_qualcode.metrics import quality_preference_accuracy


LOOPS = """import sys, numpy as np
from math import gcd, sqrt


def read():
    return [int(x) for x in sys.stdin.readline().split()]

for i in range(3):
    while i:
        print([a * b for a in read() for b in read()])
        i -= 1
"""
PLAIN = "n = int(input())\nprint(n)"


def scores(name, *codes):
    return TRIVIAL_SCORERS[name].score(["i"] * len(codes), ["q"] * len(codes), codes).tolist()


def test_the_scorers_of_the_issue():
    assert set(TRIVIAL_SCORERS) == {
        *("random", "shorter", "longer", "fewer-lines", "fewer-imports", "no-numpy", "reads-stdin"),
        "less-loop-nesting",
    }  # fmt: skip
    for name, scorer in TRIVIAL_SCORERS.items():
        assert scorer.name == name
        assert scorer.description
        assert isinstance(scorer, Scorer)


def test_values_counted_by_hand():
    assert scores("random", LOOPS, PLAIN) == [0, 0]
    assert scores("shorter", LOOPS, PLAIN) == [-len(LOOPS), -25]
    assert scores("longer", LOOPS, PLAIN) == [len(LOOPS), 25]
    assert scores("fewer-lines", LOOPS, PLAIN, "", "\n \n") == [-8, -2, 0, 0]
    assert scores("fewer-imports", LOOPS, PLAIN) == [-4, 0]
    assert scores("no-numpy", LOOPS, PLAIN, "import scipy.sparse", "from numba import njit") == [-1, 0, -1, -1]
    assert scores("no-numpy", "numpy = 1") == [0]
    assert scores("less-loop-nesting", LOOPS, PLAIN) == [-4, 0]


@pytest.mark.parametrize(
    ("code", "reads"),
    [
        ("import sys\nx = sys.stdin.read()", True),
        ("from sys import stdin\nx = stdin", True),
        ("import sys\ninput = sys.stdin.readline", True),
        ("x = open(0).read()", True),
        ("x = open('/dev/stdin')", True),
        ("import os\nx = os.read(0, 100)", True),
        ("x = input()", False),
        ("# sys.stdin\nx = 'sys.stdin'", False),
        ("x = open('0')", False),
        ("import sys\nsys.stdout.write('')", False),
    ],
)
def test_reading_stdin(code, reads):
    assert scores("reads-stdin", code) == [float(reads)]


@pytest.mark.parametrize(
    ("code", "depth"),
    [
        ("for i in x:\n    pass\nfor j in x:\n    pass", 1),
        ("while 1:\n    for i in x: pass", 2),
        ("def f():\n    for i in x: pass\nfor i in x:\n    f()", 1),
        ("x = [i for i in y for j in y if [k for k in y]]", 3),
        ("for i in [j for j in x]:\n    pass", 1),
        ("while [i for i in x]:\n    pass", 2),
        ("for i in x: pass\nelse:\n    for j in x: pass", 1),
        ("print(1)", 0),
    ],
)
def test_depth_of_loops(code, depth):
    assert scores("less-loop-nesting", code) == [-depth]


def test_text_that_is_not_python_3_is_read_as_far_as_it_can_be():
    code = "import numpy, os\nfrom re import sub\nprint 'x'\n"
    assert scores("no-numpy", code) == [-1]
    assert scores("fewer-imports", code) == [-2]
    assert scores("reads-stdin", code) == scores("less-loop-nesting", code) == [0]


@pytest.mark.parametrize("name", TRIVIAL_SCORERS)
def test_equal_code_equal_score_whatever_is_asked(name):
    codes = [LOOPS, PLAIN, LOOPS]
    given = TRIVIAL_SCORERS[name].score(["fast", "slow", "x"], ["a", "b", "c"], codes)
    assert given.dtype == np.float32
    assert given.shape == (3,)
    assert np.isfinite(given).all()
    assert given[0] == given[2]
    assert TRIVIAL_SCORERS[name].score([], [], []).shape == (0,)


def test_no_opinion_is_worth_one_half():
    result = quality_preference_accuracy(scores("random", LOOPS, PLAIN), scores("random", PLAIN, LOOPS))
    assert (result.half_credit, result.accuracy) == (0.5, 0)
