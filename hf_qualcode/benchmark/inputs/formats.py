"""The format of an input: from the block a statement shows to lines of scalars, vectors and repeated rows.

    N M                     a line of two scalars
    A_1 A_2 ... A_N         a line with a vector
    x_1 y_1                 rows, repeated M times
    :
    x_M y_M

A format can split an input's text into values and join values to a text; it knows nothing of what values are legal.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from hf_qualcode.benchmark.inputs.expressions import (
    Array,
    Expression,
    Name,
    Number,
    Vocabulary,
    compile_expression,
    names_of,
    parse_expression,
)
from hf_qualcode.benchmark.inputs.formulas import plain_formulas
from hf_qualcode.benchmark.inputs.unread import Unread


ROW = "#"  # the index of the repeated rows, inside a format's expressions
MAX_VALUES = 5_000_000  # in one input
_MAX_LINES = 60  # of a format's block
_MAX_BLOCK = 4_000  # characters
_TOKEN = re.compile(
    r"(?P<dots>\.\.\.|\.|:)|(?P<name>[A-Za-z]+)(?:_(?P<subscript>\{(?:[^{}]|\{[^{}]*\})*\}|\d+|[A-Za-z]))?"
)


@dataclass(frozen=True, slots=True)
class Single:
    """One value: a scalar, or in a repeated row the row's element of an array."""

    name: str


@dataclass(frozen=True, slots=True)
class Vector:
    """Elements `first` to `last` of an array, or in a repeated row of the row's own array.

    Attributes:
        joined (`bool`): Whether the elements stand without blanks in between: a string of single characters.
    """

    name: str
    first: Expression
    last: Expression
    joined: bool


@dataclass(frozen=True, slots=True)
class Line:
    items: tuple[Single | Vector, ...]


@dataclass(frozen=True, slots=True)
class Rows:
    """Lines repeated for each index from `first` to `last`."""

    first: Expression
    last: Expression
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class Format:
    """What an input looks like.

    Attributes:
        parts (`tuple[Line | Rows, ...]`): In order.
        ranges (`Mapping[str, tuple]`): Variable -> (first, last) index of each of its subscripts.
    """

    parts: tuple[Line | Rows, ...]
    ranges: Mapping[str, tuple[tuple[Expression, Expression], ...]]

    def parse(self, text: str) -> dict[str, str | Array]:
        """The values in `text`, all as strings.

        Raises:
            `Unread`: The text has not this format.
        """
        return _Reader(text).read(self)

    def join(self, values: Mapping[str, object]) -> str:
        """The text of an input with these values: single blanks, every line ends in a line feed."""
        lines: list[str] = []
        for part in self.parts:
            if isinstance(part, Line):
                lines.append(_join_line(part, values, None))
            else:
                for row in _indices(part.first, part.last, values, {}):
                    lines.extend(_join_line(line, values, row) for line in part.lines)
        return "\n".join(lines) + "\n"


def read_formats(block: str) -> tuple[Format, ...]:
    """The formats a block may mean: two where it does not show whether a row's elements are set apart by blanks.

    Raises:
        `Unread`: The block is not understood.
    """
    if len(block) > _MAX_BLOCK:
        raise Unread("an input format that is too long")
    lines = [plain_formulas(line) for line in block.strip().split("\n")]
    lines = [line for line in lines if line]
    if not lines or len(lines) > _MAX_LINES:
        raise Unread("an input format without lines, or with too many")
    rows = [_tokens(line) for line in lines]
    names = {token.name for row in rows for token in row if isinstance(token, _Cell)}
    dimensions = dict.fromkeys(names, 0)
    for row in rows:
        for token in row:
            if isinstance(token, _Cell):
                dimensions[token.name] = max(dimensions[token.name], len(token.subscripts))
    formats = []
    for joined in (False, True):
        candidate = _Builder(Vocabulary(dimensions), rows, joined).build()
        if candidate not in formats:
            formats.append(candidate)
    return tuple(formats)


# ---- the block's lines as tokens ----


