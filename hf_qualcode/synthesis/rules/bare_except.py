"""Handlers of a specific exception catch everything."""

import libcst as cst
import libcst.matchers as m

from hf_qualcode.benchmark.drawing import Draws
from hf_qualcode.synthesis.rules._blocks import runs
from hf_qualcode.synthesis.rules._expressions import names_in


DIMENSION = "maintainability"
CATEGORY = "robustness"
LEVEL = "low"
SUMMARY = "A handler of specific exceptions becomes a bare `except`."
EXAMPLES = (
    (
        "try:\n    n = int(input())\nexcept ValueError:\n    n = 0\n",
        "try:\n    n = int(input())\nexcept:\n    n = 0\n",
    ),
)
# What a program ends by, and what a bare `except` would keep it from.
EXITS = frozenset(("exit", "quit", "_exit", "SystemExit", "KeyboardInterrupt", "BaseException", "abort"))


def apply(module: cst.Module, draws: Draws) -> cst.Module | None:
    """Take the exception from the last handler of each `try`.

    Only where nothing in the module ends the program or raises, and where the `try` is the only one: then whatever
    else the body could raise would have ended the program by an error, and no run without one changes.
    """
    if EXITS & names_in(module) or len(m.findall(module, m.Try())) != 1 or m.findall(module, m.Raise()):
        return None
    replacer = _Replacer()
    changed = module.visit(replacer)
    return changed if replacer.count else None


class _Replacer(cst.CSTTransformer):
    def __init__(self):
        super().__init__()
        self.count = 0

    def leave_Try(self, original_node, updated_node):
        *first, last = updated_node.handlers or (None,)
        if last is None or last.type is None or last.name is not None or runs(updated_node.body, cst.Yield, cst.Await):
            return updated_node
        self.count += 1
        handler = last.with_changes(type=None, whitespace_after_except=cst.SimpleWhitespace(""))
        return updated_node.with_changes(handlers=[*first, handler])
