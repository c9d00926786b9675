"""The vocabulary every part shares: errors, units of code and search hits."""

from dataclasses import dataclass, field


class QualcodeError(Exception):
    """A failure that one line explains: what came, what is legal, what to do. The command line exits with 1."""


class UsageError(QualcodeError):
    """A call that is wrong in itself (an unknown name, a missing argument). The command line exits with 2."""


@dataclass(frozen=True, slots=True)
class Unit:
    """One piece of code that can be found: a function or method, or the top level of a class, module or notebook cell.

    Attributes:
        id (`str`): Stable identity, `path::qualified.name`; see `hf_qualcode.corpus.units`. Does not depend on line
            numbers, so code added above a unit leaves its id alone.
        path (`str`): POSIX path relative to the root the file was found under.
        language (`str`): Module name in `hf_qualcode.languages`.
        kind (`str`): `"function"`, `"method"`, `"class"`, `"module"` or `"cell"`.
        name (`str`): Qualified name, for example `Queue.put` or `<module>`.
        parent (`str`): Id of the enclosing unit's definition, `""` at the top of a file.
        signature (`str`): The definition's head on one line, `""` where there is none.
        doc (`str`): Docstring or leading comment, without its markers.
        code (`str`): The file's lines `start_line` to `end_line`, verbatim, with `\\n` line ends.
        start_line, end_line (`int`): 1-based, inclusive.
    """

    id: str
    path: str
    language: str
    kind: str
    name: str
    parent: str
    signature: str
    doc: str
    code: str
    start_line: int
    end_line: int


@dataclass(frozen=True, slots=True)
class Location:
    """Another place that holds the same text as a hit. Lines are 1-based, inclusive."""

    path: str
    root: str
    start_line: int
    end_line: int


@dataclass(frozen=True, slots=True)
class Hit:
    """One search result, in the field order of the command line's JSON.

    Attributes:
        rank (`int`): 1-based.
        score (`float`): What the page is ordered by, descending.
        path (`str`): POSIX path, relative to `root`.
        root (`str`): Absolute path of the folder that was indexed; `""` for an index made from documents.
        start_line, end_line (`int`): 1-based, inclusive.
        name (`str`): Qualified name of the unit.
        language (`str`): Module name in `hf_qualcode.languages`.
        code (`str`): The unit's text as it was indexed.
        retrieval_score (`float`): Score of the retriever, before any quality order.
        quality_score (`float`, *optional*): Score of the quality reranker, `None` when no quality was asked for.
        copies (`list[Location]`): Other places with the same text.
        stale (`bool`): The file changed, or is gone, since it was indexed.
        unit_id (`str`): `Unit.id`; not part of the JSON.
    """

    rank: int
    score: float
    path: str
    root: str
    start_line: int
    end_line: int
    name: str
    language: str
    code: str
    retrieval_score: float
    quality_score: float | None = None
    copies: list[Location] = field(default_factory=list)
    stale: bool = False
    unit_id: str = ""
