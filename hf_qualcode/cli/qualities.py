"""What quality is asked for, on the command line: `--quality` and what goes with it."""

import argparse
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager


BUNDLED = "bundled"


def add_quality_argument(parser: argparse.ArgumentParser, help_text: str) -> None:
    """`--quality`."""
    parser.add_argument("--quality", metavar="Q[,Q...]", help=help_text)


def add_order_arguments(parser: argparse.ArgumentParser) -> None:
    """What decides the order of hits once quality is asked for."""
    parser.add_argument(
        "--quality-weight",
        type=float,
        metavar="W",
        help="from 0, the order without --quality, to 1, the reranker's alone (default 0.5)",
    )
    parser.add_argument(
        "--reranker", metavar="NAME", help="what judges quality: bundled (default), or a model's DIR or ORG/NAME"
    )


def parse_quality(value: str | Sequence[str]) -> tuple[str, ...]:
    """Names of quality dimensions from `speed,memory` or a list of them, in the order of instructions.

    Raises:
        `UsageError`: On an unknown name; the message lists those there are.
    """
    from hf_qualcode.quality import dimension_names
    from hf_qualcode.types import UsageError

    names = value.split(",") if isinstance(value, str) else value
    names = [name.strip() if isinstance(name, str) else name for name in names]
    names = [name for name in names if name != ""]
    known = dimension_names()
    for name in names:
        if name not in known:
            raise UsageError(
                f"unknown quality {str(name)[:40]!r}: choose from {', '.join(known)}, or several with commas"
            )
    return tuple(name for name in known if name in names)


def quality_of(args: argparse.Namespace) -> tuple[str, ...]:
    """What `--quality` asks for; nothing where it is not given.

    Raises:
        `UsageError`: On an unknown name, or none.
    """
    from hf_qualcode.types import UsageError

    if args.quality is None:
        return ()
    asked = parse_quality(args.quality)
    if not asked:
        raise UsageError("--quality names nothing (an unset variable?): for example --quality speed,memory")
    return asked


def weight_of(args: argparse.Namespace) -> float:
    """The weight of the reranker's order.

    Raises:
        `UsageError`: When it is outside [0, 1], or an option that needs `--quality` is given without it.
    """
    from hf_qualcode.types import UsageError

    if args.quality is None:
        given = [name for name in ("quality_weight", "reranker", "explain") if getattr(args, name, None)]
        if args.quality_weight is not None or given:
            option = (given or ["quality_weight"])[0].replace("_", "-")
            raise UsageError(f"--{option} needs --quality: for example --quality speed")
    weight = 0.5 if args.quality_weight is None else args.quality_weight
    if not 0 <= weight <= 1:
        raise UsageError(f"--quality-weight {weight}: from 0 (as retrieved) to 1 (the reranker alone)")
    return weight


class _Once(logging.Filter):
    """Lets each kind of message through once: a command asks its reranker in many small calls."""

    def __init__(self):
        super().__init__()
        self._said: set[str] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        is_new = record.msg not in self._said
        self._said.add(record.msg)
        return is_new


@contextmanager
def said_once() -> Iterator[None]:
    """While it lasts, what a reranker warns of is said once."""
    log, once = logging.getLogger("hf_qualcode.rerank.reranker"), _Once()
    log.addFilter(once)
    try:
        yield
    finally:
        log.removeFilter(once)


def load_reranker(name: str):
    """The `Reranker` of a name: `"bundled"`, a folder or a Hub id.

    Raises:
        `QualcodeError`: If there is no such model, it cannot be loaded, or its head was never trained.
    """
    from hf_qualcode.rerank.reranker import Reranker

    return Reranker.bundled() if name == BUNDLED else Reranker.from_pretrained(name)


class LazyReranker:
    """A reranker that is loaded when it is first asked, which is when there is something to judge.

    Args:
        name (`str`): `"bundled"`, a folder or a Hub id.
        progress (`Callable`): Called as `progress(stage, done, total)`.
    """

    def __init__(self, name: str, progress: Callable[[str, int, int | None], None]):
        self._name, self._progress = name, progress
        self._loaded = None

    def score(self, queries: Sequence[str], codes: Sequence[str], *, quality: Sequence[str] = ()):
        """See `Reranker.score`."""
        return self._reranker().score(queries, codes, quality=quality, progress=self._progress)

    def explain(self, query: str, code: str, *, quality: Sequence[str] = ()):
        """See `Reranker.explain`."""
        return self._reranker().explain(query, code, quality=quality)

    def _reranker(self):
        if self._loaded is None:
            self._loaded = load_reranker(self._name)
        return self._loaded
