"""Plain strings become f-strings without anything to fill in."""

import libcst as cst

from hf_qualcode.benchmark.drawing import Draws
from hf_qualcode.synthesis.rules._expressions import text_of


DIMENSION = "maintainability"
CATEGORY = "modernity"
LEVEL = "low"
SUMMARY = "String literals that are returned, assigned or passed to a function become f-strings without fields."
EXAMPLES = (("def f(a):\n    return 'even' if a % 2 == 0 else 'odd'\n",
             "def f(a):\n    return f'even' if a % 2 == 0 else f'odd'\n"),)  # fmt: skip


def apply(module: cst.Module, draws: Draws) -> cst.Module | None:
    """Change each string without braces and escapes in arguments, returns and assigned values."""
    changer = _Changer()
    changed = module.visit(changer)
    return changed if changer.count else None


class _Changer(cst.CSTTransformer):
    def __init__(self):
        super().__init__()
        self.count = 0

    def leave_Arg(self, original_node, updated_node):
        return self._changed(updated_node)

    def leave_Return(self, original_node, updated_node):
        return self._changed(updated_node)

    def leave_Assign(self, original_node, updated_node):
        return self._changed(updated_node)

    def _changed(self, node):
        if node.value is None:
            return node
        value = self._value(node.value)
        if value is node.value:
            return node
        changes = {"whitespace_after_return": cst.SimpleWhitespace(" ")} if isinstance(node, cst.Return) else {}
        return node.with_changes(value=value, **changes)

    def _value(self, node: cst.BaseExpression) -> cst.BaseExpression:
        if isinstance(node, cst.IfExp):
            return node.with_changes(body=self._value(node.body), orelse=self._value(node.orelse))
        text = text_of(node)
        if not text or node.prefix or node.quote not in ("'", '"') or set("{}\\") & set(node.raw_value):
            return node
        self.count += 1
        parts = [cst.FormattedStringText(node.raw_value)]
        return cst.FormattedString(parts=parts, start=f"f{node.quote}", end=node.quote, lpar=node.lpar, rpar=node.rpar)
