"""Every element of a flat list gets a list of its own."""

import libcst as cst
import libcst.matchers as m

from hf_qualcode.benchmark.drawing import Draws
from hf_qualcode.synthesis.rules._expressions import bare, is_constant, is_literal
from hf_qualcode.synthesis.rules._finding import findall
from hf_qualcode.synthesis.rules._variables import Variable, binds_any, replaced, variables_of


DIMENSION = "memory"
CATEGORY = "data structure"
LEVEL = "low"
SUMMARY = "A list `[0] * n` whose items are read and written becomes one of lists with one element each."
EXAMPLES = (
    (
        "def f(n):\n    dp = [0] * (n + 1)\n    dp[0] = 1\n    for i in range(1, n + 1):\n"
        "        dp[i] += 2 * dp[i - 1]\n"
        "    return dp[n]\n",
        "def f(n):\n    dp = [[0] for _ in range((n + 1))]\n    dp[0][0] = 1\n    for i in range(1, n + 1):\n"
        "        dp[i][0] += 2 * dp[i - 1][0]\n    return dp[n][0]\n",
    ),
)
_FILLED = m.BinaryOperation(left=m.List(elements=[m.Element()]), operator=m.Multiply())


def apply(module: cst.Module, draws: Draws) -> cst.Module | None:
    """Change each such variable that is used in no other way."""
    if binds_any(module, ("range",)):
        return None
    changes = {}
    for variable in variables_of(module):
        if _is_filled(variable):
            for use in variable.of_kind("assigned"):
                changes[use.node.value] = _boxes
            for use in variable.of_kind("item", "stored_item"):
                changes[use.node] = _inside
    return replaced(module, changes)


def _is_filled(variable: Variable) -> bool:
    assigned = variable.of_kind("assigned")
    items = variable.of_kind("item", "stored_item")
    if variable.kinds() - {"assigned", "item", "stored_item", "call:len"} or not assigned or not items:
        return False
    for use in assigned:
        value = use.node.value
        if not m.matches(value, _FILLED) or not _is_scalar(value.left.elements[0].value):
            return False
        if findall(value.right, m.Name("_")) or isinstance(bare(value.right), cst.List):
            return False
    return all(
        len(use.node.slice) == 1
        and isinstance(use.node.slice[0].slice, cst.Index)
        and not any(isinstance(node, cst.Del) for node in use.parents)
        for use in items
    )


def _is_scalar(value: cst.BaseExpression) -> bool:
    return is_constant(value) or (isinstance(value, cst.UnaryOperation) and is_literal(value)) or m.matches(
        value, m.Call(func=m.Name("float"), args=[m.Arg(m.SimpleString())])
    )  # fmt: skip


def _boxes(value: cst.BinaryOperation) -> cst.ListComp:
    size = cst.Call(cst.Name("range"), [cst.Arg(value.right)])
    return cst.ListComp(
        elt=value.left, for_in=cst.CompFor(target=cst.Name("_"), iter=size), lpar=value.lpar, rpar=value.rpar
    )


def _inside(item: cst.Subscript) -> cst.Subscript:
    box = item.with_changes(lpar=[], rpar=[])
    return cst.Subscript(box, [cst.SubscriptElement(cst.Index(cst.Integer("0")))], lpar=item.lpar, rpar=item.rpar)
