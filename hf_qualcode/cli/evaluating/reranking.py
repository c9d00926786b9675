"""`evaluate reranking`: how far up a model puts the relevant code of given lists."""

import argparse

from hf_qualcode.cli.evaluating.common import print_report, warn
from hf_qualcode.cli.evaluating.ranked import add_ranking_arguments, named_systems, run_ranking, save


def add_task(tasks) -> None:
    """Add the task's arguments."""
    parser = tasks.add_parser(
        "reranking",
        help="how far up a model puts the right code of given lists",
        description="Order the lists of a data set's `relevance` configuration; report MRR@10 and nDCG@10 with 95 % "
        "intervals, in all and by dimension. Equal scores count by expectation; intervals draw whole problems.",
    )
    parser.add_argument(
        "--data", metavar="DIR|ORG/NAME", help="the test set: a folder of `dataset build qualcode` or a Hub id"
    )
    parser.add_argument("--split", default="test", help="split of the data set (default test)")
    add_ranking_arguments(
        parser,
        models="bundled (the reranker inside), bm25, minilm, another baseline, or a model's DIR or ORG/NAME",
        unit="list",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the task."""
    return run_ranking(args, _evaluate, "a folder of `dataset build qualcode` or a Hub id")


def _evaluate(args: argparse.Namespace) -> None:
    from hf_qualcode.benchmark.loading import load_lists
    from hf_qualcode.cli.evaluating.models import find_scorer
    from hf_qualcode.cli.progress import ProgressLine
    from hf_qualcode.evaluation.report import ranking_table, reranking_report
    from hf_qualcode.evaluation.reranking import evaluate_reranking, evaluate_reranking_run, random_reranking

    model, names, runs = named_systems(args)
    lists = load_lists(args.data, args.split)
    results = {}
    with ProgressLine() as progress:
        scorers = {name: find_scorer(name, progress) for name in names if name not in runs}
        for number, name in enumerate(names):
            if name in runs:
                results[name] = evaluate_reranking_run(lists, runs[name])
            else:
                results[name] = evaluate_reranking(lists, scorers[name])
            progress("scoring", number + 1, len(names))
    for name, result in results.items():
        if result.empty:
            warn(name, f"{result.empty} lists are not in the run; they count as not found")
        if result.missing:
            warn(name, f"{result.missing} documents are not ranked; they count as not found")
    result = results.pop(model)
    save(args, model, result)
    config = {"split": args.split, "seed": args.seed}
    report = reranking_report(
        args.data, config, model, result, {**results, "random": random_reranking(lists)}, args.seed
    )
    print_report(report, [ranking_table(report, "lists")], args.json)
