"""What is known about each problem, on disk: so that memory does not grow with CodeNet, and no work is done twice.

A problem has two files. `ID.jsonl` holds one line a program, sorted by submission id, written while the programs are
read. `ID.json` holds the rest (statement, counts) and the key of what it was made from; it is written last, so that a
problem without one, or with another key, is not done.
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import NamedTuple, TextIO

from hf_qualcode.types import QualcodeError


class Row(NamedTuple):
    """A program on disk.

    Attributes:
        submission_id (`str`): CodeNet's id.
        text_digest (`str`): SHA-256 of the text.
        fingerprint (`str`): Digest of its normal form; `""` for a program that is not kept, of which no more is known.
        cpu_time (`float | str`): Milliseconds as the metadata have them, or the key of `MEASUREMENT_OUTCOMES` that
            says why there is no number.
        memory (`float | str`): Kilobytes, or why there is no number.
        smell_rules (`list[str]`, *optional*): Sorted rule ids, `None` where no engine labelled the program.
    """

    submission_id: str
    text_digest: str
    fingerprint: str = ""
    cpu_time: float | str = "blank"
    memory: float | str = "blank"
    smell_rules: list[str] | None = None

    @property
    def is_kept(self) -> bool:
        """The program is one of the benchmark's; else only its text counts, as an accepted solution."""
        return self.fingerprint != ""


@dataclass
class Summary:
    """What became of a problem.

    Attributes:
        key (`str`): Digest of all that the result depends on.
        outcome (`str`): A key of `PROBLEM_OUTCOMES`.
        statement (`str`): Clean text, `""` where there is none that can be used.
        num_rows (`int`): Rows of the metadata that were read.
        outcomes (`dict[str, int]`): Rows by outcome; adds up to `num_rows`.
        measurements (`dict[str, dict[str, int]]`): Dimension -> kept programs by what their measurement is worth.
        examples (`dict[str, list[str]]`): Outcome -> the first few ids, in the order of ids.
    """

    key: str
    outcome: str
    statement: str = ""
    num_rows: int = 0
    outcomes: dict[str, int] = field(default_factory=dict)
    measurements: dict[str, dict[str, int]] = field(default_factory=dict)
    examples: dict[str, list[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Spool:
    """The folder of these files."""

    folder: Path

    def summary(self, problem_id: str) -> Summary | None:
        """Returns what became of a problem; `None` where it is not known or the file is damaged."""
        try:
            summary = Summary(**json.loads((self.folder / f"{problem_id}.json").read_text("utf-8")))
        except (OSError, ValueError, TypeError):
            return None
        return summary if (self.folder / f"{problem_id}.jsonl").exists() else None

    def finished(self, problem_id: str) -> Summary:
        """Returns what became of a problem that was done.

        Raises:
            [`QualcodeError`]: The files are gone or damaged.
        """
        summary = self.summary(problem_id)
        if summary is None:
            raise QualcodeError(f"{self.folder}/{problem_id}.json or .jsonl is gone or damaged; collect again")
        return summary

    def rows(self, problem_id: str) -> Iterator[Row]:
        """Yields a problem's programs, sorted by submission id.

        Raises:
            [`QualcodeError`]: The file is gone or damaged.
        """
        path = self.folder / f"{problem_id}.jsonl"
        try:
            with path.open(encoding="utf-8") as file:
                for line in file:
                    yield Row(*json.loads(line))
        except (OSError, ValueError, TypeError) as error:
            raise QualcodeError(
                f"{path}, written while the programs were collected, cannot be read ({error}); delete it with the "
                "file of the same name in .json and run again"
            ) from error

    @contextmanager
    def writing(self, problem_id: str) -> Iterator["RowWriter"]:
        """Opens a problem's programs for writing. They are there once the block ends without an error."""
        path = self.folder / f"{problem_id}.jsonl"
        aside = _aside(path)
        with aside.open("w", encoding="utf-8") as file:
            yield RowWriter(file)
        (self.folder / f"{problem_id}.json").unlink(missing_ok=True)  # it told of the rows that are replaced now
        aside.replace(path)

    def finish(self, problem_id: str, summary: Summary) -> None:
        """Marks a problem as done."""
        path = self.folder / f"{problem_id}.json"
        aside = _aside(path)
        aside.write_text(json.dumps(asdict(summary)), encoding="utf-8")
        aside.replace(path)


def _aside(path: Path) -> Path:
    """Where a file is written before it takes its place: no two processes share it."""
    return path.with_name(f"{path.name}.{os.getpid()}.tmp")


@dataclass(frozen=True)
class RowWriter:
    """Appends rows to an open file."""

    file: TextIO

    def write(self, row: Row) -> None:
        """Appends one program."""
        self.file.write(json.dumps(row) + "\n")
