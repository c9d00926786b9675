"""Float32 heads, wrappers (peft, DDP, checkpointing), and no tensor as wide as the vocabulary."""

import copy
import itertools
import os

import peft
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from hf_qualcode.rerank.backbones import load_backbone
from hf_qualcode.rerank.modeling import Float32Linear, ScoresAtPositions, head_modules
from hf_qualcode.rerank.shared_prefix import pack
from tests.rerank.tiny import save_tiny_decoder, save_tiny_encoder


KINDS = ["bert", "xlm-roberta", "qwen3", "llama"]
CODES = ["", "json", "def read_json(path):\n    return path\n", "class Queue:\n    pass\n"]
# Many codes that differ in a word.
ALIKE = [" ".join(words) for words in itertools.product(["json", "list", "file", "read", "path"], repeat=3)]


def save_tiny(folder, kind):
    return save_tiny_decoder(folder, kind=kind) if kind in ("qwen3", "llama") else save_tiny_encoder(folder, kind=kind)


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@pytest.fixture
def folder(kind, tmp_path):
    return save_tiny(tmp_path, kind)


def inputs_of(backbone, codes=CODES):
    return backbone.encode(["fast"] * len(codes), ["read json"] * len(codes), codes).inputs


def batches_of(backbone, codes=CODES):
    inputs = inputs_of(backbone, codes)
    return [backbone.collate(inputs), pack(inputs)] if backbone.is_decoder else [backbone.collate(inputs)]


class Widths(TorchDispatchMode):
    """Notes the largest size of every tensor that an operation makes."""

    def __init__(self):
        super().__init__()
        self.shapes = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        made = func(*args, **(kwargs or {}))
        # A parameter seen from another side is no activation.
        if not func.is_view:
            self.shapes |= {tuple(leaf.shape) for leaf in tree_leaves(made) if isinstance(leaf, torch.Tensor)}
        return made


@pytest.mark.parametrize("kind", ["qwen3", "llama"], indirect=True)
def test_no_tensor_has_the_vocabulary_as_an_axis(folder):
    backbone = load_backbone(folder, device="cpu", training=True)
    vocabulary = backbone.model.config.vocab_size
    assert backbone.model.get_input_embeddings().weight.shape[0] == vocabulary
    for batch in batches_of(backbone):
        with Widths() as seen:
            loss = backbone.scores(backbone.model, batch).sum()
        assert len(seen.shapes) > 10
        assert not [shape for shape in seen.shapes if vocabulary in shape]
        with Widths() as seen:
            loss.backward()
        # Backward, the embedding's own gradient is as large as the embedding, and nothing else.
        weight = tuple(backbone.model.get_input_embeddings().weight.shape)
        assert not [shape for shape in seen.shapes if vocabulary in shape and shape != weight]


def test_a_bfloat16_head_ties_where_ours_does_not(folder):
    backbone = load_backbone(folder, device="cpu")
    stock = copy.deepcopy(backbone.model)
    for head in head_modules(stock):
        for module in head.modules():
            if isinstance(module, Float32Linear):
                module.__class__ = torch.nn.Linear
    stock.to(torch.bfloat16)
    ours = load_backbone(folder, device="cpu", precision="bfloat16")
    batch = backbone.collate(inputs_of(backbone, ALIKE))
    with torch.no_grad():
        coarse = stock(**batch).logits[:, 0].float()
        given = ours.scores(ours.model, batch)
        with torch.autocast("cpu", torch.bfloat16):
            autocast = backbone.scores(backbone.model, batch)
    assert len(set(coarse.tolist())) < len(ALIKE)
    for fine in (given, autocast):
        assert fine.dtype == torch.float32
        assert len(set(fine.tolist())) == len(ALIKE)


def test_under_autocast_gradients_reach_every_parameter(folder):
    backbone = load_backbone(folder, device="cpu", training=True)
    for batch in batches_of(backbone):
        backbone.model.zero_grad()
        with torch.autocast("cpu", torch.bfloat16):
            scores = backbone.scores(backbone.model, batch)
        assert scores.dtype == torch.float32
        scores.square().sum().backward()
        for name, tensor in backbone.model.named_parameters():
            assert tensor.grad is not None and tensor.grad.isfinite().all(), name


