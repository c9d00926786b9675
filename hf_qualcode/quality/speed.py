"""Execution speed: CPU time, by the judge or measured again."""

from hf_qualcode.quality.guidelines import Guideline
from hf_qualcode.quality.label_rules import label_thirds, less_than_half


PLACE = 1
PHRASE = "fast"
NEGATED_PHRASE = "slow"
UNIT = "ms"
JUDGE_SOURCE = "the judge's cpu_time (ms), one run"
# What a wish in other words than PHRASE may call it; see `hf_qualcode.quality.wishes`.
PRAISE = (
    *("fast", "faster", "fastest", "quick", "quicker", "quickest", "quickly", "speedy", "rapid", "rapidly", "swift"),
    *("snappy", "snappiest", "speediest", "prompt", "promptly", "performant", "efficient", "efficiently", "speed"),
    *("brisk", "responsive", "nimble", "performance", "throughput"),
)
BLAME = (
    *("slow", "slower", "slowest", "slowly", "sluggish", "laggy", "crawls", "inefficient", "inefficiently"),
    *("plodding", "lethargic", "tardy"),
)
RESOURCES = (
    *("time", "runtime", "cpu", "latency", "runtimes", "cycles", "seconds", "milliseconds", "duration", "computation"),
    *("compute", "processor", "wait", "waiting", "run", "finish", "execute", "execution"),
)

# What authors of training data are told (SynH-Rank, section 4.1, Table 2).
GUIDELINES = (
    Guideline(
        "algorithm",
        high=(
            "Precompute whatever is needed more than once, such as prefix sums, factorials or sieves, before the "
            "main loop.",
            "Replace loops by closed-form formulas wherever the mathematics allows it.",
            "Choose the algorithm with the lowest time complexity that the limits of the task ask for, such as "
            "binary search, two pointers, dynamic programming or a greedy rule.",
            "Stop as soon as the answer is known.",
        ),
        low=(
            "Solve the task by brute force: enumerate all candidates and test each one.",
            "Prefer nested loops over all pairs, triples or subsets to a formula or a sorted order.",
            "Recompute every intermediate result from scratch each time it is needed.",
            "Keep searching to the end even after the answer has been found.",
        ),
    ),
    Guideline(
        "data structure",
        high=(
            "Use the structure whose operations are cheapest for this task: sets and dictionaries for look-ups, "
            "`collections.deque` for queues, `heapq` for the smallest item, `bisect` on sorted lists.",
            "Prefer built-in functions and containers, which run in C, to loops of your own.",
            "Keep data in the type in which it is used, and convert once.",
        ),
        low=(
            "Use structures that do not fit the task: lists for membership tests, `list.pop(0)` and "
            "`list.insert(0, x)` for queues, a full sort to find one smallest item.",
            "Look values up by scanning lists of pairs in place of a dictionary.",
            "Convert data back and forth between types, such as numbers and strings, inside loops.",
        ),
    ),
    Guideline(
        "patterns",
        high=(
            "Memoise functions that are called again with the same arguments, for example by "
            "`functools.lru_cache`.",
            "Keep function calls and attribute look-ups out of inner loops; bind them to local names before.",
            "Use comprehensions and generator expressions in place of loops that append.",
            "Reuse objects in place of making new ones.",
        ),
        low=(
            "Create new objects in inner loops although existing ones could be reused.",
            "Copy whole containers, with `copy.deepcopy` or slices, before every change.",
            "Wrap trivial operations in functions or classes that are called in the innermost loop.",
            "Build strings and lists by repeated concatenation.",
        ),
    ),
    Guideline(
        "implementation",
        high=(
            "Read the whole input at once and write the whole output at once.",
            "Process values in batches, and move everything that does not change out of loops.",
            "Simplify arithmetic: use integer operations, modular exponentiation by `pow(a, b, m)`, and bit "
            "operations where they fit.",
            "Combine passes over the same data into one.",
        ),
        low=(
            "Write recursive functions without memoisation where a loop would do.",
            "Read and write one item at a time, and flush after every line.",
            "Repeat the same computation in every pass of a loop, such as lengths, sums or sorted copies.",
            "Go over the same data several times, once for each small result.",
        ),
    ),
)

POSITIVE_IS_DRAWN = False  # it is the best one
label = label_thirds


def is_pair(positive: float, negative: float) -> bool:
    """Whether the problem's best and worst value are far enough apart for its pair."""
    return less_than_half(positive, negative)


def is_clear(positive: float, negative: float) -> bool:
    """Whether any two values are far enough apart for `all-pairs`."""
    return less_than_half(positive, negative)


def reason_without_pair(values: list[float]) -> str | None:
    """Why a problem with these values has no pair; `None` where the values allow one."""
    if len(values) < 2:
        return "no_program_measured" if not values else "one_program_measured"
    return None if is_pair(min(values), max(values)) else "less_than_twice_apart"
