"""Searches go on to the end after they have found what they look for."""

import libcst as cst
import libcst.matchers as m

from hf_qualcode.benchmark.drawing import Draws
from hf_qualcode.synthesis.rules._blocks import (
    assigned_name,
    block,
    change_blocks,
    fresh_name,
    only_part,
    statements_of,
)
from hf_qualcode.synthesis.rules._expressions import is_constant, names_in
from hf_qualcode.synthesis.rules._finding import findall
from hf_qualcode.synthesis.rules._variables import READING_CALLS, READING_METHODS


DIMENSION = "speed"
CATEGORY = "algorithm"
LEVEL = "low"
SUMMARY = "A loop that is left at its first hit, by `return` or `break`, notes the hit and goes on."
EXAMPLES = (
    (
        "def f(xs):\n    for x in xs:\n        if x < 0:\n            return False\n    return True\n",
        "def f(xs):\n    answer = True\n    for x in xs:\n        if x < 0:\n            answer = False\n"
        "    return answer\n",
    ),
    (
        "ok = 1\nfor x in xs:\n    if x < 0:\n        ok = 0\n        break\n",
        "ok = 1\nfor x in xs:\n    if x < 0:\n        ok = 0\n",
    ),
)
_PURE = READING_CALLS - {"print"} | {"isinstance", "ord", "chr", "abs", "divmod"}


def apply(module: cst.Module, draws: Draws) -> cst.Module | None:
    """Change loops that are one question only, whose answer is the same whichever hit gives it."""
    taken = names_in(module)

    def change(statements: list, _) -> list:
        after, is_changed, number = [], False, 0
        while number < len(statements):
            statement, following = statements[number], statements[number + 1 : number + 2]
            noted = _noted(statement, following[0], fresh_name("answer", taken)) if following else None
            if noted is not None:
                after += noted
                is_changed, number = True, number + 2
                continue
            kept_on = _without_break(statement)
            is_changed = is_changed or kept_on is not None
            after.append(statement if kept_on is None else kept_on)
            number += 1
        return after if is_changed else statements

    return change_blocks(module, change)


def _question(statement: cst.CSTNode) -> cst.If | None:
    """The only statement of a `for` loop, if it is an `if` without `else` that asks and changes nothing."""
    if not isinstance(statement, cst.For) or statement.orelse is not None or statement.asynchronous is not None:
        return None
    body = statements_of(statement.body)
    if len(body) != 1 or not isinstance(body[0], cst.If) or body[0].orelse is not None:
        return None
    for called in findall(body[0].test, m.Call()):
        name = called.func.value if isinstance(called.func, cst.Name) else None
        method = called.func.attr.value if isinstance(called.func, cst.Attribute) else None
        if name not in _PURE and method not in READING_METHODS:
            return None
    if findall(body[0].test, m.NamedExpr() | m.Await() | m.Yield()) or findall(statement.iter, m.Name("count")):
        return None
    return body[0]


def _noted(statement: cst.CSTNode, following: cst.CSTNode, name: str) -> list | None:
    question, last = _question(statement), only_part(following)
    if question is None or not isinstance(last, cst.Return) or last.value is None or not is_constant(last.value):
        return None
    body = statements_of(question.body)
    hit = only_part(body[0]) if len(body) == 1 else None
    if not isinstance(hit, cst.Return) or hit.value is None or not is_constant(hit.value):
        return None
    first = _assign(name, last.value).with_changes(leading_lines=statement.leading_lines)
    changed = question.with_changes(body=block([_assign(name, hit.value)]))
    loop = statement.with_changes(body=block([changed]), leading_lines=[])
    return [first, loop, following.with_changes(body=[last.with_changes(value=cst.Name(name))])]


def _without_break(statement: cst.CSTNode) -> cst.For | None:
    question = _question(statement)
    body = statements_of(question.body) if question is not None else []
    if len(body) < 2 or not isinstance(only_part(body[-1]), cst.Break):
        return None
    assigned = [assigned_name(one) for one in body[:-1]]
    read = names_in(question.test) | names_in(statement.iter)
    if any(one is None or not is_constant(one[1]) or one[0] in read for one in assigned):
        return None
    # A variable of the loop would end at another value.
    targets = names_in(statement.target)
    if any(one[0] in targets for one in assigned) or not all(
        name.startswith(("_", "i", "j", "x")) for name in targets
    ):
        return None
    return statement.with_changes(body=block([question.with_changes(body=block(body[:-1]))]))


def _assign(name: str, value: cst.BaseExpression) -> cst.SimpleStatementLine:
    return cst.SimpleStatementLine([cst.Assign([cst.AssignTarget(cst.Name(name))], value)])
