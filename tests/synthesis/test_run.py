"""A whole run: numbers that add up, nothing asked twice, and the same end whatever stops it on the way."""

import json
import signal
import subprocess
import sys
import time
from collections import Counter

import pytest

from hf_qualcode.quality.sandbox import Sandbox
from hf_qualcode.synthesis import prompts
from hf_qualcode.synthesis.prompts import prompt_version
from hf_qualcode.synthesis.run import REPORT, VARIANTS, RunSettings, synthesize
from hf_qualcode.synthesis.store import MANIFEST, RECORDS
from hf_qualcode.synthesis.variants import read_variants
from hf_qualcode.synthesis.writers import WriterSettings, server
from hf_qualcode.types import QualcodeError, UsageError
from tests.synthesis.loopback import Behaviour, Loopback, misbehaving


# Ten words that a test set shares with one task.
SHARED = "one two three four five six seven eight nine ten"


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch):
    monkeypatch.setattr(server, "_FIRST_PAUSE_S", 0.001)
    monkeypatch.setattr(server, "_LONGEST_PAUSE_S", 0.01)


@pytest.fixture
def tasks(tmp_path):
    rows = [{"id": f"t{number}", "query": f"Solve the problem of number {number}."} for number in range(6)]
    rows += [{"id": "t0", "query": "Again."}, {"id": "bad", "query": f"Sum {SHARED} and print."}]
    path = tmp_path / "tasks.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def run(tasks, out, url, model="loopback", temperature=0.7, **changes):
    writer = WriterSettings(url=url, model=model, temperature=temperature, timeout=10)
    return synthesize(tasks, "server", out, RunSettings(**{"dimensions": ("speed",), **changes}), writer)


def test_numbers_of_the_report_add_up(tasks, tmp_path):
    with Loopback(misbehaving()) as there:
        report = run(tasks, tmp_path / "run", there.url)
    assert report["tasks"] == {"read": {"kept": 7, "repeated_id": 1}, "used": 7}
    assert report["requests"] == report["answered_now"] == sum(report["outcomes"].values()) == 7 * 2 * 4
    variants = list(read_variants(tmp_path / "run" / VARIANTS))
    assert len(variants) == report["variants"] == report["outcomes"].get("kept", 0) > 0
    assert report["variants_by_dimension"] == {"speed": dict(Counter(variant.level for variant in variants))}
    assert report["tokens"]["prompt_tokens"] == 100 * 56
    assert json.loads((tmp_path / "run" / REPORT).read_text()) == report
    manifest = json.loads((tmp_path / "run" / MANIFEST).read_text())
    assert manifest["finished"] is True
    assert manifest["sampling"] == {"temperature": 0.7, "top_p": 0.8, "top_k": 20, "max_tokens": 1024, "seed": 42}
    queries = {f"t{number}": f"Solve the problem of number {number}." for number in range(6)}
    assert all(variant.query == queries.get(variant.task_id, variant.query) for variant in variants)


def test_started_again_it_asks_nothing_and_writes_the_same(tasks, tmp_path):
    out = tmp_path / "run"
    with Loopback() as there:
        run(tasks, out, there.url)
        before = (out / VARIANTS).read_bytes(), (out / RECORDS).read_bytes()
        report = run(tasks, out, there.url)
        assert len(there.requests) == 56
    assert (report["answered_now"], report["answered_before"]) == (0, 56)
    assert ((out / VARIANTS).read_bytes(), (out / RECORDS).read_bytes()) == before


def test_another_model_prompt_or_sampling_is_asked_anew_and_the_old_answers_stay(tasks, tmp_path):
    out = tmp_path / "run"
    with Loopback() as there:
        run(tasks, out, there.url)
        first = (out / VARIANTS).read_bytes()
        for number, changes in enumerate(
            ({"model": "another"}, {"temperature": 0.1}, {"guided": False}, {"seed": 7}), start=1
        ):
            report = run(tasks, out, there.url, **changes)
            assert report["answered_now"] == 56
            assert len((out / RECORDS).read_text().splitlines()) == 56 * (number + 1)
            assert report["tokens"]["prompt_tokens"] == 5600  # of this plan's records alone
        report = run(tasks, out, there.url)
    assert report["answered_now"] == 0
    assert (out / VARIANTS).read_bytes() == first


