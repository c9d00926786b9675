"""Transformations of maintainability: what they change, what they leave alone, and that a smell engine sees it."""

import contextlib
import functools
import io
import json
import os
from pathlib import Path

import pytest

from hf_qualcode.benchmark.drawing import Draws
from hf_qualcode.quality.smells import load_engine
from hf_qualcode.synthesis.rules import load_transformation, transform, transformation_names


DIMENSION = "maintainability"
MODULES = {
    name: module
    for name in transformation_names()
    if (module := load_transformation(name)).DIMENSION == DIMENSION
}  # fmt: skip
LOW = sorted(name for name, module in MODULES.items() if module.LEVEL == "low")
HIGH = sorted(name for name, module in MODULES.items() if module.LEVEL == "high")
CATEGORIES = {"structure", "readability", "robustness", "modernity"}

# The rules of ruff that the first example must break more often afterwards, or less often. The others are seen by
# Sonar alone.
RULES = {
    "bare_except": "E722",
    "camel_case_names": "N803 N806",
    "commented_out_code": "ERA001",
    "cryptic_names": "N803 N806",
    "deep_hierarchy": "N801",
    "deep_nesting": "SIM201",
    "direct_checks": "SIM201",
    "duplicated_branches": "SIM114",
    "explicit_imports": "F403",
    "global_variables": "ERA001",
    "inverted_checks": "SIM201",
    "loop_else": "PLW0120",
    "merged_conditions": "SIM102",
    "named_exceptions": "E722",
    "needless_f_strings": "F541",
    "redundant_jumps": "PLR1711",
    "removed_commented_code": "ERA001",
    "removed_unused_variables": "F841",
    "shadowed_builtins": "A001",
    "snake_case_names": "N803 N806",
    "split_conditions": "SIM102",
    "swallowed_errors": "E722 S110",
    "type_comparisons": "E721",
    "unshadowed_builtins": "A001 A002",
    "unused_parameters": "ARG001",
    "unused_variables": "F841",
    "useless_handlers": "TRY203",
    "wildcard_imports": "F403",
}


@functools.cache
def apply(name: str, text: str, seed: int = 0) -> str | None:
    """The changed text, `None` where nothing changes. Whatever comes out must compile."""
    changed = transform(text, MODULES[name], Draws(seed))
    assert changed.outcome in ("changed", "nothing_to_change"), (name, changed.outcome)
    return changed.code or None


def output_of(text: str) -> str:
    """What a small program of this file's own writes."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(text, "program", "exec"), {"__name__": "__main__"})
    return out.getvalue()


def test_every_guideline_group_is_served():
    assert len(LOW) >= 10
    assert len(HIGH) >= 4
    assert {MODULES[name].CATEGORY for name in LOW} == CATEGORIES
    assert {MODULES[name].CATEGORY for name in HIGH} == CATEGORIES


@pytest.mark.parametrize("name", sorted(MODULES))
def test_examples(name):
    for before, after in MODULES[name].EXAMPLES:
        assert apply(name, before) == after


@pytest.fixture(scope="module")
def counted():
    """Ids of ruff's findings in the first example of each transformation, before and after."""
    texts = [text for name in sorted(MODULES) for text in MODULES[name].EXAMPLES[0]]
    with load_engine("ruff") as engine:
        found = engine.analyse(texts)
    return {name: found[2 * number : 2 * number + 2] for number, name in enumerate(sorted(MODULES))}


@pytest.mark.parametrize("name", sorted(RULES))
def test_ruff_sees_the_change(name, counted):
    before, after = counted[name]
    worse, better = (after, before) if MODULES[name].LEVEL == "low" else (before, after)
    assert len(worse) > len(better)
    for rule in RULES[name].split():
        assert worse.count(rule) > better.count(rule)


@pytest.fixture(scope="module")
def counted_by_sonar():
    """Ids of Sonar's findings in the first example of each transformation, before and after."""
    folder = os.environ.get("HF_QUALCODE_TEST_SONAR")
    if not folder:
        pytest.skip("set HF_QUALCODE_TEST_SONAR to a folder with Sonar's jars to test with its analyser")
    from hf_qualcode.quality.smells.sonar import SonarEngine

    texts = [text for name in sorted(MODULES) for text in MODULES[name].EXAMPLES[0]]
    with SonarEngine(Path(folder)) as engine:
        found = engine.analyse(texts)
    return {name: found[2 * number : 2 * number + 2] for number, name in enumerate(sorted(MODULES))}


@pytest.mark.parametrize("name", sorted(MODULES))
def test_sonar_sees_the_change(name, counted_by_sonar):
    before, after = counted_by_sonar[name]
    worse, better = (after, before) if MODULES[name].LEVEL == "low" else (before, after)
    assert len(worse) > len(better)


