"""Local variables take the names of builtins, which are then hidden to whoever edits the function."""

import itertools

import libcst as cst

from hf_qualcode.benchmark.drawing import Draws
from hf_qualcode.synthesis.rules._expressions import names_in
from hf_qualcode.synthesis.rules._names import BUILTINS, local_names, rename


DIMENSION = "maintainability"
CATEGORY = "robustness"
LEVEL = "low"
SUMMARY = "Up to two parameters or local variables take the names of builtins that the function does not use."
EXAMPLES = (
    (
        "def area(width):\n    double = width * 2\n    return double\n",
        "def area(width):\n    next = width * 2\n    return next\n",
    ),
)
_FAVOURITES = (
    *("list", "sum", "max", "input", "str", "dict", "min", "id", "type", "len", "filter", "map", "next", "iter"),
    *("set", "object", "range", "hash", "tuple", "all", "any", "bin", "pow", "round", "slice", "sorted", "vars"),
)
_MOST = 2


def apply(module: cst.Module, draws: Draws) -> cst.Module | None:
    """Rename up to two variables of each function."""
    module, found = local_names(module)
    plans = {}
    for function, names, taken in found:
        free = [name for name in _FAVOURITES if name not in taken]
        parameters = names_in(function.params)
        # What is in capitals is a smell already.
        names = [name for name in names if name not in BUILTINS and name == name.lower()]
        # Sonar forgives parameters.
        names = [name for name in names if name not in parameters] or names
        chosen = sorted(itertools.islice(draws.permutation(len(names)), _MOST))
        plan = dict(zip([names[number] for number in chosen], _drawn(free, draws), strict=False))
        if plan:
            plans[function] = plan
    return rename(module, plans) if plans else None


def _drawn(free: list[str], draws: Draws) -> list[str]:
    """The favourites from a drawn place on: neighbours in the list are seldom taken for each other."""
    start = draws.below(max(1, len(free)))
    return free[start:] + free[:start]
