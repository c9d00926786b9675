"""Lists that are only asked for members become sets."""

import libcst as cst
import libcst.matchers as m

from hf_qualcode.benchmark.drawing import Draws
from hf_qualcode.synthesis.rules._expressions import code_of
from hf_qualcode.synthesis.rules._finding import findall
from hf_qualcode.synthesis.rules._variables import Variable, binds_any, call, replaced, variables_of


DIMENSION = "speed"
CATEGORY = "data structure"
LEVEL = "high"
SUMMARY = "A list of numbers or strings that is only asked for members becomes a set."
EXAMPLES = (
    (
        "known = list(map(int, input().split()))\nprint(sum(x in known for x in range(9)))\n",
        "known = set(map(int, input().split()))\nprint(sum(x in known for x in range(9)))\n",
    ),
    (
        "def f(s):\n    vowels = ['a', 'e', 'i', 'o', 'u']\n    return sum(c in vowels for c in s)\n",
        "def f(s):\n    vowels = {'a', 'e', 'i', 'o', 'u'}\n    return sum(c in vowels for c in s)\n",
    ),
)
_FEWEST = 4
_TEXTS = m.SimpleString()
_NUMBERS = m.Integer()
_HASHABLE = m.Call(func=m.Name("int") | m.Name("str") | m.Name("len") | m.Name("ord") | m.Name("input"))


def apply(module: cst.Module, draws: Draws) -> cst.Module | None:
    """Change each such variable, and lists of constants right after `in`."""
    if binds_any(module, ("set", "list", "map", "int", "str")):
        return None
    changes = {}
    for variable in variables_of(module):
        if _is_asked_only(variable):
            for use in variable.of_kind("assigned"):
                changes[use.node.value] = _as_set
            for use in variable.of_kind("method:append"):
                changes[use.node.func.attr] = lambda node: node.with_changes(value="add")
    for target in findall(module, m.ComparisonTarget(operator=m.In() | m.NotIn())):
        if isinstance(target.comparator, cst.List | cst.Tuple) and _are_constants(target.comparator):
            changes[target.comparator] = _as_set
    return replaced(module, changes)


def _is_asked_only(variable: Variable) -> bool:
    assigned, appended = variable.of_kind("assigned"), variable.of_kind("method:append")
    return (
        variable.kinds() <= {"assigned", "member", "method:append"}
        and "member" in variable.kinds()
        and bool(assigned)
        and all(_is_hashable_list(use.node.value, bool(appended)) for use in assigned)
        and all(len(use.node.args) == 1 and m.matches(use.node.args[0].value, _HASHABLE) for use in appended)
    )


def _is_hashable_list(value: cst.BaseExpression, grows: bool) -> bool:
    if isinstance(value, cst.List):
        return _are_constants(value) or (grows and not value.elements)
    if isinstance(value, cst.ListComp):
        return m.matches(value.elt, _HASHABLE)
    return code_of(value).replace(" ", "").startswith(("list(map(int,", "list(map(str,"))


def _are_constants(value: cst.List | cst.Tuple) -> bool:
    values = [element.value for element in value.elements if isinstance(element, cst.Element)]
    if len(values) != len(value.elements) or len(values) < _FEWEST:
        return False
    return all(m.matches(one, _TEXTS) for one in values) or all(m.matches(one, _NUMBERS) for one in values)


def _as_set(value: cst.BaseExpression) -> cst.BaseExpression:
    if isinstance(value, cst.ListComp):
        return cst.SetComp(elt=value.elt, for_in=value.for_in)
    if isinstance(value, cst.Call):
        return call("set", value.args[0].value)
    return cst.Set(value.elements) if value.elements else call("set")
