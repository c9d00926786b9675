"""Encoders on the CPU without padding: the body runs over packed tokens, the head over each input's first token."""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor, nn

from hf_qualcode.batching import token_batches
from hf_qualcode.packed_bert import PackedBert
from hf_qualcode.rerank.backbones._base import Backbone
from hf_qualcode.rerank.inputs import EncodedInput
from hf_qualcode.threads import map_side_by_side
from hf_qualcode.types import QualcodeError


# The states of a batch should stay in the caches of a core.
_TOKENS_A_BATCH = 1024
# Whether a classifier's head reads what the body's pooler makes of the first token, or the states themselves.
_READS_POOLER = {
    "BertForSequenceClassification": True,
    "RobertaForSequenceClassification": False,
    "XLMRobertaForSequenceClassification": False,
    "CamembertForSequenceClassification": False,
}


class PackedScorer:
    """Scores of an encoder in eval mode as it is now, its LoRA adapters included; later changes are not seen.

    Args:
        backbone (`Backbone`): One that `PackedScorer.fits`.

    Raises:
        `QualcodeError`: If it does not fit.
    """

    def __init__(self, backbone: Backbone):
        if not self.fits(backbone):
            raise QualcodeError(
                f"{backbone.source} is not a BERT or XLM-RoBERTa on the CPU in eval mode, so it cannot run without "
                "padding; score its inputs padded"
            )
        model = backbone.model
        self._body = PackedBert(model.config.to_dict(), _ModuleWeights(model.base_model))
        self._pooler = model.base_model.pooler if _READS_POOLER[type(model).__name__] else None
        self._classifier = model.classifier
        self._with_types = model.config.type_vocab_size > 1

    @staticmethod
    def fits(backbone: Backbone) -> bool:
        """Whether the unpadded form computes what this backbone computes."""
        model = backbone.model
        return (
            next(model.parameters()).device.type == "cpu"
            and not model.training
            and type(model).__name__ in _READS_POOLER
            and PackedBert.fits(model.config.to_dict())
            and all(_is_plain(module) for module in model.base_model.modules())
        )

    @torch.inference_mode()
    def __call__(self, inputs: Sequence[EncodedInput]) -> np.ndarray:
        """Scores of one batch, float32 [num_inputs]; inputs of equal length should be neighbours."""
        typed = self._with_types and all(encoded.type_ids is not None for encoded in inputs)
        types = [encoded.type_ids for encoded in inputs] if typed else None
        first = [states[:, :1] for _, states in self._body([encoded.ids for encoded in inputs], types)]
        states = torch.cat(first)
        if self._pooler is not None:
            states = self._pooler(states)
        return self._classifier(states)[:, 0].float().numpy()


def score_packed(
    backbone: Backbone,
    inputs: Sequence[EncodedInput],
    *,
    token_budget: int = _TOKENS_A_BATCH,
    progress: Callable[[str, int, int | None], None] | None = None,
) -> np.ndarray:
    """Scores of inputs in any order, batches beside each other on all cores.

    Args:
        backbone (`Backbone`): One that `PackedScorer.fits`.
        inputs (`Sequence[EncodedInput]`): What to score.
        token_budget (`int`, *optional*, defaults to 1024): Tokens of a batch.
        progress (`Callable`, *optional*): Called as `progress(stage, done, total)`.

    Returns:
        `np.ndarray`: [num_inputs], float32.

    Raises:
        `QualcodeError`: If the backbone does not fit.
    """
    scorer = PackedScorer(backbone)
    scores = np.empty(len(inputs), dtype=np.float32)
    batches = token_batches([len(encoded.ids) for encoded in inputs], token_budget)
    done = 0
    for rows, given in map_side_by_side(lambda rows: scorer([inputs[row] for row in rows]), batches):
        scores[rows] = given
        done += len(rows)
        if progress is not None:
            progress("scoring programs", done, len(inputs))
    return scores


class _ModuleWeights:
    """The weights of a body, those of its LoRA adapters added."""

    def __init__(self, body: nn.Module):
        self._body = body

    def take(self, name: str, *shape: int | None) -> Tensor:
        module, _, kind = name.rpartition(".")
        return _weight(self._body.get_submodule(module), kind)

    def take_pair(self, name: str, *shape: int) -> tuple[Tensor, Tensor]:
        module = self._body.get_submodule(name)
        return _weight(module, "weight"), _weight(module, "bias")


def _weight(module: nn.Module, kind: str) -> Tensor:
    tensor = getattr(getattr(module, "base_layer", module), kind).detach()
    if kind == "weight" and hasattr(module, "get_delta_weight") and not module.merged and not module.disable_adapters:
        for adapter in _active(module):
            tensor = tensor + module.get_delta_weight(adapter).to(tensor.dtype)
    return tensor


def _active(module: nn.Module) -> list[str]:
    """Adapters of a LoRA layer that take part."""
    known = {*module.lora_A, *module.lora_embedding_A}
    return [adapter for adapter in module.active_adapters if adapter in known]


def _is_plain(module: nn.Module) -> bool:
    """Whether a module's weight is all there is to it: no adapter, or one of plain LoRA."""
    if not hasattr(module, "base_layer"):
        return not hasattr(module, "modules_to_save")
    if not hasattr(module, "lora_A") or not hasattr(module, "get_delta_weight"):
        return False
    return not any(
        module.lora_bias.get(adapter) or adapter in getattr(module, "lora_variant", {}) for adapter in _active(module)
    )
