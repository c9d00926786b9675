"""Changes code that is there by transformations, and keeps what is proven: no language model is needed.

Each program is changed by every transformation that finds something to change, and each change is verified in the
sandbox (`hf_qualcode.synthesis.verification`). A verified change is a pair: the original and the changed program, one
of them the better one.
"""

import hashlib
import importlib.util
import json
import os
import platform
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hf_qualcode.benchmark.drawing import Draws
from hf_qualcode.benchmark.workers import run_tasks
from hf_qualcode.quality.sandbox import Sandbox
from hf_qualcode.quality.smells import load_engine
from hf_qualcode.synthesis.append_log import AppendLog
from hf_qualcode.synthesis.rule_sources import RuleSource, function_source
from hf_qualcode.synthesis.rules import group_of, load_transformation, transform, transformation_names
from hf_qualcode.synthesis.variants import Variant
from hf_qualcode.synthesis.variants import write_variants as write_variants_file
from hf_qualcode.synthesis.verification import OUTCOMES, VERSION, Candidate, verify
from hf_qualcode.synthesis.writers._base import Progress, WriterSettings
from hf_qualcode.types import QualcodeError


NEEDS = "tasks with code and tests, or a Project_CodeNet folder"
ANSWERS_PROMPTS = False

STAGE = "verifying"
RESULTS, PAIRS, VARIANTS = "rules.jsonl", "pairs.jsonl", "variants.jsonl"
SOURCE = "rules"
# Seams between the names of transformations that were applied one after another.
AND_THEN = "+"
_FIELDS = frozenset(("task_id", "subject", "rules", "version", "results"))


@dataclass(frozen=True, slots=True)
class RuleSettings:
    """How programs are changed.

    Attributes:
        seed (`int`, defaults to 42): Of every choice.
        smells (`str`, defaults to `"ruff"`): Smell engine.
        unsafe (`bool`, defaults to `False`): Run programs without isolation where none works.
        most (`int`, *optional*): Changes tried for a program and dimension; defaults to all.
        stacked (`int`, defaults to 1): Of them, those by two transformations, one after the other.
        names (`tuple[str, ...]`, *optional*): Transformations; defaults to all.
    """

    seed: int = 42
    smells: str = "ruff"
    unsafe: bool = False
    most: int | None = None
    stacked: int = 1
    names: tuple[str, ...] | None = None


def write_variants(
    tasks: Iterable[Any],
    out: Path,
    settings: WriterSettings,
    progress: Progress | None = None,
    *,
    num_proc: int = 1,
    **options: Any,
) -> dict:
    """Changes the code of tasks and leaves `variants.jsonl` and `pairs.jsonl` in a folder.

    Verified results are kept in `rules.jsonl` as they come: the same call goes on where it was.

    Args:
        tasks (`Iterable`): `Task`s with code and tests, or `RuleSource`s.
        out (`Path`): The folder.
        settings (`WriterSettings`): `seed` and `unsafe` count here.
        progress (`Callable`, *optional*): Called as `progress(stage, done, total)`, in programs.
        num_proc (`int`, *optional*, defaults to 1): Processes.
        options: As of `RuleSettings`.

    Returns:
        `dict`: JSON-able: counts of outcomes by group and transformation (`table`), and of pairs and variants.

    Raises:
        `QualcodeError`: Programs cannot be shut in on this machine, or the folder cannot be written.
    """
    chosen = RuleSettings(seed=settings.seed, unsafe=settings.unsafe, **options)
    sources, without_code = [], 0
    for task in tasks:
        source = task if isinstance(task, RuleSource) else _source_of(task)
        without_code += source is None
        sources += [] if source is None else [source]
    with AppendLog(Path(out) / RESULTS) as log:
        rows = _verified_rows(sources, log, chosen, num_proc, progress)
    report = _write_files(Path(out), sources, rows)
    return report | {"tasks": len(sources), "tasks_without_code_or_tests": without_code, "settings": asdict(chosen)}


def _source_of(task: Any) -> RuleSource | None:
    code, tests = getattr(task, "code", None), getattr(task, "tests", None)
    if not code or not tests:
        return None
    return function_source(task.id, task.query, code, list(tests), getattr(task, "setup", "") or "")