@dataclass(frozen=True, slots=True)
class _Cell:
    name: str
    subscripts: tuple[str, ...]
    apart: bool  # whether a blank stands before it

    @property
    def lead(self) -> str | None:
        return self.subscripts[0] if self.subscripts else None


@dataclass(frozen=True, slots=True)
class _Dots:
    apart: bool


def _tokens(line: str) -> list[_Cell | _Dots]:
    tokens: list[_Cell | _Dots] = []
    position = 0
    while position < len(line):
        apart = line[position] == " " or position == 0
        if line[position] == " ":
            position += 1
        match = _TOKEN.match(line, position)
        if match is None:
            raise Unread(f"the format line {line!r}")
        position = match.end()
        if match.group("dots"):
            tokens.append(_Dots(apart))
        else:
            tokens.append(_Cell(match.group("name"), _split_subscripts(match.group("subscript")), apart))
    return tokens


def _split_subscripts(text: str | None) -> tuple[str, ...]:
    if text is None:
        return ()
    inner = text[1:-1].replace(" ", "") if text.startswith("{") else text
    while inner.startswith("{") and inner.endswith("}"):
        inner = inner[1:-1]
    if "," in inner:
        return tuple(inner.split(","))
    # Two subscripts written together: 11, 1W, HW, ij, 1K_1.
    match = re.fullmatch(r"(\d|[A-Za-z])(\d|[A-Za-z](?:_(?:\w|\{\w+\}))?)", inner)
    return match.groups() if match else (inner,)


# ---- from tokens to lines and repeated rows ----


@dataclass(frozen=True, slots=True)
class _Run:
    """Elements of one array on one line, the last subscript going from `first` to `last`."""

    name: str
    prefix: tuple[str, ...]
    first: str
    last: str
    joined: bool

    @property
    def lead(self) -> str | None:
        return self.prefix[0] if self.prefix else None


