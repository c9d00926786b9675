"""Running values are kept, all of them, in lists."""

import libcst as cst

from hf_qualcode.benchmark.drawing import Draws
from hf_qualcode.synthesis.rules._blocks import fresh_name
from hf_qualcode.synthesis.rules._expressions import is_number, names_in, standalone
from hf_qualcode.synthesis.rules._variables import Variable, in_function, own_loops, replaced, variables_of


DIMENSION = "memory"
CATEGORY = "algorithm"
LEVEL = "low"
SUMMARY = "A number that a loop updates becomes the list of all values it ever had."
EXAMPLES = (
    (
        "def f(xs):\n    total = 0\n    for x in xs:\n        total += x\n    return total\n",
        "def f(xs):\n    total_values = [0]\n    for x in xs:\n        total_values.append(total_values[-1] + x)\n"
        "    return total_values[-1]\n",
    ),
)
_OPERATORS = {
    cst.AddAssign: cst.Add,
    cst.SubtractAssign: cst.Subtract,
    cst.MultiplyAssign: cst.Multiply,
    cst.FloorDivideAssign: cst.FloorDivide,
    cst.BitXorAssign: cst.BitXor,
    cst.BitOrAssign: cst.BitOr,
}


def apply(module: cst.Module, draws: Draws) -> cst.Module | None:
    """Change each variable that is set to numbers as written and updated in loops of its own function."""
    taken, changes = names_in(module), {}
    for variable in variables_of(module):
        if _is_running(variable):
            name = fresh_name(f"{variable.name}_values", taken)
            taken.add(name)
            changes |= _changes(variable, name)
    return replaced(module, changes)


def _is_running(variable: Variable) -> bool:
    assigned, augmented = variable.of_kind("assigned"), variable.of_kind("augmented")
    rest = [use for use in variable.uses if use.kind not in ("assigned", "augmented")]
    return (
        bool(assigned)
        and all(is_number(use.node.value) for use in assigned)
        and any(any(own_loops(use, variable.scope)) for use in augmented)
        and all(type(use.node.operator) in _OPERATORS for use in augmented)
        and all(in_function(use, variable.scope) for use in variable.uses)
        and all(use.kind in ("other", "returned") or use.kind.startswith("call:") for use in rest)
    )


def _changes(variable: Variable, name: str) -> dict:
    last = cst.ensure_type(cst.parse_expression(f"{name}[-1]"), cst.Subscript)

    def begin(node: cst.Assign) -> cst.Assign:
        return node.with_changes(
            targets=[node.targets[0].with_changes(target=cst.Name(name))], value=cst.List([cst.Element(node.value)])
        )

    def update(node: cst.AugAssign) -> cst.Expr:
        value = cst.BinaryOperation(last.deep_clone(), _OPERATORS[type(node.operator)](), standalone(node.value))
        call = cst.Call(cst.parse_expression(f"{name}.append"), [cst.Arg(value)])
        return cst.Expr(call, semicolon=node.semicolon)

    changes: dict = {}
    for use in variable.uses:
        if use.kind == "assigned":
            changes[use.node] = begin
        elif use.kind == "augmented":
            changes[use.node] = update
        else:
            held = [child for child in use.parents[0].children if isinstance(child, cst.Name)
                    and child.value == variable.name]  # fmt: skip
            for child in held:
                changes[child] = lambda node: last.deep_clone().with_changes(lpar=node.lpar, rpar=node.rpar)
    return changes
