"""`hf-qualcode register-metrics`: make `evaluate.load("qpa")` work by bare name."""

import argparse
import sys


def add_parser(subparsers) -> None:
    """Add the command's arguments."""
    parser = subparsers.add_parser(
        "register-metrics",
        help='make evaluate.load("qpa") and evaluate.load("mca") work from any folder, offline',
        description="Put the metrics qpa and mca into the cache of the `evaluate` library, so that "
        'evaluate.load("qpa"), evaluate.load("mca") and evaluate.combine(["qpa", "mca"]) find them in any later '
        "process. Can be run again at any time.",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    from hf_qualcode.cli.output import printable_line
    from hf_qualcode.registration import register_metrics

    for name, path in register_metrics().items():
        sys.stdout.write(f"{name}  {printable_line(str(path))}\n")
    return 0
