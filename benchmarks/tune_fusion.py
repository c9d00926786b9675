"""Chooses the hybrid of `hf_qualcode.retrieve.candidates.fusion` on CoSQA's training positives.

    python benchmarks/tune_fusion.py DIR [--vectors FILE.npz]

DIR holds `code_idx_map.txt`, `cosqa-train-570.json` and `cosqa-retrieval-dev-500.json`. Only the training pairs with
label 1 (279) decide anything; dev is printed beside, for reporting. The pool is CoSQA's 6,267 codes, which hold all
targets. `--vectors` keeps the vectors between runs (computing them takes minutes).

Two choices are made. The normalisation and weight of the hybrid maximise MRR@20, judged by cross-validation: 20 times
5 folds over distinct target codes, the weight chosen on four folds and scored on the fifth, so that no method is
preferred for a lucky weight. How the 200 candidates are drawn maximises, alike, the share of queries whose target is
among them.
"""

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from hf_qualcode.corpus.cosqa import load_cosqa
from hf_qualcode.evaluation.significance import paired_bootstrap
from hf_qualcode.lexical import query_subtokens
from hf_qualcode.retrieve.candidates.bm25 import BM25Scorer, TokenTable
from hf_qualcode.retrieve.candidates.embedding import top_k
from hf_qualcode.retrieve.candidates.fusion import DENSE_WEIGHT, STATIC_WEIGHT, fuse, select_candidates


WEIGHTS = np.round(np.arange(0, 1.001, 0.02), 2)
NUM_CANDIDATES = 200
REPEATS, FOLDS, SEED = 20, 5, 42


class Queries(NamedTuple):
    """One set of queries: dense and static cosines, BM25, its upper bound [n, 1], and the target's position."""

    dense: np.ndarray
    static: np.ndarray
    bm25: np.ndarray
    bound: np.ndarray
    target: np.ndarray


def over_best(values: np.ndarray) -> np.ndarray:
    best = values.max(axis=1, keepdims=True)
    return np.divide(values, best, out=np.zeros_like(values), where=best > 0)


def min_max(values: np.ndarray) -> np.ndarray:
    low, high = values.min(axis=1, keepdims=True), values.max(axis=1, keepdims=True)
    return np.divide(values - low, high - low, out=np.zeros_like(values), where=high > low)


def z_score(values: np.ndarray) -> np.ndarray:
    spread = values.std(axis=1, keepdims=True)
    return np.divide(values - values.mean(axis=1, keepdims=True), spread, out=np.zeros_like(values), where=spread > 0)


def inverse_rank(values: np.ndarray, constant: int) -> np.ndarray:
    order = top_k(values, values.shape[1])
    ranks = np.empty_like(order)
    np.put_along_axis(ranks, order, np.broadcast_to(np.arange(1, values.shape[1] + 1), order.shape), axis=1)
    return 1.0 / (constant + ranks)


