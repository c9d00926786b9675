"""Functions copy in full what they are given and only look at."""

import libcst as cst

from hf_qualcode.benchmark.drawing import Draws
from hf_qualcode.synthesis.rules._parameters import begin_with, read_parameters
from hf_qualcode.synthesis.rules._variables import Use, only_reads, with_import


DIMENSION = "speed"
CATEGORY = "patterns"
LEVEL = "low"
SUMMARY = "A function begins with a deep copy of each list that it is given and does not change."
EXAMPLES = (
    (
        "def f(xs):\n    return sum(xs)\n",
        "import copy\ndef f(xs):\n    xs = copy.deepcopy(xs)\n    return sum(xs)\n",
    ),
)


def apply(module: cst.Module, draws: Draws) -> cst.Module | None:
    """Copy each parameter that is neither changed nor returned nor handed on."""
    additions: dict[cst.FunctionDef, list[str]] = {}
    for variable in read_parameters(module, _is_allowed):
        additions.setdefault(variable.scope, []).append(f"{variable.name} = copy.deepcopy({variable.name})")
    changed = begin_with(module, additions)
    return None if changed is None else with_import(changed, "import copy")


def _is_allowed(use: Use) -> bool:
    return only_reads(use) and use.kind != "returned"
