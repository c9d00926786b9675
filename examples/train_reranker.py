"""Train a quality-aware reranker on lists, measure it on problems that it has not seen, save it, and push it if asked.

    accelerate launch --config_file examples/accelerate_configs/one_a100.yaml examples/train_reranker.py \
        --config examples/configs/reranker/qwen3_synh_rank.yaml --lists LISTS --eval_data qualcode:DIR

    accelerate launch --config_file examples/accelerate_configs/cpu.yaml examples/train_reranker.py \
        --config examples/configs/reranker/minilm_synh_rank.yaml --pairs qualcode:DIR

Arguments are those below, of `RerankConfig` and of `transformers.TrainingArguments`; `--config FILE` reads them from
YAML, and what the command line says wins. The reranker lies in OUTPUT_DIR/reranker, checkpoints beside it, and lists
that were made of pairs in OUTPUT_DIR/lists.parquet. One JSON line goes to stdout, everything else to stderr. See
docs/train_a_reranker.md.
"""

import contextlib
import json
import logging
import os
import random
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import NamedTuple

import torch
from datasets import load_dataset
from peft import LoraConfig
from transformers import SchedulerType, set_seed
from transformers.trainer_utils import get_last_checkpoint
from trl import TrlParser
from yaml import YAMLError

from hf_qualcode import Reranker
from hf_qualcode.baselines.trivial import TRIVIAL_SCORERS
from hf_qualcode.benchmark.loading import load_lists, load_pairs
from hf_qualcode.evaluation.folds import assign_folds, training_pairs
from hf_qualcode.evaluation.reranking import evaluate_reranking, random_reranking
from hf_qualcode.evaluation.scoring import score_pairs
from hf_qualcode.hub import check_repository, existing_path
from hf_qualcode.metrics import quality_preference_accuracy
from hf_qualcode.quality import dimension_names
from hf_qualcode.rerank import RankingList, RerankConfig, RerankTrainer, lists_from_pairs, srcl_lists
from hf_qualcode.rerank.backbones import load_backbone
from hf_qualcode.rerank.cards import CardFacts, Result, TrainingData
from hf_qualcode.rerank.data import GradedVariant, lists_from_dataset, lists_to_dataset, negated_instruction
from hf_qualcode.rerank.preparing import with_adapter
from hf_qualcode.rerank.tags import with_tags
from hf_qualcode.types import GradedList, PreferencePair, QualcodeError, UsageError


logger = logging.getLogger("train_reranker")

# The three methods of the paper: SynH-Rank (sections 4.2, 5.4), its ablation (6.2), the relevance-only baseline (6.1).
LOSS_OF_METHOD = {"synh_rank": "delta_ndcg", "info_nce": "info_nce", "srcl": "info_nce"}
IRRELEVANT_OF_METHOD = {"synh_rank": 1, "info_nce": 1, "srcl": 5}
LISTS_FILE = "lists.parquet"
# The least that an argument may be.
LEAST = {
    "max_length": 1, "num_low": 1, "num_irrelevant": 0, "num_lists": 1, "fold": 0, "num_folds": 2, "split_seed": 0,
    "max_eval_pairs": 1, "max_eval_lists": 0, "lora_rank": 0, "lora_alpha": 1,
}  # fmt: skip
JSON_LINES = (".jsonl", ".json")
FORMATS = {".parquet": "parquet"}


