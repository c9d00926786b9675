"""Training steps of `RerankTrainer` beside sentence-transformers' `CrossEncoderTrainer`: lists per second and memory.

    python benchmarks/rerank_training.py --data <folder with codenet-mini/> [--decoder] [--json FILE]

16 lists of 6 programs of all lengths a step; the packaged MiniLM and a head in full; AdamW at one learning rate; up to
512 tokens an input. Each contestant trains in a process of its own, whose peak memory is what the system says (VmHWM).
Processes take turns, and of each the median step counts, the first one aside. sentence-transformers runs as it comes,
with the checkpoint's dropout, and without dropout, which is what ours does.

The losses are one formula, |gain| x |discount| x logistic loss of pairs (LambdaRank): ours is its sum over the pairs
of a list, and the mean of lists; `LambdaLoss` takes the mean over all pairs of a batch, and logarithms to base 2. So
value and gradient differ by a constant, here the 9 pairs of a list x ln 2. First losses are printed in units of ours:
they are alike but for dropout, and inputs that are too long, which the two cut differently.

`--decoder`: a random decoder, lists with whole problem statements as queries, whose prefix is computed once a list,
and once for each candidate.
"""

import argparse
import json
import math
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from rerank_decoder import save_random_model
from rerank_encoder import save_model
from rerank_material import Problem, add_data_argument, read_problems
from turns import machine, quiet_transformers, show_machine


DEFAULT, PLAIN, OURS = "sentence-transformers", "sentence-transformers, dropout 0", "hf-qualcode"
UNSHARED, SHARED = "hf-qualcode, prefix not shared", "hf-qualcode, prefix shared"
GRADES = (2, 1, 1, 1, 1, 0)
# What their mean over pairs in bits is multiplied by to be our sum over pairs.
THEIR_UNIT = sum(high > low for high in GRADES for low in GRADES) * math.log(2)
LEARNING_RATE = 6e-6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_data_argument(parser)
    parser.add_argument("--decoder", action="store_true", help="a decoder, shared prefix beside unshared")
    parser.add_argument("--model", default="minilm", help="encoder: minilm, a folder or a Hub id")
    parser.add_argument("--layers", type=int, default=4, help="of the decoder (default 4)")
    parser.add_argument("--max-length", type=int, help="tokens of an input (default 512, decoders 1024)")
    parser.add_argument("--characters", type=int, default=300, help="of a statement, for encoders (default 300)")
    parser.add_argument("--lists", type=int, help="of a step (default 16, decoders 4)")
    parser.add_argument("--steps", type=int, default=3, help="of each process, the first not counted (default 3)")
    parser.add_argument("--rounds", type=int, default=2, help="processes of each contestant (default 2)")
    parser.add_argument("--threads", type=int, help="of torch; defaults to its own choice")
    parser.add_argument("--json", type=Path, help="write the figures to this file as well")
    parser.add_argument("--contestant", help=argparse.SUPPRESS)
    parser.add_argument("--source", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    arguments.lists = arguments.lists or (4 if arguments.decoder else 16)
    arguments.max_length = arguments.max_length or (1024 if arguments.decoder else 512)
    if arguments.steps < 2:
        parser.error(f"--steps {arguments.steps}: the first step is not counted, so give 2 or more")
    quiet_transformers()
    if arguments.contestant:
        run_contestant(arguments)
    else:
        compare(arguments)


def compare(arguments: argparse.Namespace) -> None:
    names = [UNSHARED, SHARED] if arguments.decoder else [DEFAULT, PLAIN, OURS]
    runs = {name: [] for name in names}
    with tempfile.TemporaryDirectory() as folder:
        if arguments.decoder:
            save_random_model(read_problems(arguments.data), arguments.layers, Path(folder))
        else:
            save_model(arguments.model, Path(folder))
        for number in range(arguments.rounds):
            for name in names if number % 2 == 0 else names[::-1]:
                command = [sys.executable, __file__, *sys.argv[1:], "--contestant", name, "--source", folder]
                done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
                runs[name].append(json.loads(done.stdout.splitlines()[-1]))
    figures = {
        name: {
            "lists_per_second": arguments.lists / min(run["wall"] for run in of_name),
            "lists_per_cpu_second": arguments.lists / min(run["cpu"] for run in of_name),
            "peak_mb": max(run["peak_mb"] for run in of_name),
            "first_loss": of_name[-1]["first_loss"],
        }
        for name, of_name in runs.items()
    }
    *others, ours = names
    report = {
        "model": f"random Qwen3, {arguments.layers} layers" if arguments.decoder else arguments.model,
        "lists": arguments.lists,
        "max_length": arguments.max_length,
        "tokens_a_step": runs[ours][0]["tokens"],
        "machine": runs[ours][0]["machine"],
        "contestants": figures,
        "ratio": {name: figures[ours]["lists_per_second"] / figures[name]["lists_per_second"] for name in others},
        "cpu_ratio": {
            name: figures[ours]["lists_per_cpu_second"] / figures[name]["lists_per_cpu_second"] for name in others
        },
        "memory_ratio": {name: figures[ours]["peak_mb"] / figures[name]["peak_mb"] for name in others},
    }
    show(report)
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=2), encoding="utf-8")


