"""A bare `except` says at least that it is about errors."""

import libcst as cst

from hf_qualcode.benchmark.drawing import Draws
from hf_qualcode.synthesis.rules._blocks import runs
from hf_qualcode.synthesis.rules._expressions import names_in
from hf_qualcode.synthesis.rules.bare_except import EXITS


DIMENSION = "maintainability"
CATEGORY = "robustness"
LEVEL = "high"
SUMMARY = "A bare `except` becomes `except Exception`, where nothing ends the program on purpose."
EXAMPLES = (
    (
        "try:\n    n = int(input())\nexcept:\n    n = 0\n",
        "try:\n    n = int(input())\nexcept Exception:\n    n = 0\n",
    ),
)


def apply(module: cst.Module, draws: Draws) -> cst.Module | None:
    """Name the exception of each bare handler; none in a module that raises `SystemExit` or the like."""
    if (EXITS | {"GeneratorExit"}) & names_in(module):
        return None
    replacer = _Replacer()
    changed = module.visit(replacer)
    return changed if replacer.count else None


class _Replacer(cst.CSTTransformer):
    def __init__(self):
        super().__init__()
        self.count = 0

    def leave_Try(self, original_node, updated_node):
        last = updated_node.handlers[-1] if updated_node.handlers else None
        if last is None or last.type is not None or runs(updated_node.body, cst.Yield, cst.Await):
            return updated_node
        self.count += 1
        handler = last.with_changes(type=cst.Name("Exception"), whitespace_after_except=cst.SimpleWhitespace(" "))
        return updated_node.with_changes(handlers=[*updated_node.handlers[:-1], handler])
