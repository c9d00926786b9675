"""Ranking losses as pure functions: scores of a batch of lists, and grades or a teacher's scores, become one scalar.

A list is the candidates of one query, best first or in any other order: no loss depends on it. What all share:

- `scores` are [batch, list], any floating dtype. The loss is computed and returned in float32, in float64 for float64
  scores, and under autocast as without.
- `grades` are [batch, list], any dtype; 0 or more, more is better, and -1 marks a padded place. What a padded place
  scores (infinity and NaN too) has no effect on loss or gradient.
- A list in which nothing is to be learned (one grade, one item) has a loss of 0 and a gradient of 0; the graph stays,
  so `backward` works. A batch without a list is 0 as well.
- The result is the mean over the lists, those with a loss of 0 included; a row of nothing but padding is no list.
  `num_lists` replaces the number divided by. Under gradient accumulation give the lists of the whole optimiser step,
  and the micro-batches' losses (and gradients) add up to those of one large batch. Where processes average their
  gradients, give the lists of all processes divided by the number of processes. 1 gives the sum.
- Wrong shapes or dtypes, a score of a real item that is not finite, and a grade that is none are a `ValueError`.

The pairwise losses build tensors of [batch, list, list]. In float32 they take at most 22 bytes a pair of items: 3.5 MB
for 16 lists of 100 items, 0.8 GB for 4 lists of 3,000.
"""

from contextlib import nullcontext
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor


PADDING_GRADE = -1


def delta_ndcg_loss(scores: Tensor, grades: Tensor, *, num_lists: float | Tensor | None = None) -> Tensor:
    """Pairwise logistic loss in which a pair weighs what swapping its two items would change in nDCG.

    Sum over the pairs of a list with grade_i > grade_j of

        |2^grade_i - 2^grade_j| / IDCG x |1 / log2(1 + rank_i) - 1 / log2(1 + rank_j)| x log(1 + exp(-(s_i - s_j)))

    with IDCG the sum of (2^grade - 1) / log2(1 + rank) in the best order (SynH-Rank, section 4.2, Eq. 5 and 6).

    Ranks count from 1, follow the current scores, and carry no gradient. Of equal scores the lower grade ranks first:
    a model that scores everything alike is as wrong as it can be, so it has a gradient whatever the order of the list.
    Items of equal score and equal grade share the mean discount of their ranks. This leaves the loss what it is under
    any order of theirs, and gives them equal gradients.

    Args:
        scores (`torch.Tensor`): [batch, list], higher is better.
        grades (`torch.Tensor`): [batch, list], -1 where padded.
        num_lists (`float` or `torch.Tensor`, *optional*):
            What the sum over lists is divided by; defaults to the lists of this batch.

    Returns:
        `torch.Tensor`: Scalar.

    Raises:
        `ValueError`: On wrong shapes or dtypes, non-finite scores of real items, or illegal grades.
    """
    with _full_precision(scores):
        lists = _read_graded(scores, grades)
        pair_losses = _swap_weights(lists) * _logistic_losses(lists.scores)
        list_losses = torch.where(_ordered_pairs(lists), pair_losses, 0).sum(dim=(1, 2))
        return _mean_over_lists(list_losses, lists.mask, num_lists)


