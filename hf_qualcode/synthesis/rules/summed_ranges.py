"""Sums with a formula are added up."""

import libcst as cst
import libcst.matchers as m

from hf_qualcode.benchmark.drawing import Draws
from hf_qualcode.synthesis.rules._expressions import bare, code_of
from hf_qualcode.synthesis.rules._finding import findall
from hf_qualcode.synthesis.rules._variables import binds_any, replaced


DIMENSION = "speed"
CATEGORY = "algorithm"
LEVEL = "low"
SUMMARY = "`n * (n + 1) // 2` and `n * (n - 1) // 2` become sums over a range."
EXAMPLES = (
    ("def f(n):\n    return n * (n + 1) // 2\n", "def f(n):\n    return sum(range(max(n + 1, -n)))\n"),
    ("def f(n):\n    return (n * (n - 1)) / 2\n", "def f(n):\n    return float(sum(range(max(n, 1 - n))))\n"),
)
_NAME = m.Name() | m.Call(func=m.Name("len"), args=[m.Arg(m.Name())])


def apply(module: cst.Module, draws: Draws) -> cst.Module | None:
    """Change each such product of a name or a length; equal for every integer, also below 0."""
    if binds_any(module, ("sum", "range", "max", "float")):
        return None
    changes = {}
    for node in findall(module, m.BinaryOperation(operator=m.FloorDivide() | m.Divide(), right=m.Integer("2"))):
        text = _sum_of(bare(node.left))
        if text is not None:
            text = text if isinstance(node.operator, cst.FloorDivide) else f"float({text})"
            changes[node] = lambda _, text=text: cst.parse_expression(text)
    return replaced(module, changes)


def _sum_of(product: cst.BaseExpression) -> str | None:
    if not m.matches(product, m.BinaryOperation(operator=m.Multiply())):
        return None
    for one, other in ((product.left, product.right), (product.right, product.left)):
        one, other = bare(one), bare(other)
        if not m.matches(one, _NAME) or not m.matches(other, m.BinaryOperation(right=m.Integer("1"))):
            continue
        n = code_of(one)
        if code_of(bare(other.left)) != n:
            continue
        if isinstance(other.operator, cst.Add):
            return f"sum(range(max({n} + 1, -{n})))"
        if isinstance(other.operator, cst.Subtract):
            return f"sum(range(max({n}, 1 - {n})))"
    return None
