"""Token ids to token states. Both backbones yield the states of texts of equal length together, without padding.

`PackedBert` reads BERT and its kin without importing the model classes of transformers, which takes longer than
encoding a page of hits, and lays the tokens of a batch end to end, so that no layer computes padding and attention
needs no mask. `TransformersBackbone` runs everything else.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from hf_qualcode.retrieve.recipe import OFFSET_POSITIONS, EncoderRecipe
from hf_qualcode.types import QualcodeError


_PACKED_TYPES = ("bert", *OFFSET_POSITIONS)
_SIZES = (
    "hidden_size", "num_attention_heads", "num_hidden_layers", "intermediate_size", "max_position_embeddings"
)  # fmt: skip
_ACTIVATIONS = {
    "gelu": F.gelu,
    "gelu_new": lambda states: F.gelu(states, approximate="tanh"),
    "gelu_pytorch_tanh": lambda states: F.gelu(states, approximate="tanh"),
    "relu": F.relu,
}


class Span(NamedTuple):
    """Texts `start` to `stop` of a batch (exclusive), all of `length` tokens."""

    start: int
    stop: int
    length: int


def equal_length_spans(batch: Sequence[Sequence[int]]) -> list[Span]:
    """Runs of texts with the same number of tokens. Sort the batch by length to have few of them."""
    spans, start = [], 0
    for length, run in groupby(batch, key=len):
        stop = start + sum(1 for _ in run)
        spans.append(Span(start, stop, length))
        start = stop
    return spans


class PackedBert:
    """BERT, RoBERTa, XLM-RoBERTa and CamemBERT encoders over packed tokens, on the CPU.

    Args:
        recipe (`EncoderRecipe`): An encoder that `PackedBert.fits`.
        dtype (`torch.dtype`): Of weights and states.

    Raises:
        `QualcodeError`: If a weight is absent or has another shape than the configuration says.
    """

    def __init__(self, recipe: EncoderRecipe, dtype: torch.dtype):
        config = recipe.config
        self.hidden_size: int = config["hidden_size"]
        self.num_heads: int = config["num_attention_heads"]
        self.epsilon: float = config.get("layer_norm_eps", 1e-12)
        self.activation = _ACTIVATIONS[config.get("hidden_act", "gelu")]
        self.padding_id = config.get("pad_token_id", 1) if config["model_type"] in OFFSET_POSITIONS else None
        weights = _Weights(recipe, dtype)
        self.words = weights.take("embeddings.word_embeddings.weight", None, self.hidden_size)
        # A single text has one segment, so its segment embedding is part of every position's.
        segments = weights.take("embeddings.token_type_embeddings.weight", None, self.hidden_size)
        positions = weights.take(
            "embeddings.position_embeddings.weight", config["max_position_embeddings"], self.hidden_size
        )
        self.positions = positions + segments[0]
        self.norm = weights.take_pair("embeddings.LayerNorm", self.hidden_size)
        self.layers = [self._layer(weights, number, config) for number in range(config["num_hidden_layers"])]

    @staticmethod
    def fits(recipe: EncoderRecipe) -> bool:
        """Whether the configuration asks for nothing that this class lacks."""
        config = recipe.config
        return (
            config.get("model_type") in _PACKED_TYPES
            and all(type(config.get(size)) is int and config[size] > 0 for size in _SIZES)
            and config["hidden_size"] % config["num_attention_heads"] == 0
            and config.get("hidden_act", "gelu") in list(_ACTIVATIONS)
            and config.get("position_embedding_type", "absolute") == "absolute"
            and not config.get("is_decoder")
            and not config.get("add_cross_attention")
            and "quantization_config" not in config
        )

    def __call__(self, batch: Sequence[Sequence[int]]) -> Iterator[tuple[Span, Tensor]]:
        """Run the encoder.

        Args:
            batch (`Sequence[Sequence[int]]`): Token ids of each text, longest first or shortest first.

        Yields:
            `tuple[Span, Tensor]`: A span of the batch and its states `[num_texts, num_tokens, hidden_size]`.
        """
        spans = equal_length_spans(batch)
        ids = torch.tensor([id for row in batch for id in row])
        places = torch.cat([self._places(part, span) for part, span in _parts(ids, spans)])
        embedded = F.embedding(ids, self.words) + F.embedding(places, self.positions)
        states = F.layer_norm(embedded, *self._norm(self.norm))
        for layer in self.layers:
            attended = F.linear(self._attend(F.linear(states, *layer.projections), spans), *layer.attention_output)
            states = F.layer_norm(attended.add_(states), *self._norm(layer.attention_norm))
            expanded = self.activation(F.linear(states, *layer.intermediate))
            states = F.layer_norm(F.linear(expanded, *layer.output).add_(states), *self._norm(layer.output_norm))
        for part, span in _parts(states, spans):
            yield span, part.view(span.stop - span.start, span.length, self.hidden_size)

    def _attend(self, projected: Tensor, spans: list[Span]) -> Tensor:
        """Self-attention within each text.

        Args:
            projected (`Tensor`): Queries, keys and values, `[num_tokens, 3 * hidden_size]`.
            spans (`list[Span]`): Of the batch.

        Returns:
            `Tensor`: `[num_tokens, hidden_size]`.
        """
        attended = projected.new_empty(len(projected), self.hidden_size)
        for (part, span), (target, _) in zip(_parts(projected, spans), _parts(attended, spans), strict=True):
            shape = (span.stop - span.start, span.length, 3, self.num_heads, -1)
            query, key, value = part.view(shape).permute(2, 0, 3, 1, 4)
            heads = F.scaled_dot_product_attention(query, key, value).transpose(1, 2)
            target.view(heads.shape).copy_(heads)
        return attended

    def _places(self, ids: Tensor, span: Span) -> Tensor:
        if self.padding_id is None:
            return torch.arange(span.length).repeat(span.stop - span.start)
        # RoBERTa counts positions from the padding id, and a padding token in the text does not count.
        real = ids.view(-1, span.length) != self.padding_id
        return (real.cumsum(dim=1) * real + self.padding_id).flatten()

    def _norm(self, pair: tuple[Tensor, Tensor]) -> tuple[tuple[int], Tensor, Tensor, float]:
        return (self.hidden_size,), *pair, self.epsilon

    def _layer(self, weights: "_Weights", number: int, config: dict[str, Any]) -> "_Layer":
        name, hidden, inner = f"encoder.layer.{number}", self.hidden_size, config["intermediate_size"]
        parts = [
            weights.take_pair(f"{name}.attention.self.{part}", hidden, hidden) for part in ("query", "key", "value")
        ]
        return _Layer(
            projections=(torch.cat([weight for weight, _ in parts]), torch.cat([bias for _, bias in parts])),
            attention_output=weights.take_pair(f"{name}.attention.output.dense", hidden, hidden),
            attention_norm=weights.take_pair(f"{name}.attention.output.LayerNorm", hidden),
            intermediate=weights.take_pair(f"{name}.intermediate.dense", inner, hidden),
            output=weights.take_pair(f"{name}.output.dense", hidden, inner),
            output_norm=weights.take_pair(f"{name}.output.LayerNorm", hidden),
        )


class _Layer(NamedTuple):
    """(weight, bias) pairs of one layer; `projections` is query, key and value in one matrix."""

    projections: tuple[Tensor, Tensor]
    attention_output: tuple[Tensor, Tensor]
    attention_norm: tuple[Tensor, Tensor]
    intermediate: tuple[Tensor, Tensor]
    output: tuple[Tensor, Tensor]
    output_norm: tuple[Tensor, Tensor]


class _Weights:
    """The tensors of a checkpoint, each checked for being there with the right shape."""

    def __init__(self, recipe: EncoderRecipe, dtype: torch.dtype):
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        self.folder, self.dtype, self.tensors = recipe.folder, dtype, {}
        for file in recipe.weight_files():
            try:
                tensors = load_file(file)
            except (SafetensorError, OSError) as error:
                raise QualcodeError(f"weights {file} are damaged ({error}); copy or download them again") from error
            for name, tensor in tensors.items():
                # A checkpoint of a model with a head has a prefix; the oldest name the norms as TensorFlow did.
                name = name.removeprefix("bert.").removeprefix("roberta.")
                name = name.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")
                self.tensors[name] = tensor

    def take(self, name: str, *shape: int | None) -> Tensor:
        tensor = self.tensors.get(name)
        if tensor is None:
            raise QualcodeError(
                f"weights of encoder {self.folder} lack {name}; they are incomplete or of another architecture than "
                "config.json says"
            )
        expected = tuple(have if want is None else want for want, have in zip(shape, tensor.shape, strict=False))
        if len(shape) != tensor.dim() or expected != tensor.shape:
            raise QualcodeError(
                f"weights of encoder {self.folder}: {name} has shape {tuple(tensor.shape)}, config.json says {shape}"
            )
        return tensor.to(self.dtype)

    def take_pair(self, name: str, *shape: int) -> tuple[Tensor, Tensor]:
        return self.take(f"{name}.weight", *shape), self.take(f"{name}.bias", shape[0])


def _parts(tokens: Tensor, spans: list[Span]) -> Iterator[tuple[Tensor, Span]]:
    """The rows of a packed tensor that belong to each span."""
    sizes = [(span.stop - span.start) * span.length for span in spans]
    return zip(tokens.split(sizes), spans, strict=True)


class TransformersBackbone:
    """Any encoder of transformers, by `AutoModel`, over batches padded on the right.

    Args:
        recipe (`EncoderRecipe`): The encoder.
        dtype (`torch.dtype`): Of weights and states.
        device (`torch.device`): Where it runs.

    Raises:
        `QualcodeError`: If it cannot be loaded, or weights are missing (those of an unused pooler excepted).
    """

    def __init__(self, recipe: EncoderRecipe, dtype: torch.dtype, device: torch.device):
        from transformers import AutoModel

        try:
            model, report = AutoModel.from_pretrained(
                recipe.model_folder,
                dtype=dtype,
                use_safetensors=True,
                local_files_only=True,
                trust_remote_code=False,
                output_loading_info=True,
            )
        except Exception as error:  # an odd configuration raises anything
            reason = str(error).strip().partition("\n")[0]
            raise QualcodeError(f"encoder {recipe.folder} cannot be loaded: {reason}") from error
        missing = sorted(name for name in report["missing_keys"] if "pooler" not in name)
        if missing:
            raise QualcodeError(
                f"weights of encoder {recipe.folder} lack {missing[0]} ({len(missing)} in all); they are incomplete "
                "or of another architecture than config.json says"
            )
        self.model = model.eval().to(device)
        self.device = device
        padding_id = recipe.config.typed("pad_token_id", int, 0)
        # Any id will do, for padding is masked; some configurations name one that has no vector.
        self.padding_id = padding_id if 0 <= padding_id < recipe.config.typed("vocab_size", int, 0) else 0

    def __call__(self, batch: Sequence[Sequence[int]]) -> Iterator[tuple[Span, Tensor]]:
        """As `PackedBert.__call__`."""
        longest = max(len(row) for row in batch)
        ids = torch.tensor([[*row, *[self.padding_id] * (longest - len(row))] for row in batch])
        lengths = torch.tensor([len(row) for row in batch])
        mask = torch.arange(longest)[None, :] < lengths[:, None]
        states = self.model(
            input_ids=ids.to(self.device), attention_mask=mask.long().to(self.device)
        ).last_hidden_state
        for span in equal_length_spans(batch):
            yield span, states[span.start : span.stop, : span.length]
