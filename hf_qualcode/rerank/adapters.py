"""LoRA adapters of rerankers: a model's weights and a head, stored small, merged into the base when loaded.

Merged here rather than by peft: a stranger's `adapter_config.json` can ask peft for patterns, initialisations and
kinds of adapters without end, and what an adapter for inference is, is one line: W + scale * B A.
"""

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from hf_qualcode.rerank.settings import ADAPTER_FILE, read_json
from hf_qualcode.types import QualcodeError


WEIGHTS_FILE = "adapter_model.safetensors"
TASK_TYPE = "SEQ_CLS"
_PREFIX = "base_model.model."
_LOW_RANK = re.compile(r"(?P<module>.+)\.lora_(?P<side>[AB])\.weight")
# What makes the sum above another one, or changes the base before it is taken.
_UNKNOWN = (
    "use_dora", "lora_bias", "layer_replication", "trainable_token_indices", "target_parameters", "use_qalora",
    "alora_invocation_tokens", "use_bdlora", "velora_config", "kasa_config", "monteclora_config", "arrow_config",
    "megatron_config", "loftq_config",
)  # fmt: skip
# No weight in float32 is so large; NaN is below nothing.
_LARGEST_ALPHA = 1e30
_STARTS = (None, True, False, "gaussian", "eva", "orthogonal")


class Adapter:
    """What lies in an adapter's folder, checked.

    Args:
        folder (`Path`): With `adapter_config.json` and `adapter_model.safetensors`.
        named (`str`): What messages call it.

    Attributes:
        base (`str`): The model it was trained on, as it names it: a folder, or a Hub id (`org/name@revision`).

    Raises:
        `QualcodeError`: If it is no LoRA adapter of a sequence classifier, or a file is damaged.
    """

    def __init__(self, folder: Path, *, named: str):
        self.named = named
        self._config = read_json(folder / ADAPTER_FILE)
        self._check()
        self._pairs, self._whole = _read_weights(folder, named)
        base, revision = (self._config.get(key) or "" for key in ("base_model_name_or_path", "revision"))
        if not isinstance(base, str) or not isinstance(revision, str):
            raise QualcodeError(f"adapter {named} names no base model in {ADAPTER_FILE}; copy or download it again")
        self.base = f"{base}@{revision}" if base and revision else base

    def _check(self) -> None:
        config, named = self._config, self.named
        if config.get("peft_type") != "LORA" or config.get("task_type") != TASK_TYPE:
            raise QualcodeError(
                f"adapter {named} is of type {str(config.get('peft_type'))[:40]!r} for task "
                f"{str(config.get('task_type'))[:40]!r}; a reranker is a LORA adapter for task {TASK_TYPE}"
            )
        asked = [name for name in _UNKNOWN if config.get(name)]
        start = config.get("init_lora_weights")
        if not any(start is known or (isinstance(start, str) and start == known) for known in _STARTS):
            asked.append("init_lora_weights")
        if asked:
            raise QualcodeError(
                f"adapter {named} was trained with {asked[0]}, which is not merged here; merge it with peft's "
                "merge_and_unload, and load the whole model"
            )
        patterns = config.get("alpha_pattern") or {}
        alphas = [config.get("lora_alpha"), *(patterns.values() if isinstance(patterns, dict) else [None])]
        if not all(type(alpha) in (int, float) and abs(alpha) < _LARGEST_ALPHA for alpha in alphas):
            raise QualcodeError(f"adapter {named} has no number as lora_alpha or alpha_pattern; download it again")
        for name in ("use_rslora", "fan_in_fan_out"):
            if config.get(name) not in (None, True, False):
                raise QualcodeError(
                    f"adapter {named} has {name} {str(config[name])[:40]!r}, expected true or false; download it again"
                )
        # A name of a module, with dots; peft takes it for a pattern, and so needs no other sign.
        if not all(re.fullmatch(r"\^?[\w.]+", name) for name in patterns):
            raise QualcodeError(
                f"adapter {named} has patterns in alpha_pattern, which are not read here; merge it with peft's "
                "merge_and_unload, and load the whole model"
            )

    @torch.no_grad()
    def merge_into(self, model: torch.nn.Module) -> None:
        """Adds the adapter to the weights of `model`, and replaces its head. Sums are in float32.

        Raises:
            `QualcodeError`: If the two do not fit.
        """
        parameters = dict(model.named_parameters())
        for module, sides in self._pairs.items():
            weight = self._parameter(parameters, f"{module}.weight")
            change = self._scale(module, len(sides["A"])) * (sides["B"].float() @ sides["A"].float())
            if self._config.get("fan_in_fan_out"):
                change = change.T
            self._check_shape(f"{module}.weight", change, weight)
            weight.copy_(weight.float() + change.to(weight.device))
        for name, tensor in self._whole.items():
            weight = self._parameter(parameters, name)
            self._check_shape(name, tensor, weight)
            weight.copy_(tensor)

    def head_tensors(self) -> frozenset[str]:
        """Names of the parameters that the adapter holds whole."""
        return frozenset(self._whole)

    def _scale(self, module: str, rank: int) -> float:
        alpha = self._config["lora_alpha"]
        for name, special in (self._config.get("alpha_pattern") or {}).items():
            if module == name.removeprefix("^") or (not name.startswith("^") and module.endswith(f".{name}")):
                alpha = special
                break
        return alpha / (math.sqrt(rank) if self._config.get("use_rslora") else rank)

    def _parameter(self, parameters: Mapping[str, Tensor], name: str) -> Tensor:
        if name not in parameters:
            raise QualcodeError(
                f"adapter {self.named} changes {name[:80]!r}, which its base model {self.base[:80]!r} does not have; "
                "name the model it was trained on: Reranker.from_pretrained(adapter, base=...)"
            )
        return parameters[name]

    def _check_shape(self, name: str, tensor: Tensor, weight: Tensor) -> None:
        if tensor.shape != weight.shape:
            raise QualcodeError(
                f"adapter {self.named} has {name[:80]!r} of shape {list(tensor.shape)}, and its base model "
                f"{list(weight.shape)}; name the model it was trained on: Reranker.from_pretrained(adapter, base=...)"
            )


