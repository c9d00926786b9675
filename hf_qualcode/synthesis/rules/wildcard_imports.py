"""Imports of a module, or of names from it, become imports of everything in it."""

import importlib

import libcst as cst
import libcst.matchers as m

from hf_qualcode.benchmark.drawing import Draws
from hf_qualcode.synthesis.rules._blocks import only_part
from hf_qualcode.synthesis.rules._expressions import names_in, reads_own_names


DIMENSION = "maintainability"
CATEGORY = "modernity"
LEVEL = "low"
SUMMARY = "`import math` or `from math import sqrt` becomes `from math import *`, where that hides nothing in use."
EXAMPLES = (
    (
        "import math\n\ndef f(a):\n    return math.sqrt(a)\n",
        "from math import *\n\ndef f(a):\n    return sqrt(a)\n",
    ),
    (
        "from heapq import heappush\nheap = []\nheappush(heap, 1)\n",
        "from heapq import *\nheap = []\nheappush(heap, 1)\n",
    ),
)
# Their import does nothing but define names.
MODULES = (
    *("math", "cmath", "collections", "itertools", "functools", "heapq", "bisect", "operator", "re", "string"),
    *("random", "statistics", "decimal", "fractions", "copy", "datetime", "time", "queue", "textwrap"),
)


def apply(module: cst.Module, draws: Draws) -> cst.Module | None:
    """Widen each import of one module of the standard library at the module's top level."""
    if reads_own_names(module):
        return None
    changed = None
    present = names_in(module)
    for name in MODULES:
        if name in present:
            changed = _widened(changed or module, name) or changed
    return changed


def exported_names(name: str) -> frozenset[str]:
    """What `from name import *` binds, for a module of `MODULES`."""
    found = importlib.import_module(name)
    return frozenset(getattr(found, "__all__", None) or [each for each in dir(found) if each[0] != "_"])


def _widened(module: cst.Module, name: str) -> cst.Module | None:
    imports = [statement for statement in module.body if _imports(statement, name)]
    if len(imports) != 1 or len(_mentions(module, name)) != 1:
        return None
    part = only_part(imports[0])
    exported = exported_names(name)
    star = cst.ImportFrom(module=cst.Name(name), names=cst.ImportStar())
    if isinstance(part, cst.ImportFrom):
        used = {alias.name.value for alias in part.names}
        # `from datetime import datetime`: `names_in` sees the module's own name too.
        inside = names_in(module.with_changes(body=[each for each in module.body if each is not imports[0]]))
        if used <= exported and not (exported - used) & inside:
            return module.deep_replace(imports[0], imports[0].with_changes(body=[star]))
        return None
    attributes = m.findall(module, m.Attribute(value=m.Name(name)))
    used = {attribute.attr.value for attribute in attributes}
    plain = len(m.findall(module, m.Name(name)))
    # Every identifier of the module, without those that are attributes of this one.
    others = _names_but(module, name)
    if not used or not used <= exported or plain != len(attributes) + 1 or exported & others:
        return None
    return module.deep_replace(imports[0], imports[0].with_changes(body=[star])).visit(_Shorten(name))


def _imports(statement: cst.CSTNode, name: str) -> bool:
    part = only_part(statement)
    if isinstance(part, cst.Import):
        return len(part.names) == 1 and m.matches(part.names[0], m.ImportAlias(name=m.Name(name), asname=None))
    return (
        isinstance(part, cst.ImportFrom)
        and not part.relative
        and m.matches(part, m.ImportFrom(module=m.Name(name)))
        and not isinstance(part.names, cst.ImportStar)
        and all(alias.asname is None for alias in part.names)
    )


def _mentions(module: cst.Module, name: str) -> list[cst.CSTNode]:
    """Imports anywhere that name the module, also beside others."""
    return [node for node in m.findall(module, m.Import() | m.ImportFrom()) if name in names_in(node)]


def _names_but(module: cst.Module, name: str) -> set[str]:
    return names_in(module.visit(_Drop(name)))


class _Drop(cst.CSTTransformer):
    """Turns `name.attribute` into `name`."""

    def __init__(self, name: str):
        super().__init__()
        self._name = name

    def leave_Attribute(self, original_node, updated_node):
        own = m.matches(original_node, m.Attribute(value=m.Name(self._name)))
        return original_node.value if own else updated_node


class _Shorten(cst.CSTTransformer):
    """Turns `name.attribute` into `attribute`."""

    def __init__(self, name: str):
        super().__init__()
        self._name = name

    def leave_Attribute(self, original_node, updated_node):
        if m.matches(original_node, m.Attribute(value=m.Name(self._name))):
            return updated_node.attr.with_changes(lpar=updated_node.lpar, rpar=updated_node.rpar)
        return updated_node
