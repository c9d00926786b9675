"""`hf-qualcode index`: make an index of folders, or bring one up to date."""

import argparse
import json
import sys

from hf_qualcode.cli.output import named_path, print_table, printable_line


def add_parser(subparsers) -> None:
    """Add the command's arguments."""
    parser = subparsers.add_parser(
        "index",
        help="make an index of folders, or bring one up to date",
        description="Index PATHs into DIR; run again for what changed. Without PATH, DIR's own folders.",
    )
    parser.add_argument("paths", nargs="*", metavar="PATH", help="folders and files; none: those DIR was made from")
    parser.add_argument("--out", required=True, metavar="DIR", type=named_path, help="the index's folder")
    parser.add_argument(
        "--encoder",
        metavar="auto|none|static|minilm|ID",
        help="whose vectors to keep: none (words only), static (finds candidates), minilm, a Hub id or a folder; "
        "auto (default): static where the packaged MiniLM is installed, which then ranks on demand, else none",
    )
    parser.add_argument(
        "--exclude", action="append", metavar="GLOB", help="leave these out (as in .gitignore); repeatable"
    )
    parser.add_argument("--num-proc", type=int, default=1, metavar="N", help="processes that read files (default 1)")
    parser.add_argument("--json", action="store_true", help="print the report as one JSON object")
    parser.set_defaults(run=run, take_rest=take_rest)


def take_rest(args: argparse.Namespace, rest: list[str]) -> list[str]:
    """PATHs behind options: argparse settles them before it has seen all options."""
    paths = [argument for argument in rest if not argument.startswith("-")]
    args.paths += paths
    return [argument for argument in rest if argument not in paths]


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    from hf_qualcode.cli.progress import ProgressLine
    from hf_qualcode.retrieve.index import CodeIndex
    from hf_qualcode.types import UsageError

    if args.num_proc < 1:
        raise UsageError(f"--num-proc {args.num_proc}: at least 1 is needed")
    with ProgressLine() as progress:
        if args.paths:
            index = CodeIndex.build(
                args.paths,
                args.out,
                args.encoder or "auto",
                exclude=args.exclude or (),
                num_proc=args.num_proc,
                progress=progress,
            )
        else:
            if args.exclude is not None:
                raise UsageError("--exclude belongs to the scope of an index: name its PATHs too")
            index = CodeIndex.load(args.out)
            index.update(encoder=args.encoder, num_proc=args.num_proc, progress=progress)
    summary = {
        "index": str(args.out),
        "roots": index.roots,
        "units": len(index),
        "files": index.report,
        "vector_sets": [info.to_dict() for info in index.vector_sets],
    }
    if args.json:
        sys.stdout.write(json.dumps(summary) + "\n")
    else:
        print_table(report_table(summary))
    return 0


def report_table(summary: dict):
    """The report as a table for people."""
    from hf_qualcode.evaluation.report import Table

    files = summary["files"]
    languages = ", ".join(f"{name} {count:,}" for name, count in files["languages"].items())
    rows = [
        ["files", "", "for example"],
        [f"{files['seen']:,}", "seen", ""],
        [f"{files['indexed']:,}", "indexed", languages],
    ]
    for reason, entry in files["skipped"].items():
        rows.append([f"{entry['count']:,}", reason, printable_line(entry["examples"][0])])
    sets = [f"{info['encoder']} ({info['covered']:,} of {info['of']:,} units)" for info in summary["vector_sets"]]
    title = f"{summary['units']:,} units in {summary['index']}"
    return Table(title, rows, f"vectors: {', '.join(sets) or 'none (words only)'}")
