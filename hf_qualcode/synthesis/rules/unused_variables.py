"""Functions get variables that nothing reads."""

import libcst as cst

from hf_qualcode.benchmark.drawing import Draws
from hf_qualcode.synthesis.rules._blocks import after_docstring, assigned_name, fresh_name, line, statements_of
from hf_qualcode.synthesis.rules._expressions import names_in, reads_own_names


DIMENSION = "maintainability"
CATEGORY = "readability"
LEVEL = "low"
SUMMARY = "Functions get variables that are assigned and never read."
EXAMPLES = (
    (
        "def f(a):\n    total = a * 2\n    return total\n",
        "def f(a):\n    n = 1\n    total = a * 2\n    previous_total = total\n    return total\n",
    ),
)
_FIRST = ("result = None", "count = 0", "temp = []", "found = False", "n = 1", "tmp = ''")
_PREFIXES = ("old_", "previous_", "saved_", "backup_")


def apply(module: cst.Module, draws: Draws) -> cst.Module | None:
    """Give each function of two statements or more one variable at its start, and one after its first assignment."""
    if reads_own_names(module):
        return None
    first = _FIRST[draws.below(len(_FIRST))]
    prefix = _PREFIXES[draws.below(len(_PREFIXES))]
    adder = _Adder(first, prefix, names_in(module))
    changed = module.visit(adder)
    return changed if adder.count else None


class _Adder(cst.CSTTransformer):
    def __init__(self, first: str, prefix: str, taken: set[str]):
        super().__init__()
        self._first, self._prefix, self._taken = first, prefix, taken
        self.count = 0

    def leave_FunctionDef(self, original_node, updated_node):
        statements = statements_of(updated_node.body)
        start = after_docstring(statements)
        if len(statements) - start < 1:
            return updated_node
        self.count += 1
        name, value = self._first.split(" = ")
        added = [*statements[:start], line(f"{fresh_name(name, self._taken)} = {value}")]
        copied = False
        for statement in statements[start:]:
            added.append(statement)
            assigned = assigned_name(statement)
            if assigned is not None and not copied and assigned[0][0] != "_":
                copied = True
                added.append(line(f"{fresh_name(self._prefix + assigned[0], self._taken)} = {assigned[0]}"))
        body = updated_node.body if isinstance(updated_node.body, cst.IndentedBlock) else cst.IndentedBlock(body=[])
        return updated_node.with_changes(body=body.with_changes(body=added))
