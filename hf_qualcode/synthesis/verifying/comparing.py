"""Whether two results of Python code are the same answer. Runs inside the sandbox; standard library alone."""

import math
from itertools import islice
from typing import Any


# An iterator that gives more is cut off: both are.
MOST_ITEMS = 1_000_000
# Sums of floats in another order differ in their last digits.
TOLERANCE = 1e-9


def settled(value: Any) -> Any:
    """The value with an iterator's items in its place, so that it can be compared, and lazy work is done."""
    if hasattr(value, "__next__"):
        return [type(value).__name__, *map(settled, islice(value, MOST_ITEMS))]
    return value


def same(first: Any, second: Any) -> bool:
    """Equal, of the same type, and so in every part."""
    if type(first) is not type(second):
        return False
    if isinstance(first, float):
        both_nan = first != first and second != second
        return both_nan or first == second or math.isclose(first, second, rel_tol=TOLERANCE, abs_tol=TOLERANCE**2)
    if isinstance(first, list | tuple):
        if type(first) in (list, tuple) and len(first) == len(second) and _plain(first) and _plain(second):
            return first == second and list(map(type, first)) == list(map(type, second))
        return len(first) == len(second) and all(map(same, first, second))
    if isinstance(first, dict):
        # In the same order as well: a program may show it.
        return len(first) == len(second) and all(
            same(key, other) and same(first[key], second[other]) for key, other in zip(first, second, strict=True)
        )
    try:
        return bool(first == second)
    except Exception:  # a comparison of the program's own may do anything
        return False


def _plain(values: list | tuple) -> bool:
    return set(map(type, values)) <= {int, str, bool, type(None)}