# Name -> (cosine's part, BM25's part), computed once a query set and then weighted w : 1 - w.
METHODS: dict[str, Callable[[np.ndarray, np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]] = {
    "cosine + BM25/best": lambda cosine, bm25, bound: (cosine, over_best(bm25)),
    "cosine + BM25/bound": lambda cosine, bm25, bound: (cosine, bm25 / bound),
    "cosine + tanh(BM25/10)": lambda cosine, bm25, bound: (cosine, np.tanh(bm25 / 10)),
    "cosine + BM25/(BM25+5)": lambda cosine, bm25, bound: (cosine, bm25 / (bm25 + 5)),
    "cosine + BM25/10": lambda cosine, bm25, bound: (cosine, bm25 / 10),
    "min-max of both *": lambda cosine, bm25, bound: (min_max(cosine), min_max(bm25)),
    "z-score of both *": lambda cosine, bm25, bound: (z_score(cosine), z_score(bm25)),
    "weighted RRF, 60 *": lambda cosine, bm25, bound: (inverse_rank(cosine, 60), inverse_rank(bm25, 60)),
    "weighted RRF, 10 *": lambda cosine, bm25, bound: (inverse_rank(cosine, 10), inverse_rank(bm25, 10)),
}


def target_ranks(scores: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Rank of the target of each query, the middle of its group of ties."""
    own = np.take_along_axis(scores, target[:, None], axis=1)
    return (scores > own).sum(axis=1) + ((scores == own).sum(axis=1) + 1) / 2


def reciprocal(ranks: np.ndarray) -> np.ndarray:
    return np.where(ranks <= 20, 1 / ranks, 0.0)


def ranks_by_weight(method, cosine: np.ndarray, queries: Queries) -> np.ndarray:
    """[num_weights, num_queries]."""
    dense, lexical = method(cosine, queries.bm25, queries.bound)
    return np.stack([target_ranks(weight * dense + (1 - weight) * lexical, queries.target) for weight in WEIGHTS])


def cross_validated(values: np.ndarray, target: np.ndarray) -> float:
    """Mean of `values[weight, query]` with the weight of each query chosen on queries with other targets."""
    rng = np.random.default_rng(SEED)
    codes, of_query = np.unique(target, return_inverse=True)
    total = 0.0
    for _ in range(REPEATS):
        fold = rng.permutation(len(codes))[of_query] % FOLDS
        for held_out in range(FOLDS):
            best = smoothed(values[:, fold != held_out].mean(axis=1)).argmax()
            total += values[best, fold == held_out].sum()
    return total / (REPEATS * len(target))


def smoothed(curve: np.ndarray) -> np.ndarray:
    """Mean with two neighbours on either side: the middle of a plateau is a safer weight than a lone peak."""
    padded = np.pad(curve, 2, mode="edge")
    return np.mean([padded[i : i + len(curve)] for i in range(5)], axis=0)


def load_queries(folder: Path, vectors: Path | None) -> tuple[Queries, Queries]:
    dev = load_cosqa(folder, "dev")
    pool = {code: i for i, code in enumerate(dev.corpus_texts)}
    pairs = json.loads((folder / "cosqa-train-570.json").read_text(encoding="utf-8"))
    positives = [row for row in pairs if row["label"] == 1]
    texts = {"codes": dev.corpus_texts, "train": [row["doc"] for row in positives], "dev": dev.query_texts}
    targets = {
        "train": [pool[row["code"]] for row in positives],
        "dev": [int(next(iter(dev.qrels[query_id]))) for query_id in dev.query_ids],
    }
    if vectors is not None and vectors.is_file():
        encoded = dict(np.load(vectors))
    else:
        encoded = encode(texts)
        if vectors is not None:
            np.savez(vectors, **encoded)
    scorer = BM25Scorer.from_tokens(TokenTable.from_texts(dev.corpus_texts))
    return tuple(
        Queries(
            dense=encoded[f"minilm_{split}"] @ encoded["minilm_codes"].T,
            static=encoded[f"static_{split}"] @ encoded["static_codes"].T,
            bm25=scorer.score(texts[split]),
            bound=upper_bound(scorer, texts[split]),
            target=np.array(targets[split]),
        )
        for split in ("train", "dev")
    )


def encode(texts: dict[str, list[str]]) -> dict[str, np.ndarray]:
    from hf_qualcode.retrieve.encoder import load_encoder

    encoded = {}
    for name in ("minilm", "static"):
        encoder = load_encoder(name)
        for part, values in texts.items():
            encoded[f"{name}_{part}"] = encoder.encode(values, is_query=part != "codes")
    return encoded


def upper_bound(scorer: BM25Scorer, queries: list[str]) -> np.ndarray:
    """What BM25 cannot exceed: the sum of the query's inverse document frequencies. [num_queries, 1]"""
    frequency = np.diff(scorer.indptr)
    idf = np.log(1 + (scorer.num_documents - frequency + 0.5) / (frequency + 0.5))
    sums = [sum(idf[scorer.token_ids[t]] for t in query_subtokens(q) if t in scorer.token_ids) for q in queries]
    return np.maximum(np.array(sums, dtype=np.float32), 1e-6)[:, None]


def report_hybrid(train: Queries, dev: Queries) -> None:
    print("\nHybrid, MRR@20 (cv: cross-validated on train; * depends on documents that have no cosine on demand)")
    print(f"{'':26}{'cv':>7}{'weight':>8}{'train':>7}{'Hit@1':>7}{'dev':>9}{'Hit@1':>7}")
    for name, method in METHODS.items():
        ranks = ranks_by_weight(method, train.dense, train)
        values = reciprocal(ranks)
        best = smoothed(values.mean(axis=1)).argmax()
        on_dev = ranks_by_weight(method, dev.dense, dev)[best]
        print(
            f"{name:26}{cross_validated(values, train.target):7.4f}{WEIGHTS[best]:8.2f}{values[best].mean():7.4f}"
            f"{(ranks[best] <= 1).mean():7.4f}{reciprocal(on_dev).mean():9.4f}{(on_dev <= 1).mean():7.4f}"
        )


def report_candidates(train: Queries, dev: Queries) -> None:
    print(f"\nCandidates: share of queries whose target is among the {NUM_CANDIDATES} drawn")
    print(f"{'':26}{'cv':>7}{'weight':>8}{'train':>7}{'dev':>9}")
    for name, method in METHODS.items():
        found = (ranks_by_weight(method, train.static, train) <= NUM_CANDIDATES).astype(float)
        best = smoothed(found.mean(axis=1)).argmax()
        on_dev = ranks_by_weight(method, dev.static, dev)[best] <= NUM_CANDIDATES
        cv = cross_validated(found, train.target)
        print(f"{name:26}{cv:7.4f}{WEIGHTS[best]:8.2f}{found[best].mean():7.4f}{on_dev.mean():9.4f}")


def report_product(name: str, queries: Queries) -> None:
    """The library's own functions with the weights they ship."""
    print(f"\n{name}: as shipped (dense weight {DENSE_WEIGHT}, static weight {STATIC_WEIGHT})")
    best = queries.bm25.max(axis=1, keepdims=True)
    full = fuse(queries.bm25, queries.dense, best)
    path = np.full_like(full, -np.inf)
    for row, bm25, static, scores in zip(path, queries.bm25, queries.static, full, strict=True):
        chosen = select_candidates(bm25, static, NUM_CANDIDATES)
        row[chosen] = scores[chosen]
    systems = {"BM25": queries.bm25, "static": queries.static, "MiniLM": queries.dense, "hybrid": full}
    systems["200 candidates"] = path
    ranks = {system: target_ranks(scores, queries.target) for system, scores in systems.items()}
    reference = ranks["MiniLM"]
    for system, values in ranks.items():
        hit, mrr = (values <= 1).astype(float), reciprocal(values)
        line = f"{system:16} Hit@1 {hit.mean():.3f}  MRR@20 {mrr.mean():.3f}  recall@200 {(values <= 200).mean():.3f}"
        if system in ("hybrid", "200 candidates"):
            for metric, ours, theirs in (("Hit@1", hit, reference <= 1), ("MRR@20", mrr, reciprocal(reference))):
                difference = paired_bootstrap(ours, np.asarray(theirs, dtype=float), seed=SEED)
                line += f"  {metric} - MiniLM {difference.mean:+.3f} [{difference.low:+.3f}, {difference.high:+.3f}]"
        print(line)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="CoSQA's published files and cosqa-train-570.json")
    parser.add_argument("--vectors", type=Path, help="where to keep the vectors between runs (.npz)")
    args = parser.parse_args()
    train, dev = load_queries(args.folder, args.vectors)
    report_hybrid(train, dev)
    report_candidates(train, dev)
    report_product("train positives", train)
    report_product("dev", dev)


if __name__ == "__main__":
    main()
