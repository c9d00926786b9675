"""Model and tokenizer from a folder that nobody vouches for."""

import contextlib
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import torch
from torch import Tensor
from transformers import (
    MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING,
    AutoConfig,
    AutoTokenizer,
    PretrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)
from transformers.utils import logging

from hf_qualcode.rerank.backbones._folder import ModelFolder
from hf_qualcode.rerank.modeling import head_modules, is_decoder
from hf_qualcode.types import QualcodeError


CLASSIFIER = "ForSequenceClassification"
# Longer inputs are possible where a model allows them, by `max_length`.
_LONGEST = 8192
# As safetensors names its types.
_FLOATING = ("F64", "F32", "F16", "BF16")
_OF_A_LAYER = re.compile(r"\blayers?\.\d+\.")


class LoadOptions(NamedTuple):
    """How a backbone is loaded; see `load_backbone`.

    Attributes:
        training (`bool`): Whether a model without a head gets a new one.
        dtype (`torch.dtype`): Of the body.
        device (`torch.device`, *optional*): Where the model goes; stays on the CPU when absent.
        max_length (`int`, *optional*): Tokens of an input, at most what the model can read.
    """

    training: bool
    dtype: torch.dtype
    device: torch.device | None
    max_length: int | None


def load_config(folder: ModelFolder) -> PretrainedConfig:
    """The configuration of a folder, by the class of transformers.

    Raises:
        `QualcodeError`: If transformers does not know it, or it is damaged.
    """
    with loading(folder, "configuration"):
        config = AutoConfig.from_pretrained(folder.path, local_files_only=True, trust_remote_code=False)
    # What is saved later needs no code of its own, and must not ask for it.
    config.__dict__.pop("auto_map", None)
    return config


def classifier_class(folder: ModelFolder, config: PretrainedConfig) -> type[PreTrainedModel]:
    """The stock sequence classifier of a configuration.

    Raises:
        `QualcodeError`: If transformers has none.
    """
    if type(config) not in MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING:
        raise QualcodeError(
            f"reranker {folder.name} has model type {folder.model_type!r}, for which transformers has no "
            "sequence classifier; name a model that has one"
        )
    found = MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING[type(config)]
    return found[0] if isinstance(found, tuple) else found


def load_classifier(
    folder: ModelFolder,
    config: PretrainedConfig,
    options: LoadOptions,
    *,
    tensors: Mapping[str, Tensor] | None = None,
    new: frozenset[str] = frozenset(),
) -> PreTrainedModel:
    """The classifier in a folder: one label, body in `options.dtype`, head in float32.

    Args:
        folder (`ModelFolder`): Where it lies.
        config (`PretrainedConfig`): Of the folder.
        options (`LoadOptions`): Whether a head may be new, and the body's precision.
        tensors (`Mapping[str, Tensor]`, *optional*): The weights under the names of the stock class; defaults to the
            folder's own.
        new (`frozenset[str]`): Weights that the caller sets.

    Raises:
        `QualcodeError`: If it cannot be loaded, has several labels, or lacks weights.
    """
    trained = folder.architecture.endswith(CLASSIFIER)
    if trained and config.num_labels != 1:
        raise QualcodeError(
            f"{folder.name} has {config.num_labels} labels; a reranker gives one score and has 1 label"
        )
    if not trained and not new and not options.training:
        raise QualcodeError(
            f"{folder.name} ({folder.architecture or 'no architecture named'}) has no trained head, so its scores "
            "would be random; name a reranker with 1 label, or train one from it"
        )
    config.num_labels = 1
    model_class = classifier_class(folder, config)
    extra = {
        "config": config,
        "dtype": torch.float32 if not is_decoder(model_class) else options.dtype,
        "output_loading_info": True,
        # Said below, with the shapes.
        "ignore_mismatched_sizes": True,
    }
    with loading(folder, "weights"):
        if tensors is None:
            model, report = model_class.from_pretrained(
                folder.path, use_safetensors=True, local_files_only=True, **extra
            )
        else:
            model, report = model_class.from_pretrained(None, state_dict=dict(tensors), **extra)
    _refuse_misfits(folder, model, report["mismatched_keys"])
    _refuse_missing(folder, model, set(report["missing_keys"]) - new, may_lack_head=options.training and not trained)
    left_out = sorted(name for name in report["unexpected_keys"] if _OF_A_LAYER.search(name))
    if left_out:
        raise QualcodeError(
            f"weights of {folder.name} have {left_out[0]} ({len(left_out)} such in all), for which its config.json "
            "has no layer; it is damaged: copy or download the model again"
        )
    if is_decoder(model_class) and "score.weight" in folder.tensor_files:
        # The head again, in all its digits.
        model.score.weight.data = folder.tensor("score.weight").float()
    elif options.dtype != torch.float32 and not is_decoder(model_class):
        heads = {id(tensor) for head in head_modules(model) for tensor in head.parameters()}
        for parameter in model.parameters():
            if id(parameter) not in heads:
                parameter.data = parameter.data.to(options.dtype)
    return model.train(options.training)


