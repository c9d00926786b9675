"""Sequences that functions are given and only look at."""

from collections.abc import Callable

import libcst as cst

from hf_qualcode.synthesis.rules._blocks import after_docstring, line
from hf_qualcode.synthesis.rules._variables import Use, Variable, replaced, variables_of


# Uses that show that a parameter holds several things.
_SEQUENCE = ("iterated", "item", "slice", "call:len", "call:sum", "call:sorted", "call:set", "call:enumerate")


def read_parameters(module: cst.Module, is_allowed: Callable[[Use], bool]) -> list[Variable]:
    """Parameters that hold a container, are never bound again, and whose other uses are all allowed."""
    found = []
    for variable in variables_of(module):
        written = variable.of_kind("assigned", "bound", "augmented", "deleted", "parameter")
        rest = [use for use in variable.uses if use not in written]
        if (
            variable.scope is not None
            and len(written) == 1
            and written[0].kind == "parameter"
            and written[0].node in variable.scope.params.params
            and isinstance(variable.scope.body, cst.IndentedBlock)
            and any(use.kind in _SEQUENCE for use in rest)
            and all(map(is_allowed, rest))
        ):
            found.append(variable)
    return found


def begin_with(module: cst.Module, additions: dict[cst.FunctionDef, list[str]]) -> cst.Module | None:
    """The module with statements at the beginning of functions."""

    def added(texts: list[str]):
        def change(function: cst.FunctionDef) -> cst.FunctionDef:
            body = list(function.body.body)
            place = after_docstring(body)
            body[place:place] = [line(text) for text in texts]
            return function.with_changes(body=function.body.with_changes(body=body))

        return change

    return replaced(module, {function: added(texts) for function, texts in additions.items()})
