"""Loops get their items one by one."""

import libcst as cst
import libcst.matchers as m

from hf_qualcode.benchmark.drawing import Draws
from hf_qualcode.synthesis.rules._finding import findall
from hf_qualcode.synthesis.rules._lazy import COMBINING_NAMES, CONSUMING, LAZY, is_call_of, is_same_early, reads_input
from hf_qualcode.synthesis.rules._variables import binds_any, replaced


DIMENSION = "memory"
CATEGORY = "patterns"
LEVEL = "high"
SUMMARY = "The `list` around `range`, `map`, `zip`, `combinations` and the like is left out of loops and sums."
EXAMPLES = (
    (
        "def f(s):\n    for x in list(map(int, s)):\n        print(x)\n    return sum(list(range(9)))\n",
        "def f(s):\n    for x in map(int, s):\n        print(x)\n    return sum(range(9))\n",
    ),
)
_LISTED = m.Call(func=m.Name("list") | m.Name("tuple"), args=[m.Arg(keyword=None, star="")])


def apply(module: cst.Module, draws: Draws) -> cst.Module | None:
    """Change each loop and reduction over such a list, where what it is made of does not change on the way."""
    if binds_any(module, ("list", "tuple", *LAZY, *CONSUMING)):
        return None
    changes = {}
    for loop in findall(module, m.For(iter=_LISTED)):
        inner = loop.iter.args[0].value
        if is_call_of(inner, (*LAZY, *COMBINING_NAMES)) and is_same_early(inner, loop.body) and not reads_input(inner):
            changes[loop.iter] = lambda node: node.args[0].value
    for reduction in findall(module, m.Call(func=m.Name(), args=[m.Arg(_LISTED, keyword=None, star="")])):
        inner = reduction.args[0].value.args[0].value
        if reduction.func.value in CONSUMING and (
            isinstance(inner, cst.GeneratorExp) or is_call_of(inner, (*LAZY, *COMBINING_NAMES))
        ):
            if reduction.func.value in ("any", "all") and not (
                isinstance(inner, cst.Call) and is_same_early(inner, None)
            ):
                continue
            changes[reduction.args[0].value] = lambda node: node.args[0].value
    return replaced(module, changes)
