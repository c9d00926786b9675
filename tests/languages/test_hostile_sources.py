"""No text may bring the process down or hold it up."""

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
    began = time.monotonic()
    with pytest.raises(ParseLimitError, match=r"not parsed within 0.2 s"):
        extract_units(text, "a.go", get_language("go"), time_limit=0.2)
    assert time.monotonic() - began < 2
    # and works on afterwards
    assert extract_units("def f(): pass", "a.py", get_language("python")).units[0].name == "f"


def test_long_unreadable_stretch_is_turned_away_at_once():
    began = time.monotonic()
    with pytest.raises(ParseLimitError, match="unreadable stretch"):
        extract_units("(" * 100_000, "a.py", get_language("python"))
    assert time.monotonic() - began < 2
