"""Source text to units of code, with ids that outlive edits elsewhere in the file.

A unit is a function or method, or a run of lines at the top level of a class or module (see `runs`). Its id is
`path::qualified.name`; of several with one name in one place the second and later ones add `#2`, `#3`. The first run
of a class has the class's own id, the first one of a module is `path::<module>`; later runs are named for the
definition before them, `path::Class@after:method`.
"""

import itertools
from typing import NamedTuple

from hf_qualcode.corpus.lines import encodable, normalize_newlines, split_lines
from hf_qualcode.corpus.runs import MODULE_MIN_CODE_LINES, count_code_lines, find_runs
from hf_qualcode.languages import Language
from hf_qualcode.languages._outline import Definition, Outline, idle_line_pattern, outline
from hf_qualcode.languages._parsing import TIME_LIMIT_SECONDS
from hf_qualcode.types import Unit


# No code that people write comes near these; without them what a hostile file makes of itself has no bound. What is
# deeper has no units of its own, its code is in the unit around it.
MAX_DEPTH = 30
QUALIFIED_NAME_MAX_CHARS = 500
# All units of a file together hold so many times its text, but never less than so many characters.
MAX_COPIES = 20
MIN_TEXT_CHARS = 20_000


class Extraction(NamedTuple):
    """The units of one file.

    Attributes:
        units (`list[Unit]`): Ordered by start line, enclosing ones first.
        has_errors (`bool`): The parser met something it could not read; the units are those it found nonetheless.
    """

    units: list[Unit]
    has_errors: bool


class TopLevel(NamedTuple):
    """What the units outside all definitions are called, and how many lines of code make one."""

    kind: str = "module"
    name: str = "<module>"
    min_code_lines: int = MODULE_MIN_CODE_LINES


class _Placed:
    """A definition with its place in the file: what encloses it and what it encloses."""

    __slots__ = ("children", "definition", "id", "kind", "name", "parent", "segment")

    def __init__(self, definition: Definition | None, unit_id: str, name: str, segment: str, kind: str, parent: str):
        self.definition = definition
        self.id = unit_id
        self.name = name
        self.segment = segment
        self.kind = kind
        self.parent = parent
        self.children: list[_Placed] = []


def extract_units(
    source: str, path: str, language: Language, *, id_prefix: str = "", time_limit: float = TIME_LIMIT_SECONDS
) -> Extraction:
    """Finds the units in one source file.

    Args:
        source (`str`): The file's text, with any line ends.
        path (`str`): POSIX path, for the ids.
        language ([`Language`]): Language of the text.
        id_prefix (`str`, *optional*, defaults to `""`): Put in front of every id.
        time_limit (`float`, *optional*, defaults to 2.0): Seconds that the parser may take.

    Returns:
        [`Extraction`]

    Raises:
        [`ParseLimitError`]: The text is too much for the parser.
    """
    source = encodable(normalize_newlines(source))
    lines = split_lines(source)
    if not lines:
        return Extraction([], False)
    found = outline(source, lines, language, path, time_limit)
    units = build_units(found, lines, lines, path, language, Ids(id_prefix + path))
    units.sort(key=lambda unit: (unit.start_line, -unit.end_line))
    return Extraction(units, found.has_errors)


def build_units(
    found: Outline,
    lines: list[str],
    parsed_lines: list[str],
    path: str,
    language: Language,
    ids: "Ids",
    top_level: TopLevel = TopLevel(),  # noqa: B008  (immutable)
    first_line: int = 1,
) -> list[Unit]:
    """Cuts a text into units along its outline.

    Args:
        found ([`Outline`]): What the text defines.
        lines (`list[str]`): The text, for the units' code.
        parsed_lines (`list[str]`): What the parser was given for it, line by line.
        path (`str`): POSIX path of the file.
        language ([`Language`]): Language of the text.
        ids ([`Ids`]): Where ids are taken from.
        top_level ([`TopLevel`], *optional*): How units of what is outside all definitions are called.
        first_line (`int`, *optional*, defaults to 1): Number of the first line.

    Returns:
        `list[Unit]`: Definitions first, then the top level.
    """
    idle_line = idle_line_pattern(language)
    module, placed = _place(_affordable(found.definitions, lines), ids)
    units: list[Unit] = []

    def add(unit_id, kind, name, parent, signature, doc, start, end):
        code = "\n".join(lines[start : end + 1])
        span = (start + first_line, end + first_line)
        units.append(Unit(unit_id, path, language.name, kind, name, parent, signature, doc, code, *span))

    def code_lines(start, end):
        return count_code_lines(parsed_lines, start, end, found.idle_rows, idle_line)

    for item in placed:
        whole = item.definition
        head = (item.id, item.kind, item.name, item.parent, whole.signature, whole.doc)
        if item.kind != "class":
            add(*head, whole.start_row, whole.end_row)
            continue
        for run in find_runs(lines, whole.start_row, whole.end_row, _spans(item.children)):
            if run.after >= 0:
                if code_lines(run.start_row, run.end_row):
                    unit_id = ids.take(f"{item.id}@after:{item.children[run.after].segment}")
                    add(unit_id, "class", item.name, item.id, whole.signature, "", run.start_row, run.end_row)
            # The head is a unit unless it merely opens what the methods fill.
            elif whole.doc or not item.children or code_lines(_first_row_inside(whole, lines), run.end_row):
                add(*head, run.start_row, run.end_row)

    runs = find_runs(lines, 0, len(lines) - 1, _spans(module.children))
    counts = [code_lines(run.start_row, run.end_row) for run in runs]
    for run, num_code_lines in zip(runs, counts, strict=True):
        is_head = run.after < 0
        doc = found.module_doc if is_head else ""
        # A file with code has at least one unit.
        min_code_lines = top_level.min_code_lines if units else 1
        if doc or num_code_lines >= min_code_lines:
            name = top_level.name if is_head else f"{top_level.name}@after:{module.children[run.after].segment}"
            unit_id = ids.take(f"{ids.file_id}::{name}")
            add(unit_id, top_level.kind, top_level.name, "", "", doc, run.start_row, run.end_row)
    return units


