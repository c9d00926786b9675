"""The compile check, the normal form and the fingerprint of Python: on real programs, and on texts made to break
them."""

import ast
import contextlib
import io
import os
from pathlib import Path

import pytest

from hf_qualcode.languages import get_language, language_names
from hf_qualcode.languages._python_form import compile_error, fingerprint, normal_form
from hf_qualcode.types import QualcodeError


# Each prints something that depends on its names being resolved as before. They are run, so they are our own.
PROGRAMS = {
    "global": "total = 1\ndef add(n):\n    global total\n    total += n\nadd(4)\nprint(total)",
    "global that only a function binds": "def make():\n    global made\n    made = 7\nmake()\nprint(made)",
    "global seen from an inner function": (
        "x = 1\ndef outer():\n    x = 2\n    def inner():\n        global x\n        def innermost():\n"
        "            return x\n        x = 3\n        return innermost()\n    return x, inner()\nprint(outer(), x)"
    ),
    "nonlocal": (
        "def outer():\n    count = 0\n    def inner():\n        nonlocal count\n        count += 1\n"
        "        return count\n    inner()\n    return inner() + count\nprint(outer())"
    ),
    "one name, many scopes": (
        "i = 5\ndef f(i):\n    return [i for i in range(i)]\nprint(f(3), i, [i * j for j in range(i)])"
    ),
    "class body": (
        "x = 5\nclass A:\n    x = x + 1\n    y = [x for _ in range(2)]\n    def get(self, x=x):\n"
        "        return x, self.x\na = A()\nprint(a.get(), A.y, x)"
    ),
    "class in a function": (
        "def f():\n    x = 1\n    class A:\n        y = x\n        def g(self):\n            return x\n"
        "    return A.y + A().g()\nprint(f())"
    ),
    "private names": (
        "class A:\n    __secret = 3\n    def get(self):\n        return self.__secret\n"
        "print(A().get(), A._A__secret)"
    ),
    "keyword arguments": (
        "def f(first, second=2, *rest, third=3, **others):\n    return first, second, third, others\n"
        "print(f(1, second=5), f(second=1, first=0, third=9, other=4))"
    ),
    "keyword arguments in a dictionary": (
        "def f(a, b):\n    return a - b\nprint(f(**{'a': 1, 'b': 2}), f(**dict(b=1, a=3)))"
    ),
    "positional arguments": "def f(a, b, /, c, *, d=4):\n    return a * b + c + d\nprint(f(2, 3, 4))",
    "defaults and annotations": "n = 3\ndef f(n=n, m: n = n) -> n:\n    return n + m\nprint(f(), f(1))",
    "lambda": "n = 2\nprint((lambda n, k=n: n * k)(5), sorted([3, 1], key=lambda value: -value))",
    "decorators": (
        "def twice(function):\n    def call(*args):\n        return function(*args) * 2\n    return call\n@twice\n"
        "def f(x):\n    return x\nprint(f(4))"
    ),
    "walrus": "if (n := 10) > 5:\n    print(n)\nprint([last := k for k in range(3)], last)",
    "walrus in a function": (
        "def f(items):\n    print(any((hit := item) > 1 for item in items))\n    return hit\nprint(f([1, 2, 3]))"
    ),
    "match": (
        "class P:\n    __match_args__ = ('x',)\n    def __init__(self, x):\n        self.x = x\n"
        "for value in [[1, 2, 3], {'k': 1, 'r': 2}, P(4), 7]:\n    match value:\n        case [first, *others]:\n"
        "            print(first, others)\n        case {'k': k, **remaining}:\n            print(k, remaining)\n"
        "        case P(x=inner) as whole:\n            print(inner, whole.x)\n        case other:\n"
        "            print(other)"
    ),
    "f-strings": "width, value = 8, 3.14159\nprint(f'{value:{width}.2f}|{value!r}|{{value}}|{value=}')",
    "imports": (
        "import os.path as path, sys\nfrom math import gcd as common\nimport collections.abc\ndef f():\n"
        "    import math\n    return math.sqrt(common(16, 8))\n"
        "print(f(), path.join('a', 'b'), collections.abc.Sized.__name__)"
    ),
    "star import": "from math import *\ndef f(x):\n    return floor(x) + gcd(4, 6)\npi = 3\nprint(f(2.5), pi)",
    "star import read before it is bound": "from math import *\nprint(round(e, 3))\ne = 2\nprint(e)",
    "exec": "exec('answer = 42')\nquestion = 6\nprint(answer, eval('question * 7'))",
    "eval": "base = 6\nother = 2\nprint(eval('base * 7') + other)",
    "globals": "value = 3\nprint(globals()['value'], 'value' in vars())",
    "shadowed builtins": (
        "print(sum([1, 2]))\nsum = 0\nfor i in range(3):\n    sum += i\nprint(sum)\ndef f(list, max=3):\n"
        "    return list, max\nprint(f([1]))"
    ),
    "exceptions": (
        "try:\n    1 / 0\nexcept ZeroDivisionError as error:\n    print(error)\nelse:\n    'nothing'\nfinally:\n"
        "    print('end')"
    ),
    "names of functions": "def solve():\n    '''Docs.'''\nprint(solve.__name__, solve.__doc__)",
    "delete, with, loops": (
        "import io\nwith io.StringIO('a') as f, io.StringIO('b') as g:\n    print(f.read() + g.read())\n"
        "x = [1, 2]\ndel x[0]\nfor i, (a, *b) in enumerate([(1, 2, 3)]):\n    print(i, a, b)\nelse:\n    'done'\n"
        "    del i\nwhile x:\n    x.pop()"
    ),
    "async": (
        "import asyncio\nasync def f(n):\n    return [i async for i in g(n)]\nasync def g(n):\n"
        "    for i in range(n):\n        yield i\nprint(asyncio.run(f(3)))"
    ),
    "generated names are taken": (
        "v0 = 1\ndef f0(v2, v1):\n    return v2 - v1 + v0\nimport math as v3\nprint(f0(5, 2), v3.pi > 3)\n"
        "def g(b):\n    c = b\n    return [b.v4 if 0 else c]\nprint(g(1), 'v5')"
    ),
    "comprehension scopes": (
        "n = 3\nprint([n for n in range(n)], {n: m for n in range(2) for m in range(n)}, n)\n"
        "print(list(x for x in (y for y in range(n)) if x))"
    ),
}


