"""What a loop could find ready is computed in each round."""

import libcst as cst
import libcst.matchers as m

from hf_qualcode.benchmark.drawing import Draws
from hf_qualcode.synthesis.rules._expressions import names_in, standalone
from hf_qualcode.synthesis.rules._variables import (
    Use,
    Variable,
    binds_any,
    in_function,
    only_reads,
    own_loops,
    replaced,
    variables_of,
)


DIMENSION = "speed"
CATEGORY = "algorithm"
LEVEL = "low"
SUMMARY = "A value that was computed once before a loop (`sum`, `max`, `sorted`, `set`, ...) is computed inside it."
EXAMPLES = (
    (
        "def f(xs):\n    top = max(xs)\n    n = 0\n    for x in xs:\n        if x == top:\n"
        "            n += 1\n    return n\n",
        "def f(xs):\n    top = max(xs)\n    n = 0\n    for x in xs:\n        if x == max(xs):\n            n += 1\n"
        "    return n\n",
    ),
)
_LINEAR = frozenset(("sum", "max", "min", "sorted", "set", "Counter", "list", "tuple", "frozenset", "str"))
_FREE = frozenset(("len", "int", "abs", "range", "map", "float"))
_SCALAR = frozenset(("sum", "str"))


def apply(module: cst.Module, draws: Draws) -> cst.Module | None:
    """Put the expression in place of each use of the variable in a loop."""
    if binds_any(module, _LINEAR - {"Counter"} | _FREE):
        return None
    variables = {variable.name: variable for variable in variables_of(module)}
    changes = {}
    for variable in variables.values():
        value = _fixed_value(variable, variables)
        if value is None:
            continue
        uses = [use for use in variable.uses if use.kind != "assigned"]
        is_scalar = isinstance(value, cst.Call) and value.func.value in _SCALAR
        if not all(only_reads(use) or (is_scalar and use.kind == "other") or _is_compared(use) for use in uses):
            continue
        for use in uses:
            if in_function(use, variable.scope) and _runs_again(use, variable):
                changes[_name_of(use, variable.name)] = lambda _, value=value: standalone(value).deep_clone()
    return replaced(module, changes)


def _fixed_value(variable: Variable, variables: dict[str, Variable]) -> cst.BaseExpression | None:
    """What the variable is assigned, where that is once and from what does not change."""
    written = [use for use in variable.uses if use.kind in ("assigned", "bound", "augmented", "parameter", "deleted")]
    if len(written) != 1 or written[0].kind != "assigned" or any(own_loops(written[0], variable.scope)):
        return None
    value = written[0].node.value
    if not _is_pure(value):
        return None
    for name in names_in(value) - _LINEAR - _FREE:
        source = variables.get(name)
        if source is None or source.scope is not variable.scope:
            return None
        bound = source.of_kind("assigned", "bound", "augmented", "parameter", "deleted")
        rest = [use for use in source.uses if use not in bound]
        if len(bound) != 1 or bound[0].kind not in ("assigned", "parameter") or not all(map(_leaves_alone, rest)):
            return None
        if any(own_loops(bound[0], source.scope)):
            return None
        # An iterator would be used up.
        if bound[0].kind == "assigned" and m.matches(
            bound[0].node.value,
            m.GeneratorExp() | m.Call(func=m.OneOf(*map(m.Name, ("map", "filter", "zip", "iter")))),
        ):
            return None
    return value


def _leaves_alone(use: Use) -> bool:
    if only_reads(use) or _is_compared(use):
        return True
    # Arithmetic makes new values.
    return use.kind == "other" and isinstance(use.parents[0], cst.BinaryOperation)


def _is_pure(value: cst.BaseExpression) -> bool:
    if not isinstance(value, cst.Call) or not isinstance(value.func, cst.Name) or value.func.value not in _LINEAR:
        return False
    if len(value.args) != 1 or value.args[0].star or value.args[0].keyword is not None:
        return False
    inner = value.args[0].value
    return isinstance(inner, cst.Name) or _is_pure(inner) or (
        isinstance(inner, cst.Subscript) and isinstance(inner.value, cst.Name)
    )  # fmt: skip


def _is_compared(use: Use) -> bool:
    return use.kind == "other" and isinstance(use.parents[0], cst.Comparison | cst.ComparisonTarget)


def _runs_again(use: Use, variable: Variable) -> bool:
    """Whether the use is inside a loop's body or a `while`'s condition, or in a comprehension's element."""
    inner: cst.CSTNode | None = None
    for node in use.parents:
        if node is variable.scope:
            return False
        if isinstance(node, cst.While):
            return inner is node.body or inner is node.test
        if isinstance(node, cst.For) and inner is node.body:
            return True
        if isinstance(node, cst.ListComp | cst.SetComp | cst.GeneratorExp) and inner is node.elt:
            return True
        if isinstance(node, cst.CompIf):
            return True
        inner = node
    return False


def _name_of(use: Use, name: str) -> cst.Name:
    """The name itself, which the nearest node around it holds."""
    parent = use.parents[0]
    return next(child for child in parent.children if isinstance(child, cst.Name) and child.value == name)
