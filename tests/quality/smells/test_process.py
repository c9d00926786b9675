"""The piped process: what hangs, dies or babbles costs its own program, and no other."""

import os
import sys
from pathlib import Path

import pytest

from hf_qualcode.quality.smells._process import LostProcessError, PipedProcess, RestartingProcess, SilentProcessError


STAND_IN = str(Path(__file__).with_name("stand_in.py"))
COMMAND = [sys.executable, STAND_IN]


@pytest.fixture
def process(tmp_path):
    restarting = RestartingProcess(lambda: COMMAND, lambda: tmp_path, seconds=30)
    yield restarting
    restarting.close()


@pytest.fixture
def impatient(tmp_path):
    restarting = RestartingProcess(lambda: COMMAND, lambda: tmp_path, seconds=0.3)
    yield restarting
    restarting.close()


def test_one_process_answers_in_order(process):
    answers = [process.ask(b"x" * length) for length in (1, 0, 70_000, 1_000_000)]
    assert [answer["findings"][0][1] for answer in answers] == [1, 0, 70_000, 1_000_000]
    assert [answer["served"] for answer in answers] == [1, 2, 3, 4]
    assert len({answer["pid"] for answer in answers}) == 1


@pytest.mark.parametrize("bad", [b"crash", b"garbage", b"list"])
def test_a_request_that_loses_the_process_has_no_answer_and_the_rest_goes_on(process, bad):
    assert process.ask(b"good")["served"] == 1
    assert process.ask(bad) is None
    assert process.ask(b"good")["served"] == 1  # a new process


def test_a_request_that_hangs_has_no_answer_and_the_rest_goes_on(impatient):
    assert impatient.ask(b"hang") is None
    assert impatient._process is None
    impatient._seconds = 30
    assert impatient.ask(b"good")["served"] == 1


def test_a_process_that_does_not_read_does_not_hold_us(impatient, tmp_path):
    command = [sys.executable, "-c", "print('{}', flush=True)\nimport time\ntime.sleep(600)"]
    process = PipedProcess(command, tmp_path)
    with pytest.raises(SilentProcessError, match=r"within 0\.3 s"):
        process.ask(b"x" * 1_000_000, 0.3)
    assert process._process.returncode is not None


def test_what_a_worn_out_process_dies_of_is_asked_again(process):
    for _ in range(3):
        assert process.ask(b"worn") == {"findings": []}


def test_stderr_never_fills_the_pipe(process):
    for _ in range(3):
        assert process.ask(b"noise") == {"findings": []}
    assert process.ask(b"good")["served"] == 4


def test_the_last_words_are_the_error(tmp_path):
    with pytest.raises(LostProcessError, match="no such class: SonarPy"):
        PipedProcess([*COMMAND, "die"], tmp_path)
    with pytest.raises(LostProcessError, match="no/such/program cannot be started: No such file"):
        PipedProcess(["no/such/program"], tmp_path)
    process = PipedProcess(COMMAND, tmp_path)
    with pytest.raises(LostProcessError, match="out of memory"):
        process.ask(b"crash", 30)


def test_an_error_at_the_start_is_not_taken_for_a_bad_program(tmp_path):
    with pytest.raises(LostProcessError, match="no such class"):
        RestartingProcess(lambda: [*COMMAND, "die"], lambda: tmp_path, seconds=30).ask(b"good")


def test_after_an_interrupt_no_answer_goes_to_another_request(process, monkeypatch):
    process.ask(b"good")

    def interrupt(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(PipedProcess, "_receive", interrupt)
        with pytest.raises(KeyboardInterrupt):
            process.ask(b"four")
    assert process.ask(b"seven77")["findings"][0][1] == 7


def test_close_ends_the_process_and_a_later_call_starts_another(process):
    first = process.ask(b"good")["pid"]
    process.close()
    with pytest.raises(ProcessLookupError):
        os.kill(first, 0)
    assert process.ask(b"good")["pid"] != first


def test_a_forked_copy_starts_its_own(process):
    first = process.ask(b"good")["pid"]
    process._owner += 1  # as it looks to a child of ours
    mine = process._process
    assert process.ask(b"good")["pid"] != first
    assert mine._process.poll() is None  # the parent's goes on
    mine.kill()
