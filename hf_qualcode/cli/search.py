"""`hf-qualcode search`: find code in a folder, or in an index of one."""

import argparse
import logging
import sys
from pathlib import Path
from typing import NamedTuple

from hf_qualcode.cli.output import named_path
from hf_qualcode.cli.qualities import (
    BUNDLED,
    LazyReranker,
    add_order_arguments,
    add_quality_argument,
    quality_of,
    said_once,
    weight_of,
)
from hf_qualcode.cli.searching.judged import explain_hits, tell_what_was_learnt
from hf_qualcode.cli.searching.preview import Preview


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
    add_quality_argument(
        parser, "put code of these qualities first among what was found: speed, memory, maintainability, or several"
    )
    add_order_arguments(parser)
    parser.add_argument("--explain", action="store_true", help="with --quality: say what spoke for each hit")
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
    quality, weight = quality_of(args), weight_of(args)
    with ProgressLine() as progress, said_once():
        found = _search(args, quality, weight, progress)
    if quality and (args.reranker or BUNDLED) == BUNDLED:
        tell_what_was_learnt(found.hits)
    print_hits(found.hits, as_json=args.json, context=args.context, explanations=found.explanations)
    return 0


class _Found(NamedTuple):
    """Hits, and what spoke for each where that was asked for."""

    hits: list
    explanations: list[list] | None = None


def _tell_empty(index, args: argparse.Namespace) -> None:
    """An index of nothing has no hits for any query, which no hit alone would not say."""
    if not len(index):
        seen = index.report["seen"]
        logger.warning(
            "nothing to search in %s: none of %d files and folders seen holds code in a language that is known",
            args.index or args.path or "this folder",
            seen,
        )


def _search(args: argparse.Namespace, quality: tuple[str, ...], weight: float, progress) -> _Found:
    from hf_qualcode.retrieve.index import CodeIndex
    from hf_qualcode.retrieve.search import CodeSearcher

    filters = {
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
    reranker = LazyReranker(args.reranker or BUNDLED, progress) if quality else None
    searcher = CodeSearcher(index, reranker=reranker)
    mode = args.retriever
    if mode == "auto" and complete:
        mode = searcher.resolve_retriever(mode)
    if mode == "bm25" and not quality:
        return _Found(searcher.search(args.query, retriever=mode, **filters))
    to_come = [] if mode == "bm25" else ["ranking by meaning"]
    to_come += ["judging quality"] if quality else []
    # The progress line is closed first: it is drawn below the preview.
    with Preview(_on_terminal(args)) as preview, progress:
        preview.show(searcher, args.query, filters, " and ".join(to_come))
        if not complete:
            index = CodeIndex.build([args.path or "."], index.directory, "auto", progress=progress)
            searcher = CodeSearcher(index, reranker=reranker)
        hits = searcher.search(
            args.query, retriever=mode, quality=quality, quality_weight=weight, progress=on_encoded, **filters
        )
        if not args.explain:
            return _Found(hits)
        return _Found(hits, explain_hits(searcher, args.query, hits, quality, progress))


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
