import pickle
import random
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hf_qualcode.corpus import guarded
from hf_qualcode.corpus.extraction import ScanOptions, Task, read_file
from hf_qualcode.corpus.guarded import extract_guarded, is_repetitive
from hf_qualcode.languages import ParseLimitError


def random_names(count, end):
    rng = random.Random(0)
    return "".join("".join(rng.choices("abcdefghij", k=6)) + rng.choice(end) for _ in range(count))


@pytest.mark.parametrize("count", [1_000, 2_000, 12_000])
def test_random_names_and_spaces_do_not_hide_a_repetition(count):
    assert is_repetitive(random_names(count, ["<\n"]))
    assert is_repetitive(random_names(count, ["<\n", " <", "<\t\n", "< \n "]))


def test_repetition_at_the_very_end_counts():
    assert is_repetitive(random_names(3_000, " \n;,.:+-*/()[]{}") + "a<\n" * 8_000)
    assert is_repetitive("a<\n" * 2_000)  # in a text shorter than half a window


def test_ordinary_text_is_none():
    assert not is_repetitive("")
    assert not is_repetitive("def f(): pass\n")
    assert not is_repetitive(Path(guarded.__file__).read_text())


def test_random_names_are_stopped(tmp_path):
    (tmp_path / "A.java").write_text(random_names(12_000, ["<\n"]))
    task = Task(0, "A.java", str(tmp_path / "A.java"), "")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    record = read_file(task, ScanOptions(parse_seconds=0.3)).record
    assert record.outcome in ("too-slow", "crashed")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_utime - before < 5  # processor time: not parsed in this process


SERVE = """
from hf_qualcode.corpus import guarded
def spin(*_, **__):
    while True:
        pass
guarded.extract_units = spin
guarded.serve()
"""


def test_process_that_hangs_says_why_it_was_ended():
    request = pickle.dumps(("x = 1", "a.py", "python", "", 0.1))
    done = subprocess.run([sys.executable, "-c", SERVE], input=request, capture_output=True, timeout=120, check=False)
    assert done.returncode == -signal.SIGXCPU


def test_systems_without_a_limit_on_memory(monkeypatch):
    monkeypatch.setattr(resource, "setrlimit", refuse_memory_limit)
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(AttributeError):  # as far as the request, which is not there
        guarded.serve()


def refuse_memory_limit(which, _limits):
    if which == resource.RLIMIT_AS:
        raise ValueError("current limit exceeds maximum limit")


def test_guarded_extraction_is_the_same():
    (unit,), has_errors = extract_guarded("def f(): pass\n", "a.py", "python", "@2/", 2.0)
    assert (unit.id, has_errors) == ("@2/a.py::f", False)


def test_limits_are_told():
    with pytest.raises(ParseLimitError):
        extract_guarded("(" * 100_000, "a.py", "python", "", 2.0)