@dataclass
class ScriptArguments:
    """What is trained, on what, and what becomes of it."""

    model: str = field(default="minilm", metadata={"help": "A folder, a Hub id (org/name[@revision]) or minilm."})
    backbone: str | None = field(default=None, metadata={"help": "Family; defaults to the one that fits the model."})
    max_length: int | None = field(default=None, metadata={"help": "Tokens of an input; defaults to the model's own."})
    tags: bool = field(default=False, metadata={"help": "Put what the syntax tree shows before each Python program."})

    lists: str | None = field(
        default=None,
        metadata={"help": "Parquet, JSON lines, a folder or a Hub id; columns instruction, query, codes, grades."},
    )
    lists_config: str | None = field(default=None, metadata={"help": "Configuration of --lists."})
    lists_split: str = field(default="train", metadata={"help": "Split of --lists."})
    pairs: str | None = field(default=None, metadata={"help": "Make lists of these pairs: qualcode:DIR or a Hub id."})
    pairs_config: str | None = field(default=None, metadata={"help": "Configuration of --pairs, such as all-pairs."})
    qualities: str | None = field(
        default=None, metadata={"help": "Only pairs of these qualities, for example speed,memory; defaults to all."}
    )
    num_low: int = field(default=4, metadata={"help": "Relevant programs of low quality a list (section 5.4)."})
    num_irrelevant: int | None = field(
        default=None, metadata={"help": "Programs of other problems a list; defaults to 1, of srcl to 5 (5.4, 6.1)."}
    )
    negated: bool = field(default=False, metadata={"help": "Each list of --pairs under the opposite instruction too."})
    one_list_per_query: bool = field(
        default=False, metadata={"help": "One list a problem and instruction of --pairs, not one a better program."}
    )
    num_lists: int | None = field(default=None, metadata={"help": "Draw so many lists; defaults to all."})

    fold: int | None = field(
        default=None, metadata={"help": "Hold this fold of the problems of --pairs out, from 0; defaults to none."}
    )
    num_folds: int = field(default=5, metadata={"help": "Folds of problems."})
    split_seed: int = field(default=42, metadata={"help": "Of the folds, and of what is drawn of the data."})
    eval_data: str | None = field(
        default=None, metadata={"help": "Measure on this QualCode; lists that share a text with it go."}
    )
    eval_config: str | None = field(default=None, metadata={"help": "Configuration of --eval_data."})
    max_eval_pairs: int | None = field(default=None, metadata={"help": "Pairs to measure on; defaults to all."})
    max_eval_lists: int = field(default=0, metadata={"help": "Relevance lists of 100 programs to measure on."})

    lora_rank: int = field(default=0, metadata={"help": "Of a LoRA adapter; 0 trains all weights (section 5.4)."})
    lora_alpha: int | None = field(default=None, metadata={"help": "Defaults to twice the rank."})
    lora_dropout: float = field(default=0.0, metadata={"help": "Of the adapter."})
    merge_adapter: bool = field(default=False, metadata={"help": "Save the whole model, the adapter merged into it."})

    title: str | None = field(default=None, metadata={"help": "Of the card; defaults to the name of the output."})
    base_model: str | None = field(
        default=None, metadata={"help": "How card and adapter name the model where --model is a folder: org/name."}
    )
    data_name: str | None = field(default=None, metadata={"help": "What the card calls the training data."})
    data_license: str = field(default="see its source", metadata={"help": "Licence of the training data."})

    def __post_init__(self):
        for name, least in LEAST.items():
            value = getattr(self, name)
            if value is not None and value < least:
                raise UsageError(f"--{name} is {value}; expected {least} or more")
        if not 0 <= self.lora_dropout < 1:
            raise UsageError(f"--lora_dropout is {self.lora_dropout}; expected a number from 0 to below 1")
        if (self.lists is None) == (self.pairs is None):
            raise UsageError("name the training data: either --lists SOURCE or --pairs qualcode:DIR")
        if self.fold is not None and self.pairs is None:
            raise UsageError("--fold splits the problems of --pairs; with --lists, name --eval_data")
        options = ("negated", "one_list_per_query", "qualities", "pairs_config")
        of_pairs = [name for name in options if getattr(self, name)]
        if self.pairs is None and of_pairs:
            raise UsageError(
                f"--{of_pairs[0]} says how lists are made of --pairs; with --lists, make them so beforehand"
            )
        if self.fold is not None and self.eval_data is not None:
            raise UsageError("--fold and --eval_data both say what to measure on; give one of them")


