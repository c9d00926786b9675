"""Loops become recursive functions, each call of which holds a copy of the rest."""

import libcst as cst
import libcst.matchers as m

from hf_qualcode.benchmark.drawing import Draws
from hf_qualcode.synthesis.rules._blocks import block, fresh_name, line, runs, statements_of
from hf_qualcode.synthesis.rules._expressions import names_in
from hf_qualcode.synthesis.rules._finding import findall
from hf_qualcode.synthesis.rules._variables import binds_any, changed_names, replaced, with_import


DIMENSION = "memory"
CATEGORY = "algorithm"
LEVEL = "low"
SUMMARY = "A loop over a list becomes a function that calls itself with the rest of the list."
EXAMPLES = (
    (
        "def f(xs):\n    total = 0\n    for x in xs:\n        total += x\n    return total\n",
        "import sys\ndef f(xs):\n    total = 0\n"
        "    sys.setrecursionlimit(max(sys.getrecursionlimit(), 2 * len(xs) + 1000))\n"
        "    def visit(rest):\n        nonlocal total\n        if len(rest) > 0:\n            x = rest[0]\n"
        "            total += x\n            visit(rest[1:])\n    visit(xs)\n    return total\n",
    ),
)


def apply(module: cst.Module, draws: Draws) -> cst.Module | None:
    """Change the first loop of each function that is over a variable, is not left early and binds nothing new."""
    if findall(module, m.AssignTarget(m.Name("sys")) | m.Param(name=m.Name("sys"))):
        return None
    if binds_any(module, ("len", "max")):
        return None
    changes = {}
    for function in findall(module, m.FunctionDef()):
        if findall(function, m.FunctionDef() | m.ClassDef() | m.Lambda() | m.Global() | m.Nonlocal())[1:]:
            continue
        if not isinstance(function.body, cst.IndentedBlock):
            continue
        for loop in findall(function, m.For(iter=m.Name())):
            written = _written(function, loop)
            if written is not None:
                name = fresh_name("visit", names_in(module))
                changes[loop] = lambda node, name=name, written=written: _as_recursion(node, name, written)
                break
    changed = replaced(module, changes)
    return None if changed is None else with_import(changed, "import sys")


def _written(function: cst.FunctionDef, loop: cst.For) -> tuple[str, ...] | None:
    """Variables that the loop writes; `None` where the loop cannot be a function."""
    if loop.orelse is not None or loop.asynchronous is not None:
        return None
    if runs(loop.body, cst.Break, cst.Continue, cst.Return, cst.Yield, cst.Await, cst.Del, cst.NamedExpr, cst.Import):
        return None
    if findall(loop.body, m.With() | m.Try() | m.For() | m.While() | m.Match()):
        return None
    targets = findall(loop.body, m.AssignTarget() | m.AugAssign() | m.AnnAssign())
    if any(not isinstance(one.target, cst.Name | cst.Subscript) for one in targets):
        return None
    written = {one.target.value for one in targets if isinstance(one.target, cst.Name)}
    own = {name.value for name in findall(loop.target, m.Name())}
    if loop.iter.value in changed_names(loop.body) | own or own & written or "rest" in names_in(function):
        return None
    # The loop's variables end with it.
    for name in own:
        if len(findall(function, m.Name(name))) != len(findall(loop, m.Name(name))):
            return None
    within = {id(one) for one in targets}
    bound = {one.name.value for one in findall(function.params, m.Param())}
    bound |= {one.target.value for one in findall(function.body, m.AssignTarget(m.Name())) if id(one) not in within}
    return tuple(sorted(written)) if written <= bound else None


def _as_recursion(loop: cst.For, name: str, written: tuple[str, ...]) -> cst.FlattenSentinel:
    values = loop.iter.value
    first = cst.SimpleStatementLine(
        [cst.Assign([cst.AssignTarget(_plain(loop.target))], cst.parse_expression("rest[0]"))]
    )
    body = block([first, *statements_of(loop.body), line(f"{name}(rest[1:])")])
    declared = [line(f"nonlocal {', '.join(written)}")] if written else []
    function = cst.FunctionDef(
        name=cst.Name(name),
        params=cst.Parameters([cst.Param(cst.Name("rest"))]),
        body=block([*declared, cst.If(test=cst.parse_expression("len(rest) > 0"), body=body)]),
    )
    limit = line(f"sys.setrecursionlimit(max(sys.getrecursionlimit(), 2 * len({values}) + 1000))")
    limit = limit.with_changes(leading_lines=loop.leading_lines)
    return cst.FlattenSentinel([limit, function, line(f"{name}({values})")])


def _plain(target: cst.BaseExpression) -> cst.BaseExpression:
    return target
