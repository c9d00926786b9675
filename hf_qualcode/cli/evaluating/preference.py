"""`evaluate preference`: which of two programs does a model prefer when it is told what matters?"""

import argparse
import sys
from pathlib import Path

from hf_qualcode.cli.evaluating.common import (
    add_common_arguments,
    check_names,
    check_seed,
    check_targets,
    print_report,
    refuse_with_compare,
)
from hf_qualcode.cli.qualities import said_once


def add_task(tasks) -> None:
    """Add the task's arguments."""
    parser = tasks.add_parser(
        "preference",
        help="whether a model prefers the faster, leaner or more maintainable of two programs",
        description="Score both programs of every pair; report QPA (on MC-QualCode MCA: strict, a tie is a miss) and "
        "half credit with 95 % intervals that draw whole problems. Trivial scorers and a scorer on static features "
        "stand beside every model, as do slices, changed inputs and the noise of the labels (--no-controls leaves "
        "them out).",
    )
    parser.add_argument(
        "--data", metavar="DIR|ORG/NAME", help="the test set: a folder of `dataset build`, qualcode:DIR, or a Hub id"
    )
    parser.add_argument(
        "--config", metavar="C", help="configuration of the data set, for example all-pairs (default: the paper's)"
    )
    parser.add_argument("--split", default="test", help="split of the data set (default test)")
    model = parser.add_mutually_exclusive_group()
    model.add_argument("--model", metavar="NAME", help="bundled, bm25, minilm, another baseline, or DIR or ORG/NAME")
    model.add_argument(
        "--scores", metavar="FILE", type=Path, help="evaluate these instead: JSON lines id, positive_score, "
        "negative_score",
    )  # fmt: skip
    model.add_argument(
        "--compare", nargs=2, metavar=("A", "B"), type=Path, help="compare two --save-scores files, pair by pair"
    )
    parser.add_argument(
        "--cases", type=int, default=0, metavar="N", help="with --compare: list N pairs that B gets right and A wrong"
    )
    parser.add_argument(
        "--baseline",
        action="append",
        default=[],
        metavar="M_OR_FILE",
        help="a model, or a file of scores, to set beside; repeatable",
    )
    parser.add_argument(
        "--folds", type=int, default=5, metavar="N", help="of cross-validation by problem, for what is trained (5)"
    )
    parser.add_argument("--no-controls", action="store_true", help="only the model and the baselines that were named")
    add_common_arguments(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the task."""
    from hf_qualcode.types import UsageError

    check_seed(args)
    if args.cases < 0 or (args.cases and not args.compare):
        raise UsageError(f"--cases {args.cases}: needs a number above 0 and --compare A B")
    if args.compare:
        _compare(args)
        return 0
    if not args.data:
        raise UsageError("--data is missing: a folder of `dataset build`, qualcode:DIR, or a Hub id")
    if not args.model and not args.scores:
        raise UsageError("name what to evaluate: --model NAME or --scores FILE")
    if args.folds < 2:
        raise UsageError(f"--folds {args.folds}: 2 or more are needed")
    _evaluate(args)
    return 0


def _evaluate(args: argparse.Namespace) -> None:
    from hf_qualcode.baselines.controls import standard_perturbations, standard_slices, trivial_baselines
    from hf_qualcode.benchmark.loading import load_pairs
    from hf_qualcode.cli.evaluating.models import find_scorer
    from hf_qualcode.cli.progress import ProgressLine
    from hf_qualcode.evaluation.preference import evaluate_preference
    from hf_qualcode.evaluation.preference_report import preference_report, preference_tables
    from hf_qualcode.evaluation.protocols import NamedScorer
    from hf_qualcode.evaluation.score_files import read_pair_scores, write_rows

    # Every name and file is looked at before the first long work begins.
    model = str(args.scores) if args.scores else args.model
    check_names([model, *args.baseline])
    check_targets(args.save_scores)
    data = load_pairs(args.data, args.config, args.split)
    # Controls ask about the same programs again: that they are too long is said of the first time.
    with ProgressLine() as progress, said_once():

        def system(name: str):
            if Path(name).is_file():
                return read_pair_scores(Path(name), data.pairs, args.data)
            return find_scorer(name, progress)

        scorer = read_pair_scores(args.scores, data.pairs, args.data) if args.scores else find_scorer(model, progress)
        baselines = [NamedScorer(name, system(name)) for name in args.baseline]
        controls = []
        if not args.no_controls:
            present = {model, *args.baseline}
            baselines += [each for each in trivial_baselines() if each.name not in present]
            controls = [*standard_slices(), *standard_perturbations()]
        result = evaluate_preference(
            data.pairs,
            scorer,
            name=model,
            labels=None if args.no_controls else data.labels,
            controls=controls,
            baselines=baselines,
            folds=args.folds,
            seed=args.seed,
            progress=progress,
        )
    if args.save_scores:
        write_rows(args.save_scores, result.rows())
    config = {
        "config": "+".join(data.configs), "split": data.split, "seed": args.seed, "folds": args.folds,
        **data.label_sources(),
    }  # fmt: skip
    report = preference_report(result, source=args.data, config=config, metric=data.metric, seed=args.seed)
    print_report(report, preference_tables(report), args.json)


def _compare(args: argparse.Namespace) -> None:
    from hf_qualcode.cli.output import printable
    from hf_qualcode.evaluation.comparison import cases_text, compare_preferences, comparison_tables
    from hf_qualcode.evaluation.score_files import read_pair_rows
    from hf_qualcode.types import UsageError

    refuse_with_compare(args, "baseline", "save_scores", "no_controls")
    if args.data and not args.cases:
        raise UsageError("--compare reads two result files: --data shows the code of --cases N, and has no other part")
    first, second = args.compare
    rows = [read_pair_rows(path) for path in args.compare]
    pairs = ()
    if args.data:
        from hf_qualcode.benchmark.loading import load_pairs

        pairs = load_pairs(args.data, args.config, args.split).pairs
    report = compare_preferences(
        str(first), rows[0], str(second), rows[1], num_cases=args.cases, pairs=pairs, seed=args.seed
    )
    print_report(report, comparison_tables(report), args.json)
    if args.cases and not args.json:
        sys.stdout.write("\n" + printable(cases_text(report)))
