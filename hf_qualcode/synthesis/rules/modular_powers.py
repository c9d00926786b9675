"""Remainders of powers are taken on the way."""

import libcst as cst
import libcst.matchers as m

from hf_qualcode.benchmark.drawing import Draws
from hf_qualcode.synthesis.rules._expressions import bare
from hf_qualcode.synthesis.rules._finding import findall
from hf_qualcode.synthesis.rules._variables import binds_any, replaced


DIMENSION = "speed"
CATEGORY = "implementation"
LEVEL = "high"
SUMMARY = "`a ** b % m` and `pow(a, b) % m` become `pow(a, b, m)`."
EXAMPLES = (("def f(a, b, m):\n    return (a ** b) % m\n", "def f(a, b, m):\n    return pow(a, b, m)\n"),)
_POWER = m.BinaryOperation(operator=m.Power()) | m.Call(
    func=m.Name("pow"), args=[m.Arg(keyword=None, star=""), m.Arg(keyword=None, star="")]
)


def apply(module: cst.Module, draws: Draws) -> cst.Module | None:
    """Change each such remainder with a variable exponent, where nothing is divided and nothing is a fraction."""
    if binds_any(module, ("pow",)):
        return None
    changes = {}
    for node in findall(module, m.BinaryOperation(operator=m.Modulo())):
        power = bare(node.left)
        if not m.matches(power, _POWER):
            continue
        _, exponent = _parts(power)
        fractions = findall(node, m.Divide() | m.Float() | m.Subtract() | m.Minus())
        if not fractions and findall(exponent, m.Name()):
            changes[node] = _on_the_way
    return replaced(module, changes)


def _parts(power: cst.BaseExpression) -> tuple[cst.BaseExpression, cst.BaseExpression]:
    if isinstance(power, cst.Call):
        return power.args[0].value, power.args[1].value
    return power.left, power.right


def _on_the_way(node: cst.BinaryOperation) -> cst.Call:
    base, exponent = _parts(bare(node.left))
    args = [cst.Arg(bare(one)) for one in (base, exponent, node.right)]
    return cst.Call(func=cst.Name("pow"), args=args, lpar=node.lpar, rpar=node.rpar)
