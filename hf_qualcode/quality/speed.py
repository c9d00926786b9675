"""Execution speed: CPU time, by the judge or measured again."""

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
