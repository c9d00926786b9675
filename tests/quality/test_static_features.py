"""The static features and the scorer that is trained on them."""

import os
from pathlib import Path

import numpy as np
import pytest

from hf_qualcode.evaluation.protocols import Scorer, TrainableScorer
from hf_qualcode.languages import get_language
from hf_qualcode.quality import instruction_for
from hf_qualcode.quality.static_features import FEATURE_NAMES, static_features
from hf_qualcode.quality.static_scorer import (
    LEAST_SCALE,
    REGULARISATION,
    FittedStaticScorer,
    StaticFeatureScorer,
    feature_matrix,
)
from hf_qualcode.types import PreferencePair, QualcodeError


PROGRAM = '''
import sys
import numpy as np
from functools import lru_cache
from collections import deque, Counter as C
input = sys.stdin.readline
MOD = 10**9 + 7

@lru_cache(maxsize=None)
def count(n):
    """Docs."""
    return 1 if n < 2 else count(n - 1) % MOD

def main():
    n = int(input())
    table = [[0] * n for _ in range(n)]
    big = [False] * 10**6
    queue = deque([0])
    line = ""
    for i in range(n):
        for j in range(n):
            if j in big:
                line += str(i)
            table[i] = sorted(table[i])
        print(line[1:], C(line), np.zeros(3))
    while True:
        queue.popleft()
        break
    print(*table, sep="\\n")

if __name__ == "__main__":
    main()
'''


def named(code):
    return dict(zip(FEATURE_NAMES, static_features(code).tolist(), strict=True))


def test_features_of_a_program_counted_by_hand():
    features = named(PROGRAM)
    flags = {name for name, value in features.items() if value == 1 and "calls" not in name}
    assert flags >= {
        "imports sys", "imports numpy", "imports functools", "imports collections", "imports a heavy module",
        "reads from sys.stdin", "input is readline", "sort in a loop", "membership test in a loop", "slice in a loop",
        "string building in a loop", "print in a loop", "print of many", "print with end or sep", "recursion",
        "memoised by lru_cache", "main guard", "table of two dimensions", "loops nested twice", "while True",
        "modulus of contests", "constant of 10**9 or more", "list of 10**5 or more", "numpy call in a loop",
        "numpy table",
    }  # fmt: skip
    for absent in (
        "loops nested three times", "no import", "star import", "evaluates input", "nested function", "infinity",
        "loop at the top level", "imports math", "imports another module", "pop of the first", "opens file 0",
        "reads everything at once", "list of a range", "three-argument pow",
    ):  # fmt: skip
        assert features[absent] == 0, absent
    counts = {
        "imported modules": 5, "functions": 2, "for loops": 2, "while loops": 1, "comprehensions": 1,
        "list multiplications": 2, "calls popleft": 1, "makes a deque": 1, "makes a Counter": 1, "calls readline": 1,
        "calls input": 0, "calls print": 2, "calls sorted or sort": 1, "returns": 1, "remainders": 1,
        "membership tests": 1, "slices": 1, "breaks and continues": 1, "calls range": 3, "conditional expressions": 1,
    }  # fmt: skip
    for name, count in counts.items():
        assert features[name] == pytest.approx(np.log1p(count)), name
    assert features["log10 of the largest constant"] == pytest.approx(np.log10(10**9 + 7))


@pytest.mark.parametrize(
    ("code", "feature"),
    [
        ("n = eval(input())", "evaluates input"),
        ("x = open(0).read().split()", "opens file 0"),
        ("x = open(0).read().split()", "reads everything at once"),
        ("import sys\nx = sys.stdin.buffer.readline()", "reads buffered bytes"),
        ("while 1:\n    x = list(map(int, input().split()))", "input in a loop"),
        ("print('\\n'.join(map(str, x)))", "joins lines to print"),
        ("for i in x:\n    s = sum(x[:i])", "sum, min or max in a loop"),
        ("for i in x:\n    x.count(i)", "index, count or remove in a loop"),
        ("for i in x:\n    y = y + [i]", "list concatenation in a loop"),
        ("import copy\nfor i in x:\n    y = copy.deepcopy(x)", "copy in a loop"),
        ("def f(): pass\nfor i in x: f()", "call of own function in a loop"),
        ("x.pop(0)", "pop of the first"),
        ("for i in x:\n for j in x:\n  for k in x: pass", "loops nested three times"),
        ("for i in x:\n    for j in x: pass", "loop at the top level"),
        ("class A:\n    def walk(self):\n        self.walk()", "recursion"),
        ("from numba import njit\n@njit('i8(i8)')\ndef f(n): pass", "compiled by numba"),
        ("import numba as nb\n@nb.njit\ndef f(n): pass", "compiled by numba"),
        ("def f():\n    def g(): pass", "nested function"),
        ("x = [[0 for _ in y] for _ in y]", "table of two dimensions"),
        ("x = [[0 for _ in y] for _ in y]", "nested comprehension"),
        ("x = pow(2, 3, 5)", "three-argument pow"),
        ("x = 998244353", "modulus of contests"),
        ("x = float('inf')", "infinity"),
        ("x = [0] * 100001", "list of 10**5 or more"),
        ("x = [0] * (10 ** 5 + 5)", "list of 10**5 or more"),
        ("x = list(range(10))", "list of a range"),
        ("from math import *", "star import"),
        ("import antigravity_", "imports another module"),
        ("x = 1", "no import"),
    ],
)
def test_one_feature_at_a_time(code, feature):
    assert named(code)[feature] == 1
    assert named("x = 1 if 'a' else print(2)\nimport sys")[feature] == 0


