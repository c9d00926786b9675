"""Measure a reranker on QualCode or MC-QualCode: QPA or MCA, and how far up it puts the relevant program of 100.

    python examples/evaluate_reranker.py --model FOLDER_OR_ID --data qualcode:DIR

    accelerate launch --config_file examples/accelerate_configs/eight_a100_ddp.yaml examples/evaluate_reranker.py \
        --model Qwen/Qwen3-Reranker-0.6B --data qualcode:DIR --data_config all-pairs

Every distinct input is scored once, by one of the processes. Tables go to stderr, one JSON line to stdout.
`hf-qualcode evaluate` has slices, changed inputs and comparisons besides, in one process.
"""

import json
import logging
import os
import sys
from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.utils import gather_object
from transformers import HfArgumentParser

from hf_qualcode import Reranker
from hf_qualcode.baselines.trivial import TRIVIAL_SCORERS
from hf_qualcode.benchmark.loading import load_lists, load_pairs
from hf_qualcode.evaluation.preference import evaluate_preference
from hf_qualcode.evaluation.preference_report import preference_report, preference_tables
from hf_qualcode.evaluation.protocols import NamedScorer
from hf_qualcode.evaluation.report import ranking_table, reranking_report
from hf_qualcode.evaluation.reranking import evaluate_reranking, random_reranking
from hf_qualcode.types import QualcodeError, UsageError


logger = logging.getLogger("evaluate_reranker")

PREFERENCE, RERANKING = "preference", "reranking"
Triple = tuple[str, str, str]


@dataclass
class ScriptArguments:
    """What is measured, and on what."""

    model: str = field(metadata={"help": "A reranker: a folder, an adapter's folder, or a Hub id."})
    data: str = field(metadata={"help": "qualcode:DIR, a folder of `dataset build`, or a Hub id."})
    base: str | None = field(default=None, metadata={"help": "Of an adapter, the model to put it on."})
    data_config: str | None = field(default=None, metadata={"help": "Pairs, such as all-pairs; default the paper's."})
    tasks: list[str] = field(
        default_factory=lambda: [PREFERENCE, RERANKING], metadata={"help": "preference, reranking or both."}
    )
    max_lists: int | None = field(default=None, metadata={"help": "Rank the first lists only, for a quick look."})
    precision: str = field(default="auto", metadata={"help": "Of the body: auto, float32 or bfloat16."})
    max_length: int | None = field(default=None, metadata={"help": "Tokens of an input; defaults to the model's own."})
    fusion: bool = field(default=True, metadata={"help": "--no_fusion takes the model's logit alone."})
    seed: int = field(default=42, metadata={"help": "Of the intervals."})

    def __post_init__(self):
        for name in ("max_lists", "max_length"):
            if getattr(self, name) is not None and getattr(self, name) < 1:
                raise UsageError(f"--{name} is {getattr(self, name)}; expected 1 or more")
        if self.seed < 0:
            raise UsageError(f"--seed is {self.seed}; expected 0 or more")
        unknown = sorted(set(self.tasks) - {PREFERENCE, RERANKING})
        if unknown or not self.tasks:
            raise UsageError(f"unknown task {unknown[:1]}; choose from: {PREFERENCE}, {RERANKING}")


