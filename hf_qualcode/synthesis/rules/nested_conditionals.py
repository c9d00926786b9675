"""Chains of branches that give one value each become a conditional expression in another."""

import libcst as cst

from hf_qualcode.benchmark.drawing import Draws
from hf_qualcode.synthesis.rules._blocks import assigned_name, change_blocks, only_part, statements_of
from hf_qualcode.synthesis.rules._expressions import code_of, standalone


DIMENSION = "maintainability"
CATEGORY = "readability"
LEVEL = "low"
SUMMARY = "Three or more branches that return or assign one value each become nested conditional expressions."
EXAMPLES = (
    (
        "def sign(n):\n    if n > 0:\n        return 1\n"
        "    elif n < 0:\n        return -1\n    else:\n        return 0\n",
        "def sign(n):\n    return 1 if (n > 0) else (-1) if (n < 0) else 0\n",
    ),
)
_LONGEST = 400


def apply(module: cst.Module, draws: Draws) -> cst.Module | None:
    """Fold each such chain."""
    return change_blocks(module, _folded)


def _folded(statements: list[cst.BaseStatement], holder: cst.CSTNode) -> list[cst.BaseStatement]:
    for place, statement in enumerate(statements):
        if not isinstance(statement, cst.If):
            continue
        branches, used = _branches(statements[place:])
        if branches is None or len(branches) < 3:
            continue
        target = branches[0][1]
        value = standalone(branches[-1][2])
        for test, _, result in reversed(branches[:-1]):
            value = cst.IfExp(test=standalone(test), body=standalone(result), orelse=value)
        if target is None:
            part = cst.Return(value=value)
        else:
            part = cst.Assign(targets=[cst.AssignTarget(target=cst.Name(target))], value=value)
        if len(code_of(value)) > _LONGEST:
            continue
        folded = cst.SimpleStatementLine(body=[part], leading_lines=statement.leading_lines)
        return _folded([*statements[:place], folded, *statements[place + used :]], holder)
    return statements


def _branches(statements: list[cst.BaseStatement]) -> tuple[list[tuple] | None, int]:
    """(test, name assigned or `None` for a return, value) of each branch, and how many statements they are."""
    branches: list[tuple] = []
    used = 0
    while used < len(statements):
        node = statements[used]
        used += 1
        returned = _returned(node)
        if branches and returned is not None:
            branches.append((None, None, returned))
            break
        while isinstance(node, cst.If):
            outcome = _outcome(node.body)
            if outcome is None:
                return None, 0
            branches.append((node.test, *outcome))
            node = node.orelse
        if node is None and branches[-1][1] is None:
            continue  # a guard: the branch for all else comes after it
        outcome = _outcome(node.body) if isinstance(node, cst.Else) else None
        if outcome is None:
            return None, 0
        branches.append((None, *outcome))
        break
    complete = bool(branches) and branches[-1][0] is None
    same_target = len({target for _, target, _ in branches}) == 1
    return (branches, used) if complete and same_target else (None, 0)


def _outcome(body: cst.BaseSuite) -> tuple[str | None, cst.BaseExpression] | None:
    statements = statements_of(body)
    if len(statements) != 1:
        return None
    returned = _returned(statements[0])
    return (None, returned) if returned is not None else assigned_name(statements[0])


def _returned(statement: cst.CSTNode) -> cst.BaseExpression | None:
    part = only_part(statement)
    return part.value if isinstance(part, cst.Return) else None