def test_names_comments_and_layout_make_no_difference():
    renamed = PROGRAM.replace("table", "grid").replace("main", "solve").replace("line", "text").replace("queue", "q")
    renamed = renamed.replace("__solve__", "__main__").replace("count", "recursive").replace('"""Docs."""', "")
    renamed = "# A comment.\n" + renamed.replace("readtext", "readline").replace("    return", "    # why\n    return")
    np.testing.assert_array_equal(static_features(PROGRAM), static_features(renamed))


HOSTILE = {
    "empty": "",
    "not Python": "print 'x'",
    "null": "x = 1\0",
    "surrogate": "x = '\ud800'",
    "brackets": "(" * 5000,
    "sum": "x = " + "+".join(["a"] * 700),
    "list sum": "for i in x:\n    y += " + "+".join(["'a'"] * 700),
    "attributes": "x = a" + ".read" * 700,
    "calls": "x = a" + "(0)" * 700,
    "powers": "x = [0] * 9 ** 9 ** 9\ny = [0] * 10 ** 400",
    "negative power": "x = [0] * 10 ** -1\ny = 0 ** -1",
    "long number": "x = 0x" + "f" * 20_000,
    "product of long numbers": f"x = [0] * (0x{'f' * 9000} * 0x{'f' * 9000})",
    "infinite": "x = 1e999\ny = float(1e999)\nz = -1e999j",
    "functions": "".join(" " * i + "def f():\n" for i in range(90)) + " " * 90 + "f()",
    "comprehensions": "x = " + "[" * 50 + "a" + " for a in a]" * 50,
    "parentheses": "for i in x:\n    y += " + "('a' + " * 150 + "'a'" + ")" * 150,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_texts_have_finite_features(name):
    features = static_features(HOSTILE[name])
    assert features.shape == (len(FEATURE_NAMES),)
    assert np.isfinite(features).all()
    assert (features >= 0).all()


def test_names_are_distinct_and_about_one_hundred():
    assert len(set(FEATURE_NAMES)) == len(FEATURE_NAMES)
    assert 90 <= len(FEATURE_NAMES) <= 200
    assert not static_features("print 'not python 3'").any()


def test_what_is_remembered_cannot_be_changed():
    with pytest.raises(ValueError, match="read-only"):
        static_features(PROGRAM)[0] = 5


def test_features_of_real_programs():
    folder = os.environ.get("HF_QUALCODE_TEST_DATA")
    files = sorted(Path(folder, "codenet-mini", "data").glob("*/Python/*.py")) if folder else []
    if not files:
        pytest.skip("set HF_QUALCODE_TEST_DATA to a folder with codenet-mini to test on real programs")
    texts = [file.read_text(encoding="utf-8", errors="replace") for file in files[::20]]
    python = get_language("python")
    features = feature_matrix(texts)
    assert np.isfinite(features).all()
    forms = [text if python.compile_error(text) else python.normal_form(text) for text in texts]
    np.testing.assert_array_equal(features, feature_matrix(forms))


def pair(number, positive, negative, dimension="speed", problem="p1"):
    return PreferencePair(
        id=f"{dimension}/{number}", instruction=instruction_for(dimension), query="q", positive=positive,
        negative=negative, dimensions=(dimension,), missing_dimension="", problem_id=problem,
        positive_id=f"a{number}", negative_id=f"b{number}", positive_value=1, negative_value=3,
    )  # fmt: skip


def example_pairs():
    """Fast programs read stdin, lean ones read input(): the two dimensions ask for opposites."""
    pairs = []
    for n in range(20):
        stdin, plain = f"import sys\nx = sys.stdin.read()\nprint({n})", f"x = input()\nprint(x, {n})"
        pairs.append(pair(n, stdin, plain, problem=f"p{n % 4}"))
        pairs.append(pair(n, plain, stdin, "memory", problem=f"p{n % 4}"))
    return pairs


def ask(scorer, instruction, *codes):
    return scorer.score([instruction] * len(codes), ["q"] * len(codes), codes)


STDIN, PLAIN = "import sys\ny = sys.stdin.read()", "y = input()"


def test_one_model_an_instruction():
    scorer = StaticFeatureScorer().fit(example_pairs())
    assert isinstance(StaticFeatureScorer(), TrainableScorer)
    assert isinstance(scorer, Scorer)
    assert scorer.trained_on == (instruction_for("speed"), instruction_for("memory"))
    fast = ask(scorer, instruction_for("speed"), STDIN, PLAIN)
    lean = ask(scorer, instruction_for("memory"), STDIN, PLAIN)
    assert fast.dtype == np.float32
    assert fast[0] > fast[1]
    assert lean[0] < lean[1]
    mixed = scorer.score([instruction_for("memory"), instruction_for("speed")], ["q", "q"], [STDIN, PLAIN])
    np.testing.assert_array_equal(mixed, [lean[0], fast[1]])


def test_instructions_that_were_not_trained_on(caplog):
    scorer = StaticFeatureScorer().fit(example_pairs())
    fast = ask(scorer, instruction_for("speed"), STDIN, PLAIN)
    lean = ask(scorer, instruction_for("memory"), STDIN, PLAIN)
    np.testing.assert_array_equal(ask(scorer, instruction_for("speed", negated=True), STDIN, PLAIN), -fast)
    both = ask(scorer, instruction_for(["speed", "memory"]), STDIN, PLAIN)
    np.testing.assert_allclose(both, fast + lean, atol=1e-6)
    np.testing.assert_array_equal(ask(scorer, instruction_for(["memory", "speed"], negated=True), STDIN, PLAIN), -both)
    assert not caplog.records
    np.testing.assert_array_equal(ask(scorer, "Find something quick", STDIN, PLAIN), [0, 0])
    assert "not trained on 1 of the instructions" in caplog.text
    np.testing.assert_array_equal(ask(scorer, instruction_for("maintainability"), STDIN, PLAIN), [0, 0])


def test_weights_are_those_of_a_written_out_minimisation():
    from scipy.optimize import minimize

    pairs = [example for example in example_pairs() if example.dimensions == ("speed",)]
    # Some that contradict, so that the optimum is not at the bounds of what can be told apart.
    loop, plain = "for i in x:\n    print(i)", "print(x, sep='')\nprint(2)"
    pairs += [pair(100 + n, loop, f"{plain}\n{n}", problem="p7") for n in range(3)]
    pairs += [pair(200 + n, f"{plain}\n{n}", loop, problem="p7") for n in range(2)]
    scorer = StaticFeatureScorer().fit(pairs)
    codes = sorted({code for each in pairs for code in (each.positive, each.negative)})
    features = feature_matrix(codes)
    scale = np.maximum(features.std(axis=0), LEAST_SCALE)
    differences = np.array([(static_features(p.positive) - static_features(p.negative)) / scale for p in pairs])

    def loss(weights):
        return np.sum(weights**2) / 2 + REGULARISATION * np.logaddexp(0, -differences @ weights).sum()

    best = minimize(loss, np.zeros(len(scale)), tol=1e-12).x
    np.testing.assert_allclose(scorer.weights[instruction_for("speed")] * scale, best, atol=1e-6)


def test_order_and_sides_of_the_pairs_make_no_difference():
    pairs = example_pairs()
    forward, backward = StaticFeatureScorer().fit(pairs), StaticFeatureScorer().fit(pairs[::-1])
    for instruction in forward.trained_on:
        np.testing.assert_allclose(forward.weights[instruction], backward.weights[instruction], atol=1e-9)


def test_an_explanation_adds_up_to_the_score():
    scorer = StaticFeatureScorer().fit(example_pairs())
    instruction = instruction_for("speed")
    parts = scorer.explain(PROGRAM, instruction)
    assert sum(value for _, value in parts) == pytest.approx(float(ask(scorer, instruction, PROGRAM)[0]), abs=1e-6)
    sizes = [abs(value) for _, value in parts]
    assert sizes == sorted(sizes, reverse=True)
    assert {name for name, _ in parts} <= set(FEATURE_NAMES)
    assert len(scorer.explain(PROGRAM, instruction, top_k=3)) == 3
    assert dict(scorer.explain(STDIN, instruction))["reads from sys.stdin"] > 0
    with pytest.raises(QualcodeError, match="choose from: .*fast"):
        scorer.explain(PROGRAM, "be quick")


def test_wrong_use():
    with pytest.raises(QualcodeError, match="no pairs"):
        StaticFeatureScorer().fit([])
    with pytest.raises(ValueError, match="above 0"):
        StaticFeatureScorer(regularisation=0)
    assert FittedStaticScorer({}).score([], [], []).shape == (0,)


def test_pairs_of_programs_without_any_difference():
    scorer = StaticFeatureScorer().fit([pair(0, "x = 1", "y = 1")])
    np.testing.assert_array_equal(ask(scorer, instruction_for("speed"), PROGRAM, "x = 1"), [0, 0])


def test_progress_counts_programs():
    calls = []
    StaticFeatureScorer().fit(example_pairs(), progress=lambda *call: calls.append(call))
    assert calls[-1] == ("reading programs", 40, 40)
