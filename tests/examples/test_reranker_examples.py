"""The reranker's scripts and their configurations: numbers of the paper, and real runs on tiny models."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import yaml
from accelerate.commands.config.config_args import load_config_from_file
from safetensors.torch import load_file
from transformers import AutoModelForSequenceClassification

from hf_qualcode import Reranker
from hf_qualcode.baselines.trivial import TRIVIAL_SCORERS
from hf_qualcode.benchmark.building import write_data_set
from hf_qualcode.benchmark.labelling import judge_labels
from hf_qualcode.benchmark.loading import load_lists, load_pairs
from hf_qualcode.evaluation.folds import assign_folds
from hf_qualcode.rerank import RankingList, RerankTrainer
from hf_qualcode.rerank.backbones import load_backbone
from hf_qualcode.rerank.data import lists_to_dataset
from hf_qualcode.types import PreferencePair, QualcodeError, UsageError
from tests.benchmark.conftest import MemoryCollection
from tests.conftest import save_tiny_bert
from tests.rerank.tiny import save_tiny_decoder, save_tiny_encoder


EXAMPLES = Path(__file__).parents[2] / "examples"
CONFIGS = sorted((EXAMPLES / "configs" / "reranker").glob("*.yaml"))
ACCELERATE = EXAMPLES / "accelerate_configs"
SLOW = pytest.mark.slow
ON_CPU = "there is a GPU, and these runs are about the CPU"


def load_script(name):
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their types up there
    spec.loader.exec_module(module)
    return module


train_reranker = load_script("train_reranker")
evaluate_reranker = load_script("evaluate_reranker")


# ---- What is run ----


STEP = "json.load(file)"
# Of words that the tiny tokenizer tells apart: programs that it reads alike would tie, and rounding break the tie.
VERBS, NOUNS = ("read", "write", "sort", "open", "put"), ("path", "json", "line", "list", "items")
NAMES = [f"{verb} {noun}" for verb in VERBS for noun in NOUNS]


@pytest.fixture(scope="module")
def qualcode(tmp_path_factory):
    """A QualCode folder of 24 problems with 5 programs each, of which the shorter are the better."""
    collection = MemoryCollection()
    for problem in range(24):
        for rank, cost in enumerate((10, 25, 60, 140, 300)):
            text = f"# {NAMES[problem]}\nfor file in path:\n" + rank * f"    {STEP}\n"
            rules = ["S1", "S2", "S3", "S4"][:rank]
            collection.add(f"p{problem:05d}", f"s{problem}x{rank}", text=text, speed=cost, memory=cost, rules=rules)
    folder = tmp_path_factory.mktemp("data") / "qualcode"
    folder.mkdir()
    write_data_set("qualcode", collection, judge_labels(None), folder)
    return folder


@pytest.fixture(scope="module")
def lists_file(tmp_path_factory):
    """Lists as the synthesis writes them, as JSON lines."""
    lists = [
        RankingList(
            f"{number}", "Retrieve code that is fast", name,
            (f"return {name}", f"for item in {name}:\n    read(item)", f"def {NAMES[number + 1]}"),
            (2, 1, 0), problem_id=f"task{number}",
        )
        for number, name in enumerate(NAMES[:8])
    ]  # fmt: skip
    path = tmp_path_factory.mktemp("lists") / "lists.jsonl"
    lists_to_dataset(lists).to_json(path)
    return path


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """A cross-encoder with a trained head. Read only."""
    return save_tiny_encoder(tmp_path_factory.mktemp("tiny"))


@pytest.fixture
def on_cpu(monkeypatch):
    """As `accelerate launch --config_file cpu.yaml` would have it, in this process."""
    if torch.accelerator.is_available():
        pytest.skip(ON_CPU)
    monkeypatch.setenv("ACCELERATE_USE_CPU", "true")


def train(capsys, *arguments):
    """Runs the script in this process; the result line."""
    capsys.readouterr()
    train_reranker.main([str(argument) for argument in arguments])
    out = capsys.readouterr().out
    assert out.count("\n") == 1, "stdout holds the result alone"
    return json.loads(out)


def launch(config, script, *arguments, timeout=600):
    """`accelerate launch`, as a user types it."""
    if torch.accelerator.is_available():
        pytest.skip(ON_CPU)
    command = [sys.executable, "-m", "accelerate.commands.launch", "--config_file", ACCELERATE / config]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [*map(str, command), str(EXAMPLES / script), *map(str, arguments)],
        capture_output=True, text=True, check=False, env=environment, timeout=timeout,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    (line,) = done.stdout.splitlines()
    return json.loads(line)


# ---- Configurations ----

PAPER_MODELS = {
    "bge": "BAAI/bge-reranker-v2-m3",
    "jina": "jinaai/jina-reranker-v2-base-multilingual",
    "qwen3": "Qwen/Qwen3-Reranker-0.6B",
}
METHODS = {"synh_rank": ("delta_ndcg", 1), "info_nce": ("info_nce", 1), "srcl": ("info_nce", 5)}
CLASSES = {
    "bge": "XLMRobertaForSequenceClassification",
    "jina": "XLMRobertaForSequenceClassification",
    "qwen3": "Qwen3ForSequenceClassification",
    "minilm": "BertForSequenceClassification",
}


def parsed(path, *arguments):
    return train_reranker.parse(["--config", str(path), *map(str, arguments)])


def test_there_is_a_file_for_every_paper_run():
    wanted = {f"{model}_{method}" for model in (*PAPER_MODELS, "minilm") for method in METHODS}
    assert {path.stem for path in CONFIGS} == wanted


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_numbers_are_those_of_the_methods(path, on_cpu):
    model, _, method = path.stem.partition("_")
    script, args = parsed(path, "--pairs", "DIR")
    assert (args.method, args.loss, script.num_irrelevant) == (method, *METHODS[method])
    assert (script.num_low, script.lora_rank, script.negated, script.tags) == (4, 0, False, False)
    assert (args.temperature, args.dropout) == (1.0, 0.0)
    assert args.lists_per_step == args.per_device_train_batch_size * args.gradient_accumulation_steps == 16
    assert (args.optim, args.weight_decay, args.lr_scheduler_type, args.seed) == ("adamw_torch_fused", 0, "linear", 42)
    if model == "minilm":
        assert (script.model, script.max_length, script.num_lists, script.fold) == ("minilm", 192, 600, 0)
        assert (args.learning_rate, args.num_train_epochs) == (1e-4, 2)
    else:
        assert (script.model, script.max_length, script.backbone) == (PAPER_MODELS[model], 1024, model)
        assert (args.learning_rate, args.num_train_epochs, args.warmup_steps) == (6e-6, 1, 0)
        assert (script.fold, script.num_lists) == (None, None)


def test_the_three_minilm_runs_differ_in_the_method_alone():
    given = [yaml.safe_load(path.read_text()) for path in CONFIGS if path.stem.startswith("minilm")]
    of_method = {"method", "temperature", "num_irrelevant", "output_dir"}
    rest = [{name: value for name, value in config.items() if name not in of_method} for config in given]
    assert len(given) == 3 and rest[0] == rest[1] == rest[2]


def test_every_number_of_a_configuration_says_where_it_is_from():
    for path in CONFIGS:
        lines = path.read_text().splitlines()
        numbers = [line for line in lines if line.startswith(("lists_per_step", "num_", "learning_rate", "seed"))]
        assert len(numbers) >= 6
        for line in numbers:
            explained = "section" in line or "ours" in line or line.startswith("num_folds") or "SRCL" in line
            assert explained, f"{path.name}: {line}"


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_each_builds_its_model_and_trainer(path, on_cpu, tmp_path):
    script, args = parsed(path, "--pairs", "DIR", "--output_dir", tmp_path / "out")
    model = tmp_path / "model"
    if script.backbone == "qwen3":
        save_tiny_decoder(model)
    elif script.model == "minilm":
        save_tiny_bert(model)
    else:
        save_tiny_encoder(model, kind="xlm-roberta")
    backbone = load_backbone(model, backbone=script.backbone, training=True, max_length=script.max_length)
    assert type(backbone.model).__name__ == CLASSES[script.backbone or "minilm"]
    assert backbone.model.config.num_labels == 1
    rows = [RankingList("a", "fast", "sort", ("x", "y"), (2, 1)), RankingList("b", "fast", "add", ("z", "y"), (2, 0))]
    trainer = RerankTrainer(backbone, args, rows)
    assert trainer.args.loss == METHODS[args.method][0]


@pytest.mark.parametrize(
    ("name", "kind", "processes", "precision"),
    [
        ("cpu", "NO", 1, "no"),
        ("ddp_cpu", "MULTI_GPU", 2, "no"),
        ("one_a100", "NO", 1, "bf16"),
        ("eight_a100_ddp", "MULTI_GPU", 8, "bf16"),
        ("eight_a100_fsdp2", "FSDP", 8, "bf16"),
        ("several_nodes", "MULTI_GPU", 16, "bf16"),
    ],
)
def test_accelerate_configurations_are_read_by_accelerate(name, kind, processes, precision):
    config = load_config_from_file(str(ACCELERATE / f"{name}.yaml"))
    assert (config.distributed_type.value, config.num_processes) == (kind, processes)
    assert config.mixed_precision == precision
    assert config.use_cpu == name.endswith("cpu")
    if kind == "FSDP":
        assert config.fsdp_config["fsdp_version"] == 2
        assert config.fsdp_config["fsdp_state_dict_type"] == "FULL_STATE_DICT"


def test_every_accelerate_configuration_is_known_to_the_test_above():
    assert len(list(ACCELERATE.glob("*.yaml"))) == 6


# ---- Arguments ----


def test_the_command_line_wins_over_the_file(on_cpu):
    script, args = parsed(CONFIGS[0], "--pairs", "DIR", "--learning_rate", "3e-5", "--max_length", "77")
    assert (args.learning_rate, script.max_length) == (3e-5, 77)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "either --lists SOURCE or --pairs"),
        (["--lists", "a", "--fold", "1"], "--fold splits the problems of --pairs"),
        (["--pairs", "a", "--fold", "1", "--eval_data", "b"], "give one of them"),
        (["--lists", "a", "--negated"], "--negated says how lists are made of --pairs"),
        (["--lists", "a", "--one_list_per_query"], "--one_list_per_query says how lists are made of --pairs"),
        (["--pairs", "a", "--method", "best"], "choose from: synh_rank, info_nce, srcl"),
        (["--pairs", "a", "--push_to_hub"], "--hub_model_id"),
        (["--pairs", "a", "--learning_rates", "1"], "learning_rates"),
        (["--pairs", "a", "--config", "absent.yaml"], "absent.yaml"),
        (["--lists", "a", "--qualities", "speed"], "--qualities says how lists are made of --pairs"),
        (["--lists", "a", "--num_lists=-1"], "--num_lists is -1; expected 1 or more"),
        (["--lists", "a", "--max_eval_pairs=-1"], "--max_eval_pairs is -1; expected 1 or more"),
        (["--pairs", "a", "--fold=-1"], "--fold is -1; expected 0 or more"),
        (["--pairs", "a", "--num_folds", "1"], "--num_folds is 1; expected 2 or more"),
        (["--lists", "a", "--lora_rank=-1"], "--lora_rank is -1; expected 0 or more"),
        (["--lists", "a", "--lora_dropout", "nan"], "--lora_dropout is nan; expected a number"),
        (["--lists", "a", "--learning_rate", "nan"], "learning_rate is nan"),
        (["--lists", "a", "--dataloader_num_workers=-1"], "dataloader_num_workers is -1"),
    ],
)
def test_wrong_arguments_are_refused_in_one_line(arguments, message, on_cpu, tmp_path):
    with pytest.raises(UsageError, match=message) as caught:
        train_reranker.parse([*arguments, "--output_dir", str(tmp_path)])
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"null\n", "begins with null"),  # which ends a process in pyarrow
        (b"", "holds no list"),
        (b'{"instruction": "i", "query": "q", "codes": ["a"], "grades": [1]}\n{', "line 2 is no JSON"),
        (b"\xff\xfe", "cannot be read as lists"),
        (b"[" * 100_000, "cannot be read as lists"),
        (None, "neither a file nor a folder"),
    ],
)
def test_files_that_hold_no_lists_are_one_line(content, said, tmp_path):
    path = tmp_path / "lists.jsonl"
    if content is None:
        os.mkfifo(path)
    else:
        path.write_bytes(content)
    for source in (path, *([tmp_path] if said.startswith(("begins", "neither")) else [])):
        with pytest.raises(QualcodeError, match=said) as caught:
            train_reranker.read_lists(str(source), None, "train")
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("name", "value"), [("max_lists", -1), ("max_lists", 0), ("max_length", 0), ("seed", -1)])
def test_numbers_of_a_measurement_are_looked_at(name, value):
    with pytest.raises(UsageError, match=f"--{name} is {value}"):
        evaluate_reranker.main(["--model", "a", "--data", "b", f"--{name}={value}"])


def test_a_method_sets_the_loss_unless_another_is_named(on_cpu):
    assert train_reranker.parse(["--pairs", "a", "--method", "srcl"])[1].loss == "info_nce"
    assert train_reranker.parse(["--pairs", "a", "--loss", "pairwise_logistic"])[1].loss == "pairwise_logistic"


@pytest.mark.parametrize(
    ("step", "largest", "size", "accumulation"), [(16, 16, 16, 1), (16, 5, 4, 4), (6, 4, 3, 2), (7, 4, 1, 7)]
)
def test_a_step_has_as_many_lists_however_it_is_cut(step, largest, size, accumulation, on_cpu):
    given = ["--pairs", "a", "--lists_per_step", str(step), "--per_device_train_batch_size", str(largest)]
    args = train_reranker.parse(given)[1]
    assert (args.per_device_train_batch_size, args.gradient_accumulation_steps) == (size, accumulation)


# ---- Data ----


def read(*arguments):
    return train_reranker.read_data(*train_reranker.parse([str(argument) for argument in arguments]))


@pytest.mark.parametrize("method", METHODS)
def test_nothing_of_the_held_out_problems_is_trained_on(method, qualcode, on_cpu):
    pairs = load_pairs(str(qualcode), "all-pairs").pairs
    folds = assign_folds(pairs, 4, 7)
    data = read(
        "--pairs", qualcode, "--pairs_config", "all-pairs", "--fold", 2, "--num_folds", 4, "--split_seed", 7,
        "--method", method, "--max_eval_lists", 1000,
    )  # fmt: skip
    assert data.pairs == [pair for pair, fold in zip(pairs, folds, strict=True) if fold == 2]
    held_out = {pair.problem_id for pair in data.pairs}
    measured = {text for pair in data.pairs for text in (pair.query, pair.positive, pair.negative)}
    assert held_out.isdisjoint(each.problem_id for each in data.lists)
    assert measured.isdisjoint(text for each in data.lists for text in (each.query, *each.codes))
    assert {each.problem_id for each in data.relevance} == held_out
    assert len({each.problem_id for each in data.lists}) == 24 - len(held_out)


def test_relevance_alone_is_what_srcl_learns(qualcode, on_cpu):
    quality = read("--pairs", qualcode, "--pairs_config", "all-pairs")
    relevance = read("--pairs", qualcode, "--pairs_config", "all-pairs", "--method", "srcl")
    assert len(relevance.lists) == len(quality.lists)
    for each in relevance.lists:
        assert sorted(each.grades, reverse=True) == [1, 0, 0, 0, 0, 0]
    problem_of = {}
    for each in quality.lists:
        problem_of |= {code: each.problem_id for code, grade in zip(each.codes, each.grades, strict=True) if grade}
    relevant = [(each, code) for each in relevance.lists for code, grade in zip(each.codes, each.grades, strict=True)
                if grade]  # fmt: skip
    assert all(problem_of[code] == each.problem_id for each, code in relevant)
    # Of any quality: the best program of a problem and the worst are drawn alike.
    assert {code.count(STEP) for _, code in relevant} == set(range(5))


def test_lists_are_drawn_with_the_seed(qualcode, on_cpu):
    given = ("--pairs", qualcode, "--num_lists", 10)
    first, again, other = read(*given), read(*given), read(*given, "--split_seed", 1)
    assert first.lists == again.lists != other.lists
    assert len(first.lists) == len(other.lists) == 10


def test_one_list_per_query(qualcode, on_cpu):
    given = ("--pairs", qualcode, "--pairs_config", "all-pairs")
    every, one = read(*given), read(*given, "--one_list_per_query")
    asked = {(each.problem_id, each.instruction) for each in every.lists}
    assert len(one.lists) == len(asked) < len(every.lists)
    assert all(each in every.lists for each in one.lists)
    assert len(read(*given, "--one_list_per_query", "--method", "srcl").lists) == len(asked)


def test_both_polarities(qualcode, on_cpu):
    data = read("--pairs", qualcode, "--negated")
    assert {each.instruction for each in data.lists} >= {"Retrieve code that is fast", "Retrieve code that is slow"}


@pytest.mark.parametrize("kind", ["file", "folder", "parquet"])
def test_lists_from_a_file_or_a_folder(kind, lists_file, tmp_path, on_cpu):
    source = lists_file
    if kind == "folder":
        source = lists_file.parent
    elif kind == "parquet":
        source = tmp_path / "lists.parquet"
        lists_to_dataset(train_reranker.read_lists(str(lists_file), None, "train")).to_parquet(source)
    data = read("--lists", source)
    assert [(each.id, each.grades) for each in data.lists] == [(str(number), (2, 1, 0)) for number in range(8)]


def test_lists_that_share_a_text_with_what_is_measured_go(qualcode, tmp_path, on_cpu):
    pair = load_pairs(str(qualcode)).pairs[0]
    rows = [
        RankingList("query", "fast", pair.query, ("a", "b"), (2, 1)),
        RankingList("code", "fast", "add", (pair.negative, "b"), (2, 1)),
        RankingList("apart", "fast", "add", ("a", "b"), (2, 1)),
    ]
    lists_to_dataset(rows).to_json(tmp_path / "lists.jsonl")
    data = read("--lists", tmp_path / "lists.jsonl", "--eval_data", qualcode, "--max_eval_lists", 2)
    assert [each.id for each in data.lists] == ["apart"]
    assert (data.left_out, len(data.relevance)) == (2, 2)
    assert len(data.pairs) == len(load_pairs(str(qualcode)).pairs)


# ---- Runs ----

SMALL = ("--max_length", 48, "--report_to", "none", "--dataloader_pin_memory", "false", "--logging_steps", 1)


def test_trains_measures_and_saves_with_a_card(tiny, qualcode, tmp_path, capsys, on_cpu):
    out = tmp_path / "out"
    result = train(
        capsys, "--config", EXAMPLES / "configs" / "reranker" / "minilm_synh_rank.yaml", "--model", tiny, *SMALL,
        "--pairs", qualcode, "--num_lists", 12, "--max_eval_pairs", 12, "--max_eval_lists", 2, "--output_dir", out,
        "--lists_per_step", 4, "--num_train_epochs", 1, "--save_strategy", "no", "--data_license", "CC0",
    )  # fmt: skip
    assert (result["method"], result["loss"]) == ("synh_rank", "delta_ndcg")
    assert (result["steps"], result["world_size"]) == (3, 1)
    assert (result["lists"], result["lists_per_step"], result["pushed"]) == (12, 4, None)
    metrics = {each["metric"] for each in result["results"]}
    assert metrics == {"QPA", "MRR@10", "nDCG@10"}
    assert sum(each["n"] for each in result["results"] if each["metric"] == "QPA") == 12

    folder = Path(result["reranker"])
    assert folder == out / "reranker"
    before, after = load_file(tiny / "model.safetensors"), load_file(folder / "model.safetensors")
    assert all(not torch.equal(before[name], after[name]) for name in before if "encoder" in name and "weight" in name)
    reranker = Reranker.from_pretrained(folder)
    assert reranker.score(["add"], ["print(1)"], quality=["speed"]).shape == (1,)
    assert AutoModelForSequenceClassification.from_pretrained(folder).config.num_labels == 1
    # The very lists of the run are kept, and train the same again.
    assert result["lists_file"] == str(out / "lists.parquet")
    stored = train_reranker.read_lists(result["lists_file"], None, "train")
    made = read("--config", EXAMPLES / "configs" / "reranker" / "minilm_synh_rank.yaml", "--pairs", qualcode,
                "--num_lists", 12)  # fmt: skip
    assert stored == made.lists
    card = (folder / "README.md").read_text()
    assert "QPA" in card and "CC0" in card and "fold 0 of 5 by problem" in card
    assert str(tmp_path) not in card


def test_a_folder_is_no_data_set_of_the_hub(tmp_path, monkeypatch, on_cpu):
    pairs = [
        PreferencePair(f"{n}", "Retrieve code that is fast", f"q{n}", "x", "x = 1", ("speed",), "", f"p{n}", "a", "b")
        for n in range(3)
    ]
    data = train_reranker.Data([], pairs, [], 0)
    script, _ = train_reranker.parse(["--pairs", "data/set"])
    monkeypatch.chdir(tmp_path)
    [result] = train_reranker.measure(TRIVIAL_SCORERS["shorter"], data, script)
    assert result.dataset_id == "data/set"  # a repository of the Hub
    (tmp_path / "data" / "set").mkdir(parents=True)  # now a folder of that name
    [result] = train_reranker.measure(TRIVIAL_SCORERS["shorter"], data, script)
    assert (result.dataset_id, result.data) == ("", "set, speed")


@pytest.mark.parametrize("kind", ["bert", *(pytest.param(kind, marks=SLOW) for kind in ("xlm-roberta", "qwen3"))])
def test_lora_and_tags(kind, tiny, lists_file, tmp_path, capsys, on_cpu):
    model = tiny
    if kind == "qwen3":
        model = save_tiny_decoder(tmp_path / "model")
    elif kind == "xlm-roberta":
        model = save_tiny_encoder(tmp_path / "model", kind=kind)
    given = (
        "--model", model, "--lists", lists_file, *SMALL, "--max_length", 256 if kind == "qwen3" else 48, "--tags",
        "--lora_rank", 2, "--method", "info_nce", "--learning_rate", "1e-2", "--save_strategy", "no",
    )  # fmt: skip
    with pytest.raises(UsageError, match="--base_model"):
        train(capsys, *given, "--output_dir", tmp_path / "unnamed")
    adapter = train(capsys, *given, "--output_dir", tmp_path / "adapter", "--base_model", "org/base")["reranker"]
    merged = train(capsys, *given, "--output_dir", tmp_path / "merged", "--merge_adapter")["reranker"]
    loaded = Reranker.from_pretrained(adapter, base=str(model), precision="float32")
    whole = Reranker.from_pretrained(merged, precision="float32")
    assert loaded.tags is not None and whole.tags is not None
    codes = ["import numpy\nprint(1)\n", "for i in range(9):\n    print(i)\n"]
    scores = [each.score(["add", "add"], codes, quality=["speed"]) for each in (loaded, whole)]
    assert scores[0] == pytest.approx(scores[1], abs=1e-4)
    assert json.loads((Path(adapter) / "adapter_config.json").read_text())["base_model_name_or_path"] == "org/base"


def test_a_resumed_run_ends_with_the_weights_of_one_that_was_not_stopped(tiny, lists_file, tmp_path, capsys, on_cpu):
    given = (
        "--model", tiny, "--lists", lists_file, *SMALL, "--per_device_train_batch_size", 2, "--save_strategy", "steps",
        "--save_steps", 2, "--learning_rate", "1e-3",
    )  # fmt: skip
    whole = train(capsys, *given, "--output_dir", tmp_path / "whole")
    # As if it had been killed after the checkpoint of step 2.
    (tmp_path / "resumed").mkdir()
    (tmp_path / "whole" / "checkpoint-2").rename(tmp_path / "resumed" / "checkpoint-2")
    resumed = train(capsys, *given, "--output_dir", tmp_path / "resumed", "--resume_from_checkpoint", "last")
    assert whole["steps"] == resumed["steps"] == 4
    first, second = (load_file(Path(result["reranker"]) / "model.safetensors") for result in (whole, resumed))
    for name, weight in first.items():
        torch.testing.assert_close(weight, second[name], rtol=0, atol=0)


def test_nothing_to_go_on_from_is_said(tiny, lists_file, tmp_path, capsys, on_cpu):
    given = ("--model", tiny, "--lists", lists_file, *SMALL, "--output_dir", tmp_path / "out")
    with pytest.raises(UsageError, match="no checkpoint to go on from"):
        train(capsys, *given, "--resume_from_checkpoint", "last")
    with pytest.raises(UsageError, match="there is no checkpoint"):
        train(capsys, *given, "--resume_from_checkpoint", tmp_path / "absent")


def test_a_push_is_refused_before_training(tiny, lists_file, tmp_path, capsys, on_cpu):
    with pytest.raises(UsageError, match="name the owner too"):
        train(capsys, "--model", tiny, "--lists", lists_file, "--output_dir", tmp_path, "--hub_model_id", "alone")


def test_shares_hold_every_input_once_and_a_query_on_one_process():
    triples = [("i", f"q{query}", f"c{query}{code}") for query in range(5) for code in range(query + 1)]
    dealt = evaluate_reranker.shares(triples, 3)
    assert sorted(triple for share in dealt for triple in share) == sorted(triples)
    for query in range(5):
        assert sum(any(triple[1] == f"q{query}" for triple in share) for share in dealt) == 1
    sizes = [evaluate_reranker.characters(share) for share in dealt]
    assert max(sizes) - min(sizes) <= evaluate_reranker.characters(triples[-5:])
    assert evaluate_reranker.shares([], 2) == [[], []]


def test_evaluation_has_the_numbers_of_the_reranker_itself(tiny, qualcode, capsys, on_cpu):
    evaluate_reranker.main(
        ["--model", str(tiny), "--data", str(qualcode), "--max_lists", "2", "--precision", "float32"]
    )
    captured = capsys.readouterr()
    report = json.loads(captured.out)
    pairs, lists = load_pairs(str(qualcode)).pairs, load_lists(str(qualcode))[:2]
    reranker = Reranker.from_pretrained(tiny, precision="float32")
    positive, negative = (
        reranker.score([p.query for p in pairs], codes, instruction=[p.instruction for p in pairs])
        for codes in ([p.positive for p in pairs], [p.negative for p in pairs])
    )
    assert report["preference"]["metrics"]["qpa"] == pytest.approx((positive > negative).mean())
    assert (report["preference"]["n"], report["reranking"]["n"], report["world_size"]) == (len(pairs), len(lists), 1)
    distinct = {(p.instruction, p.query, code) for p in pairs for code in (p.positive, p.negative)}
    distinct |= {(each.instruction, each.query, code) for each in lists for code in each.documents}
    assert report["inputs"] == len(distinct)
    assert "shorter" in captured.err and "mrr@10" in captured.err


@SLOW  # tests/rerank/test_trainer_distributed.py has two processes in every run of the tests
def test_two_processes_meet(tiny, lists_file, tmp_path):
    result = launch(
        "ddp_cpu.yaml", "train_reranker.py", "--model", tiny, "--lists", lists_file, *SMALL, "--lists_per_step", 4,
        "--save_strategy", "no", "--output_dir", tmp_path / "out",
    )  # fmt: skip
    assert (result["world_size"], result["steps"], result["lists_per_step"]) == (2, 2, 4)
    assert (tmp_path / "out" / "reranker" / "model.safetensors").is_file()


@SLOW
def test_one_process_and_two_train_alike(qualcode, tmp_path):
    # A model without a head: its new one must be the same in both. SGD, for Adam blows rounding up.
    model = save_tiny_bert(tmp_path / "model")
    given = (
        "--config", EXAMPLES / "configs" / "reranker" / "minilm_synh_rank.yaml", "--model", model, *SMALL, "--pairs",
        qualcode, "--num_lists", 16, "--max_eval_lists", 0, "--lists_per_step", 4, "--save_strategy", "no", "--optim",
        "sgd", "--learning_rate", "0.05",
    )  # fmt: skip
    one = launch("cpu.yaml", "train_reranker.py", *given, "--output_dir", tmp_path / "one")
    two = launch("ddp_cpu.yaml", "train_reranker.py", *given, "--output_dir", tmp_path / "two")
    assert (one["world_size"], two["world_size"]) == (1, 2)
    assert one["steps"] == two["steps"] == 8
    assert one["train_loss"] == pytest.approx(two["train_loss"], rel=1e-5)
    first, second = (load_file(Path(result["reranker"]) / "model.safetensors") for result in (one, two))
    for name, weight in first.items():
        torch.testing.assert_close(weight, second[name], rtol=1e-4, atol=1e-6)
    assert [each["value"] for each in one["results"]] == [each["value"] for each in two["results"]]


@SLOW
@pytest.mark.parametrize("kind", ["encoder", "decoder"])
def test_one_process_and_two_evaluate_alike(kind, tiny, qualcode, tmp_path):
    model = tiny if kind == "encoder" else save_tiny_decoder(tmp_path / "model")
    given = ("--model", model, "--data", qualcode, "--max_lists", 3, "--precision", "float32")
    one = launch("cpu.yaml", "evaluate_reranker.py", *given)
    two = launch("ddp_cpu.yaml", "evaluate_reranker.py", *given)
    assert (one.pop("world_size"), two.pop("world_size")) == (1, 2)
    assert one == two


@SLOW
@pytest.mark.parametrize("method", METHODS)
def test_the_minilm_runs_as_they_stand(method, qualcode, minilm_folder, tmp_path):
    result = launch(
        "cpu.yaml", "train_reranker.py", "--config", EXAMPLES / "configs" / "reranker" / f"minilm_{method}.yaml",
        "--pairs", qualcode, "--output_dir", tmp_path, "--num_lists", 16, "--num_train_epochs", 1, "--max_eval_lists",
        1, timeout=1200,
    )  # fmt: skip
    assert (result["model"], result["method"], result["steps"]) == ("minilm", method, 1)
