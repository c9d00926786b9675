"""What the tasks share whose result is ranked lists: reranking and retrieval."""

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from hf_qualcode.cli.evaluating.common import (
    add_common_arguments,
    check_names,
    check_seed,
    check_targets,
    print_report,
    refuse_with_compare,
)


def add_ranking_arguments(parser: argparse.ArgumentParser, *, models: str, unit: str) -> None:
    """Arguments of a task on ranked lists.

    Args:
        parser (`argparse.ArgumentParser`): Of the task.
        models (`str`): What `--model` may be, for its help.
        unit (`str`): What two results are compared by: "list" or "query".
    """
    model = parser.add_mutually_exclusive_group()
    model.add_argument("--model", metavar="NAME", help=models)
    model.add_argument("--run", dest="run_file", metavar="FILE", type=Path, help="evaluate this TREC run instead")
    model.add_argument(
        "--compare", nargs=2, metavar=("A", "B"), type=Path, help=f"compare two --save-scores files, {unit} by {unit}"
    )
    parser.add_argument(
        "--baseline", action="append", default=[], metavar="M_OR_RUN", help="a model or run to set beside; repeatable"
    )
    parser.add_argument("--save-run", metavar="FILE", type=Path, help="write the ranked lists as a TREC run")
    add_common_arguments(parser)


def run_ranking(args: argparse.Namespace, evaluate: Callable[[argparse.Namespace], None], data: str) -> int:
    """Compare two results, or evaluate.

    Args:
        args (`argparse.Namespace`): Of `add_ranking_arguments`, and `data`.
        evaluate (`Callable`): Takes `args`, of which `data` and a model or run are given.
        data (`str`): What `--data` may be, for the message where it is missing.

    Raises:
        `UsageError`: When something is missing.
    """
    from hf_qualcode.types import UsageError

    check_seed(args)
    if args.compare:
        _compare(args)
        return 0
    if not args.data:
        raise UsageError(f"--data is missing: {data}")
    if not args.model and not args.run_file:
        raise UsageError("name what to evaluate: --model NAME or --run FILE")
    evaluate(args)
    return 0


def named_systems(args: argparse.Namespace, addition: str = "") -> tuple[str, list[str], dict[str, Mapping]]:
    """Looks at every name and file before the first long work begins.

    Args:
        args (`argparse.Namespace`): Of `add_ranking_arguments`.
        addition (`str`, *optional*): Put after the model's name: what is done to it besides.

    Returns:
        The model's name; all names, the model's first; and name -> run of those that are TREC runs.

    Raises:
        `UsageError`: On a name that is there twice, or a file that cannot be written.
        `QualcodeError`: On a damaged run.
    """
    from hf_qualcode.evaluation.trec import read_run

    model = (str(args.run_file) if args.run_file else args.model) + addition
    names = [model, *args.baseline]
    check_names(names, reserved=("random",))
    check_targets(args.save_run, args.save_scores)
    runs = {n: read_run(n) for n in names if (n == model and args.run_file) or (n != model and Path(n).is_file())}
    return model, names, runs


def save(args: argparse.Namespace, model: str, result) -> None:
    """Writes what was asked for of the model's result."""
    from hf_qualcode.evaluation.score_files import write_rows
    from hf_qualcode.evaluation.trec import write_run

    if args.save_run:
        write_run(args.save_run, result.run, tag=model)
    if args.save_scores:
        write_rows(args.save_scores, result.rows())


def _compare(args: argparse.Namespace) -> None:
    from hf_qualcode.evaluation.report import comparison_report, comparison_table
    from hf_qualcode.evaluation.score_files import read_metric_rows

    refuse_with_compare(args, "data", "baseline", "save_run", "save_scores")
    first, second = args.compare
    rows: Sequence = [read_metric_rows(path) for path in args.compare]
    report = comparison_report(str(first), rows[0], str(second), rows[1], args.seed)
    print_report(report, [comparison_table(report)], args.json)
