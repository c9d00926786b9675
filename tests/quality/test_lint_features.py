"""Lint features: each fault is counted where it is and nowhere else."""

import random
import time

import numpy as np
import pytest

from hf_qualcode.quality.function_features import FUNCTION_FEATURE_NAMES, function_features
from hf_qualcode.quality.lint_features import LINT_FAULTS, LINT_FEATURE_NAMES, lint_features
from hf_qualcode.quality.static_features import FEATURE_NAMES, static_features


CLEAN = '''\
"""Totals."""

LIMIT = 10


class Basket:
    """Prices."""

    def total(self, prices, discount=None):
        """Their sum."""
        result = 0
        for price in prices:
            if price > LIMIT and discount is not None:
                result -= discount
            result += price
        return result
'''
# Fault -> code with it so many times.
FAULTY = {
    "names against PEP 8": [("def readFile(path):\n    return path\n", 1), ("class small_case:\n    Good = 1\n", 2),
                            ("def f(one):\n    ONE = one\n    return ONE\n", 1)],
    "short names": [("def total(a, bb):\n    return a + bb\n", 2), ("for _ in range(3):\n    print('x')\n", 0)],
    "names of builtins": [("def total(list):\n    sum = list\n    return sum\n", 2)],
    "commented-out lines": [("# x = compute(y)\nprint('x')\n# a remark, in words\n#    return x\n", 2),
                            ("# if x > 3:\nprint('x')  # see (above)\n", 1)],
    "bare excepts": [("try:\n    print('x')\nexcept:\n    print('y')\n", 1)],
    "handlers that hide errors": [("try:\n    print('x')\nexcept ValueError:\n    pass\n", 1)],
    "handlers that only raise": [("try:\n    print('x')\nexcept ValueError as error:\n    raise error\n", 1),
                                 ("try:\n    print('x')\nexcept ValueError:\n    raise TypeError\n", 0)],
    "loops with else": [("for name in 'abc':\n    print(name)\nelse:\n    print('x')\n", 1)],
    "star imports": [("from math import *\n", 1)],
    "unused variables": [("def total():\n    unused = 1\n    used = 2\n    return used\n", 1)],
    "unused parameters": [("def total(used, unused, _unused):\n    return used\n", 1)],
    "unreachable statements": [("def total():\n    return 1\n    print('x')\n    print('y')\n", 2)],
    "conditions that never change": [("if True:\n    print('x')\nwhile 0:\n    print('x')\nif not 1:\n    pass\n", 3)],
    "equal branches": [("if input():\n    print('x')\nelse:\n    print('x')\n", 1)],
    "ifs that could be one": [("if input():\n    if input():\n        print('x')\n", 1),
                              ("if input():\n    if input():\n        print('x')\nelse:\n    print('y')\n", 0)],
    "nested conditional expressions": [("print(1 if input() else 2 if input() else 3)\n", 1)],
    "jumps that change nothing": [("for name in 'abc':\n    print(name)\n    continue\n", 1),
                                  ("def total():\n    print('x')\n    return\n", 1),
                                  ("def total():\n    return None\n", 0)],
    "inverted comparisons": [("print(not input() == 'x')\n", 1), ("print(not input())\n", 0)],
    "comparisons with None or types": [("print(input() == None, type(input()) == str, input() != True)\n", 3),
                                       ("print(input() is None, input() == 1)\n", 0)],
    "f-strings without fields": [("print(f'x', f'{input()}')\n", 1)],
    "globals in functions": [("count = 0\ndef total():\n    global count, more\n    count += 1\n", 2)],
    "long lines": [(f"print('{'x' * 120}')\n", 1)],
    "base classes one after another": [("class Base:\n    pass\nclass Derived(Base):\n    pass\n", 1)],
}  # fmt: skip


def counts(code):
    return dict(zip(LINT_FEATURE_NAMES, np.expm1(lint_features(code)).round().astype(int), strict=True))


def test_clean_code_has_no_faults():
    found = counts(CLEAN)
    assert {name: found[name] for name in LINT_FAULTS if found[name]} == {}
    assert found["docstrings"] == 3
    assert found["most parameters"] == 3
    assert found["lines"] == 12


def test_every_fault_is_tried():
    assert set(FAULTY) == set(LINT_FAULTS)
    assert len(set(LINT_FEATURE_NAMES)) == len(LINT_FEATURE_NAMES)


@pytest.mark.parametrize("fault", LINT_FAULTS)
def test_a_fault_is_counted(fault):
    for code, expected in FAULTY[fault]:
        assert counts(code)[fault] == expected, code


def test_depth_and_size_are_measured():
    code = "def total(one, two, *, three):\n    for name in one:\n        if name:\n            print(name, two)\n"
    found = counts(code)
    assert found["deepest block"] == 4
    assert found["most parameters"] == 3
    assert found["longest function"] == 3
    assert found["branches"] == 2


@pytest.mark.parametrize("code", ["no python {", "\x00", "\ud800", "(" * 5000, "print 1"])
def test_what_is_no_python_has_none(code):
    assert not lint_features(code).any()
    assert not function_features(code).any()


def test_any_text_gives_finite_numbers_in_no_time():
    draws = random.Random(0)
    parts = [
        *("x = 1\n", "if x:\n    ", "else:\n", "# a = b(\n", "f'{x}'", "\\\n", "'''", "try:\n pass\n", "except: 0\n"),
        *("not ", "None == ", "def f(a):\n ", "return\n", "class c(d): ", "*", "lambda: ", "\t", "#!", "# :\n"),
    ]
    began = time.process_time()
    for _ in range(2000):
        values = lint_features("".join(draws.choices(parts, k=draws.randrange(9))))
        assert np.isfinite(values).all()
        assert (values >= 0).all()
    assert time.process_time() - began < 20


@pytest.mark.parametrize(
    "code",
    ["x = " + "-" * 3000 + "1\n", "if a:\n" + "    b = 1\n" * 20_000, "# x = (\n" * 25_000,
     "a = [" + "1, " * 60_000 + "]\n", "".join(" " * depth + "if a:\n" for depth in range(90)) + " " * 90 + "b = 1\n"],
)  # fmt: skip
def test_hostile_texts_take_no_time(code):
    began = time.process_time()
    assert np.isfinite(lint_features(code)).all()
    assert time.process_time() - began < 10


def test_function_features_leave_imports_out_and_lint_in():
    with_imports = "import math\nfrom collections import *\n\n\ndef total(prices):\n    return sum(prices)\n"
    without = "def total(prices):\n    return sum(prices)\n"
    differences = function_features(with_imports) - function_features(without)
    names = dict(zip(FUNCTION_FEATURE_NAMES, differences, strict=True))
    assert names["star imports"] > 0
    assert not any(name.startswith("imports ") for name in names)
    assert "no import" not in names
    kept = [name for name in FUNCTION_FEATURE_NAMES if name in FEATURE_NAMES]
    values = dict(zip(FEATURE_NAMES, static_features(CLEAN), strict=True))
    assert [values[name] for name in kept] == list(function_features(CLEAN)[: len(kept)])
