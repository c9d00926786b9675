"""A wildcard import becomes an import of the names in use, or goes where none is."""

import libcst as cst
import libcst.matchers as m

from hf_qualcode.benchmark.drawing import Draws
from hf_qualcode.synthesis.rules._blocks import only_part
from hf_qualcode.synthesis.rules._expressions import names_in, reads_own_names
from hf_qualcode.synthesis.rules.wildcard_imports import MODULES, exported_names


DIMENSION = "maintainability"
CATEGORY = "modernity"
LEVEL = "high"
SUMMARY = "`from math import *` becomes an import of the names in use, for modules of the standard library."
EXAMPLES = (
    (
        "from math import *\nprint(sqrt(2), floor(3))\n",
        "from math import floor, sqrt\nprint(sqrt(2), floor(3))\n",
    ),
)


def apply(module: cst.Module, draws: Draws) -> cst.Module | None:
    """Name what is used of each wildcard import, in modules that look up no names by their text."""
    if reads_own_names(module):
        return None
    body, count = [], 0
    others = names_in(module.with_changes(body=[each for each in module.body if _wildcard(each) is None]))
    for statement in module.body:
        name = _wildcard(statement)
        if name is None:
            body.append(statement)
            continue
        count += 1
        used = sorted(exported_names(name) & others)
        if not used:
            continue
        names = [cst.ImportAlias(name=cst.Name(each)) for each in used]
        body.append(statement.with_changes(body=[cst.ImportFrom(module=cst.Name(name), names=names)]))
    return module.with_changes(body=body) if count and body else None


def _wildcard(statement: cst.CSTNode) -> str | None:
    """The module of a wildcard import from one of the standard library's, at the top level."""
    part = only_part(statement)
    if m.matches(part, m.ImportFrom(module=m.Name(), names=m.ImportStar())) and not part.relative:
        return part.module.value if part.module.value in MODULES else None
    return None
