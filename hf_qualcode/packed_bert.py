"""BERT and its kin over packed tokens: no layer computes padding.

`PackedBert` does without the model classes of transformers, whose import takes longer than encoding a page of hits. It
lays the tokens of a batch end to end, so that only attention, within texts of equal length, knows where one text ends.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor


# Position ids of all but the first begin after the padding id.
_PACKED_TYPES = ("bert", "roberta", "xlm-roberta", "camembert")
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
        config (`Mapping`): config.json of a model that `PackedBert.fits`.
        weights (`Weights`): Its weights, named as in the model without a head.
    """

    def __init__(self, config: Mapping[str, Any], weights: "Weights"):
        self.hidden_size: int = config["hidden_size"]
        self.num_heads: int = config["num_attention_heads"]
        self.epsilon: float = config.get("layer_norm_eps", 1e-12)
        self.activation = _ACTIVATIONS[config.get("hidden_act", "gelu")]
        self.padding_id = config.get("pad_token_id", 1) if config["model_type"] != _PACKED_TYPES[0] else None
        self.words = weights.take("embeddings.word_embeddings.weight", None, self.hidden_size)
        self.segments = weights.take("embeddings.token_type_embeddings.weight", None, self.hidden_size)
        positions = weights.take(
            "embeddings.position_embeddings.weight", config["max_position_embeddings"], self.hidden_size
        )
        # Most texts have one segment, so its embedding is made part of every position's.
        self.positions = positions + self.segments[0]
        self.norm = weights.take_pair("embeddings.LayerNorm", self.hidden_size)
        self.layers = [self._layer(weights, number, config) for number in range(config["num_hidden_layers"])]

    @staticmethod
    def fits(config: Mapping[str, Any]) -> bool:
        """Whether a configuration asks for nothing that this class lacks."""
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

    def __call__(
        self, batch: Sequence[Sequence[int]], segments: Sequence[Sequence[int]] | None = None
    ) -> Iterator[tuple[Span, Tensor]]:
        """Run the encoder.

        Args:
            batch (`Sequence[Sequence[int]]`): Token ids of each text, longest first or shortest first.
            segments (`Sequence[Sequence[int]]`, *optional*): Segment of each token; all are of segment 0 when absent.

        Yields:
            `tuple[Span, Tensor]`: A span of the batch and its states `[num_texts, num_tokens, hidden_size]`.
        """
        spans = equal_length_spans(batch)
        ids = torch.tensor([id for row in batch for id in row])
        places = torch.cat([self._places(part, span) for part, span in _parts(ids, spans)])
        embedded = F.embedding(ids, self.words) + F.embedding(places, self.positions)
        if segments is not None:
            segment_ids = torch.tensor([id for row in segments for id in row])
            embedded += F.embedding(segment_ids, self.segments - self.segments[0])
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

    def _layer(self, weights: "Weights", number: int, config: Mapping[str, Any]) -> "_Layer":
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


class Weights(Protocol):
    """The tensors of a checkpoint."""

    def take(self, name: str, *shape: int | None) -> Tensor:
        """A tensor of this shape, `None` standing for any size."""
        ...

    def take_pair(self, name: str, *shape: int) -> tuple[Tensor, Tensor]:
        """A module's weight, of this shape, and its bias."""
        ...


class _Layer(NamedTuple):
    """(weight, bias) pairs of one layer; `projections` is query, key and value in one matrix."""

    projections: tuple[Tensor, Tensor]
    attention_output: tuple[Tensor, Tensor]
    attention_norm: tuple[Tensor, Tensor]
    intermediate: tuple[Tensor, Tensor]
    output: tuple[Tensor, Tensor]
    output_norm: tuple[Tensor, Tensor]


def _parts(tokens: Tensor, spans: list[Span]) -> Iterator[tuple[Tensor, Span]]:
    """The rows of a packed tensor that belong to each span."""
    sizes = [(span.stop - span.start) * span.length for span in spans]
    return zip(tokens.split(sizes), spans, strict=True)
