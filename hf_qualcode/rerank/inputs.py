"""What a reranker reads: token ids of one instruction, query and code."""

from dataclasses import dataclass
from typing import NamedTuple


class Trims(NamedTuple):
    """How many inputs were too long.

    Attributes:
        inputs (`int`): Inputs.
        codes, queries (`int`): Of them, those whose code, or whose query as well, was cut at its end.
    """

    inputs: int
    codes: int
    queries: int


@dataclass(frozen=True, slots=True)
class EncodedInput:
    """One input as token ids, without padding.

    Attributes:
        ids (`list[int]`): Special tokens and template included, at most the model's maximum length.
        type_ids (`list[int]`, *optional*): [len(ids)], the segment of each token; `None` for models without segments.
        prefix_length (`int`): Leading tokens that depend on instruction and query alone; 0 for encoders.
    """

    ids: list[int]
    type_ids: list[int] | None = None
    prefix_length: int = 0


class EncodedInputs(NamedTuple):
    """`inputs`, in the order of the texts, and how many of them were cut."""

    inputs: list[EncodedInput]
    trims: Trims
