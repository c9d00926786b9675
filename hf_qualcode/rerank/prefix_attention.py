"""Attention of many rows behind one prefix, on a CPU: to the prefix all rows together, to itself each row.

The two parts are joined by their sums of exponentials, which is exact. Nothing of the prefix is copied for each row,
no mask is made, and the kernel gets large blocks: measured on one core, scoring takes 4 % less time behind 400 tokens
and 6 % less behind 700 than with keys of prefix and row in one tensor.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask


_NAME = "sdpa_behind_prefix"


class PrefixStates(NamedTuple):
    """Keys and values of a prefix in one layer, each [1, num_key_heads, prefix_length, head_size]."""

    keys: Tensor
    values: Tensor


def use_prefix_attention(model: PreTrainedModel) -> bool:
    """Make a model's attention take `prefix_states`, if it can; without them it stays what it is.

    Args:
        model (`PreTrainedModel`): A decoder, on any device.

    Returns:
        `bool`: Whether `model(..., prefix_states=[PrefixStates of each layer])` now works: on a CPU, for a model whose
        attention is `sdpa`, where torch has its kernel.
    """
    config = model.config
    if next(model.parameters()).device.type != "cpu" or not hasattr(torch.ops.aten, _KERNEL):
        return False
    if config._attn_implementation == "sdpa":
        config._attn_implementation = _NAME
    return config._attn_implementation == _NAME


def _attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    prefix_states: list[PrefixStates] | None = None,
    **kwargs,
) -> tuple[Tensor, None]:
    """As `sdpa`, or with `prefix_states`: causal, without padding on the left, and behind the prefix."""
    if prefix_states is None:
        return sdpa_attention_forward(module, query, key, value, attention_mask, **kwargs)
    prefix = prefix_states[module.layer_idx]
    scale = kwargs["scaling"]
    (num_rows, num_heads, length, size), num_key_heads = query.shape, key.shape[1]
    group = num_heads // num_key_heads

    # Heads that share keys, and rows, are one long row of queries.
    long = query.reshape(num_rows, num_key_heads, group, length, size).permute(1, 2, 0, 3, 4)
    before, log_before = _attend(long.reshape(1, num_key_heads, -1, size), *prefix, causal=False, scale=scale)
    parts = (num_key_heads, group, num_rows, length)
    before = before.reshape(*parts, size).permute(2, 0, 1, 3, 4).reshape(query.shape)
    log_before = log_before.reshape(parts).permute(2, 0, 1, 3).reshape(num_rows, num_heads, length)

    key, value = key.repeat_interleave(group, dim=1), value.repeat_interleave(group, dim=1)
    own, log_own = _attend(query, key, value, causal=True, scale=scale)
    share = torch.sigmoid(log_before - log_own)[..., None]
    joined = torch.lerp(own.to(share.dtype), before.to(share.dtype), share).to(query.dtype)
    return joined.transpose(1, 2).contiguous(), None


# What `scaled_dot_product_attention` runs on a CPU. It alone tells the sums of exponentials, which joining needs.
_KERNEL = "_scaled_dot_product_flash_attention_for_cpu"


def _attend(query: Tensor, key: Tensor, value: Tensor, *, causal: bool, scale: float) -> tuple[Tensor, Tensor]:
    """Attention [rows, heads, length, size], and the logarithm of the sum of exponentials [rows, heads, length]."""
    return getattr(torch.ops.aten, _KERNEL)(query, key, value, 0.0, causal, scale=scale)


AttentionInterface.register(_NAME, _attention)
AttentionMaskInterface.register(_NAME, sdpa_mask)
