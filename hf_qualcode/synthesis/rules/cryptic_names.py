"""Descriptive names of local variables and parameters become cryptic ones."""

import string

import libcst as cst

from hf_qualcode.benchmark.drawing import Draws
from hf_qualcode.synthesis.rules._names import RESERVED, local_names, rename


DIMENSION = "maintainability"
CATEGORY = "readability"
LEVEL = "low"
SUMMARY = "Parameters and local variables get names that say nothing."
EXAMPLES = (
    (
        "def area(width, height):\n    result = width * height\n    return result\n",
        "def area(Tmp1, Tmp2):\n    Tmp3 = Tmp1 * Tmp2\n    return Tmp3\n",
    ),
)
_SHORTEST = 3  # shorter names are cryptic already
_SCHEMES = (
    lambda number: f"V{number}",
    lambda number: string.ascii_uppercase[number % 26] + (str(number // 26) if number >= 26 else ""),
    lambda number: f"l{'I' * (number // 2 + 1)}{'l' * (number % 2)}",
    lambda number: f"x{string.ascii_uppercase[number % 26]}{number // 26 or ''}",
    lambda number: f"Tmp{number + 1}",
    lambda number: f"aA{number}",
)


def apply(module: cst.Module, draws: Draws) -> cst.Module | None:
    """Rename what is called by three letters or more, one scheme for the whole module."""
    scheme = _SCHEMES[draws.below(len(_SCHEMES))]
    module, found = local_names(module)
    plans = {}
    for function, names, taken in found:
        plan: dict[str, str] = {}
        number = 0
        for name in names:
            if len(name) < _SHORTEST:
                continue
            while (new := scheme(number)) in taken or new in RESERVED:
                number += 1
            plan[name] = new
            number += 1
        if plan:
            plans[function] = plan
    return rename(module, plans) if plans else None
