"""Seeded draws that depend on what is drawn from, not on the order in which it was read.

Everything comes from SHA-256 of a seed and names, so the same seed gives the same draw on every machine and under
every version of Python.
"""

import hashlib
import heapq
from collections.abc import Iterator


_BITS = 128


def draw_key(seed: int, *parts: str) -> int:
    """A number in [0, 2^128) for these names under this seed. Sorting by it is a random order free of the input's."""
    # A separator could be part of a name; a length before each cannot be mistaken.
    text = "".join(f"{len(part)}:{part}" for part in (str(seed), *parts))
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[: _BITS // 8])


class Draws:
    """A stream of whole numbers, the same for the same seed and names.

    Args:
        seed (`int`): Of the data set.
        parts (`str`): What is drawn for, so that two draws have nothing in common.
    """

    def __init__(self, seed: int, *parts: str):
        self._stream = hashlib.sha256(f"{draw_key(seed, *parts):x}".encode())
        self._count = 0

    def below(self, bound: int) -> int:
        """A number in [0, bound), all equally likely up to one part in 2^128 / bound."""
        block = self._stream.copy()
        block.update(self._count.to_bytes(8))
        self._count += 1
        return int.from_bytes(block.digest()[: _BITS // 8]) * bound >> _BITS

    def permutation(self, size: int) -> Iterator[int]:
        """The numbers 0 to `size` - 1 in random order. Memory grows with how many are taken, not with `size`."""
        moved: dict[int, int] = {}
        for place in range(size):
            other = place + self.below(size - place)
            yield moved.get(other, other)
            moved[other] = moved.pop(place, place)


class SmallestKeys:
    """Keeps the `size` items of the smallest keys: a random sample, whatever the order they came in.

    Of items with the same key the first one counts.

    Args:
        size (`int`): How many to keep.
    """

    def __init__(self, size: int):
        self.size = size
        self.is_whole = True  # nothing had to be left out
        self._items: dict[int, object] = {}
        self._largest_first: list[int] = []

    def offer(self, key: int, item: object) -> None:
        """Keep the item if its key is small enough."""
        if key in self._items:
            return
        if len(self._items) < self.size:
            heapq.heappush(self._largest_first, -key)
            self._items[key] = item
            return
        self.is_whole = False
        if key < -self._largest_first[0]:
            del self._items[-heapq.heapreplace(self._largest_first, -key)]
            self._items[key] = item

    def items(self) -> list:
        """What was kept, by ascending key."""
        return [self._items[key] for key in sorted(self._items)]


def fair_shares(demand: int, supplies: list[int]) -> list[int]:
    """Divides a demand as evenly as the supplies allow: what one cannot give, the others do.

    Args:
        demand (`int`): How many are wanted in all.
        supplies (`list[int]`): [n], how many each has.

    Returns:
        `list[int]`: [n], at most `supplies`, of sum `min(demand, sum(supplies))`. No share could be raised without
        lowering one that is no greater; where a rest is left, the first ones get it.
    """
    shares = [0] * len(supplies)
    open_ = [i for i, supply in enumerate(supplies) if supply]
    while demand and open_:
        level = max(1, demand // len(open_))
        for i in open_:
            given = min(level, supplies[i] - shares[i], demand)
            shares[i] += given
            demand -= given
        open_ = [i for i in open_ if shares[i] < supplies[i]]
    return shares
