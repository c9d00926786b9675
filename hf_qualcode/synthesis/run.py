"""One synthesis run, forward only: tasks, decontaminated, asked, stored, read, filtered, written.

Every step but the asking is done anew when the same run is started again; answers are asked for once.
"""

import json
import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from hf_qualcode.benchmark.drawing import Draws
from hf_qualcode.quality.sandbox import Sandbox
from hf_qualcode.synthesis.filters import (
    REASONS,
    Filtered,
    filter_candidates,
    passes_tests,
    read_candidates,
    unfiltered,
)
from hf_qualcode.synthesis.plan import Plan
from hf_qualcode.synthesis.prompts import prompt_version
from hf_qualcode.synthesis.store import RunStore
from hf_qualcode.synthesis.tasks import MAX_CHARACTERS, Task, read_tasks
from hf_qualcode.synthesis.variants import write_variants
from hf_qualcode.synthesis.writers import Writer, WriterSettings, load_writer
from hf_qualcode.types import QualcodeError, UsageError


VARIANTS, REPORT = "variants.jsonl", "report.json"
Progress = Callable[[str, int, int | None], None]


@dataclass(frozen=True, slots=True)
class RunSettings:
    """What is asked for; defaults are the paper's (SynH-Rank, section 5.4).

    Attributes:
        num_tasks (`int`, *optional*): Draw so many; defaults to all. The paper takes 1,000.
        dimensions (`tuple[str, ...]`, *optional*): Qualities; defaults to all.
        language (`str`): To write in.
        num_samples (`int`): Programs of each level.
        guided (`bool`): With guidelines; without: the ablation of section 6.2.
        filtered (`bool`): With filters; without: the second ablation.
        check_tests (`bool`): Run every program on its task's tests, and drop those that fail.
        decontaminate (`tuple[str, ...]`): Test sets no task may share 10 words in a row with.
        max_characters (`int`): Of a statement.
        seed (`int`): Of all draws.
        num_proc (`int`): Processes of writers that run programs.
        smells (`str`): Smell engine of writers that count smells.
    """

    num_tasks: int | None = None
    dimensions: tuple[str, ...] | None = None
    language: str = "python"
    num_samples: int = 4
    guided: bool = True
    filtered: bool = True
    check_tests: bool = False
    decontaminate: tuple[str, ...] = ()
    max_characters: int = MAX_CHARACTERS
    seed: int = 42
    num_proc: int = 1
    smells: str = "ruff"


def synthesize(
    tasks: str | Path,
    writer: str,
    out: str | Path,
    settings: RunSettings,
    writer_settings: WriterSettings,
    progress: Progress | None = None,
    watch: Callable[[Writer], None] | None = None,
) -> dict[str, Any]:
    """Makes variants of code for tasks.

    Leaves in `out`: `variants.jsonl`, `report.json` and, of a writer that answers prompts, `records.jsonl` and
    `manifest.json`. Started again with the same arguments it goes on where it was.

    Args:
        tasks (`str` or `Path`): A file of `read_tasks`; for the writer `rules` also a Project_CodeNet folder.
        writer (`str`): See `writers`.
        out (`str` or `Path`): Folder, made where it is not there.
        settings (`RunSettings`), writer_settings (`WriterSettings`): What is asked for, and of whom.
        progress (`Callable`, *optional*): Called as `progress(stage, done, total)`.
        watch (`Callable`, *optional*): Is given the writer before it starts, to look at its tally.

    Returns:
        `dict`: The report, JSON-able.

    Raises:
        `QualcodeError`, `UsageError`: Of the parts; whatever was answered before is kept.
    """
    out, module = Path(out), load_writer(writer)
    if settings.seed < 0 or settings.num_proc < 1:
        raise UsageError(f"--seed {settings.seed}, --num-proc {settings.num_proc}: 0 and 1 are the least")
    if settings.max_characters < 1:
        raise UsageError(f"--max-characters {settings.max_characters}: 1 or more is needed")
    writer_settings = replace(writer_settings, seed=settings.seed)
    if not module.ANSWERS_PROMPTS:
        return _change_code(Path(tasks), module, out, settings, writer_settings, progress)
    report: dict[str, Any] = {"writer": writer}
    chosen = _chosen_tasks(Path(tasks), settings, report, progress)
    answerer = module.open_writer(writer_settings)
    sampling = {
        name: getattr(writer_settings, name) for name in ("temperature", "top_p", "top_k", "max_tokens", "seed")
    }
    plan = Plan(
        chosen, answerer.model, sampling, dimensions=settings.dimensions, language=settings.language,
        num_samples=settings.num_samples, guided=settings.guided,
    )  # fmt: skip
    if watch is not None:
        watch(answerer)
    with RunStore(out) as store:
        manifest = {
            "model": answerer.model,
            "prompt_version": prompt_version(),
            "sampling": sampling,
            "settings": asdict(settings),
            "tasks": len(chosen),
            "requests": len(plan),
            "finished": False,
        }
        store.write_manifest(manifest)
        answerer.write(plan, store, progress)
        filtered = _filtered(plan, store, settings, writer_settings, progress)
        report |= {
            "model": answerer.model,
            "requests": len(plan),
            "answered_now": answerer.tally.written,
            "answered_before": answerer.tally.known,
            "outcomes": {name: filtered.counts[name] for name in REASONS if filtered.counts[name]},
            "tokens": _tokens(plan, store),
            "variants": len(filtered.variants),
            "variants_by_dimension": _by_dimension(filtered),
        }
        write_variants(out / VARIANTS, filtered.variants)
        _write_json(out / REPORT, report)
        store.write_manifest(
            manifest | {"finished": True, "outcomes": report["outcomes"], "tokens": report["tokens"]}
        )
    return report


