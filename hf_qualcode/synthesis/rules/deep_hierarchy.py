"""A function becomes a method three classes down."""

import libcst as cst

from hf_qualcode.benchmark.drawing import Draws
from hf_qualcode.synthesis.rules._blocks import block, calls_itself, fresh_name, own_functions, simple_parameters
from hf_qualcode.synthesis.rules._expressions import names_in, reads_own_names


DIMENSION = "maintainability"
CATEGORY = "structure"
LEVEL = "low"
SUMMARY = "The body of a function moves to a method at the bottom of a hierarchy of classes that nothing else uses."
EXAMPLES = (
    (
        "def area(width):\n    return width * 2\n",
        "class area_base:\n    def run(self, *args):\n        pass\n\n\nclass area_layer(area_base):\n    pass\n\n\n"
        "class area_worker(area_layer):\n    def run(self, width):\n        return width * 2\n\n\n"
        "def area(width):\n    return area_worker().run(width)\n",
    ),
)
_CLASSES = """class {base}:
    def run(self, *args):
        pass


class {layer}({base}):
    pass
"""


def apply(module: cst.Module, draws: Draws) -> cst.Module | None:
    """Move one function, drawn among those that do not call themselves and have plain parameters."""
    if any(name.startswith("__") and not name.endswith("__") for name in names_in(module)):
        return None  # would be mangled in a class
    candidates = [function for function in own_functions(module) if _can_move(module, function)]
    if not candidates:
        return None
    function = candidates[draws.below(len(candidates))]
    name = function.name.value
    taken = names_in(module)
    base, layer, worker = (fresh_name(f"{name}_{role}", taken) for role in ("base", "layer", "worker"))
    parameters = [parameter.name.value for parameter in function.params.params]
    classes = cst.parse_module(_CLASSES.format(base=base, layer=layer)).body
    method = cst.FunctionDef(
        name=cst.Name("run"),
        params=cst.Parameters(params=[cst.Param(cst.Name(own)) for own in ("self", *parameters)]),
        body=function.body,
        asynchronous=None,
    )
    gap = [cst.EmptyLine(indent=False), cst.EmptyLine(indent=False)]
    bottom = cst.ClassDef(
        name=cst.Name(worker), bases=[cst.Arg(cst.Name(layer))], body=block([method]), leading_lines=gap
    )
    call = cst.parse_statement(f"return {worker}().run({', '.join(parameters)})")
    shell = function.with_changes(body=block([call]), leading_lines=gap)
    classes = [classes[0].with_changes(leading_lines=function.leading_lines), *classes[1:]]
    body = []
    for statement in module.body:
        body += [*classes, bottom, shell] if statement is function else [statement]
    return module.with_changes(body=body)


def _can_move(module: cst.Module, function: cst.FunctionDef) -> bool:
    return (
        simple_parameters(function)
        and function.asynchronous is None
        and not function.decorators
        # The method is one more call each time, and programs that call themselves may be near the limit.
        and not calls_itself(module, function)
        and "self" not in names_in(function)
        and not {"super", "__class__"} & names_in(function)
        and not reads_own_names(function)
        and isinstance(function.body, cst.IndentedBlock)
    )
