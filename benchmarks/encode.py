"""Texts per second of our encoder beside `SentenceTransformer.encode`, on the codes of CoSQA, in one run.

    HF_QUALCODE_TEST_DATA=<folder with cosqa/> python benchmarks/encode.py [--limit 1500] [--json FILE]

The contestants take turns and the fastest turn of each counts, so that a busy machine spoils little. The best batch
size of sentence-transformers is found first, on a part of the texts. Vectors are compared with float32 ones of
sentence-transformers, and Hit@1 of the 500 CoSQA dev queries is reported for both over the same codes (the queries'
targets, then others up to the limit).
"""

import argparse
import json
import os
import sys
import time
from pathlib import Path

import numpy as np


BATCH_SIZES = (8, 16, 32, 64, 128, 256)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="minilm", help="encoder: minilm, a folder or a Hub id")
    parser.add_argument("--limit", type=int, default=1500, help="number of codes, at least 500 (default 1500)")
    parser.add_argument("--rounds", type=int, default=4, help="turns of each contestant (default 4)")
    parser.add_argument("--precision", default="auto", choices=["auto", "float32", "bfloat16"])
    parser.add_argument("--device", default=None)
    parser.add_argument("--json", type=Path, help="write the figures to this file as well")
    arguments = parser.parse_args()
    if arguments.limit < 500:
        parser.error(f"--limit {arguments.limit}: the targets of the queries alone are 500 codes")

    import torch
    from sentence_transformers import SentenceTransformer

    from hf_qualcode.hub import resolve_model
    from hf_qualcode.retrieve.encoder import load_encoder

    queries, targets, codes = read_cosqa(arguments.limit)
    ours = load_encoder(arguments.model, device=arguments.device, precision=arguments.precision)
    theirs = SentenceTransformer(str(resolve_model(arguments.model)), device=arguments.device)

    def their_encode(batch_size: int, texts: list[str] = codes) -> np.ndarray:
        return theirs.encode(texts, batch_size=batch_size, normalize_embeddings=True, show_progress_bar=False)

    sample = codes[:: max(1, len(codes) // 150)]
    trial = {size: seconds(lambda size=size: their_encode(size, sample))[0] for size in BATCH_SIZES}
    best = min(trial, key=trial.get)
    default, best_name = (f"sentence-transformers, {kind}" for kind in ("default (32)", f"best ({best})"))
    our_name = f"hf-qualcode, {ours.dtype}".replace("torch.", "")
    contestants = {default: lambda: their_encode(32), our_name: lambda: ours.encode(codes)}
    if best != 32:
        contestants[best_name] = lambda: their_encode(best)
    times = {name: [] for name in contestants}
    vectors = {}
    for _ in range(arguments.rounds):
        for name, run in contestants.items():
            took, vectors[name] = seconds(run)
            times[name].append(took)
    fastest = {name: min(took) for name, took in times.items()}
    fastest.setdefault(best_name, fastest[default])
    query_vectors = {default: their_encode(32, queries), our_name: ours.encode(queries, is_query=True)}
    report = {
        "model": arguments.model,
        "codes": len(codes),
        "device": str(ours.device),
        "threads": torch.get_num_threads(),
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "texts_per_second": {name: len(codes) / took for name, took in fastest.items()},
        "ratio_to_default": fastest[default] / fastest[our_name],
        "ratio_to_best": fastest[best_name] / fastest[our_name],
        "largest_cosine_difference": float(1 - (vectors[default] * vectors[our_name]).sum(axis=1).min()),
        "hit@1": {name: hit_at_1(query_vectors[name], vectors[name], targets) for name in (default, our_name)},
    }
    show(report)
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=2), encoding="utf-8")


def read_cosqa(limit: int) -> tuple[list[str], list[int], list[str]]:
    """Dev queries, the row of each one's target, and codes: all targets, then others in the file's order."""
    data = os.environ.get("HF_QUALCODE_TEST_DATA")
    if not data:
        sys.exit("set HF_QUALCODE_TEST_DATA to a folder that has cosqa/code_idx_map.txt")
    folder = Path(data) / "cosqa"
    rows = json.loads((folder / "cosqa-retrieval-dev-500.json").read_text(encoding="utf-8"))
    code_ids = json.loads((folder / "code_idx_map.txt").read_text(encoding="utf-8"))
    by_id = {code_id: code for code, code_id in code_ids.items()}
    wanted = list(dict.fromkeys([row["retrieval_idx"] for row in rows] + list(by_id)))[:limit]
    place = {code_id: row for row, code_id in enumerate(wanted)}
    return [row["doc"] for row in rows], [place[row["retrieval_idx"]] for row in rows], [by_id[id] for id in wanted]


def seconds(run) -> tuple[float, np.ndarray]:
    start = time.perf_counter()
    result = run()
    return time.perf_counter() - start, result


def hit_at_1(queries: np.ndarray, codes: np.ndarray, targets: list[int]) -> float:
    return float(((queries @ codes.T).argmax(axis=1) == np.array(targets)).mean())


def show(report: dict) -> None:
    print(
        f"{report['model']}, {report['codes']} CoSQA codes, {report['device']}, {report['threads']} threads, "
        f"{report['cpu_capability']}"
    )
    for name, rate in report["texts_per_second"].items():
        hit = report["hit@1"].get(name)
        print(f"  {name:40} {rate:8.1f} texts/s" + ("" if hit is None else f"   Hit@1 {hit:.3f}"))
    print(f"  ratio to default {report['ratio_to_default']:.2f}, to best {report['ratio_to_best']:.2f}")
    print(f"  largest cosine difference {report['largest_cosine_difference']:.1e}")


if __name__ == "__main__":
    main()
