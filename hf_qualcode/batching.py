"""Texts for tokenisers, and batches of like length for models."""

import re
from collections.abc import Iterator, Sequence

import numpy as np


_SURROGATES = re.compile("[\ud800-\udfff]")


def replace_surrogates(text: str) -> str:
    """`text` with each lone surrogate, which has no UTF-8 form, as U+FFFD."""
    return _SURROGATES.sub("\ufffd", text)


def token_batches(lengths: Sequence[int], budget: int) -> Iterator[np.ndarray]:
    """Split texts into batches of about `budget` tokens, padding to the longest included.

    Args:
        lengths (`Sequence[int]`): Number of tokens of each text.
        budget (`int`): A batch holds more only if it is a single text.

    Yields:
        `np.ndarray`: Rows of `lengths`, longest first: the largest batch comes first, so memory that suffices for it
        suffices for all, and texts of equal length are neighbours.
    """
    order = np.argsort(-np.asarray(lengths, dtype=np.int64), kind="stable")
    start = 0
    while start < len(order):
        size = max(1, budget // lengths[order[start]])
        yield order[start : start + size]
        start += size