@dataclass
class TrainingSettings(RerankConfig):
    """`RerankConfig`, with the paper's methods by name and a step that stays the same on any number of devices."""

    method: str = field(
        default="synh_rank", metadata={"help": f"Sets lists and loss; one of: {', '.join(LOSS_OF_METHOD)}."}
    )
    loss: str | None = field(default=None, metadata={"help": "In place of the method's."})
    lists_per_step: int | None = field(
        default=None,
        metadata={"help": "Lists an optimiser step over all processes; sets the accumulation."},
    )

    def __post_init__(self):
        if self.method not in LOSS_OF_METHOD:
            raise UsageError(f"method is {self.method!r}; choose from: {', '.join(LOSS_OF_METHOD)}")
        self.loss = self.loss or LOSS_OF_METHOD[self.method]
        super().__post_init__()
        if self.world_size != int(os.environ.get("WORLD_SIZE", "1")):
            raise QualcodeError(f"{os.environ['WORLD_SIZE']} processes were started, and each sees {self.world_size}")
        if self.push_to_hub:
            raise UsageError("push_to_hub would push checkpoints; name the repository alone: --hub_model_id org/name")
        if self.lists_per_step is not None:
            self.spread_step()

    def spread_step(self) -> None:
        """Sets lists a device (at most `per_device_train_batch_size`) and accumulation, so that they make the step."""
        here, rest = divmod(self.lists_per_step, self.world_size)
        if rest or here < 1:
            raise UsageError(
                f"lists_per_step is {self.lists_per_step}, which {self.world_size} processes cannot share equally"
            )
        largest = min(self.per_device_train_batch_size, here)
        self.per_device_train_batch_size = max(size for size in range(1, largest + 1) if here % size == 0)
        self.gradient_accumulation_steps = here // self.per_device_train_batch_size


class Data(NamedTuple):
    """What is trained on, and what is measured on; no text of the second is in the first."""

    lists: list[RankingList]
    pairs: list[PreferencePair]
    relevance: list[GradedList]
    left_out: int


def main(argv: list[str] | None = None) -> None:
    script, args = parse(argv)
    logging.basicConfig(stream=sys.stderr)
    logger.setLevel(logging.INFO if args.process_index == 0 else logging.WARNING)
    if args.hub_model_id is not None:
        check_repository(args.hub_model_id)  # before hours of training

    adapter = adapter_config(script)

    # Bars and log lines of libraries go to stdout, where only the result belongs.
    with contextlib.redirect_stdout(sys.stderr):
        with args.main_process_first():
            data = read_data(script, args)
            stored = store_lists(script, args, data.lists)
            set_seed(args.seed)  # a new head is drawn at random
            backbone = load_model(script)
        logger.info("%d lists to train on, %d pairs and %d lists to measure on", *map(len, data[:3]))

        trainer = RerankTrainer(
            backbone,
            args,
            data.lists,
            eval_pairs=data.pairs,
            eval_lists=data.relevance,
            peft_config=adapter,
            tags=with_tags if script.tags else None,
        )
        started = time.perf_counter()
        outcome = trainer.train(resume_from_checkpoint=checkpoint(args))
        seconds = time.perf_counter() - started
        results = measure(trainer, data, script)
        weights = trainer.accelerator.get_state_dict(trainer.model)  # gathered from all processes where it is spread

        if args.process_index == 0:
            reranker = trained_reranker(script, args, adapter, weights)
            card = card_facts(script, trainer, data, results)
            said = {"card": card, "merge": script.merge_adapter}
            folder = reranker.save_pretrained(Path(args.output_dir) / "reranker", **said)
            pushed = None
            if args.hub_model_id is not None:
                pushed = reranker.push_to_hub(args.hub_model_id, private=args.hub_private_repo, **said)
        trainer.accelerator.end_training()

    if args.process_index == 0:
        summary = {
            "reranker": str(folder),
            "pushed": pushed,
            "model": script.model,
            "method": args.method,
            "loss": args.loss,
            "lists": len(data.lists),
            "lists_file": None if stored is None else str(stored),
            "left_out": data.left_out,
            "lists_per_step": args.world_size * args.per_device_train_batch_size * args.gradient_accumulation_steps,
            "steps": trainer.state.global_step,
            "world_size": args.world_size,
            "train_loss": outcome.training_loss,
            "seconds": round(seconds, 1),
            "results": [asdict(each) for each in results],
        }
        print(json.dumps(summary), flush=True)


def parse(argv: list[str] | None = None) -> tuple[ScriptArguments, TrainingSettings]:
    """Reads `--config FILE` and the command line."""
    if not torch.accelerator.is_available():
        # Else processes that `accelerate launch` starts on a CPU do not look for each other, and each trains alone.
        os.environ.setdefault("ACCELERATE_USE_CPU", "true")
    parser = TrlParser((ScriptArguments, TrainingSettings))
    try:
        return parser.parse_args_and_config(argv)
    except (ValueError, OSError, IndexError, YAMLError) as error:
        raise UsageError(" ".join(str(error).split())) from error


# ---- Data ----