def _verified_rows(
    sources: Sequence[RuleSource], log: AppendLog, settings: RuleSettings, num_proc: int, progress: Progress | None
) -> dict[str, dict]:
    key = _rules_digest(settings)
    # Of several lines of one program the last counts.
    known = {row["task_id"]: row for row in log if row.keys() >= _FIELDS}
    rows, waiting = {}, []
    for source in sources:
        row = known.get(source.task_id)
        same = row is not None and row["subject"] == _subject_digest(source)
        if same and row["rules"] == key:
            rows[source.task_id] = row
        else:
            waiting.append((source, row["results"] if same and row["version"] == VERSION else {}))
    if progress:
        progress(STAGE, 0, len(waiting))
    if num_proc > 1:
        finished: Iterator = run_tasks(open_worker, (settings,), waiting, num_proc)
    else:
        finished = _work_here(settings, waiting)
    for done, (task_id, subject, results) in enumerate(finished, start=1):
        row = {"task_id": task_id, "subject": subject, "rules": key, "version": VERSION, "results": results}
        log.append(row)
        rows[task_id] = row
        if progress:
            progress(STAGE, done, len(waiting))
    return rows


def _work_here(settings: RuleSettings, waiting: Sequence[tuple]) -> Iterator[tuple]:
    with open_worker(settings) as work:
        yield from map(work, waiting)


@contextmanager
def open_worker(settings: RuleSettings) -> Iterator:
    """A function that verifies one program, and what it needs. Runs in processes of its own as well."""
    sandbox = Sandbox.open(unsafe=settings.unsafe)
    with load_engine(settings.smells) as engine:

        def work(task: tuple[RuleSource, dict]) -> tuple[str, str, dict]:
            source, known = task
            return source.task_id, _subject_digest(source), _results(source, known, sandbox, engine, settings)

        yield work


def _results(source: RuleSource, known: dict, sandbox: Sandbox, engine, settings: RuleSettings) -> dict[str, dict]:
    """Transformation -> outcome, and for changed programs code and evidence; what is known is taken over."""
    changed = _changed(source, settings)
    results = {name: {"outcome": outcome} for name, (outcome, _) in changed.items() if outcome != "changed"}
    open_ = []
    for name, (outcome, code) in changed.items():
        if outcome != "changed":
            continue
        before = known.get(name)
        if before is not None and before.get("code") == code:
            results[name] = before
        else:
            open_.append((name, code))
    candidates = []
    for name, code in open_:
        first = load_transformation(name.split(AND_THEN)[0])
        candidates.append(Candidate(first.DIMENSION, first.LEVEL, code))
    verdicts = verify(sandbox, source.subject, candidates, engine)
    for (name, code), verdict in zip(open_, verdicts, strict=True):
        results[name] = {"outcome": verdict.outcome, "code": code, "evidence": verdict.evidence}
    return dict(sorted(results.items()))


def _changed(source: RuleSource, settings: RuleSettings) -> dict[str, tuple[str, str]]:
    """Transformation -> what came of it, and the changed text; those not chosen are `"not_drawn"`."""
    names = settings.names or transformation_names()
    found: dict[str, tuple[str, str]] = {}
    by_dimension: dict[str, list[str]] = defaultdict(list)
    for name in names:
        made = transform(source.subject.code, load_transformation(name), Draws(settings.seed, source.task_id, name))
        found[name] = (made.outcome, made.code)
        if made.outcome == "changed":
            by_dimension[load_transformation(name).DIMENSION].append(name)
    for dimension, changed in sorted(by_dimension.items()):
        draws = Draws(settings.seed, source.task_id, dimension)
        order = [changed[place] for place in draws.permutation(len(changed))]
        for name in order[settings.most :] if settings.most is not None else ():
            found[name] = ("not_drawn", "")
        for name, code in _stacked(source, order[: settings.most], found, settings):
            found[name] = ("changed", code)
    return found


def _stacked(
    source: RuleSource, order: Sequence[str], found: dict, settings: RuleSettings
) -> Iterator[tuple[str, str]]:
    left = settings.stacked
    pairs = [(first, second) for place, first in enumerate(order) for second in order[place + 1 :]]
    for first, second in pairs:
        levels = {load_transformation(name).LEVEL for name in (first, second)}
        if not left or levels != {"low"}:
            continue
        name = f"{first}{AND_THEN}{second}"
        both = transform(found[first][1], load_transformation(second), Draws(settings.seed, source.task_id, name))
        if both.outcome == "changed" and both.code not in {code for _, code in found.values()}:
            left -= 1
            yield name, both.code


