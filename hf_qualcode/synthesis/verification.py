"""Whether a changed program still does the same, and is really better or worse: run and measured in the sandbox.

    sandbox = Sandbox.open()
    (verdict,) = verify(sandbox, FunctionSubject(code, tests), [Candidate("speed", "low", changed)])
    verdict.outcome, verdict.evidence

- Speed: both versions are called in one process, by turns, on the tests' arguments enlarged in their own types, until
  the slower one takes 100 ms of CPU time; start-up and imports are outside. The slower must take 1.5 times as long.
- Memory: the peak of `tracemalloc` during the call, in a separate run: at least 1 MB more, and 1.5 times as much.
- Other dimensions: more findings of a smell engine.
"""

import json
import secrets
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

from hf_qualcode.quality import dimension_names
from hf_qualcode.quality.sandbox import Limits, Sandbox
from hf_qualcode.quality.smells import SmellEngine
from hf_qualcode.synthesis.verifying.subjects import FunctionSubject, ProgramSubject, Subject
from hf_qualcode.types import QualcodeError, UsageError


__all__ = ["OUTCOMES", "Candidate", "FunctionSubject", "ProgramSubject", "Verdict", "verify"]

MIN_SECONDS = 0.1
SPEED_FACTOR = 1.5
MIN_BYTES = 1_000_000
MEMORY_FACTOR = 1.5
# Of a few candidates in one run; each has limits of its own inside.
CANDIDATES_PER_RUN = 6
LIMITS = Limits(cpu_seconds=600, wall_seconds=8000, memory_bytes=2 << 30, output_bytes=8 << 20, file_bytes=128 << 20)
# A change of how a pair is run, measured or judged makes results of before no longer count.
VERSION = 5

OUTCOMES = {
    "verified": "does the same, and its quality differs as it should",
    "wrong_output": "fails, or gives another answer, on the tests or on larger inputs",
    "not_worse": "measured, but the quality differs too little or the other way round",
    "too_small": "no input, enlarged as far as it goes, takes 100 ms or 1 MB",
    "no_inputs": "no test calls the function with literals, or no inputs are known for the program",
    "original_fails": "the original itself fails its tests or samples here",
    "over_the_limits": "needs more time, memory or stack than the sandbox gives",
    "not_analysed": "the smell engine could not read it",
}

_PARTS = ("comparing", "enlarging", "runs", "function_runs", "program_runs", "inside")


class Candidate(NamedTuple):
    """A changed program.

    Attributes:
        dimension (`str`): The quality that was changed.
        level (`str`): `"low"`: it should be worse than the original. `"high"`: better.
        code (`str`): The text.
    """

    dimension: str
    level: str
    code: str


class Verdict(NamedTuple):
    """What verification says.

    Attributes:
        outcome (`str`): One of `OUTCOMES`.
        evidence (`dict`): JSON-able: `unit`, `high` and `low` (the values of the better and the worse side), `ratio`,
            and on what they were measured; empty where nothing was.
    """

    outcome: str
    evidence: dict


def verify(
    sandbox: Sandbox, subject: Subject, candidates: Sequence[Candidate], engine: SmellEngine | None = None
) -> list[Verdict]:
    """Verifies changed versions of one program.

    Args:
        sandbox (`Sandbox`): Where they run.
        subject (`FunctionSubject` or `ProgramSubject`): The original and its tests.
        candidates (`Sequence[Candidate]`): The versions.
        engine (`SmellEngine`, *optional*): Needed for candidates of other dimensions than speed and memory.

    Returns:
        `list[Verdict]`: In their order.

    Raises:
        `UsageError`: A dimension that there is not, or one that needs an engine and none is given.
        `QualcodeError`: The sandbox could not run anything.
    """
    for candidate in candidates:
        if candidate.dimension not in dimension_names():
            raise UsageError(f"unknown quality {candidate.dimension!r}; choose from: {', '.join(dimension_names())}")
        if candidate.dimension not in _JUDGES and engine is None:
            raise UsageError(f"candidates of {candidate.dimension} need a smell engine, and none was given")
    if not candidates:
        return []
    tasks = [(one.code, _measure(one.dimension)) for one in candidates]
    reports = []
    for start in range(0, len(tasks), CANDIDATES_PER_RUN):
        reports += _run(sandbox, subject, tasks[start : start + CANDIDATES_PER_RUN])
    verdicts = []
    smelly = [number for number, one in enumerate(candidates) if _measure(one.dimension) == "equality"
              and reports[number]["outcome"] == "measured"]  # fmt: skip
    rules = engine.analyse([subject.code, *(candidates[number].code for number in smelly)]) if smelly else [None]
    smells = dict(zip(smelly, rules[1:], strict=True))
    for number, (candidate, report) in enumerate(zip(candidates, reports, strict=True)):
        if report["outcome"] != "measured":
            outcome = {"no_calls": "no_inputs"}.get(report["outcome"], report["outcome"])
            verdicts.append(Verdict(outcome, {}))
        elif candidate.dimension in _JUDGES:
            verdicts.append(_best([_JUDGES[candidate.dimension](candidate, trial) for trial in report["trials"]]))
        else:
            verdicts.append(_judge_smells(candidate, rules[0], smells[number], engine.name))
    return verdicts


