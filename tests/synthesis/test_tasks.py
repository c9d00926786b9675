"""Tasks from files: what is read, what is left out, and under which one reason."""

import json
import random
from collections import Counter

import pytest

from hf_qualcode.synthesis.tasks import MAX_CHARACTERS, REASONS, Task, read_tasks
from hf_qualcode.types import QualcodeError


def write(path, *rows):
    path.write_bytes(b"\n".join(row if isinstance(row, bytes) else json.dumps(row).encode() for row in rows) + b"\n")
    return path


@pytest.mark.parametrize("name", ["query", "prompt", "text", "question"])
def test_a_statement_may_have_several_names(tmp_path, name):
    assert read_tasks(write(tmp_path / "t.jsonl", {name: "Add."})).tasks == [Task("0", "Add.")]


@pytest.mark.parametrize("name", ["id", "task_id", "problem_id"])
def test_so_may_an_id_and_numbers_become_texts(tmp_path, name):
    assert read_tasks(write(tmp_path / "t.jsonl", {"text": "Add.", name: 17})).tasks[0].id == "17"


def test_tests_setup_and_code_come_along(tmp_path):
    row = {"text": "Add.", "task_id": 3, "test_list": ["assert f()", 5], "test_setup_code": "import m"}
    row["code"] = "a\r\nb"
    assert read_tasks(write(tmp_path / "t.jsonl", row)).tasks == [
        Task("3", "Add.", ("assert f()",), "import m", "a\nb")
    ]


def test_a_list_and_lines_say_the_same(tmp_path):
    rows = [{"id": f"t{number}", "query": f"Do {number}."} for number in range(5)]
    (tmp_path / "list.json").write_text(json.dumps(rows, indent=2), encoding="utf-8-sig")
    lines = write(tmp_path / "lines.jsonl", *rows)
    lines.write_bytes(b"\xef\xbb\xbf" + lines.read_bytes().replace(b"\n", b"\r\n\r\n"))
    assert read_tasks(tmp_path / "list.json").tasks == read_tasks(lines).tasks == [
        Task(row["id"], row["query"]) for row in rows
    ]


def test_every_row_is_used_or_has_one_reason(tmp_path):
    rows = {
        "kept": [{"id": "a", "query": "Add."}, {"id": "b", "query": "x" * 50}],
        "repeated_id": [{"id": "a", "query": "Another."}],
        "repeated_query": [{"id": "c", "query": "  Add. \n"}],
        "no_query": [{"id": "d", "query": " \n"}],
        "too_long": [{"id": "e", "query": "x" * 51}],
        "undecodable": [b'{"query": "\xff"}', {"query": "\ud800"}],
        "no_task": [7, [], None, "text", {"answer": 1}, {"query": 1}, b"{", b"[" * 2000],
    }
    flat = [row for part in rows.values() for row in part]
    found = read_tasks(write(tmp_path / "t.jsonl", *flat), max_characters=50)
    assert found.counts.keys() <= REASONS.keys()
    assert sum(found.counts.values()) == len(flat)
    expected = Counter({name: len(part) for name, part in rows.items()})
    assert found.counts == expected
    assert [task.id for task in found.tasks] == ["a", "b"]


def test_any_bytes_are_counted_and_raise_nothing_else(tmp_path):
    draws = random.Random(0)
    for number in range(200):
        size = draws.randrange(60)
        data = b'{"query": "Keep."}\n' + bytes(draws.choices(b'{}[]":,\\ \n\r\xff\xc3a0', k=size))
        (tmp_path / f"{number}").write_bytes(data)
        found = read_tasks(tmp_path / f"{number}")
        lines = [line for line in data.split(b"\n") if line.strip()]
        assert sum(found.counts.values()) == len(lines)
        assert found.tasks[0].query == "Keep."


def test_a_statement_of_100_000_characters_is_left_out_unless_asked_for(tmp_path):
    path = write(tmp_path / "t.jsonl", {"query": "word " * 20_000}, {"query": "Add."})
    assert MAX_CHARACTERS < 100_000
    assert read_tasks(path).counts == {"too_long": 1, "kept": 1}
    assert read_tasks(path, max_characters=100_000).counts == {"kept": 2}


@pytest.mark.parametrize("end", ["Use Standard Input format\nANSWER:", "Use Call-Based format\nANSWER:", "ANSWER:"])
def test_what_taco_puts_around_a_statement_goes(tmp_path, end):
    path = write(tmp_path / "t.jsonl", {"prompt": f"\nQUESTION:\nGiven n, print it.\r\n{end}\n"})
    assert read_tasks(path).tasks[0].query == "Given n, print it."


def test_the_same_words_inside_a_statement_stay(tmp_path):
    text = "Read QUESTION: and ANSWER: from the input"
    assert read_tasks(write(tmp_path / "t.jsonl", {"prompt": text})).tasks[0].query == text


@pytest.mark.parametrize("content", [b"", b"\n\n", b"[]", b'{"a": 1}\n', b"[1, 2]"])
def test_a_file_without_tasks_says_what_is_expected(tmp_path, content):
    (tmp_path / "t").write_bytes(content)
    with pytest.raises(QualcodeError, match=r"no task that can be used .*query"):
        read_tasks(tmp_path / "t")


@pytest.mark.parametrize("content", [b'[{"query": "a"}', b'[{"query": "\xff"}]', b"[" * 100_000])
def test_a_list_that_is_none_says_so(tmp_path, content):
    (tmp_path / "t").write_bytes(content)
    with pytest.raises(QualcodeError, match="begins like a JSON list and is none"):
        read_tasks(tmp_path / "t")


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(QualcodeError, match=r"missing\.json cannot be read"):
        read_tasks(tmp_path / "missing.json")
    with pytest.raises(QualcodeError, match="cannot be read"):
        read_tasks(tmp_path)
