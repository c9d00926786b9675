"""Memory usage: peak memory, by the judge or measured again. The rules are those of speed (SynH-Rank, section 3.1)."""

from hf_qualcode.quality.speed import POSITIVE_IS_DRAWN, is_clear, is_pair, label, reason_without_pair


PLACE = 2
PHRASE = "memory-efficient"
NEGATED_PHRASE = "memory-hungry"
UNIT = "KB"
JUDGE_SOURCE = "the judge's memory (KB), one run"
# What a wish in other words than PHRASE may call it; see `hf_qualcode.quality.wishes`.
PRAISE = ("lean", "leaner", "leanest", "lightweight", "compact")
BLAME = ("bloated",)
RESOURCES = (
    *("memory", "ram", "footprint", "space", "heap", "allocation", "allocations", "bytes", "megabytes", "room"),
    *("storage",),
)

__all__ = ["POSITIVE_IS_DRAWN", "is_clear", "is_pair", "label", "reason_without_pair"]
