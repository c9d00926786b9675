"""Local names leave Python's convention for camel case and prefixes, as in Java or in Hungarian notation."""

import libcst as cst

from hf_qualcode.benchmark.drawing import Draws
from hf_qualcode.synthesis.rules._names import RESERVED, local_names, rename


DIMENSION = "maintainability"
CATEGORY = "modernity"
LEVEL = "low"
SUMMARY = "Parameters and local variables are named in camel case, some with an old-fashioned prefix."
EXAMPLES = (
    (
        "def area(side_length):\n    square_area = side_length ** 2\n    return square_area\n",
        "def area(oSideLength):\n    oSquareArea = oSideLength ** 2\n    return oSquareArea\n",
    ),
)
_PREFIXES = ("", "my", "the", "o", "p")


def apply(module: cst.Module, draws: Draws) -> cst.Module | None:
    """Rename what has several words; what has one gets a prefix, if one is drawn."""
    prefix = _PREFIXES[draws.below(len(_PREFIXES))]
    module, found = local_names(module)
    plans = {}
    for function, names, taken in found:
        plan: dict[str, str] = {}
        for name in names:
            new = _camel_case(name, prefix)
            if new is not None and new not in taken and new not in RESERVED and new not in plan.values():
                plan[name] = new
        if plan:
            plans[function] = plan
    return rename(module, plans) if plans else None


def _camel_case(name: str, prefix: str) -> str | None:
    words = [word for word in name.split("_") if word]
    if not words or name != name.lower() or len(name) < 3 or (len(words) == 1 and not prefix):
        return None
    if prefix:
        return prefix + "".join(word.capitalize() for word in words)
    new = words[0] + "".join(word.capitalize() for word in words[1:])
    return new if new != new.lower() else None