class _Builder:
    def __init__(self, vocabulary: Vocabulary, rows: list[list[_Cell | _Dots]], joined: bool) -> None:
        self.vocabulary = vocabulary
        self.rows = rows
        self.joined = joined  # how to read what the block leaves open
        self.ranges: dict[str, tuple[tuple[Expression, Expression], ...]] = {}

    def build(self) -> Format:
        lines = [None if all(isinstance(token, _Dots) for token in row) else self.line(row) for row in self.rows]
        parts: list[Line | Rows] = []
        position = 0
        while position < len(lines):
            line = lines[position]
            if line is None:
                raise Unread("dots in the format that continue nothing")
            leads = {item.lead for item in line}
            if leads == {None}:
                parts.append(Line(tuple(self.item(item) for item in line)))
                position += 1
            elif len(leads) > 1:
                raise Unread("a line of the format that mixes subscripts")
            else:
                rows, position = self.repeated(lines, position)
                parts.append(rows)
        return Format(tuple(parts), self.ranges)

    def line(self, row: list[_Cell | _Dots]) -> list[_Cell | _Run]:
        items: list[_Cell | _Run] = []
        position = 0
        while position < len(row):
            cell = row[position]
            if not isinstance(cell, _Cell):
                raise Unread("dots in the format that continue nothing")
            end = position + 1
            while end < len(row) and self.continues(row[position], row[end], end - position):
                end += 1
            last = row[end - 1]
            dotted = end < len(row) and isinstance(row[end], _Dots)
            if dotted:
                while end < len(row) and isinstance(row[end], _Dots):
                    end += 1
                if end == len(row) or not self.continues(cell, row[end], None):
                    raise Unread("dots in the format that continue nothing")
                last = row[end]
                end += 1
            if end == position + 1:
                items.append(cell)
            else:
                inner = row[position + 1 : end]
                touching = not inner[0].apart
                undecided = len(inner) == 2 and dotted and inner[0].apart and self.joined
                items.append(
                    _Run(cell.name, cell.subscripts[:-1], cell.subscripts[-1], last.subscripts[-1],
                         touching or (undecided and len(cell.subscripts) == 2))
                )  # fmt: skip
            position = end
        return items

    @staticmethod
    def continues(first: _Cell, token: _Cell | _Dots, distance: int | None) -> bool:
        """Whether `token` is the element `distance` after `first` in the same row (any later one if `None`)."""
        if not isinstance(token, _Cell) or token.name != first.name or not first.subscripts:
            return False
        if token.subscripts[:-1] != first.subscripts[:-1] or len(token.subscripts) != len(first.subscripts):
            return False
        if distance is None:
            return True
        return first.subscripts[-1].isdigit() and token.subscripts[-1] == str(int(first.subscripts[-1]) + distance)

    def repeated(self, lines: list[list[_Cell | _Run] | None], start: int) -> tuple[Rows, int]:
        """The rows that start at line `start`, and the line after them."""
        first = lines[start][0].lead
        if not first.isdigit():
            raise Unread(f"rows of the format that start at {first!r}")
        height = 1
        while start + height < len(lines) and self.has_lead(lines[start + height], first):
            height += 1
        template = [self.general(line, first) for line in lines[start : start + height]]
        position, last = start + height, first
        while self.matches(lines, position, height, template, str(int(last) + 1)):
            position, last = position + height, str(int(last) + 1)
        if position < len(lines) and lines[position] is None:
            while position < len(lines) and lines[position] is None:
                position += 1
            last = lines[position][0].lead if position < len(lines) else None
            if last is None or not self.matches(lines, position, height, template, last):
                raise Unread("dots in the format that continue nothing")
            position += height
        low, high = self.expression(first), self.expression(last)
        made = tuple(Line(tuple(self.item(item, (low, high)) for item in line)) for line in template)
        return Rows(low, high, made), position

    @staticmethod
    def has_lead(line: list[_Cell | _Run] | None, lead: str) -> bool:
        return line is not None and {item.lead for item in line} == {lead}

    def matches(self, lines: list, position: int, height: int, template: list, lead: str) -> bool:
        block = lines[position : position + height]
        return (
            len(block) == height
            and all(self.has_lead(line, lead) for line in block)
            and [self.general(line, lead) for line in block] == template
        )

    @staticmethod
    def general(line: list[_Cell | _Run], lead: str) -> list[_Cell | _Run]:
        """The line with the row's own number, its first subscript everywhere, replaced by `ROW`."""
        general: list[_Cell | _Run] = []
        for item in line:
            if isinstance(item, _Cell):
                general.append(_Cell(item.name, (ROW, *item.subscripts[1:]), True))
            else:
                # The number of elements may be the row's own: K_1 in A_{1,1} ... A_{1,K_1}.
                last = re.sub(rf"_(?:\{{{re.escape(lead)}\}}|{re.escape(lead)}(?!\w))", f"_{ROW}", item.last)
                general.append(_Run(item.name, (ROW, *item.prefix[1:]), item.first, last, item.joined))
        return general

    def item(self, item: _Cell | _Run, rows: tuple[Expression, Expression] | None = None) -> Single | Vector:
        outer = () if rows is None else (rows,)
        if isinstance(item, _Cell):
            if len(item.subscripts) != len(outer):
                raise Unread(f"{item.name!r}, which has too many subscripts")
            made: Single | Vector = Single(item.name)
            spans = outer
        else:
            if len(item.prefix) != len(outer):
                raise Unread(f"{item.name!r}, which has too many subscripts")
            span = self.expression(item.first), self.expression(item.last)
            made = Vector(item.name, *span, item.joined)
            spans = (*outer, span)
        if item.name in self.ranges:
            raise Unread(f"{item.name!r}, which the format has twice")
        self.ranges[item.name] = spans
        return made

    def expression(self, text: str) -> Expression:
        # `#` is no letter: it can come from nowhere else.
        match = re.fullmatch(rf"([A-Za-z]+)_{ROW}", text)
        if match:
            if self.vocabulary.dimensions.get(match.group(1)) != 1:
                raise Unread(f"the length {text!r}")
            return Name(match.group(1), (Name(ROW),))
        return parse_expression(text, self.vocabulary)


