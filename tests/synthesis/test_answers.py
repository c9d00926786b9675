"""Answers of language models, in all the ways they come: each ends in exactly one outcome."""

import random
import time

import pytest

from hf_qualcode.synthesis.answers import OUTCOMES, read_answer
from tests.synthesis.loopback import ANSWERS, answer_text


CODE = 'def add(a, b):\n    """Adds."""\n    return a + b\n'
LONGER = "import math\n\n\ndef root(x):\n    return math.sqrt(x)\n\n\nprint(root(4))\n"
JAVA = "public class Main {\n    public static void main(String[] a) {\n        System.out.println(1);\n    }\n}\n"
NESTED = 'def usage():\n    """Call it so:\n\n    ```\n    usage()\n    ```\n    """\n    return 1\n'


def fence(code, label="python", mark="```"):
    return f"{mark}{label}\n{code}{mark}"


def blocks(*codes):
    return "\nAnd:\n".join(map(fence, codes))


KEPT = {
    "fenced": (fence(CODE), CODE),
    "fenced, no label": (fence(CODE, ""), CODE),
    "other names of the language": (fence(CODE, "py"), CODE),
    "upper case label": (fence(CODE, "Python"), CODE),
    "label with attributes": (f"```python title=x\n{CODE}```", CODE),
    "tildes": (fence(CODE, mark="~~~"), CODE),
    "four backticks": (fence(CODE, mark="````"), CODE),
    "prose around": (f"Here you are:\n\n{fence(CODE)}\n\nIt is linear.", CODE),
    "indented fence": (f"1. So:\n   ```python\n{CODE}   ```\n", CODE),
    "unfenced": (CODE, CODE),
    "unfenced with prose": (f"Sure, this does it.\n\n{CODE}\nIt adds two numbers.", CODE),
    "windows lines": (fence(CODE).replace("\n", "\r\n"), CODE),
    "two blocks, the longer one": (blocks("add(1, 2)\n", LONGER, "root(2)\n"), LONGER),
    "equally long, the last": (blocks("x = 1\n", "x = 2\n"), "x = 2\n"),
    "one that compiles among others": (blocks("def broken(:\n    pass  # and much longer than it\n", CODE), CODE),
    "another language beside": (f"{fence(JAVA, 'java')}\n{fence(CODE)}", CODE),
    "thought": ("<think>\n" + fence(LONGER) + "\n</think>\n" + fence(CODE), CODE),
    "thought that the template opened": (f"Let me see. {fence(LONGER)}\n</think>\n{fence(CODE)}", CODE),
    "fence in a docstring": (fence(NESTED), NESTED),
    "blank lines around": (f"```python\n\n\n{CODE}\n\n```", CODE),
}
DROPPED = {
    "nothing": ("", None, "empty"),
    "blanks": (" \n\t\n", None, "empty"),
    "nothing, cut off": ("", "length", "truncated"),
    "cut off": (fence(CODE), "length", "truncated"),
    "open fence": (f"```python\n{CODE}", None, "truncated"),
    "open fence after a closed one": (f"{fence(CODE)}\nAlso:\n```python\nx = 1\n", "stop", "truncated"),
    "open thought": ("<think>First I would write\nx = 1", "stop", "truncated"),
    "prose": ("I am sorry, but I cannot help with that.", "stop", "no_code"),
    "prose in a fence": (fence("I am sorry, no.\n", "text"), "stop", "no_code"),
    "yes": ("yes", "stop", "no_code"),
    "labelled other language": (fence(JAVA, "java"), "stop", "other_language"),
    "labelled unknown language": (fence("puts 1\n", "ruby"), "stop", "other_language"),
    "unlabelled other language": (fence(JAVA, ""), "stop", "other_language"),
    "unfenced other language": (JAVA, "stop", "other_language"),
    "python 2": (fence("print 'a'\nx = 1\n"), "stop", "does_not_compile"),
    "broken": (fence("def f(:\n    return 1\n"), "stop", "does_not_compile"),
    "more than any solution": ("x = 1\n" * 40_000, "stop", "too_long"),
}


@pytest.mark.parametrize("name", KEPT)
def test_the_program_is_found(name):
    text, code = KEPT[name]
    assert read_answer(text, "stop") == ("kept", code, "")


@pytest.mark.parametrize("name", DROPPED)
def test_what_is_no_whole_program_has_its_reason(name):
    text, finish_reason, outcome = DROPPED[name]
    answer = read_answer(text, finish_reason)
    assert (answer.outcome, answer.code) == (outcome, "")


def test_what_looked_like_a_program_is_kept_for_the_run_without_filters():
    assert read_answer(fence(CODE), "length").fragment == CODE
    assert read_answer(f"```python\n{CODE}", None).fragment == CODE.strip("\n")
    assert "def f(:" in read_answer(fence("def f(:\n    return 1\n")).fragment
    assert read_answer("I am sorry.").fragment == ""


@pytest.mark.parametrize("language", ["java", "cpp", "rust"])
def test_other_languages_are_asked_for_and_kept(language):
    assert read_answer(fence(JAVA, language), "stop", language) == ("kept", JAVA, "")
    assert read_answer(fence(JAVA, ""), "stop", language).outcome == "kept"
    assert read_answer(fence(CODE, "python"), "stop", language).outcome == "other_language"


def test_every_kind_of_the_test_server_has_the_outcome_it_was_made_for():
    expected = {
        "fenced": "kept", "unfenced": "kept", "two_blocks": "kept", "thinking": "kept", "surrogate": "kept",
        "prose": "no_code", "other_language": "other_language", "empty": "empty", "null": "empty",
        "cut_off": "truncated", "broken": "does_not_compile",
    }  # fmt: skip
    for kind in set(ANSWERS):
        text = answer_text(kind, "0123") or ""
        assert read_answer(text, "length" if kind == "cut_off" else "stop").outcome == expected[kind], kind


def test_whatever_comes_ends_in_one_outcome_and_what_is_kept_compiles():
    draws = random.Random(0)
    parts = [
        *("```", "```python\n", "~~~", "\n", "\n\n", "<think>", "</think>", "x = 1\n", "def f():\n    pass\n", "    "),
        *(CODE, "Here it is.\n", '"""', "'''", "\x00", "\ud800", "\u2028", "````\n", "```java\n", JAVA, "(", "\\"),
    ]
    outcomes = set()
    for _ in range(1500):
        text = "".join(draws.choices(parts, k=draws.randrange(12)))
        answer = read_answer(text, draws.choice(["stop", "length", None]))
        assert answer.outcome in OUTCOMES
        assert bool(answer.code) == (answer.outcome == "kept")
        if answer.code:
            compile(answer.code, "answer", "exec")
            assert all(line in text for line in answer.code.split("\n"))
        outcomes.add(answer.outcome)
    assert len(outcomes) >= 6


@pytest.mark.parametrize(
    "text",
    [
        "```\n" * 20_000,
        "```python\n" * 15_000,
        fence("x = " + "(" * 90_000 + "\n"),
        fence("x = " + "-" * 90_000 + "1\n"),
        "<think>" * 25_000,
        "</think>" * 20_000,
        '"""\n```\n' * 15_000,
        "import a\n\n" * 18_000 + "(",
        "def f():\n    pass\n\n" * 8000 + "and so on, as you see",
        "`" * 190_000,
        "a" * 190_000,
        fence('x = """' + "```\n" * 20_000),
    ],
)
def test_hostile_answers_take_no_time(text):
    began = time.process_time()
    assert read_answer(text).outcome in OUTCOMES
    assert time.process_time() - began < 5
