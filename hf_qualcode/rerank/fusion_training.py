"""How the parts of a `Fusion` are learnt: the relevance map from queries and codes, static scores from preferences."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from hf_qualcode.quality import dimension_names, instruction_for
from hf_qualcode.quality.static_features import FEATURE_NAMES
from hf_qualcode.quality.static_scorer import StaticFeatureScorer
from hf_qualcode.rerank.relevance import RelevanceMap
from hf_qualcode.types import PreferencePair


RANK = 32
_STEPS = 200
_LEARNING_RATE = 1e-2
_DECAY = 0.1
# What counts for a map that is right about odds, beside one that orders well.
_CALIBRATION = 0.3
_EVENNESS = 0.5
_QUERIES_A_STEP = 200
_NEGATIVES_A_STEP = 800


@dataclass(frozen=True)
class RelevanceSource:
    """Queries and codes of one kind, for contrast with each other.

    Attributes:
        queries (`np.ndarray`): float32 [num_queries, dimension], unit vectors.
        codes (`np.ndarray`): float32 [num_codes, dimension].
        query_of_code (`np.ndarray`): int64 [num_codes], the row of `queries` that a code is relevant to; -1 for none.
        weight (`float`): Of the source in the loss.
    """

    queries: np.ndarray
    codes: np.ndarray
    query_of_code: np.ndarray
    weight: float = 1.0


def fit_relevance_map(sources: Sequence[RelevanceSource], *, rank: int = RANK, seed: int = 42) -> RelevanceMap:
    """Learns a relevance map by contrast, in both directions (InfoNCE), by log-odds (logistic loss in which the
    relevant and the irrelevant weigh alike), and so that all codes of a query get about the same: what differs between
    two right programs is no matter of relevance.

    Args:
        sources (`Sequence[RelevanceSource]`): At least one; the first one's mean query is where the shift begins.
        rank (`int`, *optional*, defaults to 32): Of the correction.
        seed (`int`, *optional*, defaults to 42): Equal seeds give equal maps.
    """
    generator = torch.Generator().manual_seed(seed)
    dimension = sources[0].queries.shape[1]
    left = (torch.randn(dimension + 1, rank, generator=generator) * 0.02).requires_grad_()
    right = torch.zeros(dimension + 1, rank, requires_grad=True)
    shift = torch.tensor(-sources[0].queries.mean(axis=0)).requires_grad_()
    log_scale = torch.tensor(np.log(15.0), dtype=torch.float32, requires_grad=True)
    bias = torch.tensor(-1.0, requires_grad=True)
    tensors = [_Tensors.of(source) for source in sources]
    optimizer = torch.optim.Adam([left, right, shift, log_scale, bias], lr=_LEARNING_RATE)
    for step in range(_STEPS):
        for group in optimizer.param_groups:
            group["lr"] = _LEARNING_RATE * (1 - step / _STEPS)
        loss = _DECAY * (left.T @ left * (right.T @ right)).sum()  # squared norm of left right^T
        for source in tensors:
            queries, codes, same = source.sample(generator)
            cosine = (queries[:, :-1] + shift) @ codes[:, :-1].T
            odds = log_scale.exp() * cosine + (queries @ left) @ (codes @ right).T + bias
            loss = loss + source.weight * _relevance_loss(odds, same)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    arrays = [tensor.detach().numpy().copy() for tensor in (shift, left, right)]
    return RelevanceMap(float(log_scale.exp().detach()), float(bias.detach()), *arrays)


@dataclass(frozen=True)
class _Tensors:
    queries: Tensor
    codes: Tensor
    query_of_code: Tensor
    weight: float

    @classmethod
    def of(cls, source: RelevanceSource) -> "_Tensors":
        queries, codes = (
            torch.cat([torch.tensor(array, dtype=torch.float32), torch.ones(len(array), 1)], dim=1)
            for array in (source.queries, source.codes)
        )
        return cls(queries, codes, torch.tensor(source.query_of_code), source.weight)

    def sample(self, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
        """Some queries, their codes and others, and a bool matrix [queries, codes] of what belongs together."""
        rows = torch.randperm(len(self.queries), generator=generator)[:_QUERIES_A_STEP]
        chosen = torch.zeros(len(self.queries) + 1, dtype=torch.bool)
        chosen[rows] = True
        own = chosen[self.query_of_code]  # -1 is the row too many, which is never chosen
        others = torch.nonzero(~own)[:, 0]
        others = others[torch.randperm(len(others), generator=generator)[:_NEGATIVES_A_STEP]]
        codes = torch.cat([torch.nonzero(own)[:, 0], others])
        return self.queries[rows], self.codes[codes], self.query_of_code[codes][None] == rows[:, None]


def _relevance_loss(odds: Tensor, same: Tensor) -> Tensor:
    """Args: odds (`Tensor`): [queries, codes]. same (`Tensor`): bool, where a code is relevant. A query weighs 1."""
    share = same / same.sum(dim=1, keepdim=True).clamp(min=1)
    others = odds.masked_fill(same, -torch.inf)
    by_query = -(F.logsigmoid(odds - others.logsumexp(dim=1, keepdim=True)) * share).sum()
    by_code = -(F.logsigmoid(odds - others.logsumexp(dim=0, keepdim=True)) * share).sum()
    calibrated = (F.softplus(-odds) * share).sum() + len(odds) * F.softplus(odds)[~same].mean()
    centre = (odds * share).sum(dim=1, keepdim=True)
    unevenness = ((odds - centre).square() * share).sum()
    return (by_query + 0.5 * by_code + _CALIBRATION * calibrated + _EVENNESS * unevenness) / len(odds)


def fit_static_weights(pairs: Sequence[PreferencePair]) -> np.ndarray:
    """Static weights of each dimension, float64 [num_dimensions, num_features]; 0 where no pair is about it alone."""
    weights = np.zeros((len(dimension_names()), len(FEATURE_NAMES)))
    for row, name in enumerate(dimension_names()):
        own = [pair for pair in pairs if pair.dimensions == (name,)]
        if own:
            weights[row] = StaticFeatureScorer().fit(own).weights[instruction_for(name)]
    return weights
