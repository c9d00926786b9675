"""Loop variables that nothing reads are called `_`."""

import libcst as cst
import libcst.matchers as m

from hf_qualcode.benchmark.drawing import Draws
from hf_qualcode.synthesis.rules._expressions import names_in
from hf_qualcode.synthesis.rules._names import local_names


DIMENSION = "maintainability"
CATEGORY = "modernity"
LEVEL = "high"
SUMMARY = "Loop variables of functions and comprehensions that nothing reads are called `_`."
EXAMPLES = (
    (
        "def f(n):\n    table = [0 for i in range(n)]\n    for k in range(n):\n        print(table)\n",
        "def f(n):\n    table = [0 for _ in range(n)]\n    for _ in range(n):\n        print(table)\n",
    ),
)


def apply(module: cst.Module, draws: Draws) -> cst.Module | None:
    """Rename them, in modules that do not use the name `_` yet."""
    if "_" in names_in(module):
        return None
    module, found = local_names(module)
    unread = {function: _only_loops(function, names) for function, names, _ in found}
    renamer = _Renamer(unread)
    changed = module.visit(renamer)
    return changed if renamer.count else None


def _only_loops(function: cst.FunctionDef, names: tuple[str, ...]) -> set[str]:
    """Those of `names` that only `for` statements mention, as their one target."""
    uses = [name.value for name in m.findall(function, m.Name())]
    targets = [loop.target.value for loop in m.findall(function, m.For(target=m.Name()))]
    return {name for name in names if uses.count(name) == targets.count(name)}


class _Renamer(cst.CSTTransformer):
    def __init__(self, unread: dict[cst.FunctionDef, set[str]]):
        super().__init__()
        self._unread = unread
        self._names: set[str] = set()
        self.count = 0

    def visit_FunctionDef(self, node):
        self._names = self._unread.get(node, self._names)

    def leave_FunctionDef(self, original_node, updated_node):
        if original_node in self._unread:
            self._names = set()
        return updated_node

    def leave_For(self, original_node, updated_node):
        target = original_node.target
        if not isinstance(target, cst.Name) or target.value not in self._names:
            return updated_node
        self.count += 1
        return updated_node.with_changes(target=updated_node.target.with_changes(value="_"))

    def leave_ListComp(self, original_node, updated_node):
        return self._with_underscore(updated_node, updated_node.elt)

    def leave_SetComp(self, original_node, updated_node):
        return self._with_underscore(updated_node, updated_node.elt)

    def leave_GeneratorExp(self, original_node, updated_node):
        return self._with_underscore(updated_node, updated_node.elt)

    def _with_underscore(self, node, element: cst.BaseExpression):
        loop = node.for_in
        reads = [element, *loop.ifs, *([loop.inner_for_in] if loop.inner_for_in is not None else [])]
        if not isinstance(loop.target, cst.Name) or any(loop.target.value in names_in(part) for part in reads):
            return node
        self.count += 1
        return node.with_changes(for_in=loop.with_changes(target=loop.target.with_changes(value="_")))
