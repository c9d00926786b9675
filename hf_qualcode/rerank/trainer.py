"""Training a reranker on lists: `transformers.Trainer` with a loss over all lists of an optimiser step."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from transformers import Trainer, TrainerCallback, set_seed
from transformers.trainer_utils import has_length

from hf_qualcode import losses
from hf_qualcode.rerank.config import SHARE_PREFIX, TEMPERED, RerankConfig
from hf_qualcode.rerank.data import RankingCollator, RankingList, tokens_a_forward
from hf_qualcode.rerank.measuring import measure
from hf_qualcode.rerank.preparing import (
    check_checkpoint,
    check_precision,
    check_settings,
    find_checkpoint,
    keep_float32_scores,
    set_dropout,
    with_adapter,
)
from hf_qualcode.rerank.settings import ADAPTER_SETTINGS_FILE, KEY, RerankerSettings, tags_name
from hf_qualcode.types import GradedList, PreferencePair, QualcodeError, UsageError


_FUNCTIONS: dict[str, Callable[..., Tensor]] = {
    "delta_ndcg": losses.delta_ndcg_loss,
    "info_nce": losses.info_nce_loss,
    "pairwise_logistic": losses.pairwise_logistic_loss,
    "distillation": losses.rank_distillation_loss,
}


class RerankTrainer(Trainer):
    """Trains a reranker on lists, and measures it while it trains.

    The loss is the mean over all lists of an optimiser step, across gradient accumulation and processes, whatever
    their sizes: how a step is cut into micro-batches, forward batches and processes changes rounding alone. Lists
    that fill up the last batch of several processes count 0.

    It is a `Scorer` as well: `score(instructions, queries, codes)` is what the model gives now.

    Args:
        backbone (`Backbone`): From `load_backbone(..., training=True)`. Its model is trained in place.
        args (`RerankConfig`): Settings.
        train_dataset (`Dataset` or `Sequence[RankingList]`, *optional*):
            Lists, or rows with the columns instruction, query, codes, grades and, for distillation, teacher_scores.
        eval_pairs (`Sequence[PreferencePair]`, *optional*):
            Measured as `eval_qpa` (a tie is a miss), `eval_tie_rate` and, for several dimensions, `eval_qpa_speed` ...
        eval_lists (`Sequence[GradedList | RankingList]`, *optional*): Measured as `eval_mrr@10` and `eval_ndcg@10`.
        peft_config (`peft.PeftConfig`, *optional*): Train an adapter and the head only; see `with_adapter`.
        tags (`Callable`, *optional*): code -> the text that the model reads in its place.
        callbacks (`list[TrainerCallback]`, *optional*), optimizers (`tuple`, *optional*): See `transformers.Trainer`.

    Raises:
        `UsageError`: On settings that do not go together.
        `QualcodeError`: On weights in half precision that are to be trained.
    """

    # `compute_loss` divides by the lists of the whole step. Unset, Trainer guesses from the signature of the model.
    loss_is_scaled_for_ga = True

    def __init__(
        self,
        backbone: Any,
        args: RerankConfig,
        train_dataset: Any = None,
        *,
        eval_pairs: Sequence[PreferencePair] = (),
        eval_lists: Sequence[GradedList | RankingList] = (),
        peft_config: Any = None,
        tags: Callable[[str], str] | None = None,
        callbacks: list[TrainerCallback] | None = None,
        optimizers: tuple[Any, Any] = (None, None),
    ):
        check_settings(args, eval_pairs, eval_lists)
        self.backbone, self.eval_pairs, self.eval_lists = backbone, list(eval_pairs), list(eval_lists)
        # An adapter is drawn at random; Trainer sets the seed too late for it.
        set_seed(args.seed)
        if args.dropout is not None:
            # Before there is an adapter, whose dropout `peft_config` says.
            set_dropout(backbone.model, args.dropout)
        model = backbone.model if peft_config is None else with_adapter(backbone.model, peft_config)
        check_precision(model)
        self.settings = {**backbone.settings(), "tags": tags_name(tags), "fusion": None}
        setattr(model.config, KEY, self.settings)
        collator = RankingCollator(
            backbone,
            # Where it will run, not where it was loaded.
            tokens_per_forward=args.tokens_per_forward or tokens_a_forward(args.device),
            inputs_per_forward=args.chunk_size,
            share_prefix=SHARE_PREFIX[args.share_prefix],
            tags=tags,
            distillation=args.loss == "distillation",
        )
        try:
            super().__init__(
                model=model,
                args=args,
                data_collator=collator,
                train_dataset=train_dataset,
                # Only asked whether it is there; `evaluate` reads the two attributes above.
                eval_dataset=[*self.eval_pairs, *self.eval_lists] or None,
                processing_class=backbone.tokenizer,
                callbacks=callbacks,
                optimizers=optimizers,
            )
        except (ValueError, RuntimeError, ImportError, OSError) as error:
            # For example a report_to that is unknown, or not installed.
            raise QualcodeError(f"training cannot be set up: {' '.join(str(error).split())[:300]}") from error
        backbone.device = self.args.device
        if args.chunk_size is not None and self.is_deepspeed_enabled:
            raise UsageError("chunk_size needs several backward passes a batch, which DeepSpeed has not; leave it out")
        # Shards are gathered in every forward pass, so all processes must run equally many.
        self._in_step = self.is_fsdp_enabled or self.is_deepspeed_enabled
        if self.is_fsdp_enabled:
            keep_float32_scores(self.accelerator.state.fsdp_plugin)

    # ---- Loss ----

    def get_batch_samples(self, epoch_iterator, num_batches, device):
        """The micro-batches of one optimiser step, and the number of lists in it over all processes."""
        try:
            samples, _ = super().get_batch_samples(epoch_iterator, num_batches, device)
        except QualcodeError as error:
            raise type(error)(_told_by_worker(error)) from error
        if samples:
            self._blank_repeated(samples[-1])
        counts = [(batch["grades"] != losses.PADDING_GRADE).any(dim=1).sum() for batch in samples]
        num_lists = sum(counts, torch.zeros((), dtype=torch.int64)).to(device)
        return samples, self.accelerator.gather(num_lists).sum()

    def _blank_repeated(self, batch: dict[str, Any]) -> None:
        """Takes the lists out of the last batch of an epoch that are there only so that no process has less to do."""
        if not self.accelerator.gradient_state.end_of_dataloader or self.args.dataloader_drop_last:
            return
        if has_length(self.train_dataset):
            # Not what accelerate has for it, which is wrong in an epoch that is resumed.
            size, processes = self._train_batch_size, self.accelerator.num_processes
            rest = len(self.train_dataset) % (size * processes) or size * processes
            batch["grades"][max(0, rest - self.accelerator.process_index * size) :] = losses.PADDING_GRADE

    def train(self, resume_from_checkpoint=None, *arguments, **options):
        """As `Trainer.train`, after a look at what it begins with.

        Raises:
            `UsageError`: Without lists to train on, or a checkpoint where there should be one.
            `QualcodeError`: If the checkpoint to resume from is not whole, or of another model. Without its
                optimizer's state training would go on, to other weights.
        """
        if self.train_dataset is None or (has_length(self.train_dataset) and not len(self.train_dataset)):
            raise UsageError("there are no lists to train on; give train_dataset at least one")
        checkpoint = find_checkpoint(resume_from_checkpoint, self.args.output_dir)
        if checkpoint is not None:
            check_checkpoint(checkpoint, self.model, sharded=self._in_step)
        return super().train(None if checkpoint is None else str(checkpoint), *arguments, **options)

    def training_step(self, model: nn.Module, inputs: Mapping[str, Any], num_items_in_batch=None) -> Tensor:
        """One micro-batch, forwards and backwards. With `chunk_size`, inputs are run twice (see `RerankConfig`)."""
        if self.args.chunk_size is None:
            loss = super().training_step(model, inputs, num_items_in_batch)
        else:
            model.train()
            loss = self._step_in_chunks(model, self._prepare_inputs(inputs), num_items_in_batch)
        if not math.isfinite(loss.item()):
            raise QualcodeError(f"step {self.state.global_step + 1}: the loss is {loss.item()}; {_DIVERGED}")
        return loss

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        """The part of the step's loss that these lists make. `num_items_in_batch`: the lists of the whole step."""
        scores = [None] * len(inputs["batches"])
        for number, batch in enumerate(self._even(inputs["batches"])):
            last = number >= len(scores) - 1
            # DDP counts on one backward pass a forward pass: it hears of the last one only.
            with nullcontext() if last or not _is_ddp(model) else model.no_sync():
                part = self.backbone.scores(model, batch)
            if number < len(scores):
                scores[number] = part
            else:
                scores[-1] = scores[-1] + 0 * part.sum()
        flat = torch.cat(scores)
        loss = self._loss(flat, inputs, num_items_in_batch)
        return (loss, {"scores": flat[inputs["places"]]}) if return_outputs else loss

    def _loss(self, flat: Tensor, inputs: Mapping[str, Any], num_lists: Tensor | None) -> Tensor:
        """Args: flat (`Tensor`): [num_inputs], scores in the order of the forward batches."""
        scores, grades = flat[inputs["places"]], inputs["grades"]
        if num_lists is not None:
            # Processes average their gradients, and would otherwise divide twice.
            num_lists = num_lists / self.accelerator.num_processes
        options = {"temperature": self.args.temperature} if self.args.loss in TEMPERED else {}
        function = _FUNCTIONS[self.args.loss]
        try:
            if self.args.loss == "distillation":
                real = grades != losses.PADDING_GRADE
                return function(scores, inputs["teacher_scores"], mask=real, num_lists=num_lists, **options)
            return function(scores, grades, num_lists=num_lists, **options)
        except ValueError as error:
            raise QualcodeError(f"step {self.state.global_step + 1}: {error} {_DIVERGED}") from error

    def _step_in_chunks(self, model: nn.Module, inputs: Mapping[str, Any], num_lists: Tensor | None) -> Tensor:
        """Scores without a graph, the loss's gradient for each score, then chunk by chunk backwards."""
        batches = inputs["batches"]
        states = []
        with torch.no_grad():
            scores = []
            for batch in self._even(batches):
                states.append(self._random_state())
                scores.append(self.backbone.scores(model, batch))
        flat = torch.cat(scores[: len(batches)]).detach().requires_grad_()
        loss = self._loss(flat, inputs, num_lists)
        loss.backward()
        sizes = [len(part) for part in scores]
        slopes = torch.split(nn.functional.pad(flat.grad, (0, sum(sizes) - len(flat))), sizes)
        after = self._random_state()
        for number, batch in enumerate(self._even(batches)):
            last = number == len(scores) - 1
            self._set_random_state(states[number])
            with nullcontext() if last or not _is_ddp(model) else model.no_sync():
                part = self.backbone.scores(model, batch)
                self.accelerator.backward((part * slopes[number]).sum())
        self._set_random_state(after)
        return loss.detach()

    def _even(self, batches: list[dict]) -> list[dict]:
        """As many batches as the process with the most has, where the model is spread over processes."""
        if not self._in_step:
            return batches
        number = torch.tensor(len(batches), device=self.args.device)
        most = int(self.accelerator.gather(number).max())
        return batches + batches[-1:] * (most - len(batches))

    def _random_state(self) -> list[Tensor]:
        """Dropout must draw the same in both runs of a chunk. Empty where there is no dropout."""
        if self.args.dropout == 0:
            return []
        device = self.args.device
        return [torch.get_rng_state()] + ([torch.cuda.get_rng_state(device)] if device.type == "cuda" else [])

    def _set_random_state(self, state: list[Tensor]) -> None:
        if state:
            torch.set_rng_state(state[0])
        if len(state) > 1:
            torch.cuda.set_rng_state(state[1], self.args.device)

    def _clip_grad_norm(self, model: nn.Module):
        norm = super()._clip_grad_norm(model)
        # A gradient scaler of float16 steps over such gradients itself.
        if self.accelerator.scaler is None and norm is not None and not math.isfinite(float(norm)):
            raise QualcodeError(f"step {self.state.global_step + 1}: the gradient is {float(norm)}; {_DIVERGED}")
        return norm

    def floating_point_ops(self, inputs: Mapping[str, Any]) -> int:
        """6 for each token and each weight outside the embeddings."""
        tokens = sum(batch["input_ids"].numel() for batch in inputs["batches"])
        return 6 * tokens * self.model.num_parameters(exclude_embeddings=True)

    # ---- Evaluation ----

    def evaluate(self, eval_dataset=None, ignore_keys=None, metric_key_prefix: str = "eval") -> dict[str, float]:
        """Measures the model on `eval_pairs` and `eval_lists`; nothing is drawn, so equal weights give equal numbers.

        Args:
            eval_dataset (`Sequence[PreferencePair | GradedList | RankingList]`, *optional*): Measure these instead.
            ignore_keys: Not used.
            metric_key_prefix (`str`, *optional*, defaults to `"eval"`): Of the names.

        Returns:
            `dict[str, float]`: See the class.
        """
        self._memory_tracker.start()
        given = [*self.eval_pairs, *self.eval_lists] if eval_dataset is None else list(eval_dataset)
        metrics = {f"{metric_key_prefix}_{name}": value for name, value in measure(given, self).items()}
        self.log(metrics)
        self.control = self.callback_handler.on_evaluate(self.args, self.state, self.control, metrics)
        self._memory_tracker.stop_and_update_metrics(metrics)
        return metrics

    def predict(self, test_dataset, ignore_keys=None, metric_key_prefix: str = "test"):
        """There are no labels to hand back: `score` gives scores, and `evaluate` measures."""
        raise UsageError("RerankTrainer has no predict; use score(instructions, queries, codes), or evaluate(data)")

    @torch.no_grad()
    def score(self, instructions: Sequence[str], queries: Sequence[str], codes: Sequence[str]) -> np.ndarray:
        """See `Scorer.score`. Processes share the work, and each gets all scores."""
        model = self._prepared_for_scoring()
        triples = list(zip(instructions, queries, codes, strict=True))
        place = {triple: row for row, triple in enumerate(dict.fromkeys(triples))}
        forward = self.data_collator.forward_batches(list(place))
        ends = np.cumsum([0, *map(_num_scores, forward.batches)])
        scores = torch.zeros(len(place), dtype=torch.float32, device=self.args.device)
        processes, here = self.accelerator.num_processes, self.accelerator.process_index
        for first in range(0, len(forward.batches), processes):
            # One too many for the last batches is run as a repetition, and its scores are not used.
            number = min(first + here, len(forward.batches) - 1)
            part = self.backbone.scores(model, self._prepare_input(forward.batches[number]))
            if number == first + here:
                scores[torch.as_tensor(forward.rows[ends[number] : ends[number + 1]])] = part.float()
        scores = self.accelerator.reduce(scores, "sum").cpu().numpy()
        return scores[[place[triple] for triple in triples]]

    def _prepared_for_scoring(self) -> nn.Module:
        # As `Trainer.evaluation_loop`.
        model = self._wrap_model(self.model, training=False)
        if not self.accelerator._models and model is self.model:
            if self.is_deepspeed_enabled or self.is_fsdp_enabled:
                model = self.model = self.model_wrapped = self.accelerator.prepare(model)
            else:
                model = self.accelerator.prepare_model(model, evaluation_mode=True)
        return model.eval()

    # ---- Saving ----

    def _save(self, output_dir: str | None = None, state_dict=None) -> None:
        super()._save(output_dir, state_dict=state_dict)
        folder = Path(output_dir or self.args.output_dir)
        if self.args.should_save and hasattr(self.accelerator.unwrap_model(self.model), "peft_config"):
            # An adapter's folder has no configuration of the model.
            content = RerankerSettings.parse(self.settings, folder).to_dict()
            text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
            (folder / ADAPTER_SETTINGS_FILE).write_text(text, encoding="utf-8")


_DIVERGED = "training has diverged, or the data or the weights it began with are damaged; try a lower learning_rate"


def _told_by_worker(error: QualcodeError) -> str:
    """What an error says, in one line. Of one in a worker of the data loader, torch makes it the whole traceback."""
    last = str(error).strip().rpartition("\n")[2]
    return last.removeprefix(f"{type(error).__module__}.{type(error).__name__}: ")


def _is_ddp(model: nn.Module) -> bool:
    return isinstance(model, DistributedDataParallel)


def _num_scores(batch: Mapping[str, Tensor]) -> int:
    return len(batch["score_positions"]) if "score_positions" in batch else len(batch["input_ids"])
