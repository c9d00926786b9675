"""The data set `synth_rank_train`: variants made into lists, stored as Parquet with a card and a report."""

import json
from collections import Counter
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from hf_qualcode import __version__
from hf_qualcode.benchmark.cards import markdown_table, markdown_text
from hf_qualcode.benchmark.writing import BUILDER, CARD_FILE, REPORT_FILE, RowWriter, Workplace
from hf_qualcode.quality import dimension_names
from hf_qualcode.rerank.ranking_list import RankingList
from hf_qualcode.rerank.synthetic_lists import KINDS, NUM_IRRELEVANT, NUM_LOW, SYNH_RANK, synthetic_lists
from hf_qualcode.synthesis.variants import Variant, read_variants


NAME, TEMPLATE, SPLIT = "synth_rank_train", "synth_rank_train.md", "train"
UNKNOWN_LICENSE = "unknown"  # as the Hub calls it
_SIZES = {1_000: "n<1K", 10_000: "1K<n<10K", 100_000: "10K<n<100K", 1_000_000: "100K<n<1M", 10_000_000: "1M<n<10M"}


def build_synth_rank_train(
    variants: Sequence[Path],
    out: Path,
    *,
    kind: str = SYNH_RANK,
    num_low: int = NUM_LOW,
    num_irrelevant: int | None = None,
    one_list_per_query: bool = False,
    negated: bool = False,
    partial: bool = False,
    seed: int = 42,
    license: str = UNKNOWN_LICENSE,
) -> dict:
    """Makes lists of variants and writes them.

    The folder appears whole or not at all, and the same variants, options and seed give the same bytes. It has one
    configuration, named like `kind`, with one split, `train`: `load_dataset(out, split="train")`.

    Args:
        variants (`Sequence[Path]`): Files of variants, as `hf-qualcode synthesize` writes them.
        out (`Path`): The folder to make. An earlier build there is replaced, anything else refused.
        kind, num_low, num_irrelevant, one_list_per_query, negated, partial, seed: See `synthetic_lists`.
        license (`str`, *optional*, defaults to `"unknown"`): Of the variants, as the Hub spells it.

    Returns:
        `dict`: The report, as in `report.json`.

    Raises:
        `UsageError`: On options that do not fit, or an `out` that is not ours to replace.
        `QualcodeError`: When variants cannot be read, make no list, or `out` cannot be written.
    """
    place = Workplace(out)  # refuses what is not ours to replace, before anything is read
    read = [each for path in variants for each in read_variants(path)]
    options = {"num_low": num_low, "one_list_per_query": one_list_per_query, "negated": negated}
    options |= {"partial": partial, "seed": seed}
    lists = synthetic_lists(read, kind, num_irrelevant=num_irrelevant, **options)
    options["num_irrelevant"] = NUM_IRRELEVANT[kind] if num_irrelevant is None else num_irrelevant
    with place:
        with RowWriter(place.data, kind, _features(), SPLIT) as writer:
            for each in lists:
                writer.add(
                    {"id": each.id, "instruction": each.instruction, "query": each.query, "codes": list(each.codes),
                     "grades": list(each.grades), "problem_id": each.problem_id}
                )  # fmt: skip
        report = {
            "builder": BUILDER,
            "version": __version__,
            "data_set": NAME,
            "configs": {kind: writer.num_rows},
            "kind": kind,
            "license": license,
            **options,
            "variants": _count_variants(read),
            "lists": _count_lists(lists),
        }
        (place.data / CARD_FILE).write_text(render_card(report, writer), encoding="utf-8")
        (place.data / REPORT_FILE).write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
        place.publish()
    return report


def render_card(report: dict, writer: RowWriter) -> str:
    """The README of the data set: Markdown with the metadata block that `load_dataset` reads."""
    import jinja2

    template = (files("hf_qualcode") / "bundled" / "model_cards" / TEMPLATE).read_text(encoding="utf-8")
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, keep_trailing_newline=True)
    counts = report["variants"]
    return environment.from_string(template).render(
        card_data=_metadata(report, writer).to_yaml(),
        report=report,
        text=markdown_text,
        what=KINDS[report["kind"]],
        lists=markdown_table(["asks for", "lists", "tasks"], report["lists"]["by_dimension"]),
        grades=markdown_table(["grade", "programs"], sorted(report["lists"]["grades"].items(), reverse=True)),
        variants=markdown_table(["dimension", "level", "guidelines", "variants"], counts["by_group"]),
        sources=markdown_table(["source", "variants"], sorted(counts["by_source"].items())),
    )


def _features():
    from datasets import Features, List, Value

    text = Value("string")
    return Features(
        {"id": text, "instruction": text, "query": text, "codes": List(text), "grades": List(Value("int64")),
         "problem_id": text}
    )  # fmt: skip


def _metadata(report: dict, writer: RowWriter):
    from datasets import DatasetInfo, SplitDict, SplitInfo
    from datasets.info import DatasetInfosDict
    from datasets.utils.metadata import MetadataConfigs
    from huggingface_hub import DatasetCardData

    kind = report["kind"]
    configs, infos = MetadataConfigs(), DatasetInfosDict()
    configs[kind] = {"data_files": [{"split": SPLIT, "path": writer.file}], "default": True}
    split = SplitInfo(SPLIT, num_bytes=writer.num_bytes, num_examples=writer.num_rows, dataset_name=None)
    infos[kind] = DatasetInfo(
        features=_features(), splits=SplitDict({SPLIT: split}), config_name=kind, dataset_size=writer.num_bytes,
        download_size=writer.file_bytes,
    )  # fmt: skip
    metadata = DatasetCardData(
        pretty_name=NAME,
        language=["en", "code"],
        license=report["license"],
        task_categories=["text-ranking"],
        size_categories=[next((size for limit, size in _SIZES.items() if writer.num_rows < limit), "10M<n<100M")],
        tags=["code", "code-search", "reranking", "code-quality", "synthetic"],
    )
    configs.to_dataset_card_data(metadata)
    infos.to_dataset_card_data(metadata)
    return metadata


def _count_variants(variants: Sequence[Variant]) -> dict:
    groups = Counter((each.dimension, each.level, each.group or "none") for each in variants)
    order = {name: place for place, name in enumerate(dimension_names())}
    return {
        "total": len(variants),
        "tasks": len({each.task_id for each in variants}),
        "by_group": [[*group, groups[group]] for group in sorted(groups, key=lambda each: (order[each[0]], each[1:]))],
        "by_source": dict(sorted(Counter(each.source for each in variants).items())),
    }


def _count_lists(lists: Sequence[RankingList]) -> dict:
    by_instruction: dict[str, list[RankingList]] = {}
    for each in lists:
        by_instruction.setdefault(each.instruction, []).append(each)
    return {
        "total": len(lists),
        "tasks": len({each.problem_id for each in lists}),
        "by_dimension": [
            [instruction, len(found), len({each.problem_id for each in found})]
            for instruction, found in sorted(by_instruction.items(), key=lambda item: (len(item[0]), item[0]))
        ],
        "grades": dict(sorted(Counter(str(grade) for each in lists for grade in each.grades).items())),
    }
