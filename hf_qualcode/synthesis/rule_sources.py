"""Code that transformations start from: functions with tests (MBPP), and programs with inputs (CodeNet)."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hf_qualcode.synthesis.verifying.subjects import FunctionSubject, ProgramSubject, Subject
from hf_qualcode.types import QualcodeError


# Shares of the largest input that a statement allows.
SIZES = (0.003, 0.02, 0.1, 0.3, 1.0)


@dataclass(frozen=True, slots=True)
class RuleSource:
    """A program to change.

    Attributes:
        task_id (`str`): Of the task it solves; with the program's own id where a task has several programs, since only
            versions of one program are compared.
        query (`str`): What the program is for.
        subject (`FunctionSubject` or `ProgramSubject`): The code, and how it is verified.
    """

    task_id: str
    query: str
    subject: Subject


def read_sources(path: Path) -> list[RuleSource]:
    """The programs of a Project_CodeNet folder, or the functions of a JSONL file.

    Raises:
        `QualcodeError`: Neither is there.
    """
    path = Path(path)
    if path.is_dir():
        return list(codenet_sources(path))
    return list(function_sources(path))


def function_sources(path: Path) -> Iterator[RuleSource]:
    """Functions with their tests, from lines with `task_id` (or `id`), `text` (or `query`), `code`, `test_list` (or
    `tests`) and, optionally, `test_setup_code`. Lines without code or tests are left out.

    Raises:
        `QualcodeError`: The file cannot be read, or a line is no JSON object.
    """
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise QualcodeError(f"{path} cannot be read: {error}") from error
    for number, line in enumerate(lines, start=1):
        try:
            row = json.loads(line) if line.strip() else {}
        except ValueError as error:
            raise QualcodeError(f"{path}, line {number}: no JSON ({error})") from error
        if not isinstance(row, dict):
            raise QualcodeError(f"{path}, line {number}: a JSON object is needed, not {type(row).__name__}")
        query, code = row.get("text", row.get("query")), row.get("code")
        tests = row.get("test_list", row.get("tests"))
        named = row.get("task_id", row.get("id", number))
        if isinstance(query, str) and isinstance(code, str) and code and isinstance(tests, list) and tests:
            setup = row.get("test_setup_code") or ""
            yield function_source(str(named), query, code, [str(test) for test in tests], setup)


def function_source(task_id: str, query: str, code: str, tests: list[str], setup: str = "") -> RuleSource:
    """A function with its tests, line ends made the same."""
    return RuleSource(task_id, query, FunctionSubject(_lines(code), tuple(map(_lines, tests)), _lines(setup)))


def codenet_sources(root: Path, seed: int = 0) -> Iterator[RuleSource]:
    """The accepted programs of a Project_CodeNet folder, with samples of the statement and inputs generated from it.

    Programs of equal text count once. Problems whose statement is no English text that can be read are left out.

    Args:
        root (`Path`): The folder.
        seed (`int`, *optional*, defaults to 0): Of the inputs.
    """
    from hf_qualcode.benchmark.codenet import CodeNet, SourceError
    from hf_qualcode.benchmark.inputs import Refusal, generate_inputs
    from hf_qualcode.benchmark.statements import is_english, read_statement

    source = CodeNet.open(root)
    for problem_id in sorted(source.metadata_ids()):
        try:
            statement = read_statement(source.description(problem_id).decode("utf-8", "replace"))
            table = source.submissions(problem_id)
        except SourceError:
            continue
        if not is_english(statement.text):
            continue
        generated = generate_inputs(statement, SIZES, seed=seed)
        inputs = () if isinstance(generated, Refusal) else tuple(one.text for one in generated)
        samples = tuple(sample.input for sample in statement.samples)
        place, status = table.position("submission_id"), table.position("status")
        language = table.position("language")
        seen = set()
        for row in table.rows():
            if row is None or row[status] != "Accepted" or row[language] != "Python":
                continue
            try:
                code = _lines(source.source(problem_id, row[place]))
            except SourceError:
                continue
            if code not in seen:
                seen.add(code)
                yield RuleSource(f"{problem_id}/{row[place]}", statement.text, ProgramSubject(code, samples, inputs))


def _lines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")
