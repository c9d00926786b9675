"""What must hold before a model is trained: settings that go together, float32 weights, a head that is saved whole."""

import copy
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from hf_qualcode.rerank.adapters import TASK_TYPE
from hf_qualcode.rerank.config import RerankConfig
from hf_qualcode.rerank.measuring import available_metrics
from hf_qualcode.rerank.modeling import head_names
from hf_qualcode.types import QualcodeError, UsageError


def check_settings(args: RerankConfig, eval_pairs: Sequence, eval_lists: Sequence) -> None:
    """Refuses settings that do not go with each other, with what is measured, or with the devices.

    Raises:
        `UsageError`: On such settings.
    """
    if not isinstance(args, RerankConfig):
        raise UsageError(f"args is a {type(args).__name__}; expected a RerankConfig")
    available = available_metrics(eval_pairs, eval_lists)
    if args.eval_strategy != "no" and not available:
        raise UsageError(f"eval_strategy is {args.eval_strategy!r} and there is nothing to measure; give eval_pairs")
    best = args.metric_for_best_model
    if best is not None and best.removeprefix("eval_") not in available:
        raise UsageError(f"metric_for_best_model is {best!r}; what is measured here: {', '.join(available) or 'none'}")
    if args.n_gpu > 1:
        raise UsageError(
            f"this process sees {args.n_gpu} devices; start it with `accelerate launch` to use all of them, or set "
            "CUDA_VISIBLE_DEVICES=0 to use one"
        )


def check_precision(model: nn.Module) -> None:
    """Refuses to train weights in half precision.

    Raises:
        `QualcodeError`: If there are any.
    """
    for name, weight in model.named_parameters():
        if weight.requires_grad and weight.dtype in (torch.float16, torch.bfloat16):
            raise QualcodeError(
                f"{name} is {weight.dtype}, in which small steps of a weight are lost; load the model with "
                "load_backbone(..., training=True) and set bf16=True for bfloat16 arithmetic"
            )


def set_dropout(model: nn.Module, probability: float) -> None:
    """Sets every dropout probability of a model, those that attention layers hold as numbers included."""
    for module in model.modules():
        if isinstance(module, nn.modules.dropout._DropoutNd):
            module.p = probability
        for name, value in list(vars(module).items()):
            if "dropout" in name and isinstance(value, float):
                setattr(module, name, probability)


def with_adapter(model: Any, peft_config: Any) -> nn.Module:
    """A sequence classifier with an adapter, which trains and saves the head whole.

    The head is what `head_modules` says, whatever a model calls it. peft alone knows `classifier` and `score`: of any
    other part of a new head it would save a change to numbers that are drawn anew wherever the adapter is loaded.

    Args:
        model (`PreTrainedModel`): The classifier, which is changed in place.
        peft_config (`peft.PeftConfig`): The adapter's settings; is not changed.

    Returns:
        `peft.PeftModel`: The wrapper.

    Raises:
        `UsageError`: On settings for another task.
    """
    from peft import get_peft_model

    peft_config = copy.deepcopy(peft_config)
    if peft_config.task_type is None:
        peft_config.task_type = TASK_TYPE
    if peft_config.task_type != TASK_TYPE:
        raise UsageError(f"peft_config is for task {peft_config.task_type}; expected {TASK_TYPE}, which has a head")
    if hasattr(peft_config, "modules_to_save"):
        # peft keeps these out of target_modules, "all-linear" included.
        saved = list(peft_config.modules_to_save or [])
        saved += [name for name in head_names(model) if not any(f".{name}".endswith(f".{each}") for each in saved)]
        peft_config.modules_to_save = saved
    return get_peft_model(model, peft_config)


def keep_float32_scores(fsdp_plugin: Any) -> None:
    """Has sharded models (FSDP2) give their scores as the head computes them, in place.

    Under `mixed_precision: bf16` accelerate casts whatever a module returns to bfloat16, scores included: 8 bits, in
    which many programs of one list get the same number. Weights of the head are still gathered in bfloat16, for it
    shares a group with the embeddings; it computes in float32, so scores have all their digits.

    Args:
        fsdp_plugin (`accelerate.FullyShardedDataParallelPlugin`): Of an accelerator that has prepared no model yet.
    """
    policy = fsdp_plugin.mixed_precision_policy
    # That of FSDP1 has no such field: it does not cast what the model returns.
    if hasattr(policy, "output_dtype"):
        fsdp_plugin.mixed_precision_policy = replace(policy, output_dtype=torch.float32)


def check_checkpoint(folder: Path, *, sharded: bool) -> None:
    """Refuses a checkpoint that lacks what resuming needs.

    Args:
        folder (`Path`): Of the checkpoint.
        sharded (`bool`): Whether weights and optimizer are spread over processes, in files of other names.

    Raises:
        `QualcodeError`: If a file is missing.
    """
    if not folder.is_dir():
        raise QualcodeError(f"no checkpoint {folder}: there is no such folder")
    needed = ["trainer_state.json", "scheduler.pt"] + ["optimizer.pt"] * (not sharded)
    missing = [name for name in needed if not (folder / name).is_file()]
    if not sharded and not any(folder.glob("*.safetensors")):
        missing.append("*.safetensors")
    if missing:
        raise QualcodeError(f"checkpoint {folder} is not whole: it lacks {', '.join(missing)}; resume from another")
