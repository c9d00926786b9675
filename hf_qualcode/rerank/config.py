"""Settings of a training run. The defaults are those of SynH-Rank; where the paper is silent, that is said."""

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from transformers import TrainingArguments

from hf_qualcode.types import UsageError


# The functions of `hf_qualcode.losses`, by the name that `RerankConfig.loss` takes.
LOSSES = ("delta_ndcg", "info_nce", "pairwise_logistic", "distillation")
TEMPERED = ("info_nce", "distillation")


@dataclass
class RerankConfig(TrainingArguments):
    """`TrainingArguments` with the defaults of SynH-Rank, and what training on lists needs besides.

    A batch is one of lists: `per_device_train_batch_size` lists on each device. The paper's 16 lists an optimiser step
    are one device x 16, or 8 devices x 2: the step is the same, for gradients are averaged over all lists of the step,
    across accumulation and processes.

    Two-stage recipes and warm starts are several runs, one after the other, on the same backbone.

    Args:
        loss (`str`, *optional*, defaults to `"delta_ndcg"`):
            `"delta_ndcg"` (SynH-Rank, section 4.2, Eq. 5 and 6), `"info_nce"` (section 4.2, Eq. 4),
            `"pairwise_logistic"` or `"distillation"`; see `hf_qualcode.losses`.
        temperature (`float`, *optional*, defaults to 1.0): Of `"info_nce"` and `"distillation"`. Not in the paper.
        dropout (`float`, *optional*, defaults to 0.0):
            Probability in all dropout layers of the model, attention included; `None` leaves what the checkpoint says.
            Not in the paper. Dropout in attention keeps the CPU from its fast kernel: a step takes four times as long.
        tokens_per_forward (`int`, *optional*):
            Tokens of one forward batch, padding included; see [`RankingCollator`]. It changes speed, not results.
        chunk_size (`int`, *optional*):
            Keep the activations of at most this many inputs at a time, for lists too long for memory. Gradients are
            exact: scores are computed once without a graph, the loss gives each score its gradient, and inputs are
            then run again, `chunk_size` at a time. Costs one more forward. By default all inputs of a batch are run
            once, and `gradient_accumulation_steps` saves memory at no cost as long as one list fits.
        share_prefix (`str`, *optional*, defaults to `"auto"`):
            `"auto"`, `"always"` or `"never"`: whether decoders compute instruction and query once a list.
        per_device_train_batch_size (`int`, *optional*, defaults to 16): Lists (SynH-Rank, section 5.4).
        num_train_epochs (`float`, *optional*, defaults to 1.0): SynH-Rank, section 5.4.
        learning_rate (`float`, *optional*, defaults to 6e-6): SynH-Rank, section 5.4.
        seed (`int`, *optional*, defaults to 42): Fixed for all stochastic operations (section 5.4); which is not said.

    Fine-tuning is full (section 5.4) unless the trainer is given a `peft_config`. Ours, for the paper does not say:
    AdamW without weight decay, linear decay to 0, no warm-up, gradients clipped to a norm of 1.
    """

    per_device_train_batch_size: int = field(default=16, metadata={"help": "Lists a device (section 5.4)."})
    num_train_epochs: float = field(default=1.0, metadata={"help": "Epochs (section 5.4)."})
    learning_rate: float = field(default=6e-6, metadata={"help": "Peak learning rate (section 5.4)."})
    logging_steps: float = field(default=10, metadata={"help": "Steps between two log lines."})
    # Every parameter is used in every step, and no buffer changes: what DDP can do about either only costs time.
    ddp_find_unused_parameters: bool | None = field(default=False, metadata={"help": "See `TrainingArguments`."})
    ddp_broadcast_buffers: bool | None = field(default=False, metadata={"help": "See `TrainingArguments`."})
    remove_unused_columns: bool = field(
        default=False, metadata={"help": "Must stay false: the collator reads texts, which the model does not take."}
    )

    loss: str = field(default="delta_ndcg", metadata={"help": f"One of: {', '.join(LOSSES)}."})
    temperature: float = field(default=1.0, metadata={"help": "Of info_nce and distillation."})
    dropout: float | None = field(default=0.0, metadata={"help": "In all layers; none leaves the checkpoint's."})
    tokens_per_forward: int | None = field(default=None, metadata={"help": "Tokens of a forward batch."})
    chunk_size: int | None = field(default=None, metadata={"help": "Inputs whose activations are kept at a time."})
    share_prefix: str = field(default="auto", metadata={"help": "auto, always or never."})

    def __post_init__(self):
        self._check()
        if self.load_best_model_at_end and self.metric_for_best_model is None:
            self.metric_for_best_model = "qpa"
        try:
            super().__post_init__()
        except (ValueError, ImportError) as error:  # an unknown name, or what is not installed
            raise UsageError(" ".join(str(error).split())) from error

    def _check(self) -> None:
        for name, legal in _NUMBERS.items():
            _check_number(name, getattr(self, name), legal)
        if not isinstance(self.share_prefix, str):
            raise UsageError(f"share_prefix is {self.share_prefix!r}; choose from: {', '.join(SHARE_PREFIX)}")
        if self.loss not in LOSSES:
            raise UsageError(f"loss is {self.loss!r}; choose from: {', '.join(LOSSES)}")
        if self.temperature != 1 and self.loss not in TEMPERED:
            raise UsageError(f"loss {self.loss!r} has no temperature; leave it at 1, or use {' or '.join(TEMPERED)}")
        if self.share_prefix not in SHARE_PREFIX:
            raise UsageError(f"share_prefix is {self.share_prefix!r}; choose from: {', '.join(SHARE_PREFIX)}")
        if self.remove_unused_columns:
            raise UsageError("remove_unused_columns is True; it must be False, for the collator reads the columns")
        if self.label_smoothing_factor:
            raise UsageError(f"label_smoothing_factor is {self.label_smoothing_factor}; ranking losses have none")
        if self.train_sampling_strategy not in ("random", "sequential"):
            raise UsageError(
                f"train_sampling_strategy is {self.train_sampling_strategy!r}; choose from: random, sequential "
                "(inputs of a batch are sorted by length anyway)"
            )

    @classmethod
    def synh_rank(cls, output_dir: str, **overrides: Any) -> "RerankConfig":
        """The method of the paper (sections 4.2 and 5.4), for lists of `build_lists`. These are the defaults."""
        return cls(output_dir=output_dir, **{"loss": "delta_ndcg", **overrides})

    @classmethod
    def info_nce(cls, output_dir: str, **overrides: Any) -> "RerankConfig":
        """The ablation of section 6.2: the lists of SynH-Rank, the contrastive loss."""
        return cls(output_dir=output_dir, **{"loss": "info_nce", **overrides})

    @classmethod
    def srcl(cls, output_dir: str, **overrides: Any) -> "RerankConfig":
        """The relevance-only baseline of section 6.1, for lists of `srcl_lists`."""
        return cls(output_dir=output_dir, **{"loss": "info_nce", **overrides})


