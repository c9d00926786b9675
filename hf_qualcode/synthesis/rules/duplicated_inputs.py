"""Functions keep a second list of what they are given."""

import libcst as cst

from hf_qualcode.benchmark.drawing import Draws
from hf_qualcode.synthesis.rules._parameters import begin_with, read_parameters
from hf_qualcode.synthesis.rules._variables import Use, binds_any


DIMENSION = "memory"
CATEGORY = "implementation"
LEVEL = "low"
SUMMARY = "A function begins by making a list of each sequence that it is given and only goes through."
EXAMPLES = (
    (
        "def f(xs):\n    n = 0\n    for x in xs:\n        n += x\n    return n\n",
        "def f(xs):\n    xs = list(xs)\n    n = 0\n    for x in xs:\n        n += x\n    return n\n",
    ),
)
# What a list answers like any other sequence.
_ALLOWED = frozenset(
    ("iterated", "item", "member", "call:len", "call:sum", "call:max", "call:min", "call:sorted", "call:set",
     "call:any", "call:all", "call:enumerate", "call:tuple", "call:list", "call:frozenset", "call:Counter")
)  # fmt: skip


def apply(module: cst.Module, draws: Draws) -> cst.Module | None:
    """Copy each such parameter.

    One that is asked for items by index is a sequence; a string is left alone where it is asked for parts of it.
    """
    if binds_any(module, ("list",)):
        return None
    additions: dict[cst.FunctionDef, list[str]] = {}
    for variable in read_parameters(module, _is_allowed):
        # `x in text` would look for a part, and `x in list` for an element.
        if "member" not in variable.kinds():
            additions.setdefault(variable.scope, []).append(f"{variable.name} = list({variable.name})")
    return begin_with(module, additions)


def _is_allowed(use: Use) -> bool:
    return use.kind in _ALLOWED
