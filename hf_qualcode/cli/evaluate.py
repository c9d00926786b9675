"""`hf-qualcode evaluate`: measure a model, or a run of another system, on a test set."""

import argparse
import json
import sys
from pathlib import Path


def add_parser(subparsers) -> None:
    """Add the command's arguments."""
    parser = subparsers.add_parser("evaluate", help="measure a model on a test set")
    tasks = parser.add_subparsers(dest="task", metavar="TASK", required=True)
    retrieval = tasks.add_parser(
        "retrieval",
        help="how far up a search finds the right code",
        description="Search every query of a test set; report Hit@1/3/5, MRR@20 and recall@100 with 95 % intervals. "
        "Equal scores count by expectation, so the order of a list decides nothing that its scores do not.",
    )
    retrieval.add_argument("--data", metavar="cosqa:DIR", help="the test set; cosqa:DIR is a folder of CoSQA's files")
    retrieval.add_argument("--split", default="dev", help="dev (default) or test")
    model = retrieval.add_mutually_exclusive_group()
    model.add_argument(
        "--model",
        metavar="NAME",
        help="bm25, static, minilm, hybrid, default (what `search` does), or an encoder's DIR or ORG/NAME",
    )
    model.add_argument("--run", dest="run_file", metavar="FILE", type=Path, help="evaluate this TREC run instead")
    model.add_argument(
        "--compare", nargs=2, metavar=("A", "B"), type=Path, help="compare two --save-scores files, query by query"
    )
    retrieval.add_argument(
        "--baseline", action="append", default=[], metavar="M_OR_RUN", help="a model or run to set beside; repeatable"
    )
    retrieval.add_argument("--save-run", metavar="FILE", type=Path, help="write the answers as a TREC run")
    retrieval.add_argument("--save-scores", metavar="FILE", type=Path, help="write one JSON line of results a query")
    retrieval.add_argument("--seed", type=int, default=42, metavar="N", help="of intervals and tests (default 42)")
    retrieval.add_argument("--json", action="store_true", help="print one JSON object")
    retrieval.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    from hf_qualcode.evaluation.report import comparison_report, comparison_table
    from hf_qualcode.types import UsageError

    if args.seed < 0:
        raise UsageError(f"--seed {args.seed}: 0 or more is needed")
    if args.compare:
        unused = [name for name in ("data", "baseline", "save_run", "save_scores") if getattr(args, name)]
        if unused:
            raise UsageError(f"--compare reads two result files: --{unused[0].replace('_', '-')} has no part in it")
        first, second = args.compare
        report = comparison_report(str(first), _read_scores(first), str(second), _read_scores(second), args.seed)
        _print(report, comparison_table, args.json)
        return 0
    if not args.data:
        raise UsageError("--data is missing: for example --data cosqa:DIR, a folder of CoSQA's published files")
    if not args.model and not args.run_file:
        raise UsageError("name what to evaluate: --model NAME or --run FILE")
    _evaluate(args)
    return 0


