"""Tables become lists of pairs that are gone through."""

import libcst as cst
import libcst.matchers as m

from hf_qualcode.benchmark.drawing import Draws
from hf_qualcode.synthesis.rules._expressions import code_of, is_constant, is_literal, is_repeatable, names_in
from hf_qualcode.synthesis.rules._finding import findall
from hf_qualcode.synthesis.rules._variables import Use, Variable, replaced, variables_of


DIMENSION = "speed"
CATEGORY = "data structure"
LEVEL = "low"
SUMMARY = "A dict of constants that is only looked up becomes a list of pairs that each lookup goes through."
EXAMPLES = (
    (
        "def f(s):\n    d = {'a': 1, 'b': 2, 'c': 3, 'd': 4}\n    return sum(d[c] for c in s)\n",
        "def f(s):\n    d = [('a', 1), ('b', 2), ('c', 3), ('d', 4)]\n"
        "    return sum(next(value for key, value in d if key == c) for c in s)\n",
    ),
)
_FEWEST = 4


def apply(module: cst.Module, draws: Draws) -> cst.Module | None:
    """Change each table that is assigned once; none in a module that handles errors, which would be other ones."""
    if findall(module, m.Try()) or {"key", "value"} & names_in(module):
        return None
    changes = {}
    for variable in variables_of(module):
        if _is_table(variable):
            for use in variable.of_kind("assigned"):
                changes[use.node.value] = _as_pairs
            for use in variable.of_kind("item"):
                changes[use.node] = _as_search
            for use in variable.of_kind("member"):
                changes[use.node.comparator] = lambda node: cst.parse_expression(f"[key for key, _ in {node.value}]")
    return replaced(module, changes)


def _is_table(variable: Variable) -> bool:
    assigned = variable.of_kind("assigned")
    if variable.kinds() - {"assigned", "item", "member"} or len(assigned) != 1 or not variable.of_kind("item"):
        return False
    table = assigned[0].node.value
    if not isinstance(table, cst.Dict) or not is_literal(table) or len(table.elements) < _FEWEST:
        return False
    keys = [code_of(element.key) for element in table.elements]
    kinds = {type(element.key) for element in table.elements}
    same = len(kinds) == 1 and all(is_constant(element.key) for element in table.elements)
    return same and len(set(keys)) == len(keys) and all(map(_is_plain_lookup, variable.of_kind("item")))


def _is_plain_lookup(use: Use) -> bool:
    (element, *more) = use.node.slice
    return not more and isinstance(element.slice, cst.Index) and is_repeatable(element.slice.value)


def _as_pairs(table: cst.Dict) -> cst.List:
    pairs = [cst.Tuple([cst.Element(element.key), cst.Element(element.value)]) for element in table.elements]
    return cst.List([
        cst.Element(pair, comma=element.comma) for pair, element in zip(pairs, table.elements, strict=True)
    ])  # fmt: skip


def _as_search(lookup: cst.Subscript) -> cst.BaseExpression:
    wanted = lookup.slice[0].slice.value
    search = cst.ensure_type(
        cst.parse_expression(f"next(value for key, value in {code_of(lookup.value)} if key == 0)"), cst.Call
    )
    zero = findall(search, m.ComparisonTarget())[0].comparator
    wanted = wanted if isinstance(wanted, cst.Name | cst.SimpleString | cst.Subscript | cst.Call) or wanted.lpar else (
        wanted.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    )  # fmt: skip
    return search.deep_replace(zero, wanted)
