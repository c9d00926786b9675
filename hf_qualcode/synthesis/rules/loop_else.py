"""What comes after a loop moves into its `else`."""

import libcst as cst

from hf_qualcode.benchmark.drawing import Draws
from hf_qualcode.synthesis.rules._blocks import block, breaks, change_blocks, runs


DIMENSION = "maintainability"
CATEGORY = "structure"
LEVEL = "low"
SUMMARY = "The code after a loop without `break` moves into an `else` of the loop, where it runs just the same."
EXAMPLES = (
    (
        "def f(items):\n    total = 0\n    for item in items:\n        total += item\n    return total\n",
        "def f(items):\n    total = 0\n    for item in items:\n        total += item\n"
        "    else:\n        return total\n",
    ),
)


def apply(module: cst.Module, draws: Draws) -> cst.Module | None:
    """Move what comes after the last such loop of each block."""
    return change_blocks(module, _moved)


def _moved(statements: list[cst.BaseStatement], holder: cst.CSTNode) -> list[cst.BaseStatement]:
    for place in range(len(statements) - 2, -1, -1):
        loop, rest = statements[place], statements[place + 1 :]
        definitions = any(isinstance(statement, cst.FunctionDef | cst.ClassDef) for statement in rest)
        # `break` and `continue` in there are about the loop around, in an `else` as well.
        if (
            isinstance(loop, cst.For | cst.While)
            and loop.orelse is None
            and not breaks(loop)
            and not definitions
            and not any(runs(statement, cst.ImportStar, cst.Global, cst.Nonlocal) for statement in rest)
        ):
            return [*statements[:place], loop.with_changes(orelse=cst.Else(body=block(rest)))]
    return statements
