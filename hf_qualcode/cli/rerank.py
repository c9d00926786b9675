"""`hf-qualcode rerank`: JSON lines of a query and codes in, the same lines with scores and order out."""

import argparse
import sys

from hf_qualcode.cli.qualities import BUNDLED, add_quality_argument, load_reranker, quality_of, said_once


def add_parser(subparsers) -> None:
    """Add the command's arguments."""
    parser = subparsers.add_parser(
        "rerank",
        help="order given codes by relevance and quality",
        description="Read JSON lines from stdin, each with a query, codes (a list of texts) and, if wanted, its own "
        "quality (a list, or text with commas) or instruction; write each with scores (log-odds, one a code) and "
        "order (0-based, best first). A line that cannot be used gives an object with error and line instead, and "
        "exit code 1 at the end.",
        epilog="example: hf-qualcode rerank --quality speed < rows.jsonl",
    )
    add_quality_argument(parser, "asked of every line that does not say: speed, memory, maintainability, or several")
    parser.add_argument("--model", default=BUNDLED, metavar="NAME", help="bundled (default), or DIR or ORG/NAME")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    from hf_qualcode.cli.progress import ProgressLine
    from hf_qualcode.cli.reranking.lines import line_windows
    from hf_qualcode.cli.reranking.rows import RowReranker
    from hf_qualcode.types import QualcodeError, UsageError

    quality = quality_of(args)
    if sys.stdin is None:
        raise UsageError("stdin is closed: give JSON lines with query and codes on it")
    if sys.stdin.isatty():
        sys.stderr.write('hf-qualcode: waiting for JSON lines {"query": ..., "codes": [...]}; end with Ctrl-D\n')
    # Before anything is read: a model that is not there should not cost whoever writes to the pipe their wait.
    reranker = load_reranker(args.model)
    with ProgressLine() as progress, said_once():
        rows = RowReranker(reranker, quality, progress)
        for window in line_windows(sys.stdin.fileno()):
            for answers in rows.answer(window):
                sys.stdout.writelines(f"{answer}\n" for answer in answers)
                sys.stdout.flush()  # whoever waits for the answer before writing the next line gets it
    if not rows.num_bad:
        return 0
    raise QualcodeError(f"{rows.num_bad} of {rows.num_rows} lines could not be used: see error and line on stdout")
