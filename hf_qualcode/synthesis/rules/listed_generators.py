"""Reductions get a list where items one by one would do."""

import libcst as cst
import libcst.matchers as m

from hf_qualcode.benchmark.drawing import Draws
from hf_qualcode.synthesis.rules._finding import findall
from hf_qualcode.synthesis.rules._lazy import CONSUMING, is_steady
from hf_qualcode.synthesis.rules._variables import binds_any, replaced


DIMENSION = "memory"
CATEGORY = "data structure"
LEVEL = "low"
SUMMARY = "The generator in `sum`, `max`, `min`, `any` or `all` becomes a list."
EXAMPLES = (("def f(xs):\n    return sum(x * x for x in xs)\n", "def f(xs):\n    return sum([x * x for x in xs])\n"),)


def apply(module: cst.Module, draws: Draws) -> cst.Module | None:
    """Change each; `any` and `all` only where the items they would not have asked for can be made without effect."""
    if binds_any(module, CONSUMING):
        return None
    changes = {}
    for call in findall(module, m.Call(func=m.Name())):
        first = call.args[0].value if call.args and not call.args[0].star else None
        if call.func.value not in CONSUMING or not isinstance(first, cst.GeneratorExp) or first.for_in.asynchronous:
            continue
        endless = findall(first.for_in, m.Name("count") | m.Name("cycle") | m.Name("repeat"))
        if not endless and (call.func.value in ("sum", "max", "min") or is_steady(first)):
            changes[first] = lambda node: cst.ListComp(elt=node.elt, for_in=node.for_in)
    return replaced(module, changes)
