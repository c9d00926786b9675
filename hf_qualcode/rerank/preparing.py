"""What must hold before a model is trained: settings that go together, float32 weights, a head that is saved whole."""

import copy
import zipfile
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from hf_qualcode.rerank.adapters import TASK_TYPE
from hf_qualcode.rerank.config import RerankConfig
from hf_qualcode.rerank.measuring import available_metrics
from hf_qualcode.rerank.modeling import head_names
from hf_qualcode.rerank.settings import CONFIG_FILE, read_json
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


def find_checkpoint(given: Any, output_dir: str) -> Path | None:
    """The checkpoint to resume from: a folder, or with `True` the newest of `output_dir`.

    Raises:
        `UsageError`: If there is none, or `given` names none.
    """
    if given is None or given is False:
        return None
    if given is True:
        from transformers.trainer_utils import get_last_checkpoint

        newest = get_last_checkpoint(output_dir) if Path(output_dir).is_dir() else None
        if newest is None:
            raise UsageError(f"{output_dir} has no checkpoint to resume from; leave resume_from_checkpoint out")
        return Path(newest)
    if not isinstance(given, str | Path) or not str(given):
        raise UsageError(f"resume_from_checkpoint is {given!r:.60}; give the folder of a checkpoint, or True")
    return Path(given)


def check_checkpoint(folder: Path, model: nn.Module, *, sharded: bool) -> None:
    """Refuses a checkpoint that lacks what resuming needs, was cut amid writing, or is of another model.

    Args:
        folder (`Path`): Of the checkpoint.
        model (`nn.Module`): What goes on to be trained.
        sharded (`bool`): Whether weights and optimizer are spread over processes, in files of other names.

    Raises:
        `QualcodeError`: If a file is missing or damaged.
    """
    if not folder.is_dir():
        raise QualcodeError(f"no checkpoint {folder}: there is no such folder")
    needed = ["trainer_state.json", "scheduler.pt"] + ["optimizer.pt"] * (not sharded)
    missing = [name for name in needed if not (folder / name).is_file()]
    for pattern in ["rng_state*.pth"] + ["*.safetensors"] * (not sharded):
        if not any(path.is_file() for path in folder.glob(pattern)):
            missing.append(pattern)
    if missing:
        raise QualcodeError(f"checkpoint {folder} is not whole: it lacks {', '.join(missing)}; resume from another")
    _check_state(folder / "trainer_state.json")
    if (folder / CONFIG_FILE).is_file():
        _read_json(folder / CONFIG_FILE)  # the trainer asks it for the version of transformers
    for path in sorted({*folder.glob("rng_state*.pth"), *(folder / name for name in needed if name.endswith(".pt"))}):
        # torch writes zip archives, whose table of contents stands at the end.
        if not path.is_file() or not zipfile.is_zipfile(path):
            raise _damaged(path)
    if not sharded:
        _check_weights(folder, model)


def _read_json(path: Path) -> dict[str, Any]:
    try:
        return read_json(path)
    except QualcodeError as error:
        raise _damaged(path) from error


def _damaged(path: Path) -> QualcodeError:
    return QualcodeError(
        f"checkpoint {path.parent}: {path.name} is damaged, as when a run is stopped amid saving; resume from another"
    )


def _check_state(path: Path) -> None:
    from transformers import TrainerState

    content = _read_json(path)
    wrong = [name for name in content if name not in {each.name for each in fields(TrainerState)}]
    for name, kind in (("global_step", int), ("max_steps", int), ("log_history", list), ("epoch", int | float)):
        value = content.get(name)
        if not isinstance(value, kind) or isinstance(value, bool) or (kind is not list and not value >= 0):
            wrong.append(name)
    size = content.get("train_batch_size")
    if size is not None and type(size) is not int:
        wrong.append("train_batch_size")
    if wrong or content["global_step"] > content["max_steps"]:
        name = wrong[0] if wrong else "global_step"
        raise QualcodeError(
            f"checkpoint {path.parent}: {path.name} has {name[:40]} {content.get(name)!r:.40}, which no trainer "
            "writes; resume from another"
        )


def _check_weights(folder: Path, model: nn.Module) -> None:
    """Weights of other names are left out without a word where a checkpoint is loaded, and the model's stay new."""
    from safetensors import SafetensorError, safe_open

    shapes: dict[str, tuple[int, ...]] = {}
    for path in sorted(folder.glob("*.safetensors")):
        try:
            with safe_open(path, framework="pt") as weights:
                for name in weights.keys():  # noqa: SIM118
                    shapes[name] = tuple(weights.get_slice(name).get_shape())
        except (OSError, SafetensorError) as error:
            raise _damaged(path) from error
    if hasattr(model, "peft_config"):
        return  # peft, which renames them, says what it misses
    for name, weight in model.named_parameters():
        # Of tied weights one is saved.
        if name in shapes and shapes[name] != tuple(weight.shape):
            raise QualcodeError(
                f"checkpoint {folder} has {name} of shape {list(shapes[name])}, and the model {list(weight.shape)}; "
                "it is of another model: resume from one of this"
            )
    known = model.state_dict().keys()
    unknown = sorted(shapes.keys() - known)
    lost = [] if getattr(model, "_tied_weights_keys", None) else sorted(known - shapes.keys() - _buffers(model))
    if unknown or lost:
        has, name = ("has", unknown[0]) if unknown else ("lacks", lost[0])
        raise QualcodeError(
            f"checkpoint {folder} {has} {name}, so it is cut or of another model ({len(unknown) + len(lost)} such in "
            "all); resume from another"
        )


def _buffers(model: nn.Module) -> set[str]:
    return {name for name, _ in model.named_buffers()}
