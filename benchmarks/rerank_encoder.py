"""Pairs per second of `Reranker.score` beside `CrossEncoder.predict`: the packaged MiniLM with a head, in one run.

    python benchmarks/rerank_encoder.py --data <folder with codenet-mini/> [--json FILE]

Queries are the beginnings of problem statements, codes are programs of all lengths. The head is drawn at random, with
weights that spread the scores. Both read up to 512 tokens. Scores are compared where the input is not cut: the two
cut differently. The best batch size of sentence-transformers is found first, on a part of the pairs.
"""

import argparse
import json
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from rerank_material import add_data_argument, draw_queries, read_problems
from turns import fastest, kendall, machine, quiet_transformers, show_machine, take_turns


BATCH_SIZES = (8, 16, 32, 64)
DEFAULT_BATCH_SIZE = 32
MAX_LENGTH = 512
LARGEST_DIFFERENCE = 1e-4


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_data_argument(parser)
    parser.add_argument("--model", default="minilm", help="encoder: minilm, a folder or a Hub id")
    parser.add_argument("--queries", type=int, default=8, help="(default 8)")
    parser.add_argument("--codes", type=int, default=32, help="of each query (default 32)")
    parser.add_argument("--characters", type=int, default=300, help="of a statement, as the query (default 300)")
    parser.add_argument("--rounds", type=int, default=4, help="turns of each contestant (default 4)")
    parser.add_argument("--precision", default="auto", choices=["auto", "float32", "bfloat16"], help="of ours")
    parser.add_argument("--threads", type=int, help="of torch; defaults to its own choice")
    parser.add_argument("--json", type=Path, help="write the figures to this file as well")
    arguments = parser.parse_args()

    import torch
    from sentence_transformers import CrossEncoder

    from hf_qualcode.rerank import Reranker

    quiet_transformers()
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    queries = draw_queries(read_problems(arguments.data), arguments.queries, arguments.codes)
    pairs = [(statement[: arguments.characters], code) for statement, codes in queries for code in codes]
    with tempfile.TemporaryDirectory() as folder:
        save_model(arguments.model, Path(folder))
        ours = Reranker.from_pretrained(
            folder, device="cpu", precision=arguments.precision, max_length=MAX_LENGTH, fusion=False
        )
        theirs = CrossEncoder(folder, device="cpu", max_length=MAX_LENGTH, activation_fn=torch.nn.Identity())
    whole = uncut(ours, pairs)
    dtype = str(next(ours.backbone.model.base_model.parameters()).dtype).removeprefix("torch.")

    def their_scores(batch_size: int, chosen: list[tuple[str, str]] = pairs) -> np.ndarray:
        return theirs.predict(texts_of(ours, chosen), batch_size=batch_size, show_progress_bar=False)

    def our_scores() -> np.ndarray:
        return ours.score(*zip(*pairs, strict=True), instruction="")

    # A part that is a multiple of every batch size, so that none is measured by what is left over.
    sample = pairs[:: max(1, len(pairs) // max(BATCH_SIZES))][: max(BATCH_SIZES)]
    best = fastest({size: lambda size=size: their_scores(size, sample) for size in BATCH_SIZES})
    contestants: dict[str, Callable[[], np.ndarray]] = {
        f"sentence-transformers, default ({DEFAULT_BATCH_SIZE})": lambda: their_scores(DEFAULT_BATCH_SIZE)
    }
    if best != DEFAULT_BATCH_SIZE:
        contestants[f"sentence-transformers, best ({best})"] = lambda: their_scores(best)
    contestants[f"hf-qualcode, {dtype}"] = our_scores
    turns = take_turns(contestants, arguments.rounds)
    default, *_, our_name = turns
    best_name = list(turns)[-2]
    reference, given = turns[default].result[whole], turns[our_name].result[whole]
    lengths = [len(encoded.ids) for encoded in encode(ours, pairs)]
    report = {
        "model": arguments.model,
        "pairs": len(pairs),
        "tokens": {"all": sum(lengths), "shortest": min(lengths), "median": float(np.median(lengths)),
                   "longest": max(lengths)},
        "machine": machine(),
        "pairs_per_second": {name: len(pairs) / each.wall for name, each in turns.items()},
        "pairs_per_cpu_second": {name: len(pairs) / each.cpu for name, each in turns.items()},
        "ratio_to_default": turns[default].wall / turns[our_name].wall,
        "ratio_to_best": turns[best_name].wall / turns[our_name].wall,
        "cpu_ratio_to_default": turns[default].cpu / turns[our_name].cpu,
        "cpu_ratio_to_best": turns[best_name].cpu / turns[our_name].cpu,
        "compared": int(whole.sum()),
        "spread_of_scores": float(reference.std()),
        "largest_difference": float(np.abs(reference - given).max()),
        "kendall": kendall(reference, given),
        "new_ties": num_ties(given) - num_ties(reference),
    }  # fmt: skip
    show(report)
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=2), encoding="utf-8")
    if dtype == "float32" and report["largest_difference"] > LARGEST_DIFFERENCE:
        raise SystemExit(f"scores differ by {report['largest_difference']:.1e}, more than {LARGEST_DIFFERENCE}")


def save_model(model: str, folder: Path) -> None:
    """The encoder with a random head of one label, wide enough that scores differ as those of a trained one do."""
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    from hf_qualcode.hub import resolve_model

    torch.manual_seed(0)
    source = resolve_model(model)
    classifier = AutoModelForSequenceClassification.from_pretrained(source, num_labels=1, dtype=torch.float32)
    classifier.classifier.weight.data.normal_(std=1.0)
    classifier.save_pretrained(folder)
    AutoTokenizer.from_pretrained(source).save_pretrained(folder)


def texts_of(reranker, pairs: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """The very strings that ours reads."""
    return [reranker.backbone.text_pair("", query, code) for query, code in pairs]


def encode(reranker, pairs: list[tuple[str, str]]) -> list:
    queries, codes = zip(*pairs, strict=True)
    return reranker.backbone.encode([""] * len(pairs), queries, codes).inputs


def uncut(reranker, pairs: list[tuple[str, str]]) -> np.ndarray:
    """bool [n], which pairs fit the model as they are."""
    tokens = reranker.backbone.tokenizer(texts_of(reranker, pairs), truncation=False, verbose=False)["input_ids"]
    return np.array([len(ids) <= MAX_LENGTH for ids in tokens])


def num_ties(scores: np.ndarray) -> int:
    return len(scores) - len(np.unique(scores))


def show(report: dict) -> None:
    tokens = report["tokens"]
    print(
        f"{report['model']} with a head, {report['pairs']} pairs of {tokens['shortest']} to {tokens['longest']} "
        f"tokens (median {tokens['median']:.0f})"
    )
    show_machine(report["machine"])
    for name, rate in report["pairs_per_second"].items():
        print(f"  {name:40} {rate:8.1f} pairs/s   {report['pairs_per_cpu_second'][name]:8.1f} a CPU second")
    print(f"  ratio to default {report['ratio_to_default']:.2f}, to best {report['ratio_to_best']:.2f}")
    print(f"  by CPU time      {report['cpu_ratio_to_default']:.2f}, to best {report['cpu_ratio_to_best']:.2f}")
    print(
        f"  {report['compared']} pairs that are not cut: largest difference {report['largest_difference']:.1e} of "
        f"scores that spread by {report['spread_of_scores']:.2f}, Kendall {report['kendall']:.4f}, "
        f"{report['new_ties']} new ties"
    )


if __name__ == "__main__":
    main()