class _Legal(NamedTuple):
    """Which numbers a setting may be; `below` is not one of them. Infinity and NaN never are."""

    least: float
    below: float = math.inf
    whole: bool = True
    above: float = -math.inf
    optional: bool = False

    def __str__(self) -> str:
        span = f"{self.least} or more"
        if self.above > -math.inf:
            span = f"a number above {self.above}"
        elif self.below < math.inf:
            span = f"a number from {self.least} to below {self.below}"
        return span + " (an integer)" * self.whole + ", or None" * self.optional


# What would stop a run with the traceback of a library, or train nothing without a word.
_NUMBERS = {
    "temperature": _Legal(0, whole=False, above=0),
    "dropout": _Legal(0, below=1, whole=False, optional=True),
    "tokens_per_forward": _Legal(1, optional=True),
    "chunk_size": _Legal(1, optional=True),
    "per_device_train_batch_size": _Legal(1),
    "per_device_eval_batch_size": _Legal(1),
    "gradient_accumulation_steps": _Legal(1),
    "dataloader_num_workers": _Legal(0),
    "learning_rate": _Legal(0, whole=False),
    "weight_decay": _Legal(0, whole=False),
    "max_grad_norm": _Legal(0, whole=False, optional=True),
    "adam_beta1": _Legal(0, below=1, whole=False),
    "adam_beta2": _Legal(0, below=1, whole=False),
    "adam_epsilon": _Legal(0, whole=False),
    "seed": _Legal(0, below=2**32),
    "data_seed": _Legal(0, below=2**32, optional=True),
    "max_steps": _Legal(-1),
    "num_train_epochs": _Legal(0, whole=False, above=0),
}


def _check_number(name: str, value: Any, legal: _Legal) -> None:
    if value is None and legal.optional:
        return
    fits = isinstance(value, int if legal.whole else int | float) and not isinstance(value, bool)
    # NaN compares as false.
    if not (fits and legal.least <= value < legal.below and value > legal.above):
        raise UsageError(f"{name} is {value!r:.60}; expected {legal}")


# `RerankConfig.share_prefix` -> `RankingCollator.share_prefix`. Words, so that a command line can give them.
SHARE_PREFIX: dict[str, bool | str] = {"auto": "auto", "always": True, "never": False}
