"""Dataset cards: the templates of `model_cards/` filled with a build's report.

Whatever comes from the data (names of engines, reasons) is escaped, so that it cannot end a table or open a tag.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files

from datasets import DatasetInfo, SplitDict, SplitInfo
from datasets.info import DatasetInfosDict
from datasets.utils.metadata import MetadataConfigs
from huggingface_hub import DatasetCardData

from hf_qualcode.benchmark.mc_qualcode import MIN_MEASURED, TRIPLETS_PER_CONFIG
from hf_qualcode.benchmark.outcomes import (
    MEASUREMENT_OUTCOMES,
    PROBLEM_OUTCOMES,
    SMELL_OUTCOMES,
    SUBMISSION_OUTCOMES,
)
from hf_qualcode.benchmark.pairs import MAX_PAIRS_PER_PROBLEM, REASONS
from hf_qualcode.benchmark.schemas import DATA_SETS, SPLIT
from hf_qualcode.benchmark.writing import RowWriter
from hf_qualcode.quality import dimension_names, get_dimension


_TEMPLATES = {"qualcode": ("QualCode", "qualcode.md"), "mc-qualcode": ("MC-QualCode", "mc_qualcode.md")}
_SPECIAL = re.compile(r"([\\`*_\[\]|~$])")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_SIZES = {1_000: "n<1K", 10_000: "1K<n<10K", 100_000: "10K<n<100K", 1_000_000: "100K<n<1M", 10_000_000: "1M<n<10M"}


def render_card(name: str, report: Mapping, writers: Mapping[str, RowWriter]) -> str:
    """Renders the README of a data set.

    Args:
        name (`str`): `"qualcode"` or `"mc-qualcode"`.
        report (`Mapping`): The build's report.
        writers (`Mapping[str, RowWriter]`): Configuration -> its closed writer, for sizes.

    Returns:
        `str`: Markdown with the metadata block that `load_dataset` reads.
    """
    import jinja2

    title, template = _TEMPLATES[name]
    loader = jinja2.FunctionLoader(lambda file: _template(file))
    environment = jinja2.Environment(loader=loader, undefined=jinja2.StrictUndefined, keep_trailing_newline=True)
    phrases = [get_dimension(dimension).PHRASE for dimension in dimension_names()]
    return environment.get_template(template).render(
        card_data=_metadata(name, title, writers).to_yaml(),
        report=report,
        text=markdown_text,
        number=_number,
        phrases=phrases,
        configs=_configs_table(report),
        sources=_sources_table(report),
        remeasured=_remeasured_table(report["labels"]["report"]),
        most_per_problem=MAX_PAIRS_PER_PROBLEM,
        min_measured=MIN_MEASURED,
        wanted=TRIPLETS_PER_CONFIG,
        **_collecting_tables(report["collecting"]),
        **(_qualcode_tables(report) if name == "qualcode" else _mc_tables(report)),
    )


class Markdown(str):
    """Markdown of our own, which is not escaped: names of outcomes, and sentences of this package."""


def code(name: str) -> Markdown:
    """A name in type of one width."""
    return Markdown(f"`{name}`")


def markdown_text(text: object) -> str:
    """Text that stays text on one line of Markdown, also in a table."""
    line = " ".join(str(text).split())
    printed = "".join(character if character.isprintable() else "\ufffd" for character in line)
    return _SPECIAL.sub(r"\\\1", re.sub("[&<>]", lambda match: _ENTITIES[match[0]], printed))


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table. Numbers are set to the right."""
    cells = [[_cell(value) for value in row] for row in rows]
    numeric = [bool(cells) and all(row[i][1] for row in cells) for i in range(len(header))]
    lines = [
        " | ".join(markdown_text(name) for name in header),
        " | ".join("---:" if right else "---" for right in numeric),
        *(" | ".join(text for text, _ in row) for row in cells),
    ]
    return "\n".join(f"| {line} |" for line in lines)


def _cell(value: object) -> tuple[str, bool]:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _number(value), True
    if value is None:
        return "", True
    return (str(value) if isinstance(value, Markdown) else markdown_text(value)), False


def _number(value: float) -> str:
    return f"{value:,}"


def _template(file: str) -> str:
    return (files("hf_qualcode") / "bundled" / "model_cards" / file).read_text(encoding="utf-8")


