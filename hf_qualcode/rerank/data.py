"""From training lists to tensors, where the data is loaded: tokens, sorted by length, in forward batches."""

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from hf_qualcode.batching import token_batches
from hf_qualcode.losses import PADDING_GRADE
from hf_qualcode.rerank.inputs import EncodedInput
from hf_qualcode.rerank.lists import GradedVariant, build_lists, lists_from_pairs, negated_instruction, srcl_lists
from hf_qualcode.rerank.ranking_list import (
    RankingList,
    any_teacher_scores,
    as_ranking_list,
    lists_from_dataset,
    lists_to_dataset,
)
from hf_qualcode.rerank.shared_prefix import can_share_prefix, check_can_share_prefix, pack
from hf_qualcode.types import QualcodeError, UsageError


__all__ = [
    "GradedVariant", "RankingCollator", "RankingList", "build_lists", "lists_from_dataset", "lists_from_pairs",
    "lists_to_dataset", "negated_instruction", "srcl_lists",
]  # fmt: skip

# Padding included. On a CPU the states of a batch should stay in its caches; an accelerator wants to be filled.
_TOKENS_A_FORWARD = 1024
_TOKENS_A_FORWARD_ACCELERATED = 32768
# Of all tokens, those that packing must save: it costs a mask, and the kernels that need none.
_WORTHWHILE_SHARE = 0.15


def tokens_a_forward(device: torch.device) -> int:
    """Tokens of a forward batch that suit a device."""
    return _TOKENS_A_FORWARD if torch.device(device).type == "cpu" else _TOKENS_A_FORWARD_ACCELERATED


class ForwardBatches(NamedTuple):
    """What the model runs, one batch after the other.

    Attributes:
        batches (`list[dict[str, Tensor]]`): Arguments of the model.
        rows (`np.ndarray`): int64 [n], which input each score of all batches in a row belongs to.
    """

    batches: list[dict[str, Tensor]]
    rows: np.ndarray


