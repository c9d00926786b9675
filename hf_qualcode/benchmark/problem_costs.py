"""Measuring the programs of one problem: which inputs to use, and what each program costs on them.

Programs are run in the sandbox, rounds interleaved; `trials` judges which inputs they vouch for.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from hf_qualcode.benchmark.statements import Statement
from hf_qualcode.benchmark.trials import MIN_AGREEING, MIN_SIZES, Answer, InputVerdict, choose_inputs, judge_input
from hf_qualcode.quality import measuring
from hf_qualcode.quality.sandbox import Limits, Run, Sandbox


ROUNDS = 3
LIMITS = Limits(cpu_seconds=10, memory_bytes=1 << 30)
# Enough to tell programs apart; larger inputs would only take longer.
ENOUGH_SECONDS = 1.0
# Under Valgrind a program is 40 to 100 times slower.
COUNTING_SLOWDOWN = 150

# Why a problem has no values, and why a program has none.
PROBLEM_REASONS = {
    "measured": "values for at least three programs",
    "too_few_programs": f"fewer than {MIN_AGREEING} programs, so none can be vouched for",
    "no_inputs": "no inputs were given, and none could be generated safely from the statement",
    "no_agreement": "on no input do three programs and a majority give the same answer",
    "too_few_sizes": "fewer than three sizes of input that the programs agree on",
    "never_slow": "the slowest program never takes 100 ms beyond start-up and imports",
}
PROGRAM_REASONS = {
    "measured": "has values",
    "fails_on_samples": "fails on the statement's samples, or answers them otherwise (a module that is not installed, "
    "a conversion from Python 2 that broke it, several right answers)",
    "fails": "ends with an error on the inputs measured on",
    "over_the_limits": "runs over the limits of time, memory or output on them",
    "disagrees": "gives another answer than the majority on them",
    "unstable": "gave different answers, or failed, when it was run again",
}

# Programs print 1 and 1.0; judges allow 1e-6 where numbers are not whole.
TOLERANCE = 1e-6


class MeasuredInput(NamedTuple):
    """An input to measure on.

    Attributes:
        name (`str`): For the report.
        size (`float`): Only the order matters.
        text (`bytes`): What the program reads.
    """

    name: str
    size: float
    text: bytes


class Cost(NamedTuple):
    """What one program costs before it does anything of its own: start-up and its imports."""

    cpu_seconds: float
    peak_bytes: int
    instructions: int | None


class Bench:
    """The sandbox, and what start-up and imports cost in it."""

    def __init__(self, sandbox: Sandbox, counts_instructions: bool):
        self.sandbox = sandbox
        self.counts_instructions = counts_instructions
        self._costs: dict[str, Cost | None] = {}

    def cost(self, text: str) -> Cost | None:
        """What a program's imports alone cost; `None` where they fail."""
        imports = measuring.import_only(text)
        if imports not in self._costs:
            runs = [self.sandbox.run(imports, limits=LIMITS) for _ in range(ROUNDS)]
            self._costs[imports] = (
                Cost(
                    min(run.cpu_seconds for run in runs),
                    min(run.peak_memory_bytes for run in runs),
                    self.count(imports, b"", runs[0]),
                )
                if all(run.outcome == "ok" for run in runs)
                else None
            )
        return self._costs[imports]

    def count(self, text: str, stdin: bytes, like: Run) -> int | None:
        """Instructions of a run that takes as long as `like`; `None` where they are not counted or it fails."""
        if not self.counts_instructions:
            return None
        seconds = COUNTING_SLOWDOWN * (like.cpu_seconds + 0.2)
        limits = Limits(cpu_seconds=seconds, memory_bytes=LIMITS.memory_bytes)
        run = self.sandbox.run(text, stdin, limits=limits, count_instructions=True)
        return run.instructions if run.outcome == "ok" and _same(run.stdout, like.stdout) else None


def measure_problem(
    bench: Bench, statement: Statement, programs: Mapping[str, str], tried: Sequence[MeasuredInput] | str
) -> dict:
    """Measures the programs of one problem.

    Args:
        bench (`Bench`): The sandbox with its calibration.
        statement (`Statement`): For the samples.
        programs (`Mapping[str, str]`): Submission id -> text.
        tried (`Sequence[MeasuredInput]` or `str`): Inputs in growing size, or why there are none.

    Returns:
        `dict`: JSON-able: outcome, inputs, programs.
    """
    if len(programs) < MIN_AGREEING:
        return {"outcome": "too_few_programs", "inputs": [], "programs": {}}
    if isinstance(tried, str):
        return {"outcome": "no_inputs", "why": tried, "inputs": [], "programs": {}}
    sound = {name: text for name, text in programs.items() if _passes_samples(bench, statement, text)}
    answers, verdicts = _try_inputs(bench, sound, tried)
    choice = choose_inputs(verdicts)
    rows = [
        {
            "name": one.name,
            "bytes": len(one.text),
            "agreeing": len(verdict.agreeing),
            "tried": len(sound),
            "slowest_seconds": round(verdict.slowest_seconds, 4),
            "counts": verdict.counts,
        }
        for one, verdict in zip(tried, verdicts, strict=False)
    ]
    outcomes = {name: {"outcome": "fails_on_samples"} for name in programs if name not in sound}
    if isinstance(choice, str):
        return {"outcome": choice, "inputs": rows, "programs": outcomes}
    both = set(verdicts[choice.speed].agreeing) & set(verdicts[choice.memory].agreeing)
    for name in sound:
        if name not in both:
            outcomes[name] = {"outcome": _why_dropped([answers[choice.speed][name], answers[choice.memory][name]])}
    agreed = {name: sound[name] for name in sorted(both)}
    outcomes |= _measure(bench, agreed, tried[choice.speed].text, tried[choice.memory].text)
    return {
        "outcome": "measured",
        "inputs": rows,
        "speed_input": tried[choice.speed].name,
        "memory_input": tried[choice.memory].name,
        "programs": dict(sorted(outcomes.items())),
    }


