"""The trainer: what a step computes however it is cut up, resuming, evaluation, adapters, and what stops it."""

import json
from dataclasses import replace

import pytest
import torch

from hf_qualcode import losses
from hf_qualcode.rerank import RerankConfig, RerankTrainer
from hf_qualcode.rerank.backbones import load_backbone
from hf_qualcode.rerank.preparing import set_dropout
from hf_qualcode.types import GradedList, PreferencePair, QualcodeError, UsageError
from tests.rerank.material import config, curve, lora, ragged_lists, train, weights
from tests.rerank.tiny import save_tiny_decoder, save_tiny_encoder


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return save_tiny_encoder(tmp_path_factory.mktemp("encoder"))


@pytest.fixture(scope="module")
def decoder(tmp_path_factory):
    return save_tiny_decoder(tmp_path_factory.mktemp("decoder"))


@pytest.fixture
def pairs():
    return [
        PreferencePair(f"{i}", "Retrieve code that is fast", each.query, each.codes[0], each.codes[1],
                       ("speed",) if i % 2 else ("memory",), "", f"{i}", "p", "n")
        for i, each in enumerate(ragged_lists(9, seed=5))
    ]  # fmt: skip


def reference_step(folder, lists, rate):
    """Weights after one step of gradient descent on the mean loss, one input at a time, in float64."""
    backbone = load_backbone(str(folder), training=True)
    model = backbone.model.to(torch.float64).eval()
    loss = 0
    for each in lists:
        number = len(each.codes)
        encoded = backbone.encode([each.instruction] * number, [each.query] * number, each.codes).inputs
        scores = torch.cat([backbone.scores(model, backbone.collate([one])) for one in encoded])
        loss = loss + losses.delta_ndcg_loss(scores[None], torch.tensor([each.grades])) / len(lists)
    loss.backward()
    after = [weight - rate * weight.grad for weight in model.parameters()]
    return loss.item(), torch.cat([weight.detach().flatten() for weight in after])


# Rotary positions and norms of decoders are in float32 whatever the weights are in.
ROUNDING = {"encoder": 1e-12, "decoder": 1e-8}
QUICK = ("one batch", "chunks and accumulation")
SPLITS = {
    "one batch": {"per_device_train_batch_size": 6},
    "accumulation": {"per_device_train_batch_size": 2, "gradient_accumulation_steps": 3},
    "uneven accumulation": {"per_device_train_batch_size": 4, "gradient_accumulation_steps": 2},
    "single lists": {"per_device_train_batch_size": 1, "gradient_accumulation_steps": 6},
    "one input a forward": {"per_device_train_batch_size": 6, "tokens_per_forward": 1},
    "chunks": {"per_device_train_batch_size": 6, "chunk_size": 3},
    "chunks and accumulation": {"per_device_train_batch_size": 4, "gradient_accumulation_steps": 2, "chunk_size": 1},
    "checkpointing": {"per_device_train_batch_size": 6, "activation_checkpointing": True},
    "checkpointed chunks": {"per_device_train_batch_size": 6, "activation_checkpointing": True, "chunk_size": 4},
}


@pytest.mark.parametrize(
    ("kind", "split"),
    [
        pytest.param(kind, split, marks=[] if kind == "encoder" or split in QUICK else [pytest.mark.slow])
        for kind in ROUNDING
        for split in SPLITS
    ],
)
def test_a_step_is_the_same_however_it_is_cut_up(kind, split, request, tmp_path):
    folder, lists = request.getfixturevalue(kind), ragged_lists(6)
    loss, expected = reference_step(folder, lists, rate=0.05)
    trained = train(folder, tmp_path, lists, dtype=torch.float64, **SPLITS[split])
    assert curve(trained) == pytest.approx([loss], rel=1e-6)
    torch.testing.assert_close(weights(trained), expected, rtol=0, atol=ROUNDING[kind])


def test_decoders_train_alike_with_and_without_a_shared_prefix(decoder, tmp_path):
    lists = ragged_lists(8)
    shared, apart = (
        train(decoder, tmp_path, lists, dtype=torch.float64, share_prefix=choice) for choice in ("always", "never")
    )
    torch.testing.assert_close(weights(shared), weights(apart), rtol=0, atol=ROUNDING["decoder"])


