"""Lists grow by concatenation, a copy for each element."""

import libcst as cst

from hf_qualcode.benchmark.drawing import Draws
from hf_qualcode.synthesis.rules._expressions import names_in
from hf_qualcode.synthesis.rules._variables import (
    Variable,
    enclosing,
    in_function,
    is_empty_list,
    only_reads,
    own_loops,
    replaced,
    variables_of,
)


DIMENSION = "speed"
CATEGORY = "data structure"
LEVEL = "low"
SUMMARY = "`items.append(x)` becomes `items = items + [x]`."
EXAMPLES = (
    (
        "def f(n):\n    out = []\n    for i in range(n):\n        out.append(i * i)\n    return out\n",
        "def f(n):\n    out = []\n    for i in range(n):\n        out = out + [i * i]\n    return out\n",
    ),
)


def apply(module: cst.Module, draws: Draws) -> cst.Module | None:
    """Change the appending to each list that begins empty and that nothing else keeps hold of."""
    changes = {}
    for variable in variables_of(module):
        if is_own_list(variable, "method:append") and all(map(_can_be_rebound, variable.of_kind("method:append"))):
            for use in variable.of_kind("method:append"):
                changes[use.node] = lambda node, name=variable.name: _concatenation(name, node)
    # An `Expr` can hold an assignment's text only as a statement of its own.
    return replaced(module, {_expression_of(module, node): change for node, change in changes.items()})


def is_own_list(variable: Variable, growing: str) -> bool:
    """Whether a variable begins as an empty list, grows in a loop in its own scope and is otherwise only read."""
    assigned, grows = variable.of_kind("assigned"), variable.of_kind(growing)
    rest = [use for use in variable.uses if use not in assigned and use not in grows]
    return (
        bool(assigned)
        and any(any(own_loops(use, variable.scope)) for use in grows)
        and all(is_empty_list(use.node.value) or growing == "assigned" for use in assigned)
        and all(in_function(use, variable.scope) for use in grows)
        and all(only_reads(use) for use in rest)
        and not any(
            variable.name in names_in(loop.iter)
            for use in grows
            for loop in own_loops(use, variable.scope)
            if isinstance(loop, cst.For | cst.CompFor)
        )
    )


def _can_be_rebound(use) -> bool:
    return (
        isinstance(enclosing(use, cst.Expr, cst.Lambda, cst.ListComp), cst.Expr)
        and use.parents[2:3] == (enclosing(use, cst.Expr),)
        and len(use.node.args) == 1
        and not use.node.args[0].star
    )


def _expression_of(module: cst.Module, call: cst.Call) -> cst.Expr:
    finder = _Finder(call)
    module.visit(finder)
    return finder.found


class _Finder(cst.CSTVisitor):
    def __init__(self, call: cst.Call):
        super().__init__()
        self._call, self.found = call, None

    def visit_Expr(self, node):
        if node.value is self._call:
            self.found = node


def _concatenation(name: str, expression: cst.Expr) -> cst.Assign:
    value = expression.value.args[0].value
    if isinstance(value, cst.GeneratorExp) and not value.lpar:
        value = value.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    added = cst.BinaryOperation(cst.Name(name), cst.Add(), cst.List([cst.Element(value)]))
    return cst.Assign(targets=[cst.AssignTarget(cst.Name(name))], value=added)