def read_data(script: ScriptArguments, args: TrainingSettings) -> Data:
    """Splits by problem before anything else, then makes lists of what is left to train on."""
    pairs, relevance = [], []
    num_irrelevant = IRRELEVANT_OF_METHOD[args.method] if script.num_irrelevant is None else script.num_irrelevant
    if script.eval_data is not None:
        pairs = load_pairs(script.eval_data, script.eval_config).pairs
        relevance = load_lists(script.eval_data) if script.max_eval_lists else []
    if script.lists is not None:
        lists = read_lists(script.lists, script.lists_config, script.lists_split)
    else:
        given = of_qualities(load_pairs(script.pairs, script.pairs_config).pairs, script.qualities)
        if script.fold is not None:
            folds = assign_folds(given, script.num_folds, script.split_seed)
            if script.fold not in folds:
                raise UsageError(f"--fold {script.fold}: there are folds 0 to {folds.max()}")
            pairs = [pair for pair, fold in zip(given, folds, strict=True) if fold == script.fold]
            held_out = {pair.problem_id for pair in pairs}
            if script.max_eval_lists:
                asked = {pair.instruction for pair in pairs}
                lists = [each for each in load_lists(script.pairs) if each.problem_id in held_out]
                relevance = [each for each in lists if script.qualities is None or each.instruction in asked]
            given = training_pairs(given, folds, script.fold)
        lists = lists_from_pairs(
            given,
            num_low=script.num_low,
            num_irrelevant=num_irrelevant,
            one_list_per_query=script.one_list_per_query,
            negate=negated_instruction if script.negated else None,
            seed=script.split_seed,
        )
    texts = set(measured_texts(pairs, relevance))
    apart = [each for each in lists if texts.isdisjoint((each.query, *each.codes))]
    left_out = len(lists) - len(apart)
    if not apart:
        raise QualcodeError("every training list shares a text with what is measured on; name other data")
    lists = apart
    if args.method == "srcl":
        lists = srcl_lists(variants_of(lists), num_irrelevant=num_irrelevant, seed=script.split_seed)
    lists = drawn(lists, script.num_lists, script.split_seed)
    pairs = drawn(pairs, script.max_eval_pairs, script.split_seed)
    return Data(lists, pairs, drawn(relevance, script.max_eval_lists, script.split_seed), left_out)


def of_qualities(pairs: list[PreferencePair], qualities: str | None) -> list[PreferencePair]:
    """The pairs about these qualities alone, named as in `--quality` of the commands."""
    if qualities is None:
        return pairs
    names = {name.strip() for name in qualities.split(",")}
    if not names <= set(dimension_names()):
        raise UsageError(f"--qualities {qualities}: choose from {', '.join(dimension_names())}")
    chosen = [pair for pair in pairs if set(pair.dimensions) <= names]
    if not chosen:
        raise QualcodeError(f"no pair of the data is about {qualities} alone; name other qualities, or other data")
    return chosen


def store_lists(script: ScriptArguments, args: TrainingSettings, lists: list[RankingList]) -> Path | None:
    """Keeps the lists that were made of pairs, so that the run can be repeated on the very same; returns where."""
    if script.pairs is None:
        return None
    path = Path(args.output_dir) / LISTS_FILE
    if args.process_index == 0:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            draft = path.with_name(f".{path.name}.new")
            lists_to_dataset(lists).to_parquet(draft)
            draft.replace(path)
        except OSError as error:
            raise QualcodeError(f"no lists can be stored in {path} ({error.strerror or error})") from error
    return path


def read_lists(source: str, config: str | None, split: str) -> list[RankingList]:
    """Lists in a file, a folder or a Hub repository, with the columns instruction, query, codes and grades."""
    path = existing_path(source)
    if path is not None:
        check_files(path)
    try:
        if path is None:
            rows = load_dataset(source, config, split=split)
        elif path.is_dir():
            # As a stream: the cache of `datasets` would not notice that a file has changed.
            rows = load_dataset(str(path), config, split=split, streaming=True)
        elif path.suffix in JSON_LINES:
            rows = json_rows(path)
        elif path.suffix in FORMATS:
            rows = load_dataset(FORMATS[path.suffix], data_files=str(path), split="train", streaming=True)
        else:
            raise UsageError(f"{source} is none of {', '.join((*FORMATS, *JSON_LINES))}")
        lists = lists_from_dataset(rows)
    except QualcodeError:
        raise
    except Exception as error:  # of datasets, huggingface_hub, pyarrow, the network and the disk
        detail = " ".join(str(error).split())[:200]
        raise QualcodeError(f"{source} cannot be read as lists ({type(error).__name__}: {detail})") from error
    if not lists:
        raise QualcodeError(f"{source} holds no list")
    return lists