def run_contestant(arguments: argparse.Namespace) -> None:
    """Trains, and prints what it took as one line of JSON."""
    import torch

    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    lists = draw_lists(read_problems(arguments.data), arguments)
    with tempfile.TemporaryDirectory() as folder:
        common = {
            "output_dir": folder, "use_cpu": True, "report_to": "none", "save_strategy": "no", "logging_steps": 1,
            "learning_rate": LEARNING_RATE, "num_train_epochs": 1, "per_device_train_batch_size": arguments.lists,
            "disable_tqdm": True, "seed": 0,
        }  # fmt: skip
        torch.manual_seed(0)
        if arguments.contestant in (OURS, SHARED, UNSHARED):
            trainer, num_tokens, unit = *our_trainer(arguments, lists, common), 1.0
        else:
            trainer, num_tokens, unit = their_trainer(arguments, lists, common), None, THEIR_UNIT
        clock = add_clock(trainer)
        trainer.train()
    print(
        json.dumps(
            {
                "wall": statistics.median(wall for wall, _ in clock[1:]),
                "cpu": statistics.median(cpu for _, cpu in clock[1:]),
                "peak_mb": peak_mb(),
                "first_loss": trainer.state.log_history[0]["loss"] * unit,
                "tokens": num_tokens,
                "machine": machine(),
            }
        )
    )


def draw_lists(problems: Sequence[Problem], arguments: argparse.Namespace) -> list:
    """Lists of one program to prefer, four others of its problem and one of another; drawn with a fixed seed."""
    from hf_qualcode.rerank import RankingList

    rng = random.Random(0)
    enough = [problem for problem in problems if len(set(problem.programs)) >= len(GRADES) - 1]
    lists = []
    for number in range(arguments.lists * arguments.steps):
        problem, other = rng.sample(enough, 2)
        codes = rng.sample(sorted(set(problem.programs)), len(GRADES) - 1)
        lists.append(
            RankingList(
                id=str(number),
                instruction="Retrieve code that is fast",
                query=problem.statement if arguments.decoder else problem.statement[: arguments.characters],
                codes=(*codes, rng.choice(other.programs)),
                grades=GRADES,
            )
        )
    return lists


def our_trainer(arguments: argparse.Namespace, lists: list, common: dict):
    """A trainer, and the tokens of a step, padding not counted and each candidate's prefix counted."""
    from hf_qualcode.rerank import RerankConfig, RerankTrainer
    from hf_qualcode.rerank.backbones import load_backbone

    backbone = load_backbone(arguments.source, training=True, max_length=arguments.max_length, device="cpu")
    triples = [(each.instruction, each.query, code) for each in lists for code in each.codes]
    num_tokens = sum(len(encoded.ids) for encoded in backbone.encode(*zip(*triples, strict=True)).inputs)
    share = {SHARED: "always", UNSHARED: "never"}.get(arguments.contestant, "auto")
    # The two would shuffle differently.
    config = RerankConfig(share_prefix=share, train_sampling_strategy="sequential", **common)
    return RerankTrainer(backbone, config, lists), num_tokens // arguments.steps


def their_trainer(arguments: argparse.Namespace, lists: list, common: dict):
    from datasets import Dataset
    from sentence_transformers import CrossEncoder
    from sentence_transformers.cross_encoder import CrossEncoderTrainer, CrossEncoderTrainingArguments
    from sentence_transformers.cross_encoder.losses import LambdaLoss, LambdaRankScheme

    # Dropout is set where the checkpoint's configuration is read.
    no_dropout = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    model = CrossEncoder(
        arguments.source, max_length=arguments.max_length, device="cpu",
        config_kwargs=None if arguments.contestant == DEFAULT else no_dropout,
    )  # fmt: skip
    data = Dataset.from_dict(
        {
            "query": [f"{each.instruction}\n{each.query}" for each in lists],
            "docs": [list(each.codes) for each in lists],
            "labels": [list(each.grades) for each in lists],
        }
    )
    loss = LambdaLoss(model, weighting_scheme=LambdaRankScheme())
    settings = CrossEncoderTrainingArguments(train_sampling_strategy="sequential", **common)
    return CrossEncoderTrainer(model=model, args=settings, train_dataset=data, loss=loss)


def add_clock(trainer) -> list[tuple[float, float]]:
    """Seconds and CPU seconds of each optimiser step, the making of its batch included, filled in while it trains."""
    from transformers import TrainerCallback

    steps: list[tuple[float, float]] = []
    last = [0.0, 0.0]

    class Clock(TrainerCallback):
        def on_train_begin(self, *args, **options):
            last[:] = time.perf_counter(), time.process_time()

        def on_step_end(self, *args, **options):
            now = time.perf_counter(), time.process_time()
            steps.append((now[0] - last[0], now[1] - last[1]))
            last[:] = now

    trainer.add_callback(Clock())
    return steps


def peak_mb() -> float:
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def show(report: dict) -> None:
    print(
        f"{report['model']}: {report['lists']} lists of {len(GRADES)} a step, {report['tokens_a_step']} tokens, at "
        f"most {report['max_length']} an input"
    )
    show_machine(report["machine"])
    for name, figures in report["contestants"].items():
        print(
            f"  {name:32} {figures['lists_per_second']:6.2f} lists/s   {figures['lists_per_cpu_second']:6.2f} a CPU "
            f"second   peak {figures['peak_mb']:6.0f} MB   first loss {figures['first_loss']:.3f}"
        )
    for name, ratio in report["ratio"].items():
        print(
            f"  to {name}: {ratio:.2f} the speed, {report['cpu_ratio'][name]:.2f} by CPU time, "
            f"{report['memory_ratio'][name]:.2f} the memory"
        )


if __name__ == "__main__":
    main()
