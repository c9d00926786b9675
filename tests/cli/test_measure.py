"""`hf-qualcode measure`, as it is typed."""

import argparse
import json

import pytest

from hf_qualcode.cli import measure
from hf_qualcode.quality.sandbox import Sandbox
from hf_qualcode.types import QualcodeError, UsageError


_KEYS = ["file", "input", "cpu_seconds", "peak_memory_bytes", "correct", "smells", "verdict", "interval", "isolation"]


def _main(*arguments):
    parser = argparse.ArgumentParser()
    measure.add_parser(parser.add_subparsers())
    args = parser.parse_args(["measure", *map(str, arguments)])
    return args.run(args)


@pytest.fixture(scope="module")
def isolation():
    try:
        return Sandbox.open(unsafe=True).isolation
    except QualcodeError as error:
        pytest.skip(f"no program can be run on this machine: {error}")


@pytest.fixture
def files(tmp_path):
    texts = {
        "slow.py": "n = int(input())\nprint(sum(1 for _ in range(n)))",
        "fast.py": "print(int(input()))",
        "wrong.py": "print(int(input()) + 1)",
        "broken.py": "import sys\nsys.exit(3)",
        "small.in": "5\n",
        "large.in": "1000000\n",
        "small.out": "5",
        "large.out": "1000000\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def test_rows(files, capsys, isolation):
    names = ["slow.py", "fast.py", "wrong.py", "broken.py"]
    inputs, expected = ["--input", files / "large.in"], ["--expect", files / "large.out"]
    code = _main(*(files / name for name in names), *inputs, *expected, "--rounds", 6, "--unsafe", "--json")
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert code == 0
    assert len(rows) == 4
    assert all(list(row)[: len(_KEYS)] == _KEYS for row in rows)
    assert [row["correct"] for row in rows] == [True, True, False, False]
    assert {row["isolation"] for row in rows} == {isolation}
    slow, fast, _, broken = rows
    assert (slow["verdict"], slow["interval"]) == (None, None)
    assert fast["verdict"] == "faster"
    assert fast["interval"][0] < fast["interval"][1] < 1
    assert slow["cpu_seconds"] > fast["cpu_seconds"] >= 0
    assert (broken["outcome"], broken["exit_code"], broken["verdict"], broken["rounds"]) == ("failed", 3, None, 1)
    assert rows[0]["smells"] is None


def test_table(files, capsys, isolation):
    hostile = files / "a\x1b[31m.py"
    hostile.write_text("print('\x1b[31m')")
    inputs = ["--input", files / "small.in", files / "large.in"]
    assert _main(hostile, files / "fast.py", *inputs, "--rounds", 1, "--unsafe") == 0
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert shown.count("fast.py") == 2
    assert isolation in shown


def test_smells(files, capsys, isolation):
    (files / "smelly.py").write_text("def f(a=[]):\n    try:\n        import os\n    except:\n        pass\n")
    code = _main(
        files / "smelly.py", "--input", files / "small.in", "--rounds", 1, "--smells", "ruff", "--unsafe", "--json"
    )
    captured = capsys.readouterr()
    assert code == 0
    assert json.loads(captured.out)["smells"] >= 1
    assert "stands in for Sonar" in captured.err


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (["--expect", "x", "y"], "--expect names 2 files, --input 1"),
        (["--rounds", "0"], "--rounds 0"),
        (["--time-limit", "-1"], "--time-limit -1"),
        (["--memory-limit", "0"], "--memory-limit 0"),
        (["--time-limit", "nan"], "--time-limit nan"),
        (["--tolerance", "1e-6"], "--tolerance"),
    ],
)
def test_wrong_use(files, extra, message):
    with pytest.raises(UsageError, match=message):
        _main(files / "fast.py", "--input", files / "small.in", *extra)


def test_missing_files(files):
    with pytest.raises(UsageError, match="no such file"):
        _main(files / "gone.py", "--input", files / "small.in")
    with pytest.raises(SystemExit) as stop:
        _main(files / "fast.py")
    assert stop.value.code == 2
