"""Source text to the list of definitions in it: one parse, one query."""

import functools
import inspect
import re
from pathlib import PurePosixPath
from typing import NamedTuple

import tree_sitter

from hf_qualcode.languages._base import Language
from hf_qualcode.languages._parsing import TIME_LIMIT_SECONDS, parse


SIGNATURE_MAX_CHARS = 500
NAME_MAX_CHARS = 200
COMMENT_OPENING = re.compile(r"^\s*(?:/\*+!?|//+!?|#+|\*+(?!/)|--)?[<]?\s?")
# What may stand between a node and the end of its line; the first other character says whether a comment follows.
BESIDE = re.compile(rb"[^ \t;,]")
STRING_OPENING = re.compile(r"^[A-Za-z]*(\"\"\"|'''|\"|')")


class Definition(NamedTuple):
    """A definition as it stands in the file. Rows are 0-based, inclusive.

    Attributes:
        kind (`str`): `"function"`, `"class"`, or `"scope"`, `"implementation"` for what only lends its name.
        name (`str`): Own name, without those of enclosing definitions; `Type.method` where the head says the type.
        owner (`str`): The part of the name that says the type, `""` where the head does not.
        signature (`str`): The head on one line.
        doc (`str`): Docstring or comment above, without markers.
        start_row, end_row (`int`): The whole definition, with decorators, and comments where they belong to it.
        body_row (`int`): Where the body begins: the row of its bracket, or of its first statement in Python.
        start_byte, end_byte (`int`): The definition without comments above; for the nesting.
    """

    kind: str
    name: str
    owner: str
    signature: str
    doc: str
    start_row: int
    end_row: int
    body_row: int
    start_byte: int
    end_byte: int


class Outline(NamedTuple):
    """What a file defines.

    Attributes:
        definitions (`list[Definition]`): In order of their start, enclosing ones first.
        module_doc (`str`): The file's own docstring.
        idle_rows (`set[int]`): Rows of nothing but comments, imports and the like.
        has_errors (`bool`): The parser met something it could not read.
    """

    definitions: list[Definition]
    module_doc: str
    idle_rows: set[int]
    has_errors: bool


class Head(NamedTuple):
    """A definition's nodes as one match of the query gave them."""

    kind: str
    node: tree_sitter.Node
    name: tree_sitter.Node | None
    body: tree_sitter.Node


KINDS = ("function", "class", "scope", "implementation")


def outline(
    source: str, lines: list[str], language: Language, path: str, time_limit: float = TIME_LIMIT_SECONDS
) -> Outline:
    """Finds the definitions in a source text.

    Args:
        source (`str`): Text with `\\n` line ends.
        lines (`list[str]`): The same text, split.
        language ([`Language`]): Language of the text.
        path (`str`): File name; its suffix chooses among a language's grammars.
        time_limit (`float`, *optional*, defaults to 2.0): Seconds that the parser may take.

    Raises:
        [`ParseLimitError`]: The text is too much for the parser.
    """
    data = source.encode("utf-8")
    indents = [len(line) - len(line.lstrip()) for line in lines]
    tree, query = parse(language, language.prepare(data), PurePosixPath(path).suffix.lower(), time_limit)
    root = tree.root_node
    heads: dict[int, Head] = {}
    wrappers: dict[int, tree_sitter.Node] = {}
    docstrings: dict[int, tree_sitter.Node] = {}
    comments: dict[int, tree_sitter.Node] = {}
    attributes: dict[int, tree_sitter.Node] = {}
    idle_rows: set[int] = set()
    for _, captures in tree_sitter.QueryCursor(query).matches(root):
        if "comment" in captures:
            node = captures["comment"][0]
            comments[_end_row(node)] = node
            _mark_idle(node, indents, data, idle_rows)
        elif "wrapper" in captures:
            wrappers[captures["wrapped"][0].start_byte] = captures["wrapper"][0]
        elif "docstring" in captures:
            docstrings.setdefault(captures["body"][0].id, captures["docstring"][0])
        elif "idle" in captures:
            _mark_idle(captures["idle"][0], indents, data, idle_rows)
        elif "attribute" in captures:
            node = captures["attribute"][0]
            attributes[_end_row(node)] = node
        else:
            kind = next((kind for kind in KINDS if kind in captures), None)
            if kind is None:
                continue
            head = Head(
                kind,
                captures[kind][0],
                captures["name"][0] if "name" in captures else None,
                captures["body"][0],
            )
            # Two patterns can find one definition (`typedef struct a {} b`): the outer one stands for it.
            known = heads.get(head.body.start_byte)
            if known is None or known.node.start_byte > head.node.start_byte:
                heads[head.body.start_byte] = head
    above = _Above(data, indents, comments, attributes, language) if language.leading_comments else None
    definitions = [_define(head, data, language, wrappers, docstrings, above) for head in heads.values()]
    if above is None:
        last_rows = _last_rows(lines, indents, comments)
        definitions = [
            definition._replace(end_row=max(last_rows[definition.end_row], definition.body_row))
            for definition in definitions
        ]
    definitions.sort(key=lambda definition: (definition.start_byte, -definition.end_byte))
    opened = {(item.start_row, item.body_row) for item in definitions if item.kind in ("scope", "implementation")}
    for start_row, body_row in opened:
        idle_rows.update(range(start_row, body_row + 1))
    module_doc = docstrings.get(root.id)
    return Outline(definitions, _docstring_text(module_doc, data) if module_doc else "", idle_rows, root.has_error)