def test_the_class_stays_stock_by_name(folder, kind):
    model = load_backbone(folder, device="cpu").model
    stock = {"bert": "Bert", "xlm-roberta": "XLMRoberta", "qwen3": "Qwen3", "llama": "Llama"}[kind]
    assert type(model).__name__ == f"{stock}ForSequenceClassification"
    assert isinstance(model, ScoresAtPositions) == (kind in ("qwen3", "llama"))
    assert type(copy.deepcopy(model)) is type(model)


def test_activation_checkpointing_changes_nothing(folder):
    backbone = load_backbone(folder, device="cpu", training=True)
    for module in backbone.model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    for batch in batches_of(backbone):
        gradients = []
        for checkpointing in (False, True):
            if checkpointing:
                backbone.model.activation_checkpointing_enable()
            backbone.model.zero_grad()
            backbone.scores(backbone.model, batch).square().sum().backward()
            gradients.append([tensor.grad.clone() for tensor in backbone.model.parameters()])
        backbone.model.activation_checkpointing_disable()
        torch.testing.assert_close(*gradients, atol=1e-5, rtol=1e-4)


def test_peft_wrappers(folder, kind):
    backbone = load_backbone(folder, device="cpu")
    names = ["query", "value"] if kind in ("bert", "xlm-roberta") else ["q_proj", "v_proj"]
    config = peft.LoraConfig(task_type="SEQ_CLS", r=4, target_modules=names, init_lora_weights=False)
    with torch.no_grad():
        before = [backbone.scores(backbone.model, batch) for batch in batches_of(backbone)]
        wrapped = peft.get_peft_model(backbone.model, config).eval()
        after = [backbone.scores(wrapped, batch) for batch in batches_of(backbone)]
        # The layers are put into the model itself, so it gives the same without its wrapper.
        inside = [backbone.scores(backbone.model, batch) for batch in batches_of(backbone)]
    assert (after[0] - before[0]).abs().max() > 1e-3
    torch.testing.assert_close(after, inside)
    torch.testing.assert_close(after[0], after[-1], atol=1e-4, rtol=0)
    wrapped.train()
    with torch.autocast("cpu", torch.bfloat16):
        scores = backbone.scores(wrapped, batches_of(backbone)[-1])
    assert scores.dtype == torch.float32
    scores.sum().backward()
    trained = {name for name, tensor in wrapped.named_parameters() if tensor.requires_grad}
    assert any("lora_" in name for name in trained) and any("modules_to_save" in name for name in trained)
    assert all(wrapped.get_parameter(name).grad is not None for name in trained)


def test_ddp_wrappers(folder, tmp_path):
    from torch.nn.parallel import DistributedDataParallel

    backbone = load_backbone(folder, device="cpu")
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    try:
        wrapped = DistributedDataParallel(backbone.model)
        for batch in batches_of(backbone):
            given = backbone.scores(wrapped, batch)
            torch.testing.assert_close(given, backbone.scores(backbone.model, batch))
            given.sum().backward()
        assert all(tensor.grad is not None for tensor in backbone.model.parameters())
    finally:
        torch.distributed.destroy_process_group()


def test_padding_changes_no_score(folder):
    backbone = load_backbone(folder, device="cpu")
    inputs = inputs_of(backbone, ["x", "def read_json(path):\n" * 6, "", "y = [1, 2]"])
    batch = backbone.collate(inputs)
    assert batch["attention_mask"].sum(dim=1).tolist() == [len(encoded.ids) for encoded in inputs]
    assert bool(batch["attention_mask"][0, -1]) == backbone.is_decoder
    with torch.no_grad():
        together = backbone.scores(backbone.model, batch)
        alone = [backbone.scores(backbone.model, backbone.collate([encoded])) for encoded in inputs]
    torch.testing.assert_close(together, torch.cat(alone), atol=1e-5, rtol=1e-5)
