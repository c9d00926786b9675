"""What is done to a model before it is trained: adapters with whole heads, and scores that are not rounded."""

import pytest
import torch
from transformers import AutoConfig, AutoModel, AutoTokenizer, BertModel

from hf_qualcode.rerank import Reranker, RerankTrainer
from hf_qualcode.rerank.backbones import load_backbone
from hf_qualcode.rerank.preparing import keep_float32_scores, with_adapter
from tests.rerank.material import config, lora, ragged_lists
from tests.rerank.tiny import save_tiny_encoder


SMALL = {"num_attention_heads": 4, "intermediate_size": 64, "max_position_embeddings": 128}
BODIES = {
    "bert": {},
    "distilbert": {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64, "max_position_embeddings": 128},
    "deberta-v2": {"hidden_size": 32, "num_hidden_layers": 2, "pooler_hidden_size": 32, **SMALL},
    "electra": {"hidden_size": 32, "embedding_size": 32, "num_hidden_layers": 2, **SMALL},
    "xlm-roberta": {"hidden_size": 32, "num_hidden_layers": 2, **SMALL, "max_position_embeddings": 130},
    "modernbert": {
        "hidden_size": 32, "num_hidden_layers": 2, **SMALL, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
        "cls_token_id": 1, "sep_token_id": 2,
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return save_tiny_encoder(tmp_path_factory.mktemp("encoder"))


def save_body(folder, kind, encoder):
    """An encoder without anything of a head: of BERT, even without its pooler."""
    tokenizer = AutoTokenizer.from_pretrained(encoder)
    if kind == "bert":
        body = BertModel.from_pretrained(encoder, add_pooling_layer=False)
    else:
        body = AutoModel.from_config(AutoConfig.for_model(kind, vocab_size=len(tokenizer) + 2, **BODIES[kind]))
    body.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.mark.parametrize("kind", BODIES)
def test_an_adapter_keeps_whatever_was_drawn(kind, encoder, tmp_path):
    body = save_body(tmp_path / "body", kind, encoder)
    backbone = load_backbone(body, training=True)
    peft_config = lora()
    trainer = RerankTrainer(
        backbone, config(tmp_path, optim="adamw_torch", learning_rate=1e-2), ragged_lists(4), peft_config=peft_config
    )
    assert peft_config.task_type is None and peft_config.modules_to_save is None  # the caller's own stays as it is
    trainer.train()
    adapted = [name for name, _ in trainer.model.named_parameters() if "lora_" in name and "modules_to_save" in name]
    assert adapted == []
    each = ragged_lists(1, seed=3)[0]
    size = len(each.codes)
    expected = trainer.score([each.instruction] * size, [each.query] * size, each.codes)
    backbone.model = trainer.model.eval()
    folder = Reranker(backbone).save_pretrained(tmp_path / "adapter", base="org/name")
    torch.manual_seed(99)  # another head would be drawn
    again = Reranker.from_pretrained(folder, base=str(body), device="cpu", precision="float32")
    assert again.score([each.query] * size, each.codes, instruction=each.instruction) == pytest.approx(
        expected, abs=1e-4
    )


def test_heads_that_are_named_already_are_not_named_twice(encoder):
    model = load_backbone(encoder, training=True).model
    wrapped = with_adapter(model, lora(modules_to_save=["pooler"]))
    saved = wrapped.peft_config["default"].modules_to_save
    assert set(saved) == {"pooler", "classifier", "score"}  # peft adds the last two by itself


def test_sharded_models_give_scores_that_are_not_rounded(tmp_path):
    """As accelerate prepares FSDP2 under `mixed_precision: bf16`, on a mesh of one process."""
    import torch.distributed as dist
    from accelerate import FullyShardedDataParallelPlugin
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    if dist.is_initialized():
        pytest.skip("this process is part of a group of processes already")
    plugin = FullyShardedDataParallelPlugin(fsdp_version=2)
    plugin.set_mixed_precision("bf16")
    assert plugin.mixed_precision_policy.output_dtype == torch.bfloat16
    keep_float32_scores(plugin)
    policy = plugin.mixed_precision_policy
    assert (policy.param_dtype, policy.output_dtype) == (torch.bfloat16, torch.float32)
    backbone = load_backbone(save_tiny_encoder(tmp_path / "model", kind="xlm-roberta"), device="cpu")
    dist.init_process_group("gloo", init_method=f"file://{tmp_path / 'meeting'}", rank=0, world_size=1)
    try:
        mesh = init_device_mesh("cpu", (1,))
        for layer in backbone.model.roberta.encoder.layer:
            fully_shard(layer, mesh=mesh, mp_policy=policy)
        fully_shard(backbone.model, mesh=mesh, mp_policy=policy)
        codes = [f"def f{i}(): return {i}" for i in range(6)]
        batch = backbone.collate(backbone.encode(["fast"] * 6, ["read json"] * 6, codes).inputs)
        with torch.no_grad():
            scores = backbone.scores(backbone.model, batch)
    finally:
        dist.destroy_process_group()
    assert scores.dtype == torch.float32
    # Scores of 8 bits would leave 16 of 32 bits zero.
    assert (scores.view(torch.int32) & 0xFFFF).all()


def test_fsdp1_has_nothing_to_change():
    class Plugin:
        mixed_precision_policy = None

    keep_float32_scores(Plugin)
    assert Plugin.mixed_precision_policy is None