def check_files(path: Path) -> None:
    """Refuses what would keep a reader waiting, and a first row that ends the process in pyarrow."""
    for file in [*path.glob("*"), *path.glob("*/*")] if path.is_dir() else [path]:
        if not (file.is_file() or file.is_dir()) and file.exists():
            raise UsageError(f"{file} is neither a file nor a folder; name one that can be read again")
        if file.is_file() and file.suffix in JSON_LINES:
            with file.open("rb") as rows:
                if rows.read(4096).removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"null"):
                    raise QualcodeError(f"{file} begins with null; a row is an object with the columns of a list")


def json_rows(path: Path) -> Iterator[dict]:
    """Rows of a file of JSON lines, or of one JSON array."""
    with path.open(encoding="utf-8-sig") as lines:
        if lines.read(1) == "[":
            lines.seek(0)
            yield from json.load(lines)
            return
        lines.seek(0)
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                yield json.loads(line)
            except ValueError as error:
                raise QualcodeError(f"{path}, line {number} is no JSON ({error})") from error


def measured_texts(pairs: list[PreferencePair], relevance: list[GradedList]) -> Iterator[str]:
    """Queries and programs of what is measured; of relevance lists the right answers, for the others are of others."""
    for pair in pairs:
        yield from (pair.query, pair.positive, pair.negative)
    for each in relevance:
        yield each.query
        yield from (text for text, grade in zip(each.documents, each.grades, strict=True) if grade)


def variants_of(lists: list[RankingList]) -> list[GradedVariant]:
    """The relevant programs of lists, one by one: what SRCL is trained on, which knows no quality (section 6.1)."""
    best: dict[tuple[str, ...], bool] = {}
    for each in lists:
        for code, grade in zip(each.codes, each.grades, strict=True):
            if grade:
                key = (each.problem_id or each.query, each.instruction, each.query, code)
                best[key] = best.get(key, False) or grade == max(each.grades)
    return [
        GradedVariant(task, instruction, instruction, query, code, "high" if high else "low")
        for (task, instruction, query, code), high in best.items()
    ]


def drawn(rows: list, number: int | None, seed: int) -> list:
    """So many of the rows, in their order; all where they are fewer."""
    if number is None or number >= len(rows):
        return rows
    places = random.Random(seed).sample(range(len(rows)), number)
    return [rows[place] for place in sorted(places)]


# ---- Model ----


def load_model(script: ScriptArguments):
    """What is trained, in float32; a model without a head is given one."""
    return load_backbone(script.model, backbone=script.backbone, training=True, max_length=script.max_length)


def adapter_config(script: ScriptArguments) -> LoraConfig | None:
    """LoRA on all linear layers and the head whole; `None` trains everything."""
    if not script.lora_rank:
        return None
    if not script.merge_adapter and script.base_model is None and existing_path(script.model) is not None:
        raise UsageError(
            f"an adapter must say which model it belongs to, and {script.model} is a folder; give --base_model "
            "org/name, or --merge_adapter"
        )
    return LoraConfig(
        task_type="SEQ_CLS",
        r=script.lora_rank,
        lora_alpha=script.lora_alpha or 2 * script.lora_rank,
        lora_dropout=script.lora_dropout,
        target_modules="all-linear",
    )


def checkpoint(args: TrainingSettings) -> str | None:
    """Where to go on: a checkpoint's folder, or with `--resume_from_checkpoint last` the newest of the output."""
    if args.resume_from_checkpoint in (None, "last"):
        found = get_last_checkpoint(args.output_dir) if args.resume_from_checkpoint else None
        if args.resume_from_checkpoint and found is None:
            raise UsageError(f"{args.output_dir} has no checkpoint to go on from; leave --resume_from_checkpoint out")
        return found
    if not Path(args.resume_from_checkpoint).is_dir():
        raise UsageError(f"there is no checkpoint {args.resume_from_checkpoint}; name its folder, or `last`")
    return args.resume_from_checkpoint


