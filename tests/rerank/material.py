"""Training lists of made-up words, and short training runs on tiny models."""

import random

import torch

from hf_qualcode.rerank import RankingList, RerankConfig, RerankTrainer
from hf_qualcode.rerank.backbones import load_backbone
from tests.conftest import TINY_TEXTS


WORDS = " ".join(TINY_TEXTS).split()


def words(rng, number):
    return " ".join(rng.choice(WORDS) for _ in range(number))


def ragged_lists(number, *, seed=0, longest=6, teacher=False):
    """Lists of 2 to `longest` codes of 3 to 25 words, with grades 0 to 2."""
    rng = random.Random(seed)
    lists = []
    for each in range(number):
        size = rng.randint(2, longest)
        lists.append(
            RankingList(
                id=f"list {each}",
                instruction="Retrieve code that is fast",
                query=words(rng, 4),
                codes=tuple(words(rng, rng.randint(3, 25)) for _ in range(size)),
                grades=(2, 0, *(rng.randint(0, 2) for _ in range(size - 2))),
                teacher_scores=tuple(rng.gauss(0, 1) for _ in range(size)) if teacher else None,
                problem_id=f"problem {each % 3}",
            )
        )
    return lists


def config(folder, **options):
    """Plain gradient descent with large steps, so that a gradient that is a little wrong is seen in the weights."""
    settings = {
        "use_cpu": True, "report_to": "none", "save_strategy": "no", "logging_steps": 1, "disable_tqdm": True,
        "optim": "sgd", "learning_rate": 0.05, "max_grad_norm": 0.0, "per_device_train_batch_size": 4,
        "tokens_per_forward": 100,
    }  # fmt: skip
    return RerankConfig(output_dir=str(folder), **{**settings, **options})


def train(model_folder, output, lists, *, resume=None, dtype=torch.float32, trainer=None, **options):
    """A finished trainer. `trainer` are its keyword arguments, `options` those of its settings."""
    torch.manual_seed(0)
    backbone = load_backbone(str(model_folder), training=True)
    backbone.model.to(dtype)
    done = RerankTrainer(backbone, config(output, **options), lists, **(trainer or {}))
    done.train(resume_from_checkpoint=resume)
    return done


def curve(trainer):
    """The logged losses."""
    return [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]


def weights(trainer):
    """All weights in one row."""
    return torch.cat([weight.detach().flatten() for weight in trainer.model.parameters()])


def lora(**options):
    """A small adapter of all linear layers."""
    from peft import LoraConfig

    return LoraConfig(r=2, target_modules="all-linear", **options)