def output(program):
    stdout = io.StringIO()
    with contextlib.redirect_stdout(stdout):
        exec(compile(program, "<program>", "exec", dont_inherit=True), {"__name__": "__main__"})
    return stdout.getvalue()


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_normal_form_does_what_the_program_does(name):
    form = normal_form(PROGRAMS[name])
    assert output(PROGRAMS[name]) != ""
    assert output(form) == output(PROGRAMS[name])
    assert normal_form(form) == form
    assert fingerprint(form) == fingerprint(PROGRAMS[name])
    shape = normal_form(PROGRAMS[name], literals=True)
    assert compile_error(shape) is None
    assert normal_form(shape, literals=True) == shape
    undressed = normal_form(PROGRAMS[name], names=False)
    assert normal_form(undressed, names=False) == undressed


def test_every_freely_chosen_name_changes():
    program = "def solve(numbers):\n    best = max(numbers)\n    return best\nresult = solve([1])\nprint(result)"
    assert normal_form(program) == "def f0(v0):\n    v1 = max(v0)\n    return v1\nv2 = f0([1])\nprint(v2)\n"


def test_names_are_told_apart_by_scope():
    # Whether two functions call their counters alike is a choice of names.
    alike = "def f():\n    for i in r():\n        p(i)\ndef g():\n    for i in r():\n        q(i)\n"
    apart = alike.replace("for i", "for j", 1).replace("p(i)", "p(j)")
    assert normal_form(alike) == normal_form(apart)


def test_kept_names():
    form = normal_form(
        "import numpy as np\nfrom os import path\n"
        "class Tree:\n    size = 0\n    def add(self, node):\n        self.size += node\n"
        "def f(key, other):\n    return np.sort(key, axis=other)\nf(key=1, other_=2)\nTree().add(__name__)\n"
    )
    for kept in ("np", "path", "size", "add", "key", "axis", "other_", "__name__"):
        assert kept in form
    for gone in ("Tree", "node", "def f("):
        assert gone not in form


def test_comments_docstrings_and_layout_go():
    bare = "def f(x):\n    return x\n"
    dressed = '"""Module."""\n# a comment\ndef f( x ) :\n  """Docs."""\n  "more"\n\n  return (x)  # end\n'
    assert normal_form(dressed) == normal_form(bare)
    assert fingerprint(dressed) == fingerprint(bare)
    assert normal_form('def f():\n    """Docs."""\n') == "def f0():\n    pass\n"
    assert normal_form('"""Only a docstring."""\n# and a comment') == ""
    assert normal_form(bare, names=False) == bare


def test_fingerprints_see_what_matters():
    base = "n = int(input())\nprint(n + 1)\n"
    assert fingerprint(base) == fingerprint("count = int(input())\nprint(count + 1)\n")
    assert fingerprint(base) != fingerprint(base.replace("+ 1", "+ 2"))
    assert fingerprint(base, literals=True) == fingerprint(base.replace("+ 1", "+ 2"), literals=True)
    assert fingerprint(base) != fingerprint(base.replace("+ 1", "- 1"))
    assert fingerprint("x = 1") != fingerprint("x = True") != fingerprint("x = 1.0")
    assert fingerprint("f(a)(b)") != fingerprint("f(a, b)")
    assert len(fingerprint(base)) == 64


def test_shape_blanks_literals():
    form = normal_form("print(12, 1.5, 'text', b'x', 2j, True, None, f'a{1}b')", literals=True)
    assert form == "print(0, 0.0, '', b'', 0j, True, None, f'{0}')\n"


