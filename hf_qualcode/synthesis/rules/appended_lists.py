"""Lists grow in place."""

import libcst as cst
import libcst.matchers as m

from hf_qualcode.benchmark.drawing import Draws
from hf_qualcode.synthesis.rules._finding import findall
from hf_qualcode.synthesis.rules._variables import Use, Variable, enclosing, is_empty_list, replaced, variables_of
from hf_qualcode.synthesis.rules.concatenated_lists import is_own_list


DIMENSION = "speed"
CATEGORY = "data structure"
LEVEL = "high"
SUMMARY = "`items = items + [x]` becomes `items.append(x)`."
EXAMPLES = (
    (
        "def f(n):\n    out = []\n    for i in range(n):\n        out = out + [i * i]\n    return out\n",
        "def f(n):\n    out = []\n    for i in range(n):\n        out.append(i * i)\n    return out\n",
    ),
)


def apply(module: cst.Module, draws: Draws) -> cst.Module | None:
    """Change the growing of each list that begins empty and that nothing else keeps hold of."""
    changes = {}
    for variable in variables_of(module):
        grows = [use for use in variable.of_kind("assigned") if _added(use, variable.name) is not None]
        begins = [use for use in variable.of_kind("assigned") if use not in grows]
        if not grows or not begins or not all(is_empty_list(use.node.value) for use in begins):
            continue
        # Where the name stands in its own sum is no use of it that counts.
        own = {id(use.node.value) for use in grows}
        rest = tuple(use for use in variable.uses if not any(id(node) in own for node in use.parents))
        if is_own_list(Variable(variable.name, variable.scope, rest), "assigned"):
            for use in grows:
                changes[use.node] = lambda node, name=variable.name: _append(node, name)
    return replaced(module, changes)


def _added(use: Use, name: str) -> cst.BaseExpression | None:
    pattern = m.BinaryOperation(left=m.Name(name), operator=m.Add(), right=m.List(elements=[m.Element()]))
    value = use.node.value
    if not m.matches(value, pattern) or findall(value.right, m.Name(name)) or enclosing(use, cst.Lambda) is not None:
        return None
    return value.right.elements[0].value


def _append(node: cst.Assign, name: str) -> cst.Expr:
    value = node.value.right.elements[0].value
    return cst.Expr(cst.Call(cst.parse_expression(f"{name}.append"), [cst.Arg(value)]), semicolon=node.semicolon)
