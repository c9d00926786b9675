"""Decoders: instruction and query are computed once for all candidates of a query.

Two forms of the same: packed rows, in which each candidate sees the prefix and itself (a tree mask), which have
gradients and take many small groups at once; and keys and values of a prefix that are kept for batches of candidates,
where no computation is spent on candidates that must not see each other.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer

from hf_qualcode.batching import token_batches
from hf_qualcode.rerank.backbones._base import Backbone
from hf_qualcode.rerank.inputs import EncodedInput
from hf_qualcode.rerank.prefix_attention import PrefixStates, use_prefix_attention
from hf_qualcode.threads import map_side_by_side
from hf_qualcode.types import QualcodeError


# Decoders in which a token sees all before it and knows their distance alone.
_PLAIN_ATTENTION = ("llama", "mistral", "qwen2", "qwen3", "smollm3")
# A packed row attends to all of itself, whatever the mask hides afterwards, so rows are kept short. A mask of one row
# takes 4 MB.
_ROW_TOKENS = 2048
# Groups with fewer tokens behind their prefix are packed: a batch of their own would be too small.
_PACKED_TOKENS = 1024
# Without their prefix candidates differ more in length. On a CPU, which needs no large batches, small ones hold less
# padding: 4 % instead of 28 % for 20 functions, and 1.5 instead of 10 % for 100.
_CONTINUED_TOKENS_ON_CPU = 512


def can_share_prefix(backbone: Backbone) -> bool:
    """Whether candidates of a query can share its computation: decoders with full causal attention in every layer."""
    if not backbone.is_decoder:
        return False
    config = backbone.model.config
    layers = set(getattr(config, "layer_types", None) or ["full_attention"])
    windowed = getattr(config, "sliding_window", None) is not None and getattr(config, "use_sliding_window", True)
    return config.model_type in _PLAIN_ATTENTION and layers == {"full_attention"} and not windowed


def check_can_share_prefix(backbone: Backbone) -> None:
    """Raises a `QualcodeError` where `can_share_prefix` is false."""
    if not can_share_prefix(backbone):
        raise QualcodeError(
            f"{backbone.source} ({backbone.model.config.model_type}) is no decoder with full attention in every "
            "layer, so candidates of a query cannot share its computation; score them without sharing"
        )


class _Group(NamedTuple):
    """Inputs with one prefix: their numbers, and their ids behind it."""

    prefix: tuple[int, ...]
    rows: list[int]
    rests: list[list[int]]


def _groups(inputs: Sequence[EncodedInput]) -> list[_Group]:
    groups: dict[tuple[int, ...], _Group] = {}
    for row, encoded in enumerate(inputs):
        prefix = tuple(encoded.ids[: encoded.prefix_length])
        group = groups.setdefault(prefix, _Group(prefix, [], []))
        group.rows.append(row)
        group.rests.append(encoded.ids[encoded.prefix_length :])
    return list(groups.values())


def pack(inputs: Sequence[EncodedInput], *, row_tokens: int = _ROW_TOKENS) -> dict[str, Tensor]:
    """A batch in which inputs of equal prefix share it, for `Backbone.scores` with or without gradient.

    Args:
        inputs (`Sequence[EncodedInput]`): Of a backbone that can share prefixes; of any number of queries.
        row_tokens (`int`, *optional*, defaults to 2048):
            A row holds more only if it is one prefix and one candidate; a long list is split over several rows, each
            with the prefix.

    Returns:
        `dict[str, Tensor]`: `input_ids`, `position_ids` [num_rows, length]; `tree` [num_rows, length, 2], the group
        and the branch of each token (branch 0: the prefix), of which the model makes its mask; `score_positions`
        [num_inputs], places in the flattened rows, in the order of `inputs`.
    """
    parts = [part for group in _groups(inputs) for part in _split(group, row_tokens)]
    sizes = [_size(part) for part in parts]
    rows = _fill_rows(sizes, max(sizes))
    length = max(sum(sizes[part] for part in row) for row in rows)
    ids = torch.zeros(len(rows), length, dtype=torch.long)
    positions = torch.zeros_like(ids)
    tree = torch.stack([torch.full_like(ids, -1), torch.zeros_like(ids)], dim=-1)
    scored = torch.zeros(len(inputs), dtype=torch.long)
    for number, row in enumerate(rows):
        place = 0
        for part in row:
            prefix = parts[part].prefix
            branches = [prefix, *parts[part].rests]
            for branch, tokens in enumerate(branches):
                span = slice(place, place + len(tokens))
                start = len(prefix) if branch else 0
                ids[number, span] = torch.tensor(tokens, dtype=torch.long)
                positions[number, span] = torch.arange(start, start + len(tokens))
                tree[number, span, 0], tree[number, span, 1] = part, branch
                place += len(tokens)
                if branch:
                    scored[parts[part].rows[branch - 1]] = number * length + place - 1
    return {"input_ids": ids, "position_ids": positions, "tree": tree, "score_positions": scored}


def score_with_shared_prefix(
    backbone: Backbone,
    inputs: Sequence[EncodedInput],
    token_budget: int,
    progress: Callable[[str, int, int | None], None] | None = None,
) -> np.ndarray:
    """Scores of inputs, each distinct prefix computed once.

    Args:
        backbone (`Backbone`): One that can share prefixes.
        inputs (`Sequence[EncodedInput]`): In any order.
        token_budget (`int`): Tokens of a batch, at most.
        progress (`Callable`, *optional*): Called as `progress(stage, done, total)`.

    Returns:
        `np.ndarray`: [num_inputs], float32.

    Raises:
        `QualcodeError`: If candidates of this backbone cannot share a prefix.
    """
    check_can_share_prefix(backbone)
    scores = np.empty(len(inputs), dtype=np.float32)
    batches = _batches(backbone, inputs, token_budget)
    # The model runs side by side only where every core is as good as any other.
    results = (
        map_side_by_side(_run, batches) if backbone.device.type == "cpu" else ((item, _run(item)) for item in batches)
    )
    done = 0
    for batch, given in results:
        scores[batch.rows] = given
        done += len(batch.rows)
        if progress is not None:
            progress("scoring programs", done, len(inputs))
    return scores


class _Batch(NamedTuple):
    """Numbers of the inputs of a batch, its tensors, and keys and values of its prefix where they are kept."""

    backbone: Backbone
    rows: list[int]
    tensors: dict[str, Tensor]
    cache: DynamicCache | None


def _batches(backbone: Backbone, inputs: Sequence[EncodedInput], token_budget: int) -> Iterator[_Batch]:
    few = []
    continued = min(token_budget, _CONTINUED_TOKENS_ON_CPU) if backbone.device.type == "cpu" else token_budget
    for group in _groups(inputs):
        if sum(map(len, group.rests)) < min(_PACKED_TOKENS, token_budget) or not group.prefix:
            few.append(group)
            continue
        cache = _prefix_cache(backbone, group.prefix)
        for batch in token_batches([len(rest) for rest in group.rests], continued):
            tensors = _continuations(len(group.prefix), [group.rests[at] for at in batch])
            yield _Batch(backbone, [group.rows[at] for at in batch], tensors, cache)
    # Neighbours of like length leave little of a row empty.
    few.sort(key=_size, reverse=True)
    waiting: list[int] = []
    tokens = 0
    for group in few:
        if waiting and tokens + _size(group) > token_budget:
            yield _Batch(backbone, waiting, pack([inputs[row] for row in waiting]), None)
            waiting, tokens = [], 0
        waiting = waiting + group.rows
        tokens += _size(group)
    if waiting:
        yield _Batch(backbone, waiting, pack([inputs[row] for row in waiting]), None)


@torch.inference_mode()
def _run(batch: _Batch) -> np.ndarray:
    cache = {}
    if batch.cache is not None and use_prefix_attention(batch.backbone.model):
        cache = {"prefix_states": [PrefixStates(layer.keys, layer.values) for layer in batch.cache.layers]}
    elif batch.cache is not None:
        cache = {"cache": batch.cache, "use_cache": True}
    tensors = {name: tensor.to(batch.backbone.device) for name, tensor in batch.tensors.items()}
    return batch.backbone.model(**tensors, **cache).logits[:, 0].float().cpu().numpy()


@torch.inference_mode()
def _prefix_cache(backbone: Backbone, prefix: Sequence[int]) -> DynamicCache:
    """Keys and values of a prefix, which stay as they are whatever is computed behind it."""
    ids = torch.tensor([prefix], device=backbone.device)
    filled = backbone.model.base_model(ids, use_cache=True).cache
    kept = DynamicCache()
    kept.layers = [_PrefixLayer(layer.keys, layer.values) for layer in filled.layers]
    return kept


class _PrefixLayer(DynamicLayer):
    """Keys and values [1, num_heads, prefix_length, head_size] for any number of rows.

    What is computed behind them is not kept: only the layer that runs holds the keys of all rows.
    """

    def __init__(self, keys: Tensor, values: Tensor):
        super().__init__()
        self.lazy_initialization(keys, values)
        self.keys, self.values = keys, values

    def update(self, key_states: Tensor, value_states: Tensor, *args, **kwargs) -> tuple[Tensor, Tensor]:
        """The prefix's keys and values before those of each row."""
        num_rows = len(key_states)
        return (
            torch.cat([self.keys.expand(num_rows, -1, -1, -1), key_states], dim=-2),
            torch.cat([self.values.expand(num_rows, -1, -1, -1), value_states], dim=-2),
        )


