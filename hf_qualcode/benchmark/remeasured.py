"""Speed and memory measured again: every program of a problem on one CPython, on the same large inputs.

The judge's numbers are single timings of several machines and interpreters. Here a problem's programs are run in the
sandbox on inputs of growing sizes, given or generated from the statement's constraints, and those inputs are used
that the programs themselves vouch for (`trials`). What starting the interpreter and importing cost is subtracted.

- Speed: instructions, by Valgrind, where that is installed; else CPU time, the least of several interleaved rounds.
- Memory: peak resident memory.

Both have a floor, below which a ratio would be one of noise. A program that fails, runs over its limits or gives
another answer than the majority has no value; it is counted under a reason, and so is a problem without a usable
input.
"""

import hashlib
import json
import os
import platform
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from hf_qualcode.benchmark.inputs import generate_inputs
from hf_qualcode.benchmark.statements import Statement, read_statement
from hf_qualcode.benchmark.trials import MIN_AGREEING, MIN_SIZES, Answer, InputVerdict, choose_inputs, judge_input
from hf_qualcode.benchmark.workers import run_tasks
from hf_qualcode.quality import measuring
from hf_qualcode.quality.sandbox import Limits, Run, Sandbox
from hf_qualcode.types import QualcodeError


STAGE = "measuring problems"
FORMAT = 2

ROUNDS = 3
LIMITS = Limits(cpu_seconds=10, memory_bytes=1 << 30)
# Enough to tell programs apart; larger inputs would only take longer.
ENOUGH_SECONDS = 1.0
# Under Valgrind a program is 40 to 100 times slower.
COUNTING_SLOWDOWN = 150
SIZES = (0.003, 0.02, 0.1, 0.3, 1.0)

MIN_INSTRUCTIONS = 5_000_000
MIN_CPU_MS = 5.0
MIN_MEMORY_KB = 1024.0

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


@dataclass(frozen=True)
class Remeasured:
    """What was measured.

    Attributes:
        values (`dict`): (problem id, submission id) -> dimension -> value, lower is better.
        unit (`dict[str, str]`): Dimension -> unit.
        report (`dict`): JSON-able: counts by reason, and every problem with its inputs.
    """

    values: dict[tuple[str, str], dict[str, float]]
    unit: dict[str, str]
    report: dict = field(repr=False)


def check_measuring(inputs: Path | None = None) -> Sandbox:
    """Opens the sandbox and looks whether there are inputs: what can be told before a long run begins.

    Raises:
        `QualcodeError`: When programs cannot be shut in on this machine, or `inputs` holds none.
    """
    if inputs is not None and not any(path.is_file() for path in Path(inputs).glob("*/*.in")):
        raise QualcodeError(f"{inputs} holds no inputs; expected files like {inputs}/p00001/1.in")
    return Sandbox.open()


def remeasure(
    collection,
    work: Path,
    *,
    inputs: Path | None = None,
    count_instructions: bool | None = None,
    num_proc: int = 1,
    progress=None,
) -> Remeasured:
    """Measures the programs of a collection again.

    Args:
        collection (`Collection`): The programs.
        work (`Path`): Folder for results, one file a problem: an interrupted run goes on where it was.
        inputs (`Path`, *optional*): Folder `pNNNNN/*.in`, in growing size by length. Without it inputs are generated.
        count_instructions (`bool`, *optional*): Speed by instructions; defaults to whether Valgrind is installed.
        num_proc (`int`, *optional*, defaults to 1): Processes, each on problems of its own. Instructions and memory do
            not feel each other; times do a little.
        progress (`Callable`, *optional*): Called as `progress(stage, done, total)`.

    Returns:
        `Remeasured`: Values, and what was left out and why.

    Raises:
        `QualcodeError`: When programs cannot be shut in on this machine, or `inputs` holds none.
    """
    sandbox = check_measuring(inputs)
    if count_instructions is None:
        count_instructions = shutil.which("valgrind", path="/usr/bin:/usr/local/bin:/bin") is not None
    results = Path(work) / "remeasured"
    results.mkdir(parents=True, exist_ok=True)
    arguments = (collection, results, inputs, count_instructions)
    problem_ids = list(collection.problem_ids)
    if progress:
        progress(STAGE, 0, len(problem_ids))
    if num_proc > 1:
        finished: Iterator = run_tasks(_open_measuring, arguments, problem_ids, num_proc)
    else:
        finished = _measure_here(arguments, problem_ids)
    for done, _ in enumerate(finished, start=1):
        if progress:
            progress(STAGE, done, len(problem_ids))
    by_problem = {problem_id: json.loads(_result_path(results, problem_id).read_text()) for problem_id in problem_ids}
    return _summarise(by_problem, count_instructions, sandbox.isolation)


@contextmanager
def _open_measuring(collection, results: Path, inputs: Path | None, counts_instructions: bool):
    bench = _Bench(Sandbox.open(), counts_instructions)

    def measure(problem_id: str) -> str:
        problem = collection.problem(problem_id)
        programs = {program.submission_id: collection.text(program) for program in problem.programs}
        statement = read_statement(collection.description(problem_id).decode("utf-8", "replace"))
        tried = _given_inputs(inputs, problem_id) if inputs is not None else _generated_inputs(statement)
        key = _key(programs, statement, tried, counts_instructions, bench.sandbox.isolation)
        path = _result_path(results, problem_id)
        if not _is_finished(path, key):
            result = {"key": key, **measure_problem(bench, statement, programs, tried)}
            aside = path.with_suffix(f".{os.getpid()}.partial")
            aside.write_text(json.dumps(result, indent=1) + "\n")
            aside.replace(path)
        return problem_id

    def measure_or_say(problem_id: str) -> str:
        try:
            return measure(problem_id)
        except OSError as error:  # the disk is full, or an input cannot be read
            raise QualcodeError(f"{problem_id} could not be measured: {error}") from error

    yield measure_or_say