UNTOUCHED = [
    # Names that are not the function's own, or that someone could see.
    ("cryptic_names", "def f(total):\n    return total\nf(total=1)\n"),
    ("cryptic_names", "def f(total):\n    return total\nf(**{'total': 1})\n"),
    ("cryptic_names", 'def f(total):\n    return f"{total=}"\n'),
    ("cryptic_names", "def f(total):\n    return eval('total')\n"),
    ("cryptic_names", "def f(total):\n    return '%(total)s' % locals()\n"),
    ("cryptic_names", "total = 1\ndef f():\n    global total\n    total = 2\n"),
    ("cryptic_names", "total = 1\ndef f():\n    return total\n"),
    ("cryptic_names", "def f():\n    import math\n    return math.pi\n"),
    ("cryptic_names", "def f():\n    def inner():\n        return 1\n    return inner()\n"),
    ("cryptic_names", "class A:\n    def f(self):\n        return self.total\n"),
    ("shadowed_builtins", "def f():\n    return print\n"),
    ("unshadowed_builtins", "def f(list):\n    return list\nf(list=1)\n"),
    ("snake_case_names", "def f(aB, a_b):\n    return aB + a_b\n"),
    # What follows does not run in every case, or the jump has another meaning.
    ("loop_else", "for i in range(3):\n    if i:\n        break\nprint(i)\n"),
    ("loop_else", "for i in range(3):\n    for k in range(3):\n        pass\n    else:\n        break\nprint(i)\n"),
    ("deep_nesting", "def f(a):\n    if a:\n        print(a)\n    return 1\n"),
    ("split_conditions", "def f(a, b):\n    if a and b:\n        return 1\n    else:\n        return 2\n"),
    ("split_conditions", "def f(a):\n    if 0 < step() < 9:\n        return a\n"),
    ("merged_conditions", "if a:\n    if b:\n        print(1)\n    else:\n        print(2)\n"),
    ("merged_conditions", "if a:\n    if b:\n        print(1)\n    print(2)\n"),
    ("nested_conditionals", "def f(a):\n    if a:\n        return 1\n    return 2\n"),
    ("duplicated_branches", "def f(a):\n    if step(a):\n        print(a)\n"),
    ("duplicated_branches", "def f(a, b):\n    if a in b:\n        print(a)\n"),
    ("inverted_checks", "class A:\n    def __eq__(self, other):\n        return 2\nif A() == 1:\n    print(1)\n"),
    ("inverted_checks", "def f(a, b):\n    return a == b\n"),
    ("direct_checks", "def f(a, b):\n    return not a < b\n"),
    # What could be caught or ended otherwise.
    ("bare_except", "import sys\ntry:\n    sys.exit()\nexcept ValueError:\n    pass\n"),
    ("bare_except", "try:\n    step()\nexcept ValueError as error:\n    print(error)\n"),
    ("named_exceptions", "try:\n    exit()\nexcept:\n    pass\n"),
    ("swallowed_errors", "def f(a):\n    b = a + 1\n    return b\n"),
    ("useless_handlers", "print(1)\n"),
    # Names that would be hidden, or would be missing.
    ("wildcard_imports", "import math\nprint(math.sqrt(4), pow(2, 3, 5))\n"),
    ("wildcard_imports", "import math\nprint(math)\n"),
    ("wildcard_imports", "import numpy\nprint(numpy.pi)\n"),
    ("wildcard_imports", "from math import sqrt as root\nprint(root(4))\n"),
    ("explicit_imports", "from tkinter import *\nTk()\n"),
    ("type_comparisons", "def f(a):\n    return isinstance(a, int)\n"),
    ("type_comparisons", "class A(list):\n    pass\nprint(isinstance(A(), list))\n"),
    # State that would be shared.
    ("global_variables", "def f(n):\n    rest = n - 1\n    return f(rest) + rest if n else 0\n"),
    ("global_variables", "def g(n):\n    return f(n)\ndef f(n):\n    rest = n\n    return g(rest) if n else 0\n"),
    ("global_variables", "def f(n):\n    rest = n\n    yield rest\n"),
    ("global_variables", "def f(n, step):\n    rest = n\n    step(n)\n    return rest\n"),
    ("global_variables", "def f(n):\n    rest = n\n    return max(rest, key=g)\ng = lambda n: f(n)\n"),
    ("global_variables", "def f(n):\n    rest = n\n    return lambda: rest\n"),
    ("global_variables", "rest = 1\ndef f(n):\n    rest = n\n    return rest\n"),
    ("deep_hierarchy", "def f(n):\n    return f(n - 1) if n else 0\n"),
    ("deep_hierarchy", "def f(n):\n    return g(n)\ndef g(n):\n    return f(n - 1) if n else 0\n"),
    ("deep_hierarchy", "def f(*args):\n    return args\n"),
    ("unused_parameters", "def f(*args):\n    return args\n"),
    ("removed_unused_variables", "def f(n):\n    total = step(n)\n    return n\n"),
    ("removed_unused_variables", "def f(n):\n    total = 0\n    return lambda: total\n"),
    ("removed_commented_code", "# coding = utf8\nx = 1  # the total\n# note: see below\n# add one\n# result\n"),
    ("needless_f_strings", "print('{}', 'a\\n', b'x', '')\n"),
    ("single_parentheses", "print((1, 2), (yield_ for yield_ in ()), 3)\n"),
    ("underscored_indices", "def f(n):\n    for i in range(n):\n        pass\n    return i\n"),
    ("underscored_indices", "x = [[i for k in range(i)] for i in range(3) if k]\n_ = 1\n"),
    ("redundant_jumps", "def f(n):\n    return n\n"),
]


