"""Elements are counted once for all."""

import libcst as cst
import libcst.matchers as m

from hf_qualcode.benchmark.drawing import Draws
from hf_qualcode.synthesis.rules._blocks import fresh_name
from hf_qualcode.synthesis.rules._expressions import names_in
from hf_qualcode.synthesis.rules._finding import findall
from hf_qualcode.synthesis.rules._parameters import begin_with, read_parameters
from hf_qualcode.synthesis.rules._variables import enclosing, only_reads, replaced, with_import


DIMENSION = "speed"
CATEGORY = "algorithm"
LEVEL = "high"
SUMMARY = "`xs.count(x)` for each x of `xs` becomes a lookup in a `Counter`."
EXAMPLES = (
    (
        "def f(xs):\n    return {x: xs.count(x) for x in set(xs)}\n",
        "from collections import Counter\ndef f(xs):\n    xs_counts = Counter(xs)\n"
        "    return {x: xs_counts[x] for x in set(xs)}\n",
    ),
)


def apply(module: cst.Module, draws: Draws) -> cst.Module | None:
    """Change the counts, in a loop over a parameter or the set of it, of its own elements."""
    changes: dict = {}
    additions: dict[cst.FunctionDef, list[str]] = {}
    taken = names_in(module)
    for variable in read_parameters(module, only_reads):
        counts = [use for use in variable.of_kind("method:count") if _is_of_element(use, variable.name)]
        if counts:
            name = fresh_name(f"{variable.name}_counts", taken)
            for use in counts:
                changes[use.node] = lambda node, name=name: cst.Subscript(
                    cst.Name(name),
                    [cst.SubscriptElement(cst.Index(node.args[0].value))],
                    lpar=node.lpar,
                    rpar=node.rpar,
                )
            additions.setdefault(variable.scope, []).append(f"{name} = Counter({variable.name})")
    if not changes:
        return None
    begun = begin_with_changes(module, additions, changes)
    return with_import(begun, "from collections import Counter")


def begin_with_changes(module: cst.Module, additions: dict, changes: dict) -> cst.Module:
    """Replaces nodes and puts statements at the beginning of functions, which are found again by name."""
    texts = {function.name.value: lines for function, lines in additions.items()}
    changed = replaced(module, changes)
    again = {one: texts[one.name.value] for one in findall(changed, m.FunctionDef()) if one.name.value in texts}
    return begin_with(changed, again)


def _is_of_element(use, name: str) -> bool:
    call = use.node
    if len(call.args) != 1 or not isinstance(call.args[0].value, cst.Name):
        return False
    element, source = call.args[0].value.value, m.Name(name) | m.Call(func=m.Name("set"), args=[m.Arg(m.Name(name))])
    for node in use.parents:
        if isinstance(node, cst.ListComp | cst.SetComp | cst.DictComp | cst.GeneratorExp):
            if m.matches(node.for_in, m.CompFor(target=m.Name(element), iter=source)):
                return True
        elif m.matches(node, m.For(target=m.Name(element), iter=source)):
            return True
    return enclosing(use, cst.FunctionDef) is None
