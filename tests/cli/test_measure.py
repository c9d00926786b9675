"""`hf-qualcode measure`, as it is typed."""

import argparse
import json

import pytest

from hf_qualcode.cli import measure
from hf_qualcode.quality.sandbox import Run, Sandbox
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
    # How long a run took is the machine's affair, and on a busy one nothing may be decided; but what is said is what
    # the interval says, and a program that does 1,000,000 times the work is never called the faster one.
    low, high = fast["interval"]
    assert 0 < low <= high
    assert fast["verdict"] in ("faster", "undecided")
    assert fast["verdict"] == "undecided" or high < 1
    assert low < 1
    assert all(row["cpu_seconds"] >= 0 for row in rows)
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


def test_the_verdict_is_on_the_first_file(files, capsys, monkeypatch):
    """With known times: which file is compared with which, and what is taken off."""
    seconds = {"slow.py": 0.9, "fast.py": 0.3, "": 0.1}

    class Known:
        isolation = "known"

        def run(self, program, stdin=b"", *, limits, core=None, count_instructions=False):
            return Run("ok", 0, b"1000000", b"", seconds[getattr(program, "name", program)], 1.0, 5 << 20)

    monkeypatch.setattr("hf_qualcode.quality.sandbox.Sandbox.open", lambda unsafe=False: Known())
    for names, verdict, ratio in ((["slow.py", "fast.py"], "faster", 0.25), (["fast.py", "slow.py"], "slower", 4.0)):
        assert _main(*(files / name for name in names), "--input", files / "large.in", "--json") == 0
        first, second = (json.loads(line) for line in capsys.readouterr().out.splitlines())
        assert first["verdict"] is None
        assert second["verdict"] == verdict
        assert second["interval"] == pytest.approx([ratio, ratio])
        assert second["cpu_seconds"] == pytest.approx(seconds[names[1]] - 0.1)


def test_an_empty_program_that_fails_is_said(files, monkeypatch):
    class Failing:
        isolation = "known"

        def run(self, program, stdin=b"", *, limits, core=None, count_instructions=False):
            return Run("memory", 1, b"", b"MemoryError\n", 0.1, 1.0, 5 << 20)

    monkeypatch.setattr("hf_qualcode.quality.sandbox.Sandbox.open", lambda unsafe=False: Failing())
    with pytest.raises(QualcodeError, match=r"an empty program already ends with memory \(MemoryError\)"):
        _main(files / "fast.py", "--input", files / "small.in")


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (["--expect", "x", "y"], "--expect names 2 files, --input 1"),
        (["--rounds", "0"], "--rounds 0"),
        (["--rounds", "101"], "--rounds 101: at most 100"),
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


def test_what_is_no_program(files):
    with pytest.raises(UsageError, match="is no file"):
        _main(files, "--input", files / "small.in")
    with pytest.raises(UsageError, match="is no file"):
        _main(files / "fast.py", "--input", "/dev/null")
    huge = files / "huge.py"
    with huge.open("wb") as file:
        file.truncate(1 << 40)  # takes no room on the disk
    with pytest.raises(UsageError, match="as a program at most"):
        _main(huge, "--input", files / "small.in")
    with pytest.raises(UsageError, match="as an input or output at most"):
        _main(files / "fast.py", "--input", huge)


def test_odd_files_and_names(files, capsys, isolation):
    """Each is a row of its own, and stdout is JSON alone."""
    odd = {
        "a\nb\x1b[31m.py": b"print(int(input()))",
        "empty.py": b"",
        "binary.py": bytes(range(256)),
        "latin.py": b"# coding: latin-1\nprint(len('\xe9'))",
        "not_utf8.py": b"print('\xe9')",
    }
    for name, content in odd.items():
        (files / name).write_bytes(content)
    options = ["--input", files / "small.in", "--rounds", 1, "--unsafe", "--json"]
    assert _main(*(files / name for name in odd), *options) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["outcome"] for row in rows] == ["ok", "ok", "failed", "ok", "failed"]
    assert [row["file"] for row in rows] == [str(files / name) for name in odd]
