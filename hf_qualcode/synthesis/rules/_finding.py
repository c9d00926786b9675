"""Finding nodes in a tree, many times over.

`libcst.matchers.findall` visits and rebuilds the whole tree at each call. Dozens of transformations look at each
program, so here the nodes of a tree are listed once.
"""

import functools
from collections.abc import Iterator
from dataclasses import fields

import libcst as cst
import libcst.matchers as m


# Layout, which no pattern asks for.
_LAYOUT = (cst.BaseParenthesizableWhitespace, cst.TrailingWhitespace, cst.EmptyLine, cst.Newline, cst.Comment)
_LAYOUT_FIELDS = frozenset(("leading_lines", "lines_after_decorators", "header", "footer", "lpar", "rpar", "indent"))


def findall(tree: cst.CSTNode, pattern) -> list[cst.CSTNode]:
    """Every node of the tree, itself included, that matches a pattern; what holds others comes before them."""
    kinds = _kinds(pattern)
    return [node for node in _nodes(tree) if isinstance(node, kinds) and m.matches(node, pattern)]


# A module and its functions are asked for again and again, small parts once.
@functools.lru_cache(maxsize=256)
def _nodes(tree: cst.CSTNode) -> tuple[cst.CSTNode, ...]:
    return tuple(_walk(tree))


def _walk(tree: cst.CSTNode) -> Iterator[cst.CSTNode]:
    stack = [tree]
    while stack:
        node = stack.pop()
        yield node
        inner: list[cst.CSTNode] = []
        for name in _fields(type(node)):
            value = getattr(node, name)
            if isinstance(value, cst.CSTNode):
                inner.append(value)
            elif isinstance(value, list | tuple):
                inner += [one for one in value if isinstance(one, cst.CSTNode)]
        stack += [one for one in reversed(inner) if not isinstance(one, _LAYOUT)]


@functools.cache
def _fields(kind: type) -> tuple[str, ...]:
    names = [field.name for field in fields(kind)]
    return tuple(name for name in names if "whitespace" not in name and name not in _LAYOUT_FIELDS)


def _kinds(pattern) -> tuple[type, ...]:
    """Types of the nodes that a pattern can match."""
    if isinstance(pattern, m.OneOf):
        return tuple(kind for option in pattern.options for kind in _kinds(option))
    kind = getattr(cst, type(pattern).__name__, None)
    return (kind,) if isinstance(kind, type) else (cst.CSTNode,)
