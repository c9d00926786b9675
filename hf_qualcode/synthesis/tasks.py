"""Tasks: what programs are written for, read from files of several kinds."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hf_qualcode.types import QualcodeError


# A statement of this length alone is some 25,000 tokens; what is longer is no statement.
MAX_CHARACTERS = 20_000

REASONS = {
    "kept": "used",
    "repeated_id": "an earlier task has the same id",
    "repeated_query": "an earlier task asks for the same",
    "no_query": "asks for nothing",
    "too_long": "has more characters than --max-characters",
    "undecodable": "is not UTF-8",
    "no_task": "is no JSON object with a statement",
}
_QUERIES, _IDS = ("query", "prompt", "text", "question"), ("id", "task_id", "problem_id")
_TESTS = ("tests", "test_list")
_NO_TEXT = object()
# What TACO and APPS put around a statement.
_BEFORE, _AFTER = "QUESTION:", "ANSWER:"
_FORMATS = ("Use Standard Input format", "Use Call-Based format")


@dataclass(frozen=True, slots=True)
class Task:
    """One task.

    Attributes:
        id (`str`): Its name in the file, else its place from 0.
        query (`str`): The statement.
        tests (`tuple[str, ...]`): Assertions that a right solution passes; may be none.
        setup (`str`): Code that runs before a solution is tested.
        code (`str`): A solution, for writers that change code; may be empty.
    """

    id: str
    query: str
    tests: tuple[str, ...] = ()
    setup: str = ""
    code: str = ""


@dataclass(slots=True)
class Tasks:
    """The tasks of a file.

    Attributes:
        tasks (`list[Task]`): In its order.
        counts (`Counter`): Key of `REASONS` -> rows; they add up to the rows of the file.
    """

    tasks: list[Task] = field(default_factory=list)
    counts: Counter = field(default_factory=Counter)


def read_tasks(path: str | Path, *, max_characters: int = MAX_CHARACTERS) -> Tasks:
    """Reads a JSON list or JSON lines.

    A row is an object with a statement (`query`, `prompt`, `text` or `question`), and optionally `id` (or `task_id`,
    `problem_id`), `tests` (or `test_list`), `test_setup_code` and `code`. Other rows are left out, each under one
    reason. Statements count as equal if they differ in blanks alone.

    Args:
        path (`str` or `Path`): The file.
        max_characters (`int`, *optional*, defaults to 20,000): Of a statement.

    Raises:
        `QualcodeError`: The file cannot be read, or has no task that can be used.
    """
    path = Path(path)
    found = Tasks()
    ids: set[str] = set()
    queries: set[str] = set()
    for number, row in enumerate(_rows(path)):
        task = _task(row, number, max_characters)
        if isinstance(task, Task):
            words = " ".join(task.query.split())
            if task.id in ids or words in queries:
                task = "repeated_id" if task.id in ids else "repeated_query"
            else:
                ids.add(task.id)
                queries.add(words)
        if isinstance(task, Task):
            found.tasks.append(task)
        found.counts["kept" if isinstance(task, Task) else task] += 1
    if not found.tasks:
        reasons = ", ".join(f"{count} {REASONS[name]}" for name, count in found.counts.items()) or "it is empty"
        raise QualcodeError(
            f"{path} has no task that can be used ({reasons}); expected a JSON list or JSON lines of objects with "
            f"{' or '.join(_QUERIES)}"
        )
    return found


def _rows(path: Path) -> Iterator[Any]:
    """Values of a JSON list or of JSON lines; `_NO_TEXT` for bytes that are no text, a text for what is no JSON."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise QualcodeError(f"{path} cannot be read ({error.strerror or error})") from error
    if data.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"[":
        try:
            yield from json.loads(data.decode("utf-8-sig"))
        except (ValueError, RecursionError) as error:
            raise QualcodeError(f"{path} begins like a JSON list and is none ({error})") from error
        return
    for line in data.removeprefix(b"\xef\xbb\xbf").split(b"\n"):
        if not line.strip():
            continue
        try:
            text = line.decode("utf-8")
        except UnicodeDecodeError:
            yield _NO_TEXT
            continue
        try:
            yield json.loads(text)
        except (ValueError, RecursionError):
            yield text


def _task(row: Any, number: int, max_characters: int) -> Task | str:
    """The task of a row, or the key of `REASONS` that says why there is none."""
    if row is _NO_TEXT:
        return "undecodable"
    if not isinstance(row, Mapping):
        return "no_task"
    query = next((row[name] for name in _QUERIES if name in row), None)
    if not isinstance(query, str):
        return "no_task"
    statement = _statement(query)
    if not statement:
        return "no_query"
    if len(query) > max_characters:
        return "too_long"
    if any("\ud800" <= character <= "\udfff" for character in query):
        return "undecodable"
    name = next((row[name] for name in _IDS if isinstance(row.get(name), str | int)), number)
    tests = next((row[name] for name in _TESTS if isinstance(row.get(name), list | tuple)), ())
    setup, code = row.get("test_setup_code"), row.get("code")
    return Task(
        str(name),
        statement,
        tuple(test for test in tests if isinstance(test, str)),
        setup if isinstance(setup, str) else "",
        code.replace("\r\n", "\n") if isinstance(code, str) else "",
    )


def _statement(text: str) -> str:
    """Without what TACO puts around it; by plain comparisons, for a pattern takes quadratic time over many blanks."""
    text = text.replace("\r\n", "\n").strip()
    if text.startswith(_BEFORE):
        text = text.removeprefix(_BEFORE).strip()
        if text.endswith(_AFTER):
            text = text.removesuffix(_AFTER).rstrip()
            for said in _FORMATS:
                text = text.removesuffix(said).rstrip()
    return text