def trained_reranker(
    script: ScriptArguments, args: TrainingSettings, adapter: LoraConfig | None, weights: dict
) -> Reranker:
    """The trained model, made anew from its weights: what trained may be spread over devices and wrapped for speed."""
    backbone = load_model(script)
    if adapter is not None:
        backbone.model = with_adapter(backbone.model, adapter)
    backbone.model.load_state_dict(weights)
    backbone.model.eval()
    return Reranker(
        backbone,
        with_tags if script.tags else None,
        name=script.title or Path(args.hub_model_id or args.output_dir).name,
        base=script.base_model or script.model,
    )


# ---- Results ----


def measure(trainer: RerankTrainer, data: Data, script: ScriptArguments) -> list[Result]:
    """QPA by dimension, MRR and nDCG, with intervals that draw whole problems. Processes share the scoring."""
    results = []
    source = script.eval_data or script.pairs or ""
    name = source_name(source)
    # Of what the Hub has: a folder of this machine may be called as a data set there.
    dataset_id = source if existing_path(source.removeprefix("qualcode:")) is None else ""
    if data.pairs:
        dimensions = ["+".join(pair.dimensions) for pair in data.pairs]
        problems = [pair.problem_id for pair in data.pairs]
        ours, shorter = (
            quality_preference_accuracy(scores.positive, scores.negative, problems, dimensions).by_group
            for scores in (score_pairs(system, data.pairs) for system in (trainer, TRIVIAL_SCORERS["shorter"]))
        )
        for dimension, part in ours.items():
            beside = {"shorter": shorter[dimension].accuracy}
            figures = (part.accuracy, f"{name}, {dimension}", part.ci_low, part.ci_high, part.n, beside)
            results.append(Result("QPA", *figures, dataset_id=dataset_id, config=dimension))
    if data.relevance:
        at_random = random_reranking(data.relevance).metrics()
        for metric, part in evaluate_reranking(data.relevance, trainer).intervals().items():
            shown = metric.replace("mrr", "MRR").replace("ndcg", "nDCG")
            figures = (part.mean, f"{name}, relevance", part.low, part.high, len(data.relevance))
            beside = {"random order": at_random[metric]}
            results.append(Result(shown, *figures, beside, dataset_id=dataset_id, config="relevance"))
    return results


def card_facts(script: ScriptArguments, trainer: RerankTrainer, data: Data, results: list[Result]) -> CardFacts:
    """What the card says of the run."""
    args = trainer.args
    held_out = "none"
    if script.fold is not None:
        held_out = f"fold {script.fold} of {script.num_folds} by problem, seed {script.split_seed}"
    elif script.eval_data is not None:
        held_out = f"{source_name(script.eval_data)}; {data.left_out} lists that share a text with it were left out"
    source = script.data_name or source_name(script.lists or script.pairs)
    return CardFacts(
        title=script.title,
        base_model=script.base_model,
        results=results,
        data=[TrainingData(source, script.data_license, f"{args.method}, {len(data.lists)} lists")],
        training={
            "method": args.method,
            "loss": args.loss,
            "lists": len(data.lists),
            "held out": held_out,
            "weights": f"LoRA, rank {script.lora_rank}" if script.lora_rank else "all",
            "tokens": trainer.backbone.max_length,
            "lists a step": args.world_size * args.per_device_train_batch_size * args.gradient_accumulation_steps,
            "steps": trainer.state.global_step,
            "epochs": args.num_train_epochs,
            "learning rate": args.learning_rate,
            "schedule": f"{SchedulerType(args.lr_scheduler_type).value}, warm-up {args.warmup_steps}",
            "weight decay": args.weight_decay,
            "dropout": args.dropout,
            "seed": args.seed,
            "arithmetic": trainer.accelerator.mixed_precision.replace("no", "float32"),
        },
    )


def source_name(source: str) -> str:
    """A Hub id, or the last part of a path: the rest of it means nothing elsewhere."""
    path = existing_path(source.removeprefix("qualcode:"))
    return source if path is None else path.resolve().name


if __name__ == "__main__":
    try:
        main()
    except QualcodeError as error:
        print(f"train_reranker: {error}", file=sys.stderr)
        sys.exit(2 if isinstance(error, UsageError) else 1)
