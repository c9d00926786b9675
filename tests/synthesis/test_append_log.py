"""A file of lines that survives whatever ends its writer."""

import json
import logging
import os
import signal
import subprocess
import sys
import textwrap

import pytest

from hf_qualcode.synthesis.append_log import AppendLog
from hf_qualcode.types import QualcodeError


ROWS = [{"number": number, "text": "\ud800 \u2028 \n" * number} for number in range(4)]


def child(program, *arguments, **options):
    command = [sys.executable, "-c", textwrap.dedent(program), *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


def test_rows_come_back_in_their_order(tmp_path):
    path = tmp_path / "new folder" / "log.jsonl"
    with AppendLog(path) as log:
        for row in ROWS[:2]:
            log.append(row)
        assert list(log) == ROWS[:2]
    before = path.read_bytes()
    with AppendLog(path) as log:
        for row in ROWS[2:]:
            log.append(row)
        assert list(log) == ROWS
    assert path.read_bytes().startswith(before)


def test_a_file_cut_at_any_byte_keeps_all_whole_lines(tmp_path):
    path = tmp_path / "log.jsonl"
    with AppendLog(path) as log:
        for row in ROWS:
            log.append(row)
    data = path.read_bytes()
    for size in range(len(data) + 1):
        path.write_bytes(data[:size])
        whole = data[:size].count(b"\n")
        with AppendLog(path) as log:
            assert list(log) == ROWS[:whole]
            log.append({"new": True})
            assert list(log) == [*ROWS[:whole], {"new": True}]


def test_a_very_long_cut_line_is_taken_off(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_bytes(b'{"a": 1}\n{"a": "' + b"x" * 300_000)
    with AppendLog(path) as log:
        assert list(log) == [{"a": 1}]
    assert path.read_bytes() == b'{"a": 1}\n'


@pytest.mark.parametrize("damage", [b"{\n", b"\x00\x00\xff\n", b"[1]\n", b"\n", b"[" * 5000 + b"\n"])
def test_a_damaged_line_is_left_named_once_and_passed_over(tmp_path, damage, caplog):
    path = tmp_path / "log.jsonl"
    path.write_bytes(b'{"a": 1}\n' + damage + b'{"a": 2}\n')
    with AppendLog(path) as log, caplog.at_level(logging.WARNING):
        log.append({"a": 3})
        assert list(log) == [{"a": 1}, {"a": 2}, {"a": 3}]
    assert [record.getMessage() for record in caplog.records] == [
        f"{path}: 1 lines are damaged (the first is line 2) and count as missing"
    ]
    assert damage in path.read_bytes()


def test_a_second_writer_is_refused_until_the_first_one_ends(tmp_path):
    path = tmp_path / "log.jsonl"
    program = """
        import sys
        from hf_qualcode.synthesis.append_log import AppendLog
        with AppendLog(sys.argv[1]) as log:
            log.append({"a": 1})
            print("open", flush=True)
            sys.stdin.read()
    """
    with child(program, path, stdin=subprocess.PIPE) as process:
        assert process.stdout.readline() == "open\n"
        with pytest.raises(QualcodeError, match="is being written by another process"):
            AppendLog(path)
        process.send_signal(signal.SIGKILL)
        process.wait()
    with AppendLog(path) as log:
        assert list(log) == [{"a": 1}]


def test_a_writer_that_is_killed_loses_no_line_that_it_was_told_of(tmp_path):
    path = tmp_path / "log.jsonl"
    program = """
        import sys
        from hf_qualcode.synthesis.append_log import AppendLog
        log = AppendLog(sys.argv[1])
        for number in range(10**9):
            log.append({"number": number, "text": "x" * (number % 5000)})
            print(number, flush=True)
    """
    with child(program, path) as process:
        told = [int(process.stdout.readline()) for _ in range(200)]
        process.send_signal(signal.SIGKILL)
        told += [int(line) for line in process.stdout.read().splitlines(keepends=True) if line.endswith("\n")]
    with AppendLog(path) as log:
        numbers = [row["number"] for row in log]
    assert numbers == list(range(len(numbers)))
    assert len(numbers) >= told[-1] + 1 >= 200


@pytest.mark.skipif(not hasattr(os, "fork"), reason="limits of a file's size are set where there is `fork`")
def test_a_full_disk_is_one_clear_line_and_loses_nothing(tmp_path):
    path = tmp_path / "log.jsonl"
    program = """
        import resource, signal, sys
        from hf_qualcode.synthesis.append_log import AppendLog
        from hf_qualcode.types import QualcodeError
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        log = AppendLog(sys.argv[1])
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
        try:
            for number in range(100):
                log.append({"number": number, "text": "x" * 50})
        except QualcodeError as error:
            print(number, error)
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        log.append({"number": number})
        log.close()
    """
    with child(program, path) as process:
        out, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    number, _, said = out.strip().partition(" ")
    assert "cannot be written (File too large); what is in it is kept: make room and run the same command" in said
    rows = [json.loads(line) for line in path.read_bytes().splitlines()]
    assert [row["number"] for row in rows] == list(range(int(number) + 1))


def test_a_path_that_cannot_be_written_is_named(tmp_path):
    with pytest.raises(QualcodeError, match="cannot be opened"):
        AppendLog(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(QualcodeError, match="cannot be opened"):
        AppendLog(tmp_path / "file" / "log.jsonl")
