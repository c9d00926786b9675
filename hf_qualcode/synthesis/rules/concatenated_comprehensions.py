"""List comprehensions become loops that copy the list for each element."""

import libcst as cst
import libcst.matchers as m

from hf_qualcode.benchmark.drawing import Draws
from hf_qualcode.synthesis.rules._blocks import block, change_blocks, fresh_name, only_part
from hf_qualcode.synthesis.rules._expressions import names_in, reads_own_names
from hf_qualcode.synthesis.rules._finding import findall


DIMENSION = "speed"
CATEGORY = "data structure"
LEVEL = "low"
SUMMARY = "A list comprehension that is assigned or returned becomes a loop with `items = items + [x]`."
EXAMPLES = (
    (
        "def f(xs):\n    ys = [x + 1 for x in xs if x]\n    return ys\n",
        "def f(xs):\n    ys = []\n    for x in xs:\n        if x:\n            ys = ys + [x + 1]\n    return ys\n",
    ),
    (
        "def f(xs):\n    return [x + 1 for x in xs]\n",
        "def f(xs):\n    items = []\n    for x in xs:\n        items = items + [x + 1]\n    return items\n",
    ),
)


def apply(module: cst.Module, draws: Draws) -> cst.Module | None:
    """Change comprehensions over one iterable whose variables stand nowhere else in the module."""
    if reads_own_names(module):
        return None
    taken = names_in(module)
    counts: dict[str, int] = {}
    for name in findall(module, m.Name()):
        counts[name.value] = counts.get(name.value, 0) + 1

    def change(statements: list, _) -> list:
        after, is_changed = [], False
        for statement in statements:
            loop = _as_loop(statement, counts, taken)
            is_changed = is_changed or loop is not None
            after += [statement] if loop is None else loop
        return after if is_changed else statements

    return change_blocks(module, change)


def _as_loop(statement: cst.CSTNode, counts: dict[str, int], taken: set[str]) -> list | None:
    part = only_part(statement)
    if isinstance(part, cst.Return):
        name = fresh_name("items", taken)
    elif m.matches(part, m.Assign(targets=[m.AssignTarget(m.Name())])):
        name = part.targets[0].target.value
    else:
        return None
    value = part.value
    if not isinstance(value, cst.ListComp) or value.for_in.inner_for_in is not None or value.for_in.asynchronous:
        return None
    clause = value.for_in
    own = {found.value: len(findall(value, m.Name(found.value))) for found in findall(clause.target, m.Name())}
    # The loop's variables outlive it, so no other part may know them; nor may the value be about itself.
    if name in names_in(value) or any(counts[one] != count for one, count in own.items()):
        return None
    if findall(value, m.Lambda() | m.NamedExpr() | m.Await() | m.ListComp() | m.GeneratorExp())[1:]:
        return None
    added = cst.BinaryOperation(cst.Name(name), cst.Add(), cst.List([cst.Element(value.elt)]))
    body: list = [_assign(name, added)]
    for condition in reversed(clause.ifs):
        body = [cst.If(test=condition.test, body=block(body))]
    loop = cst.For(target=clause.target, iter=_plain(clause.iter), body=block(body))
    first = _assign(name, cst.List([])).with_changes(leading_lines=statement.leading_lines)
    last = [cst.SimpleStatementLine([cst.Return(cst.Name(name))])] if isinstance(part, cst.Return) else []
    return [first, loop, *last]


def _plain(node: cst.BaseExpression) -> cst.BaseExpression:
    return node if "\n" not in cst.Module([]).code_for_node(node) or node.lpar else node.with_changes(
        lpar=[cst.LeftParen()], rpar=[cst.RightParen()]
    )  # fmt: skip


def _assign(name: str, value: cst.BaseExpression) -> cst.SimpleStatementLine:
    return cst.SimpleStatementLine([cst.Assign([cst.AssignTarget(cst.Name(name))], value)])
