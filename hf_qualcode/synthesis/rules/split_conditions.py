"""Conditions joined by `and` become one `if` inside another."""

import libcst as cst

from hf_qualcode.benchmark.drawing import Draws
from hf_qualcode.synthesis.rules._blocks import block, statements_of
from hf_qualcode.synthesis.rules._expressions import as_condition, bare, conjuncts, is_repeatable


DIMENSION = "maintainability"
CATEGORY = "structure"
LEVEL = "low"
SUMMARY = "An `if` with several conditions and no `else` becomes several, one inside the other."
EXAMPLES = (
    (
        "def f(a, b):\n    if a > 0 and b > 0:\n        return a\n    return b\n",
        "def f(a, b):\n    if a > 0:\n        if b > 0:\n            return a\n    return b\n",
    ),
    (
        "def f(a):\n    if 0 < a < 9:\n        print(a)\n",
        "def f(a):\n    if 0 < a:\n        if a < 9:\n            print(a)\n",
    ),
)


def apply(module: cst.Module, draws: Draws) -> cst.Module | None:
    """Split each such condition."""
    splitter = _Splitter()
    changed = module.visit(splitter)
    return changed if splitter.count else None


class _Splitter(cst.CSTTransformer):
    def __init__(self):
        super().__init__()
        self.count = 0

    def leave_If(self, original_node, updated_node):
        parts = [piece for part in conjuncts(updated_node.test) for piece in _links(part)]
        if updated_node.orelse is not None or len(parts) < 2:
            return updated_node
        self.count += 1
        body = statements_of(updated_node.body)
        for part in reversed(parts[1:]):
            body = [cst.If(test=as_condition(part), body=block(body))]
        return updated_node.with_changes(
            test=as_condition(parts[0]),
            body=block(body),
            whitespace_before_test=cst.SimpleWhitespace(" "),
            whitespace_after_test=cst.SimpleWhitespace(""),
        )


def _links(node: cst.BaseExpression) -> list[cst.BaseExpression]:
    """`a < b` and `b < c` of `a < b < c`, where what is in the middle can be evaluated twice."""
    inner = bare(node)
    if not isinstance(inner, cst.Comparison) or len(inner.comparisons) < 2:
        return [node]
    if not all(is_repeatable(target.comparator) for target in inner.comparisons[:-1]):
        return [node]
    lefts = [inner.left, *(target.comparator.deep_clone() for target in inner.comparisons[:-1])]
    pairs = zip(lefts, inner.comparisons, strict=True)
    return [cst.Comparison(left=left, comparisons=[target]) for left, target in pairs]
