"""An `if` that holds nothing but another `if` becomes one."""

import libcst as cst

from hf_qualcode.benchmark.drawing import Draws
from hf_qualcode.synthesis.rules._blocks import statements_of
from hf_qualcode.synthesis.rules._expressions import bare, standalone


DIMENSION = "maintainability"
CATEGORY = "structure"
LEVEL = "high"
SUMMARY = "An `if` in an `if`, neither with an `else`, becomes one with both conditions."
EXAMPLES = (
    (
        "def f(a, b):\n    if a > 0:\n        if b > 0:\n            return a\n    return b\n",
        "def f(a, b):\n    if a > 0 and b > 0:\n        return a\n    return b\n",
    ),
)


def apply(module: cst.Module, draws: Draws) -> cst.Module | None:
    """Merge each such pair, innermost first."""
    merger = _Merger()
    changed = module.visit(merger)
    return changed if merger.count else None


class _Merger(cst.CSTTransformer):
    def __init__(self):
        super().__init__()
        self.count = 0

    def leave_If(self, original_node, updated_node):
        statements = statements_of(updated_node.body)
        inner = statements[0]
        if updated_node.orelse is not None or len(statements) != 1:
            return updated_node
        if not isinstance(inner, cst.If) or inner.orelse is not None or _has_comment(inner):
            return updated_node
        self.count += 1
        test = cst.BooleanOperation(left=_part(updated_node.test), operator=cst.And(), right=_part(inner.test))
        return updated_node.with_changes(
            test=test, body=inner.body, whitespace_before_test=cst.SimpleWhitespace(" "),
            whitespace_after_test=cst.SimpleWhitespace(""),
        )  # fmt: skip


def _part(test: cst.BaseExpression) -> cst.BaseExpression:
    """The test as a part of `and`."""
    inner = bare(test)
    tight = cst.Comparison | cst.UnaryOperation | cst.Name | cst.Call | cst.Subscript | cst.Attribute
    binds = isinstance(inner, tight)
    joined = isinstance(inner, cst.BooleanOperation) and isinstance(inner.operator, cst.And)
    return inner if binds or joined else standalone(inner)


def _has_comment(node: cst.If) -> bool:
    return any(entry.comment is not None for entry in node.leading_lines)