def info_nce_loss(
    scores: Tensor, grades: Tensor, temperature: float = 1.0, *, num_lists: float | Tensor | None = None
) -> Tensor:
    """Contrastive loss: each item of the list's highest grade against all items of lower grades.

    Mean over the items p of the highest grade, n running over the lower grades, of

        -log( exp(s_p / temperature) / (exp(s_p / temperature) + sum_n exp(s_n / temperature)) )

    (SynH-Rank, section 4.2, Eq. 4). Items of the highest grade do not compete with each other, and lower grades are
    all alike. A list without a lower grade has a loss of 0.

    Args:
        scores (`torch.Tensor`): [batch, list], higher is better.
        grades (`torch.Tensor`): [batch, list], -1 where padded.
        temperature (`float`, *optional*, defaults to 1.0): Above 0.
        num_lists (`float` or `torch.Tensor`, *optional*):
            What the sum over lists is divided by; defaults to the lists of this batch.

    Returns:
        `torch.Tensor`: Scalar.

    Raises:
        `ValueError`: On wrong shapes or dtypes, non-finite scores of real items, illegal grades, or a temperature that
            is not above 0.
    """
    _check_positive("temperature", temperature)
    with _full_precision(scores):
        lists = _read_graded(scores, grades)
        highest = lists.grades.amax(dim=1, keepdim=True)
        negatives = lists.mask & (lists.grades < highest)
        positives = lists.mask & (lists.grades == highest) & negatives.any(dim=1, keepdim=True)
        logits = lists.scores / temperature
        against = _mask_logits(logits, negatives).logsumexp(dim=1, keepdim=True)
        item_losses = torch.where(positives, -F.logsigmoid(logits - against), 0)
        return _mean_over_lists(_mean_where(item_losses, positives, dim=1), lists.mask, num_lists)


def pairwise_logistic_loss(scores: Tensor, grades: Tensor, *, num_lists: float | Tensor | None = None) -> Tensor:
    """Logistic loss of every pair of unequal grades, all pairs of a list weighing alike.

    Mean over the pairs of a list with grade_i > grade_j of `log(1 + exp(-(s_i - s_j)))`, then mean over the lists, so
    that a long list weighs what a short one does. With one item of grade 1 and K of grade 0 this is L_lex of CodeHID,
    `-1/K sum_j log sigmoid(s+ - s-_j)` (section 4.2).

    Args:
        scores (`torch.Tensor`): [batch, list], higher is better.
        grades (`torch.Tensor`): [batch, list], -1 where padded.
        num_lists (`float` or `torch.Tensor`, *optional*):
            What the sum over lists is divided by; defaults to the lists of this batch.

    Returns:
        `torch.Tensor`: Scalar.

    Raises:
        `ValueError`: On wrong shapes or dtypes, non-finite scores of real items, or illegal grades.
    """
    with _full_precision(scores):
        lists = _read_graded(scores, grades)
        pairs = _ordered_pairs(lists)
        pair_losses = torch.where(pairs, _logistic_losses(lists.scores), 0)
        return _mean_over_lists(_mean_where(pair_losses, pairs, dim=(1, 2)), lists.mask, num_lists)


def rank_distillation_loss(
    student_scores: Tensor,
    teacher_scores: Tensor,
    temperature: float = 1.0,
    mask: Tensor | None = None,
    *,
    num_lists: float | Tensor | None = None,
) -> Tensor:
    """Kullback-Leibler divergence KL(teacher || student) of the two distributions over the items of a list.

    Both are `softmax(scores / temperature)` over the real items: L_rank of CodeHID (section 4.2). The loss is not
    multiplied by the squared temperature. The teacher gets no gradient.

    Args:
        student_scores (`torch.Tensor`): [batch, list].
        teacher_scores (`torch.Tensor`): [batch, list], any floating dtype.
        temperature (`float`, *optional*, defaults to 1.0): Above 0.
        mask (`torch.Tensor`, *optional*): bool [batch, list], true at real items; all are real when absent.
        num_lists (`float` or `torch.Tensor`, *optional*):
            What the sum over lists is divided by; defaults to the lists of this batch.

    Returns:
        `torch.Tensor`: Scalar, 0 where both agree.

    Raises:
        `ValueError`: On wrong shapes or dtypes, non-finite scores of real items on either side, or a temperature that
            is not above 0.
    """
    _check_positive("temperature", temperature)
    with _full_precision(student_scores):
        _check_scores("student_scores", student_scores)
        _check_scores("teacher_scores", teacher_scores)
        _check_same_shape("teacher_scores", teacher_scores, "student_scores", student_scores)
        if mask is None:
            mask = torch.ones_like(student_scores, dtype=torch.bool)
        elif not isinstance(mask, Tensor) or mask.dtype != torch.bool:
            raise ValueError(f"mask is {_kind(mask)}; expected a bool tensor, true at real items (`grades >= 0`).")
        _check_same_shape("mask", mask, "student_scores", student_scores)
        mask = mask.to(student_scores.device)
        student = _widened(_without_padding("student_scores", student_scores, mask))
        teacher = _widened(_without_padding("teacher_scores", teacher_scores.detach().to(student), mask))
        mask = _widened(mask)
        student = _mask_logits(student / temperature, mask).log_softmax(dim=1)
        teacher = _mask_logits(teacher / temperature, mask).log_softmax(dim=1)
        # At padded places both are -inf, and their difference is no number.
        list_losses = torch.where(mask, teacher.exp() * (teacher - student), 0).sum(dim=1)
        return _mean_over_lists(list_losses, mask, num_lists)


