"""Quality dimensions: what is asked of code beyond what it does, and how measurements become labels.

A dimension is a module of this package that sets `PLACE`, its place in instructions. It has

- `PHRASE`, `NEGATED_PHRASE`: what instructions call it ("fast", "slow");
- `GUIDELINES`: how to write code of high or low quality in it, for synthesis (`guidelines`);
- `PRAISE`, `BLAME`, `RESOURCES` and, where there are any, `EFFORTS`: words by which `wishes` knows it in free text;
- `UNIT`: of its values; lower is better;
- `POSITIVE_IS_DRAWN`, `is_pair`, `reason_without_pair`: how a problem's best and worst program are chosen;
- `is_clear`: which pairs of values differ enough to be compared at all;
- `label`: values of one problem -> 1 (good), 0 (bad) or `None` (neither).
"""

import functools
import importlib
import importlib.util
import pkgutil
import re
from collections.abc import Iterable
from types import ModuleType


_PREFIX = "Retrieve code that is "
_NOTHING_ASKED = "relevant"
_PLACE = re.compile(r"^PLACE = (\d+)", re.MULTILINE)


@functools.cache
def dimension_names() -> tuple[str, ...]:
    """Names of all dimensions, in the order of instructions."""
    places = {}
    for found in pkgutil.iter_modules(__path__):
        # Read, not imported: the other modules here are larger, and none of them is a dimension.
        source = importlib.util.find_spec(f"{__name__}.{found.name}").loader.get_source(f"{__name__}.{found.name}")
        if place := _PLACE.search(source or ""):
            places[found.name] = int(place[1])
    return tuple(sorted(places, key=lambda name: (places[name], name)))


def get_dimension(name: str) -> ModuleType:
    """The module of a dimension.

    Raises:
        `ValueError`: No such dimension; the message lists those there are.
    """
    if name not in dimension_names():
        raise ValueError(f"unknown quality {name!r}; choose from: {', '.join(dimension_names())}")
    return importlib.import_module(f"{__name__}.{name}")


def instruction_for(quality: str | Iterable[str], negated: bool = False) -> str:
    """The instruction that asks for code of these qualities (SynH-Rank, section 3.1).

    Args:
        quality (`str` or `Iterable[str]`): Names of dimensions. Order and repetition make no difference; none asks
            for relevant code.
        negated (`bool`, *optional*, defaults to `False`): Ask for the opposite of each.

    Returns:
        `str`: For example "Retrieve code that is fast, memory-efficient and maintainable".

    Raises:
        `ValueError`: On an unknown name; the message lists the legal ones.
    """
    asked = {quality} if isinstance(quality, str) else set(quality)
    modules = sorted(map(get_dimension, sorted(asked, key=str)), key=lambda module: module.PLACE)
    phrases = [module.NEGATED_PHRASE if negated else module.PHRASE for module in modules]
    if not phrases:
        return _PREFIX + _NOTHING_ASKED
    *first, last = phrases
    return _PREFIX + (f"{', '.join(first)} and {last}" if first else last)
