"""`hf-qualcode measure`: run programs on inputs, shut in, and say which is right, faster and smaller."""

import argparse
import json
import sys
from pathlib import Path

from hf_qualcode.cli.output import named_path, print_table, printable_line


# The interval takes time that grows with the cube of the rounds; more of them say no more.
_MOST_ROUNDS = 100
# Both are read into memory, a program for every run.
_MOST_BYTES = {"program": 64 << 20, "input": 1 << 30}

def add_parser(subparsers) -> None:
    """Add the command's arguments."""
    parser = subparsers.add_parser(
        "measure",
        help="run Python programs on inputs: correctness, CPU time, peak memory",
        description="Run each FILE (a Python program) on each input in a sandbox, in interleaved rounds. Times and "
        "memory are without those of an empty program; the verdict is on CPU time, against the first FILE.",
    )
    parser.add_argument("files", nargs="+", metavar="FILE", type=named_path, help="a Python program")
    parser.add_argument(
        "--input", nargs="+", required=True, metavar="FILE", type=named_path, help="what a program reads on stdin"
    )
    parser.add_argument(
        "--expect", nargs="+", metavar="FILE", type=named_path, help="the right output of each input, in their order"
    )
    parser.add_argument(
        "--tolerance", type=float, metavar="X", help="numbers may differ from --expect by this (absolute or relative)"
    )
    parser.add_argument(
        "--rounds", type=int, default=7, metavar="N", help="runs of each (default 7; a verdict needs 6)"
    )
    parser.add_argument("--time-limit", type=float, default=10, metavar="S", help="CPU seconds of a run (default 10)")
    parser.add_argument("--memory-limit", type=int, default=1024, metavar="MB", help="MiB of a run (default 1024)")
    parser.add_argument(
        "--instructions", action="store_true", help="count instructions by Valgrind too, and let them decide"
    )
    parser.add_argument("--smells", metavar="ENGINE", help="count maintainability smells too: sonar or ruff (a proxy)")
    parser.add_argument(
        "--unsafe", action="store_true", help="run without isolation where none works: for programs that you trust"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object a line, per file and input")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    from hf_qualcode.cli.progress import ProgressLine
    from hf_qualcode.quality.measuring import calibrate, measure
    from hf_qualcode.quality.sandbox import Limits, Sandbox

    _check(args)
    limits = Limits(cpu_seconds=args.time_limit, memory_bytes=args.memory_limit << 20)
    inputs = [path.read_bytes() for path in args.input]
    expected = [path.read_bytes() for path in args.expect] if args.expect else [None] * len(inputs)
    sandbox = Sandbox.open(unsafe=args.unsafe)
    if sandbox.isolation == "unsafe":
        sys.stderr.write("hf-qualcode: these programs run without isolation, with all that you may do\n")
    rows = []
    with ProgressLine() as progress:
        smells = _smells(args, progress)
        options = {"rounds": args.rounds, "limits": limits, "count_instructions": args.instructions}
        startup = calibrate(sandbox, **options, progress=progress)
        for path, stdin, right in zip(args.input, inputs, expected, strict=True):
            stage = f"measuring on {printable_line(path.name)}"
            measured = measure(sandbox, args.files, stdin, **options, progress=progress, stage=stage)
            for file, one, count in zip(args.files, measured, smells, strict=True):
                rows.append(
                    _row(args, file, path, one, measured[0], startup, right, count, sandbox.isolation, len(rows))
                )
    if args.json:
        for row in rows:
            sys.stdout.write(json.dumps(row) + "\n")
    else:
        print_table(_table(rows, startup, sandbox.isolation, args))
    return 0


def _check(args: argparse.Namespace) -> None:
    from hf_qualcode.types import UsageError

    if args.expect and len(args.expect) != len(args.input):
        raise UsageError(f"--expect names {len(args.expect)} files, --input {len(args.input)}: one for each is needed")
    if args.tolerance is not None and not (args.expect and args.tolerance >= 0):
        raise UsageError("--tolerance: a number from 0, together with --expect, is needed")
    for name in ("rounds", "time_limit", "memory_limit"):
        value = getattr(args, name)
        if not 0 < value < 1e9:
            raise UsageError(f"--{name.replace('_', '-')} {value}: a positive number is needed")
    if args.rounds > _MOST_ROUNDS:
        raise UsageError(f"--rounds {args.rounds}: at most {_MOST_ROUNDS} are taken")
    for kind, paths in (("program", args.files), ("input", (*args.input, *(args.expect or ())))):
        for path in paths:
            if not path.is_file():
                raise UsageError(f"{path} is no file" if path.exists() else f"{path}: there is no such file")
            if (size := path.stat().st_size) > _MOST_BYTES[kind]:
                raise UsageError(
                    f"{path} has {size:,} bytes; as {'a program' if kind == 'program' else 'an input or output'} at "
                    f"most {_MOST_BYTES[kind]:,} are read"
                )


def _smells(args: argparse.Namespace, progress) -> list[int | None]:
    """Number of smells of each file; `None` where it was not asked for, or could not be told."""
    if args.smells is None:
        return [None] * len(args.files)
    from hf_qualcode.quality.smells import load_engine

    texts = [path.read_bytes().decode("utf-8", "replace") for path in args.files]
    with load_engine(args.smells) as engine:
        if engine.is_proxy:
            sys.stderr.write(f"hf-qualcode: smells are those of {engine.name}, which stands in for Sonar\n")
        found = engine.analyse(texts, progress)
    return [None if rules is None else len(rules) for rules in found]


def _row(args, file: Path, path: Path, one, first, startup, right, smells, isolation: str, number: int) -> dict:
    from hf_qualcode.quality.measuring import compare_instructions, compare_speed, outputs_equal

    verdict = interval = None
    if number % len(args.files) and one.ok and first.ok:
        compare = compare_instructions if args.instructions else compare_speed
        comparison = compare(one, first, startup, startup)
        verdict, interval = comparison.verdict, comparison.interval
    correct = None
    if right is not None:
        correct = one.ok and one.same_output and outputs_equal(one.stdout, right, tolerance=args.tolerance)
    return {
        "file": str(file),
        "input": str(path),
        "cpu_seconds": round(one.net_cpu_seconds(startup), 6),
        "peak_memory_bytes": one.net_memory_bytes(startup),
        "correct": correct,
        "smells": smells,
        "verdict": verdict,
        "interval": None if interval is None else [round(bound, 6) for bound in interval],
        "isolation": isolation,
        "outcome": one.outcome,
        "exit_code": one.exit_code,
        "instructions": one.net_instructions(startup),
        "rounds": len(one.cpu_seconds),
    }


def _table(rows: list[dict], startup, isolation: str, args: argparse.Namespace):
    from hf_qualcode.evaluation.report import Table

    header = ["file", "input", "outcome", "correct", "CPU ms", "MiB"]
    header += ["instructions"] * args.instructions + ["smells"] * (args.smells is not None)
    lines = [[*header, "verdict", "ratio to the first"]]
    shown = {True: "yes", False: "no", None: "-"}
    for row in rows:
        line = [row["file"], row["input"], row["outcome"], shown[row["correct"]]]
        line += [f"{1000 * row['cpu_seconds']:,.1f}", f"{row['peak_memory_bytes'] / (1 << 20):,.1f}"]
        if args.instructions:
            line.append("-" if row["instructions"] is None else f"{row['instructions']:,}")
        if args.smells is not None:
            line.append("-" if row["smells"] is None else str(row["smells"]))
        interval = row["interval"]
        line += [row["verdict"] or "-", "-" if interval is None else f"{interval[0]:.3g} to {interval[1]:.3g}"]
        lines.append([printable_line(cell) for cell in line])
    note = (
        f"isolation: {isolation}; least of {args.rounds} rounds, without an empty program's "
        f"{1000 * startup.cpu_seconds:.1f} ms and {startup.peak_memory_bytes / (1 << 20):.1f} MiB; "
        f"95 % interval of the {'instructions' if args.instructions else 'CPU time'}"
    )
    programs = f"{len(args.files)} program{'s' * (len(args.files) != 1)}"
    return Table(f"{programs} on {len(args.input)} input{'s' * (len(args.input) != 1)}", lines, note)