def main(argv: list[str] | None = None) -> None:
    (script,) = HfArgumentParser(ScriptArguments).parse_args_into_dataclasses(argv)
    if not torch.accelerator.is_available():
        # Else processes that `accelerate launch` starts on a CPU do not look for each other.
        os.environ.setdefault("ACCELERATE_USE_CPU", "true")
    accelerator = Accelerator()
    if accelerator.num_processes != int(os.environ.get("WORLD_SIZE", "1")):
        raise QualcodeError(f"{os.environ['WORLD_SIZE']} processes were started, and each works alone")
    logging.basicConfig(stream=sys.stderr)
    logger.setLevel(logging.INFO if accelerator.is_main_process else logging.WARNING)
    with accelerator.main_process_first():
        data = load_pairs(script.data, script.data_config)
        lists = load_lists(script.data)[: script.max_lists] if has_lists(script, data.name) else []
        reranker = Reranker.from_pretrained(
            script.model,
            device=str(accelerator.device),
            precision=script.precision,
            max_length=script.max_length,
            fusion=script.fusion,
            base=script.base,
        )
    pairs = data.pairs if PREFERENCE in script.tasks else []

    # All inputs of all tasks, scored once, then looked up.
    triples = [(pair.instruction, pair.query, code) for pair in pairs for code in (pair.positive, pair.negative)]
    triples += [(each.instruction, each.query, code) for each in lists for code in each.documents]
    scores = score_together(accelerator, reranker, list(dict.fromkeys(triples)))

    if accelerator.is_main_process:
        report = {"model": script.model, "data": script.data, "world_size": accelerator.num_processes}
        config = {"config": "+".join(data.configs), "split": data.split, "seed": script.seed}
        report["inputs"] = len(scores)
        tables = []
        known = LookedUp(scores, reranker.scale)
        if pairs:
            trivial = [NamedScorer(name, scorer) for name, scorer in TRIVIAL_SCORERS.items()]
            result = evaluate_preference(pairs, known, name=script.model, baselines=trivial, seed=script.seed)
            report[PREFERENCE] = preference_report(
                result, source=script.data, config=config, metric=data.metric, seed=script.seed
            )
            tables += preference_tables(report[PREFERENCE])
        if lists:
            beside = {"random": random_reranking(lists)}
            report[RERANKING] = reranking_report(
                script.data, config, script.model, evaluate_reranking(lists, known), beside, script.seed
            )
            tables.append(ranking_table(report[RERANKING], "lists"))
        for table in tables:
            print(table.to_text(), file=sys.stderr)
        print(json.dumps(report), flush=True)
    accelerator.end_training()


def has_lists(script: ScriptArguments, name: str) -> bool:
    """Whether lists are asked for and there; MC-QualCode has none."""
    if RERANKING in script.tasks and name != "qualcode":
        if script.tasks == [RERANKING]:
            raise UsageError(f"{script.data} is {name}, which has pairs alone; choose the task {PREFERENCE}")
        logger.info("%s is %s, which has pairs alone", script.data, name)
        return False
    return RERANKING in script.tasks


@dataclass
class LookedUp:
    """A `Scorer` of inputs whose scores are known."""

    scores: dict[Triple, float]
    scale: str

    def score(self, instructions: list[str], queries: list[str], codes: list[str]) -> np.ndarray:
        """See `Scorer.score`."""
        return np.array([self.scores[triple] for triple in zip(instructions, queries, codes, strict=True)])


def score_together(accelerator: Accelerator, reranker: Reranker, triples: list[Triple]) -> dict[Triple, float]:
    """Scores distinct inputs, each by one process; every process gets all scores."""
    mine = shares(triples, accelerator.num_processes)[accelerator.process_index]
    instructions, queries, codes = (list(column) for column in zip(*mine, strict=True)) if mine else ([], [], [])

    def progress(stage: str, done: int, total: int | None) -> None:
        if accelerator.is_main_process and total and done * 10 // total > (done - 1) * 10 // total:
            logger.info("%s: %d of %d on this process", stage, done, total)

    scores = reranker.score(queries, codes, instruction=instructions, progress=progress)
    gathered = gather_object(list(zip(mine, scores.tolist(), strict=True)))
    if len(gathered) != len(triples):
        raise QualcodeError(f"{len(gathered)} scores came back for {len(triples)} inputs; a process failed")
    return dict(gathered)


def shares(triples: list[Triple], num_processes: int) -> list[list[Triple]]:
    """Deals inputs out by query, the longest first, so that shares are about equally long and what a decoder computes
    once a query is computed on one device."""
    groups: dict[tuple[str, str], list[Triple]] = defaultdict(list)
    for triple in triples:
        groups[triple[:2]].append(triple)
    dealt: list[list[Triple]] = [[] for _ in range(num_processes)]
    sizes = [0] * num_processes
    for group in sorted(groups.values(), key=characters, reverse=True):
        least = sizes.index(min(sizes))
        dealt[least] += group
        sizes[least] += characters(group)
    return dealt


def characters(group: list[Triple]) -> int:
    """Length of all texts."""
    return sum(len(text) for triple in group for text in triple)


if __name__ == "__main__":
    try:
        main()
    except QualcodeError as error:
        print(f"evaluate_reranker: {error}", file=sys.stderr)
        sys.exit(2 if isinstance(error, UsageError) else 1)
