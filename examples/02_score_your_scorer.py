"""Does a scorer prefer the better of two right programs? Any function of instruction, query and code will do.

    python examples/02_score_your_scorer.py [DATA [CONFIG]]

DATA is a folder of `hf-qualcode dataset build` or a Hub id. Without it three pairs are made.
"""

import sys

from hf_qualcode import instruction_for
from hf_qualcode.benchmark.loading import load_pairs
from hf_qualcode.evaluation.preference import evaluate_preference
from hf_qualcode.evaluation.preference_report import preference_report, preference_tables
from hf_qualcode.types import PreferencePair


def shorter_is_better(instructions: list[str], queries: list[str], codes: list[str]) -> list[float]:
    """A scorer to beat: three parallel lists in, one number each out, higher is better."""
    return [-float(len(code)) for code in codes]


def main(data: str | None = None, config: str | None = None) -> None:
    pairs = load_pairs(data, config).pairs if data else make_pairs()
    result = evaluate_preference(pairs, shorter_is_better, name="shorter")
    report = preference_report(result, source=data or "three pairs", config={"config": config or "the paper's"})
    for table in preference_tables(report):
        print(table.to_text())


def make_pairs() -> list[PreferencePair]:
    fast = "n = int(input())\nprint(n * (n + 1) // 2)\n"
    slow = "n = int(input())\ntotal = 0\nfor i in range(n + 1):\n    total += i\nprint(total)\n"
    lean = "print(sum(i for i in range(int(input()) + 1)))\n"
    large = "print(sum([i for i in range(int(input()) + 1)]))\n"
    plain = "def fibonacci(n):\n    a, b = 0, 1\n    for _ in range(n):\n        a, b = b, a + b\n    return a\n"
    terse = "def F(n):\n    global x\n    return n if n<2 else F(n-1)+F(n-2)\n"
    rows = [
        ("speed", "Sum the numbers up to N.", fast, slow),
        ("memory", "Sum the numbers up to N.", lean, large),
        ("maintainability", "Give the N-th Fibonacci number.", plain, terse),
    ]
    return [
        PreferencePair(
            id=f"{dimension}/better/worse",
            instruction=instruction_for(dimension),
            query=query,
            positive=better,
            negative=worse,
            dimensions=(dimension,),
            missing_dimension="",
            problem_id=query,
            positive_id="better",
            negative_id="worse",
        )
        for dimension, query, better, worse in rows
    ]


if __name__ == "__main__":
    main(*sys.argv[1:3])
