"""What a benchmark is made of: problems, and the accepted programs that solve them."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Program:
    """An accepted submission that compiles. Its text stays on disk (`Collection.text`).

    Attributes:
        submission_id, problem_id (`str`): CodeNet's ids.
        text_digest (`str`): SHA-256 of the text; programs of equal text have equal digests.
        fingerprint (`str`): Digest of the text's normal form: equal for programs that differ in names, comments and
            layout alone.
        values (`Mapping[str, float]`): Dimension -> measured value, lower is better; a dimension without a usable
            measurement is absent. Maintainability is the number of smells.
        smell_rules (`tuple[str, ...]`, *optional*): Rule id of every smell found, sorted, so a rule that was found
            twice is there twice; `None` where no engine labelled the program.
    """

    submission_id: str
    problem_id: str
    text_digest: str
    fingerprint: str
    values: Mapping[str, float]
    smell_rules: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem with an English statement.

    Attributes:
        problem_id (`str`): CodeNet's id.
        statement (`str`): Clean text.
        programs (`tuple[Program, ...]`): Sorted by submission id.
    """

    problem_id: str
    statement: str
    programs: tuple[Program, ...]
