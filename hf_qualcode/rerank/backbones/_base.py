"""What all backbones share: texts to tensors, and tensors to scores."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from hf_qualcode.rerank.backbones._reading import CODE_SHARE, PairReader, PairTemplate
from hf_qualcode.rerank.inputs import EncodedInput, EncodedInputs
from hf_qualcode.rerank.modeling import is_decoder, score_at_positions, use_float32_head
from hf_qualcode.types import QualcodeError, UsageError


class Backbone:
    """A reranking model and how it reads instruction, query and code.

    A copy that is sent to another process (a worker of a data loader) encodes and collates, and has no model.

    Args:
        name (`str`): Module name in `hf_qualcode.rerank.backbones`.
        model (`PreTrainedModel`): A stock sequence classifier with one label.
        tokenizer (`PreTrainedTokenizerFast`): Its tokenizer, with a padding token.
        template (`PairTemplate`): What stands around the texts.
        max_length (`int`): Tokens of an input, special ones and template included.
        template_id (*optional*): What `settings()` says of the template; must lead to the same one when loaded.
        license (`str`, *optional*): Id of the licence on which the weights were published, which reaches whatever is
            derived from them; `None` where it is not known.
        source (`str`): What messages call the model.

    Raises:
        `QualcodeError`: If tokenizer and model do not fit.

    Attributes:
        is_decoder (`bool`): Whether scores stand at the last token, and candidates of a query can share its prefix.
        device (`torch.device`): Where the model was put when it was loaded.
    """

    def __init__(
        self,
        *,
        name: str,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerFast,
        template: PairTemplate,
        max_length: int,
        template_id: Any = None,
        license: str | None = None,
        source: str,
    ):
        self.name, self.source, self.license = name, source, license
        self.model, self.tokenizer, self.max_length = model, tokenizer, max_length
        self.is_decoder = is_decoder(type(model))
        self.device = next(model.parameters()).device
        self._template_id = template_id
        self._reader = PairReader(
            tokenizer, template, max_length=max_length, name=source, shares_prefix=self.is_decoder
        )
        self._padding_id = tokenizer.pad_token_id
        self._num_types = getattr(model.config, "type_vocab_size", None) or 1
        self._check_ids()
        tokenizer.padding_side = "left" if self.is_decoder else "right"
        use_float32_head(model)
        if self.is_decoder:
            score_at_positions(model)

    def settings(self) -> dict[str, Any]:
        """What config.json says under `hf_qualcode`, so that `load_backbone` reads texts in the same way."""
        settings = {"backbone": self.name, "max_length": self.max_length}
        if self.code_share != CODE_SHARE:
            settings["code_share"] = self.code_share
        if self.license is not None:
            # The folder's name, from which it was known, is another one from now on.
            settings["license"] = self.license
        return settings if self._template_id is None else {**settings, "template": self._template_id}

    @property
    def code_share(self) -> float:
        """Of a long input's room, the part that is the code's whatever the query's length. The query is cut to it.

        Raises:
            `UsageError`: When set to anything but a number between 0 and 1.
        """
        return self._reader.code_share

    @code_share.setter
    def code_share(self, share: float) -> None:
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share < 1:
            raise UsageError(f"code_share is {share!r}; expected a number between 0 and 1")
        self._reader.code_share = float(share)

    def text_pair(self, instruction: str, query: str, code: str) -> tuple[str, str]:
        """The very texts that stock tools are given as text and its pair."""
        return self._reader.text_pair(instruction, query, code)

    def encode(self, instructions: Sequence[str], queries: Sequence[str], codes: Sequence[str]) -> EncodedInputs:
        """Token ids of each input; see `PairReader`."""
        return self._reader(instructions, queries, codes)

    def collate(self, inputs: Sequence[EncodedInput]) -> dict[str, Tensor]:
        """A batch of inputs of any lengths, on the CPU.

        Returns:
            `dict[str, Tensor]`: `input_ids` and `attention_mask`, and `token_type_ids` or `position_ids` where the
            model has them, each [num_inputs, longest]. Decoders are padded on the left.
        """
        longest = max(len(encoded.ids) for encoded in inputs)
        shape = (len(inputs), longest)
        batch = {
            "input_ids": torch.full(shape, self._padding_id),
            "attention_mask": torch.zeros(shape, dtype=torch.long),
        }
        if self.is_decoder:
            batch["position_ids"] = torch.zeros(shape, dtype=torch.long)
        elif self._with_types(inputs):
            batch["token_type_ids"] = torch.zeros(shape, dtype=torch.long)
        for row, encoded in enumerate(inputs):
            length = len(encoded.ids)
            real = slice(longest - length, longest) if self.is_decoder else slice(length)
            batch["input_ids"][row, real] = torch.tensor(encoded.ids)
            batch["attention_mask"][row, real] = 1
            if self.is_decoder:
                batch["position_ids"][row, real] = torch.arange(length)
            elif "token_type_ids" in batch:
                batch["token_type_ids"][row, real] = torch.tensor(encoded.type_ids)
        return batch

    def scores(self, model: torch.nn.Module, batch: dict[str, Tensor]) -> Tensor:
        """Scores of a batch, with gradient where the model has one.

        Args:
            model (`nn.Module`): `self.model`, or a wrapper of it (DDP, peft), which is called once.
            batch (`dict[str, Tensor]`): From `collate`, or `shared_prefix.pack`.

        Returns:
            `Tensor`: [num_inputs], float32 (float64 for a model in float64).
        """
        device = next(model.parameters()).device
        logits = model(**{name: tensor.to(device) for name, tensor in batch.items()}).logits[:, 0]
        return logits if logits.dtype == torch.float64 else logits.float()

    def _check_ids(self) -> None:
        """Refuses a tokenizer whose tokens the model has no embeddings for. An accelerator would stop at the first."""
        num_embeddings = self.model.get_input_embeddings().weight.shape[0]
        largest = max(self._reader.largest_id(num_embeddings), self._padding_id)
        segment = self._reader.largest_segment()
        if largest >= num_embeddings or (self._num_types > 1 and segment >= self._num_types):
            what = f"token {largest}" if largest >= num_embeddings else f"segment {segment}"
            raise QualcodeError(
                f"the tokenizer of {self.source} makes {what}, and its model has {num_embeddings} embeddings of "
                f"tokens and {self._num_types} of segments; they do not belong together: copy or download the model "
                "again"
            )

    def _with_types(self, inputs: Sequence[EncodedInput]) -> bool:
        types = [encoded.type_ids for encoded in inputs]
        return self._num_types > 1 and None not in types

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "model": None}
