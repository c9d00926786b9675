"""`hf-qualcode search`: find code in a folder, or in an index of one."""

import argparse
import logging
import shutil
import sys
import unicodedata
from pathlib import Path

from hf_qualcode.cli.output import named_path


logger = logging.getLogger(__name__)


def add_parser(subparsers) -> None:
    """Add the command's arguments."""
    parser = subparsers.add_parser(
        "search",
        help="find code by what it does",
        description="Find code by what it does. A cached index of PATH (default: here) is made or refreshed first.",
    )
    parser.add_argument("query", metavar="QUERY", help="what the code should do, in words or in code")
    parser.add_argument("path", nargs="?", metavar="PATH", type=named_path, help="folder or file to search")
    parser.add_argument("--index", metavar="DIR", type=named_path, help="search this index as it is, not a PATH")
    parser.add_argument("--top-k", type=int, default=10, metavar="K", help="number of hits (default 10)")
    parser.add_argument(
        "--retriever",
        default="auto",
        choices=("auto", "bm25", "dense", "hybrid"),
        help="bm25: by words; dense: by meaning; hybrid: both; auto (default): hybrid where an encoder is present",
    )
    parser.add_argument("--language", metavar="L", help="only this language (python, javascript, typescript, ...)")
    parser.add_argument(
        "--include", action="append", default=[], metavar="GLOB", help="only these (as in .gitignore); repeatable"
    )
    parser.add_argument(
        "--exclude", action="append", default=[], metavar="GLOB", help="not these (as in .gitignore); repeatable"
    )
    parser.add_argument("--context", type=int, default=0, metavar="N", help="show N more lines around each hit")
    parser.add_argument("--no-refresh", action="store_true", help="search the cached index of PATH as it is")
    parser.add_argument("--json", action="store_true", help="print one JSON object a hit")
    parser.set_defaults(run=run, take_rest=take_rest)


def take_rest(args: argparse.Namespace, rest: list[str]) -> list[str]:
    """QUERY --options PATH: argparse settles PATH before it has seen the options."""
    if args.path is None and rest and not rest[0].startswith("-"):
        args.path = named_path(rest[0])
        rest = rest[1:]
    return rest


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    from hf_qualcode.cli.output import print_hits
    from hf_qualcode.cli.progress import ProgressLine
    from hf_qualcode.types import UsageError

    if args.index is not None and args.path is not None:
        raise UsageError("both PATH and --index are given: name one")
    if args.top_k < 1:
        raise UsageError(f"--top-k {args.top_k}: at least 1 is needed")
    if args.context < 0:
        raise UsageError(f"--context {args.context}: 0 or more lines")
    if not args.query.strip():
        raise UsageError("the query is empty: say what the code should do")
    with ProgressLine() as progress:
        hits = _search(args, progress)
    print_hits(hits, as_json=args.json, context=args.context)
    return 0


def _tell_empty(index, args: argparse.Namespace) -> None:
    """An index of nothing has no hits for any query, which no hit alone would not say."""
    if not len(index):
        seen = index.report["seen"]
        logger.warning(
            "nothing to search in %s: none of %d files and folders seen holds code in a language that is known",
            args.index or args.path or "this folder",
            seen,
        )


def _search(args: argparse.Namespace, progress) -> list:
    from hf_qualcode.retrieve.index import CodeIndex
    from hf_qualcode.retrieve.search import CodeSearcher

    options = {
        "top_k": args.top_k,
        "language": args.language and args.language.lower(),
        "include": args.include,
        "exclude": args.exclude,
    }

    def on_encoded(done: int, total: int) -> None:
        progress("encoding candidates", done, total)

    if args.index is not None:
        index, complete = CodeIndex.load(args.index), True
    else:
        index, complete = _open_path(args, progress)
    _tell_empty(index, args)
    searcher = CodeSearcher(index)
    mode = args.retriever
    if mode == "auto" and complete:
        mode = searcher.resolve_retriever(mode)
    if mode == "bm25":
        return searcher.search(args.query, retriever=mode, **options)
    # The progress line is closed first: it is drawn below the preview.
    with Preview(_on_terminal(args)) as preview, progress:
        preview.show(searcher, args.query, options)
        if not complete:
            index = CodeIndex.build([args.path or "."], index.directory, "auto", progress=progress)
            searcher = CodeSearcher(index)
        return searcher.search(args.query, retriever=mode, progress=on_encoded, **options)