def _passes_samples(bench: Bench, statement: Statement, text: str) -> bool:
    if bench.cost(text) is None:
        return False
    for sample in statement.samples:
        run = bench.sandbox.run(text, sample.input.encode(), limits=LIMITS)
        if run.outcome != "ok" or not _same(run.stdout, sample.output.encode()):
            return False
    return True


def _try_inputs(
    bench: Bench, sound: Mapping[str, str], tried: Sequence[MeasuredInput]
) -> tuple[list[dict[str, Answer]], list[InputVerdict]]:
    """Runs every program on inputs of growing size, until an input is slow enough or programs stop agreeing."""
    answers: list[dict[str, Answer]] = []
    verdicts: list[InputVerdict] = []
    for one in tried:
        answers.append({name: _answer(bench, text, one.text) for name, text in sound.items()})
        verdicts.append(_without_slow_moments(bench, sound, one.text, answers[-1]))
        num_agreed = sum(verdict.is_agreed for verdict in verdicts)
        if verdicts[-1].slowest_seconds >= ENOUGH_SECONDS and num_agreed >= MIN_SIZES:
            break
        if answers[-1] and all(answer.outcome == "timeout" for answer in answers[-1].values()):
            break
    return answers, verdicts


def _without_slow_moments(
    bench: Bench, sound: Mapping[str, str], stdin: bytes, answers: dict[str, Answer]
) -> InputVerdict:
    """Judges an input; the program that seems slowest is run again, so that no slow moment of the machine counts."""
    turns = Counter()
    while True:
        verdict = judge_input(answers, _same)
        if not verdict.counts:
            return verdict
        slowest = max(verdict.agreeing, key=lambda name: answers[name].net_seconds)
        if turns[slowest] == ROUNDS - 1:
            return verdict
        turns[slowest] += 1
        again = _answer(bench, sound[slowest], stdin)
        answers[slowest] = answers[slowest]._replace(net_seconds=min(again.net_seconds, answers[slowest].net_seconds))


def _answer(bench: Bench, text: str, stdin: bytes) -> Answer:
    run = bench.sandbox.run(text, stdin, limits=LIMITS)
    return Answer(run.outcome, run.stdout, run.cpu_seconds - bench.cost(text).cpu_seconds)


def _why_dropped(answers: Sequence[Answer]) -> str:
    outcomes = {answer.outcome for answer in answers}
    if outcomes & {"timeout", "memory", "output"}:
        return "over_the_limits"
    return "disagrees" if outcomes == {"ok"} else "fails"


def _measure(bench: Bench, programs: Mapping[str, str], speed_input: bytes, memory_input: bytes) -> dict[str, dict]:
    """Costs of every program: rounds interleaved, so that a slow moment of the machine meets all alike."""
    runs: dict[str, list[Run]] = {name: [] for name in programs}
    for turn in range(ROUNDS):
        for name in list(programs)[:: -1 if turn % 2 else 1]:
            runs[name].append(bench.sandbox.run(programs[name], speed_input, limits=LIMITS))
    measured = {}
    for name, text in programs.items():
        large = bench.sandbox.run(text, memory_input, limits=LIMITS)
        cost = bench.cost(text)
        stable = all(run.outcome == "ok" and _same(run.stdout, runs[name][0].stdout) for run in runs[name])
        count = bench.count(text, speed_input, runs[name][0]) if stable else None
        uncounted = bench.counts_instructions and None in (count, cost.instructions)
        if not stable or large.outcome != "ok" or uncounted:
            measured[name] = {"outcome": "unstable"}
            continue
        measured[name] = {
            "outcome": "measured",
            "cpu_seconds": round(min(run.cpu_seconds for run in runs[name]), 6),
            "import_cpu_seconds": round(cost.cpu_seconds, 6),
            "instructions": count,
            "import_instructions": cost.instructions,
            "peak_bytes": large.peak_memory_bytes,
            "import_peak_bytes": cost.peak_bytes,
        }
    return measured


def _same(first: bytes, second: bytes) -> bool:
    return measuring.outputs_equal(first, second, tolerance=TOLERANCE)
