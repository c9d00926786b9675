"""Reductions get their items one by one."""

import libcst as cst
import libcst.matchers as m

from hf_qualcode.benchmark.drawing import Draws
from hf_qualcode.synthesis.rules._finding import findall
from hf_qualcode.synthesis.rules._lazy import CONSUMING, is_steady
from hf_qualcode.synthesis.rules._variables import binds_any, replaced


DIMENSION = "memory"
CATEGORY = "data structure"
LEVEL = "high"
SUMMARY = "The list comprehension in `sum`, `max`, `min`, `any` or `all` becomes a generator."
EXAMPLES = (
    ("def f(xs):\n    return sum([x * x for x in xs])\n", "def f(xs):\n    return sum(x * x for x in xs)\n"),
    ("print(max([x for x in xs], default=0))\n", "print(max((x for x in xs), default=0))\n"),
)


def apply(module: cst.Module, draws: Draws) -> cst.Module | None:
    """Change each; `any` and `all` only where the items they no longer ask for would have had no effect."""
    if binds_any(module, CONSUMING):
        return None
    changes = {}
    for call in findall(module, m.Call(func=m.Name())):
        first = call.args[0].value if call.args and not call.args[0].star else None
        if call.func.value not in CONSUMING or not isinstance(first, cst.ListComp) or first.for_in.asynchronous:
            continue
        reads = findall(first.elt, m.Name("input") | m.Name("stdin") | m.Name("readline"))
        if call.func.value in ("sum", "max", "min") or (is_steady(first) and not reads):
            alone = len(call.args) == 1
            changes[first] = lambda node, alone=alone: _generator(node, alone)
    return replaced(module, changes)


def _generator(node: cst.ListComp, alone: bool) -> cst.GeneratorExp:
    left, right = ([], []) if alone else ([cst.LeftParen()], [cst.RightParen()])
    return cst.GeneratorExp(elt=node.elt, for_in=node.for_in, lpar=left, rpar=right)
