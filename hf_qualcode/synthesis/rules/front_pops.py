"""Queues become lists, whose first element takes as long to remove as there are others."""

import libcst as cst
import libcst.matchers as m

from hf_qualcode.benchmark.drawing import Draws
from hf_qualcode.synthesis.rules._expressions import code_of
from hf_qualcode.synthesis.rules._variables import Variable, call, only_reads, replaced, variables_of


DIMENSION = "speed"
CATEGORY = "data structure"
LEVEL = "low"
SUMMARY = "A `deque` becomes a list: `popleft()` is `pop(0)`, `appendleft(x)` is `insert(0, x)`."
EXAMPLES = (
    (
        "from collections import deque\nq = deque([1])\nwhile q:\n    x = q.popleft()\n    if x < 9:\n"
        "        q.append(x + 1)\n",
        "from collections import deque\nq = list([1])\nwhile q:\n    x = q.pop(0)\n    if x < 9:\n"
        "        q.append(x + 1)\n",
    ),
)
_METHODS = {"popleft", "append", "pop", "appendleft", "extend"}


def apply(module: cst.Module, draws: Draws) -> cst.Module | None:
    """Change each variable that holds queues only, used as a list could be."""
    changes = {}
    for variable in variables_of(module):
        if _is_queue(variable):
            for use in variable.of_kind("assigned"):
                changes[use.node.value] = _as_list
            for use in variable.of_kind("method:popleft"):
                changes[use.node] = lambda node: node.with_changes(
                    func=node.func.with_changes(attr=cst.Name("pop")), args=[cst.Arg(cst.Integer("0"))]
                )
            for use in variable.of_kind("method:appendleft"):
                changes[use.node] = lambda node: node.with_changes(
                    func=node.func.with_changes(attr=cst.Name("insert")), args=[cst.Arg(cst.Integer("0")), *node.args]
                )
    return replaced(module, changes)


def _is_queue(variable: Variable) -> bool:
    assigned = variable.of_kind("assigned")
    methods = {kind.removeprefix("method:") for kind in variable.kinds() if kind.startswith("method:")}
    rest = [use for use in variable.uses if use.kind != "assigned" and not use.kind.startswith("method:")]
    return (
        bool(assigned)
        and methods <= _METHODS
        and bool(methods & {"popleft", "appendleft"})
        and all(only_reads(use) and use.kind not in ("returned", "slice", "call:print", "call:str") for use in rest)
        and all(
            m.matches(use.node.value, m.Call())
            and code_of(use.node.value.func) in ("deque", "collections.deque")
            and len(use.node.value.args) < 2
            and all(not arg.star and arg.keyword is None for arg in use.node.value.args)
            for use in assigned
        )
    )


def _as_list(value: cst.Call) -> cst.BaseExpression:
    return call("list", value.args[0].value) if value.args else cst.List([])
