"""What is said about hits whose quality was judged."""

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple


if TYPE_CHECKING:
    from hf_qualcode.types import Hit

logger = logging.getLogger(__name__)

# Contributions that are shown of one hit.
_SHOWN = 5


class Contribution(NamedTuple):
    """One thing that spoke for a hit, or, below 0, against it, in log-odds."""

    name: str
    value: float


def explain_hits(
    searcher, query: str, hits: Sequence["Hit"], quality: Sequence[str], progress: Callable[[str, int, int], None]
) -> list[list[Contribution]]:
    """The largest contributions to each hit's quality score, largest first; none where it was not judged."""
    explanations = []
    for done, hit in enumerate(hits, 1):
        parts = [] if hit.quality_score is None else searcher.explain(query, hit, quality).parts
        named = [Contribution(str(name), float(value)) for name, value in parts if value]
        explanations.append(sorted(named, key=lambda part: -abs(part.value))[:_SHOWN])
        progress("explaining", done, len(hits))
    return explanations


def tell_what_was_learnt(hits: Sequence["Hit"]) -> None:
    """One line where hits are not what the bundled reranker has learnt from: programs and functions in Python."""
    others = sum(hit.language != "python" for hit in hits)
    if others:
        logger.warning(
            "quality was learnt from Python; of %d %s %d are in other languages: take their order as a hint",
            len(hits), "hit" if len(hits) == 1 else "hits", others,
        )  # fmt: skip
