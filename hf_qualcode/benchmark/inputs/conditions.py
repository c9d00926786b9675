"""The kinds of condition that a constraint can state, each with a check of its own on the values of an input.

The checks are written apart from the generation, so that each can show an error of the other.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from hf_qualcode.benchmark.inputs.expressions import (
    Array,
    Expression,
    Length,
    Name,
    Values,
    compile_expression,
    names_of,
)


OPERATORS: Mapping[str, Callable[[int, int], bool]] = {
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    "=": lambda left, right: left == right,
    "!=": lambda left, right: left != right,
}
MIRRORED = {"<": ">", "<=": ">=", "=": "=", "!=": "!=", ">": "<", ">=": "<="}


@dataclass(frozen=True, slots=True)
class Compare:
    """`left operator right`, for all values of the indices in it that have elements. Operators: < <= = !=."""

    left: Expression
    operator: str
    right: Expression

    def holds(self, values: Values) -> bool:
        compare = OPERATORS[self.operator]
        # A million elements against one number, or side by side, are compared without evaluating formulas.
        arrays = [_plain_array(side, values) for side in (self.left, self.right)]
        if arrays[0] is not None and arrays[1] is not None:
            places = [getattr(side, "subscripts", ()) for side in (self.left, self.right)]
            if places[0] == places[1] and len(places[0]) == 1 and len(arrays[0]) == len(arrays[1]):
                return all(map(compare, *arrays))
        elif arrays[0] is not None and not free_indices((self.right,), values):
            bound = compile_expression(self.right)(values, {})
            return all(compare(value, bound) for value in arrays[0])
        elif arrays[1] is not None and not free_indices((self.left,), values):
            bound = compile_expression(self.left)(values, {})
            return all(compare(bound, value) for value in arrays[1])
        left, right = compile_expression(self.left), compile_expression(self.right)
        return all(
            compare(left(values, indices), right(values, indices))
            for indices in _all_indices((self.left, self.right), values)
            if _defined(left, right, values, indices)
        )


@dataclass(frozen=True, slots=True)
class Alphabet:
    """Every character of the strings in `name` is one of `characters`; `single` asks for single characters."""

    name: str
    characters: str
    single: bool = False

    def holds(self, values: Values) -> bool:
        allowed = set(self.characters)
        return all(
            bool(text) and allowed.issuperset(text) and (not self.single or len(text) == 1)
            for text in _elements(values[self.name])
        )


@dataclass(frozen=True, slots=True)
class OneOf:
    """Every element of `name` is one of these numbers."""

    name: str
    numbers: tuple[int, ...]

    def holds(self, values: Values) -> bool:
        return all(value in self.numbers for value in _elements(values[self.name]))


@dataclass(frozen=True, slots=True)
class Distinct:
    """No two elements of an array are equal; with `rows`, of each row of it."""

    name: str
    rows: bool = False

    def holds(self, values: Values) -> bool:
        array = values[self.name]
        parts = array.values if self.rows else [array]
        return all(max(Counter(_elements(part)).values(), default=0) <= 1 for part in parts)


@dataclass(frozen=True, slots=True)
class DistinctTuples:
    """No two rows have equal values in all of these arrays."""

    names: tuple[str, ...]

    def holds(self, values: Values) -> bool:
        rows = list(zip(*(values[name].values for name in self.names), strict=True))
        return len(rows) == len(set(rows))


@dataclass(frozen=True, slots=True)
class Sorted:
    """The elements of an array (of each row, if it has rows) grow; with `strict`, none equals the next."""

    name: str
    strict: bool

    def holds(self, values: Values) -> bool:
        array = values[self.name]
        rows = [row.values for row in array.values] if _has_rows(array) else [array.values]
        return all(
            first < second if self.strict else first <= second
            for row in rows
            for first, second in pairwise(row)
        )


@dataclass(frozen=True, slots=True)
class Parity:
    """An expression is even (`remainder` 0) or odd (1)."""

    of: Expression
    remainder: int

    def holds(self, values: Values) -> bool:
        value = compile_expression(self.of)
        return all(value(values, indices) % 2 == self.remainder for indices in _all_indices((self.of,), values))


@dataclass(frozen=True, slots=True)
class Fixed:
    """One element, or scalar, is this string."""

    element: Name
    text: str

    def holds(self, values: Values) -> bool:
        return compile_expression(self.element)(values, {}) == self.text


@dataclass(frozen=True, slots=True)
class Occurs:
    """A character occurs in the strings of `name` at least `least` times and, if given, at most `most` times."""

    name: str
    character: str
    least: int
    most: int | None = None

    def holds(self, values: Values) -> bool:
        count = sum(text.count(self.character) for text in _elements(values[self.name]))
        return self.least <= count and (self.most is None or count <= self.most)


@dataclass(frozen=True, slots=True)
class Around:
    """A string holds `first` and, somewhere behind it, `last`."""

    name: str
    first: str
    last: str

    def holds(self, values: Values) -> bool:
        return all(0 <= text.find(self.first) < text.rfind(self.last) for text in _elements(values[self.name]))


@dataclass(frozen=True, slots=True)
class Substrings:
    """A string has at least as many different substrings."""

    name: str
    least: Expression

    def holds(self, values: Values) -> bool:
        text, least = values[self.name], compile_expression(self.least)(values, {})
        seen: set[str] = set()
        for length in range(1, len(text) + 1):
            for start in range(len(text) - length + 1):
                seen.add(text[start : start + length])
                if len(seen) >= least:
                    return True
        return len(seen) >= least


@dataclass(frozen=True, slots=True)
class Graph:
    """The rows of two arrays are the edges of an undirected graph.

    Attributes:
        tails, heads (`str`): The arrays.
        vertices (`Expression`): The number of vertices, which are numbered from 1.
        loopless, single, connected, tree (`bool`): No edge joins a vertex to itself; no two join the same vertices;
            every vertex can be reached from every other; it is a tree.
    """

    tails: str
    heads: str
    vertices: Expression
    loopless: bool = False
    single: bool = False
    connected: bool = False
    tree: bool = False

    def holds(self, values: Values) -> bool:
        edges = list(zip(values[self.tails].values, values[self.heads].values, strict=True))
        vertices = compile_expression(self.vertices)(values, {})
        if (self.loopless or self.tree) and any(tail == head for tail, head in edges):
            return False
        if (self.single or self.tree) and len({frozenset(edge) for edge in edges}) < len(edges):
            return False
        if self.tree and len(edges) != vertices - 1:
            return False
        return not (self.connected or self.tree) or _reached(vertices, edges) == vertices


Condition = (
    Compare | Alphabet | OneOf | Distinct | DistinctTuples | Sorted | Parity | Fixed | Occurs | Around | Substrings
    | Graph
)


def _reached(vertices: int, edges: list[tuple[int, int]]) -> int:
    """How many vertices can be reached from vertex 1, itself counted."""
    neighbours: dict[int, list[int]] = {}
    for tail, head in edges:
        neighbours.setdefault(tail, []).append(head)
        neighbours.setdefault(head, []).append(tail)
    seen, queue = {1}, deque([1])
    while queue:
        for neighbour in neighbours.get(queue.popleft(), ()):
            if neighbour not in seen:
                seen.add(neighbour)
                queue.append(neighbour)
    return len(seen) if vertices else 0


def free_indices(expressions: tuple[Expression, ...], known: Mapping[str, object]) -> dict[str, list]:
    """Index -> the (array, place of the subscript) pairs it stands in, alone: what it ranges over."""
    places: dict[str, list[tuple[str, int]]] = {}
    for expression in expressions:
        for node in names_of(expression):
            name = node.of if isinstance(node, Length) else node
            if isinstance(name, Name):
                for place, subscript in enumerate(name.subscripts):
                    for index in names_of(subscript):
                        if isinstance(index, Name) and not index.subscripts and index.name not in known:
                            places.setdefault(index.name, []).append((name.name, place))
    return places


def _all_indices(expressions: tuple[Expression, ...], values: Values) -> Iterator[dict[str, int]]:
    """Every assignment of indices: each runs over the elements of the first array that it is a subscript of."""
    places = free_indices(expressions, values)
    if not places:
        yield {}
        return
    names = sorted(places, key=lambda name: places[name][0][1])  # rows before the columns inside them

    def extend(indices: dict[str, int], rest: list[str]) -> Iterator[dict[str, int]]:
        if not rest:
            yield indices
            return
        array, place = places[rest[0]][0]
        span = values[array]
        if place == 1:
            rows = [indices[name] for name in indices if (array, 0) in places[name]]
            span = span[rows[0]] if rows else span.values[0]
        for index in range(span.first, span.first + len(span.values)):
            yield from extend({**indices, rest[0]: index}, rest[1:])

    yield from extend({}, names)


def _defined(left: Callable, right: Callable, values: Values, indices: Mapping[str, int]) -> bool:
    """Whether both sides exist at these indices: `x_{i+1}` does not at the last one."""
    try:
        left(values, indices), right(values, indices)
    except LookupError:
        return False
    return True


def _plain_array(expression: Expression, values: Values) -> list | None:
    """The elements of the array that the expression is any element of: a_i, or A_{ij} with two different indices.

    For the length |S_i| of any string of an array, the lengths.
    """
    if isinstance(expression, Length):
        strings = _plain_array(expression.of, values)
        return None if strings is None else list(map(len, strings))
    if not isinstance(expression, Name) or not expression.subscripts:
        return None
    indices = set()
    for subscript in expression.subscripts:
        if not isinstance(subscript, Name) or subscript.subscripts or subscript.name in values:
            return None
        indices.add(subscript.name)
    return list(values[expression.name].elements()) if len(indices) == len(expression.subscripts) else None


def _has_rows(value: object) -> bool:
    return isinstance(value, Array) and bool(value.values) and isinstance(value.values[0], Array)


def _elements(value: object) -> list:
    return list(value.elements()) if isinstance(value, Array) else [value]
