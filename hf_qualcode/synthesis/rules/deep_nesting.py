"""Guards that leave early become nested `if` and `else` around the rest."""

import libcst as cst

from hf_qualcode.benchmark.drawing import Draws
from hf_qualcode.synthesis.rules._blocks import block, change_blocks, leaves, line_count, runs, statements_of
from hf_qualcode.synthesis.rules._expressions import negated


DIMENSION = "maintainability"
CATEGORY = "readability"
LEVEL = "low"
SUMMARY = "The code after a guard that leaves early moves into a branch of its negated condition."
EXAMPLES = (
    (
        "def f(a, b):\n    if a == 0:\n        return 1\n    if not b:\n        return 2\n    return a / b\n",
        "def f(a, b):\n    if not a == 0:\n        if b:\n            return a / b\n"
        "        else:\n            return 2\n"
        "    else:\n        return 1\n",
    ),
)
_MOST_LINES = 60


def apply(module: cst.Module, draws: Draws) -> cst.Module | None:
    """Nest every guard of functions and loops."""
    return change_blocks(module, _nested)


def _nested(statements: list[cst.BaseStatement], holder: cst.CSTNode) -> list[cst.BaseStatement]:
    if isinstance(holder, cst.Module):
        return statements
    # From the last guard to the first, so that each finds the later ones nested already.
    for place in range(len(statements) - 2, -1, -1):
        guard = statements[place]
        rest = statements[place + 1 :]
        if not isinstance(guard, cst.If) or guard.orelse is not None or not leaves(statements_of(guard.body)):
            continue
        # A declaration has to stand before what it is about, and the guard's body moves behind the rest.
        if runs(guard, cst.Global, cst.Nonlocal):
            continue
        if sum(line_count(statement) for statement in rest) > _MOST_LINES:
            break
        nested = cst.If(
            test=negated(guard.test),
            body=block(rest),
            orelse=cst.Else(body=block(statements_of(guard.body))),
            leading_lines=guard.leading_lines,
        )
        statements = [*statements[:place], nested]
    return statements
