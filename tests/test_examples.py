"""The examples run as they stand."""

import subprocess
import sys
from pathlib import Path

import pytest


EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.mark.parametrize("example", sorted(EXAMPLES.glob("[0-9]*.py")), ids=lambda path: path.name)
def test_example_runs(example):
    done = subprocess.run([sys.executable, str(example)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_search_finds_what_was_there_and_what_was_added():
    example = EXAMPLES / "01_search_your_code.py"
    done = subprocess.run([sys.executable, str(example)], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert lines[0] == "2 units of 1 files"
    assert lines[1].startswith("1. files.py:4-6  read_json")
    assert any(line.startswith("1. retry.py:1-2  retry_with_backoff") for line in lines)


def test_shorter_is_right_in_one_pair_of_each_kind_but_the_last():
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "02_score_your_scorer.py")], capture_output=True, text=True, check=True
    )
    # The closed form and the generator are shorter than what they beat; the well-named function is longer.
    assert done.stdout.startswith("three pairs (config the paper's), 3 pairs of 2 problems")
    assert "shorter  0.667" in done.stdout