def _read_weights(folder: Path, named: str) -> tuple[dict[str, dict[str, Any]], dict[str, Tensor]]:
    """Low-rank sides by module, and whole tensors by name."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        tensors = load_file(folder / WEIGHTS_FILE)
    except FileNotFoundError:
        raise QualcodeError(
            f"adapter {named} has no {WEIGHTS_FILE} (pickled weights are never read); save it as safetensors"
        ) from None
    except (OSError, SafetensorError) as error:
        reason = " ".join(str(error).split())[:200]
        raise QualcodeError(f"weights of adapter {named} cannot be read ({reason}); download it again") from error
    pairs: dict[str, dict[str, Tensor]] = {}
    whole: dict[str, Tensor] = {}
    for key, tensor in tensors.items():
        name = key.removeprefix(_PREFIX)
        low_rank = _LOW_RANK.fullmatch(name)
        if not key.startswith(_PREFIX) or not tensor.is_floating_point() or ("lora_" in name and not low_rank):
            raise QualcodeError(
                f"adapter {named} has the tensor {key[:80]!r}, which is none of a LoRA adapter of linear layers"
            )
        if low_rank:
            pairs.setdefault(low_rank["module"], {})[low_rank["side"]] = tensor
        else:
            whole[name] = tensor
    for module, sides in pairs.items():
        fits = sides.keys() == {"A", "B"} and all(side.ndim == 2 for side in sides.values())
        if not fits or not len(sides["A"]) or len(sides["A"]) != sides["B"].shape[1]:
            raise QualcodeError(f"adapter {named} has no two matrices that fit for {module[:80]!r}; download it again")
    return pairs, whole