@dataclass
class RankingCollator:
    """Makes a batch of training lists. Lists may be of any lengths.

    It tokenises, so workers of a data loader do that while the model trains. An input that several lists share is read
    once. Inputs are sorted by length and cut into forward batches of about `tokens_per_forward` tokens, so there is
    little padding whatever the lists look like. For decoders, inputs of one query can be packed into one sequence that
    holds instruction and query once.

    Args:
        backbone (`Backbone`): See `hf_qualcode.rerank.backbones`; only its tokenisation is kept.
        tokens_per_forward (`int`, *optional*):
            Tokens of a forward batch, padding included; a longer input is a batch of its own. Defaults to 32,768 on an
            accelerator and 1,024 on a CPU.
        inputs_per_forward (`int`, *optional*): The most inputs of a forward batch.
        share_prefix (`bool` or `"auto"`, *optional*, defaults to `"auto"`):
            Whether instruction and query are computed once for the inputs that share them. `"auto"`: by decoders,
            where it saves tokens.
        tags (`Callable`, *optional*): code -> the text that is read in its place; see `hf_qualcode.rerank.tags`.
        distillation (`bool`, *optional*, defaults to `False`): Lists must have teacher scores.

    Returns (of a call):
        `dict`: Plain tensors.

        - batches (`list[dict[str, Tensor]]`): Arguments of the model, batch by batch.
        - places (`Tensor`): int64 [lists, longest], where each item's score is among those of all batches in a row;
          0 where padded.
        - grades (`Tensor`): int64 [lists, longest], -1 where padded.
        - teacher_scores (`Tensor`, *optional*): float32 [lists, longest], 0 where padded; where all lists have them.

    Raises:
        `QualcodeError`: On rows that are no lists, teacher scores that are missing, or a prefix that cannot be shared.
        `UsageError`: On options out of range.
    """

    backbone: Any
    tokens_per_forward: int | None = None
    inputs_per_forward: int | None = None
    share_prefix: bool | str = "auto"
    tags: Callable[[str], str] | None = None
    distillation: bool = False

    def __post_init__(self):
        if self.share_prefix not in (True, False, "auto"):
            raise UsageError(f"share_prefix is {self.share_prefix!r}; choose from: auto, True, False")
        if self.share_prefix is True:
            check_can_share_prefix(self.backbone)
        self._can_share = can_share_prefix(self.backbone)
        for name in ("tokens_per_forward", "inputs_per_forward"):
            if getattr(self, name) is not None and getattr(self, name) < 1:
                raise UsageError(f"{name} is {getattr(self, name)}; expected 1 or more, or None")
        if self.tokens_per_forward is None:
            self.tokens_per_forward = tokens_a_forward(self.backbone.device)
        # Weights have no business in the processes that load data.
        self.backbone = copy.copy(self.backbone)
        self.backbone.model = None

    def __call__(self, rows: Sequence[RankingList | Mapping]) -> dict[str, Any]:
        lists = [as_ranking_list(row, number) for number, row in enumerate(rows)]
        inputs: dict[tuple[str, str, str], int] = {}
        items = [
            [inputs.setdefault((each.instruction, each.query, code), len(inputs)) for code in each.codes]
            for each in lists
        ]
        forward = self.forward_batches(list(inputs))
        place_of = np.empty(len(inputs), dtype=np.int64)
        place_of[forward.rows] = np.arange(len(inputs))
        batch = {
            "batches": forward.batches,
            "places": _padded([place_of[row] for row in items], 0, torch.int64),
            "grades": _padded([each.grades for each in lists], PADDING_GRADE, torch.int64),
        }
        if any_teacher_scores(lists):
            batch["teacher_scores"] = _padded([each.teacher_scores for each in lists], 0.0, torch.float32)
        elif self.distillation:
            raise QualcodeError(
                f"list {lists[0].id!r} has no teacher scores, and the loss distils them; add a column teacher_scores"
            )
        return batch

    def forward_batches(self, triples: Sequence[tuple[str, str, str]]) -> ForwardBatches:
        """What the model runs to score these inputs.

        Args:
            triples (`Sequence[tuple[str, str, str]]`): [n], instruction, query and code, without tags.

        Returns:
            `ForwardBatches`: The longest inputs first.
        """
        if not triples:
            return ForwardBatches([], np.empty(0, dtype=np.int64))
        instructions, queries, codes = zip(*triples, strict=True)
        if self.tags is not None:
            tagged = {code: self.tags(code) for code in dict.fromkeys(codes)}
            codes = [tagged[code] for code in codes]
        encoded = self.backbone.encode(instructions, queries, codes).inputs
        if self._shares_prefix(encoded):
            return self._packed(encoded)
        chosen = [self._cut(rows) for rows in token_batches([len(e.ids) for e in encoded], self.tokens_per_forward)]
        chosen = [rows for parts in chosen for rows in parts]
        batches = [dict(self.backbone.collate([encoded[row] for row in rows])) for rows in chosen]
        return ForwardBatches(batches, np.concatenate(chosen))

    def _shares_prefix(self, encoded: Sequence[EncodedInput]) -> bool:
        if self.share_prefix != "auto":
            return self.share_prefix
        if not self._can_share:
            return False
        saved = sum((len(rows) - 1) * len(prefix) for prefix, rows in _prefix_groups(encoded).items())
        return saved >= _WORTHWHILE_SHARE * sum(len(each.ids) for each in encoded)

    def _packed(self, encoded: Sequence[EncodedInput]) -> ForwardBatches:
        """Whole groups of inputs that share a prefix; parts of a group only where it has too many inputs."""
        parts = []
        for prefix, rows in _prefix_groups(encoded).items():
            rows = np.array(sorted(rows, key=lambda row: -len(encoded[row].ids)))
            for part in self._cut(rows):
                parts.append((len(prefix) + sum(len(encoded[row].ids) - len(prefix) for row in part), part))
        parts.sort(key=lambda part: -part[0])
        chosen: list[np.ndarray] = []
        room = 0
        for size, part in parts:
            full = size > room or len(part) + len(chosen[-1]) > (self.inputs_per_forward or len(encoded))
            if full or not chosen:
                chosen.append(part)
                room = self.tokens_per_forward - size
            else:
                chosen[-1] = np.concatenate([chosen[-1], part])
                room -= size
        batches = [dict(pack([encoded[row] for row in rows])) for rows in chosen]
        return ForwardBatches(batches, np.concatenate(chosen))

    def _cut(self, rows: np.ndarray) -> list[np.ndarray]:
        size = self.inputs_per_forward or len(rows)
        return [rows[start : start + size] for start in range(0, len(rows), size)]


def _prefix_groups(encoded: Sequence[EncodedInput]) -> dict[tuple[int, ...], list[int]]:
    """Rows that share the tokens of instruction and query, by those tokens."""
    groups: dict[tuple[int, ...], list[int]] = {}
    for row, each in enumerate(encoded):
        groups.setdefault(tuple(each.ids[: each.prefix_length]), []).append(row)
    return groups


def _padded(rows: Sequence, filler: float, dtype: torch.dtype) -> Tensor:
    longest = max((len(row) for row in rows), default=0)
    table = torch.full((len(rows), longest), filler, dtype=dtype)
    for number, row in enumerate(rows):
        table[number, : len(row)] = torch.as_tensor(np.asarray(row), dtype=dtype)
    return table
