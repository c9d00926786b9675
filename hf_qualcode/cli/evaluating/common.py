"""What the tasks of `evaluate` share: arguments, checks before long work, and the printing of reports."""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path


def add_common_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments that every task has."""
    parser.add_argument("--save-scores", metavar="FILE", type=Path, help="write one JSON line of results an example")
    parser.add_argument("--seed", type=int, default=42, metavar="N", help="of intervals and tests (default 42)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def check_seed(args: argparse.Namespace) -> None:
    """A seed is 0 or more."""
    from hf_qualcode.types import UsageError

    if args.seed < 0:
        raise UsageError(f"--seed {args.seed}: 0 or more is needed")


def refuse_with_compare(args: argparse.Namespace, *names: str) -> None:
    """`--compare` reads two files; what another mode needs has no part in it."""
    from hf_qualcode.types import UsageError

    unused = [name for name in names if getattr(args, name)]
    if unused:
        raise UsageError(f"--compare reads two result files: --{unused[0].replace('_', '-')} has no part in it")


def check_names(names: Sequence[str], reserved: Sequence[str] = ()) -> None:
    """The model and the baselines that were named are distinct."""
    from hf_qualcode.types import UsageError

    repeated = [name for i, name in enumerate(names) if name in names[:i] or name in reserved]
    if repeated:
        always = f" ({', '.join(reserved)} always is)" if repeated[0] in reserved else ""
        raise UsageError(f"--baseline {repeated[0]} is there already{always}")


def check_targets(*targets: Path | None) -> None:
    """Files to be written have a folder: known before hours of work, not after."""
    from hf_qualcode.types import UsageError

    for target in targets:
        if target is not None and (target.is_dir() or not target.parent.is_dir()):
            where = "is a folder" if target.is_dir() else f"there is no folder {target.parent} to write to"
            raise UsageError(f"{target}: {where}")


def warn(name: str, message: str) -> None:
    """One line on stderr."""
    from hf_qualcode.cli.output import printable_line

    sys.stderr.write(f"hf-qualcode: {printable_line(name)}: {message}\n")


def print_report(report: dict, tables: Sequence, as_json: bool) -> None:
    """The report as one JSON line, or its tables."""
    from hf_qualcode.cli.output import print_table

    if as_json:
        sys.stdout.write(json.dumps(report) + "\n")
        return
    for number, table in enumerate(tables):
        if number:
            sys.stdout.write("\n")
        print_table(table)