def _open_path(args: argparse.Namespace, progress):
    """The cached index of PATH, made or refreshed, and whether its vectors are ready.

    They are left for later where there is a terminal to show hits by words on in the meantime.
    """
    from hf_qualcode.hub import MINILM_MISSING, packaged_minilm
    from hf_qualcode.retrieve.index import CodeIndex
    from hf_qualcode.retrieve.storage import MissingStoreError, StoreError
    from hf_qualcode.types import QualcodeError

    path = args.path or Path()
    directory = cached_index(path)
    if args.no_refresh:
        try:
            return CodeIndex.load(directory), True
        except MissingStoreError:
            raise QualcodeError(f"{path} has not been searched yet: leave out --no-refresh") from None
    if args.retriever in ("dense", "hybrid") and packaged_minilm() is None:
        raise QualcodeError(f"--retriever {args.retriever} needs an encoder: {MINILM_MISSING}")
    if args.retriever != "bm25" and packaged_minilm() is not None:
        if _on_terminal(args) and not (directory / "manifest.json").exists():
            return CodeIndex.build([path], directory, "none", progress=progress), False
        return CodeIndex.build([path], directory, "auto", progress=progress), True
    # No vectors are wanted, or none can be made; those that an earlier search made are kept up to date.
    try:
        policy = CodeIndex.load(directory, verify=False).manifest["encoder"]
    except StoreError:
        policy = "none"
    return CodeIndex.build([path], directory, policy, progress=progress), True


def _on_terminal(args: argparse.Namespace) -> bool:
    return sys.stdout.isatty() and sys.stderr.isatty() and not args.json


def cached_index(*paths: Path, kind: str = "indexes") -> Path:
    """The folder of the cached index of `paths`; a new format gets a new one, so that versions can live together."""
    import hashlib

    from hf_qualcode.hub import cache_dir
    from hf_qualcode.retrieve.storage import FORMAT_VERSION

    resolved = [path.resolve() for path in paths]
    digest = hashlib.sha256("\0".join(map(str, resolved)).encode("utf-8", "surrogateescape")).hexdigest()[:16]
    # The name is for people who look into the cache; a file name holds at most 255 bytes.
    name = "".join(c if c.isalnum() or c in "._-" else "_" for c in resolved[0].name)[:40] or "root"
    return cache_dir() / kind / f"v{FORMAT_VERSION}" / f"{name}-{digest}"


def _clip(text: str, columns: int) -> str:
    """The beginning of a text that fits into so many columns of a terminal."""
    width = 0
    for i, character in enumerate(text):
        width += 2 if unicodedata.east_asian_width(character) in "WF" else 1
        if width > columns:
            return text[:i]
    return text


class Preview:
    """The hits by words, on the terminal, while those by meaning are made ready; gone when they are.

    Plain escape sequences: importing rich would keep the first hits back by a tenth of a second.
    """

    def __init__(self, active: bool):
        self._active = active
        self._lines = 0

    def show(self, searcher, query: str, options: dict) -> None:
        """Search by words and show one line a hit."""
        if not self._active:
            return
        from hf_qualcode.cli.output import printable_line

        columns, rows = shutil.get_terminal_size()
        lines = ["by words so far; ranking by meaning ..."]
        for hit in searcher.search(query, retriever="bm25", **options):
            lines.append(f"{hit.rank:>3}  {hit.path}:{hit.start_line}-{hit.end_line}  {hit.name}")
        # Lines that wrap or scroll away could not be taken back.
        lines = [_clip(printable_line(line), columns - 1) for line in lines[: max(1, rows - 3)]]
        self._lines = len(lines)
        sys.stderr.write("\x1b[2m" + "\n".join(lines) + "\x1b[0m\n")
        sys.stderr.flush()

    def __enter__(self) -> "Preview":
        return self

    def __exit__(self, *_) -> None:
        if self._lines:
            sys.stderr.write(f"\r\x1b[{self._lines}A\x1b[J")
            sys.stderr.flush()
