"""Stock sequence classifiers as rerankers: a head in float32, and scores at any position of a decoder.

Models keep the class names of transformers, so what `save_pretrained` writes is what any stock tool loads. A reranker
has one label. Its logit is the score; for a model that was converted from a language model it is the log-odds of "yes"
against "no" (SynH-Rank, Eq. 1, before the sigmoid).
"""

import functools

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.modeling_layers import GenericForSequenceClassification
from transformers.modeling_outputs import SequenceClassifierOutputWithPast
from transformers.utils import can_return_tuple


_HALF = (torch.float16, torch.bfloat16)


class Float32Linear(nn.Linear):
    """`nn.Linear` that computes in float32 whatever the autocast, its input or its weights are in.

    In half precision the scores of many programs would be one and the same number.
    """

    def forward(self, input: Tensor) -> Tensor:
        """See `nn.Linear.forward`."""
        with torch.autocast(input.device.type, enabled=False):
            return F.linear(_at_least_float32(input), _at_least_float32(self.weight), _at_least_float32(self.bias))


def _at_least_float32(tensor: Tensor | None) -> Tensor | None:
    return tensor.float() if tensor is not None and tensor.dtype in _HALF else tensor


def head_modules(model: PreTrainedModel) -> list[nn.Module]:
    """What stands on the body of a classifier: everything outside the base model, and the base model's pooler."""
    heads = [module for name, module in model.named_children() if name != model.base_model_prefix]
    pooler = getattr(model.base_model, "pooler", None)
    return heads if pooler is None else [pooler, *heads]


def head_names(model: PreTrainedModel) -> list[str]:
    """Names of the modules of a classifier's head, such as `["bert.pooler", "classifier"]`. Dropout is none."""
    heads = {id(head) for head in head_modules(model) if any(True for _ in head.parameters())}
    return [name for name, module in model.named_modules() if id(module) in heads]


def use_float32_head(model: PreTrainedModel) -> None:
    """Make the head of a classifier compute in float32, in place. Weights are converted as they are: to keep all of
    their digits, load the head in float32."""
    for head in head_modules(model):
        for module in head.modules():
            if type(module) is nn.Linear:
                module.__class__ = Float32Linear
            for parameter in module.parameters(recurse=False):
                parameter.data = _at_least_float32(parameter.data)


def is_decoder(model_class: type) -> bool:
    """Whether a classifier class puts its head on the last token of a decoder."""
    return issubclass(model_class, GenericForSequenceClassification)


def score_at_positions(model: PreTrainedModel) -> None:
    """Make a decoder's classifier take `score_positions`, in place; see `ScoresAtPositions.forward`."""
    if not isinstance(model, ScoresAtPositions):
        model.__class__ = _at_positions(type(model))


class ScoresAtPositions:
    """What `score_at_positions` adds to a decoder's classifier class."""

    @can_return_tuple
    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        score_positions: Tensor | None = None,
        tree: Tensor | None = None,
        use_cache: bool | None = False,
        labels: Tensor | None = None,
        **kwargs,
    ) -> SequenceClassifierOutputWithPast:
        """Scores of sequences, or of several places in packed ones.

        Args:
            input_ids (`Tensor`): [num_rows, length].
            attention_mask (`Tensor`, *optional*): [num_rows, length], 1 for real tokens.
            score_positions (`Tensor`, *optional*):
                [num_scores], places in the flattened rows; defaults to the last real token of each row.
            tree (`Tensor`, *optional*):
                [num_rows, length, 2], group and branch of each token of packed rows. A token sees what lies before it
                in its own branch, and in branch 0 of its group.
            use_cache (`bool`, *optional*, defaults to `False`): Whether to return keys and values.
            labels (`Tensor`, *optional*): As in the stock class, whose own loss is computed then.
            kwargs: Passed to the body, for example `position_ids` and `cache`.

        Returns:
            `SequenceClassifierOutputWithPast`: `logits` [num_scores, 1]. The head sees these places only.
        """
        if labels is not None or (score_positions is None and attention_mask is None):
            return super().forward(
                input_ids, attention_mask=attention_mask, use_cache=use_cache, labels=labels, **kwargs
            )
        if tree is not None:
            attention_mask = _tree_mask(tree)
            if self.config._attn_implementation == "eager":
                # Eager attention adds its mask to the scores.
                dtype = self.get_input_embeddings().weight.dtype
                attention_mask = torch.where(attention_mask, 0.0, torch.finfo(dtype).min).to(dtype)
        outputs = getattr(self, self.base_model_prefix)(
            input_ids, attention_mask=attention_mask, use_cache=use_cache, **kwargs
        )
        states = outputs.last_hidden_state
        if score_positions is None:
            places = torch.arange(attention_mask.shape[1], device=attention_mask.device)
            last = (attention_mask * places).argmax(dim=1)
            states = states[torch.arange(len(states), device=states.device), last]
        else:
            states = states.flatten(0, 1)[score_positions]
        return SequenceClassifierOutputWithPast(logits=self.score(states), cache=outputs.cache)


def _tree_mask(tree: Tensor) -> Tensor:
    """Which token sees which, [num_rows, 1, length, length] booleans. Padding sees itself, so that no row is empty."""
    groups, branches = tree.unbind(dim=-1)
    mask = groups[:, :, None] == groups[:, None, :]
    mask &= (branches[:, None, :] == 0) | (branches[:, :, None] == branches[:, None, :])
    return mask.tril_()[:, None]


@functools.cache
def _at_positions(stock: type) -> type:
    # `save_pretrained` writes the class's name as the architecture.
    return type(stock.__name__, (ScoresAtPositions, stock), {"__module__": stock.__module__, "__doc__": stock.__doc__})