class _GradedLists(NamedTuple):
    """Checked input of a loss.

    Attributes:
        scores (`torch.Tensor`): float32 or float64 [batch, list], 0 where padded.
        grades (`torch.Tensor`): Same dtype [batch, list], -1 where padded.
        mask (`torch.Tensor`): bool [batch, list], true at real items.
    """

    scores: Tensor
    grades: Tensor
    mask: Tensor


def _read_graded(scores: Tensor, grades: Tensor) -> _GradedLists:
    _check_scores("scores", scores)
    if not isinstance(grades, Tensor) or grades.is_complex():
        raise ValueError(f"grades are {_kind(grades)}; expected a tensor of numbers, 0 or more, -1 where padded.")
    _check_same_shape("grades", grades, "scores", scores)
    grades = grades.detach().to(scores.device, _loss_dtype(scores))
    mask = grades != PADDING_GRADE
    _check_values("grades", grades, mask & ~((grades >= 0) & grades.isfinite()), "a finite grade of 0 or more, or -1")
    scores = _without_padding("scores", scores, mask)
    return _GradedLists(_widened(scores), _widened(grades, PADDING_GRADE), _widened(mask))


def _check_scores(name: str, scores: Tensor) -> None:
    if not isinstance(scores, Tensor) or not scores.is_floating_point():
        raise ValueError(f"{name} are {_kind(scores)}; expected a tensor of floating dtype.")
    if scores.dim() != 2:
        raise ValueError(f"{name} have shape {tuple(scores.shape)}; expected [batch, list], one row a list.")


def _check_same_shape(name: str, values: Tensor, scores_name: str, scores: Tensor) -> None:
    # Broadcasting would accept [batch, 1], and give every item of a list the same grade.
    if values.shape != scores.shape:
        raise ValueError(
            f"{name} has shape {tuple(values.shape)} and {scores_name} {tuple(scores.shape)}; expected equal shapes."
        )


def _check_positive(name: str, value: float) -> None:
    if not 0 < value < float("inf"):
        raise ValueError(f"{name} is {value}; expected a number above 0.")


def _check_values(name: str, values: Tensor, wrong: Tensor, expected: str) -> None:
    """A `ValueError` that names the first place of `values` where `wrong` holds, if there is one."""
    if wrong.any():
        row, column = wrong.nonzero()[0].tolist()
        raise ValueError(
            f"{name}[{row}, {column}] is {values[row, column].item()} (list {row} of the batch, item {column}; "
            f"{int(wrong.sum())} such of {values.numel()}); expected {expected}."
        )


def _kind(value) -> str:
    return str(value.dtype) if isinstance(value, Tensor) else f"a {type(value).__name__}"


def _full_precision(scores: Tensor):
    """A context without autocast on the device of the scores."""
    device = scores.device.type if isinstance(scores, Tensor) else "cpu"
    return torch.autocast(device, enabled=False) if torch.amp.is_autocast_available(device) else nullcontext()


def _loss_dtype(scores: Tensor) -> torch.dtype:
    return torch.float64 if scores.dtype == torch.float64 else torch.float32


