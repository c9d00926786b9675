"""Transformations: each does what its examples say, and leaves alone what it could break."""

import contextlib
import io
import itertools

import libcst as cst
import libcst.matchers as m
import pytest

from hf_qualcode.benchmark.drawing import Draws
from hf_qualcode.quality import dimension_names
from hf_qualcode.quality.guidelines import guideline_groups
from hf_qualcode.synthesis.rules import (
    LEVELS,
    compiles,
    group_of,
    load_transformation,
    parse,
    transform,
    transformation_names,
)
from hf_qualcode.synthesis.rules._finding import findall
from hf_qualcode.synthesis.rules._variables import variables_of
from hf_qualcode.types import UsageError


NAMES = transformation_names()
EXAMPLES = [(name, number) for name in NAMES for number in range(len(load_transformation(name).EXAMPLES))]

# Code in which a careless version of the transformation would change what is computed.
TRAPS = {
    # Another name for the list would no longer see what is added to it.
    "concatenated_lists": (
        "def f(n):\n    out = []\n    kept = out\n    for i in range(n):\n        out.append(i)\n    return kept\n",
        "def f(n):\n    out = []\n    for i in range(n):\n        out.append(i)\n    g(out)\n    return out\n\n"
        "def g(xs):\n    xs.append(1)\n",
        "out = []\ndef add(i):\n    out.append(i)\nfor i in range(3):\n    add(i)\nprint(out)\n",
        "def f():\n    xs = []\n    xs.append(1)\n    for x in xs:\n        if x < 9:\n            xs.append(x + 1)\n"
        "    return xs\n",
    ),
    # The loop's variable would still be there, and be another one.
    "concatenated_comprehensions": (
        "def f(xs, x):\n    ys = [x + 1 for x in xs]\n    return ys, x\n",
        "def f(xs):\n    xs = [x for x in xs]\n    return xs\n",
    ),
    "appended_lists": ("def f(a):\n    b = a\n    for i in range(3):\n        b = b + [i]\n    return a, b\n",),
    # The set forgets repetitions, and its order is its own.
    "list_membership": (
        "def f(xs):\n    s = set(xs)\n    return len(s), 1 in s\n",
        "def f(xs, list):\n    s = set(xs)\n    return 1 in s\n",
    ),
    "set_membership": (
        "def f(xs):\n    known = [[1], [2], [3], [4]]\n    return xs in known\n",
        "def f(xs):\n    known = list(map(int, xs))\n    return 1 in known, len(known)\n",
    ),
    "listed_keys": ("def f(d):\n    return 1 in d\n",),
    "front_pops": (
        "from collections import deque\ndef f():\n    q = deque([1], 3)\n    q.append(2)\n    return q.popleft()\n",
        "from collections import deque\ndef f():\n    q = deque([1])\n    q.append(2)\n    q.popleft()\n"
        "    return q\n",
    ),
    "association_lists": (
        "def f(k):\n    d = {1: 2, 3: 4, 5: 6, 7: 8}\n    try:\n        return d[k]\n    except KeyError:\n"
        "        return 0\n",
        "def f(k):\n    d = {1: 2, 3: 4, 5: 6, 7: 8}\n    d[k] = 9\n    return d[k]\n",
        "def f(k):\n    d = {1: 2, 3: 4, 5: 6, 1: 8}\n    return d[k]\n",
    ),
    # What the value comes from changes on the way.
    "recomputed_values": (
        "def f(xs):\n    top = max(xs)\n    for i in range(3):\n        xs.append(top + 1)\n        if xs[i] == top:\n"
        "            return i\n",
        "def f(xs):\n    total = sum(xs)\n    xs = [1]\n    return [x for x in xs if x == total]\n",
        "def f(xs):\n    s = sorted(xs)\n    for i in range(3):\n        s[0] = s[1] + 1\n    return s\n",
        "def f(s):\n    xs = map(int, s)\n    top = max(xs)\n    return [x for x in s if x == top]\n",
    ),
    # Which divisor it is makes a difference, or the number changes.
    "exhaustive_divisors": (
        "def f(n):\n    for i in range(2, int(n ** 0.5) + 1):\n        if n % i == 0:\n            return i\n"
        "    return n\n",
        "def f(n):\n    c = 0\n    for i in range(2, int(n ** 0.5) + 1):\n        if n % i == 0:\n            c += 1\n"
        "    return c\n",
        "def f(n):\n    for i in range(1, int(n ** 0.5) + 1):\n        if n % i == 0:\n            return False\n",
    ),
    "bounded_divisors": (
        "def f(n):\n    for i in range(2, n):\n        if n % i == 0:\n            print(i)\n",
        "def f(n):\n    for i in range(2, n + 1):\n        if n % i == 0:\n            return False\n",
    ),
    # Later elements would do something, or decide otherwise.
    "full_scans": (
        "def f(xs):\n    for x in xs:\n        if xs.pop():\n            return True\n    return False\n",
        "def f(xs):\n    for x in xs:\n        if x:\n            return x\n    return 0\n",
        "def f(xs):\n    for x in xs:\n        if x:\n            return 1\n        if not x:\n"
        "            return 2\n    return 0\n",
    ),
    "sorted_extremes": (
        "def f(a, b):\n    return max(a, b)\n",
        "def f(xs):\n    return min(xs, default=0)\n",
        "def f(xs):\n    try:\n        return min(xs)\n    except ValueError:\n        return 0\n",
    ),
    "direct_extremes": ("def f(xs):\n    return sorted(xs, key=abs)[-1]\n", "def f(xs):\n    return sorted(xs)[1]\n"),
    "repeated_counts": (
        "from collections import Counter\ndef f(dict1):\n    return Counter(dict1)\n",
        "def f(xs):\n    d = {1: 5}\n    for x in xs:\n        d[x] = d.get(x, 0) + 1\n    return d\n",
        "def f(xs, ys):\n    d = {}\n    for x in xs:\n        d[x] = d.get(x, 0) + 1\n    for y in ys:\n"
        "        d[y] = 1\n    return d\n",
    ),
    "counted_once": ("def f(xs, y):\n    return [xs.count(y) for x in xs]\n",),
    "full_powers": ("def f(a, m):\n    return pow(a, m - 2, m)\n", "def f(a, b):\n    return pow(a, b)\n"),
    "modular_powers": ("def f(a, b, m):\n    return a ** (b / 2) % m\n", "def f(a):\n    return a ** 2 % 7\n"),
    "deep_copied_arguments": (
        "def f(xs):\n    xs[0] = 1\n    return len(xs)\n",
        "def f(xs):\n    xs.sort()\n    return xs[0]\n",
        "def f(xs):\n    n = len(xs)\n    return xs\n",
        "def f(xs, n):\n    g(xs)\n    return xs[0]\n",
    ),
    "duplicated_inputs": (
        "def f(s):\n    return len(s) and 'ab' in s\n",
        "def f(s):\n    return s[1:] + s[0]\n",
        "def f(s):\n    for c in s:\n        print(c)\n    return s\n",
    ),
    "sliced_elements": (
        "def f(xs):\n    for i in range(len(xs)):\n        xs[i] = 0\n",
        "def f(xs, d):\n    for i in range(len(xs)):\n        print(d[i])\n",
    ),
    "helper_calls": ("def f(xs):\n    out = []\n    for x in xs:\n        out += [x]\n    return out\n",),
    "recursive_loops": (
        "def f(n):\n    while n > 0:\n        n -= 1\n    return n\n",
        "def f(n):\n    while n > 0:\n        if n == 7:\n            return 1\n        n //= 10\n    return n\n",
        "def f(n):\n    while n > 0:\n        digit = n % 10\n        n //= 10\n    return digit\n",
    ),
    "kept_history": (
        "def f(xs):\n    t = []\n    for x in xs:\n        t += [x]\n    return t\n",
        "def f(xs):\n    t = 0\n    for x in xs:\n        t += x\n        t = x\n    return t\n",
    ),
    "sliced_recursion": (
        "def f(xs):\n    max = 0\n    for x in xs:\n        max += x\n    return max\n",
        "def f(xs):\n    for x in xs:\n        last = x\n    return last\n",
        "def f(xs):\n    t = 0\n    for x in xs:\n        t += x\n    return t, x\n",
        "def f(xs):\n    t = 0\n    for x in xs:\n        if x:\n            break\n        t += 1\n    return t\n",
    ),
    "boxed_elements": (
        "def f(n):\n    dp = [0] * n\n    dp[0] = 1\n    return dp\n",
        "def f(n):\n    dp = [0] * n\n    dp[0] = 1\n    return sum(dp)\n",
        "def f(n):\n    dp = [[]] * n\n    dp[0] = 1\n    return dp[0]\n",
    ),
    # `any` would stop before the elements that fail or do something.
    "listed_generators": ("def f(xs):\n    return any(xs.pop() for _ in range(9))\n",),
    "lazy_generators": (
        "def f(xs):\n    return any([xs.pop() for x in range(3)])\n",
        "print(all([input() == 'a' for _ in range(3)]))\n",
    ),
    "listed_loops": (
        "def f(n):\n    for i in range(n, 10 ** 18):\n        if i % 7 == 0:\n            return i\n",
        "import sys\ndef f(n):\n    for i in range(n, sys.maxsize):\n        if i % 7 == 0:\n            return i\n",
        "def f(xs):\n    for i, x in enumerate(xs):\n        if x < 3:\n            xs.append(x + 1)\n",),
    "lazy_loops": ("def f(xs):\n    for i, x in list(enumerate(xs)):\n        xs.pop()\n",),
    "whole_input": (
        "try:\n    while True:\n        print(input())\nexcept EOFError:\n    pass\n",
        "for i in range(2):\n    print(input('name?'))\n",
    ),
    "held_output": (
        "import sys\nn = int(input())\nfor i in range(n):\n    print(i)\n    if i > 2:\n        sys.exit()\n",
        "n = int(input())\nfor i in range(n):\n    print(i, end='')\n",
    ),
    "streamed_input": ("import sys\nfor line in sys.stdin.readlines():\n    print(line, input())\n",),
    "dropped_memoisation": ("from functools import lru_cache\n@lru_cache\ndef f(n):\n    return n + 1\n",),
    "memoised_recursion": (
        "def f(n):\n    print(n)\n    return 1 if n < 2 else f(n - 1) + f(n - 2)\n",
        "def f(n):\n    return [] if n < 2 else f(n - 1) + f(n - 2)\n",
        "k = 2\ndef f(n):\n    return k if n < 2 else f(n - 1) + f(n - 2)\n",
    ),
    "summed_ranges": ("def f(n):\n    return n * (n + 2) // 2\n", "def f(n, m):\n    return n * (m + 1) // 2\n"),
    "linear_bisection": ("def bisect(a, b):\n    return 1\nprint(bisect([1], 2))\n",),
}  # fmt: skip


