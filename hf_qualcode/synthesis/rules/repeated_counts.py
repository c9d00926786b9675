"""Each element is counted by going through all."""

import re

import libcst as cst
import libcst.matchers as m

from hf_qualcode.benchmark.drawing import Draws
from hf_qualcode.synthesis.rules._blocks import statements_of
from hf_qualcode.synthesis.rules._expressions import code_of
from hf_qualcode.synthesis.rules._finding import findall
from hf_qualcode.synthesis.rules._variables import changed_names, replaced


DIMENSION = "speed"
CATEGORY = "algorithm"
LEVEL = "low"
SUMMARY = "A `Counter`, or a loop that counts in a dict, asks `count` for every element."
EXAMPLES = (
    (
        "from collections import Counter\n\ndef f(xs):\n    return Counter(xs)\n",
        "from collections import Counter\n\ndef f(xs):\n    return Counter({item: xs.count(item) for item in xs})\n",
    ),
    (
        "def f(xs):\n    d = {}\n    for x in xs:\n        d[x] = d.get(x, 0) + 1\n    return d\n",
        "def f(xs):\n    d = {}\n    for x in xs:\n        d[x] = xs.count(x)\n    return d\n",
    ),
)
_DICT_NAME = re.compile(r"dict|^d\d*$|map|counts?$", re.IGNORECASE)
_COUNTER = m.Call(func=m.Name("Counter") | m.Attribute(value=m.Name("collections"), attr=m.Name("Counter")),
                  args=[m.Arg(m.Name(), keyword=None, star="")])  # fmt: skip


def apply(module: cst.Module, draws: Draws) -> cst.Module | None:
    """Change each counter of a variable, and each loop that does nothing but count."""
    if findall(module, m.Name("item")):
        return None
    changes = {}
    for call in findall(module, _COUNTER):
        # A dict, by its name, has counts already.
        if _DICT_NAME.search(call.args[0].value.value):
            continue
        text = "{{item: {0}.count(item) for item in {0}}}".format(call.args[0].value.value)
        changes[call.args[0].value] = lambda _, text=text: cst.parse_expression(text)
    for loop in findall(module, m.For(target=m.Name(), iter=m.Name())):
        table = _table(loop)
        # Counts of before would be added to.
        begins = m.Assign(targets=[m.AssignTarget(m.Name(table or ""))], value=m.Dict(elements=[]))
        stored = findall(module, m.Subscript(value=m.Name(table or "")))
        own = findall(loop, m.Subscript(value=m.Name(table or "")))
        writes = findall(module, m.AssignTarget(m.Subscript(value=m.Name(table or ""))))
        inside = findall(loop, m.AssignTarget(m.Subscript(value=m.Name(table or ""))))
        if table and len(findall(module, begins)) == 1 and len(writes) == len(inside) and stored and own:
            changes[loop] = lambda node, table=table: _counting(node, table)
    return replaced(module, changes)


def _table(loop: cst.For) -> str | None:
    """Name of the dict in which a loop counts its variable."""
    x, body = loop.target.value, statements_of(loop.body)
    if len(body) != 1 or loop.orelse is not None or loop.iter.value in changed_names(loop.body):
        return None
    text = code_of(body[0]).replace(" ", "").replace("\t", "").strip()
    tables = {node.value.value for node in findall(body[0], m.Subscript(value=m.Name()))}
    if len(tables) != 1:
        return None
    (d,) = tables
    forms = {
        f"{d}[{x}]={d}.get({x},0)+1",
        f"if{x}in{d}:\n{d}[{x}]+=1\nelse:\n{d}[{x}]=1",
        f"if{x}notin{d}:\n{d}[{x}]=1\nelse:\n{d}[{x}]+=1",
        f"if({x}in{d}):\n{d}[{x}]+=1\nelse:\n{d}[{x}]=1",
        f"if{x}in{d}.keys():\n{d}[{x}]+=1\nelse:\n{d}[{x}]=1",
    }
    return d if text in forms else None


def _counting(loop: cst.For, table: str) -> cst.For:
    x = loop.target.value
    return loop.with_changes(
        body=cst.IndentedBlock([cst.parse_statement(f"{table}[{x}] = {loop.iter.value}.count({x})")])
    )
