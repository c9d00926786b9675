"""Families of reranking models. One module a family, found by its name.

A module `hf_qualcode/rerank/backbones/<name>.py` defines `claims(folder) -> int`, how well it fits a model's folder
(0: not at all), and `load(folder, options) -> Backbone`; adding a family is adding that file.
"""

import functools
import importlib
import pkgutil
from pathlib import Path

from hf_qualcode.types import UsageError


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
    if max_length is not None and max_length < 1:
        raise UsageError(f"maximum length {max_length} is not positive; give a number of tokens")
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
    return families[name].load(folder, LoadOptions(training, dtype, place, max_length))
