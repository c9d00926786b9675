"""Guidelines for writing code of high or of low quality (SynH-Rank, section 4.1, Table 2).

A dimension's file holds its `GUIDELINES`: one for each category, each with the instructions of both sides. They are
what an author of training data is told, one category at a time, so that several answers to one task differ in a way
that is known.
"""

from dataclasses import dataclass
from typing import Literal


Level = Literal["high", "low"]
LEVELS: tuple[Level, ...] = ("high", "low")


@dataclass(frozen=True, slots=True)
class Guideline:
    """One row of Table 2.

    Attributes:
        category (`str`): What the row is about, lower case: `"algorithm"`, `"data structure"`.
        high, low (`tuple[str, ...]`): What to do for high and for low quality; whole sentences.
    """

    category: str
    high: tuple[str, ...]
    low: tuple[str, ...]

    def of(self, level: Level) -> tuple[str, ...]:
        """The sentences of one side."""
        return self.high if level == "high" else self.low


def guideline_groups(dimension: str) -> tuple[str, ...]:
    """Names of a dimension's groups, for example `("speed/algorithm", ...)`; none where its file has no guidelines.

    Raises:
        `ValueError`: No such dimension.
    """
    return tuple(f"{dimension}/{guideline.category}" for guideline in _guidelines(dimension))


def guideline_of(group: str) -> Guideline:
    """The guideline of a group's name.

    Raises:
        `ValueError`: No such dimension or group; the message lists those there are.
    """
    dimension, _, category = group.partition("/")
    for guideline in _guidelines(dimension):
        if guideline.category == category:
            return guideline
    raise ValueError(f"unknown guideline group {group!r}; choose from: {', '.join(guideline_groups(dimension))}")


def _guidelines(dimension: str) -> tuple[Guideline, ...]:
    # Here, for the dimensions' files import this one.
    from hf_qualcode.quality import get_dimension

    return getattr(get_dimension(dimension), "GUIDELINES", ())