# ---- values out of a text, and back ----


def _indices(first: Expression, last: Expression, values: Mapping[str, object], indices: Mapping[str, int]) -> range:
    """The indices from `first` to `last`."""
    ends = []
    for expression in (first, last):
        try:
            ends.append(int(compile_expression(_typed(expression, values))(values, indices)))
        except (LookupError, ValueError, TypeError) as error:
            raise Unread("a length that the input has not given yet") from error
    if ends[1] - ends[0] + 1 > MAX_VALUES:
        raise Unread("an input that is too long")
    return range(ends[0], ends[1] + 1)


def _typed(expression: Expression, values: Mapping[str, object]) -> Expression:
    """The expression with scalars that were read as strings put in as numbers."""
    if isinstance(expression, Name) and not expression.subscripts:
        value = values.get(expression.name)
        if isinstance(value, str):
            return Number(int(value))
        return expression
    for name in names_of(expression):
        if isinstance(name, Name) and isinstance(values.get(name.name), str):
            numbers = {key: int(value) for key, value in values.items() if isinstance(value, str) and _is_int(value)}
            return Number(compile_expression(expression)(numbers, {}))
    return expression


def _is_int(text: str) -> bool:
    return re.fullmatch(r"-?\d{1,4000}", text) is not None


def _join_line(line: Line, values: Mapping[str, object], row: int | None) -> str:
    pieces: list[str] = []
    for item in line.items:
        value = values[item.name] if row is None else values[item.name][row]
        if isinstance(item, Vector):
            pieces.append(("" if item.joined else " ").join(map(str, value.values)))
        else:
            pieces.append(str(value))
    return " ".join(pieces)


class _Reader:
    def __init__(self, text: str) -> None:
        self.lines = text.split("\n")
        while self.lines and not self.lines[-1].strip():
            self.lines.pop()
        self.position = 0
        self.values: dict[str, str | Array] = {}

    def read(self, form: Format) -> dict[str, str | Array]:
        for part in form.parts:
            if isinstance(part, Line):
                self.line(part, None)
            else:
                indices = _indices(part.first, part.last, self.values, {})
                for line in part.lines:
                    for item in line.items:
                        self.values[item.name] = Array(indices.start, [])
                for row in indices:
                    for line in part.lines:
                        self.line(line, row)
        if self.position != len(self.lines):
            raise Unread("more lines than the format has")
        return self.values

    def line(self, line: Line, row: int | None) -> None:
        if self.position < len(self.lines):
            tokens = self.lines[self.position].split()
        elif any(isinstance(item, Vector) for item in line.items):
            tokens = []  # an empty vector on the last line
        else:
            raise Unread("fewer lines than the format has")
        self.position += 1
        start = 0
        for item in line.items:
            if isinstance(item, Vector):
                value, start = self.vector(item, tokens, start, row)
            else:
                if start >= len(tokens):
                    raise Unread("a line with fewer values than the format has")
                value = tokens[start]
                start += 1
            if row is None:
                self.values[item.name] = value
            else:
                self.values[item.name].values.append(value)
        if start != len(tokens):
            raise Unread("a line with more values than the format has")

    def vector(self, item: Vector, tokens: list[str], start: int, row: int | None) -> tuple[Array, int]:
        last = item.last
        if isinstance(last, Name) and last.subscripts == (Name(ROW),):
            length = self.values[last.name][row]
            last = Number(int(length)) if _is_int(length) else last
        indices = _indices(item.first, last, self.values, {})
        if item.joined:
            characters = list(tokens[start]) if start < len(tokens) else []
            if len(characters) != len(indices):
                raise Unread("a row of another length than the format has")
            return Array(indices.start, characters), start + 1
        end = start + len(indices)
        if end > len(tokens):
            raise Unread("a line with fewer values than the format has")
        return Array(indices.start, tokens[start:end]), end


def values_in(form: Format) -> Iterator[Single | Vector]:
    """Every item of a format, in order."""
    for part in form.parts:
        for line in (part,) if isinstance(part, Line) else part.lines:
            yield from line.items
