"""How much memory a training step takes, worked out from a model's configuration.

What is counted for each token and layer are the tensors that autograd keeps, dropout being 0 and attention the fused
kernel, which keeps no scores. With h the hidden size, a and kv the sizes of all queries and of all keys, f the feed-
forward size, in elements:

- encoders: inputs of linear layers 2 h, of layer norms 2 h, queries, keys, values and attention 4 h, GELU 2 f;
- decoders: inputs of linear layers 2 h, of RMS norms and their unscaled outputs 4 h, queries and attention 2 a, keys
  and values 2 kv, SwiGLU 4 f; where queries and keys are normalised (Qwen3) 2 a + 2 kv more.

A reranker has no tensor with an axis of the vocabulary besides the embeddings: its head is one row.
"""

from typing import NamedTuple

from transformers import PreTrainedConfig

from hf_qualcode.types import UsageError


_ENCODERS = ("bert", "roberta", "xlm-roberta")
_DECODERS = ("llama", "mistral", "qwen2", "qwen3")
_FLOAT, _HALF = 4, 2


class TrainingMemory(NamedTuple):
    """Bytes on one device, without what the framework itself takes and spare room in its allocator.

    Attributes:
        weights (`int`): In float32, and the bfloat16 copies that autocast keeps during a step.
        gradients (`int`): Of the trained weights, in float32.
        optimizer (`int`): Two moments of AdamW in float32.
        activations (`int`): What is kept from the forward to the backward pass.
    """

    weights: int
    gradients: int
    optimizer: int
    activations: int

    @property
    def total(self) -> int:
        """Their sum: the peak of a step, which is at the end of the forward pass."""
        return sum(self)


def estimate_training_memory(
    config: PreTrainedConfig,
    num_tokens: int,
    *,
    bf16: bool = False,
    activation_checkpointing: bool = False,
    tokens_per_forward: int | None = None,
    num_trained: int | None = None,
) -> TrainingMemory:
    """Memory of one training step of a reranker.

    Args:
        config (`PreTrainedConfig`): Of a sequence classifier.
        num_tokens (`int`):
            Tokens of one micro-batch, padding included. With `RerankConfig.chunk_size`, those of one chunk.
        bf16 (`bool`, *optional*, defaults to `False`): Autocast to bfloat16; weights stay in float32.
        activation_checkpointing (`bool`, *optional*, defaults to `False`):
            Keep the input of each layer, and run one layer of one forward batch again at a time.
        tokens_per_forward (`int`, *optional*): Tokens of a forward batch; defaults to all.
        num_trained (`int`, *optional*): Weights that are trained; defaults to all.

    Returns:
        `TrainingMemory`: Within 10 % of what autograd keeps, as tests measure it.

    Raises:
        `UsageError`: On a model type whose layers are not known here.
    """
    layer = _layer_bytes(config, bf16)
    if activation_checkpointing:
        # Layers hand on their states in float32: what a norm gives to a sum with the embeddings.
        kept = num_tokens * config.num_hidden_layers * config.hidden_size * _FLOAT
        activations = kept + min(num_tokens, tokens_per_forward or num_tokens) * layer
    else:
        activations = num_tokens * config.num_hidden_layers * layer
    activations += num_tokens * _outer_bytes(config, bf16)
    num_weights, num_embeddings = _count_weights(config)
    trained = num_weights if num_trained is None else num_trained
    return TrainingMemory(
        weights=num_weights * _FLOAT + (num_weights - num_embeddings) * _HALF * bf16,
        gradients=trained * _FLOAT,
        optimizer=trained * 2 * _FLOAT,
        activations=activations,
    )


def _layer_bytes(config: PreTrainedConfig, bf16: bool) -> int:
    """Bytes that autograd keeps for one token in one layer."""
    if config.model_type not in _ENCODERS + _DECODERS:
        known = ", ".join((*_ENCODERS, *_DECODERS))
        raise UsageError(f"the memory of a {config.model_type} is not worked out here; known: {known}")
    hidden, feed_forward = config.hidden_size, config.intermediate_size
    narrow = _HALF if bf16 else _FLOAT
    if config.model_type in _ENCODERS:
        # Autocast converts the input of queries, keys and values once for each.
        inputs = 4 if bf16 else 2
        return 2 * hidden * _FLOAT + (inputs * hidden + 4 * hidden + 2 * feed_forward) * narrow
    head = getattr(config, "head_dim", None) or hidden // config.num_attention_heads
    queries, keys = head * config.num_attention_heads, head * config.num_key_value_heads
    inputs = 5 if bf16 else 2
    kept = 4 * hidden * _FLOAT + (inputs * hidden + 2 * queries + 2 * keys + 4 * feed_forward) * narrow
    if config.model_type == "qwen3":
        kept += (queries + keys) * (_FLOAT + narrow)
    return kept


def _outer_bytes(config: PreTrainedConfig, bf16: bool) -> int:
    """Bytes for one token before the first and behind the last layer: the norm there, and what the head reads."""
    if config.model_type in _ENCODERS:
        # Half precision is a copy of the first token's state; without it, that is a view of the whole.
        return config.hidden_size * _FLOAT * (1 if bf16 else 2)
    return config.hidden_size * (2 * _FLOAT + (_HALF if bf16 else _FLOAT))


def _count_weights(config: PreTrainedConfig) -> tuple[int, int]:
    """All weights of the classifier, and those of its embeddings."""
    import torch
    from transformers import AutoModelForSequenceClassification

    with torch.device("meta"):
        model = AutoModelForSequenceClassification.from_config(config)
    return model.num_parameters(), model.num_parameters() - model.num_parameters(exclude_embeddings=True)
