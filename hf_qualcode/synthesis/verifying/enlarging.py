"""Larger arguments of the same types: longer lists and strings, greater numbers.

Runs inside the sandbox as well as outside, so it uses the standard library alone.
"""

import math
import random
from collections.abc import Sequence
from itertools import pairwise
from typing import Any


# What grows: tables by rows alone, containers on all sides (and the numbers that count their elements), those and
# other numbers, or numbers alone.
MODES = ("rows", "containers", "all", "numbers")
# Beyond these an argument is no larger input but another problem. Elements are those of all arguments of a call.
MOST_ELEMENTS = 600_000
LARGEST_NUMBER = 10**9
# Strings this short are single characters, separators or names of a choice.
SHORT_STRING = 2
# How often more distinct values are asked for.
MOST_DRAWS = 20


def linked_lengths(calls: Sequence[Sequence[Any]]) -> dict[int, tuple[int, int]]:
    """Arguments that say how long another one is.

    Args:
        calls (`Sequence[Sequence]`): Arguments of several calls of one function.

    Returns:
        `dict[int, tuple[int, int]]`: Place of the number -> place of the container, and the number less the length: 0
        or -1, the same in every call.
    """
    links = {}
    width = min(map(len, calls), default=0)
    for place in range(width):
        for other in range(width):
            offsets = {
                call[place] - len(call[other])
                if type(call[place]) is int and isinstance(call[other], list | tuple | str)
                else None
                for call in calls
            }
            if len(offsets) == 1 and offsets <= {0, -1} and place not in links:
                links[place] = (other, offsets.pop())
    return links


def modes_for(calls: Sequence[Sequence[Any]]) -> tuple[str, ...]:
    """The modes that change anything about these arguments, in the order of `MODES`."""
    has_containers = any(_is_long(value) for call in calls for value in call)
    links = linked_lengths(calls)
    has_numbers = any(
        type(value) in (int, float) and place not in links for call in calls for place, value in enumerate(call)
    )
    tables = [value for call in calls for value in call if _is_table(value)]
    # Of square ones none but square ones may be what is meant.
    has_oblong = bool(tables) and not all(len(value) == len(value[0]) for value in tables)
    wanted = {"rows": has_oblong, "containers": has_containers, "all": has_containers and has_numbers}
    return tuple(mode for mode in MODES if wanted.get(mode, has_numbers))


def enlarge(arguments: Sequence[Any], scale: float, mode: str, links: dict[int, tuple[int, int]]) -> list[Any]:
    """Arguments about `scale` times as large, the same for equal ones.

    Lists that were sorted, or without duplicates, or rectangular, still are.

    Args:
        arguments (`Sequence`): Of one call: literals.
        scale (`float`): At least 1.
        mode (`str`): Of `MODES`.
        links (`dict`): As of `linked_lengths`.

    Raises:
        `OverflowError`: Too large.
    """
    if mode != "numbers" and sum(map(count_elements, arguments)) * scale > MOST_ELEMENTS:
        raise OverflowError(f"{scale} times as many elements")
    source = random.Random(f"{scale}{mode}{arguments!r}")
    grown = [
        value if place in links else _grown(value, scale, mode, source, depth=0)
        for place, value in enumerate(arguments)
    ]
    for place, (container, offset) in links.items():
        grown[place] = len(grown[container]) + offset if mode != "numbers" else arguments[place]
    return grown


def _is_long(value: Any) -> bool:
    if isinstance(value, str | bytes):
        return len(value) > SHORT_STRING
    return isinstance(value, list | tuple | set | frozenset | dict) and len(value) > 0


def _grown(value: Any, scale: float, mode: str, source: random.Random, depth: int) -> Any:
    if type(value) in (int, float):
        if mode in ("rows", "containers") or (depth and mode == "all"):
            return value
        if abs(value) * scale > LARGEST_NUMBER:
            raise OverflowError(f"{value} x {scale}")
        return _larger_number(value, scale)
    if mode == "numbers":
        if isinstance(value, list | tuple) and any(type(one) in (int, float) for one in value):
            return type(value)(_grown(one, scale, mode, source, depth + 1) for one in value)
        return value
    if not _is_long(value):
        return value
    size = max(len(value) + 1, round(len(value) * scale)) if scale > 1 else len(value)
    if isinstance(value, str):
        return value + "".join(source.choices(value, k=size - len(value)))
    if isinstance(value, bytes):
        return value + bytes(source.choices(value, k=size - len(value)))
    if isinstance(value, dict):
        return _grown_dict(value, size, source)
    if isinstance(value, set | frozenset):
        return type(value)(_more_of(sorted(value, key=repr), size, source, distinct=True))
    return type(value)(_grown_list(list(value), scale, size, source, mode))


