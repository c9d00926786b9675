"""`hf-qualcode dataset`: build QualCode and MC-QualCode from Project_CodeNet, and publish them."""

import argparse
import json
import os
import sys
from pathlib import Path

from hf_qualcode.cli.output import named_path, print_table, printable_line


_NO_ENGINE = "none"


def add_parser(subparsers) -> None:
    """Add the command's arguments."""
    parser = subparsers.add_parser("dataset", help="build the benchmarks from Project_CodeNet")
    tasks = parser.add_subparsers(dest="task", metavar="TASK", required=True)
    build = tasks.add_parser(
        "build",
        help="build a data set",
        description="Build a data set from a Project_CodeNet folder: Parquet files, a card and report.json in DIR, "
        "for datasets.load_dataset. The same command goes on where an interrupted one stopped, and replaces a "
        "finished build. The same seed gives the same bytes.",
    )
    build.add_argument("name", choices=("qualcode", "mc-qualcode"), help="which data set")
    build.add_argument("codenet", metavar="CODENET", type=named_path, help="folder with metadata/, data/ and more")
    build.add_argument("--out", required=True, metavar="DIR", type=named_path, help="the folder to make")
    build.add_argument(
        "--smells",
        metavar="ENGINE",
        help="what counts code smells; no default, as the labels depend on it (leave it out for a list); "
        "none: no maintainability labels",
    )
    build.add_argument(
        "--labels",
        choices=("judge", "remeasured"),
        default="judge",
        help="the judge's times and memory (default, the paper's), or programs run again in the sandbox",
    )
    build.add_argument("--inputs", metavar="DIR", type=named_path, help="pNNNNN/*.in, with --labels remeasured")
    build.add_argument("--seed", type=int, default=42, metavar="N", help="of every draw (default 42)")
    build.add_argument("--keep-zero", action="store_true", help="take times and memory of 0 for measurements")
    build.add_argument("--num-proc", type=int, default=os.cpu_count() or 1, metavar="N", help="processes that read")
    build.add_argument("--push", metavar="ORG/NAME", help="publish the folder on the Hugging Face Hub afterwards")
    build.add_argument("--json", action="store_true", help="print the report as one JSON object")
    build.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    from contextlib import nullcontext

    from hf_qualcode.benchmark.building import build
    from hf_qualcode.benchmark.publishing import publish
    from hf_qualcode.cli.progress import ProgressLine
    from hf_qualcode.hub import check_repository
    from hf_qualcode.types import UsageError

    if args.num_proc < 1:
        raise UsageError(f"--num-proc {args.num_proc}: at least 1 is needed")
    if args.seed < 0:
        raise UsageError(f"--seed {args.seed}: 0 or more is needed")
    if args.inputs and args.labels != "remeasured":
        raise UsageError("--inputs has no part in --labels judge; add --labels remeasured")
    engine = _engine(args.smells)
    if args.push:
        check_repository(args.push, asked_by="--push")
    with engine or nullcontext(), ProgressLine() as progress:
        report = build(
            args.name,
            args.codenet,
            args.out,
            smells=engine,
            labels=args.labels,
            inputs=args.inputs,
            seed=args.seed,
            keep_zero=args.keep_zero,
            num_proc=args.num_proc,
            progress=progress,
        )
    for note in report["notes"]:
        sys.stderr.write(f"hf-qualcode: {printable_line(note)}\n")
    if args.json:
        sys.stdout.write(json.dumps(report) + "\n")
    else:
        print_table(report_table(args.out, report))
    if args.push:
        sys.stderr.write(f"hf-qualcode: published as {printable_line(publish(args.out, args.push))}\n")
    return 0


def report_table(out: Path, report: dict):
    """The report as a table for people."""
    from hf_qualcode.evaluation.report import Table

    collecting = report["collecting"]
    rows = [["configuration", "rows", "of", "left out because"]]
    for config, num_rows in report["configs"].items():
        pairs, triplets = report.get("pairs", {}).get(config), report.get("triplets", {}).get(config)
        reasons = ", ".join(f"{reason} {count:,}" for reason, count in (pairs or {}).get(_WITHOUT, {}).items())
        of = f"{pairs['problems']:,} problems" if pairs else f"{triplets['wanted']:,} wanted" if triplets else ""
        rows.append([config, f"{num_rows:,}", of, reasons])
    rows += [["", "", "", ""], ["submissions", f"{collecting['num_rows']:,}", "", "read"]]
    rows += [[f"  {name}", f"{count:,}", "", ""] for name, count in collecting["submissions"].items() if count]
    engine = report["smells"]
    smells = f"{engine['engine']} {engine['version']}{' (a proxy)' * engine['is_proxy']}" if engine else _NO_ENGINE
    note = f"labels: {report['labels']['name']}; smells: {smells}"
    return Table(f"{report['data_set']} in {out}", rows, note)


_WITHOUT = "problems_without_pair"


def _engine(name: str | None):
    """The smell engine of this name, `None` for `none`."""
    from hf_qualcode.quality.smells import engine_names, load_engine
    from hf_qualcode.types import UsageError

    if name == _NO_ENGINE:
        return None
    if name in engine_names():
        return load_engine(name)
    what = "--smells is missing: labels depend on the engine" if name is None else f"unknown smell engine {name!r}"
    raise UsageError(f"{what}; choose {_engine_list()}")


def _engine_list() -> str:
    """All engines and what they need."""
    from importlib import import_module

    from hf_qualcode.quality import smells

    needs = {name: import_module(f"{smells.__name__}.{name}").NEEDS for name in smells.engine_names()}
    listed = "; ".join(f"{name} (needs {need})" for name, need in needs.items())
    return f"one of: {listed}; {_NO_ENGINE} (no maintainability labels)"
