"""Local variables that hide builtins get names of their own."""

import libcst as cst

from hf_qualcode.benchmark.drawing import Draws
from hf_qualcode.synthesis.rules._names import BUILTINS, local_names, rename


DIMENSION = "maintainability"
CATEGORY = "robustness"
LEVEL = "high"
SUMMARY = "Parameters and local variables with the name of a builtin are renamed."
EXAMPLES = (
    (
        "def area(list):\n    sum = list[0] + list[1]\n    return sum\n",
        "def area(items):\n    total = items[0] + items[1]\n    return total\n",
    ),
)
_BETTER = {
    "list": "items", "sum": "total", "max": "largest", "min": "smallest", "str": "text", "dict": "mapping",
    "input": "data", "len": "length", "id": "identifier", "type": "kind", "set": "members", "tuple": "values",
    "next": "following", "iter": "iterator", "map": "mapping", "filter": "condition", "range": "span", "bin": "binary",
    "hex": "hexadecimal", "pow": "power", "round": "rounded", "abs": "magnitude", "all": "everything", "any": "found",
    "sorted": "ordered", "int": "number", "float": "number", "object": "item", "hash": "digest", "slice": "part",
    "format": "template", "reversed": "backwards", "bool": "flag", "dir": "folder", "file": "stream", "vars": "values",
    "ord": "code", "chr": "character", "divmod": "quotient", "bytes": "data",
}  # fmt: skip


def apply(module: cst.Module, draws: Draws) -> cst.Module | None:
    """Rename each such variable, with `_value` after the builtin's name where there is no better word."""
    module, found = local_names(module)
    plans = {}
    for function, names, taken in found:
        plan: dict[str, str] = {}
        for name in names:
            if name in BUILTINS:
                used = taken | set(plan.values())
                plan[name] = next(new for new in _proposals(name) if new not in used)
        if plan:
            plans[function] = plan
    return rename(module, plans) if plans else None


def _proposals(name: str):
    if name in _BETTER:
        yield _BETTER[name]
    yield f"{name.lower()}_value"
    number = 2
    while True:
        yield f"{name.lower()}_value_{number}"
        number += 1