def _chosen_tasks(path: Path, settings: RunSettings, report: dict, progress: Progress | None) -> list[Task]:
    """Decontaminated first, then drawn (section 5.4), in the order of the file."""
    found = read_tasks(path, max_characters=settings.max_characters)
    tasks = found.tasks
    report["tasks"] = {"read": dict(found.counts)}
    if settings.decontaminate:
        from hf_qualcode.benchmark.decontaminate import decontaminate, read_held_out

        tasks, contamination = decontaminate(
            tasks, [read_held_out(source) for source in settings.decontaminate], progress=progress
        )
        report["decontamination"] = contamination.report()
        report["tasks"]["contaminated"] = len(found.tasks) - len(tasks)
        if not tasks:
            raise QualcodeError(f"every task of {path} shares text with the test sets; name other tasks")
    tasks = _drawn(tasks, settings)
    report["tasks"]["used"] = len(tasks)
    return tasks


def _drawn(tasks: Sequence, settings: RunSettings) -> Sequence:
    """`num_tasks` of them, in their order."""
    if settings.num_tasks is None:
        return tasks
    if settings.num_tasks < 1:
        raise UsageError(f"--num-tasks {settings.num_tasks}: 1 or more is needed")
    places = sorted(list(Draws(settings.seed, "tasks").permutation(len(tasks)))[: settings.num_tasks])
    return [tasks[place] for place in places]


def _filtered(
    plan: Plan, store: RunStore, settings: RunSettings, writer_settings: WriterSettings, progress: Progress | None
) -> Filtered:
    candidates = read_candidates(plan, store)
    if not settings.filtered:
        return unfiltered(candidates, plan.tasks, plan.model)
    is_right = passes_tests(Sandbox.open(unsafe=writer_settings.unsafe)) if settings.check_tests else None
    return filter_candidates(candidates, plan.tasks, plan.model, is_right=is_right, progress=progress)


def _tokens(plan: Plan, store: RunStore) -> dict[str, int]:
    """Of all records of the plan, as far as they were told."""
    wanted = {key.digest() for key in plan.request_keys()}
    total: Counter[str] = Counter()
    for record in store.records():
        if record.key.digest() in wanted:
            for name in ("prompt_tokens", "completion_tokens"):
                total[name] += record.usage.get(name, 0)
    return dict(total)


def _by_dimension(filtered: Filtered) -> dict[str, dict[str, int]]:
    counts: dict[str, Counter[str]] = {}
    for variant in filtered.variants:
        counts.setdefault(variant.dimension, Counter())[variant.level] += 1
    return {name: dict(levels) for name, levels in sorted(counts.items())}


def _change_code(
    tasks: Path, module, out: Path, settings: RunSettings, writer_settings: WriterSettings, progress: Progress | None
) -> dict[str, Any]:
    """A run of a writer that changes the code that tasks come with."""
    from hf_qualcode.synthesis.rule_sources import read_sources

    report: dict[str, Any] = {"writer": module.__name__.rpartition(".")[2]}
    if tasks.is_dir():
        if settings.decontaminate:
            raise UsageError("--decontaminate compares statements of a task file; a CodeNet folder has none")
        given: Sequence = _drawn(read_sources(tasks), settings)
    else:
        given = _chosen_tasks(tasks, settings, report, progress)
    out.mkdir(parents=True, exist_ok=True)
    done = module.write_variants(
        given, out, writer_settings, progress, num_proc=settings.num_proc, smells=settings.smells
    )
    report |= {"programs": done.pop("tasks"), **done}
    _write_json(out / REPORT, report)
    return report


def _write_json(path: Path, content: Any) -> None:
    draft = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        draft.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
        draft.replace(path)
    except OSError as error:
        raise QualcodeError(f"{path} cannot be written ({error.strerror or error})") from error
    finally:
        draft.unlink(missing_ok=True)
