"""Transformations: changes of code that keep what it does and move its quality. One module each, found by its name.

A module of this package whose name begins with no underscore sets `DIMENSION`, `CATEGORY`, `LEVEL`, `SUMMARY` and
`EXAMPLES`, and has `apply(module, draws)`; see `Transformation`. Adding a transformation is adding that file.
"""

import functools
import importlib
import pkgutil
from types import ModuleType

from hf_qualcode.synthesis.rules._base import LEVELS, Changed, Transformation, compiles, parse, transform
from hf_qualcode.types import UsageError


__all__ = [
    "LEVELS",
    "Changed",
    "Transformation",
    "compiles",
    "group_of",
    "load_transformation",
    "parse",
    "transform",
    "transformation_names",
]


@functools.cache
def transformation_names() -> tuple[str, ...]:
    """Names of all transformations, sorted."""
    return tuple(sorted(found.name for found in pkgutil.iter_modules(__path__) if not found.name.startswith("_")))


def load_transformation(name: str) -> ModuleType:
    """The module of a transformation.

    Raises:
        `UsageError`: No such transformation; the message lists those there are.
    """
    if name not in transformation_names():
        raise UsageError(f"unknown transformation {name!r}; choose from: {', '.join(transformation_names())}")
    return importlib.import_module(f"{__name__}.{name}")


def group_of(transformation: ModuleType | Transformation) -> str:
    """The guideline group that a transformation belongs to, for example `"speed/data structure"`."""
    return f"{transformation.DIMENSION}/{transformation.CATEGORY}"
