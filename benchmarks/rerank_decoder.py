"""Pairs per second of a decoder whose candidates share instruction and query, beside the usual ways, in one run.

    python benchmarks/rerank_decoder.py --data <folder with codenet-mini/> [--json FILE]

Queries are whole problem statements, candidates are programs of all lengths. The model is drawn at random: Qwen3 at
half the width of Qwen3-0.6B, fewer layers, and a tokenizer of 8,000 tokens that is trained on statements and programs
here. With `--model` it is a real one. The ways, the same model, texts and scores in each:

- usual: the example code of Qwen3-Reranker, logits over the vocabulary at every position, 16 pairs at a time;
- last position: the same, logits of the last position only;
- unshared, best: sorted, in batches of the number of tokens that is fastest here, a head of one row, and on several
  cores one batch beside another where that is faster;
- hf-qualcode: `Reranker.score`, which computes instruction and query once a query.

The token ratio is how many tokens the inputs have over how many they have when each query's prefix counts once.
"""

import argparse
import json
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from rerank_material import Problem, add_data_argument, draw_queries, read_problems
from turns import fastest, machine, quiet_transformers, show_machine, take_turns


USUAL, LAST, UNSHARED, OURS = "usual", "last position", "unshared, best", "hf-qualcode"
USUAL_BATCH_SIZE = 16
TOKEN_BUDGETS = (1024, 2048, 4096)
VOCABULARY = 8000
LARGEST_DIFFERENCE = 1e-4


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_data_argument(parser)
    parser.add_argument("--model", help="folder or Hub id of a causal language model (default: one drawn at random)")
    parser.add_argument("--layers", type=int, default=4, help="of the random model (default 4)")
    parser.add_argument("--queries", type=int, default=2, help="(default 2)")
    parser.add_argument("--codes", type=int, default=100, help="candidates of each query (default 100)")
    parser.add_argument("--rounds", type=int, default=2, help="turns of each way (default 2)")
    parser.add_argument("--threads", type=int, help="of torch; defaults to its own choice")
    parser.add_argument("--json", type=Path, help="write the figures to this file as well")
    arguments = parser.parse_args()

    import torch
    from transformers import AutoModelForCausalLM

    from hf_qualcode.rerank import Reranker

    quiet_transformers()
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    problems = read_problems(arguments.data)
    queries = draw_queries(problems, arguments.queries, arguments.codes)
    pairs = [(statement, code) for statement, codes in queries for code in codes]
    with tempfile.TemporaryDirectory() as folder:
        source = arguments.model or save_random_model(problems, arguments.layers, Path(folder))
        ours = Reranker.from_pretrained(source, device="cpu", precision="float32")
        causal = AutoModelForCausalLM.from_pretrained(source, dtype=torch.float32, local_files_only=True).eval()
    backbone = ours.backbone
    inputs = backbone.encode([""] * len(pairs), *zip(*pairs, strict=True)).inputs
    num_tokens = sum(len(encoded.ids) for encoded in inputs)
    prefixes = {tuple(encoded.ids[: encoded.prefix_length]) for encoded in inputs}
    shared_tokens = sum(len(each.ids) - each.prefix_length for each in inputs) + sum(map(len, prefixes))

    ways = {(budget, beside): None for budget in TOKEN_BUDGETS for beside in {False, torch.get_num_threads() > 1}}
    # All lengths, of the first query.
    sample = sorted(pairs[: arguments.codes], key=lambda pair: len(pair[1]))[:: max(1, arguments.codes // 25)]
    trial = {way: lambda way=way: unshared(backbone, sample, *way) for way in ways}
    budget, beside = fastest(trial)
    contestants: dict[str, Callable[[], np.ndarray]] = {
        USUAL: lambda: usual(causal, backbone, pairs, last_only=False),
        LAST: lambda: usual(causal, backbone, pairs, last_only=True),
        UNSHARED: lambda: unshared(backbone, pairs, budget, beside),
        OURS: lambda: ours.score(*zip(*pairs, strict=True), instruction=""),
    }
    turns = take_turns(contestants, arguments.rounds)
    best = min((USUAL, LAST, UNSHARED), key=lambda name: turns[name].wall)
    token_ratio, speedup = num_tokens / shared_tokens, turns[best].wall / turns[OURS].wall
    cpu_speedup = min(turns[name].cpu for name in (USUAL, LAST, UNSHARED)) / turns[OURS].cpu
    reference = turns[USUAL].result
    report = {
        "model": arguments.model or f"random Qwen3, {arguments.layers} layers",
        "queries": arguments.queries,
        "candidates": arguments.codes,
        "tokens": num_tokens,
        "tokens_shared": shared_tokens,
        "token_ratio": token_ratio,
        "cut": ours.trims.codes,
        "unshared": {"token_budget": budget, "batches_side_by_side": beside},
        "machine": machine(),
        "pairs_per_second": {name: len(pairs) / each.wall for name, each in turns.items()},
        "pairs_per_cpu_second": {name: len(pairs) / each.cpu for name, each in turns.items()},
        "ratio_to_usual": turns[USUAL].wall / turns[OURS].wall,
        "cpu_ratio_to_usual": turns[USUAL].cpu / turns[OURS].cpu,
        "ratio_to_best": speedup,
        "cpu_ratio_to_best": cpu_speedup,
        "share_of_token_ratio": speedup / token_ratio,
        "cpu_share_of_token_ratio": cpu_speedup / token_ratio,
        "spread_of_scores": float(reference.std()),
        "largest_difference": {
            name: float(np.abs(each.result - reference).max()) for name, each in turns.items() if name != USUAL
        },
    }
    show(report)
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=2), encoding="utf-8")
    if max(report["largest_difference"].values()) > LARGEST_DIFFERENCE:
        raise SystemExit(f"scores differ by more than {LARGEST_DIFFERENCE}: {report['largest_difference']}")


