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


@dataclass(frozen=True, slots=True)
class PreferencePair:
    """Two programs for one problem, of which the first should get the higher score under the instruction.

    Attributes:
        id (`str`): `dimension/positive_id/negative_id`; with a missing dimension
            `dimension+dimension/missing/positive_id/negative_id`. Distinct within a configuration.
        instruction (`str`): For example "Retrieve code that is fast".
        query (`str`): The problem's statement.
        positive, negative (`str`): The programs' texts.
        dimensions (`tuple[str, ...]`): What the instruction asks for.
        missing_dimension (`str`): The one dimension that `negative` lacks (MC-QualCode), else `""`.
        problem_id, positive_id, negative_id (`str`): Where the three came from.
        positive_value, negative_value (`float`, *optional*): The measured values that made the label, lower is better.
    """

    id: str
    instruction: str
    query: str
    positive: str
    negative: str
    dimensions: tuple[str, ...]
    missing_dimension: str
    problem_id: str
    positive_id: str
    negative_id: str
    positive_value: float | None = None
    negative_value: float | None = None


@dataclass(frozen=True, slots=True)
class GradedList:
    """One query with documents to order, and what each is worth.

    Attributes:
        id (`str`): `problem_id/dimension`; the query id of a TREC run.
        instruction, query (`str`): What is asked.
        doc_ids (`tuple[str, ...]`): [list], distinct.
        documents (`tuple[str, ...]`): [list], the texts.
        grades (`tuple[int, ...]`): [list], 0 = irrelevant.
        problem_id, dimension (`str`): For clusters and groups.
    """

    id: str
    instruction: str
    query: str
    doc_ids: tuple[str, ...]
    documents: tuple[str, ...]
    grades: tuple[int, ...]
    problem_id: str
    dimension: str
