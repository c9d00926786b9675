"""No text may bring the process down or hold it up."""

import itertools
import subprocess
import sys
import time

import pytest

from hf_qualcode.corpus.units import extract_units
from hf_qualcode.languages import ParseLimitError, get_language, language_names


# Runs apart: what it tests for would end the test run.
NESTING = """
import sys
from hf_qualcode.corpus.units import extract_units
from hf_qualcode.languages import ParseLimitError, get_language
language = get_language(sys.argv[1])
n = 100_000
indented = "".join(" " * depth + "if x:\\n" for depth in range(800)) + " " * 800 + "pass\\n"
texts = ["(" * n, "x = " + "(" * n + "1" + ")" * n, "[" * n, "{" * n + "}" * n, "if (x) {\\n" * n, indented, "-" * n]
for text in texts:
    try:
        extract_units(text, "f" + language.suffixes[0], language, time_limit=0.3)
    except ParseLimitError:
        pass
print("survived", len(texts))
"""


@pytest.mark.parametrize("name", language_names())
def test_deep_nesting_does_not_crash(name):
    done = subprocess.run([sys.executable, "-c", NESTING, name], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "survived 7\n"), done.stderr


def test_parser_is_stopped_at_its_time_limit():
    text = '"' * 100_000
    with pytest.raises(ParseLimitError, match=r"not parsed within 0.2 s"):
        extract_units(text, "a.go", get_language("go"), time_limit=0.2)
    # and works on afterwards
    assert extract_units("def f(): pass", "a.py", get_language("python")).units[0].name == "f"


def test_long_unreadable_stretch_is_turned_away_at_once():
    with pytest.raises(ParseLimitError, match="unreadable stretch"):
        extract_units("(" * 100_000, "a.py", get_language("python"))


# Runs apart: with patterns that go back over what they read, none of these would end in time.
LONG_STRETCHES = """
from hf_qualcode.corpus.generated import generated_by_content
from hf_qualcode.corpus.notebooks import without_magics
from hf_qualcode.corpus.units import extract_units
from hf_qualcode.languages import get_language
from hf_qualcode.languages._lookup import header_language
n = 300_000
for number in range(20):
    header_language("\\n" * n)
generated_by_content("\\n" * n)
without_magics([" " * n + "x"])
stars = "*" * n
(unit,) = extract_units(f"/* a\\n{stars} b\\n*/\\nint f() {{ }}\\n", "a.c", get_language("c")).units
assert unit.doc == "a\\nb", unit.doc[:80]
extract_units("#define A" + "_H_" * n + "x\\nint f() { }\\n" + " " * n + "x\\n", "a.c", get_language("c"))
print("survived")
"""


def test_long_stretches_of_one_character():
    done = subprocess.run(
        [sys.executable, "-c", LONG_STRETCHES], capture_output=True, text=True, timeout=90, check=False
    )
    assert (done.returncode, done.stdout) == (0, "survived\n"), done.stderr


def test_waiting_for_the_processor_does_not_count(monkeypatch):
    # However late it is, the parser has its time.
    clock = itertools.count(step=1_000)
    monkeypatch.setattr(time, "monotonic", lambda: float(next(clock)))
    assert extract_units("def f(): pass\n" * 5_000, "a.py", get_language("python"), time_limit=30).units