def _without_padding(name: str, scores: Tensor, mask: Tensor) -> Tensor:
    """Scores in the loss's dtype, checked, with 0 at padded places, which cuts these off from the gradient."""
    scores = scores.to(_loss_dtype(scores))
    expected = "a finite score; a padded place is one of grade -1, or of a mask that is false"
    _check_values(name, scores, mask & ~scores.isfinite(), expected)
    return scores.masked_fill(~mask, 0)


def _widened(values: Tensor, fill: float = 0) -> Tensor:
    """Lists without a place get a padded one: there is no maximum over none."""
    return values if values.shape[1] else F.pad(values, (0, 1), value=fill)


def _mask_logits(logits: Tensor, mask: Tensor) -> Tensor:
    """Logits with -inf where the mask is false; rows without a true place become 0, whose softmax is a number."""
    return logits.masked_fill(~mask, -torch.inf).masked_fill(~mask.any(dim=1, keepdim=True), 0)


def _ordered_pairs(lists: _GradedLists) -> Tensor:
    """bool [batch, list, list], true at (i, j) where grade_i > grade_j and both are real."""
    return (lists.grades[:, :, None] > lists.grades[:, None, :]) & lists.mask[:, None, :]


def _logistic_losses(scores: Tensor) -> Tensor:
    """log(1 + exp(-(s_i - s_j))), [batch, list, list]; exact and with its full gradient at any margin."""
    # Not `softplus`, which is linear beyond 20, nor a logarithm of a clamped sigmoid, whose gradient is 0 exactly for
    # the pairs that are most wrong.
    return -F.logsigmoid(scores[:, :, None] - scores[:, None, :])


@torch.no_grad()
def _swap_weights(lists: _GradedLists) -> Tensor:
    """|delta nDCG| of swapping items i and j, [batch, list, list]; meaningless where an item is padded (Eq. 6)."""
    scores, grades, mask = lists
    row_scores, column_scores = scores[:, :, None], scores[:, None, :]
    row_grades, column_grades = grades[:, :, None], grades[:, None, :]
    positions = torch.arange(scores.shape[1], device=scores.device)
    tied = row_scores == column_scores
    alike = tied & (row_grades == column_grades)
    ahead = (column_scores > row_scores) | (tied & (column_grades < row_grades))
    ahead |= alike & (positions < positions[:, None])
    ranks = 1 + (ahead & mask[:, None, :]).sum(dim=2)
    discounts = 1 / torch.log2(1 + ranks.to(scores))
    discounts = _mean_where(torch.where(alike, discounts[:, None, :], 0), alike, dim=2)

    # Gains as shares of the highest, 2^(grade - highest): the same ratios, and no grade is too large for them.
    ideal = grades.sort(dim=1, descending=True).values
    highest = ideal[:, :1]
    ideal_discounts = 1 / torch.log2(2 + positions.to(scores))
    ideal_gains = torch.where(ideal >= 0, torch.exp2(ideal - highest) - torch.exp2(-highest), 0)
    ideal_dcg = (ideal_gains * ideal_discounts).sum(dim=1)[:, None, None]
    gains = torch.exp2(grades - highest)
    swaps = (gains[:, :, None] - gains[:, None, :]).abs() * (discounts[:, :, None] - discounts[:, None, :]).abs()
    # All grades 0: no ideal gain, and no pair either.
    return swaps / torch.where(ideal_dcg > 0, ideal_dcg, 1)


def _mean_where(values: Tensor, mask: Tensor, dim) -> Tensor:
    """Mean of the values at true places, all others being 0; 0 where there is none."""
    return values.sum(dim=dim) / mask.sum(dim=dim).clamp(min=1)


def _mean_over_lists(list_losses: Tensor, mask: Tensor, num_lists: float | Tensor | None) -> Tensor:
    if num_lists is None:
        num_lists = mask.any(dim=1).sum().clamp(min=1)
    elif isinstance(num_lists, Tensor):
        num_lists = num_lists.detach().to(list_losses)
    else:
        _check_positive("num_lists", num_lists)
    return list_losses.sum() / num_lists
