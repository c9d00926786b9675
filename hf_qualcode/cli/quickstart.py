"""`hf-qualcode quickstart`: index real code and search it, to see what the package does on this machine."""

import argparse
import sys
import sysconfig
import time
from pathlib import Path


# What a user of the standard library might want to find.
QUERIES = (
    "parse an ISO 8601 date string",
    "merge several sorted iterables",
    "compare two files byte by byte",
    "retry a connection when the socket times out",
    "quote a string so that a shell sees one argument",
)
# Folders of the standard library that hold its tests, and what pip puts beside it.
NOT_THE_LIBRARY = ("test/", "tests/", "idle_test/", "site-packages/", "dist-packages/", "__phello__/")
MINILM_UNITS = 3000
_TOP_K = 3


def add_parser(subparsers) -> None:
    """Add the command's arguments."""
    parser = subparsers.add_parser(
        "quickstart",
        help="index the standard library (or PATHs) and run five queries",
        description="Index real code, offline, and run five queries on it.",
    )
    parser.add_argument("paths", nargs="*", metavar="PATH", type=Path, help="folders to index instead")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    from hf_qualcode.cli.output import print_hits
    from hf_qualcode.cli.progress import ProgressLine
    from hf_qualcode.cli.search import cached_index
    from hf_qualcode.hub import packaged_minilm
    from hf_qualcode.retrieve.index import CodeIndex
    from hf_qualcode.retrieve.search import CodeSearcher

    paths = args.paths or [Path(sysconfig.get_path("stdlib"))]
    directory = cached_index(*paths, kind="quickstart")
    out = sys.stdout
    started = time.monotonic()
    with ProgressLine() as progress:
        index = CodeIndex.build(
            paths, directory, "auto", exclude=() if args.paths else NOT_THE_LIBRARY, progress=progress
        )
        if packaged_minilm() is not None:
            index.add_vectors("minilm", limit=MINILM_UNITS, progress=progress)
    out.write(
        f"indexed {len(index):,} units of {index.report['indexed']:,} files "
        f"in {time.monotonic() - started:.1f} s\n"
    )
    searcher = CodeSearcher(index)
    for query in QUERIES:
        with ProgressLine() as progress:
            begun = time.monotonic()
            hits = searcher.search(
                query, top_k=_TOP_K, progress=lambda done, total: progress("encoding candidates", done, total)
            )
        out.write(f"\n=== {query}  ({time.monotonic() - begun:.2f} s)\n\n")
        out.flush()
        print_hits(hits)
    where = " ".join(f"'{path}'" for path in args.paths) or "PATH"
    out.write(f"Now search your own code:  hf-qualcode search 'what it should do' {where}\n")
    return 0