def _subject_digest(source: RuleSource) -> str:
    return _digest([type(source.subject).__name__, asdict(source.subject)])


def _rules_digest(settings: RuleSettings) -> str:
    """Of everything but the program that decides a result: settings, interpreter and the transformations' own text."""
    package = "hf_qualcode.synthesis.rules"
    folder = Path(importlib.util.find_spec(package).origin).parent
    texts = [[path.name, path.read_text(encoding="utf-8")] for path in sorted(folder.glob("*.py"))]
    return _digest([VERSION, platform.python_version(), asdict(settings), texts])


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def _write_files(out: Path, sources: Sequence[RuleSource], rows: dict[str, dict]) -> dict:
    table: dict[str, Counter] = defaultdict(Counter)
    pairs, variants = [], []
    for source in sources:
        found = []
        for name, result in rows[source.task_id]["results"].items():
            first = load_transformation(name.split(AND_THEN)[0])
            table[name][result["outcome"]] += 1
            if result["outcome"] == "verified":
                found.append(_pair(source, name, first, result))
        pairs += found
        variants += _variants(found)
    _write_lines(out / PAIRS, pairs)
    write_variants_file(out / VARIANTS, variants)
    groups = Counter(pair["group"] for pair in pairs)
    return {
        "pairs": len(pairs),
        "variants": len(variants),
        "pairs_by_group": dict(sorted(groups.items())),
        "table": {name: dict(sorted(counts.items())) for name, counts in sorted(table.items())},
        "outcomes": OUTCOMES,
    }


def _pair(source: RuleSource, name: str, first, result: dict) -> dict:
    original, changed = source.subject.code, result["code"]
    high, low = (original, changed) if first.LEVEL == "low" else (changed, original)
    return {
        "task_id": source.task_id,
        "query": source.query,
        "dimension": first.DIMENSION,
        "group": group_of(first),
        "transformation": name,
        "level": first.LEVEL,
        "high": high,
        "low": low,
        "evidence": result["evidence"],
    }


def _variants(pairs: list[dict]) -> list[Variant]:
    """The variants of one program: in each dimension those that are better than the others, and the others.

    Where the program was both bettered and worsened, the bettered ones are the high side, and it is a low one itself.
    """
    rows: dict[tuple[str, str], Variant] = {}
    for dimension in sorted({pair["dimension"] for pair in pairs}):
        own = [pair for pair in pairs if pair["dimension"] == dimension]
        bettered = any(pair["level"] == "high" for pair in own)
        for pair in own:
            sides = ["low"] if bettered and pair["level"] == "low" else ["high", "low"]
            for side in sides:
                evidence = {"transformation": pair["transformation"], **pair["evidence"]}
                texts = (pair["task_id"], dimension, side, pair["group"], pair["query"], pair[side], SOURCE)
                rows.setdefault((dimension, pair[side]), Variant(*texts, evidence))
    return list(rows.values())


def _write_lines(path: Path, rows: list[dict]) -> None:
    aside = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        with aside.open("w", encoding="utf-8") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
        aside.replace(path)
    except OSError as error:
        raise QualcodeError(f"{path} cannot be written ({error.strerror or error})") from error
    finally:
        aside.unlink(missing_ok=True)


def format_table(report: dict) -> str:
    """The outcomes as lines: group, transformation, how often it applied, and what came of it."""
    columns = ("verified", "not_worse", "too_small", "wrong_output", "original_fails", "over_the_limits")
    lines = [f"{'group':24s} {'transformation':44s} {'applied':>7s} " + " ".join(f"{name:>15s}" for name in columns)]
    for name, counts in report["table"].items():
        applied = sum(count for outcome, count in counts.items() if outcome in OUTCOMES)
        if applied:
            group = group_of(load_transformation(name.split(AND_THEN)[0]))
            lines.append((group, name, applied, [counts.get(column, 0) for column in columns]))
    rows = sorted(line for line in lines if not isinstance(line, str))
    shown = [f"{group:24s} {name:44s} {applied:7d} " + " ".join(f"{count:15d}" for count in counts)
             for group, name, applied, counts in rows]  # fmt: skip
    return "\n".join([lines[0], *shown])