def _larger_number(value: float, scale: float) -> float:
    """Of the same type, sign and evenness; a prime for a prime."""
    larger = type(value)(value * scale)
    if type(value) is float:
        return larger
    if value > 2 and _is_prime(value):
        while not _is_prime(larger):
            larger += 1
        return larger
    return larger + (value - larger) % 2 if abs(value) > 1 else larger


def _is_prime(number: int) -> bool:
    return number > 1 and all(number % divisor for divisor in range(2, math.isqrt(number) + 1))


def count_elements(value: Any) -> int:
    """Elements of containers in containers; at least 1."""
    if isinstance(value, list | tuple | set | frozenset):
        return max(1, sum(map(count_elements, value)))
    if isinstance(value, dict):
        return max(1, sum(map(count_elements, value.values())))
    return max(1, len(value)) if isinstance(value, str | bytes) else 1


def _is_table(value: Any) -> bool:
    """Whether a value is a list of lists of one length."""
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(row, list) and row for row in value)
        and len({len(row) for row in value}) == 1
    )


def _grown_list(value: list, scale: float, size: int, source: random.Random, mode: str) -> list:
    if mode != "rows" and _is_table(value):
        # Both sides grow, so that a square one stays square.
        side = scale**0.5
        rows = max(len(value), round(len(value) * side))
        columns = max(len(value[0]), round(len(value[0]) * side))
        longer = [row + _more_of(row, columns, source)[len(row) :] for row in value]
        return longer + [_alike(source.choice(longer), source) for _ in range(rows - len(value))]
    distinct = _are_distinct(value) and len(value) > 2
    order = _order(value)
    grown = _more_of(value, size, source, distinct)
    return sorted(grown, reverse=order < 0) if order else grown


def _grown_dict(value: dict, size: int, source: random.Random) -> dict:
    keys = _more_of(list(value), size, source, distinct=True)
    values = list(value.values())
    return {key: value[key] if key in value else _alike(source.choice(values), source) for key in keys}


def _more_of(values: list, size: int, source: random.Random, distinct: bool = False) -> list:
    """`values` and more like them, up to `size`; fewer where no more distinct ones can be made."""
    wanted = size - len(values)
    kinds = {type(value) for value in values}
    if kinds == {int}:
        return values + _integers(values, wanted, source, distinct)
    if not distinct:
        return values + _others(values, wanted, kinds, source)
    more = {repr(value): value for value in values}
    for _ in range(MOST_DRAWS):
        before = len(more)
        for one in _others(values, max(16, size - before), kinds, source):
            more.setdefault(repr(one), one)
            if len(more) >= size:
                return list(more.values())
        if len(more) < before + (size - before) / 10:
            break
    return list(more.values())


def _integers(values: list[int], wanted: int, source: random.Random, distinct: bool) -> list[int]:
    """Integers that are spread wider the more of them there are, except where there were two neighbours only."""
    low, high = min(values), max(values)
    if distinct:
        own = set(values)
        spread = range(low, max(high, low + 2 * (wanted + len(values))) + 1)
        return [one for one in source.sample(spread, wanted + len(own)) if one not in own][:wanted]
    if high - low > 1:
        high = max(high, low + wanted)
    return source.choices(range(low, high + 1), k=wanted)


def _others(values: list, wanted: int, kinds: set[type], source: random.Random) -> list:
    if kinds <= {float, int} and bool not in kinds:
        low, high = min(values), max(values)
        return [round(source.uniform(low, high), 3) for _ in range(wanted)]
    if kinds == {str} and max(map(len, values)) > 1:
        longest = max(map(len, values)) + 2
        letters = sorted(set("".join(values)))
        return ["".join(source.choices(letters, k=source.randint(1, longest))) for _ in range(wanted)]
    return [_alike(source.choice(values), source) for _ in range(wanted)]


def _alike(value: Any, source: random.Random) -> Any:
    """A value of the same shape."""
    if type(value) is int:
        low, high = (0, 1) if value in (0, 1) else (min(0, value), max(10, 2 * value))
        # Not `randint`, which takes most of the time of large arguments.
        return low + int(source.random() * (high - low + 1))
    if isinstance(value, list | tuple):
        return type(value)([_alike(one, source) for one in value])
    if isinstance(value, str) and len(value) > SHORT_STRING:
        return "".join(source.sample(value, len(value)))
    return value


def _are_distinct(values: list) -> bool:
    return len(set(map(repr, values))) == len(values)


def _order(values: list) -> int:
    """1 where the values ascend, -1 where they descend, else 0."""
    if len(values) < 3 or not all(type(value) in (int, float, str) for value in values):
        return 0
    if len({isinstance(value, str) for value in values}) > 1:
        return 0
    pairs = list(pairwise(values))
    if all(first <= second for first, second in pairs):
        return 1
    return -1 if all(first >= second for first, second in pairs) else 0