def _measure_here(arguments: tuple, problem_ids: Sequence[str]) -> Iterator[str]:
    with _open_measuring(*arguments) as measure:
        yield from map(measure, problem_ids)


def _result_path(results: Path, problem_id: str) -> Path:
    return results / f"{problem_id}.json"


def _is_finished(path: Path, key: str) -> bool:
    try:
        return json.loads(path.read_text())["key"] == key
    except (OSError, ValueError, KeyError, TypeError):
        return False  # not begun, cut off or made by another version: measured anew


def _key(programs: Mapping[str, str], statement: Statement, tried, counts_instructions: bool, isolation: str) -> str:
    """Everything that decides a problem's result but the machine."""
    settings = [FORMAT, platform.python_version(), counts_instructions, isolation, ROUNDS, repr(LIMITS), SIZES]
    samples = [[sample.input, sample.output] for sample in statement.samples]
    names = tried if isinstance(tried, str) else [[one.name, one.size, one.text.hex()] for one in tried]
    whole = json.dumps([settings, sorted(programs.items()), samples, names])
    return hashlib.sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()


def _given_inputs(folder: Path, problem_id: str) -> list[MeasuredInput] | str:
    found = [path for path in (Path(folder) / problem_id).glob("*.in") if path.is_file()]
    files = sorted(found, key=lambda path: (path.stat().st_size, path.name))
    return [MeasuredInput(path.name, path.stat().st_size, path.read_bytes()) for path in files] or "none given"


def _generated_inputs(statement: Statement) -> list[MeasuredInput] | str:
    generated = generate_inputs(statement, SIZES, seed=0)
    if not isinstance(generated, list | tuple):
        return generated.reason
    return [MeasuredInput(f"generated-{one.size:g}", one.size, one.text.encode()) for one in generated]


class _Bench:
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
    bench: _Bench, statement: Statement, programs: Mapping[str, str], tried: Sequence[MeasuredInput] | str
) -> dict:
    """Measures the programs of one problem.

    Args:
        bench: The sandbox with its calibration.
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


def _passes_samples(bench: _Bench, statement: Statement, text: str) -> bool:
    if bench.cost(text) is None:
        return False
    for sample in statement.samples:
        run = bench.sandbox.run(text, sample.input.encode(), limits=LIMITS)
        if run.outcome != "ok" or not _same(run.stdout, sample.output.encode()):
            return False
    return True


def _try_inputs(
    bench: _Bench, sound: Mapping[str, str], tried: Sequence[MeasuredInput]
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
    bench: _Bench, sound: Mapping[str, str], stdin: bytes, answers: dict[str, Answer]
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


def _answer(bench: _Bench, text: str, stdin: bytes) -> Answer:
    run = bench.sandbox.run(text, stdin, limits=LIMITS)
    return Answer(run.outcome, run.stdout, run.cpu_seconds - bench.cost(text).cpu_seconds)


def _why_dropped(answers: Sequence[Answer]) -> str:
    outcomes = {answer.outcome for answer in answers}
    if outcomes & {"timeout", "memory", "output"}:
        return "over_the_limits"
    return "disagrees" if outcomes == {"ok"} else "fails"


def _measure(bench: _Bench, programs: Mapping[str, str], speed_input: bytes, memory_input: bytes) -> dict[str, dict]:
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


def _summarise(by_problem: Mapping[str, dict], counts_instructions: bool, isolation: str) -> Remeasured:
    values, problems, programs = {}, Counter(), Counter()
    for problem_id, result in by_problem.items():
        measured = {
            name: _values(row, counts_instructions)
            for name, row in result["programs"].items()
            if row["outcome"] == "measured"
        }
        problems[result["outcome"]] += 1
        programs.update(row["outcome"] for row in result["programs"].values())
        values |= {(problem_id, name): value for name, value in measured.items()}
    speed = "millions of instructions" if counts_instructions else "ms of CPU time"
    report = {
        "isolation": isolation,
        "python": platform.python_version(),
        "speed_by": "instructions" if counts_instructions else "cpu_time",
        "floors": {"instructions": MIN_INSTRUCTIONS, "cpu_ms": MIN_CPU_MS, "memory_kb": MIN_MEMORY_KB},
        "problems": dict(sorted(problems.items())),
        "programs": dict(sorted(programs.items())),
        "problem_reasons": PROBLEM_REASONS,
        "program_reasons": PROGRAM_REASONS,
        "by_problem": {
            problem_id: {name: part for name, part in result.items() if name != "key"}
            for problem_id, result in by_problem.items()
        },
    }
    unit = {
        "speed": f"{speed}, net of start-up and imports",
        "memory": "KB of peak resident memory, net of start-up and imports",
    }
    return Remeasured(values, unit, report)


def _values(row: Mapping, counts_instructions: bool) -> dict[str, float]:
    if counts_instructions:
        speed = max(MIN_INSTRUCTIONS, row["instructions"] - row["import_instructions"]) / 1e6
    else:
        speed = max(MIN_CPU_MS, 1000 * (row["cpu_seconds"] - row["import_cpu_seconds"]))
    return {"speed": speed, "memory": max(MIN_MEMORY_KB, (row["peak_bytes"] - row["import_peak_bytes"]) / 1024)}


def _same(first: bytes, second: bytes) -> bool:
    return measuring.outputs_equal(first, second, tolerance=TOLERANCE)
