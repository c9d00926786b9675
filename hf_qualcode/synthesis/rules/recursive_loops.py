"""Loops over the digits of a number become recursive functions."""

import libcst as cst
import libcst.matchers as m

from hf_qualcode.benchmark.drawing import Draws
from hf_qualcode.synthesis.rules._blocks import block, fresh_name, runs, statements_of
from hf_qualcode.synthesis.rules._expressions import names_in
from hf_qualcode.synthesis.rules._finding import findall
from hf_qualcode.synthesis.rules._variables import replaced


DIMENSION = "speed"
CATEGORY = "implementation"
LEVEL = "low"
SUMMARY = "A `while` loop that divides its number becomes a function inside that calls itself."
EXAMPLES = (
    (
        "def f(n):\n    total = 0\n    while n > 0:\n        total += n % 10\n        n = n // 10\n    return total\n",
        "def f(n):\n    total = 0\n    def step():\n        nonlocal n, total\n        if n > 0:\n"
        "            total += n % 10\n            n = n // 10\n            step()\n    step()\n    return total\n",
    ),
)
_DIVISOR = m.Integer()
_DIVIDES = m.BinaryOperation(left=m.Name(), operator=m.FloorDivide(), right=_DIVISOR) | m.Call(
    func=m.Name("int"), args=[m.Arg(m.BinaryOperation(left=m.Name(), operator=m.Divide(), right=_DIVISOR))]
)


def apply(module: cst.Module, draws: Draws) -> cst.Module | None:
    """Change loops in functions whose depth is a logarithm, so that it stays below the interpreter's limit."""
    changes = {}
    for function in findall(module, m.FunctionDef()):
        if findall(function, m.FunctionDef() | m.ClassDef() | m.Lambda())[1:] or not isinstance(
            function.body, cst.IndentedBlock
        ):
            continue
        for loop in findall(function, m.While()):
            written = _written(loop)
            if _is_short(loop, written) and _are_bound_before(function, loop, written):
                name = fresh_name("step", names_in(module))
                changes[loop] = lambda node, name=name, written=written: _as_recursion(node, name, written)
                break
    return replaced(module, changes)


def _written(loop: cst.While) -> tuple[str, ...]:
    targets = findall(loop.body, m.AssignTarget(m.Name()) | m.AugAssign(target=m.Name()))
    return tuple(sorted({target.target.value for target in targets}))


def _is_short(loop: cst.While, written: tuple[str, ...]) -> bool:
    """Whether the loop ends after as many rounds as its number has digits, and does nothing that a function cannot."""
    if loop.orelse is not None or runs(loop.body, cst.Break, cst.Continue, cst.Return, cst.Yield, cst.Await, cst.Del):
        return False
    if findall(loop, m.For() | m.While() | m.NamedExpr() | m.Global() | m.With() | m.Try())[1:]:
        return False
    if len(findall(loop.body, m.AssignTarget())) != len(findall(loop.body, m.AssignTarget(m.Name()))):
        return False
    asked = names_in(loop.test) & set(written)
    for statement in statements_of(loop.body):
        if not isinstance(statement, cst.SimpleStatementLine):
            continue
        for part in statement.body:
            if m.matches(part, m.AugAssign(target=m.Name(), operator=m.FloorDivideAssign(), value=_DIVISOR)):
                found = part.target.value
            elif m.matches(part, m.Assign(targets=[m.AssignTarget(m.Name())], value=_DIVIDES)):
                found = part.targets[0].target.value
                if found not in names_in(part.value):
                    continue
            else:
                continue
            if asked == {found}:
                return True
    return False


def _are_bound_before(function: cst.FunctionDef, loop: cst.While, written: tuple[str, ...]) -> bool:
    """Whether every variable that the loop writes is one of the function's without it."""
    if findall(function, m.Global() | m.Nonlocal()):
        return False
    bound = {parameter.name.value for parameter in findall(function.params, m.Param())}
    within = {id(target) for target in findall(loop, m.AssignTarget() | m.AugAssign())}
    for target in findall(function.body, m.AssignTarget(m.Name())):
        if id(target) not in within:
            bound.add(target.target.value)
    return set(written) <= bound


def _as_recursion(loop: cst.While, name: str, written: tuple[str, ...]) -> cst.FlattenSentinel:
    again = cst.parse_statement(f"{name}()")
    body = block([*statements_of(loop.body), again])
    function = cst.FunctionDef(
        name=cst.Name(name),
        params=cst.Parameters(),
        body=block([cst.parse_statement(f"nonlocal {', '.join(written)}"), cst.If(test=loop.test, body=body)]),
        leading_lines=loop.leading_lines,
    )
    return cst.FlattenSentinel([function, again.deep_clone()])
