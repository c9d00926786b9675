"""Diversity with guidelines and without, side by side and beside the paper's (SynH-Rank, section 6.2.1)."""

from collections import defaultdict
from collections.abc import Sequence

from hf_qualcode.quality import dimension_names
from hf_qualcode.synthesis.diversity import (
    GUIDED,
    MEASURES,
    NUM_RESAMPLES,
    UNGUIDED,
    Diversity,
    SetDiversity,
    estimate_mean,
)
from hf_qualcode.types import QualcodeError


# Of unfiltered programs by Qwen3-Coder-30B-A3B-Instruct, with the encoder below.
PAPER = {GUIDED: {"syntactic": 0.684, "semantic": 0.120}, UNGUIDED: {"syntactic": 0.585, "semantic": 0.084}}
PAPER_ENCODER = "Qwen/Qwen3-Embedding-0.6B"


def diversity_report(conditions: Sequence[Diversity], *, num_resamples: int = NUM_RESAMPLES, seed: int = 42) -> dict:
    """Figures of one condition, or of two side by side, as JSON can hold them.

    Args:
        conditions (`Sequence[Diversity]`): Of distinct names; `GUIDED` and `UNGUIDED` have the paper's values beside.
        num_resamples (`int`, *optional*, defaults to 10,000), seed (`int`, *optional*, defaults to 42): Of the
            bootstrap.

    Returns:
        `dict`: `conditions` (name -> counts, the two measures, and the same by dimension and level) and, of two
            conditions with sets of the same task, dimension and level, `difference`: the first less the second over
            those sets.

    Raises:
        `QualcodeError`: When two conditions were measured with different encoders, or have one name.
    """
    if len({each.name for each in conditions}) < len(conditions):
        raise QualcodeError(f"two conditions are called {conditions[0].name!r}; give each a name of its own")
    if len({(each.encoder, each.language) for each in conditions}) > 1:
        raise QualcodeError("the conditions were measured with different encoders or languages; use one for all")
    report = {
        "encoder": conditions[0].encoder,
        "paper_encoder": PAPER_ENCODER,
        "language": conditions[0].language,
        "seed": seed,
        "num_resamples": num_resamples,
        "conditions": {each.name: _condition_report(each, num_resamples, seed) for each in conditions},
    }
    if len(conditions) == 2:
        report["difference"] = _difference(*conditions, num_resamples, seed)
    return report


def _condition_report(diversity: Diversity, num_resamples: int, seed: int) -> dict:
    places = {name: place for place, name in enumerate(dimension_names())}
    groups: dict[tuple[str, str], list[SetDiversity]] = defaultdict(list)
    for each in diversity.sets:
        groups[each.dimension, each.level].append(each)
    options = {"num_resamples": num_resamples, "seed": seed}
    paper = PAPER.get(diversity.name, {})
    return {
        "tasks": len({each.task_id for each in diversity.sets}),
        "sets": len(diversity.sets),
        "programs": sum(each.num_programs for each in diversity.sets),
        "left_out": dict(diversity.left_out),
        **{
            measure: diversity.estimate(measure, **options)._asdict() | {"paper": paper.get(measure)}
            for measure in MEASURES
        },
        "groups": {
            f"{dimension}/{level}": {
                measure: diversity.estimate(measure, sets, **options)._asdict() for measure in MEASURES
            }
            for (dimension, level), sets in sorted(
                groups.items(), key=lambda item: (places.get(item[0][0], len(places)), item[0])
            )
        },
    }


def _difference(first: Diversity, second: Diversity, num_resamples: int, seed: int) -> dict:
    others = {each.key: each for each in second.sets}
    pairs = [(each, others[each.key]) for each in first.sets if each.key in others]
    tasks = [each.task_id for each, _ in pairs]
    found = {"of": [first.name, second.name], "sets": len(pairs), "tasks": len(set(tasks))}
    for measure in MEASURES if pairs else ():
        values = [getattr(each, measure) - getattr(other, measure) for each, other in pairs]
        found[measure] = estimate_mean(values, tasks, num_resamples, seed)._asdict()
    return found


def diversity_table(report: dict) -> str:
    """The report as lines of text: conditions and their parts, the paper's values beside."""
    rows = [("", "tasks", "sets", "1 - CodeBLEU [95 %]", "paper", "cosine distance [95 %]", "paper")]
    for name, found in report["conditions"].items():
        syntactic, semantic = (found[measure] for measure in MEASURES)
        rows.append(
            (name, str(found["tasks"]), str(found["sets"]), _shown(syntactic), _paper(syntactic),
             _shown(semantic), _paper(semantic))
        )  # fmt: skip
        for group, parts in found["groups"].items():
            syntactic, semantic = (parts[measure] for measure in MEASURES)
            rows.append((f"  {group}", "", str(syntactic["n"]), _shown(syntactic), "", _shown(semantic), ""))
    difference = report.get("difference", {})
    if difference.get("sets"):
        rows.append(
            ("difference", str(difference["tasks"]), str(difference["sets"]), _shown(difference["syntactic"]), "",
             _shown(difference["semantic"]), "")
        )  # fmt: skip
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip() for row in rows
    ]  # fmt: skip
    if report["encoder"] != report["paper_encoder"]:
        lines.append(
            f"Cosine distances are of {report['encoder']}; the paper's, of {report['paper_encoder']}, are on another "
            "scale."
        )
    return "\n".join(lines)


def _shown(estimate: dict) -> str:
    return f"{estimate['mean']:.3f} [{estimate['low']:.3f}, {estimate['high']:.3f}]"


def _paper(estimate: dict) -> str:
    return "" if estimate["paper"] is None else f"{estimate['paper']:.3f}"
