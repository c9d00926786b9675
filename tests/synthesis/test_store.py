"""The answers of a run: what is known, what is asked again, what a record is."""

import json
from dataclasses import replace

import pytest

from hf_qualcode.synthesis.plan import Plan
from hf_qualcode.synthesis.store import MANIFEST, RECORDS, Record, RunStore
from hf_qualcode.synthesis.tasks import Task
from hf_qualcode.types import QualcodeError


KEYS = list(Plan([Task("a", "Add.")], "m", {"seed": 1}, dimensions=["speed"], num_samples=2).request_keys())


def answered(key, answer="```python\nx = 1\n```"):
    return Record(key, answer, "stop", {"prompt_tokens": 3, "completion_tokens": 4})


def failed(key):
    return Record(key, "", None, {}, error="status 500")


def test_what_was_stored_comes_back_when_it_is_opened_again(tmp_path):
    records = [answered(KEYS[0], "\ud800 odd \u2028"), failed(KEYS[1]), answered(KEYS[2])]
    with RunStore(tmp_path / "run") as store:
        for record in records:
            store.append(record)
    with RunStore(tmp_path / "run") as store:
        assert list(store.records()) == records


def test_only_answers_are_known_and_a_failure_is_asked_again(tmp_path):
    with RunStore(tmp_path) as store:
        store.append(answered(KEYS[0]))
        store.append(failed(KEYS[1]))
        assert set(store.known_digests()) == {KEYS[0].digest()}
    with RunStore(tmp_path) as store:
        assert set(store.known_digests()) == {KEYS[0].digest()}
        store.append(answered(KEYS[1]))
    with RunStore(tmp_path) as store:
        assert set(store.known_digests()) == {KEYS[0].digest(), KEYS[1].digest()}
        assert [record.error for record in store.records()] == [None, "status 500", None]


def test_failed_is_what_was_asked_and_has_no_answer(tmp_path):
    with RunStore(tmp_path) as store:
        for record in (failed(KEYS[0]), failed(KEYS[1]), answered(KEYS[1]), answered(KEYS[2]), failed(KEYS[2])):
            store.append(record)
        assert set(store.failed_digests()) == {KEYS[0].digest()}
    with RunStore(tmp_path) as store:
        assert set(store.failed_digests()) == {KEYS[0].digest()}
        assert set(store.known_digests()) == {KEYS[1].digest(), KEYS[2].digest()}
        store.append(answered(KEYS[0]))
        assert not set(store.failed_digests())


def test_records_of_another_model_live_beside(tmp_path):
    other = replace(KEYS[0], model="n")
    with RunStore(tmp_path) as store:
        store.append(answered(KEYS[0], "one"))
        store.append(answered(other, "two"))
    with RunStore(tmp_path) as store:
        assert {record.key.model: record.answer for record in store.records()} == {"m": "one", "n": "two"}


def test_raw_answer_finish_reason_and_usage_are_in_the_file(tmp_path):
    with RunStore(tmp_path) as store:
        store.append(answered(KEYS[0]))
    row = json.loads((tmp_path / RECORDS).read_text())
    assert row == {
        "digest": KEYS[0].digest(), "key": KEYS[0].to_dict(), "answer": "```python\nx = 1\n```",
        "finish_reason": "stop", "usage": {"prompt_tokens": 3, "completion_tokens": 4}, "error": None,
    }  # fmt: skip


def test_a_cut_last_line_is_asked_again(tmp_path):
    with RunStore(tmp_path) as store:
        store.append(answered(KEYS[0]))
        store.append(answered(KEYS[1]))
    path = tmp_path / RECORDS
    path.write_bytes(path.read_bytes()[:-5])
    with RunStore(tmp_path) as store:
        assert set(store.known_digests()) == {KEYS[0].digest()}


def test_a_file_of_something_else_is_named(tmp_path):
    (tmp_path / RECORDS).write_text('{"digest": "no hexadecimal"}\n')
    with pytest.raises(QualcodeError, match="no file of records"):
        RunStore(tmp_path)
    (tmp_path / RECORDS).write_text('{"digest": "ab", "answer": "x"}\n')
    with RunStore(tmp_path) as store, pytest.raises(QualcodeError, match="a line that is no record"):
        list(store.records())


def test_a_manifest_is_replaced_whole(tmp_path, monkeypatch):
    with RunStore(tmp_path) as store:
        store.write_manifest({"a": 1})
        store.write_manifest({"a": 2})
        assert json.loads((tmp_path / MANIFEST).read_text()) == {"a": 2}

        def no_room(*_):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr("os.fsync", no_room)
        with pytest.raises(QualcodeError, match=r"manifest\.json cannot be written \(No space left on device\)"):
            store.write_manifest({"a": 3})
        monkeypatch.undo()
        assert json.loads((tmp_path / MANIFEST).read_text()) == {"a": 2}