def test_a_change_of_the_prompts_text_is_asked_anew(tasks, tmp_path, monkeypatch):
    with Loopback() as there:
        run(tasks, tmp_path / "run", there.url)
        monkeypatch.setattr(prompts, "_NAMING", f"{prompts._NAMING} Be brief.")
        prompt_version.cache_clear()
        try:
            report = run(tasks, tmp_path / "run", there.url)
        finally:
            monkeypatch.undo()
            prompt_version.cache_clear()
        texts = [asked["messages"][1]["content"] for asked in there.requests]
    assert (report["answered_now"], report["answered_before"]) == (56, 0)
    assert sum("Be brief." in text for text in texts) == 56


def test_without_guidelines_prompts_have_none(tasks, tmp_path):
    for guided, number in ((True, 56), (False, 0)):
        with Loopback() as there:
            run(tasks, tmp_path / "run", there.url, guided=guided)
        assert sum("# Guidelines" in asked["messages"][1]["content"] for asked in there.requests) == number
    variants = list(read_variants(tmp_path / "run" / VARIANTS))
    assert {variant.group for variant in variants} == {""}


def test_what_always_fails_is_counted_and_the_run_ends_each_time(tasks, tmp_path):
    out = tmp_path / "run"
    with Loopback(Behaviour(poison="Solve the problem of number 0.", poisoned=400)) as there:
        first = run(tasks, out, there.url)
        variants = (out / VARIANTS).read_bytes()
        second = run(tasks, out, there.url)
    for report, before in ((first, 0), (second, 48)):
        assert report["outcomes"]["failed"] == 8
        assert (report["answered_before"], report["answered_now"]) == (before, 56 - before)
        assert report["tokens"]["prompt_tokens"] == 4800
    assert (out / VARIANTS).read_bytes() == variants
    assert json.loads((out / MANIFEST).read_text())["finished"] is True


def test_programs_that_fail_the_tests_of_their_task_are_dropped(tmp_path):
    try:
        Sandbox.open()
    except QualcodeError as error:
        pytest.skip(f"no program can be run on this machine: {error}")
    path = tmp_path / "tasks.json"
    tests = {"right": "assert callable(solve)", "wrong": "assert solve([1]) == -1"}
    path.write_text(json.dumps([{"id": name, "query": name, "tests": [test]} for name, test in tests.items()]))
    with Loopback() as there:
        unchecked = run(path, tmp_path / "run", there.url)
        report = run(path, tmp_path / "run", there.url, check_tests=True)
    assert "fails_tests" not in unchecked["outcomes"]
    assert report["outcomes"]["fails_tests"] == 8
    assert {variant.task_id for variant in read_variants(tmp_path / "run" / VARIANTS)} == {"right"}


def test_more_samples_ask_only_for_what_is_new(tasks, tmp_path):
    with Loopback() as there:
        run(tasks, tmp_path / "run", there.url, num_samples=1)
        report = run(tasks, tmp_path / "run", there.url, num_samples=2)
    assert (report["answered_before"], report["answered_now"]) == (14, 14)


def test_tasks_that_share_text_with_a_test_set_are_left_out(tasks, tmp_path):
    (tmp_path / "held_out.json").write_text(json.dumps([f"Read {SHARED}."]))
    with Loopback() as there:
        report = run(tasks, tmp_path / "run", there.url, decontaminate=(str(tmp_path / "held_out.json"),))
        assert report["tasks"]["contaminated"] == 1
        assert report["tasks"]["used"] == 6
        assert not any("eight nine ten" in str(asked) for asked in there.requests)
        asked = len(there.requests)
        hits = report["decontamination"]["hits"]
        assert [hit["row_id"] for hit in hits] == ["bad"]
        # All of them, whole.
        queries = [row["query"] for row in map(json.loads, tasks.read_text().splitlines())]
        (tmp_path / "held_out.json").write_text(json.dumps(queries))
        with pytest.raises(QualcodeError, match="every task of .* shares text with the test sets"):
            run(tasks, tmp_path / "all", there.url, decontaminate=(str(tmp_path / "held_out.json"),))
        assert len(there.requests) == asked == 6 * 2 * 4


