"""Worker processes: what becomes of them when the process that started them is told to end, or is killed."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from hf_qualcode.benchmark.spool import Row, Spool


_PROGRAM = """
    import contextlib, os, sys, time
    from pathlib import Path
    from hf_qualcode.benchmark.workers import run_tasks

    @contextlib.contextmanager
    def opener(folder):
        def work(task):
            Path(folder, "begun.tmp").write_text(str(os.getpid()))
            os.replace(Path(folder, "begun.tmp"), Path(folder, f"begun-{task}"))
            if task == "fails":
                while len(list(Path(folder).glob("begun-*"))) < 2:
                    time.sleep(0.01)
                raise OSError("no room")
            time.sleep(1000)
        try:
            yield work
        finally:
            Path(folder, "closed").touch()

    if __name__ == "__main__":
        list(run_tasks(opener, (sys.argv[1],), sys.argv[2:], 2))
"""
_PATIENCE_S = 60


def _start(tmp_path, *tasks):
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(_PROGRAM))
    return subprocess.Popen(
        [sys.executable, script, tmp_path, *tasks], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def _until(condition):
    end = time.monotonic() + _PATIENCE_S
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def _is_running(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    try:
        # Nobody may be there to take note of its end.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes are looked up in Linux's /proc")
def test_a_worker_ends_with_a_parent_that_was_killed(tmp_path):
    with _start(tmp_path, "one", "two") as process:
        begun = [tmp_path / "begun-one", tmp_path / "begun-two"]
        _until(lambda: all(path.exists() for path in begun))
        workers = [int(path.read_text()) for path in begun]
        assert all(map(_is_running, workers))
        process.kill()
    _until(lambda: not any(map(_is_running, workers)))


def test_a_worker_told_to_end_closes_what_it_opened_and_says_nothing(tmp_path):
    with _start(tmp_path, "waits", "fails") as process:
        _, errors = process.communicate(timeout=_PATIENCE_S)
    assert process.returncode == 1
    assert (tmp_path / "closed").exists()
    # One traceback, the first process's own, which quotes that of the task that failed.
    assert "no room" in errors
    assert "SystemExit" not in errors
    assert errors.count("most recent call last") == 2


def test_an_interrupt_ends_all(tmp_path):
    with _start(tmp_path, "one", "two") as process:
        _until(lambda: (tmp_path / "begun-one").exists() and (tmp_path / "begun-two").exists())
        workers = [int((tmp_path / f"begun-{name}").read_text()) for name in ("one", "two")]
        process.send_signal(signal.SIGINT)
        try:
            process.communicate(timeout=_PATIENCE_S)
        finally:
            process.kill()  # or leaving the block waits for ever
    assert not any(map(_is_running, workers))


def test_two_processes_that_write_one_problem_do_not_share_a_file(tmp_path, monkeypatch):
    spool = Spool(tmp_path)
    with spool.writing("p00001") as first:
        first.write(Row("s1", "a"))
        with monkeypatch.context() as patch:
            patch.setattr("os.getpid", lambda: -1)
            with spool.writing("p00001") as second:
                second.write(Row("s1", "b"))
        first.write(Row("s2", "a"))
    assert list(spool.rows("p00001")) == [Row("s1", "a"), Row("s2", "a")]
    assert [path.name for path in tmp_path.iterdir()] == ["p00001.jsonl"]
