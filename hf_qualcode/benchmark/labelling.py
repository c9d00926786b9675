"""Where labels come from, and the configuration that stores them all: one row for every program."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from hf_qualcode.benchmark.programs import Program
from hf_qualcode.benchmark.remeasured import remeasure
from hf_qualcode.benchmark.writing import RowWriter
from hf_qualcode.quality import get_dimension


@dataclass(frozen=True)
class LabelSource:
    """What the values of a data set are.

    Attributes:
        name (`str`): `"judge"` or `"remeasured"`.
        sources (`dict[str, str]`): Dimension -> where its values come from, in words for the card.
        units (`dict[str, str]`): Dimension -> unit of its values.
        remeasured (`Mapping`): (problem id, submission id) -> dimension -> value measured again; empty for `judge`.
        report (`Mapping`): JSON-able account of the measuring.
    """

    name: str
    sources: dict[str, str]
    units: dict[str, str]
    remeasured: Mapping[tuple[str, str], Mapping[str, float]] = field(default_factory=dict, repr=False)
    report: Mapping = field(default_factory=dict)


def smell_source(engine) -> str:
    """Where numbers of smells come from, in words. A proxy is called one.

    Args:
        engine (`SmellEngine`, *optional*): What counts the smells.
    """
    if engine is None:
        return "no smell engine was used, so maintainability has no labels"
    named = f"number of maintainability smells by {engine.name} {engine.version}"
    return f"{named}, a proxy: not the analyser of the paper" if engine.is_proxy else named


def judge_labels(engine) -> LabelSource:
    """The labels of the paper: the judge's single measurements, and smells counted by `engine` (*optional*)."""
    judged = {name: get_dimension(name) for name in ("speed", "memory")}
    smells = get_dimension("maintainability")
    return LabelSource(
        name="judge",
        sources={
            **{name: rules.JUDGE_SOURCE for name, rules in judged.items()},
            "maintainability": smell_source(engine),
        },
        units={**{name: rules.UNIT for name, rules in judged.items()}, "maintainability": smells.UNIT},
    )


def write_labels(collection, source: LabelSource, writer: RowWriter, progress=None) -> None:
    """Writes the `labels` configuration: one row for every program, null for what was not measured.

    Args:
        collection (`Collection`): With the judge's values.
        source (`LabelSource`): With what was measured again, if anything was.
        writer (`RowWriter`): Of the configuration.
        progress (`Callable`, *optional*): Called as `progress(stage, done, total)`.
    """
    for done, problem in enumerate(collection.problems(), start=1):
        for program in problem.programs:
            writer.add(_label_row(program, collection, source))
        if progress:
            progress("writing labels", done, len(collection.problem_ids))


def _label_row(program: Program, collection, source: LabelSource) -> dict:
    again = source.remeasured.get((program.problem_id, program.submission_id), {})
    analysed = program.smell_rules is not None
    return {
        "problem_id": program.problem_id,
        "submission_id": program.submission_id,
        "fingerprint": program.fingerprint,
        "cpu_time": program.values.get("speed"),
        "memory": program.values.get("memory"),
        "smells": len(program.smell_rules) if analysed else None,
        "smell_rules": list(program.smell_rules) if analysed else None,
        "smell_engine": collection.smell_engine if analysed else None,
        "smell_engine_version": collection.smell_version if analysed else None,
        "remeasured_speed": again.get("speed"),
        "remeasured_speed_unit": source.units["speed"] if "speed" in again else None,
        "remeasured_memory": again.get("memory"),
        "remeasured_memory_unit": source.units["memory"] if "memory" in again else None,
    }


def remeasured_labels(
    collection, work: Path, engine, *, inputs: Path | None, progress, num_proc: int
) -> LabelSource:
    """Labels from running the programs again.

    Args:
        collection (`Collection`): The programs.
        work (`Path`): Where an interrupted run finds what it has measured.
        engine (`SmellEngine`, *optional*): What counts the smells, which stay as they are.
        inputs (`Path`, *optional*): Folder `pNNNNN/*.in`; without it inputs are generated.
        progress (`Callable`, *optional*): Called as `progress(stage, done, total)`.
        num_proc (`int`): Processes.

    Raises:
        `QualcodeError`: When programs cannot be shut in on this machine, or `inputs` holds none.
    """
    measured = remeasure(collection, work, inputs=inputs, progress=progress, num_proc=num_proc)
    judge = judge_labels(engine)
    return LabelSource(
        name="remeasured",
        sources=judge.sources | {name: f"measured again ({unit})" for name, unit in measured.unit.items()},
        units=judge.units | measured.unit,
        remeasured=measured.values,
        report=measured.report,
    )
