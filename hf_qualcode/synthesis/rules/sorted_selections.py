"""A few of many are taken from a sorted copy of all."""

import libcst as cst
import libcst.matchers as m

from hf_qualcode.benchmark.drawing import Draws
from hf_qualcode.synthesis.rules._expressions import code_of
from hf_qualcode.synthesis.rules._finding import findall
from hf_qualcode.synthesis.rules._variables import binds_any, replaced


DIMENSION = "memory"
CATEGORY = "data structure"
LEVEL = "low"
SUMMARY = "`heapq.nlargest(k, xs)` and `heapq.nsmallest(k, xs)` become slices of `sorted(xs)`."
EXAMPLES = (
    (
        "import heapq\n\ndef f(xs, k):\n    return heapq.nlargest(k, xs, key=abs) + heapq.nsmallest(2, xs)\n",
        "import heapq\n\ndef f(xs, k):\n    return sorted(xs, key=abs, reverse=True)[:max(k, 0)] + sorted(xs)[:2]\n",
    ),
)


def apply(module: cst.Module, draws: Draws) -> cst.Module | None:
    """Change each call."""
    if binds_any(module, ("sorted", "max")):
        return None
    imported = {name.value for node in findall(module, m.ImportFrom(module=m.Name("heapq")))
                for name in findall(node, m.Name())}  # fmt: skip
    aliases = {
        code_of(node.asname.name) for node in findall(module, m.ImportAlias(name=m.Name("heapq"))) if node.asname
    }
    changes = {}
    for call in findall(module, m.Call()):
        prefix, _, name = code_of(call.func).rpartition(".")
        known = prefix in {"heapq", *aliases} or (not prefix and name in imported)
        plain = len(call.args) >= 2 and all(not arg.star and arg.keyword is None for arg in call.args[:2])
        if name in ("nlargest", "nsmallest") and known and plain and len(call.args) <= 3:
            changes[call] = lambda node, name=name: _slice(node, name)
    return replaced(module, changes)


def _slice(call: cst.Call, name: str) -> cst.Subscript:
    count, values, *more = call.args
    equal = cst.AssignEqual(whitespace_before=cst.SimpleWhitespace(""), whitespace_after=cst.SimpleWhitespace(""))
    options = [cst.Arg(arg.value, keyword=cst.Name("key"), equal=equal) for arg in more]
    if name == "nlargest":
        options.append(cst.Arg(cst.Name("True"), keyword=cst.Name("reverse"), equal=equal))
    value = values.value
    if isinstance(value, cst.GeneratorExp) and not value.lpar and options:
        value = value.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    first = [cst.Arg(value), *options]
    upper = count.value
    if not isinstance(upper, cst.Integer):
        upper = cst.Call(cst.Name("max"), [cst.Arg(upper), cst.Arg(cst.Integer("0"))])
    return cst.Subscript(
        cst.Call(cst.Name("sorted"), first), [cst.SubscriptElement(cst.Slice(lower=None, upper=upper))],
        lpar=call.lpar, rpar=call.rpar,
    )  # fmt: skip