@pytest.mark.parametrize("name, text", UNTOUCHED)
def test_left_alone(name, text):
    assert apply(name, text) is None


# Programs with much that could go wrong, which write what they find.
PROGRAMS = [
    """
def table(rows, width=2):
    '''Docstring.'''
    total = 0; largest = None
    for number, row in enumerate(rows):
        if row is None: continue
        if not row and width != 1:
            return 'empty'
        for cell in row:
            if cell == 3 or cell == 4:
                total += cell
                continue
            if 0 < cell < 9 and (cell %
                                 2):
                total -= 1
            elif cell > 90: pass
            else:
                total += 2
        largest = max([value for value in row if value != total] or [0])
    return total, largest, number

print(table([[1, 2, 3], None, [4, 95, 7]]), table([[]]), table([[1]], width=1))
""",
    """
import math
from collections import Counter, deque

def kind(n):
    if(n==0):return 'zero'
    if n<0:
        return 'negative'
    elif (n in (1,
               2)):
        return 'small'
    else:
        return 'large' if not n % 2 else "odd"

def root(n):
    sum = 0
    list = [kind(n)]
    try:
        sum += int(list[0])
    except ValueError:
        sum = -1
    else:
        sum = 7
    while not (sum >= 3):
        sum += 1
    return (math.floor(math.sqrt(n)), sum, list)

for i in range(-1, 4):
    print(kind(i), root(abs(i)))
print(Counter('abca')['a'], deque([1])[0], (("x")))
""",
    """
class Stack:
    def __init__(self, Items):
        self.items = Items
    def Push(self, newItem):
        # self.items.append(newItem)
        unused = newItem
        self.items = self.items + [newItem]
        if type(newItem) == str:
            if len(newItem) > 1:
                return 'long'
        if isinstance(newItem, list) and newItem: return newItem[0]
def generate(Limit):
    counter = 0
    while True:
        if counter >= Limit:
            return
        yield counter
        counter += 1
def closure(scale):
    offset = 1
    def inner(value):
        nonlocal offset
        offset += value
        return scale * offset
    return [inner(i) for i in range(3)], [0 for k in range(2)], {scale: 1 for scale in 'ab'}
stack = Stack([])
print(stack.Push('ab'), stack.Push([5]), stack.items, list(generate(3)), closure(2))
""",
]


@pytest.mark.parametrize("name", sorted(MODULES))
def test_programs_write_the_same(name):
    for program in PROGRAMS:
        for seed in range(2):
            changed = apply(name, program, seed)
            if changed is not None:
                assert output_of(changed) == output_of(program), changed


@pytest.mark.parametrize("name", sorted(MODULES))
def test_equal_draws_give_the_same(name):
    again = transform(PROGRAMS[0], MODULES[name], Draws(0)).code or None
    assert apply(name, PROGRAMS[0]) == again


def test_programs_are_changed():
    touched = {name for name in MODULES for program in PROGRAMS if apply(name, program) is not None}
    assert len(touched) >= 25


def test_transformations_stack():
    """Each works on what the others have made."""
    text = PROGRAMS[1]
    for name in LOW:
        text = apply(name, text) or text
    assert output_of(text) == output_of(PROGRAMS[1])
    for name in HIGH:
        text = apply(name, text) or text
    assert output_of(text) == output_of(PROGRAMS[1])


def tasks_of_mbpp() -> list[dict]:
    folder = os.environ.get("HF_QUALCODE_TEST_DATA")
    path = Path(folder, "mbpp", "mbpp.jsonl") if folder else None
    if path is None or not path.is_file():
        pytest.skip("set HF_QUALCODE_TEST_DATA to a folder with mbpp/mbpp.jsonl to test on real solutions")
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


_HARNESS = """
import contextlib, io, json, sys
answers = []
for code, setup, tests in json.loads(sys.stdin.read()):
    names, answer = {}, []
    for text in (code, setup, *tests):
        out = io.StringIO()
        try:
            with contextlib.redirect_stdout(out):
                exec(compile(text, "program", "exec"), names)
            answer.append(["ok", out.getvalue()])
        except Exception as error:
            answer.append([type(error).__name__, out.getvalue()])
    answers.append(answer)
print(json.dumps(answers))
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(MODULES))
def test_real_solutions_behave_the_same(name):
    from hf_qualcode.quality.sandbox import Limits, Sandbox

    jobs = []
    for task in tasks_of_mbpp()[::8]:
        changed = transform(task["code"], MODULES[name], Draws(0, str(task["task_id"])))
        assert changed.outcome != "does_not_compile"
        if changed.outcome == "changed":
            jobs += [(code, task["test_setup_code"], task["test_list"]) for code in (task["code"], changed.code)]
    run = Sandbox.open().run(_HARNESS, json.dumps(jobs).encode(), limits=Limits(cpu_seconds=120))
    assert run.outcome == "ok", run.stderr[-500:]
    answers = json.loads(run.stdout)
    assert answers[::2] == answers[1::2]
