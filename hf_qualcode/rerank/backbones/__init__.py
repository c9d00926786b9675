"""Families of reranking models. One module a family, found by its name.

A module `hf_qualcode/rerank/backbones/<name>.py` defines `claims(folder) -> int`, how well it fits a model's folder
(0: not at all), and `load(folder, options) -> Backbone`; adding a family is adding that file.
"""

import functools
import importlib
import pkgutil
from collections.abc import Mapping
from numbers import Integral
from pathlib import Path
from typing import Any

from hf_qualcode.types import QualcodeError, UsageError


@functools.cache
def backbone_names() -> tuple[str, ...]:
    """Returns the names of all families, sorted."""
    return tuple(sorted(found.name for found in pkgutil.iter_modules(__path__) if found.name[0] != "_"))


def load_backbone(
    source: str | Path,
    *,
    backbone: str | None = None,
    training: bool = False,
    device=None,
    precision: str = "auto",
    max_length: int | None = None,
    seed: int | None = None,
):
    """A reranking model, and how it reads its inputs.

    Args:
        source (`str` or `Path`): A folder, a Hub id, or `"minilm"`, the packaged encoder.
        backbone (`str`, *optional*): Family; defaults to the one the folder was saved with, else the one that fits it.
        training (`bool`, *optional*, defaults to `False`):
            Load in float32 and in training mode, on the CPU unless `device` says otherwise, and give a model without a
            head a new one.
        device (`str` or `torch.device`, *optional*): Defaults to the accelerator that torch finds, else the CPU.
        precision (`str`, *optional*, defaults to `"auto"`):
            `"float32"`, `"bfloat16"` or `"auto"`: of the body, the head is always in float32.
        max_length (`int`, *optional*): Tokens of an input; defaults to the folder's own, at most what the model reads.
        seed (`int`, *optional*):
            Of a new head, which is drawn here, before a trainer sets its own seed. By default torch's generator goes
            on from where it is, so set it first (`transformers.set_seed`) where a run is to be repeated.

    Returns:
        `Backbone`: In eval mode unless `training`.

    Raises:
        `UsageError`: If there is no such family, model or precision.
        `QualcodeError`: If the model cannot be loaded, has several labels or no trained head, or its template or
            tokenizer does not fit.
    """
    import torch

    from hf_qualcode.devices import choose_dtype, default_device
    from hf_qualcode.hub import resolve_model
    from hf_qualcode.rerank.backbones._folder import ModelFolder
    from hf_qualcode.rerank.backbones._loading import LoadOptions

    if precision not in ("auto", "float32", "bfloat16"):
        raise UsageError(f"unknown precision {precision!r}; choose one of: auto, float32, bfloat16")
    if backbone is not None and backbone not in backbone_names():
        raise UsageError(f"unknown backbone {backbone!r}; choose one of: {', '.join(backbone_names())}")
    if max_length is not None:
        if isinstance(max_length, bool) or not isinstance(max_length, Integral):
            raise UsageError(f"maximum length {max_length!r:.60} is no integer; give a number of tokens")
        if max_length < 1:
            raise UsageError(f"maximum length {max_length} is not positive; give a number of tokens")
        max_length = int(max_length)
    folder = ModelFolder(resolve_model(str(source)), str(source))
    families = {name: importlib.import_module(f"{__name__}.{name}") for name in backbone_names()}
    saved = folder.settings.get("backbone")
    name = backbone or (saved if isinstance(saved, str) else None)
    if name not in families:
        name = max(families, key=lambda family: families[family].claims(folder))
    place = torch.device(device) if device is not None else (None if training else default_device())
    if training:
        # Master weights: half precision comes by autocast.
        dtype = torch.bfloat16 if precision == "bfloat16" else torch.float32
    else:
        dtype = choose_dtype(precision, place)
    options = LoadOptions(training, dtype, place, max_length)
    with torch.random.fork_rng(devices=[], enabled=seed is not None):  # weights are drawn on the CPU
        if seed is not None:
            torch.manual_seed(seed)
        made = families[name].load(folder, options)
    restore_reading(made, folder.settings, named=folder.name)
    return made


def restore_reading(made, settings: Mapping[str, Any], *, named: str) -> None:
    """Has a backbone read long inputs as it did when it was saved.

    Args:
        made (`Backbone`): Which.
        settings (`Mapping[str, Any]`): What `Backbone.settings` gave then.
        named (`str`): What messages call the model.

    Raises:
        `QualcodeError`: If they are damaged.
    """
    share = settings.get("code_share")
    if share is None:
        return
    try:
        made.code_share = share
    except UsageError as error:
        raise QualcodeError(f"settings of reranker {named}: {error}; copy or download it again") from error