HOSTILE = {
    "brackets": "(" * 100_000 + "1" + ")" * 100_000,
    "allowed brackets": "x = " + "(" * 190 + "1" + ")" * 190,
    "lists": "x = " + "[" * 90 + "]" * 90,
    "minus": "x = " + "-" * 200_000 + "1",
    "not": "x = " + "not " * 50_000 + "1",
    "sum": "x = " + "+".join(["a"] * 100_000),
    "middling sum": "x = " + "+".join(["a"] * 400),
    "attributes": "x = a" + ".a" * 100_000,
    "middling attributes": "x = a" + ".a" * 400,
    "calls": "x = a" + "()" * 20_000,
    "elif": "if 1: pass\n" + "elif 1: pass\n" * 20_000,
    "middling elif": "if x: pass\n" + "elif x: pass\n" * 300,
    "lambda": "x = " + "lambda: " * 30_000 + "1",
    "power": "x = 9 ** 9 ** 9 ** 9",
    "power of many": "x = " + "**".join(["9"] * 50_000),
    "shift": "x = 1 << 10 ** 10",
    "digits": "x = " + "9" * 200_000,
    "hexadecimal digits": "x = 0x" + "9" * 20_000,
    "null": "x = 1\0",
    "only null": "\0",
    "surrogate": "x = '\ud800'",
    "escaped surrogate": "x = '\\ud800'",
    "string product": "x = 'a' * 10 ** 10",
    "comparison": "x = " + "<".join(["a"] * 3_000),
    "decorators": "@a\n" * 3_000 + "def f(): pass",
    "comprehensions": "x = " + "[" * 50 + "a" + " for a in a]" * 50,
    "functions": "".join(" " * i + "def f():\n" for i in range(99)) + " " * 99 + "pass",
    "indents": "".join(" " * i + "if a:\n" for i in range(200)) + " " * 200 + "pass",
    "f-string": "x = f'" + "{a}" * 1_000 + "'",
    "f-string of newlines": "x = f'{\"\"\"a\nb\"\"\"}'",
    "unknown escape": "x = '\\d' is 1",
    "tabs": "if 1:\n\tx\n        y",
    "return outside": "return 1",
    "await outside": "await x",
    "ten million": "x = 1\n" * 1_700_000,
    "python 2": "print 'hello'",
    "cookie": "# coding: bogus\nx = 1",
    "patterns": "match x:\n case " + "[" * 150 + "]" * 150 + ": pass",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_texts_have_a_verdict(name):
    text = HOSTILE[name]
    error = compile_error(text)
    assert error is None or (error and "\n" not in error and len(error) < 300)
    assert fingerprint(text) == fingerprint(text)
    try:
        form = normal_form(text)
    except QualcodeError as refused:
        assert "\n" not in str(refused)
        # What is refused still has a fingerprint.
        assert fingerprint(text) != fingerprint(text + " + 1")
    else:
        assert error is None
        assert compile_error(form) is None
        assert normal_form(form) == form


def test_a_text_that_does_not_compile_says_why():
    assert compile_error("x = 1") is None
    assert compile_error("") is None
    assert compile_error("\ufeffx = 1") is None
    assert "line 2" in compile_error("x = 1\nprint 'x'")
    assert "null byte" in compile_error("x = 1\0")
    assert "at most 262,144" in compile_error("x = 1\n" * 100_000)
    with pytest.raises(QualcodeError, match="no normal form"):
        normal_form("x = = 1")


def test_the_check_inherits_nothing_and_warns_of_nothing(recwarn):
    # This file's own __future__ imports or a warning turned into an error must not change the verdict.
    assert compile_error("assert (1, 'x')\nx = '\\d'\n1 is 1") is None
    assert not recwarn.list


def test_only_python_has_these_so_far():
    for name in language_names():
        language = get_language(name)
        assert (language.compile_error is not None) == (name == "python")
    python = get_language("python")
    assert python.normal_form("x = 1") == "v0 = 1\n"
    assert python.fingerprint("x = 1") == python.fingerprint("y = 1")


def real_programs():
    folder = os.environ.get("HF_QUALCODE_TEST_DATA")
    if not folder:
        pytest.skip("set HF_QUALCODE_TEST_DATA to a folder with codenet-mini to test on real programs")
    files = sorted(Path(folder, "codenet-mini", "data").glob("*/Python/*.py"))
    if not files:
        pytest.skip(f"no codenet-mini in {folder}")
    return [file.read_text(encoding="utf-8", errors="replace") for file in files]


def check_forms(texts):
    for text in texts:
        if compile_error(text) is not None:
            continue
        form = normal_form(text)
        assert compile_error(form) is None, text
        assert normal_form(form) == form, text
        assert fingerprint(form) == fingerprint(text), text
        # Renaming leaves the tree's shape as it was.
        kinds = [type(node) for node in ast.walk(ast.parse(normal_form(text, names=False)))]
        assert kinds == [type(node) for node in ast.walk(ast.parse(form))], text


def test_forms_of_real_programs():
    check_forms(real_programs()[::20])


@pytest.mark.slow
def test_forms_of_all_real_programs():
    texts = real_programs()
    check_forms(texts)
    assert sum(compile_error(text) is None for text in texts) == 1_342
