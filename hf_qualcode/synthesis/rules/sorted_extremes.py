"""The least and the greatest are found by sorting."""

import libcst as cst
import libcst.matchers as m

from hf_qualcode.benchmark.drawing import Draws
from hf_qualcode.synthesis.rules._finding import findall
from hf_qualcode.synthesis.rules._variables import binds_any, replaced


DIMENSION = "speed"
CATEGORY = "algorithm"
LEVEL = "low"
SUMMARY = "`min(xs)` becomes `sorted(xs)[0]`, `max(xs)` becomes `sorted(xs, reverse=True)[0]`."
EXAMPLES = (
    (
        "def f(xs):\n    return max(xs) - min(xs, key=abs)\n",
        "def f(xs):\n    return sorted(xs, reverse=True)[0] - sorted(xs, key=abs)[0]\n",
    ),
    ("print(min(x * x for x in xs))\n", "print(sorted([x * x for x in xs])[0])\n"),
)


def apply(module: cst.Module, draws: Draws) -> cst.Module | None:
    """Change each call with one iterable; none in a module that handles errors, which would be other ones.

    Sorting is stable in both directions, so the first of equal elements is found, as before.
    """
    if binds_any(module, ("min", "max", "sorted")) or findall(module, m.Try()):
        return None
    changes = {call: _sorted for call in findall(module, m.Call(func=m.Name("min") | m.Name("max"))) if _fits(call)}
    return replaced(module, changes)


def _fits(call: cst.Call) -> bool:
    first, *more = call.args or (None,)
    if first is None or first.star or first.keyword is not None:
        return False
    return all(arg.keyword is not None and arg.keyword.value == "key" for arg in more)


def _sorted(call: cst.Call) -> cst.Subscript:
    first, *more = call.args
    value = first.value
    if isinstance(value, cst.GeneratorExp):
        value = cst.ListComp(elt=value.elt, for_in=value.for_in)
    keys = [cst.Arg(arg.value, keyword=arg.keyword, equal=_EQUAL) for arg in more]
    if call.func.value == "max":
        keys.append(cst.Arg(cst.Name("True"), keyword=cst.Name("reverse"), equal=_EQUAL))
    ordered = cst.Call(func=cst.Name("sorted"), args=[cst.Arg(value), *keys])
    return cst.Subscript(ordered, [cst.SubscriptElement(cst.Index(cst.Integer("0")))], lpar=call.lpar, rpar=call.rpar)


_EQUAL = cst.AssignEqual(whitespace_before=cst.SimpleWhitespace(""), whitespace_after=cst.SimpleWhitespace(""))