def idle_line_pattern(language: Language) -> re.Pattern:
    """Returns the pattern that whole lines without content match."""
    return _compiled(language.idle_line)


@functools.cache
def _compiled(pattern: str) -> re.Pattern:
    return re.compile(f"(?:{pattern})$")


def _define(
    head: Head,
    data: bytes,
    language: Language,
    wrappers: dict[int, tree_sitter.Node],
    docstrings: dict[int, tree_sitter.Node],
    above: "_Above | None",
) -> Definition:
    node = head.node
    outer = node
    while (wrapper := wrappers.get(outer.start_byte)) is not None and wrapper.start_byte < outer.start_byte:
        outer = wrapper
    start_row, doc = outer.start_point[0], ""
    if head.body.id in docstrings:
        doc = _docstring_text(docstrings[head.body.id], data)
    elif above is not None:
        start_row, doc = above.extend(start_row)
    parts = language.name_of(node, head.name, data) if head.name is not None else ["default"]
    signature = data[node.start_byte : min(head.body.start_byte, node.start_byte + 8 * SIGNATURE_MAX_CHARS)]
    signature = " ".join(signature.decode("utf-8", "replace").split()).rstrip(" :{")[:SIGNATURE_MAX_CHARS]
    return Definition(
        head.kind,
        ".".join(part or "<anonymous>" for part in parts)[:NAME_MAX_CHARS],
        ".".join(parts[:-1])[:NAME_MAX_CHARS],
        signature,
        doc,
        start_row,
        _end_row(node),
        head.body.start_point[0],
        outer.start_byte,
        node.end_byte,
    )


def _last_rows(lines: list[str], indents: list[int], comments: dict[int, tree_sitter.Node]) -> list[int]:
    """Returns for each row the last one up to it that is neither blank nor a comment's: where indentation ends a body,
    the grammar sometimes takes the comments after it in; Python's own does not."""
    last_rows, last = [], 0
    for row, line in enumerate(lines):
        if indents[row] < len(line) and not (row in comments and _starts_line(comments[row], indents)):
            last = row
        last_rows.append(last)
    return last_rows


def _end_row(node: tree_sitter.Node) -> int:
    row, column = node.end_point
    # Some nodes take the line end with them.
    return row - 1 if column == 0 and row > node.start_point[0] else row


def _starts_line(node: tree_sitter.Node, indents: list[int]) -> bool:
    row, column = node.start_point
    return column <= indents[row]


def _ends_line(node: tree_sitter.Node, data: bytes) -> bool:
    """Says whether at most a comment follows on the node's last line."""
    if node.end_point[0] != _end_row(node):
        return True
    beside = BESIDE.search(data, node.end_byte)
    return beside is None or beside[0] in b"\n#/"


def _mark_idle(node: tree_sitter.Node, indents: list[int], data: bytes, idle_rows: set[int]) -> None:
    if not _starts_line(node, indents):
        return
    start_row, end_row = node.start_point[0], _end_row(node)
    if not _ends_line(node, data):
        end_row -= 1
    if start_row == end_row:
        idle_rows.add(start_row)
    else:
        idle_rows.update(range(start_row, end_row + 1))


class _Above:
    """The comments and attributes directly above definitions."""

    def __init__(
        self,
        data: bytes,
        indents: list[int],
        comments: dict[int, tree_sitter.Node],
        attributes: dict[int, tree_sitter.Node],
        language: Language,
    ):
        self.data = data
        self.beside = {row: node for row, node in attributes.items() if _starts_line(node, indents)}
        self.attributes = {row: node for row, node in self.beside.items() if _ends_line(node, data)}
        self.comments = {
            row: node for row, node in comments.items() if _starts_line(node, indents) and _ends_line(node, data)
        }
        self.inner_markers = tuple(marker.encode() for marker in language.inner_comment_markers)
        self.known: dict[int, tuple[int, str]] = {}

    def extend(self, start_row: int) -> tuple[int, str]:
        """Returns the first row of what belongs to a definition at `start_row`, and the comments' text."""
        if start_row not in self.known:  # a line may hold any number of definitions
            self.known[start_row] = self._look_above(start_row)
        return self.known[start_row]

    def _look_above(self, start_row: int) -> tuple[int, str]:
        texts = []
        if start_row in self.beside:
            start_row = self.beside[start_row].start_point[0]
        while True:
            row = start_row - 1
            node = self.attributes.get(row)
            if node is None:
                node = self.comments.get(row)
                if node is None or self.data.startswith(self.inner_markers, node.start_byte):
                    break
                texts.append(self.data[node.start_byte : node.end_byte].decode("utf-8", "replace").rstrip("\n"))
            start_row = node.start_point[0]
        return start_row, _comment_text("\n".join(reversed(texts))) if texts else ""


def _comment_text(comment: str) -> str:
    lines = [COMMENT_OPENING.sub("", _without_closing(line)).rstrip() for line in comment.split("\n")]
    return "\n".join(lines).strip()


def _without_closing(line: str) -> str:
    line = line.rstrip()
    return line.removesuffix("*/").rstrip("*").rstrip() if line.endswith("*/") else line


def _docstring_text(node: tree_sitter.Node, data: bytes) -> str:
    text = data[node.start_byte : node.end_byte].decode("utf-8", "replace")
    opening = STRING_OPENING.match(text)
    if opening is None:
        return text
    return inspect.cleandoc(text[opening.end() :].removesuffix(opening[1])).strip()