def _refuse_misfits(folder: ModelFolder, model: PreTrainedModel, misfits: Iterable[tuple]) -> None:
    """Refuses weights of another shape than the configuration's, and such as are no floating point numbers."""
    for name, found, expected in sorted(misfits, key=str):
        raise QualcodeError(
            f"weights of {folder.name} have {name} of shape {list(found)}, and its config.json {list(expected)}; they "
            "do not belong together: copy or download the model again"
        )
    prefix = f"{model.base_model_prefix}."
    weights = {name.removeprefix(prefix) for name, _ in model.named_parameters()}
    for name, kind in folder.tensor_kinds.items():
        if not kind.startswith(_FLOATING) and name.removeprefix(prefix) in weights:
            raise QualcodeError(
                f"weights of {folder.name} have {name} of type {kind}, expected floating point numbers; they are "
                "damaged or quantised: name a model in float32, float16 or bfloat16"
            )


def _refuse_missing(folder: ModelFolder, model: PreTrainedModel, missing: set[str], *, may_lack_head: bool) -> None:
    if may_lack_head:
        heads = head_modules(model)
        of_head = {id(tensor) for head in heads for tensor in head.parameters()}
        missing = {name for name in missing if id(model.get_parameter(name)) not in of_head}
    if missing:
        raise QualcodeError(
            f"weights of {folder.name} lack {min(missing)} ({len(missing)} in all), so its scores would be random; "
            "name a model that was trained as a reranker"
        )


def load_tokenizer(folder: ModelFolder) -> PreTrainedTokenizerFast:
    """The tokenizer of a folder, with a padding token.

    Raises:
        `QualcodeError`: If it cannot be loaded, or is no fast one.
    """
    with loading(folder, "tokenizer"):
        tokenizer = AutoTokenizer.from_pretrained(folder.path, local_files_only=True, trust_remote_code=False)
    tokenizer.init_kwargs.pop("auto_map", None)
    if not tokenizer.is_fast:
        raise QualcodeError(f"reranker {folder.name} has no tokenizer.json; save its tokenizer as a fast one")
    if tokenizer.pad_token_id is None:
        if tokenizer.eos_token_id is None:
            raise QualcodeError(f"the tokenizer of {folder.name} has neither a padding nor an end token; set one")
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def max_length(folder: ModelFolder, options: LoadOptions) -> int:
    """Tokens of an input: as asked, as the folder says it was trained, or as the model allows."""
    saved = folder.settings.get("max_length")
    wanted = options.max_length or (saved if isinstance(saved, int) and saved > 0 else _LONGEST)
    if options.max_length is None:
        wanted = min(wanted, folder.usual_length)
    return min(wanted, folder.longest())


@contextlib.contextmanager
def loading(folder: ModelFolder, part: str) -> Iterator[None]:
    """Quiet, and with one line for whatever the libraries raise for damaged files."""
    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    except QualcodeError:
        raise
    except Exception as error:  # an odd configuration, or a damaged tokenizer, raises anything
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise QualcodeError(
            f"{part} of reranker {folder.name} cannot be loaded: {reason}; copy or download the model again, or name "
            "another"
        ) from error
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()
