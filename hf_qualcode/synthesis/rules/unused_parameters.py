"""Functions get parameters that they do not use."""

import libcst as cst

from hf_qualcode.benchmark.drawing import Draws
from hf_qualcode.synthesis.rules._blocks import own_functions, simple_parameters
from hf_qualcode.synthesis.rules._expressions import names_in, reads_own_names


DIMENSION = "maintainability"
CATEGORY = "structure"
LEVEL = "low"
SUMMARY = "Functions get one or two optional parameters that nothing in them uses."
EXAMPLES = (("def area(width):\n    return width * 2\n", "def area(width, unused=None):\n    return width * 2\n"),)
_SETS = (
    (("debug", "False"),),
    (("options", "None"),),
    (("mode", "0"), ("verbose", "False")),
    (("extra", "None"), ("flag", "True")),
    (("unused", "None"),),
    (("cache", "{}"),),
    (("seen", "[]"),),
)


def apply(module: cst.Module, draws: Draws) -> cst.Module | None:
    """Add the same parameters to each function of the module's top level that has plain ones."""
    added = _SETS[draws.below(len(_SETS))]
    functions = [
        function
        for function in own_functions(module)
        if simple_parameters(function)
        and not function.decorators
        and not {name for name, _ in added} & names_in(function)
        and not reads_own_names(function)
    ]
    if not functions:
        return None
    new = [
        cst.Param(cst.Name(name), default=cst.parse_expression(value), equal=cst.AssignEqual(
            cst.SimpleWhitespace(""), cst.SimpleWhitespace("")))
        for name, value in added
    ]  # fmt: skip
    body = []
    for statement in module.body:
        if any(statement is function for function in functions):
            old = [param.with_changes(comma=cst.MaybeSentinel.DEFAULT) for param in statement.params.params]
            params = statement.params.with_changes(params=[*old, *(param.deep_clone() for param in new)])
            statement = statement.with_changes(params=params)
        body.append(statement)
    return module.with_changes(body=body)
