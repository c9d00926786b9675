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

from hf_qualcode.benchmark.inputs import generate_inputs
from hf_qualcode.benchmark.problem_costs import (
    LIMITS,
    PROBLEM_REASONS,
    PROGRAM_REASONS,
    ROUNDS,
    Bench,
    MeasuredInput,
    measure_problem,
)
from hf_qualcode.benchmark.statements import Statement, read_statement
from hf_qualcode.benchmark.workers import run_tasks
from hf_qualcode.quality.sandbox import Sandbox
from hf_qualcode.types import QualcodeError


STAGE = "measuring problems"
FORMAT = 2

SIZES = (0.003, 0.02, 0.1, 0.3, 1.0)

MIN_INSTRUCTIONS = 5_000_000
MIN_CPU_MS = 5.0
MIN_MEMORY_KB = 1024.0


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
    bench = Bench(Sandbox.open(), counts_instructions)

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
