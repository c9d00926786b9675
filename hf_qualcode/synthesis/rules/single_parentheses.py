"""Doubled parentheses become single ones."""

import libcst as cst

from hf_qualcode.benchmark.drawing import Draws


DIMENSION = "maintainability"
CATEGORY = "readability"
LEVEL = "high"
SUMMARY = "Parentheses right inside others are removed, as in `((a + b)) * 2`."
EXAMPLES = (("x = ((a + b)) * 2\nprint((x))\n", "x = (a + b) * 2\nprint((x))\n"),)


def apply(module: cst.Module, draws: Draws) -> cst.Module | None:
    """Remove each pair around an expression but one."""
    remover = _Remover()
    changed = module.visit(remover)
    return changed if remover.count else None


class _Remover(cst.CSTTransformer):
    def __init__(self):
        super().__init__()
        self.count = 0

    def on_leave(self, original_node, updated_node):
        node = super().on_leave(original_node, updated_node)
        if isinstance(node, cst.BaseExpression) and len(node.lpar) > 1:
            self.count += 1
            node = node.with_changes(lpar=node.lpar[:1], rpar=node.rpar[-1:])
        return node