def applied(name, text):
    return transform(text, load_transformation(name), Draws(0))


def test_there_are_enough_in_every_dimension():
    by_group = {}
    for name in NAMES:
        by_group.setdefault(group_of(load_transformation(name)), []).append(name)
    assert len(NAMES) >= 20
    assert set(by_group) == {group for dimension in dimension_names() for group in guideline_groups(dimension)}


@pytest.mark.parametrize("name", NAMES)
def test_says_what_it_is(name):
    module = load_transformation(name)
    assert group_of(module) in guideline_groups(module.DIMENSION)
    assert module.LEVEL in LEVELS
    assert module.SUMMARY.endswith(".") and module.EXAMPLES
    assert module.__doc__ and module.apply.__doc__


@pytest.mark.parametrize(("name", "number"), EXAMPLES)
def test_examples(name, number):
    before, after = load_transformation(name).EXAMPLES[number]
    made = applied(name, before)
    assert (made.outcome, made.code) == ("changed", after)
    assert applied(name, before) == made
    # Line ends of another system change nothing.
    assert applied(name, before.replace("\n", "\r\n")) == made


@pytest.mark.parametrize(("name", "trap"), [(name, trap) for name, traps in TRAPS.items() for trap in traps])
def test_leaves_alone_what_it_could_break(name, trap):
    assert compiles(trap)
    assert applied(name, trap).outcome == "nothing_to_change"