def test_the_last_step_of_an_epoch_averages_over_the_lists_it_has(encoder, tmp_path):
    lists = ragged_lists(7)
    whole = train(encoder, tmp_path, lists, dtype=torch.float64, per_device_train_batch_size=4, num_train_epochs=2)
    parts = train(
        encoder, tmp_path, lists, dtype=torch.float64, per_device_train_batch_size=1, gradient_accumulation_steps=4,
        num_train_epochs=2,
    )  # fmt: skip
    assert len(curve(whole)) == 4
    assert curve(parts) == pytest.approx(curve(whole), rel=1e-5)
    torch.testing.assert_close(weights(parts), weights(whole), rtol=0, atol=1e-10)


def test_chunks_keep_dropout_as_it_was_drawn(encoder, tmp_path):
    # With the same draws in both runs of a chunk, one chunk that holds everything is a plain step.
    lists = ragged_lists(4)
    plain, chunked = (
        train(encoder, tmp_path, lists, dropout=0.3, tokens_per_forward=10_000, chunk_size=size) for size in (None, 99)
    )
    torch.testing.assert_close(weights(chunked), weights(plain), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("loss", ["info_nce", "pairwise_logistic", "distillation"])
def test_every_loss_goes_down(loss, encoder, tmp_path):
    options = {"temperature": 0.5} if loss != "pairwise_logistic" else {}
    trained = train(
        encoder, tmp_path, ragged_lists(8, teacher=True), loss=loss, num_train_epochs=8, optim="adamw_torch",
        learning_rate=3e-3, per_device_train_batch_size=8, **options,
    )  # fmt: skip
    assert curve(trained)[-1] < 0.9 * curve(trained)[0]


def test_the_same_seed_gives_the_same_bytes(encoder, tmp_path):
    first, second, other = (
        train(encoder, tmp_path, ragged_lists(9), optim="adamw_torch", seed=seed, dropout=0.1) for seed in (1, 1, 2)
    )
    assert torch.equal(weights(first), weights(second)) and not torch.equal(weights(first), weights(other))


@pytest.mark.parametrize("adapter", [False, True])
def test_a_resumed_run_ends_with_the_same_weights(adapter, encoder, tmp_path):
    lists = ragged_lists(11)
    options = {
        "num_train_epochs": 2, "optim": "adamw_torch", "learning_rate": 1e-3, "dropout": 0.1, "max_grad_norm": 1.0,
        "per_device_train_batch_size": 2, "gradient_accumulation_steps": 2, "save_strategy": "steps", "save_steps": 1,
    }  # fmt: skip
    whole = train(encoder, tmp_path, lists, trainer={"peft_config": lora() if adapter else None}, **options)
    assert whole.state.global_step == 6
    for step in (2,) if adapter else (2, 3):  # within the first epoch, and at its end
        resumed = train(
            encoder, tmp_path / "resumed", lists, resume=str(tmp_path / f"checkpoint-{step}"),
            trainer={"peft_config": lora() if adapter else None}, **options,
        )  # fmt: skip
        assert torch.equal(weights(resumed), weights(whole))
        assert curve(resumed) == curve(whole)


def test_checkpoints_are_stock_and_load_as_backbones(encoder, decoder, tmp_path):
    for folder, stock in ((encoder, "BertForSequenceClassification"), (decoder, "Qwen3ForSequenceClassification")):
        out = tmp_path / stock
        trained = train(folder, out, ragged_lists(4), save_strategy="steps", save_steps=1)
        said = json.loads((out / "checkpoint-1" / "config.json").read_text())
        assert said["architectures"] == [stock]
        assert said["hf_qualcode"] == {**trained.backbone.settings(), "tags": None, "fusion": None}
        again = load_backbone(str(out / "checkpoint-1"), device="cpu", precision="float32")
        each = ragged_lists(1)[0]
        triples = [each.instruction] * len(each.codes), [each.query] * len(each.codes), each.codes
        with torch.no_grad():
            scores = again.scores(again.model, again.collate(again.encode(*triples).inputs))
        torch.testing.assert_close(scores.numpy(), trained.score(*triples), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", ["encoder", "decoder"])
def test_an_adapter_trains_itself_and_the_head_alone(kind, request, tmp_path):
    folder = request.getfixturevalue(kind)
    before = load_backbone(str(folder), training=True).model.state_dict()
    trained = train(
        folder, tmp_path, ragged_lists(8), save_strategy="steps", save_steps=1, optim="adamw_torch",
        learning_rate=1e-2, trainer={"peft_config": lora(lora_dropout=0.25)},
    )  # fmt: skip
    dropouts = [m.p for name, m in trained.model.named_modules() if "lora_dropout" in name and hasattr(m, "p")]
    assert set(dropouts) == {0.25}  # `dropout` is that of the model
    tuned = [name for name, weight in trained.model.named_parameters() if weight.requires_grad]
    heads = ("score",) if kind == "decoder" else ("bert.pooler", "classifier")
    assert all(any(f"{head}.modules_to_save" in name for name in tuned) for head in heads)
    assert all("lora_" in name or any(head in name for head in heads) for name in tuned)
    after = trained.model.get_base_model().state_dict()
    assert all(torch.equal(after[n], w) for n, w in before.items() if n in after)
    folder = tmp_path / "checkpoint-2"
    assert json.loads((folder / "reranker_config.json").read_text())["backbone"] == trained.backbone.name
    assert (folder / "adapter_model.safetensors").is_file() and not (folder / "model.safetensors").exists()


def test_an_adapter_for_another_task_is_refused(encoder, tmp_path):
    with pytest.raises(UsageError, match="for task CAUSAL_LM; expected SEQ_CLS"):
        train(encoder, tmp_path, ragged_lists(2), trainer={"peft_config": lora(task_type="CAUSAL_LM")})


def test_evaluation_during_training(encoder, pairs, tmp_path):
    graded = [
        GradedList(e.id, e.instruction, e.query, tuple(map(str, range(len(e.codes)))), e.codes, e.grades, "p", "speed")
        for e in ragged_lists(5, seed=7)
    ]
    trained = train(
        encoder, tmp_path, ragged_lists(8), eval_strategy="steps", eval_steps=1, save_strategy="steps", save_steps=1,
        load_best_model_at_end=True, optim="adamw_torch", learning_rate=1e-2, num_train_epochs=2,
        trainer={"eval_pairs": pairs, "eval_lists": graded},
    )  # fmt: skip
    assert trained.args.metric_for_best_model == "qpa" and trained.args.greater_is_better
    logged = [entry for entry in trained.state.log_history if "eval_qpa" in entry]
    names = {"eval_qpa", "eval_qpa_speed", "eval_qpa_memory", "eval_tie_rate", "eval_mrr@10", "eval_ndcg@10"}
    assert len(logged) == 4 and all(names <= entry.keys() for entry in logged)
    assert trained.state.best_metric == max(entry["eval_qpa"] for entry in logged)
    now = trained.evaluate()
    assert now["eval_qpa"] == trained.state.best_metric and now == {**now, **trained.evaluate()}
    sides = [(pair.instruction, pair.query, code) for pair in pairs for code in (pair.positive, pair.negative)]
    scores = trained.score(*zip(*sides, strict=True))
    assert now["eval_qpa"] == (scores[0::2] > scores[1::2]).mean()
    assert trained.evaluate(graded[:2], metric_key_prefix="test").keys() >= {"test_mrr@10"}


def test_evaluation_changes_nothing(encoder, pairs, tmp_path):
    plain = train(encoder, tmp_path, ragged_lists(8), dropout=0.2)
    measured = train(
        encoder, tmp_path, ragged_lists(8), dropout=0.2, eval_strategy="steps", eval_steps=1,
        trainer={"eval_pairs": pairs},
    )  # fmt: skip
    assert torch.equal(weights(plain), weights(measured))


def test_callbacks_get_the_curves(encoder, pairs, tmp_path):
    """Whatever `report_to` names is such a callback."""
    from transformers import TrainerCallback

    class Curves(TrainerCallback):
        seen = ()

        def on_log(self, args, state, control, logs=None, **_):
            Curves.seen += tuple(logs)

    options = {"eval_strategy": "steps", "eval_steps": 2}
    train(encoder, tmp_path, ragged_lists(8), trainer={"eval_pairs": pairs, "callbacks": [Curves()]}, **options)
    assert {"loss", "grad_norm", "learning_rate", "eval_qpa"} <= set(Curves.seen)


def test_lists_come_from_data_sets_and_workers_too(encoder, tmp_path):
    from hf_qualcode.rerank.data import lists_to_dataset

    lists = ragged_lists(8)
    plain = train(encoder, tmp_path, lists)
    stored = train(encoder, tmp_path, lists_to_dataset(lists), dataloader_num_workers=1)
    assert torch.equal(weights(plain), weights(stored))


@pytest.mark.parametrize("kind", ["bert", "xlm-roberta", "qwen3", "llama"])
def test_dropout_is_the_config_s(kind, tmp_path):
    if kind in ("qwen3", "llama"):
        folder = save_tiny_decoder(tmp_path / "model", kind=kind, attention_dropout=0.5)
    else:
        folder = save_tiny_encoder(tmp_path / "model", kind=kind)
    backbone = load_backbone(str(folder), training=True)
    each = ragged_lists(1)[0]
    batch = backbone.collate(backbone.encode([each.instruction] * 2, [each.query] * 2, each.codes[:2]).inputs)
    model = backbone.model.train()
    assert not torch.equal(backbone.scores(model, batch), backbone.scores(model, batch))
    set_dropout(model, 0.0)
    assert torch.equal(backbone.scores(model, batch), backbone.scores(model, batch))
    torch.testing.assert_close(backbone.scores(model, batch), backbone.scores(model.eval(), batch))


def test_a_loss_that_is_not_finite_stops_with_the_step(encoder, tmp_path):
    from transformers import TrainerCallback

    class Damaging(TrainerCallback):
        def on_step_begin(self, args, state, control, model=None, **_):
            if state.global_step == 1:
                next(model.parameters()).data.fill_(float("nan"))

    for size in (None, 2):
        with pytest.raises(QualcodeError, match=r"^step 2: .*nan.*try a lower learning_rate$"):
            train(encoder, tmp_path, ragged_lists(8), chunk_size=size, trainer={"callbacks": [Damaging()]})


@pytest.mark.parametrize(
    ("options", "trainer", "message"),
    [
        ({"loss": "lambda"}, {}, "loss is 'lambda'; choose from: delta_ndcg, info_nce, pairwise_logistic, dist"),
        ({"temperature": 0.1}, {}, "loss 'delta_ndcg' has no temperature"),
        ({"loss": "info_nce", "temperature": 0.0}, {}, "temperature is 0.0; expected a number above 0"),
        ({"dropout": 1.0}, {}, "dropout is 1.0; expected a number from 0 to below 1"),
        ({"chunk_size": 0}, {}, "chunk_size is 0; expected 1 or more"),
        ({"chunk_size": 1.5}, {}, "chunk_size is 1.5; expected 1 or more"),
        ({"temperature": "warm", "loss": "info_nce"}, {}, "temperature is 'warm'; expected a number"),
        ({"learning_rate": float("nan")}, {}, "learning_rate is nan; expected 0 or more"),
        ({"per_device_train_batch_size": 0}, {}, "per_device_train_batch_size is 0; expected 1 or more"),
        ({"gradient_accumulation_steps": 0}, {}, "gradient_accumulation_steps is 0; expected 1 or more"),
        ({"dataloader_num_workers": -1}, {}, "dataloader_num_workers is -1; expected 0 or more"),
        ({"num_train_epochs": -1}, {}, "num_train_epochs is -1; expected a number above 0"),
        ({"seed": 2**64}, {}, "seed is 18446744073709551616; expected a number from 0 to below 4294967296"),
        ({"optim": "wishes"}, {}, "wishes is not a valid OptimizerNames"),
        ({"share_prefix": []}, {}, "share_prefix is \\[\\]; choose from"),
        ({"share_prefix": "maybe"}, {}, "share_prefix is 'maybe'; choose from: auto, always, never"),
        ({"remove_unused_columns": True}, {}, "remove_unused_columns is True; it must be False"),
        ({"label_smoothing_factor": 0.1}, {}, "ranking losses have none"),
        ({"train_sampling_strategy": "group_by_length"}, {}, "choose from: random, sequential"),
        ({"eval_strategy": "steps"}, {}, "there is nothing to measure; give eval_pairs"),
        ({"metric_for_best_model": "loss"}, {"eval_lists": ragged_lists(1)}, "measured here: mrr@10, ndcg@10"),
    ],
)
def test_settings_that_do_not_go_together(options, trainer, message, encoder, tmp_path):
    with pytest.raises(UsageError, match=message):
        train(encoder, tmp_path, ragged_lists(2), trainer=trainer, **options)


def test_logs_that_nobody_takes_are_one_line(encoder, tmp_path):
    with pytest.raises(QualcodeError, match="training cannot be set up: nowhere is not supported"):
        train(encoder, tmp_path, ragged_lists(2), report_to="nowhere")


def test_distillation_without_a_teacher(encoder, tmp_path):
    with pytest.raises(QualcodeError, match="'list . has no teacher scores|has no teacher scores"):
        train(encoder, tmp_path, ragged_lists(2), loss="distillation")


def test_half_precision_weights_are_not_trained(encoder, tmp_path):
    with pytest.raises(QualcodeError, match="is torch.bfloat16, in which small steps of a weight are lost"):
        train(encoder, tmp_path, ragged_lists(2), dtype=torch.bfloat16)


def test_autocast_trains_float32_weights_and_a_float32_head(encoder, tmp_path):
    trained = train(encoder, tmp_path, ragged_lists(8), bf16=True, learning_rate=1e-3)
    assert {weight.dtype for weight in trained.model.parameters()} == {torch.float32}
    each = ragged_lists(1, seed=3)[0]
    scores = trained.score([each.instruction] * len(each.codes), [each.query] * len(each.codes), each.codes)
    # The last digits of float32 are used: a bfloat16 head leaves 16 of 32 bits zero.
    assert (torch.tensor(scores).view(torch.int32) & 0xFFFF).any()


def test_presets_and_defaults_are_those_of_the_paper(tmp_path):
    # Section 5.4: batch size 16, one epoch, learning rate 6e-6.
    for made in (RerankConfig(output_dir=str(tmp_path)), RerankConfig.synh_rank(str(tmp_path))):
        assert (made.per_device_train_batch_size, made.num_train_epochs, made.learning_rate) == (16, 1, 6e-6)
        assert (made.loss, made.lr_scheduler_type) == ("delta_ndcg", "linear")
        assert (made.weight_decay, made.warmup_steps) == (0, 0)
        assert made.optim == "adamw_torch_fused" and made.dropout == 0 and not made.activation_checkpointing
    for made in (RerankConfig.info_nce(str(tmp_path)), RerankConfig.srcl(str(tmp_path), seed=7)):
        assert (made.loss, made.temperature, made.learning_rate) == ("info_nce", 1.0, 6e-6)
    assert made.seed == 7


def test_settings_come_from_a_command_line(tmp_path):
    from transformers import HfArgumentParser

    [made] = HfArgumentParser(RerankConfig).parse_args_into_dataclasses(
        ["--output_dir", str(tmp_path), "--loss", "info_nce", "--chunk_size", "8", "--share_prefix", "never"]
    )
    assert (made.loss, made.chunk_size, made.share_prefix, made.dropout) == ("info_nce", 8, "never", 0.0)


def test_one_stage_goes_on_where_the_other_ended(encoder, tmp_path):
    backbone = load_backbone(str(encoder), training=True)
    lists = ragged_lists(8)
    RerankTrainer(backbone, config(tmp_path, loss="pairwise_logistic"), lists).train()
    warm = weights(RerankTrainer(backbone, config(tmp_path), lists))
    negated = [replace(each, instruction="Retrieve code that is slow") for each in lists]
    second = RerankTrainer(backbone, config(tmp_path), negated)
    assert torch.equal(weights(second), warm)
    second.train()
    assert not torch.equal(weights(second), warm)


def test_predict_says_what_to_use(encoder, tmp_path):
    trained = train(encoder, tmp_path, ragged_lists(2))
    with pytest.raises(UsageError, match="use score"):
        trained.predict(ragged_lists(1))
