"""Maintainability: the number of code smells that an analyser finds."""

from collections.abc import Sequence

from hf_qualcode.quality.guidelines import Guideline


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

# What authors of training data are told (SynH-Rank, section 4.1, Table 2).
GUIDELINES = (
    Guideline(
        "structure",
        high=(
            "Give every function or class a single responsibility and a short body.",
            "Separate reading, computing and writing behind clear interfaces with explicit parameters and return "
            "values.",
            "Avoid duplicated code: put shared steps into one helper.",
            "Keep the hierarchy of calls and classes shallow.",
        ),
        low=(
            "Put everything into one long function that reads, computes and writes.",
            "Build deep hierarchies of classes or calls that add nothing.",
            "Mix levels of abstraction: handle details of parsing between steps of the algorithm.",
            "Copy and paste similar blocks in place of sharing a helper.",
        ),
    ),
    Guideline(
        "readability",
        high=(
            "Use descriptive names for variables, functions and parameters, in snake_case.",
            "Keep the control flow linear: return early, and keep nesting flat.",
            "Name constants in place of magic numbers, and explain intent in short docstrings.",
            "Write one statement a line, in a consistent layout.",
        ),
        low=(
            "Use cryptic one-letter or misleading names.",
            "Nest conditions and loops deeply in place of returning early.",
            "Use magic numbers and dense one-line expressions with nested conditional expressions.",
            "Leave out comments and docstrings, or leave commented-out code behind.",
        ),
    ),
    Guideline(
        "robustness",
        high=(
            "Catch only the specific exceptions that can occur, and let all others pass.",
            "Handle edge cases, such as empty input, explicitly.",
            "Check arguments early and raise errors with clear messages.",
            "Release resources with context managers.",
        ),
        low=(
            "Use bare `except:` clauses that swallow every error.",
            "Hide root causes: return a default value when something goes wrong, and say nothing.",
            "Rely on accidents of the input in place of checking edge cases.",
            "Leave variables and parameters unused, and branches that can never run.",
        ),
    ),
    Guideline(
        "modernity",
        high=(
            "Write modern code for the current version of the language: in Python 3 f-strings, `pathlib`, "
            "`enumerate`, `zip`, unpacking, dataclasses and type hints where they help.",
            "Import only what is used, one import a line, at the top.",
            "Use the standard library in place of code of your own for common tasks.",
        ),
        low=(
            "Use deprecated or outdated patterns: `%` formatting, `range(len(x))` loops, `type(x) == list`, "
            "classes that inherit from `object`.",
            "Share state by global variables that functions change.",
            "Use wildcard imports, and shadow built-in names such as `list`, `sum` and `max`.",
            "Write by hand what the standard library offers.",
        ),
    ),
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
