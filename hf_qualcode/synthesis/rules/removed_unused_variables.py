"""Variables that nothing reads go."""

import libcst as cst
import libcst.matchers as m

from hf_qualcode.benchmark.drawing import Draws
from hf_qualcode.synthesis.rules._blocks import assigned_name, change_blocks
from hf_qualcode.synthesis.rules._expressions import is_literal
from hf_qualcode.synthesis.rules._names import local_names


DIMENSION = "maintainability"
CATEGORY = "readability"
LEVEL = "high"
SUMMARY = "Assignments to local variables that nothing reads are removed, where the value is a literal or a parameter."
EXAMPLES = (
    (
        "def f(a):\n    result = None\n    old = a\n    total = a * 2\n    return total\n",
        "def f(a):\n    total = a * 2\n    return total\n",
    ),
)


def apply(module: cst.Module, draws: Draws) -> cst.Module | None:
    """Remove them where the value does nothing and cannot fail, and the variable is mentioned nowhere else."""
    module, found = local_names(module)
    unused = {function: _unread(function, names) for function, names, _ in found}
    if not any(unused.values()):
        return None
    remover = _Remover(unused)
    changed = module.visit(remover)
    return changed if remover.count else None


def _unread(function: cst.FunctionDef, names: tuple[str, ...]) -> set[str]:
    """Those of `names` that only plain assignments mention, but no parameter."""
    parameters = _parameters(function)
    uses = [name.value for name in m.findall(function, m.Name())]
    targets = [target.target.value for target in m.findall(function, m.AssignTarget(target=m.Name()))]
    return {name for name in names if name not in parameters and uses.count(name) == targets.count(name) > 0}


def _parameters(function: cst.FunctionDef) -> set[str]:
    return {param.name.value for param in m.findall(function.params, m.Param())}


class _Remover(cst.CSTTransformer):
    def __init__(self, unused: dict[cst.FunctionDef, set[str]]):
        super().__init__()
        self._unused = unused
        self.count = 0

    def leave_FunctionDef(self, original_node, updated_node):
        names = self._unused.get(original_node)
        if not names:
            return updated_node
        # A parameter that is deleted somewhere can be missing.
        safe = set() if m.findall(original_node, m.Del()) else _parameters(original_node)

        def without(statements, holder):
            kept = [each for each in statements if not _is_idle(each, names, safe)]
            if len(kept) == len(statements):
                return statements
            self.count += 1
            return kept or [cst.SimpleStatementLine(body=[cst.Pass()])]

        changed = change_blocks(updated_node.body, without)
        return updated_node if changed is None else updated_node.with_changes(body=changed)


def _is_idle(statement: cst.CSTNode, names: set[str], safe: set[str]) -> bool:
    assigned = assigned_name(statement)
    if assigned is None or assigned[0] not in names:
        return False
    name, value = assigned
    return is_literal(value) or (isinstance(value, cst.Name) and value.value in safe - {name})
