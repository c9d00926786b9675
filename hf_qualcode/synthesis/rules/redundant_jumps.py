"""Jumps and `pass` where the program would go on just so."""

import libcst as cst

from hf_qualcode.benchmark.drawing import Draws
from hf_qualcode.synthesis.rules._blocks import block, leaves, runs, statements_of


DIMENSION = "maintainability"
CATEGORY = "readability"
LEVEL = "low"
SUMMARY = "Loops end in a needless `continue` or `pass`, and functions without a value in a needless `return`."
EXAMPLES = (
    (
        "def f(items):\n    for item in items:\n        print(item)\n",
        "def f(items):\n    for item in items:\n        print(item)\n        continue\n    return\n",
    ),
)


def apply(module: cst.Module, draws: Draws) -> cst.Module | None:
    """Add them to each loop and function that does not end in a jump."""
    adder = _Adder((cst.Pass(), cst.Continue())[draws.below(2)])
    changed = module.visit(adder)
    return changed if adder.count else None


class _Adder(cst.CSTTransformer):
    def __init__(self, part: cst.BaseSmallStatement):
        super().__init__()
        self._part = part
        self.count = 0

    def leave_For(self, original_node, updated_node):
        return self._with_last(updated_node, self._part)

    def leave_While(self, original_node, updated_node):
        return self._with_last(updated_node, self._part)

    def leave_FunctionDef(self, original_node, updated_node):
        if runs(original_node.body, cst.Return) or runs(original_node.body, cst.Yield):
            return updated_node
        return self._with_last(updated_node, cst.Return())

    def _with_last(self, node, part: cst.BaseSmallStatement):
        statements = statements_of(node.body)
        if leaves(statements) or _is_pass(statements[-1]):
            return node
        self.count += 1
        last = cst.SimpleStatementLine(body=[part.deep_clone()])
        body = node.body if isinstance(node.body, cst.IndentedBlock) else block([])
        return node.with_changes(body=body.with_changes(body=[*statements, last]))


def _is_pass(statement: cst.CSTNode) -> bool:
    return isinstance(statement, cst.SimpleStatementLine) and isinstance(statement.body[-1], cst.Pass)