# What the original cannot take says nothing.
FAILURES = (TypeError, AttributeError, LookupError, ArithmeticError, ValueError, NameError, RecursionError)


def called(text, arguments):
    """What the first function of a program returns or raises, and what it leaves of its arguments."""
    namespace = {}
    exec(compile(text, "program", "exec"), namespace)
    function = next(value for name, value in namespace.items() if name in ("f", "fib"))
    arguments = [list(one) if isinstance(one, list) else one for one in arguments]
    with contextlib.redirect_stdout(io.StringIO()) as shown:
        result = function(*arguments)
    return result, arguments, shown.getvalue()


INPUTS = ([3, 1, 2, 1], [0], [5, 5, -2, 7, 1, 0], "1203", 0, 1, 2, 5, 12, 13, 18, 21)
# What a function may be given at all: bisection asks for an order, and a selection looks at every element.
INPUTS_OF = {
    "linear_bisection": ([1, 2, 2, 5], [0], [], 0, 1, 2, 3, 7),
    "sorted_selections": ([3, 1, 2, 1], [0], [], 0, 1, 2, 3, -1),
    "association_lists": ("", "a", "abba", "dddd"),
}


@pytest.mark.parametrize(
    ("name", "number"),
    [case for case in EXAMPLES if load_transformation(case[0]).EXAMPLES[case[1]][0].count("def f") == 1],
)
def test_examples_keep_their_behaviour(name, number):
    before, after = load_transformation(name).EXAMPLES[number]
    (function,) = findall(cst.parse_module(before), m.FunctionDef(name=m.Name("f") | m.Name("fib")))
    width = sum(one.default is None for one in function.params.params)
    compared = 0
    for arguments in itertools.product(INPUTS_OF.get(name, INPUTS), repeat=min(width, 2)):
        arguments += (7,) * (width - 2)
        try:
            expected = called(before, arguments)
        except FAILURES:
            continue
        assert called(after, arguments) == expected, arguments
        compared += 1
    if load_transformation(name).DIMENSION != "maintainability":
        assert compared or "def f(" not in before


