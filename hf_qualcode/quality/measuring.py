"""Which of two programs is faster, or smaller: measured so that the answer can be trusted, or not given.

    sandbox = Sandbox.open()
    startup = calibrate(sandbox)
    first, second = measure(sandbox, [text_a, text_b], stdin)
    compare_speed(first, second, startup, startup).verdict          # of the first against the second

CPU time and not wall time; the programs take turns (A B, B A, A B, ...), so that what else the machine does hits both;
the time of an empty program is taken off; the ratio is the Hodges-Lehmann estimate over the rounds' log ratios, with
the exact interval of the signed-rank test. Instructions by Valgrind, where asked, are the referee.
"""

import ast
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from hf_qualcode.languages import parse_python
from hf_qualcode.quality.sandbox import DEFAULT_LIMITS, Limits, Run, Sandbox
from hf_qualcode.types import QualcodeError, UsageError


# Fewer than six pairs cannot give a 95 % interval, whatever they say: 2 / 2^5 > .05.
FEWEST_ROUNDS = 6
DEFAULT_ROUNDS = 7
CONFIDENCE = 0.95
# Below this a difference in memory is the allocator's, not the program's.
MEMORY_FLOOR_BYTES = 1 << 20
# Relative: counts repeat to about 1e-5, and 1 % covers what a program's addresses and file names change.
_INSTRUCTION_SPREAD = 0.01
# A verdict on speed needs the slower one to take this many times what start-up varies by.
_TIMES_NOISE = 3
_MINIMUM_NOISE_S = 1e-3
# Valgrind's slowdown; a program under it gets that much more time.
_VALGRIND_SLOWDOWN = 100


class Startup(NamedTuple):
    """What a program without work costs: the empty one, or one with imports only.

    Attributes:
        cpu_seconds (`float`): Least of the rounds.
        noise_seconds (`float`): By how much the rounds' median lies above the least, at least 1 ms.
        peak_memory_bytes (`int`): Least of the rounds.
        instructions (`int`, *optional*): `None` unless asked.
    """

    cpu_seconds: float
    noise_seconds: float
    peak_memory_bytes: int
    instructions: int | None = None


class Measured(NamedTuple):
    """One program on one input, all rounds.

    Attributes:
        outcome (`str`): `Run.outcome`; of the first round that did not end well, after which there are no more.
        exit_code (`int`), stdout, stderr (`bytes`): Of that round, else of the first.
        cpu_seconds (`tuple[float, ...]`): One a round, start-up included.
        peak_memory_bytes (`tuple[int, ...]`): One a round, the interpreter's own included.
        instructions (`int`, *optional*): `None` unless asked, or if the program failed.
        same_output (`bool`): Every round wrote the same bytes to stdout.
    """

    outcome: str
    exit_code: int
    stdout: bytes
    stderr: bytes
    cpu_seconds: tuple[float, ...]
    peak_memory_bytes: tuple[int, ...]
    instructions: int | None = None
    same_output: bool = True

    @property
    def ok(self) -> bool:
        """Every round ended with exit code 0."""
        return self.outcome == "ok"

    def net_cpu_seconds(self, startup: Startup) -> float:
        """Least CPU time of the rounds, without start-up; at least 0."""
        return max(0.0, min(self.cpu_seconds) - startup.cpu_seconds)

    def net_memory_bytes(self, startup: Startup) -> int:
        """Least peak of the rounds, without the interpreter's own; at least 0."""
        return max(0, min(self.peak_memory_bytes) - startup.peak_memory_bytes)

    def net_instructions(self, startup: Startup) -> int | None:
        """Instructions without start-up's, at least 0; `None` where either was not counted."""
        if self.instructions is None or startup.instructions is None:
            return None
        return max(0, self.instructions - startup.instructions)


class Comparison(NamedTuple):
    """The first program against the second.

    Attributes:
        verdict (`str`): `"faster"`, `"slower"` or `"undecided"`; of memory `"smaller"`, `"larger"` or `"undecided"`.
        ratio (`float`, *optional*): First over second: below 1, the first is better. `None` where there is
            nothing to compare.
        interval (`tuple[float, float]`, *optional*): Of the ratio. `None` with too few rounds.
        unit (`str`): What was compared: `"cpu_seconds"`, `"instructions"` or `"peak_memory_bytes"`.
    """

    verdict: str
    ratio: float | None
    interval: tuple[float, float] | None
    unit: str


