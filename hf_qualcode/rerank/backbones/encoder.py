"""Any encoder: instruction, newline and query as the first segment, the code as the second."""

from hf_qualcode.rerank.backbones._base import Backbone
from hf_qualcode.rerank.backbones._folder import ModelFolder
from hf_qualcode.rerank.backbones._loading import (
    LoadOptions,
    classifier_class,
    load_classifier,
    load_config,
    load_tokenizer,
    max_length,
)
from hf_qualcode.rerank.backbones._reading import BARE
from hf_qualcode.rerank.modeling import is_decoder
from hf_qualcode.types import QualcodeError


def claims(folder: ModelFolder) -> int:
    """How well this family fits a folder: 1, for any that no other family knows."""
    return 1


def load(folder: ModelFolder, options: LoadOptions, *, name: str = "encoder", license=None, tensors=None) -> Backbone:
    """The backbone in a folder.

    Args:
        folder (`ModelFolder`): A sequence classifier, or in training any encoder, which gets a new head.
        options (`LoadOptions`): See `load_backbone`.
        name, license, tensors (*optional*): Of the family that reads its model as this one does.

    Raises:
        `QualcodeError`: If it cannot be loaded, or is a decoder.
    """
    config = load_config(folder)
    if is_decoder(classifier_class(folder, config)):
        raise QualcodeError(f"{folder.name} ({folder.architecture}) is a decoder; read it by the backbone 'causal'")
    if getattr(config, "is_decoder", False):
        raise QualcodeError(
            f"config.json of {folder.name} has is_decoder true, so the token that is scored would see no text; take "
            "the setting out, or copy the model again"
        )
    tokenizer = load_tokenizer(folder)
    model = load_classifier(folder, config, options, tensors=tensors)
    if options.device is not None:
        model.to(options.device)
    return Backbone(
        name=name,
        model=model,
        tokenizer=tokenizer,
        template=BARE,
        max_length=max_length(folder, options),
        license=license,
        source=folder.name,
    )
