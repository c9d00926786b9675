"""Local names follow Python's convention."""

import re

import libcst as cst

from hf_qualcode.benchmark.drawing import Draws
from hf_qualcode.synthesis.rules._names import RESERVED, local_names, rename


DIMENSION = "maintainability"
CATEGORY = "readability"
LEVEL = "high"
SUMMARY = "Parameters and local variables in camel case or capitals are written in small letters with underscores."
EXAMPLES = (
    (
        "def area(sideLength):\n    SQUARE = sideLength ** 2\n    return SQUARE\n",
        "def area(side_length):\n    square = side_length ** 2\n    return square\n",
    ),
)
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def apply(module: cst.Module, draws: Draws) -> cst.Module | None:
    """Rename each variable that is not in small letters, where the new name is free."""
    module, found = local_names(module)
    plans = {}
    for function, names, taken in found:
        plan: dict[str, str] = {}
        for name in names:
            new = re.sub("__+", "_", _HUMP.sub("_", name).lower())
            if new != name and new not in taken and new not in RESERVED and new not in plan.values():
                plan[name] = new
        if plan:
            plans[function] = plan
    return rename(module, plans) if plans else None