def _measure(dimension: str) -> str:
    return dimension if dimension in _JUDGES else "equality"


def _run(sandbox: Sandbox, subject: Subject, candidates: list[tuple[str, str]]) -> list[dict]:
    word = secrets.token_hex(16)
    job = subject.job() | {"word": word, "candidates": candidates}
    # Surrogates and whatever else a text may hold travel as escapes.
    run = sandbox.run(_program(), json.dumps(job).encode(), limits=LIMITS)
    reports = [{"outcome": "over_the_limits"} for _ in candidates]
    for line in run.stdout.decode("utf-8", "replace").splitlines():
        if line.startswith(f"{word} "):
            number, report = json.loads(line.removeprefix(word))
            reports[number] = report
    if not run.stdout and run.outcome == "failed":
        said = run.stderr.decode(errors="replace").strip().splitlines()
        raise QualcodeError(f"nothing could be compared in the sandbox: {said[-1] if said else 'no reason given'}")
    return reports


def _program() -> str:
    """The text that the sandbox runs: the modules it needs, under their own names, and a call of the last one."""
    package = f"{__name__.rpartition('.')[0]}.verifying"
    folder = Path(__file__).parent / "verifying"
    sources = [(f"{package}.{name}", (folder / f"{name}.py").read_text(encoding="utf-8")) for name in _PARTS]
    return (
        "import sys, types\n"
        # A parent that is found, so that the import system looks no further.
        f"for name, source in {sources!r}:\n"
        "    for end in range(name.count('.')):\n"
        "        parent = '.'.join(name.split('.')[:end + 1])\n"
        "        sys.modules.setdefault(parent, types.ModuleType(parent)).__path__ = []\n"
        "    module = sys.modules[name] = types.ModuleType(name)\n"
        "    setattr(sys.modules[name.rpartition('.')[0]], name.rpartition('.')[2], module)\n"
        "    exec(compile(source, name, 'exec', dont_inherit=True), module.__dict__)\n"
        f"sys.modules['{package}.inside'].main()\n"
    )


def _sides(candidate: Candidate, values: Sequence[float]) -> SimpleNamespace:
    """Values of original and candidate as those of the side that should be better and of the other one."""
    original, changed = values
    high, low = (original, changed) if candidate.level == "low" else (changed, original)
    return SimpleNamespace(high=high, low=low, ratio=round(low / high, 3) if high else float(low > 0))


def _judge_speed(candidate: Candidate, trial: dict) -> Verdict:
    sides = _sides(candidate, trial.get("seconds", (0.0, 0.0)))
    evidence = {"unit": "cpu_seconds", "high": sides.high, "low": sides.low, "ratio": sides.ratio, **_where(trial)}
    if max(sides.high, sides.low) < MIN_SECONDS:
        return Verdict("too_small", evidence)
    return Verdict("verified" if sides.low >= SPEED_FACTOR * sides.high else "not_worse", evidence)


def _judge_memory(candidate: Candidate, trial: dict) -> Verdict:
    sides = _sides(candidate, trial["peaks"])
    evidence = {"unit": "peak_bytes", "high": sides.high, "low": sides.low, "ratio": sides.ratio, **_where(trial)}
    if max(sides.high, sides.low) < MIN_BYTES:
        return Verdict("too_small", evidence)
    is_worse = sides.low >= MEMORY_FACTOR * sides.high and sides.low - sides.high >= MIN_BYTES
    return Verdict("verified" if is_worse else "not_worse", evidence)


def _judge_smells(
    candidate: Candidate, original: tuple[str, ...] | None, changed: tuple[str, ...] | None, engine: str
) -> Verdict:
    if original is None or changed is None:
        return Verdict("not_analysed", {})
    sides = _sides(candidate, (len(original), len(changed)))
    added = {rule: changed.count(rule) - original.count(rule) for rule in {*original, *changed}}
    evidence = {
        "unit": "smells",
        "high": sides.high,
        "low": sides.low,
        "engine": engine,
        "rules": {rule: count for rule, count in sorted(added.items()) if count},
    }
    return Verdict("verified" if sides.low > sides.high else "not_worse", evidence)


def _where(trial: dict) -> dict:
    return {name: trial[name] for name in ("mode", "scale", "bytes", "calls", "repeats") if name in trial}


def _best(verdicts: list[Verdict]) -> Verdict:
    """Of several ways to enlarge the inputs the one that shows most."""
    order = ("verified", "not_worse", "too_small")
    return min(verdicts, key=lambda verdict: order.index(verdict.outcome), default=Verdict("no_inputs", {}))


_JUDGES = {"speed": _judge_speed, "memory": _judge_memory}
