"""`evaluate retrieval`: how far up a search finds the right code."""

import argparse
from pathlib import Path

from hf_qualcode.cli.evaluating.common import (
    add_common_arguments,
    check_names,
    check_seed,
    check_targets,
    print_report,
    refuse_with_compare,
    warn,
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
    model = parser.add_mutually_exclusive_group()
    model.add_argument(
        "--model",
        metavar="NAME",
        help="bm25, minilm, hybrid, default (what `search` does), another baseline, or an encoder's DIR or ORG/NAME",
    )
    model.add_argument("--run", dest="run_file", metavar="FILE", type=Path, help="evaluate this TREC run instead")
    model.add_argument(
        "--compare", nargs=2, metavar=("A", "B"), type=Path, help="compare two --save-scores files, query by query"
    )
    parser.add_argument(
        "--baseline", action="append", default=[], metavar="M_OR_RUN", help="a model or run to set beside; repeatable"
    )
    parser.add_argument("--save-run", metavar="FILE", type=Path, help="write the answers as a TREC run")
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
        raise UsageError(f"--data is missing: {_DATA}")
    if not args.model and not args.run_file:
        raise UsageError("name what to evaluate: --model NAME or --run FILE")
    _evaluate(args)
    return 0


def compare_metrics(args: argparse.Namespace) -> None:
    """Compare two result files of ranked lists."""
    from hf_qualcode.evaluation.report import comparison_report, comparison_table
    from hf_qualcode.evaluation.score_files import read_metric_rows

    refuse_with_compare(args, "data", "baseline", "save_run", "save_scores")
    first, second = args.compare
    rows = [read_metric_rows(path) for path in args.compare]
    report = comparison_report(str(first), rows[0], str(second), rows[1], args.seed)
    print_report(report, [comparison_table(report)], args.json)


def _evaluate(args: argparse.Namespace) -> None:
    from hf_qualcode.cli.evaluating.models import find_searcher
    from hf_qualcode.cli.progress import ProgressLine
    from hf_qualcode.evaluation.report import ranking_table, retrieval_report
    from hf_qualcode.evaluation.retrieval import evaluate_retrieval, evaluate_run, random_baseline
    from hf_qualcode.evaluation.score_files import write_rows
    from hf_qualcode.evaluation.trec import read_run, write_run

    data = _load_data(args.data, args.split)
    # Every name and file is looked at before the first, long, search begins.
    model = str(args.run_file) if args.run_file else args.model
    names = [model, *args.baseline]
    check_names(names, reserved=("random",))
    runs = {n: read_run(n) for n in names if (n == model and args.run_file) or (n != model and Path(n).is_file())}
    builders = {name: find_searcher(name) for name in names if name not in runs}
    check_targets(args.save_run, args.save_scores)

    results = {}
    with ProgressLine() as progress:
        for name in names:
            if name in runs:
                results[name] = evaluate_run(data, runs[name])
            else:
                searcher = builders[name](data.corpus_ids, data.corpus_texts, progress=progress)
                results[name] = evaluate_retrieval(data, searcher)
    for name, result in results.items():
        if result.empty:
            warn(name, f"{result.empty} queries have no answer; they count as not found")
        if result.cut_ties:
            warn(name, f"{result.cut_ties} lists end among equal scores; what was cut off counts as not found")
    result = results.pop(model)
    if args.save_run:
        write_run(args.save_run, result.run, tag=model)
    if args.save_scores:
        write_rows(args.save_scores, result.rows())
    config = {"split": data.split, "seed": args.seed}
    report = retrieval_report(
        args.data, config, model, result, {**results, "random": random_baseline(data)}, args.seed
    )
    print_report(report, [ranking_table(report)], args.json)


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
