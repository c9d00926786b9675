"""Memory usage: peak memory, by the judge or measured again. The rules are those of speed (SynH-Rank, section 3.1)."""

from hf_qualcode.quality.guidelines import Guideline
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

# What authors of training data are told (SynH-Rank, section 4.1, Table 2).
GUIDELINES = (
    Guideline(
        "algorithm",
        high=(
            "Choose an algorithm whose space complexity is as low as the task allows, constant if possible.",
            "Keep only the state that later steps need, such as the last row of a table in dynamic programming.",
            "Use iteration in place of recursion, so that the call stack does not grow.",
            "Modify data in place where nobody needs the old values.",
        ),
        low=(
            "Generate all combinations, permutations or subsets and keep them in memory before looking at any of "
            "them.",
            "Use deep recursion that passes copies of its state down.",
            "Keep full tables of all intermediate states although only the last ones are needed.",
            "Keep every version of the data that was ever computed.",
        ),
    ),
    Guideline(
        "data structure",
        high=(
            "Use generators and iterators in place of lists that are gone through once.",
            "Prefer flat and compact structures, such as `array.array`, `bytes`, `bytearray` or tuples, to nested "
            "lists and dictionaries.",
            "Store numbers and not their texts, and indices and not copies.",
        ),
        low=(
            "Store everything in large temporary lists, even what is used once.",
            "Nest lists, dictionaries and tuples deeply, and store the same value in several of them.",
            "Turn every range, map and filter into a list, and keep all of these lists alive.",
        ),
    ),
    Guideline(
        "patterns",
        high=(
            "Make shallow copies, or none, and share data that does not change.",
            "Give results out as soon as they are known and release what is no longer needed.",
            "Limit the life of large objects to the block that needs them.",
            "Chain lazy operations in place of storing what lies between them.",
        ),
        low=(
            "Materialise every step between input and output as a container of its own.",
            "Deep-copy whole structures before each step although they are not changed.",
            "Collect all results before giving out the first one.",
            "Keep references to large objects until the program ends, for example in global lists.",
        ),
    ),
    Guideline(
        "implementation",
        high=(
            "Process the input incrementally, one line or one block at a time.",
            "Load and compute lazily, only when a value is asked for.",
            "Write output while going along in place of collecting it.",
            "Use streaming functions such as those of `itertools`.",
        ),
        low=(
            "Read the entire input into memory, and keep both the raw text and all parsed forms of it.",
            "Duplicate the data for each part of the computation.",
            "Collect the entire output in a list, and then in one string, before it is written.",
            "Fill caches without any bound.",
        ),
    ),
)

__all__ = ["POSITIVE_IS_DRAWN", "is_clear", "is_pair", "label", "reason_without_pair"]
