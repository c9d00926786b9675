"""Data flow of a program for CodeBLEU: which value comes from which, names left out.

The rules are those of the published implementation (microsoft/CodeXGLUE, CodeBLEU's `DFG.py`), which reads a program
from top to bottom and keeps, for each name, the places where its present value may have been set: both ways through
an `if`, bodies of loops twice. Attributes, calls and scopes are not told apart.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import tree_sitter


# A hostile program nests deeper or, since loops are read twice at each level, needs longer than any real one.
MAX_DEPTH = 250
MAX_VISITS = 60_000

_COMES_FROM, _COMPUTED_FROM = "comesFrom", "computedFrom"
_WHOLE = frozenset({"string", "string_literal", "character_literal"})


class Edge(NamedTuple):
    """Where the value at one token comes from.

    Attributes:
        name (`str`), token (`int`): The token and its place among all.
        relation (`str`): `"comesFrom"` (the same value) or `"computedFrom"`.
        sources (`tuple[str, ...]`), source_tokens (`tuple[int, ...]`): Names and places of what it comes from.
    """

    name: str
    token: int
    relation: str
    sources: tuple[str, ...]
    source_tokens: tuple[int, ...]


_States = dict[str, tuple[int, ...]]


class _TooLargeError(Exception):
    """The program is nested too deeply, or has too many paths."""


def python_flow(root: tree_sitter.Node, source: bytes, ignored: frozenset[int]) -> list[tuple]:
    """Data-flow edges of a Python program, with names numbered in order of appearance.

    Args:
        root (`tree_sitter.Node`): Of the syntax tree.
        source (`bytes`): What was parsed.
        ignored (`frozenset[int]`): Ids of nodes that do not count, such as comments.

    Returns:
        `list[tuple]`: Name, relation and tuple of source names of each edge. Empty where nothing flows, and for a
        program nested deeper than 250 or with more than 60,000 steps.
    """
    reader = _PythonReader(source, ignored)
    try:
        edges = reader.read(root, {}, 0)
    except _TooLargeError:
        return []
    edges.sort(key=lambda edge: edge.token)
    linked = {token for edge in edges if edge.source_tokens for token in (edge.token, *edge.source_tokens)}
    merged: dict[int, Edge] = {}
    for edge in edges:
        if edge.token in linked:
            before = merged.get(edge.token)
            merged[edge.token] = edge if before is None else _merged(before, edge, reader.token_names)
    return list(_anonymous(merged.values()))


# A language without an entry has no data flow here.
FLOW_OF_LANGUAGE: dict[str, Callable] = {"python": python_flow}


def _merged(first: Edge, second: Edge, names: list[str]) -> Edge:
    tokens = tuple(sorted({*first.source_tokens, *second.source_tokens}))
    return first._replace(sources=tuple(dict.fromkeys(names[token] for token in tokens)), source_tokens=tokens)


def _anonymous(edges) -> Iterator[tuple]:
    numbers: dict[str, int] = {}
    for edge in edges:
        sources = tuple(numbers.setdefault(name, len(numbers)) for name in edge.sources)
        yield numbers.setdefault(edge.name, len(numbers)), edge.relation, sources


@dataclass
class _PythonReader:
    source: bytes
    ignored: frozenset[int]
    token_names: list[str] = field(default_factory=list)
    _tokens: dict[tuple[int, int], int] = field(default_factory=dict)
    _visits: int = 0

    def read(self, node: tree_sitter.Node, states: _States, depth: int) -> list[Edge]:
        """The edges of a subtree; `states` (name -> places of its present value) is brought up to date."""
        if depth == 0:
            self._number_tokens(node)
        self._visits += 1
        if depth > MAX_DEPTH or self._visits > MAX_VISITS:
            raise _TooLargeError
        kind = node.type
        if node.child_count == 0 or kind in _WHOLE:
            return self._read_token(node, states)
        if kind == "default_parameter":
            return self._read_default(node, states, depth)
        if kind in ("assignment", "augmented_assignment", "for_in_clause"):
            return self._read_assignment(node, states, depth)
        if kind == "if_statement":
            return self._read_if(node, states, depth)
        if kind == "for_statement":
            return self._read_for(node, states, depth)
        children = self._children(node)
        if kind == "while_statement":
            return _by_token(self._read_all(children * 2, states, depth), self.token_names)
        # The clauses of a comprehension bind what its head uses.
        children.sort(key=lambda child: child.type != "for_in_clause")
        return self._read_all(children, states, depth)

    def _children(self, node: tree_sitter.Node) -> list[tree_sitter.Node]:
        return [child for child in node.children if child.id not in self.ignored]

    def _read_all(self, nodes: list[tree_sitter.Node], states: _States, depth: int) -> list[Edge]:
        edges = []
        for node in nodes:  # no comprehension: each would be one more frame a level
            edges += self.read(node, states, depth + 1)
        return edges

    def _read_token(self, node: tree_sitter.Node, states: _States) -> list[Edge]:
        token = self._tokens.get((node.start_byte, node.end_byte))
        if token is None:  # a comment
            return []
        name = self.token_names[token]
        if node.type == name:  # a keyword or a sign
            return []
        if name in states:
            return [Edge(name, token, _COMES_FROM, (name,), states[name])]
        if node.type == "identifier":
            states[name] = (token,)
        return [Edge(name, token, _COMES_FROM, (), ())]

    def _read_default(self, node: tree_sitter.Node, states: _States, depth: int) -> list[Edge]:
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        if name is None or value is None:
            return self._read_all(self._children(node), states, depth)
        edges = self.read(value, states, depth + 1)
        for token in self._variables(name):
            for other in self._variables(value):
                edges.append(
                    Edge(self.token_names[token], token, _COMES_FROM, (self.token_names[other],), (other,))
                )
            states[self.token_names[token]] = (token,)
        return edges

    def _read_assignment(self, node: tree_sitter.Node, states: _States, depth: int) -> list[Edge]:
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        if left is None or right is None:  # `x: int`, or a program with errors
            return []
        pairs = [(left, right)] if node.type == "for_in_clause" else self._pairs(left, right)
        edges = self._read_all([right for _, right in pairs], states, depth)
        return edges + self._assign(pairs, states)

    def _pairs(self, left: tree_sitter.Node, right: tree_sitter.Node):
        """`a, b = c, d` is two assignments; `a, b = f()` is one of both names."""
        lefts, rights = ([child for child in self._children(side) if child.type != ","] for side in (left, right))
        if len(lefts) != len(rights) or not lefts:
            return [(left, right)]
        return list(zip(lefts, rights, strict=True))

    def _assign(self, pairs, states: _States) -> list[Edge]:
        edges = []
        for left, right in pairs:
            sources = tuple(self._variables(right))
            names = tuple(self.token_names[token] for token in sources)
            for token in self._variables(left):
                edges.append(Edge(self.token_names[token], token, _COMPUTED_FROM, names, sources))
                states[self.token_names[token]] = (token,)
        return edges

    def _read_if(self, node: tree_sitter.Node, states: _States, depth: int) -> list[Edge]:
        edges, before = [], dict(states)
        ends = []
        has_else = False
        for child in self._children(node):
            has_else = has_else or "else" in child.type
            if child.type in ("elif_clause", "else_clause"):
                other = dict(before)
                edges += self.read(child, other, depth + 1)
                ends.append(other)
            else:
                edges += self.read(child, states, depth + 1)
        # A name may have its value from any way through; without `else`, also from before.
        for end in [*ends, *([] if has_else else [before])]:
            for name, tokens in end.items():
                states[name] = tuple(sorted({*states.get(name, ()), *tokens}))
        return edges

    def _read_for(self, node: tree_sitter.Node, states: _States, depth: int) -> list[Edge]:
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        if left is None or right is None:
            return self._read_all(self._children(node), states, depth)
        pairs = self._pairs(left, right)
        edges = []
        blocks = [child for child in self._children(node) if child.type in ("block", "else_clause")]
        for _ in range(2):
            edges += self._read_all([right for _, right in pairs], states, depth)
            edges += self._assign(pairs, states)
            edges += self._read_all(blocks, states, depth)
        return _by_token(edges, self.token_names)

    def _variables(self, node: tree_sitter.Node) -> list[int]:
        """Tokens below a node that are not spelt out by the grammar: names, numbers, strings."""
        return [
            token for leaf in self._leaves(node)
            if self.token_names[token := self._tokens[leaf.start_byte, leaf.end_byte]] != leaf.type
        ]  # fmt: skip

    def _leaves(self, node: tree_sitter.Node) -> Iterator[tree_sitter.Node]:
        stack = [node]
        while stack:
            node = stack.pop()
            if node.id in self.ignored or node.type == "comment":
                continue
            if node.child_count == 0 or node.type in _WHOLE:
                self._visits += 1
                if self._visits > MAX_VISITS:
                    raise _TooLargeError
                yield node
            else:
                stack.extend(reversed(node.children))

    def _number_tokens(self, root: tree_sitter.Node) -> None:
        for leaf in self._leaves(root):
            self._tokens[leaf.start_byte, leaf.end_byte] = len(self.token_names)
            self.token_names.append(self.source[leaf.start_byte : leaf.end_byte].decode("utf-8", "replace"))


def _by_token(edges: list[Edge], names: list[str]) -> list[Edge]:
    """What both readings of a loop say of a token, put together."""
    found: dict[tuple[str, int, str], Edge] = {}
    for edge in edges:
        key = edge.name, edge.token, edge.relation
        found[key] = edge if key not in found else _merged(found[key], edge, names)
    return list(found.values())
