"""Results of recursive calls are kept."""

import libcst as cst
import libcst.matchers as m

from hf_qualcode.benchmark.drawing import Draws
from hf_qualcode.synthesis.rules._blocks import own_functions, simple_parameters
from hf_qualcode.synthesis.rules._expressions import names_in
from hf_qualcode.synthesis.rules._finding import findall
from hf_qualcode.synthesis.rules._variables import calls_of, replaced, variables_of, with_import


DIMENSION = "speed"
CATEGORY = "patterns"
LEVEL = "high"
SUMMARY = "`lru_cache` is put on a function of numbers that calls itself more than once."
EXAMPLES = (
    (
        "def fib(n):\n    if n < 2:\n        return n\n    return fib(n - 1) + fib(n - 2)\n",
        "from functools import lru_cache\n@lru_cache(maxsize=None)\ndef fib(n):\n    if n < 2:\n        return n\n"
        "    return fib(n - 1) + fib(n - 2)\n",
    ),
)
_PURE = frozenset(("max", "min", "abs", "int", "sum", "range", "len", "round", "divmod", "pow", "float"))


def apply(module: cst.Module, draws: Draws) -> cst.Module | None:
    """Put it on each function that computes with its parameters and nothing else."""
    parameters = {(variable.name, id(variable.scope)): variable for variable in variables_of(module)}
    changes = {}
    for function in own_functions(module):
        if _is_pure(function) and all(_is_number(parameters.get((one.name.value, id(function))))
                                      for one in function.params.params):  # fmt: skip
            changes[function] = _cached
    changed = replaced(module, changes)
    return None if changed is None else with_import(changed, "from functools import lru_cache")


def _is_pure(function: cst.FunctionDef) -> bool:
    name = function.name.value
    if function.decorators or not simple_parameters(function) or not function.params.params:
        return False
    if any(parameter.default is not None for parameter in function.params.params) or len(calls_of(function, name)) < 2:
        return False
    if findall(function, m.Attribute() | m.Global() | m.Nonlocal() | m.Yield() | m.Await() | m.Subscript() | m.List()
                 | m.Dict() | m.Set() | m.ListComp() | m.Lambda() | m.Raise() | m.Try()):  # fmt: skip
        return False
    calls = {call.func.value for call in findall(function, m.Call()) if isinstance(call.func, cst.Name)}
    if not calls <= _PURE | {name}:
        return False
    # Other names could be variables of the module, which change.
    bound = {parameter.name.value for parameter in function.params.params}
    bound |= {target.target.value for target in findall(function, m.AssignTarget(m.Name()) | m.For(target=m.Name()))}
    return names_in(function) - bound <= _PURE | {name, "True", "False", "None"}


def _is_number(variable) -> bool:
    """Whether all uses are arithmetic, comparisons or arguments."""
    return variable is not None and all(
        use.kind in ("parameter", "other", "returned", "assigned", "augmented") or use.kind.startswith("call:")
        for use in variable.uses
    )


def _cached(function: cst.FunctionDef) -> cst.FunctionDef:
    return function.with_changes(decorators=[cst.Decorator(cst.parse_expression("lru_cache(maxsize=None)"))])
