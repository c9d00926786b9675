"""Local variables of a function become global ones."""

import libcst as cst
import libcst.matchers as m

from hf_qualcode.benchmark.drawing import Draws
from hf_qualcode.synthesis.rules._blocks import (
    after_docstring,
    assigned_name,
    blocks_of,
    calls_itself,
    is_generator,
    line,
    own_functions,
)
from hf_qualcode.synthesis.rules._expressions import code_of, names_in
from hf_qualcode.synthesis.rules._names import BUILTINS, local_names


DIMENSION = "maintainability"
CATEGORY = "modernity"
LEVEL = "low"
SUMMARY = "A function keeps its variables in globals, and the lines that made them local stay behind as comments."
EXAMPLES = (
    (
        "def f(a):\n    total = a * 2\n    return total\n",
        "total = None\ndef f(a):\n    global total\n    # total = a * 2\n    total = a * 2\n    return total\n",
    ),
)
_MOST = 3
_PARALLEL = frozenset(("threading", "multiprocessing", "concurrent", "asyncio", "signal"))


def apply(module: cst.Module, draws: Draws) -> cst.Module | None:
    """Move up to three variables of one function, drawn among those that cannot be running twice at a time."""
    module, found = local_names(module)
    own = {id(function) for function in own_functions(module)}
    candidates = []
    for function, names, _ in found:
        movable = [name for name in _assigned_first(function, names) if _is_only_here(module, function, name)]
        if id(function) in own and movable and _runs_alone(module, function):
            candidates.append((function, movable[:_MOST]))
    if not candidates:
        return None
    function, names = candidates[draws.below(len(candidates))]
    declared = [line(f"{name} = None") for name in names]
    declared[0] = declared[0].with_changes(leading_lines=function.leading_lines)
    body = []
    for statement in module.body:
        if statement is function:
            body += [*declared, _with_globals(function, names)]
        else:
            body.append(statement)
    return module.with_changes(body=body)


def _assigned_first(function: cst.FunctionDef, names: tuple[str, ...]) -> list[str]:
    """Of `names`, those that a plain assignment somewhere in the function binds and that are no parameters."""
    parameters = {param.name.value for param in m.findall(function.params, m.Param())}
    assigned = {found[0] for statements in blocks_of(function.body) for each in statements
                if (found := assigned_name(each)) is not None}  # fmt: skip
    return [name for name in names if name in assigned - parameters and name not in BUILTINS and name[0] != "_"]


def _is_only_here(module: cst.Module, function: cst.FunctionDef, name: str) -> bool:
    """Whether nothing outside the function has the name, and nothing in it binds it by `del` or a handler."""
    others = [statement for statement in module.body if statement is not function]
    odd = m.findall(function, m.Del() | m.AsName() | m.AnnAssign() | m.NamedExpr())
    return not any(name in names_in(node) for node in (*others, *odd))


def _runs_alone(module: cst.Module, function: cst.FunctionDef) -> bool:
    """Whether no call of the function can begin before another has ended."""
    if not isinstance(function.body, cst.IndentedBlock) or function.decorators or is_generator(function):
        return False
    inner = m.FunctionDef() | m.Lambda() | m.ClassDef() | m.GeneratorExp() | m.Global() | m.Nonlocal()
    if m.findall(function.body, inner) or _PARALLEL & names_in(module):
        return False
    if any(isinstance(statement, cst.ClassDef) for statement in module.body):
        return False  # a method may call it, and be called by anything
    name = function.name.value
    parameters = {parameter.name.value for parameter in m.findall(function.params, m.Param())}
    if any(call.func.value in parameters for call in m.findall(function.body, m.Call(func=m.Name()))):
        return False
    # What runs later, in the middle of anything.
    late = m.findall(module, m.Lambda() | m.GeneratorExp())
    late += [each for each in m.findall(module, m.FunctionDef()) if is_generator(each)]
    return not any(name in names_in(node) for node in late) and not calls_itself(module, function)


def _with_globals(function: cst.FunctionDef, names: list[str]) -> cst.FunctionDef:
    statements = list(function.body.body)
    start = after_docstring(statements)
    statements.insert(start, line(f"global {', '.join(names)}"))
    changed = function.body.with_changes(body=statements).visit(_Leftover(names))
    return function.with_changes(body=changed, leading_lines=[])


class _Leftover(cst.CSTTransformer):
    """Puts a comment with the same code before the first assignment of each variable."""

    def __init__(self, names: list[str]):
        super().__init__()
        self._open = set(names)

    def leave_SimpleStatementLine(self, original_node, updated_node):
        assigned = assigned_name(original_node)
        if assigned is None or assigned[0] not in self._open:
            return updated_node
        self._open.discard(assigned[0])
        text = code_of(original_node.body[0])
        if "\n" in text or "#" in text:
            return updated_node
        comment = cst.EmptyLine(comment=cst.Comment(f"# {text}"))
        return updated_node.with_changes(leading_lines=[*updated_node.leading_lines, comment])
