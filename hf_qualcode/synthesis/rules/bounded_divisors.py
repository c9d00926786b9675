"""Divisors are looked for up to the square root only."""

import libcst as cst
import libcst.matchers as m

from hf_qualcode.benchmark.drawing import Draws
from hf_qualcode.synthesis.rules._expressions import code_of
from hf_qualcode.synthesis.rules._finding import findall
from hf_qualcode.synthesis.rules._variables import binds_any, replaced, with_import
from hf_qualcode.synthesis.rules.exhaustive_divisors import first_divisor_number


DIMENSION = "speed"
CATEGORY = "algorithm"
LEVEL = "high"
SUMMARY = "A loop that looks for the first divisor of n up to n, or its half, ends at its square root."
EXAMPLES = (
    (
        "def f(n):\n    for i in range(2, n):\n        if n % i == 0:\n            return False\n    return n > 1\n",
        "import math\ndef f(n):\n    for i in range(2, math.isqrt(max(n, 0)) + 1):\n        if n % i == 0:\n"
        "            return False\n    return n > 1\n",
    ),
)
_BOUNDS = ("{n}", "{n}//2+1", "int({n}/2)+1", "int({n}//2)+1", "({n}//2)+1", "(int({n}/2))+1")


def apply(module: cst.Module, draws: Draws) -> cst.Module | None:
    """Change each such loop whose body is left at the first divisor and does nothing else."""
    if binds_any(module, ("math", "max")) and not findall(module, m.ImportAlias(name=m.Name("math"), asname=None)):
        return None
    changes = {}
    for loop in findall(module, m.For(target=m.Name())):
        number = first_divisor_number(loop)
        if number is None:
            continue
        bound = loop.iter.args[1].value
        if code_of(bound).replace(" ", "") in [text.format(n=number) for text in _BOUNDS]:
            text = f"math.isqrt(max({number}, 0)) + 1"
            changes[bound] = lambda _, text=text: cst.parse_expression(text)
    changed = replaced(module, changes)
    return None if changed is None else with_import(changed, "import math")