def _continuations(prefix_length: int, rests: list[list[int]]) -> dict[str, Tensor]:
    """Rows that go on behind a prefix. Padded on the right, where no real token looks, so that none needs a mask."""
    length = max(map(len, rests))
    ids = torch.tensor([[*rest, *[0] * (length - len(rest))] for rest in rests])
    positions = torch.arange(prefix_length, prefix_length + length).expand(len(rests), -1)
    ends = torch.tensor([row * length + len(rest) - 1 for row, rest in enumerate(rests)])
    return {"input_ids": ids, "position_ids": positions, "score_positions": ends}


def _split(group: _Group, row_tokens: int) -> Iterator[_Group]:
    """Parts of a group that fit a row, the prefix included."""
    part = _Group(group.prefix, [], [])
    for row, rest in zip(group.rows, group.rests, strict=True):
        if part.rows and _size(part) + len(rest) > row_tokens:
            yield part
            part = _Group(group.prefix, [], [])
        part.rows.append(row)
        part.rests.append(rest)
    yield part


def _fill_rows(sizes: Sequence[int], capacity: int) -> list[list[int]]:
    """Parts by rows: each, longest first, into the first row with room for it."""
    rows: list[list[int]] = []
    room: list[int] = []
    for part in sorted(range(len(sizes)), key=lambda part: -sizes[part]):
        row = next((row for row, free in enumerate(room) if free >= sizes[part]), len(rows))
        if row == len(rows):
            rows.append([])
            room.append(capacity)
        rows[row].append(part)
        room[row] -= sizes[part]
    return rows


def _size(group: _Group) -> int:
    return len(group.prefix) + sum(map(len, group.rests))
