"""Comparisons are turned into their opposites and negated."""

import libcst as cst
import libcst.matchers as m

from hf_qualcode.benchmark.drawing import Draws
from hf_qualcode.synthesis.rules._expressions import bare


DIMENSION = "maintainability"
CATEGORY = "readability"
LEVEL = "low"
SUMMARY = "Conditions by `==`, `!=`, `is`, `is not`, `in` and `not in` are inverted and negated."
EXAMPLES = (
    (
        "def f(a, b):\n    if a != b:\n        return a\n    return b\n",
        "def f(a, b):\n    if not a == b:\n        return a\n    return b\n",
    ),
    ("while x is not None:\n    x = step(x)\n", "while not x is None:\n    x = step(x)\n"),
)
OPPOSITES = {
    cst.Equal: cst.NotEqual,
    cst.NotEqual: cst.Equal,
    cst.Is: cst.IsNot,
    cst.IsNot: cst.Is,
    cst.In: cst.NotIn,
    cst.NotIn: cst.In,
}


def apply(module: cst.Module, draws: Draws) -> cst.Module | None:
    """Invert each comparison that is a condition, or a part of one; classes with an equality of their own: none."""
    if m.findall(module, m.FunctionDef(name=m.Name("__eq__") | m.Name("__ne__"))):
        return None
    inverter = _Inverter()
    changed = module.visit(inverter)
    return changed if inverter.count else None


class _Inverter(cst.CSTTransformer):
    def __init__(self):
        super().__init__()
        self.count = 0

    def leave_If(self, original_node, updated_node):
        return self._with_inverted_test(updated_node, space="whitespace_before_test")

    def leave_While(self, original_node, updated_node):
        return self._with_inverted_test(updated_node, space="whitespace_after_while")

    def leave_IfExp(self, original_node, updated_node):
        return self._with_inverted_test(updated_node)

    def leave_CompIf(self, original_node, updated_node):
        return self._with_inverted_test(updated_node)

    def _with_inverted_test(self, node, space: str | None = None):
        test = self._inverted(node.test)
        if test is node.test:
            return node
        changes = {space: cst.SimpleWhitespace(" ")} if space else {}
        return node.with_changes(test=test, **changes)

    def _inverted(self, node: cst.BaseExpression) -> cst.BaseExpression:
        inner = node
        if isinstance(inner, cst.BooleanOperation):
            left, right = self._inverted(inner.left), self._inverted(inner.right)
            return node if left is inner.left and right is inner.right else inner.with_changes(left=left, right=right)
        inner = bare(node)
        if not isinstance(inner, cst.Comparison) or len(inner.comparisons) != 1:
            return node
        opposite = OPPOSITES.get(type(inner.comparisons[0].operator))
        if opposite is None:
            return node
        self.count += 1
        comparison = inner.with_changes(comparisons=[inner.comparisons[0].with_changes(operator=opposite())])
        negation = cst.UnaryOperation(operator=cst.Not(), expression=comparison)
        # What ran over lines keeps its parentheses, and what had some gets them again: its neighbours may touch it.
        if node.lpar and not inner.lpar:
            return negation.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
        return negation