def _metadata(name: str, title: str, writers: Mapping[str, RowWriter]) -> DatasetCardData:
    configs, infos = MetadataConfigs(), DatasetInfosDict()
    for config, features in DATA_SETS[name].items():
        writer = writers[config]
        configs[config] = {"data_files": [{"split": SPLIT, "path": writer.file}]}
        split = SplitInfo(SPLIT, num_bytes=writer.num_bytes, num_examples=writer.num_rows, dataset_name=None)
        infos[config] = DatasetInfo(
            features=features, splits=SplitDict({SPLIT: split}), config_name=config, dataset_size=writer.num_bytes,
            download_size=writer.file_bytes,
        )  # fmt: skip
    configs[next(iter(configs))]["default"] = True
    num_rows = sum(writer.num_rows for writer in writers.values())
    metadata = DatasetCardData(
        pretty_name=title,
        language=["en", "code"],
        license="cdla-permissive-2.0",
        task_categories=["text-ranking", "text-retrieval"],
        size_categories=[next((size for limit, size in _SIZES.items() if num_rows < limit), "10M<n<100M")],
        tags=["code", "code-search", "reranking", "code-quality"],
        source_datasets=["original"],
    )
    configs.to_dataset_card_data(metadata)
    infos.to_dataset_card_data(metadata)
    return metadata


def _configs_table(report: Mapping) -> str:
    paper = {dimension: counts["paper_pairs"] for dimension, counts in report.get("pairs", {}).items()}
    paper |= {config: counts["wanted"] for config, counts in report.get("triplets", {}).items()}
    rows = ([config, num_rows, paper.get(config)] for config, num_rows in report["configs"].items())
    return markdown_table(["configuration", "rows", "in the paper"], rows)


def _sources_table(report: Mapping) -> str:
    labels = report["labels"]
    rows = ([dimension, source, labels["units"].get(dimension)] for dimension, source in labels["sources"].items())
    return markdown_table(["dimension", "source of its labels", "unit"], rows)


def _remeasured_table(report: Mapping) -> str:
    """What became of problems and programs that were run again; empty where none were."""
    rows = (
        [what, count, code(reason), report[meanings][reason]]
        for what, meanings in (("problems", "problem_reasons"), ("programs", "program_reasons"))
        for reason, count in report.get(what, {}).items()
    )
    return markdown_table(["of", "count", "outcome", "meaning"], rows) if report else ""


def _collecting_tables(collecting: Mapping) -> dict[str, str]:
    header = ["count", "outcome", "meaning"]

    def counted(counts: Mapping[str, int], meanings: Mapping[str, str]):
        return ([count, code(outcome), Markdown(meanings[outcome])] for outcome, count in counts.items())

    measurements = (
        [dimension, *row]
        for dimension, counts in collecting["measurements"].items()
        for row in counted(counts, SMELL_OUTCOMES if dimension == "maintainability" else MEASUREMENT_OUTCOMES)
    )
    return {
        "submissions": markdown_table(header, counted(collecting["submissions"], SUBMISSION_OUTCOMES)),
        "measurements": markdown_table(["dimension", *header], measurements),
        "problems": markdown_table(header, counted(collecting["problems"], PROBLEM_OUTCOMES)),
    }


def _qualcode_tables(report: Mapping) -> dict[str, str]:
    pairs = [
        [dimension, counts["problems"], counts["pairs"], counts["problems"] - counts["pairs"], counts["paper_pairs"]]
        for dimension, counts in report["pairs"].items()
    ]
    reasons = [
        [dimension, count, code(reason), REASONS[reason]]
        for dimension, counts in report["pairs"].items()
        for reason, count in counts["problems_without_pair"].items()
    ]
    clear = [
        [dimension, counts["problems"], counts["clear_pairs"], counts["pairs"]]
        for dimension, counts in report["all_pairs"].items()
    ]
    return {
        "pairs": markdown_table(["dimension", "problems", "with a pair", "without", "pairs in the paper"], pairs),
        "reasons": "\n\n".join(
            [
                "Problems without a pair:",
                markdown_table(["dimension", "problems", "reason", "meaning"], reasons),
                "all-pairs:",
                markdown_table(["dimension", "problems", "pairs that exist", "pairs drawn"], clear),
            ]
        ),
    }


def _mc_tables(report: Mapping) -> dict[str, str]:
    labelled = ([dimension, *counts.values()] for dimension, counts in report["programs_labelled"].items())
    names = next(iter(report["programs_labelled"].values()))
    triplets = (
        [config, " + ".join(cell["dimensions"]), cell["missing_dimension"], cell["exist"], cell["triplets"],
         cell["problems"]]
        for config, counts in report["triplets"].items()
        for cell in counts["by_cell"]
    )  # fmt: skip
    return {
        "labelled": markdown_table(["dimension", *(name.replace("_", " ") for name in names)], labelled),
        "triplets": markdown_table(
            ["configuration", "conditions", "missing in the negative", "triplets that exist", "drawn", "problems"],
            triplets,
        ),
    }
