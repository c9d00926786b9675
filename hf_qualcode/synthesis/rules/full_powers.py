"""Powers are taken in full before the remainder."""

import libcst as cst
import libcst.matchers as m

from hf_qualcode.benchmark.drawing import Draws
from hf_qualcode.synthesis.rules._expressions import names_in, standalone
from hf_qualcode.synthesis.rules._finding import findall
from hf_qualcode.synthesis.rules._variables import binds_any, replaced


DIMENSION = "speed"
CATEGORY = "implementation"
LEVEL = "low"
SUMMARY = "`pow(a, b, m)` becomes `a ** b % m`."
EXAMPLES = (("def f(a, b, m):\n    return pow(a, b, m)\n", "def f(a, b, m):\n    return a ** b % m\n"),)


def apply(module: cst.Module, draws: Draws) -> cst.Module | None:
    """Change each call whose exponent does not come from the modulus: such a one is large, or below 0."""
    if binds_any(module, ("pow",)):
        return None
    plain = m.Arg(keyword=None, star="")
    changes = {}
    for call in findall(module, m.Call(func=m.Name("pow"), args=[plain, plain, plain])):
        exponent, modulus = call.args[1].value, call.args[2].value
        below = findall(exponent, m.Subtract() | m.Minus())
        large = any(number.evaluated_value > 100_000 for number in findall(exponent, m.Integer()))
        if not below and not large and not names_in(exponent) & names_in(modulus):
            changes[call] = _in_full
    return replaced(module, changes)


def _in_full(call: cst.Call) -> cst.BinaryOperation:
    base, exponent, modulus = (standalone(arg.value) for arg in call.args)
    power = cst.BinaryOperation(base, cst.Power(), exponent)
    return cst.BinaryOperation(power, cst.Modulo(), modulus, lpar=call.lpar, rpar=call.rpar)
