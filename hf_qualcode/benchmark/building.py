"""From a CodeNet folder to a finished data set: collected, labelled, selected, written, described, in its place."""

import json
from pathlib import Path

import hf_qualcode
from hf_qualcode.benchmark.cards import render_card
from hf_qualcode.benchmark.codenet import CodeNet
from hf_qualcode.benchmark.collecting import collect
from hf_qualcode.benchmark.labelling import LabelSource, judge_labels, remeasured_labels
from hf_qualcode.benchmark.mc_qualcode import TRIPLETS_PER_CONFIG, fill_mc_qualcode
from hf_qualcode.benchmark.negatives import NUM_NEGATIVES
from hf_qualcode.benchmark.qualcode import fill_qualcode
from hf_qualcode.benchmark.remeasured import check_measuring
from hf_qualcode.benchmark.schemas import DATA_SETS
from hf_qualcode.benchmark.writing import BUILDER, CARD_FILE, REPORT_FILE, Workplace, write_rows


LABELS = ("judge", "remeasured")
_FILL = {"qualcode": fill_qualcode, "mc-qualcode": fill_mc_qualcode}


def build(
    name: str,
    codenet: Path,
    out: Path,
    *,
    smells=None,
    labels: str = "judge",
    inputs: Path | None = None,
    seed: int = 42,
    keep_zero: bool = False,
    num_proc: int = 1,
    progress=None,
) -> dict:
    """Builds a data set from a Project_CodeNet folder.

    The folder appears whole or not at all. An interrupted build leaves `.NAME.building` beside it, from which the same
    call goes on. The same files, seed and options give the same bytes, whatever the order of rows and `num_proc`.

    Args:
        name (`str`): `"qualcode"` or `"mc-qualcode"`.
        codenet (`Path`): The folder with `metadata`, `data` and `problem_descriptions`.
        out (`Path`): The folder to make. An earlier build there is replaced, anything else refused.
        smells (`SmellEngine`, *optional*): Counts code smells; without one maintainability has no labels.
        labels (`str`, *optional*, defaults to `"judge"`): `"judge"` (the paper's) or `"remeasured"`.
        inputs (`Path`, *optional*): Folder `pNNNNN/*.in` to measure with.
        seed (`int`, *optional*, defaults to 42): Of every draw.
        keep_zero (`bool`, *optional*, defaults to `False`): Use times and memory of 0.
        num_proc (`int`, *optional*, defaults to 1): Processes that read programs.
        progress (`Callable`, *optional*): Called as `progress(stage, done, total)`.

    Returns:
        `dict`: The report, as in `report.json`.

    Raises:
        `UsageError`: When `out` is a file or holds anything else than an earlier build.
        `QualcodeError`: When `codenet` is none, `out` cannot be written, or programs are to be measured and cannot be.
    """
    # Before anything is made: what would end a long build is said at its beginning.
    CodeNet.open(codenet)
    if labels == "remeasured":
        check_measuring(inputs)
    with Workplace(out) as place:
        judged = collect(
            codenet, place.folder / "collected", smells=smells, keep_zero=keep_zero, num_proc=num_proc,
            progress=progress,
        )  # fmt: skip
        source, collection = judge_labels(smells), judged
        if labels == "remeasured":
            source = remeasured_labels(
                judged, place.folder / "remeasured", smells, inputs=inputs, progress=progress, num_proc=num_proc
            )
            collection = judged.with_values(source.remeasured)
        report = write_data_set(
            name, collection, source, place.data, smells=smells, seed=seed, judged=judged, progress=progress
        )
        place.publish()
    return report


def write_data_set(
    name: str, collection, source: LabelSource, folder: Path, *, smells=None, seed: int = 42, judged=None,
    progress=None,
) -> dict:  # fmt: skip
    """Selects the rows of a data set from any collection and writes Parquet files, card and report.

    Args:
        name (`str`): `"qualcode"` or `"mc-qualcode"`.
        collection (`Collection`): The programs, with the values to select by.
        source (`LabelSource`): What those values are.
        folder (`Path`): An empty folder.
        smells (`SmellEngine`, *optional*): What counted the smells, for the report.
        seed (`int`, *optional*, defaults to 42): Of every draw.
        judged (`Collection`, *optional*): The programs with the judge's values; defaults to `collection`.
        progress (`Callable`, *optional*): Called as `progress(stage, done, total)`.

    Returns:
        `dict`: The report.
    """
    counts = {}

    def fill(writers):
        counts.update(_FILL[name](writers, collection, source, seed=seed, judged=judged, progress=progress))

    writers = write_rows(folder, DATA_SETS[name], fill)
    engine = None
    if smells is not None:
        engine = {
            "engine": smells.name,
            "version": smells.version,
            "is_proxy": smells.is_proxy,
            "description": smells.description,
        }
    report = {
        "builder": BUILDER,
        "data_set": name,
        "version": hf_qualcode.__version__,
        "seed": seed,
        "labels": {
            "name": source.name,
            "sources": dict(source.sources),
            "units": dict(source.units),
            "report": dict(source.report),
        },
        "smells": engine,
        "configs": {config: writer.num_rows for config, writer in writers.items()},
        "files": {config: writer.file for config, writer in writers.items()},
        "collecting": collection.report,
        **counts,
    }
    report["notes"] = _notes(report)
    (folder / REPORT_FILE).write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    (folder / CARD_FILE).write_text(render_card(name, report, writers), encoding="utf-8")
    return report


def _notes(report: dict) -> list[str]:
    """What a reader must not miss: proxies, missing labels, and where there is less than was asked for."""
    notes = []
    engine = report["smells"]
    if engine is None:
        notes.append("maintainability has no labels: no smell engine was used (--smells none)")
    elif engine["is_proxy"]:
        notes.append(
            f"maintainability is counted by {engine['engine']} {engine['version']}, a proxy: not the analyser of the "
            "paper; do not set these numbers beside the paper's"
        )
    if (relevance := report.get("relevance")) and relevance["rows_with_fewer_negatives"]:
        notes.append(
            f"relevance: {relevance['rows_with_fewer_negatives']:,} of {relevance['rows']:,} rows have fewer than "
            f"{NUM_NEGATIVES} negatives (at least {relevance['least_negatives']}): there are no more distinct "
            "programs of other problems"
        )
    for config, counts in report.get("triplets", {}).items():
        if counts["triplets"] < TRIPLETS_PER_CONFIG:
            notes.append(f"{config}: {counts['triplets']:,} of {TRIPLETS_PER_CONFIG:,} triplets: no more exist")
    empty = [config for config, num_rows in report["configs"].items() if not num_rows]
    if empty:
        notes.append(f"without rows: {', '.join(empty)} (datasets opens such a split with streaming=True alone)")
    return notes