def _evaluate(args: argparse.Namespace) -> None:
    from hf_qualcode.cli.progress import ProgressLine
    from hf_qualcode.evaluation.report import retrieval_report, retrieval_table
    from hf_qualcode.evaluation.retrieval import evaluate_retrieval, evaluate_run, random_baseline
    from hf_qualcode.evaluation.trec import read_run, write_run
    from hf_qualcode.types import UsageError

    data = _load_data(args.data, args.split)
    # Every name and file is looked at before the first, long, search begins.
    model = str(args.run_file) if args.run_file else args.model
    names = [model, *args.baseline]
    repeated = [name for i, name in enumerate(names) if name in names[:i] or name == "random"]
    if repeated:
        raise UsageError(f"--baseline {repeated[0]} is there already (random always is)")
    runs = {n: read_run(n) for n in names if (n == model and args.run_file) or (n != model and Path(n).is_file())}
    builders = {name: _find_model(name) for name in names if name not in runs}

    for target in (args.save_run, args.save_scores):
        if target is not None and not target.parent.is_dir():
            raise UsageError(f"{target}: there is no folder {target.parent} to write to")

    results = {}
    with ProgressLine() as progress:
        for name in names:
            if name in runs:
                results[name] = evaluate_run(data, runs[name])
            else:
                searcher = builders[name](data.corpus_ids, data.corpus_texts, progress=progress)
                results[name] = evaluate_retrieval(data, searcher)
    for name, result in results.items():
        _warn(name, result)
    result = results.pop(model)
    if args.save_run:
        write_run(args.save_run, result.run, tag=model)
    if args.save_scores:
        args.save_scores.write_text("".join(json.dumps(row) + "\n" for row in result.rows()), encoding="utf-8")
    config = {"split": data.split, "seed": args.seed}
    baselines = {**results, "random": random_baseline(data)}
    _print(retrieval_report(args.data, config, model, result, baselines, args.seed), retrieval_table, args.json)


def _load_data(name: str, split: str):
    from hf_qualcode.corpus.cosqa import load_cosqa
    from hf_qualcode.types import UsageError

    kind, _, folder = name.partition(":")
    if kind != "cosqa" or not folder:
        raise UsageError(f"--data {name}: expected cosqa:DIR, a folder of CoSQA's published files")
    return load_cosqa(folder, split)


def _find_model(name: str):
    """The function `build(corpus_ids, corpus_texts, *, progress) -> Searcher` of a baseline's module or an encoder."""
    from functools import partial
    from importlib import import_module
    from pkgutil import iter_modules

    from hf_qualcode import baselines
    from hf_qualcode.types import UsageError

    modules = [module.name for module in iter_modules(baselines.__path__)]
    if name in modules:
        build = getattr(import_module(f"{baselines.__name__}.{name}"), "build", None)
        if build is not None:
            return build
    elif Path(name).is_dir() or name.count("/") == 1:
        from hf_qualcode.baselines.dense import encoder_searcher

        return partial(encoder_searcher, name)
    legal = [m for m in modules if hasattr(import_module(f"{baselines.__name__}.{m}"), "build")]
    raise UsageError(f"unknown model {name!r}: one of {', '.join(legal)}, an encoder's folder or Hub id, a run file")


def _read_scores(path: Path) -> list[dict]:
    """Rows of a `--save-scores` file."""
    from hf_qualcode.types import QualcodeError

    rows, seen = [], set()
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise QualcodeError(f"{path} cannot be read ({error})") from error
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            raise QualcodeError(f"{path}, line {number}: not JSON ({error})") from error
        if not isinstance(row, dict) or not isinstance(row.get("id"), str):
            raise QualcodeError(f'{path}, line {number}: expected {{"id": ..., "hit@1": ...}} of --save-scores')
        wrong = [name for name, value in row.items() if "@" in name and not _is_share(value)]
        if wrong:
            raise QualcodeError(f"{path}, line {number}: {wrong[0]} is {row[wrong[0]]!r}; expected a number in [0, 1]")
        if row["id"] in seen:
            raise QualcodeError(f"{path}, line {number}: id {row['id']} appears twice")
        seen.add(row["id"])
        rows.append(row)
    if not rows:
        raise QualcodeError(f"{path} holds no results")
    return rows


def _is_share(value) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def _warn(name: str, result) -> None:
    if result.empty:
        sys.stderr.write(f"hf-qualcode: {name}: {result.empty} queries have no answer; they count as not found\n")
    if result.cut_ties:
        cut = f"{result.cut_ties} lists end among equal scores; what was cut off counts as not found"
        sys.stderr.write(f"hf-qualcode: {name}: {cut}\n")


def _print(report: dict, as_table, as_json: bool) -> None:
    from hf_qualcode.cli.output import print_table

    if as_json:
        sys.stdout.write(json.dumps(report) + "\n")
    else:
        print_table(as_table(report))
