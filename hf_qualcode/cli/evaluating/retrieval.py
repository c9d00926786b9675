"""`evaluate retrieval`: how far up a search finds the right code."""

import argparse

from hf_qualcode.cli.evaluating.common import print_report, refuse_with_compare, warn
from hf_qualcode.cli.evaluating.ranked import add_ranking_arguments, named_systems, run_ranking, save
from hf_qualcode.cli.qualities import (
    BUNDLED,
    add_order_arguments,
    add_quality_argument,
    load_reranker,
    quality_of,
    weight_of,
)


_DATA = "expected cosqa:DIR, a folder of CoSQA's published files, or qualcode:DIR, made by `dataset build qualcode`"


def add_task(tasks) -> None:
    """Add the task's arguments."""
    parser = tasks.add_parser(
        "retrieval",
        help="how far up a search finds the right code",
        description="Search every query of a test set; report Hit@1/3/5, MRR@20 and recall@100 with 95 % intervals. "
        "Equal scores count by expectation, so the order of a list decides nothing that its scores do not.",
    )
    parser.add_argument(
        "--data",
        metavar="KIND:DIR",
        help="the test set: cosqa:DIR (a folder of CoSQA's files) or qualcode:DIR (of `dataset build qualcode`)",
    )
    parser.add_argument("--split", help="cosqa: dev (default) or test; qualcode: test")
    add_ranking_arguments(
        parser,
        models="bm25, minilm, hybrid, default (what `search` does), another baseline, or an encoder's DIR or ORG/NAME",
        unit="query",
    )
    add_quality_argument(
        parser,
        "put the model's best 50 in the order of `search --quality`: speed, memory, maintainability, or several; "
        "--baseline with the same model shows what that changes",
    )
    add_order_arguments(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the task."""
    if args.compare:
        refuse_with_compare(args, "quality", "quality_weight", "reranker")
    return run_ranking(args, _evaluate, _DATA)


def _evaluate(args: argparse.Namespace) -> None:
    from hf_qualcode.cli.evaluating.models import find_searcher
    from hf_qualcode.cli.progress import ProgressLine
    from hf_qualcode.evaluation.report import ranking_table, retrieval_report
    from hf_qualcode.evaluation.retrieval import evaluate_retrieval, evaluate_run, random_baseline
    from hf_qualcode.types import UsageError

    quality, weight = quality_of(args), weight_of(args)
    if quality and args.run_file:
        raise UsageError("--quality orders what a --model finds; a --run is evaluated as it is")
    model, names, runs = named_systems(args, f" + {','.join(quality)}" if quality else "")
    builders = {name: find_searcher(args.model if name == model else name) for name in names if name not in runs}
    reranker = load_reranker(args.reranker or BUNDLED) if quality else None
    data = _load_data(args.data, args.split)

    results = {}
    with ProgressLine() as progress:
        for name in names:
            if name in runs:
                results[name] = evaluate_run(data, runs[name])
            else:
                searcher = builders[name](data.corpus_ids, data.corpus_texts, progress=progress)
                if name == model and reranker is not None:
                    searcher = _by_quality(searcher, data, reranker, quality, weight, progress)
                results[name] = evaluate_retrieval(data, searcher)
    for name, result in results.items():
        if result.empty:
            warn(name, f"{result.empty} queries have no answer; they count as not found")
        if result.cut_ties:
            warn(name, f"{result.cut_ties} lists end among equal scores; what was cut off counts as not found")
    result = results.pop(model)
    save(args, model, result)
    config = {"split": data.split, "seed": args.seed}
    if quality:
        config |= {"quality": ",".join(quality), "quality_weight": weight, "reranker": args.reranker or BUNDLED}
    report = retrieval_report(
        args.data, config, model, result, {**results, "random": random_baseline(data)}, args.seed
    )
    print_report(report, [ranking_table(report)], args.json)


def _by_quality(searcher, data, reranker, quality, weight, progress):
    from hf_qualcode.baselines.quality_searcher import QualitySearcher

    texts = dict(zip(data.corpus_ids, data.corpus_texts, strict=True))
    return QualitySearcher(searcher, texts, reranker, quality, weight, progress=progress)


def _load_data(name: str, split: str | None):
    from hf_qualcode.types import UsageError

    kind, _, folder = name.partition(":")
    if kind == "cosqa" and folder:
        from hf_qualcode.corpus.cosqa import load_cosqa

        return load_cosqa(folder, split or "dev")
    if kind == "qualcode" and folder:
        from hf_qualcode.benchmark.loading import load_qualcode_retrieval

        return load_qualcode_retrieval(name, split or "test")
    raise UsageError(f"--data {name}: {_DATA}")
