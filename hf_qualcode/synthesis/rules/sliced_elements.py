"""Elements are taken from a copy of the rest of the list."""

import libcst as cst
import libcst.matchers as m

from hf_qualcode.benchmark.drawing import Draws
from hf_qualcode.synthesis.rules._expressions import code_of, names_in
from hf_qualcode.synthesis.rules._finding import findall
from hf_qualcode.synthesis.rules._variables import binds_any, changed_names, replaced


DIMENSION = "speed"
CATEGORY = "patterns"
LEVEL = "low"
SUMMARY = "`xs[i]` in a loop over the places of `xs` becomes `xs[i:][0]`."
EXAMPLES = (
    (
        "def f(xs):\n    n = 0\n    for i in range(len(xs)):\n        n += xs[i]\n    return n\n",
        "def f(xs):\n    n = 0\n    for i in range(len(xs)):\n        n += xs[i:][0]\n    return n\n",
    ),
)


def apply(module: cst.Module, draws: Draws) -> cst.Module | None:
    """Change each item read at the loop's own variable, where the loop changes neither it nor the list."""
    if binds_any(module, ("range", "len")):
        return None
    changes = {}
    for loop in findall(module, m.For(target=m.Name(), iter=m.Call(func=m.Name("range")))):
        lengths = findall(loop.iter, m.Call(func=m.Name("len"), args=[m.Arg(m.Name())]))
        index, changed = loop.target.value, changed_names(loop.body)
        for name in {call.args[0].value.value for call in lengths} - changed:
            if index in changed:
                continue
            item = m.Subscript(value=m.Name(name), slice=[m.SubscriptElement(m.Index())])
            for node in findall(loop.body, item):
                if index in names_in(node.slice[0]):
                    changes[node] = _first_of_rest
    return replaced(module, changes)


def _first_of_rest(item: cst.Subscript) -> cst.Subscript:
    index = item.slice[0].slice.value
    text = code_of(index)
    lower = (
        index
        if index.lpar or "\n" not in text
        else index.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    )
    rest = item.with_changes(slice=[cst.SubscriptElement(cst.Slice(lower=lower, upper=None))], lpar=[], rpar=[])
    return cst.Subscript(rest, [cst.SubscriptElement(cst.Index(cst.Integer("0")))], lpar=item.lpar, rpar=item.rpar)
