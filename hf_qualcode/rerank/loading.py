"""From an id or a folder to a reranker's parts: ours, LoRA adapters, and what others saved."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch

from hf_qualcode.devices import choose_dtype, default_device
from hf_qualcode.hub import resolve_model
from hf_qualcode.rerank.adapters import Adapter
from hf_qualcode.rerank.settings import ADAPTER_FILE, RerankerSettings, read_json, resolve_tags, resolve_wording
from hf_qualcode.types import QualcodeError, UsageError


# Of sentence-transformers' modules, those of a cross-encoder whose weights all lie in the transformer.
_READ_MODULES = ("Transformer", "LogitScore")
_LARGEST_LIST = 2**20


class RerankerParts(NamedTuple):
    """What a `Reranker` is made of; `base` is the name of the model that an adapter was put on."""

    backbone: Any
    tags: Callable[[str], str] | None
    fusion: Any
    wording: Callable[[str], str] | None
    base: str | None


def load_reranker_parts(
    name: str, *, device: str | None, precision: str, max_length: int | None, fusion: bool, base: str | None
) -> RerankerParts:
    """Loads what `Reranker.from_pretrained` describes.

    Raises:
        `UsageError`: If `name` names nothing.
        `QualcodeError`: If what it names is no reranker.
    """
    from hf_qualcode.rerank.backbones import backbone_names, load_backbone, restore_reading

    place = _device(device)
    folder = resolve_model(name)
    settings = RerankerSettings.read(folder)
    if settings.backbone is not None and settings.backbone not in backbone_names():
        raise QualcodeError(
            f"reranker {name} was saved with the backbone {settings.backbone[:40]!r}, which this version does not "
            f"have (it has: {', '.join(backbone_names())}); install the hf-qualcode that made it"
        )
    tags = None if settings.tags is None else resolve_tags(settings.tags, folder)
    options = {
        "backbone": settings.backbone,
        "device": place,
        "precision": precision,
        "max_length": settings.max_length if max_length is None else max_length,
    }
    if (folder / ADAPTER_FILE).is_file():
        adapter = Adapter(folder, named=name)
        base = base or settings.base or adapter.base
        backbone = _load_with_adapter(adapter, base, options)
        # The base model's folder does not know how the adapter was trained to read.
        restore_reading(backbone, settings.others, named=name)
    else:
        _refuse_other_modules(folder, name)
        backbone = load_backbone(folder, **options)
    fused = _load_fusion(folder) if fusion and settings.fusion is not None else None
    wording = None if settings.wording is None else resolve_wording(settings.wording)
    return RerankerParts(backbone, tags, fused, wording, base)


def _device(name: str | None) -> torch.device:
    try:
        device = default_device() if name is None else torch.device(name)
        torch.empty(0, device=device)
        if device.type == "meta":
            raise RuntimeError("it holds no numbers")
    except (RuntimeError, AssertionError, NotImplementedError, TypeError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise UsageError(f"device {name!r} cannot be used here ({reason}); name another, such as cpu") from error
    return device


def _load_with_adapter(adapter: Adapter, base: str, options: dict[str, Any]) -> Any:
    """The backbone of the base model with the adapter merged into it."""
    from hf_qualcode.rerank.backbones import load_backbone

    if not base:
        raise QualcodeError(
            f"adapter {adapter.named} does not say which model it belongs to; name it: "
            "Reranker.from_pretrained(adapter, base=...)"
        )
    try:
        folder = resolve_model(base)
    except QualcodeError as error:
        raise type(error)(f"base model of adapter {adapter.named}: {error}") from error
    if (folder / ADAPTER_FILE).is_file():
        raise QualcodeError(f"adapter {adapter.named} names another adapter, {base[:80]!r}, as its base model")
    device, precision = options["device"], options["precision"]
    if precision == "auto":
        precision = "bfloat16" if choose_dtype("auto", device) == torch.bfloat16 else "float32"
    # The head, which the base may not have, comes with the adapter.
    backbone = load_backbone(folder, **{**options, "precision": precision, "training": True})
    adapter.merge_into(backbone.model)
    _check_head(adapter, backbone, folder, base)
    backbone.model.eval()
    return backbone


def _check_head(adapter: Adapter, backbone: Any, folder: Path, base: str) -> None:
    """Refuses a head of which a part came neither with the adapter nor with its base."""
    from hf_qualcode.rerank.backbones._folder import ModelFolder
    from hf_qualcode.rerank.modeling import head_modules

    model_folder = ModelFolder(folder, base)
    if model_folder.architecture.endswith("ForCausalLM"):
        return  # made of the language model's own head
    given = adapter.head_tensors() | model_folder.tensor_files.keys()
    of_head = {id(tensor) for module in head_modules(backbone.model) for tensor in module.parameters()}
    for name, tensor in backbone.model.named_parameters():
        # A body that was saved alone has names without the prefix.
        known = name in given or name.removeprefix(f"{backbone.model.base_model_prefix}.") in given
        if id(tensor) in of_head and not known:
            from hf_qualcode.rerank.modeling import head_names

            raise QualcodeError(
                f"adapter {adapter.named} lacks {name}, so its scores would be random; train it with modules_to_save="
                f"{head_names(backbone.model)}, as RerankTrainer does"
            )


def _refuse_other_modules(folder: Path, name: str) -> None:
    """Refuses a folder of sentence-transformers whose score is more than the transformer's logit."""
    path = folder / "modules.json"
    if not path.is_file():
        return
    try:
        if path.stat().st_size > _LARGEST_LIST:
            raise ValueError(f"larger than {_LARGEST_LIST} bytes")
        modules = json.loads(path.read_text(encoding="utf-8"))
        kinds = [str(module["type"]).rpartition(".")[2] for module in modules]
    except (OSError, ValueError, RecursionError, TypeError, KeyError) as error:
        raise QualcodeError(f"{path} is no list of modules ({error}); copy or download the model again") from error
    others = [kind for kind in kinds if kind not in _READ_MODULES]
    if others:
        raise QualcodeError(
            f"{name} is no reranker of one model: its modules.json has a {others[0][:40]} module, "
            + ("so it encodes single texts; name a cross-encoder" if "Pooling" in others else "which is not run here")
        )
    if read_json(folder / "sentence_bert_config.json").get("do_lower_case"):
        raise QualcodeError(f"{name} has texts lower-cased before the tokenizer, which is not done here")


def _load_fusion(folder: Path) -> Any:
    from hf_qualcode.rerank.fusion import Fusion

    return Fusion.load(folder)
