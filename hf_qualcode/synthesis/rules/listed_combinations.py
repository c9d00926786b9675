"""All combinations are made before the first is looked at."""

import libcst as cst
import libcst.matchers as m

from hf_qualcode.benchmark.drawing import Draws
from hf_qualcode.synthesis.rules._finding import findall
from hf_qualcode.synthesis.rules._lazy import COMBINING_NAMES, CONSUMING, is_call_of, is_same_early
from hf_qualcode.synthesis.rules._variables import binds_any, call, replaced


DIMENSION = "memory"
CATEGORY = "algorithm"
LEVEL = "low"
SUMMARY = "`product`, `permutations`, `combinations` and the like are made lists before they are gone through."
EXAMPLES = (
    (
        "from itertools import combinations\n\ndef f(xs):\n    return max(a + b for a, b in combinations(xs, 2))\n",
        "from itertools import combinations\n\ndef f(xs):\n"
        "    return max(a + b for a, b in list(combinations(xs, 2)))\n",
    ),
)


def apply(module: cst.Module, draws: Draws) -> cst.Module | None:
    """Change each loop, comprehension and reduction over such a call."""
    if binds_any(module, ("list",)):
        return None
    changes = {}
    for loop in findall(module, m.For() | m.CompFor()):
        body = loop.body if isinstance(loop, cst.For) else None
        if is_call_of(loop.iter, COMBINING_NAMES) and is_same_early(loop.iter, body):
            changes[loop.iter] = lambda node: call("list", node)
    for reduction in findall(module, m.Call(func=m.Name(), args=[m.Arg(keyword=None, star="")])):
        argument = reduction.args[0].value
        if reduction.func.value in CONSUMING and is_call_of(argument, COMBINING_NAMES):
            changes[argument] = lambda node: call("list", node)
    return replaced(module, changes)
