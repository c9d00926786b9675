"""Keys of a dict are looked for in a list of them."""

import libcst as cst
import libcst.matchers as m

from hf_qualcode.benchmark.drawing import Draws
from hf_qualcode.synthesis.rules._finding import findall
from hf_qualcode.synthesis.rules._variables import binds_any, call, replaced, variables_of


DIMENSION = "speed"
CATEGORY = "data structure"
LEVEL = "low"
SUMMARY = "`key in dict` becomes `key in list(dict.keys())`."
EXAMPLES = (
    (
        "def f(xs):\n    d = {}\n    for x in xs:\n        if x in d:\n            d[x] += 1\n        else:\n"
        "            d[x] = 1\n    return d\n",
        "def f(xs):\n    d = {}\n    for x in xs:\n        if x in list(d.keys()):\n            d[x] += 1\n"
        "        else:\n"
        "            d[x] = 1\n    return d\n",
    ),
)
_DICT = m.Dict() | m.DictComp() | m.Call(func=m.Name("dict") | m.Name("defaultdict") | m.Name("Counter"))
_KEYS = m.Call(func=m.Attribute(attr=m.Name("keys")), args=[])


def apply(module: cst.Module, draws: Draws) -> cst.Module | None:
    """Change each question for a key of a variable that holds nothing but dicts."""
    if binds_any(module, ("list", "dict")):
        return None
    changes = {}
    for variable in variables_of(module):
        assigned = variable.of_kind("assigned")
        others = variable.of_kind("bound", "parameter", "augmented")
        if assigned and not others and all(m.matches(use.node.value, _DICT) for use in assigned):
            for use in variable.of_kind("member"):
                changes[use.node.comparator] = lambda node: call("list", call(f"{node.value}.keys"))
    for target in findall(module, m.ComparisonTarget(operator=m.In() | m.NotIn(), comparator=_KEYS)):
        changes[target.comparator] = lambda node: call("list", node)
    return replaced(module, changes)
