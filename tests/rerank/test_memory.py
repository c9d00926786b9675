"""The memory formula against what autograd keeps, and the paper's step."""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from transformers import AutoConfig, AutoModelForSequenceClassification

from hf_qualcode.rerank.backbones import load_backbone
from hf_qualcode.rerank.data import RankingCollator
from hf_qualcode.rerank.memory import _layer_bytes, estimate_training_memory
from hf_qualcode.rerank.preparing import set_dropout
from hf_qualcode.types import UsageError
from tests.rerank.material import ragged_lists
from tests.rerank.tiny import save_tiny_decoder


SCALED = {
    "bert": {}, "xlm-roberta": {}, "llama": {"num_key_value_heads": 2, "head_dim": 16},
    # Qwen3-0.6B in little: queries are twice as wide as the states, two keys for four queries, three times f.
    "qwen3": {"num_key_value_heads": 2, "head_dim": 32, "intermediate_size": 192, "tie_word_embeddings": True},
}  # fmt: skip
QWEN3 = {
    "vocab_size": 151_936, "hidden_size": 1024, "intermediate_size": 3072, "num_hidden_layers": 28,
    "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128, "tie_word_embeddings": True, "num_labels": 1,
}  # fmt: skip


def scaled(kind):
    return AutoConfig.for_model(
        kind, **{
            "vocab_size": 997, "hidden_size": 64, "num_hidden_layers": 4, "num_attention_heads": 4,
            "intermediate_size": 256, "max_position_embeddings": 514, "pad_token_id": 0, "num_labels": 1,
            **SCALED[kind],
        }
    )  # fmt: skip


class Kept:
    """Bytes of distinct tensors that autograd keeps, weights and their copies in half precision left out."""

    def __init__(self, model):
        self.sizes = {}
        self.weights = {weight.untyped_storage().data_ptr() for weight in model.parameters()}
        self.shapes = {shape for weight in model.parameters() for shape in (weight.shape, weight.T.shape)}

    def pack(self, tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in self.weights and tensor.shape not in self.shapes:
            # The tensor too, so that its storage is not given to another one.
            self.sizes[storage.data_ptr()] = (storage.nbytes(), tensor)
        return tensor

    @property
    def total(self):
        return sum(size for size, _ in self.sizes.values())


@pytest.mark.filterwarnings("ignore:The use of `x.T`")
@pytest.mark.parametrize("checkpointing", [False, True])
@pytest.mark.parametrize("bf16", [False, True])
@pytest.mark.parametrize("kind", SCALED)
def test_the_formula_is_what_autograd_keeps(kind, bf16, checkpointing):
    config = scaled(kind)
    model = AutoModelForSequenceClassification.from_config(config).train()
    set_dropout(model, 0.0)
    if checkpointing:
        model.activation_checkpointing_enable()
    ids = torch.randint(1, 900, (8, 128))
    kept = Kept(model)
    with (
        torch.autograd.graph.saved_tensors_hooks(kept.pack, lambda tensor: tensor),
        torch.autocast("cpu", torch.bfloat16, enabled=bf16),
    ):
        model(input_ids=ids, attention_mask=torch.ones_like(ids)).logits.sum()
    expected = estimate_training_memory(config, ids.numel(), bf16=bf16, activation_checkpointing=checkpointing)
    # The layer that is run again is not there yet.
    again = _layer_bytes(config, bf16) * ids.numel() if checkpointing else 0
    assert kept.total == pytest.approx(expected.activations - again, rel=0.1)


def test_the_weights_are_counted():
    config = scaled("qwen3")
    model = AutoModelForSequenceClassification.from_config(config)
    number = sum(weight.numel() for weight in model.parameters())
    made = estimate_training_memory(config, 1)
    assert (made.weights, made.gradients, made.optimizer) == (4 * number, 4 * number, 8 * number)
    half = estimate_training_memory(config, 1, bf16=True, num_trained=1000)
    embeddings = config.vocab_size * config.hidden_size
    assert (half.weights, half.gradients, half.optimizer) == (4 * number + 2 * (number - embeddings), 4000, 8000)


def test_the_paper_s_step_of_qwen3_fits_its_gpu_with_checkpointing():
    # 16 lists of 6 inputs of 1,024 tokens (section 5.4), on 80 GB, in forward batches of 32,768 tokens.
    config = AutoConfig.for_model("qwen3", **QWEN3)
    options = {"bf16": True, "tokens_per_forward": 32_768}
    plain = estimate_training_memory(config, 96 * 1024, **options)
    checkpointed = estimate_training_memory(config, 96 * 1024, activation_checkpointing=True, **options)
    assert plain.total > 80e9 > 40e9 > checkpointed.total
    # One list at a time, accumulated over 16, needs no checkpointing.
    assert estimate_training_memory(config, 6 * 1024, **options).total < 40e9
    # Logits of all positions in float32, which are never made, would not fit beside that.
    assert 96 * 1024 * config.vocab_size * 4 > 59e9


def test_no_tensor_has_an_axis_of_the_vocabulary(tmp_path):
    backbone = load_backbone(str(save_tiny_decoder(tmp_path)), training=True)
    size = backbone.model.config.vocab_size

    class Shapes(TorchDispatchMode):
        seen = ()

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            made = function(*args, **(kwargs or {}))
            weight = backbone.model.get_input_embeddings().weight
            for each in tree_leaves(made):
                if isinstance(each, torch.Tensor) and size in each.shape and each.shape != weight.shape:
                    Shapes.seen += ((str(function), tuple(each.shape)),)
            return made

    for share in (True, False):
        batch = RankingCollator(backbone, share_prefix=share)(ragged_lists(3))
        with Shapes():
            sum(backbone.scores(backbone.model, each).sum() for each in batch["batches"]).backward()
    assert size not in (len(ragged_lists(3)), 32, 48) and not Shapes.seen


def test_an_unknown_architecture():
    with pytest.raises(UsageError, match="memory of a gpt2 is not worked out here; known: bert"):
        estimate_training_memory(AutoConfig.for_model("gpt2"), 10)