def usual(causal, backbone, pairs: Sequence[tuple[str, str]], *, last_only: bool) -> np.ndarray:
    """Log-odds from a language model, pairs in the order given."""
    import torch

    from hf_qualcode.rerank.backbones.causal import find_answers

    answers = find_answers(backbone.tokenizer, backbone._reader.template, backbone.source)
    scores = []
    with torch.inference_mode():
        for start in range(0, len(pairs), USUAL_BATCH_SIZE):
            queries, codes = zip(*pairs[start : start + USUAL_BATCH_SIZE], strict=True)
            batch = backbone.collate(backbone.encode([""] * len(codes), queries, codes).inputs)
            logits = causal(**batch, use_cache=False, logits_to_keep=1 if last_only else 0).logits[:, -1]
            scores.append(logits[:, answers.yes] - logits[:, answers.no])
    return torch.cat(scores).numpy()


def unshared(backbone, pairs: Sequence[tuple[str, str]], token_budget: int, side_by_side: bool) -> np.ndarray:
    """Log-odds from the classifier, in batches of like length."""
    import torch

    from hf_qualcode.batching import token_batches
    from hf_qualcode.threads import map_side_by_side

    inputs = backbone.encode([""] * len(pairs), *zip(*pairs, strict=True)).inputs
    scores = np.empty(len(pairs), dtype=np.float32)

    @torch.inference_mode()
    def run(rows: np.ndarray) -> np.ndarray:
        return backbone.scores(backbone.model, backbone.collate([inputs[row] for row in rows])).numpy()

    batches = token_batches([len(encoded.ids) for encoded in inputs], token_budget)
    for rows, given in map_side_by_side(run, batches) if side_by_side else ((rows, run(rows)) for rows in batches):
        scores[rows] = given
    return scores


def save_random_model(problems: Sequence[Problem], num_layers: int, folder: Path) -> str:
    """A Qwen3 whose attention takes about the share of the work that it takes in Qwen3-0.6B."""
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    tokenizer = train_tokenizer(problems)
    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=len(tokenizer), hidden_size=512, intermediate_size=1536, num_hidden_layers=num_layers,
        num_attention_heads=8, num_key_value_heads=4, head_dim=64, max_position_embeddings=8192,
        pad_token_id=tokenizer.pad_token_id, tie_word_embeddings=True, initializer_range=0.06,
    )  # fmt: skip
    Qwen3ForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


def train_tokenizer(problems: Sequence[Problem]):
    """A byte-level BPE tokenizer with the pattern and the control tokens of Qwen."""
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    words = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(words + r"|\s*[\r\n]+|\s+(?!\S)|\s+"), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    backend.decoder = decoders.ByteLevel()
    controls = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), special_tokens=controls,
        show_progress=False,
    )  # fmt: skip
    texts = [text for problem in problems for text in (problem.statement, *problem.programs)]
    backend.train_from_iterator([*texts, "yes\nno\n" * 1000], trainer)
    backend.add_tokens([AddedToken(token, normalized=False) for token in ("<think>", "</think>")])
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, eos_token="<|im_end|>", pad_token="<|endoftext|>", model_max_length=8192,
        extra_special_tokens=["<|im_start|>", "<|endoftext|>"],
    )  # fmt: skip


def show(report: dict) -> None:
    print(
        f"{report['model']}: {report['queries']} queries x {report['candidates']} candidates, {report['tokens']} "
        f"tokens, {report['tokens_shared']} when prefixes count once: token ratio {report['token_ratio']:.2f}; "
        f"{report['cut']} inputs cut"
    )
    show_machine(report["machine"])
    for name, rate in report["pairs_per_second"].items():
        difference = report["largest_difference"].get(name)
        print(
            f"  {name:20} {rate:8.2f} pairs/s   {report['pairs_per_cpu_second'][name]:8.2f} a CPU second"
            + ("" if difference is None else f"   largest difference {difference:.1e}")
        )
    print(f"  scores spread by {report['spread_of_scores']:.2f}; unshared: {report['unshared']}")
    for kind, prefix in (("ratio", ""), ("by CPU time", "cpu_")):
        usual_ratio, best_ratio = report[f"{prefix}ratio_to_usual"], report[f"{prefix}ratio_to_best"]
        share = report[f"{prefix}share_of_token_ratio"]
        print(f"  {kind:12} to usual {usual_ratio:.2f}, to best {best_ratio:.2f} = {share:.2f} of the token ratio")


if __name__ == "__main__":
    main()
