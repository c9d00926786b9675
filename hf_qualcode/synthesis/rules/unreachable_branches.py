"""Branches that can never run."""

import libcst as cst

from hf_qualcode.benchmark.drawing import Draws
from hf_qualcode.synthesis.rules._blocks import after_docstring, after_imports, assigned_name, statements_of


DIMENSION = "maintainability"
CATEGORY = "readability"
LEVEL = "low"
SUMMARY = "Functions, or the module where it has none, get a branch whose condition can never hold."
EXAMPLES = (
    (
        "def f(a):\n    return a * 2\n",
        "def f(a):\n    if False:\n        print('debug', a)\n    return a * 2\n",
    ),
)
_BRANCHES = (
    "if {name} is None and False:\n    print({name})\n",
    "if False and {name}:\n    print('unexpected', {name})\n",
    "if not True:\n    print({name})\n",
    "if False:\n    print('debug', {name})\n",
    "if 0 and {name}:\n    print({name})\n",
)


def apply(module: cst.Module, draws: Draws) -> cst.Module | None:
    """Add a branch at the start of each function with parameters, or after a module's first assignment."""
    template = _BRANCHES[draws.below(len(_BRANCHES))]
    adder = _Adder(template)
    changed = module.visit(adder)
    if adder.count:
        return changed
    statements = list(module.body)
    for place in range(after_imports(statements), len(statements)):
        assigned = assigned_name(statements[place])
        if assigned is not None and not assigned[0].startswith("_"):
            branch = cst.parse_statement(template.format(name=assigned[0]))
            return module.with_changes(body=[*statements[: place + 1], branch, *statements[place + 1 :]])
    return None


class _Adder(cst.CSTTransformer):
    def __init__(self, template: str):
        super().__init__()
        self._template = template
        self.count = 0

    def leave_FunctionDef(self, original_node, updated_node):
        parameters = updated_node.params.params
        statements = statements_of(updated_node.body)
        start = after_docstring(statements)
        if not parameters or start == len(statements) or not isinstance(updated_node.body, cst.IndentedBlock):
            return updated_node
        self.count += 1
        branch = cst.parse_statement(self._template.format(name=parameters[-1].name.value))
        added = [*statements[:start], branch, *statements[start:]]
        return updated_node.with_changes(body=updated_node.body.with_changes(body=added))
