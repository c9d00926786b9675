"""`evaluate reranking`: how far up a model puts the relevant code of given lists."""

import argparse
from pathlib import Path

from hf_qualcode.cli.evaluating.common import (
    add_common_arguments,
    check_names,
    check_seed,
    check_targets,
    print_report,
    warn,
)
from hf_qualcode.cli.evaluating.retrieval import compare_metrics


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
    model = parser.add_mutually_exclusive_group()
    model.add_argument("--model", metavar="NAME", help="bm25, minilm, another baseline, or a model's DIR or ORG/NAME")
    model.add_argument("--run", dest="run_file", metavar="FILE", type=Path, help="evaluate this TREC run instead")
    model.add_argument(
        "--compare", nargs=2, metavar=("A", "B"), type=Path, help="compare two --save-scores files, list by list"
    )
    parser.add_argument(
        "--baseline", action="append", default=[], metavar="M_OR_RUN", help="a model or run to set beside; repeatable"
    )
    parser.add_argument("--save-run", metavar="FILE", type=Path, help="write the order as a TREC run")
    add_common_arguments(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the task."""
    from hf_qualcode.types import UsageError

    check_seed(args)
    if args.compare:
        compare_metrics(args)
        return 0
    if not args.data:
        raise UsageError("--data is missing: a folder of `dataset build qualcode` or a Hub id")
    if not args.model and not args.run_file:
        raise UsageError("name what to evaluate: --model NAME or --run FILE")
    _evaluate(args)
    return 0


def _evaluate(args: argparse.Namespace) -> None:
    from hf_qualcode.benchmark.loading import load_lists
    from hf_qualcode.cli.evaluating.models import find_scorer
    from hf_qualcode.cli.progress import ProgressLine
    from hf_qualcode.evaluation.report import ranking_table, reranking_report
    from hf_qualcode.evaluation.reranking import evaluate_reranking, evaluate_reranking_run, random_reranking
    from hf_qualcode.evaluation.score_files import write_rows
    from hf_qualcode.evaluation.trec import read_run, write_run

    # Every name and file is looked at before the first long work begins.
    model = str(args.run_file) if args.run_file else args.model
    names = [model, *args.baseline]
    check_names(names, reserved=("random",))
    check_targets(args.save_run, args.save_scores)
    lists = load_lists(args.data, args.split)
    runs = {n: read_run(n) for n in names if (n == model and args.run_file) or (n != model and Path(n).is_file())}
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
    if args.save_run:
        write_run(args.save_run, result.run, tag=model)
    if args.save_scores:
        write_rows(args.save_scores, result.rows())
    config = {"split": args.split, "seed": args.seed}
    report = reranking_report(
        args.data, config, model, result, {**results, "random": random_reranking(lists)}, args.seed
    )
    print_report(report, [ranking_table(report, "lists")], args.json)