class Ids:
    """Hands out ids, each once."""

    def __init__(self, file_id: str):
        self.file_id = file_id
        self.counts: dict[str, int] = {}

    def take(self, wanted: str) -> str:
        count = self.counts.get(wanted, 0) + 1
        self.counts[wanted] = count
        if count == 1:
            return wanted
        # A name may itself end in `#2`; ask again until nobody has it.
        return self.take(f"{wanted}#{count}") if f"{wanted}#{count}" in self.counts else self._record(wanted, count)

    def _record(self, wanted: str, count: int) -> str:
        unit_id = f"{wanted}#{count}"
        self.counts[unit_id] = 1
        return unit_id


def _affordable(definitions: list[Definition], lines: list[str]) -> list[Definition]:
    """Returns the definitions that get units of their own: those that are not too deep and, from the outermost level
    inward, whose text together stays within bounds. Where one is left out, so is all inside it."""
    offsets = list(itertools.accumulate((len(line) + 1 for line in lines), initial=0))
    levels: list[list[tuple[int, int]]] = [[] for _ in range(MAX_DEPTH)]
    chain: list[int] = []
    for position, definition in enumerate(definitions):
        while chain and definitions[chain[-1]].end_byte <= definition.start_byte:
            chain.pop()
        if len(chain) < MAX_DEPTH:
            levels[len(chain)].append((position, chain[-1] if chain else -1))
            chain.append(position)
    budget = max(MAX_COPIES * offsets[-1], MIN_TEXT_CHARS)
    kept = {-1}
    for position, outer in itertools.chain.from_iterable(levels):
        definition = definitions[position]
        num_chars = 0
        if definition.kind in ("function", "class"):
            num_chars = offsets[definition.end_row + 1] - offsets[definition.start_row]
            num_chars += len(definition.doc) + len(definition.signature)
        if outer in kept and num_chars <= budget:
            budget -= num_chars
            kept.add(position)
    return [definition for position, definition in enumerate(definitions) if position in kept]


def _qualified(outer: str, name: str) -> str:
    whole = f"{outer}.{name}"
    if len(whole) <= QUALIFIED_NAME_MAX_CHARS:
        return whole
    return f"{outer[: QUALIFIED_NAME_MAX_CHARS - len(name) - 2]}….{name}"


def _place(definitions: list[Definition], ids: Ids) -> tuple[_Placed, list[_Placed]]:
    """Gives every definition its id, and its place inside the module, class or function around it."""
    module = _Placed(None, ids.file_id, "", "", "module", "")
    placed: list[_Placed] = []
    # The chain of definitions around the current one. Scopes lend their names only: what is inside them belongs to
    # the next definition outward.
    chain: list[tuple[_Placed, int]] = []
    for definition in definitions:
        while chain and chain[-1][1] <= definition.start_byte:
            chain.pop()
        outer = chain[-1][0] if chain else module
        owner = next((item for item, _ in reversed(chain) if item.definition.kind in ("function", "class")), module)
        name = _qualified(outer.name, definition.name) if outer.name else definition.name
        wanted = definition.name
        if outer.name:
            wanted = _qualified(outer.id.removeprefix(f"{module.id}::"), definition.name)
        wanted = f"{module.id}::{wanted}"
        if definition.kind in ("scope", "implementation"):
            item = _Placed(definition, wanted, name, definition.name, definition.kind, outer.parent)
            if definition.kind == "implementation":
                item.parent = wanted
            elif outer.kind in ("function", "method", "class"):
                item.parent = outer.id
        else:
            unit_id = ids.take(wanted)
            kind = definition.kind
            if kind == "function" and (definition.owner or outer.kind in ("class", "implementation")):
                kind = "method"
            if definition.owner:
                parent = wanted.removesuffix(definition.name[len(definition.owner) :])
            elif outer.kind in ("scope", "implementation"):
                parent = outer.parent
            else:
                parent = "" if outer is module else outer.id
            segment = unit_id.removeprefix(f"{module.id}::")
            if owner is not module:
                segment = segment.removeprefix(owner.id.removeprefix(f"{module.id}::") + ".")
            item = _Placed(definition, unit_id, name, segment, kind, parent)
            placed.append(item)
            owner.children.append(item)
        chain.append((item, definition.end_byte))
    return module, placed


def _spans(items: list[_Placed]) -> list[tuple[int, int]]:
    return [(item.definition.start_row, item.definition.end_row) for item in items]


def _first_row_inside(definition: Definition, lines: list[str]) -> int:
    """In Python the body is its first statement, elsewhere the bracket that opens it, the last of its line."""
    return definition.body_row + (lines[definition.body_row].rstrip()[-1:] in ("{", "("))
