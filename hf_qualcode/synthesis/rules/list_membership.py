"""Sets that are only asked for members become lists."""

import libcst as cst
import libcst.matchers as m

from hf_qualcode.benchmark.drawing import Draws
from hf_qualcode.synthesis.rules._finding import findall
from hf_qualcode.synthesis.rules._variables import Variable, binds_any, call, replaced, variables_of


DIMENSION = "speed"
CATEGORY = "data structure"
LEVEL = "low"
SUMMARY = "A set that is only added to and asked for members becomes a list."
EXAMPLES = (
    (
        "def f(xs):\n    seen = set()\n    for x in xs:\n        if x in seen:\n            return x\n"
        "        seen.add(x)\n",
        "def f(xs):\n    seen = []\n    for x in xs:\n        if x in seen:\n            return x\n"
        "        seen.append(x)\n",
    ),
    (
        "def f(xs, ys):\n    known = set(ys)\n    return [x for x in xs if x not in known]\n",
        "def f(xs, ys):\n    known = list(ys)\n    return [x for x in xs if x not in known]\n",
    ),
)
_SET_CALL = m.Call(func=m.Name("set") | m.Name("frozenset"))


def apply(module: cst.Module, draws: Draws) -> cst.Module | None:
    """Change each variable that holds a set, and each set written right after `in`."""
    if binds_any(module, ("set", "frozenset", "list")):
        return None
    changes = {}
    for variable in variables_of(module):
        if _is_asked_only(variable):
            for use in variable.of_kind("assigned"):
                changes[use.node.value] = _as_list
            for use in variable.of_kind("method:add"):
                changes[use.node.func.attr] = lambda node: node.with_changes(value="append")
    for target in findall(module, m.ComparisonTarget(operator=m.In() | m.NotIn())):
        if m.matches(target.comparator, m.Set() | m.SetComp() | m.Call(func=m.Name("set"), args=[m.Arg(star="")])):
            changes[target.comparator] = _as_list
    return replaced(module, changes)


def _is_asked_only(variable: Variable) -> bool:
    assigned = variable.of_kind("assigned")
    return (
        variable.kinds() <= {"assigned", "member", "method:add"}
        and "member" in variable.kinds()
        and bool(assigned)
        and all(_is_set(use.node.value) for use in assigned)
    )


def _is_set(value: cst.BaseExpression) -> bool:
    if m.matches(value, _SET_CALL):
        return len(value.args) == 0 or (len(value.args) == 1 and not value.args[0].star)
    return isinstance(value, cst.Set | cst.SetComp)


def _as_list(value: cst.BaseExpression) -> cst.BaseExpression:
    if isinstance(value, cst.Call):
        if not value.args:
            return cst.List([])
        inner = value.args[0].value
        if isinstance(inner, cst.GeneratorExp):
            return cst.ListComp(elt=inner.elt, for_in=inner.for_in)
        return call("list", inner)
    if isinstance(value, cst.SetComp):
        return cst.ListComp(elt=value.elt, for_in=value.for_in, lpar=value.lpar, rpar=value.rpar)
    return cst.List(elements=value.elements, lpar=value.lpar, rpar=value.rpar)
