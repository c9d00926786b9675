"""Each step of arithmetic in a loop is a call of a function."""

import libcst as cst
import libcst.matchers as m

from hf_qualcode.benchmark.drawing import Draws
from hf_qualcode.synthesis.rules._blocks import after_imports, fresh_name
from hf_qualcode.synthesis.rules._expressions import is_number, names_in
from hf_qualcode.synthesis.rules._finding import findall
from hf_qualcode.synthesis.rules._variables import call, own_loops, replaced, variables_of


DIMENSION = "speed"
CATEGORY = "patterns"
LEVEL = "low"
SUMMARY = "`total += x` and `n % i == 0` in loops become calls of one-line functions."
EXAMPLES = (
    (
        "def f(n):\n    total = 0\n    for i in range(1, n):\n        if n % i == 0:\n            total += i\n"
        "    return total\n",
        "def is_multiple(number, divisor):\n    return number % divisor == 0\n\n\n"
        "def add(first, second):\n    return first + second\n\n\n"
        "def f(n):\n    total = 0\n    for i in range(1, n):\n        if is_multiple(n, i):\n"
        "            total = add(total, i)\n    return total\n",
    ),
)
_HELPERS = {
    "is_multiple": "def {0}(number, divisor):\n    return number % divisor == 0\n",
    "add": "def {0}(first, second):\n    return first + second\n",
    "multiply": "def {0}(first, second):\n    return first * second\n",
    "subtract": "def {0}(first, second):\n    return first - second\n",
}
_AUGMENTED = {cst.AddAssign: "add", cst.MultiplyAssign: "multiply", cst.SubtractAssign: "subtract"}
_ZERO = [m.ComparisonTarget(operator=m.Equal(), comparator=m.Integer("0"))]


def apply(module: cst.Module, draws: Draws) -> cst.Module | None:
    """Change additions, subtractions and products into variables that begin as numbers, and tests of divisors."""
    taken = names_in(module)
    names = {helper: fresh_name(helper, taken) for helper in _HELPERS}
    used, changes = set(), {}
    for variable in variables_of(module):
        assigned = variable.of_kind("assigned")
        if not assigned or not all(is_number(use.node.value) for use in assigned) or variable.of_kind("bound"):
            continue
        for use in variable.of_kind("augmented"):
            helper = _AUGMENTED.get(type(use.node.operator))
            if helper is not None and any(own_loops(use, variable.scope)):
                used.add(helper)
                changes[use.node] = lambda node, name=names[helper]: cst.Assign(
                    [cst.AssignTarget(node.target)], call(name, node.target, node.value), semicolon=node.semicolon
                )
    modulo = m.Comparison(left=m.BinaryOperation(left=m.Name(), operator=m.Modulo()), comparisons=_ZERO)
    for loop in findall(module, m.For() | m.While()):
        for test in findall(loop.body, modulo):
            used.add("is_multiple")
            changes[test] = lambda node: cst.Call(
                cst.Name(names["is_multiple"]), [cst.Arg(node.left.left), cst.Arg(node.left.right)],
                lpar=node.lpar, rpar=node.rpar,
            )  # fmt: skip
    changed = replaced(module, changes)
    return None if changed is None else _with_helpers(changed, [name for name in _HELPERS if name in used], names)


def _with_helpers(module: cst.Module, used: list[str], names: dict[str, str]) -> cst.Module:
    place = after_imports(module.body)
    body = list(module.body)
    helpers = [cst.parse_statement(_HELPERS[name].format(names[name])) for name in used]
    blank = [cst.EmptyLine(indent=False), cst.EmptyLine(indent=False)]
    helpers = [one.with_changes(leading_lines=blank if place or number else []) for number, one in enumerate(helpers)]
    if place < len(body):
        lines = [entry for entry in body[place].leading_lines if entry.comment]
        body[place] = body[place].with_changes(leading_lines=[*blank, *lines])
    return module.with_changes(body=[*body[:place], *helpers, *body[place:]])
