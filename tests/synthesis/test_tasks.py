"""Tasks from files: what is read, what is left out, and under which one reason."""

import json
import os
import random
import time
from collections import Counter
from pathlib import Path

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


@pytest.mark.parametrize("name", ["tests", "test_list"])
def test_tests_setup_and_code_come_along(tmp_path, name):
    row = {"text": "Add\r\n all.", "task_id": 3, name: ["assert f()", 5], "test_setup_code": "import m"}
    row["code"] = "a\r\nb"
    assert read_tasks(write(tmp_path / "t.jsonl", row)).tasks == [
        Task("3", "Add\n all.", ("assert f()",), "import m", "a\nb")
    ]


@pytest.mark.parametrize("name", ["tests", "test_setup_code", "code"])
@pytest.mark.parametrize("value", [None, 5, {"inputs": ["1"]}])
def test_what_else_they_may_be_is_as_if_it_were_not_there(tmp_path, name, value):
    assert read_tasks(write(tmp_path / "t.jsonl", {"text": "Add.", name: value})).tasks == [Task("0", "Add.")]


def test_a_list_and_lines_say_the_same(tmp_path):
    rows = [{"id": f"t{number}", "query": f"Do {number}."} for number in range(5)]
    (tmp_path / "list.json").write_text(json.dumps(rows, indent=2), encoding="utf-8-sig")
    lines = write(tmp_path / "lines.jsonl", *rows)
    lines.write_bytes(b"\xef\xbb\xbf" + lines.read_bytes().replace(b"\n", b"\r\n\r\n"))
    assert read_tasks(tmp_path / "list.json").tasks == read_tasks(lines).tasks == [
        Task(row["id"], row["query"]) for row in rows
    ]


def test_without_an_id_it_is_the_place_among_all_rows(tmp_path):
    path = write(tmp_path / "t.jsonl", {"query": "A."}, 7, b"", {"query": "B."}, {"query": "C.", "id": None})
    assert [task.id for task in read_tasks(path).tasks] == ["0", "2", "3"]


def test_every_row_is_used_or_has_one_reason(tmp_path):
    good = {"a": "Add.", "b": "x" * 50, "c": "x y", "d": "xy"}
    rows = {
        "kept": [{"id": name, "query": text} for name, text in good.items()],
        "repeated_id": [{"id": "a", "query": "Another."}],
        "repeated_query": [{"id": "e", "query": "  Add. \n"}, {"id": "f", "query": "x\n\ty"}],
        "no_query": [{"id": "g", "query": " \n"}],
        "too_long": [{"id": "h", "query": "x" * 51}],
        "undecodable": [b'{"query": "\xff"}', {"query": "\ud800"}, {"query": "a\udfffb"}],
        "no_task": [7, [], None, "text", {"answer": 1}, {"query": 1}, b"{", b"[" * 2000],
    }
    flat = [row for part in rows.values() for row in part]
    found = read_tasks(write(tmp_path / "t.jsonl", *flat), max_characters=50)
    assert found.counts.keys() <= REASONS.keys()
    assert sum(found.counts.values()) == len(flat)
    expected = Counter({name: len(part) for name, part in rows.items()})
    assert found.counts == expected
    assert {task.id: task.query for task in found.tasks} == good


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
    assert MAX_CHARACTERS == 20_000  # as the command's help says
    assert read_tasks(path).counts == {"too_long": 1, "kept": 1}
    assert read_tasks(path, max_characters=99_999).counts == {"too_long": 1, "kept": 1}
    assert read_tasks(path, max_characters=100_000).counts == {"kept": 2}


@pytest.mark.parametrize("end", ["Use Standard Input format\nANSWER:", "Use Call-Based format\nANSWER:", "ANSWER:"])
def test_what_taco_puts_around_a_statement_goes(tmp_path, end):
    path = write(tmp_path / "t.jsonl", {"prompt": f"\nQUESTION:\nGiven n, print it.\r\n{end}\n"})
    assert read_tasks(path).tasks[0].query == "Given n, print it."


@pytest.mark.parametrize(
    "text",
    [
        "Read QUESTION: and ANSWER: from the input",
        "Print the word ANSWER:",
        "Use Standard Input format",
        "a" + " " * 9 + "b",
    ],
)
def test_the_same_words_elsewhere_in_a_statement_stay(tmp_path, text):
    assert read_tasks(write(tmp_path / "t.jsonl", {"prompt": text})).tasks[0].query == text


def test_a_statement_with_a_beginning_alone_keeps_its_end(tmp_path):
    path = write(tmp_path / "t.jsonl", {"prompt": "QUESTION: Add. Use Standard Input format"})
    assert read_tasks(path).tasks[0].query == "Add. Use Standard Input format"


def test_what_is_around_a_statement_is_no_statement_and_makes_none_another(tmp_path):
    empty = {"prompt": "\nQUESTION:\n \nUse Standard Input format\nANSWER:\n"}
    again = {"prompt": "\nQUESTION:\nAdd  it.\nUse Call-Based format\nANSWER:\n"}
    found = read_tasks(write(tmp_path / "t.jsonl", empty, {"query": "Add it."}, again))
    assert found.counts == {"no_query": 1, "kept": 1, "repeated_query": 1}


def test_a_statement_of_blanks_takes_no_quadratic_time(tmp_path):
    path = write(tmp_path / "t.jsonl", {"query": "a" + " " * (MAX_CHARACTERS - 2) + "b"})
    began = time.process_time()
    assert read_tasks(path).counts == {"kept": 1}
    assert time.process_time() - began < 1  # by a regular expression it was 26 seconds


def test_the_statements_of_taco_are_all_read_and_bare():
    path = Path(os.environ.get("HF_QUALCODE_TEST_DATA", "")) / "taco-example" / "taco_prompts.json"
    if not os.environ.get("HF_QUALCODE_TEST_DATA") or not path.is_file():
        pytest.skip("HF_QUALCODE_TEST_DATA names no folder with taco-example")
    rows = json.loads(path.read_text(encoding="utf-8"))
    found = read_tasks(path)
    assert sum(found.counts.values()) == len(rows) == 1000
    assert found.counts["kept"] == len(found.tasks) > 900
    prompts = {str(row["task_id"]): row["prompt"].replace("\r\n", "\n") for row in rows}
    for task in found.tasks:
        before, _, after = prompts[task.id].partition(task.query)
        assert before.split() == ["QUESTION:"]
        assert after.split() in (f"Use {kind} format ANSWER:".split() for kind in ("Standard Input", "Call-Based"))


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "it is empty"),
        (b"\xef\xbb\xbf\n \n", "it is empty"),
        (b"[]", "it is empty"),
        (b'{"a": 1}\n', "1 is no JSON object with a statement"),
        (b'[1, 2, {"text": ""}]', "2 is no JSON object with a statement, 1 asks for nothing"),
    ],
)
def test_a_file_without_tasks_says_why_and_what_is_expected(tmp_path, content, why):
    (tmp_path / "t").write_bytes(content)
    with pytest.raises(QualcodeError) as caught:
        read_tasks(tmp_path / "t")
    assert str(caught.value) == (
        f"{tmp_path / 't'} has no task that can be used ({why}); expected a JSON list or JSON lines of objects with "
        "query or prompt or text or question"
    )


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
