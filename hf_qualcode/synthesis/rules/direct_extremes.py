"""The least and the greatest are found without sorting."""

import libcst as cst
import libcst.matchers as m

from hf_qualcode.benchmark.drawing import Draws
from hf_qualcode.synthesis.rules._expressions import code_of
from hf_qualcode.synthesis.rules._finding import findall
from hf_qualcode.synthesis.rules._variables import binds_any, replaced


DIMENSION = "speed"
CATEGORY = "algorithm"
LEVEL = "high"
SUMMARY = "`sorted(xs)[0]` becomes `min(xs)`, `sorted(xs)[-1]` and `sorted(xs, reverse=True)[0]` become `max(xs)`."
EXAMPLES = (
    ("def f(xs):\n    return sorted(xs)[-1] - sorted(xs)[0]\n", "def f(xs):\n    return max(xs) - min(xs)\n"),
    ("x = sorted(d, key=len, reverse=True)[0]\n", "x = max(d, key=len)\n"),
)
_SORTED = m.Subscript(value=m.Call(func=m.Name("sorted")), slice=[m.SubscriptElement(m.Index())])


def apply(module: cst.Module, draws: Draws) -> cst.Module | None:
    """Change each such item; none in a module that handles errors, which would be other ones."""
    if binds_any(module, ("min", "max", "sorted")) or findall(module, m.Try()):
        return None
    changes = {}
    for node in findall(module, _SORTED):
        name = _extreme(node)
        if name is not None:
            changes[node] = lambda node, name=name: _direct(node, name)
    return replaced(module, changes)


def _extreme(node: cst.Subscript) -> str | None:
    place = code_of(node.slice[0].slice.value)
    first, *more = node.value.args or (None,)
    if first is None or first.star or first.keyword is not None or any(arg.keyword is None for arg in more):
        return None
    options = {arg.keyword.value: code_of(arg.value) for arg in more}
    if options.get("reverse") == "True":
        return "max" if place == "0" else None
    if "reverse" in options:
        return None
    if place == "0":
        return "min"
    # With a key, equal ones can differ, and the last of them is meant.
    return "max" if place == "-1" and "key" not in options else None


def _direct(node: cst.Subscript, name: str) -> cst.Call:
    first, *more = node.value.args
    kept = [arg for arg in more if arg.keyword.value != "reverse"]
    args = [arg.with_changes(comma=cst.MaybeSentinel.DEFAULT) for arg in (first, *kept)]
    return cst.Call(func=cst.Name(name), args=args, lpar=node.lpar, rpar=node.rpar)