def import_only(text: str) -> str:
    """A program's top-level imports without the rest, so that their cost can be counted apart.

    Imports inside `try` and `if` at the top level are kept with their branches' other imports. A text that does not
    parse gives an empty program.
    """
    tree = parse_python(text)
    if tree is None:
        return ""
    names: list[ast.stmt] = []

    def visit(statements: Sequence[ast.stmt]) -> None:
        for statement in statements:
            if isinstance(statement, ast.Import | ast.ImportFrom):
                names.append(statement)
            elif isinstance(statement, ast.Try):
                visit([*statement.body, *(inner for handler in statement.handlers for inner in handler.body)])
                visit([*statement.orelse, *statement.finalbody])
            elif isinstance(statement, ast.If):
                visit([*statement.body, *statement.orelse])

    visit(tree.body)
    lines = []
    for statement in names:
        line = ast.unparse(statement)
        if isinstance(statement, ast.ImportFrom) and statement.module == "__future__":
            continue
        # One that fails (a branch that is not taken, say) costs what looking for it costs, and ends nothing.
        lines.append(f"try:\n    {line}\nexcept Exception:\n    pass\n")
    return "".join(lines)


def calibrate(
    sandbox: Sandbox,
    text: str = "",
    *,
    rounds: int = DEFAULT_ROUNDS,
    limits: Limits = DEFAULT_LIMITS,
    count_instructions: bool = False,
    core: int | None = None,
    progress: Callable | None = None,
) -> Startup:
    """What starting costs on this machine now.

    Args:
        sandbox (`Sandbox`): Where programs run.
        text (`str`, *optional*): Defaults to the empty program; `import_only(text)` for a program's imports as well.
        rounds (`int`, *optional*): Runs, of which the least counts.
        limits (`Limits`), count_instructions, core, progress: As of `measure`.

    Raises:
        QualcodeError: It does not end well.
    """
    (measured,) = measure(
        sandbox,
        [text],
        rounds=rounds,
        limits=limits,
        count_instructions=count_instructions,
        core=core,
        progress=progress,
        stage="calibrating",
    )
    if not measured.ok:
        said = measured.stderr.decode(errors="replace").strip().splitlines()
        what = "an empty program" if not text.strip() else "a program with imports only"
        raise QualcodeError(
            f"{what} already ends with {measured.outcome}{f' ({said[-1]})' if said else ''}: the limits are too "
            "low, or Python does not start here"
        )
    times = sorted(measured.cpu_seconds)
    noise = max(_MINIMUM_NOISE_S, times[len(times) // 2] - times[0])
    return Startup(times[0], noise, min(measured.peak_memory_bytes), measured.instructions)


def measure(
    sandbox: Sandbox,
    programs: Sequence[str | Path],
    stdin: bytes = b"",
    *,
    rounds: int = DEFAULT_ROUNDS,
    limits: Limits = DEFAULT_LIMITS,
    count_instructions: bool = False,
    core: int | None = None,
    progress: Callable | None = None,
    stage: str = "measuring",
) -> list[Measured]:
    """Run programs on one input in interleaved rounds: forwards, backwards, forwards, ...

    A program that does not end with `"ok"` is left out of the rounds that follow.

    Args:
        sandbox (`Sandbox`): Where they run.
        programs (`Sequence[str | Path]`): Texts or files.
        stdin (`bytes`, *optional*): Their input.
        rounds (`int`, *optional*, defaults to 7): A verdict on speed needs at least 6.
        limits (`Limits`, *optional*): Of each run.
        count_instructions (`bool`, *optional*): One run more of each, under Valgrind, which is given 100 times the CPU
            time.
        core (`int`, *optional*): The only core that they may use.
        progress (`Callable`, *optional*): `progress(stage, done, total)`.

    Returns:
        `list[Measured]`: In the order of `programs`.
    """
    if rounds < 1:
        raise UsageError(f"rounds {rounds}: at least 1 is needed")
    runs: list[list[Run]] = [[] for _ in programs]
    steps = len(programs) * (rounds + count_instructions)
    done = 0
    for number in range(rounds):
        order = range(len(programs)) if number % 2 == 0 else reversed(range(len(programs)))
        for index in order:
            if not runs[index] or runs[index][-1].outcome == "ok":
                runs[index].append(sandbox.run(programs[index], stdin, limits=limits, core=core))
            done += 1
            if progress is not None:
                progress(stage, done, steps)
    counts: list[int | None] = [None] * len(programs)
    if count_instructions:
        longer = Limits(
            cpu_seconds=limits.cpu_seconds * _VALGRIND_SLOWDOWN,
            wall_seconds=limits.wall * _VALGRIND_SLOWDOWN,
            memory_bytes=2 * limits.memory_bytes,
            output_bytes=limits.output_bytes,
            processes=limits.processes,
            file_bytes=limits.file_bytes,
        )
        for index, program in enumerate(programs):
            if runs[index][-1].outcome == "ok":
                run = sandbox.run(program, stdin, limits=longer, core=core, count_instructions=True)
                counts[index] = run.instructions if run.outcome == "ok" else None
            done += 1
            if progress is not None:
                progress(stage, done, steps)
    return [_measured(some, count) for some, count in zip(runs, counts, strict=True)]


def _measured(runs: list[Run], instructions: int | None) -> Measured:
    shown = runs[-1] if runs[-1].outcome != "ok" else runs[0]
    return Measured(
        outcome=shown.outcome,
        exit_code=shown.exit_code,
        stdout=shown.stdout,
        stderr=shown.stderr,
        cpu_seconds=tuple(run.cpu_seconds for run in runs),
        peak_memory_bytes=tuple(run.peak_memory_bytes for run in runs),
        instructions=instructions,
        same_output=all(run.stdout == runs[0].stdout for run in runs),
    )


def compare_speed(
    first: Measured, second: Measured, first_startup: Startup, second_startup: Startup, *, factor: float = 1.0
) -> Comparison:
    """Which takes less CPU time, start-up taken off.

    Args:
        first, second (`Measured`): Of one call of `measure`, so that the rounds are pairs.
        first_startup, second_startup (`Startup`): What is taken off each: the empty program's, or its imports' own.
        factor (`float`, *optional*, defaults to 1): Decide only where the whole interval lies beyond this ratio.

    Returns:
        `Comparison`: Undecided with fewer than 6 rounds, where the interval holds `factor` or its inverse, or where
        the slower of the two takes less than three times what start-up itself varies by.
    """
    _check_factor(factor)
    noise = max(first_startup.noise_seconds, second_startup.noise_seconds)
    floor = noise / 2
    pairs = list(zip(first.cpu_seconds, second.cpu_seconds, strict=False)) if first.ok and second.ok else []
    if not pairs:
        return Comparison("undecided", None, None, "cpu_seconds")
    logs = [
        math.log(max(a - first_startup.cpu_seconds, floor) / max(b - second_startup.cpu_seconds, floor))
        for a, b in pairs
    ]
    estimate, low, high = hodges_lehmann(logs)
    interval = None if low is None else (math.exp(low), math.exp(high))
    slower = max(first.net_cpu_seconds(first_startup), second.net_cpu_seconds(second_startup))
    verdict = "undecided"
    if slower >= _TIMES_NOISE * noise:
        verdict = _verdict(interval, factor, "faster", "slower")
    return Comparison(verdict, math.exp(estimate), interval, "cpu_seconds")


def compare_instructions(
    first: Measured, second: Measured, first_startup: Startup, second_startup: Startup, *, factor: float = 1.0
) -> Comparison:
    """Which executes fewer instructions, start-up taken off: the referee. Both must have been counted.

    The interval is the ratio within 1 % either way of the whole counts, start-up included.
    """
    _check_factor(factor)
    nets = first.net_instructions(first_startup), second.net_instructions(second_startup)
    if None in nets:
        return Comparison("undecided", None, None, "instructions")
    # One count each has no scatter of its own; what start-up might be off by is the larger for short programs.
    spreads = [_INSTRUCTION_SPREAD * measured.instructions for measured in (first, second)]
    return _compare_bounds(
        nets, spreads, _INSTRUCTION_SPREAD * first_startup.instructions, factor, ("faster", "slower"), "instructions"
    )


def compare_memory(
    first: Measured, second: Measured, first_startup: Startup, second_startup: Startup, *, factor: float = 1.0
) -> Comparison:
    """Which has the lower peak, the interpreter's own taken off; values below 1 MiB count as 1 MiB.

    The interval is what the rounds' extremes allow.
    """
    _check_factor(factor)
    if not (first.ok and second.ok):
        return Comparison("undecided", None, None, "peak_memory_bytes")
    nets = first.net_memory_bytes(first_startup), second.net_memory_bytes(second_startup)
    spreads = [max(one.peak_memory_bytes) - min(one.peak_memory_bytes) for one in (first, second)]
    return _compare_bounds(nets, spreads, MEMORY_FLOOR_BYTES, factor, ("smaller", "larger"), "peak_memory_bytes")


def _compare_bounds(nets, spreads, floor: float, factor: float, words: tuple[str, str], unit: str) -> Comparison:
    lows = [max(net - spread, floor) for net, spread in zip(nets, spreads, strict=True)]
    highs = [max(net + spread, floor) for net, spread in zip(nets, spreads, strict=True)]
    interval = (lows[0] / highs[1], highs[0] / lows[1])
    ratio = max(nets[0], floor) / max(nets[1], floor)
    return Comparison(_verdict(interval, factor, *words), ratio, interval, unit)


def _check_factor(factor: float) -> None:
    if not factor >= 1:
        raise UsageError(f"factor {factor}: at least 1 is needed")


def _verdict(interval: tuple[float, float] | None, factor: float, better: str, worse: str) -> str:
    if interval is None:
        return "undecided"
    low, high = interval
    return better if high < 1 / factor else worse if low > factor else "undecided"


class Estimate(NamedTuple):
    """A centre and its interval; `low` and `high` are `None` with too few values."""

    centre: float
    low: float | None
    high: float | None


def hodges_lehmann(values: Sequence[float], confidence: float = CONFIDENCE) -> Estimate:
    """The median of all pairwise means, with the exact interval of Wilcoxon's signed-rank test.

    With W the signed-rank statistic of n values, the k-th smallest and largest of the n (n + 1) / 2 pairwise means
    enclose the centre of a symmetric distribution with probability 1 - 2 P(W < k) (Hollander and Wolfe, section 3.3).

    Raises:
        ValueError: No values.
    """
    if not values:
        raise ValueError("hodges_lehmann needs at least one value")
    n = len(values)
    means = sorted((values[i] + values[j]) / 2 for i in range(n) for j in range(i, n))
    middle = len(means) // 2
    centre = means[middle] if len(means) % 2 else (means[middle - 1] + means[middle]) / 2
    # ways[w]: of the 2^n sign patterns, those with rank sum w.
    ways = [1]
    for rank in range(1, n + 1):
        shifted = [0] * rank + ways
        ways = [a + b for a, b in zip(ways + [0] * rank, shifted, strict=True)]
    below, k = 0, 0
    while 2 * (below + ways[k]) <= (1 - confidence) * 2**n:
        below += ways[k]
        k += 1
    if k == 0:
        return Estimate(centre, None, None)
    return Estimate(centre, means[k - 1], means[-k])


def outputs_equal(first: bytes | str, second: bytes | str, *, tolerance: float | None = None) -> bool:
    """Whether two outputs say the same.

    White space at the ends of lines and empty lines at the end do not count. With a tolerance (1e-6 is usual), the
    white-space separated tokens are compared instead, and two numbers are equal if they differ by no more than that,
    absolutely or relative to the larger.
    """
    texts = [text if isinstance(text, str) else text.decode("utf-8", "surrogateescape") for text in (first, second)]
    if tolerance is None:
        return _lines(texts[0]) == _lines(texts[1])
    tokens = [text.split() for text in texts]
    return len(tokens[0]) == len(tokens[1]) and all(
        a == b or _close(a, b, tolerance) for a, b in zip(*tokens, strict=True)
    )


def _lines(text: str) -> list[str]:
    lines = [line.rstrip() for line in text.split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def _close(first: str, second: str, tolerance: float) -> bool:
    # Whole numbers are exact, however long: as floats two different ones can be equal.
    if first.lstrip("+-").isdecimal() and second.lstrip("+-").isdecimal():
        return first == second
    try:
        a, b = float(first), float(second)
    except ValueError:
        return False
    return math.isclose(a, b, rel_tol=tolerance, abs_tol=tolerance)
