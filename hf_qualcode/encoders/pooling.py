"""Token states to one vector a text, as sentence-transformers' Pooling does it, for texts of one length."""

from collections.abc import Sequence

import torch
from torch import Tensor


def pool(states: Tensor, modes: Sequence[str]) -> Tensor:
    """Pool token states. All texts have the same number of tokens, so no mask is needed.

    Args:
        states (`Tensor`): `[num_texts, num_tokens, hidden_size]`, any float type.
        modes (`Sequence[str]`): Of `"cls"`, `"max"`, `"mean"`, `"mean_sqrt_len_tokens"`, `"weightedmean"`,
            `"lasttoken"`; several are concatenated in this order.

    Returns:
        `Tensor`: float32 `[num_texts, len(modes) * hidden_size]`, not normalised.
    """
    return torch.cat([_pool_one(states, mode) for mode in modes], dim=-1)


def _pool_one(states: Tensor, mode: str) -> Tensor:
    num_tokens = states.shape[1]
    match mode:
        case "cls":
            return states[:, 0].float()
        case "lasttoken":
            return states[:, -1].float()
        case "max":
            return states.amax(dim=1).float()
        case "mean":
            return states.mean(dim=1, dtype=torch.float32)
        case "mean_sqrt_len_tokens":
            return states.sum(dim=1, dtype=torch.float32) / num_tokens**0.5
        case "weightedmean":
            weights = torch.arange(1, num_tokens + 1, dtype=torch.float32, device=states.device)
            return torch.einsum("nth,t->nh", states.float(), weights / weights.sum())
        case _:
            raise ValueError(f"unknown pooling mode {mode!r}")
