"""Maintainability: the number of code smells that an analyser finds."""

from collections.abc import Sequence


PLACE = 3
PHRASE = "maintainable"
NEGATED_PHRASE = "hard to maintain"
UNIT = "smells"

# What a wish in other words than PHRASE may call it; see `hf_qualcode.quality.wishes`.
PRAISE = (
    *("maintainable", "readable", "clean", "cleaner", "cleanest", "clear", "clearer", "clearest", "clearly", "tidy"),
    *("tidier", "elegant", "understandable", "comprehensible", "legible", "modular", "structured", "idiomatic"),
    *("clarity", "documented", "organised", "organized", "neat", "neatly", "orderly", "simple", "simpler", "simplest"),
    *("plain", "extensible", "testable", "maintainability", "readability", "straightforward"),
)
BLAME = (
    *("messy", "unreadable", "illegible", "convoluted", "cryptic", "obscure", "ugly", "spaghetti", "tangled"),
    *("smelly", "unmaintainable", "complicated", "dirty", "sloppy", "confusing", "unclear", "chaotic", "hacky"),
    *("untidy", "incomprehensible", "disorganised", "disorganized", "brittle"),
)
RESOURCES = ("smells", "smell", "duplication", "upkeep", "clutter", "debt")
EFFORTS = (
    *("read", "maintain", "understand", "change", "modify", "extend", "follow", "debug", "test", "edit", "review"),
    *("update", "refactor", "grasp", "comprehend", "reuse", "adapt", "keep", "reading", "maintenance"),
    *("understanding",),
)

POSITIVE_IS_DRAWN = True  # all programs without smells are equally good
MIN_MORE_SMELLS = 3


def is_pair(positive: float, negative: float) -> bool:
    """Whether two numbers of smells make the problem's pair: none against at least one (SynH-Rank, section 3.1)."""
    return positive == 0 and negative >= 1


def is_clear(positive: float, negative: float) -> bool:
    """Whether two numbers of smells are far enough apart for `all-pairs`: at least twice as many and 3 more."""
    return negative >= 2 * positive and negative >= positive + MIN_MORE_SMELLS


def reason_without_pair(values: list[float]) -> str | None:
    """Why a problem with these values has no pair; `None` where the values allow one."""
    if not values:
        return "no_program_analysed"
    if min(values) > 0:
        return "no_program_without_smells"
    return None if max(values) > 0 else "no_program_with_smells"


def label(values: Sequence[float]) -> list[int | None]:
    """1 where there is no smell, 0 where there are some (SynH-Rank, section 3.2)."""
    return [int(value == 0) for value in values]
