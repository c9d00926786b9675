"""Loops go over lists of what could be made one by one."""

import libcst as cst
import libcst.matchers as m

from hf_qualcode.benchmark.drawing import Draws
from hf_qualcode.synthesis.rules._finding import findall
from hf_qualcode.synthesis.rules._lazy import CONSUMING, LAZY, is_call_of, is_same_early
from hf_qualcode.synthesis.rules._variables import binds_any, call, replaced


DIMENSION = "memory"
CATEGORY = "patterns"
LEVEL = "low"
SUMMARY = "`range`, `enumerate`, `zip`, `reversed`, `map` and `filter` are made lists before they are gone through."
EXAMPLES = (
    (
        "def f(n):\n    t = 0\n    for i in range(n):\n        t += i\n    return t + sum(map(int, str(n)))\n",
        "def f(n):\n    t = 0\n    for i in list(range(n)):\n        t += i\n"
        "    return t + sum(list(map(int, str(n))))\n",
    ),
)


def apply(module: cst.Module, draws: Draws) -> cst.Module | None:
    """Change each `for` loop over such a call, and each `sum`, `max`, `min`, `any` and `all` of one."""
    if binds_any(module, ("list", *LAZY, *CONSUMING)):
        return None
    changes = {}
    for loop in findall(module, m.For()):
        if is_call_of(loop.iter, LAZY) and is_same_early(loop.iter, loop.body):
            changes[loop.iter] = lambda node: call("list", node)
    for reduction in findall(module, m.Call(func=m.Name(), args=[m.Arg(keyword=None, star="")])):
        argument = reduction.args[0].value
        if reduction.func.value in CONSUMING and is_call_of(argument, LAZY) and is_same_early(argument, None):
            changes[argument] = lambda node: call("list", node)
    return replaced(module, changes)