def test_drawn_tasks_depend_on_the_seed_alone(tasks, tmp_path):
    def used(seed):
        with Loopback() as there:
            run(tasks, tmp_path / f"{seed}-{time.monotonic_ns()}", there.url, num_tasks=3, seed=seed)
            return {asked["messages"][1]["content"].rpartition("# Task\n")[2] for asked in there.requests}

    assert used(1) == used(1)
    assert len(used(1)) == 3
    with Loopback() as there:
        report = run(tasks, tmp_path / "more", there.url, num_tasks=100)
    assert report["tasks"]["used"] == 7
    assert len({frozenset(used(seed)) for seed in range(4)}) > 1


def test_without_filters_all_that_is_text_stays(tasks, tmp_path):
    with Loopback(Behaviour(answers=("broken", "cut_off", "fenced"))) as there:
        whole = run(tasks, tmp_path / "run", there.url, filtered=False)
        kept = run(tasks, tmp_path / "run", there.url)
    assert whole["variants"] == 56
    assert kept["variants"] < 30
    assert kept["answered_now"] == 0


def test_numbers_out_of_range_are_usage_errors(tasks, tmp_path):
    for changes, said in (({"num_tasks": 0}, "--num-tasks 0"), ({"seed": -1}, "--seed -1"), ({"num_proc": 0}, "0"),
                          ({"max_characters": 0}, "--max-characters 0")):  # fmt: skip
        with pytest.raises(UsageError, match=said):
            run(tasks, tmp_path / "run", "http://localhost:1", **changes)


def test_two_runs_do_not_write_one_folder(tasks, tmp_path):
    from hf_qualcode.synthesis.store import RunStore

    with RunStore(tmp_path / "run"), pytest.raises(QualcodeError, match="being written by another process"):
        run(tasks, tmp_path / "run", "http://localhost:1")


def answered(folder):
    rows = map(json.loads, (folder / RECORDS).read_text().splitlines())
    return {row["digest"]: (row["answer"], row["finish_reason"]) for row in rows if row["error"] is None}


def test_killed_at_any_moment_it_ends_as_if_it_were_not(tasks, tmp_path):
    def command(url, out):
        return [
            sys.executable, "-m", "hf_qualcode", "synthesize", "--tasks", str(tasks), "--writer", "server",
            "--url", url, "--model", "loopback", "--out", str(out), "--dimensions", "speed,memory",
            "--concurrency", "8",
        ]  # fmt: skip

    with Loopback(Behaviour(answers=misbehaving().answers)) as there:
        subprocess.run(command(there.url, tmp_path / "whole"), check=True, capture_output=True)
    with Loopback(Behaviour(answers=misbehaving().answers, delay=0.3)) as there:
        process = subprocess.Popen(
            command(there.url, tmp_path / "killed"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        path = tmp_path / "killed" / RECORDS
        while not path.exists() or path.stat().st_size < 5000:
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait()
    some = path.read_bytes().count(b"\n")
    path.write_bytes(path.read_bytes()[:-3])
    assert 0 < some < 112
    assert not (tmp_path / "killed" / VARIANTS).exists()
    with Loopback(Behaviour(answers=misbehaving().answers)) as there:
        subprocess.run(command(there.url, tmp_path / "killed"), check=True, capture_output=True)
        assert len(there.requests) == 112 - some + 1
    assert answered(tmp_path / "killed") == answered(tmp_path / "whole")
    assert (tmp_path / "killed" / VARIANTS).read_bytes() == (tmp_path / "whole" / VARIANTS).read_bytes()