def test_programs_that_cannot_be_read():
    assert applied("kept_history", "print 'hello'\n").outcome == "not_read"
    assert applied("kept_history", "x = (" * 5000).outcome == "not_read"
    assert parse("\0") is None
    assert applied("kept_history", "").outcome == "nothing_to_change"


def test_unknown_transformation():
    with pytest.raises(UsageError, match="kept_history"):
        load_transformation("no_such")


def test_nodes_are_found_as_libcst_finds_them():
    text = "".join(before for name in NAMES for before, _ in load_transformation(name).EXAMPLES if "def f" in before)
    module = cst.parse_module(text)
    for pattern in (m.Name(), m.Call(func=m.Name("range")), m.For() | m.While(), m.AssignTarget(m.Subscript())):
        assert {id(node) for node in findall(module, pattern)} == {id(node) for node in m.findall(module, pattern)}


def test_variables_have_one_scope():
    module = cst.parse_module(
        "import a\ntop = []\nboth = 1\n\ndef f(x, *, y=both):\n    both = x\n    inner = [z for z in x]\n"
        "    def g():\n        return inner\n    global made\n    made = 1\n    for i, j in top:\n"
        "        inner[i] = j\n"
        "    return g\n"
    )
    found = {variable.name: variable for variable in variables_of(module)}
    assert set(found) == {"top", "x", "y", "inner", "i", "j"}
    assert [use.kind for use in found["top"].uses] == ["assigned", "iterated"]
    assert [use.kind for use in found["inner"].uses] == ["assigned", "returned", "stored_item"]
    assert found["x"].scope.name.value == "f" and found["top"].scope is None
    assert variables_of(cst.parse_module("x = 1\nprint(eval('x'))\n")) == []
