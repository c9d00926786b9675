"""Negated comparisons become their opposites."""

import libcst as cst
import libcst.matchers as m

from hf_qualcode.benchmark.drawing import Draws
from hf_qualcode.synthesis.rules._expressions import bare
from hf_qualcode.synthesis.rules.inverted_checks import OPPOSITES


DIMENSION = "maintainability"
CATEGORY = "readability"
LEVEL = "high"
SUMMARY = "`not a == b` becomes `a != b`; the same for `!=`, `is`, `is not`, `in` and `not in`."
EXAMPLES = (
    ("def f(a, b):\n    if not a == b:\n        return a\n", "def f(a, b):\n    if a != b:\n        return a\n"),
    ("while not (x is None):\n    x = step(x)\n", "while x is not None:\n    x = step(x)\n"),
)


def apply(module: cst.Module, draws: Draws) -> cst.Module | None:
    """Change each negated comparison; none where a class has an equality of its own."""
    if m.findall(module, m.FunctionDef(name=m.Name("__eq__") | m.Name("__ne__"))) or "numpy" in module.code:
        return None
    changer = _Changer()
    changed = module.visit(changer)
    return changed if changer.count else None


class _Changer(cst.CSTTransformer):
    def __init__(self):
        super().__init__()
        self.count = 0

    def leave_UnaryOperation(self, original_node, updated_node):
        inner = bare(updated_node.expression)
        if not isinstance(updated_node.operator, cst.Not) or not isinstance(inner, cst.Comparison):
            return updated_node
        if len(inner.comparisons) != 1 or type(inner.comparisons[0].operator) not in OPPOSITES:
            return updated_node
        self.count += 1
        target = inner.comparisons[0]
        comparison = inner.with_changes(comparisons=[target.with_changes(operator=OPPOSITES[type(target.operator)]())])
        own = updated_node.expression
        # Parentheses stay for now: the next word may touch them.
        outer = updated_node if updated_node.lpar else own
        return comparison.with_changes(lpar=outer.lpar, rpar=outer.rpar)

    def leave_If(self, original_node, updated_node):
        return self._without_parentheses(original_node, updated_node)

    def leave_While(self, original_node, updated_node):
        return self._without_parentheses(original_node, updated_node)

    @staticmethod
    def _without_parentheses(original_node, updated_node):
        if isinstance(original_node.test, cst.UnaryOperation) and not original_node.test.lpar:
            return updated_node.with_changes(test=bare(updated_node.test))
        return updated_node
