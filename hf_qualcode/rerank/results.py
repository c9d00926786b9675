"""What a reranker answers with."""

from dataclasses import dataclass
from typing import NamedTuple


class RankedCode(NamedTuple):
    """One place of an order.

    Attributes:
        index (`int`): 0-based, of the code in the list that was given.
        score (`float`): Log-odds, higher is better.
    """

    index: int
    score: float


class Part(NamedTuple):
    """One thing that spoke for a code, or against it.

    Attributes:
        name (`str`): In words.
        value (`float`): Its share of the score, in log-odds; below 0 where it spoke against.
    """

    name: str
    value: float


@dataclass(frozen=True, slots=True)
class Explanation:
    """How one score came about.

    Attributes:
        score (`float`): Log-odds, as `Reranker.score` gives it.
        probability (`float`): Its sigmoid.
        instruction (`str`): What was asked of the code.
        tags (`str`): What was put before the code that the model read; `""` without tags.
        parts (`list[Part]`): What the score is made of. Without fusion, the model's logit alone.
    """

    score: float
    probability: float
    instruction: str
    tags: str
    parts: list[Part]
