"""MC-QualCode (SynH-Rank, section 3.2): triplets whose negative lacks exactly one of the conditions asked for."""

from collections import Counter
from collections.abc import Mapping
from itertools import combinations
from typing import NamedTuple

from hf_qualcode.benchmark.drawing import Draws, draw_key, fair_shares
from hf_qualcode.benchmark.labelling import LabelSource, write_labels
from hf_qualcode.benchmark.pairs import LegalPairs
from hf_qualcode.benchmark.programs import Problem, Program
from hf_qualcode.benchmark.schemas import CONDITIONS, LABELS
from hf_qualcode.benchmark.writing import RowWriter
from hf_qualcode.quality import dimension_names, get_dimension, instruction_for


TRIPLETS_PER_CONFIG = 3000  # section 3.2
MIN_MEASURED = 3  # programs of a problem: fewer have no thirds


class Cell(NamedTuple):
    """A combination of conditions, and which one the negative lacks. Triplets are balanced over cells."""

    dimensions: tuple[str, ...]
    missing: str

    @property
    def name(self) -> str:
        return f"{'+'.join(self.dimensions)}/{self.missing}"


def cells_of(num_conditions: int) -> list[Cell]:
    """All cells of one configuration: every combination, every missing dimension."""
    return [
        Cell(combination, missing)
        for combination in combinations(dimension_names(), num_conditions)
        for missing in combination
    ]


def label_problem(problem: Problem) -> dict[str, dict[str, int | None]]:
    """Labels the programs of one problem.

    Returns:
        `dict[str, dict[str, int | None]]`: Dimension -> submission id -> 1, 0 or `None` (dropped), for measured
        programs; a dimension with fewer than 3 of them is empty.
    """
    labels = {}
    for dimension in dimension_names():
        measured = [program for program in problem.programs if dimension in program.values]
        found = get_dimension(dimension).label([program.values[dimension] for program in measured])
        ids = [program.submission_id for program in measured]
        labels[dimension] = dict(zip(ids, found, strict=True)) if len(measured) >= MIN_MEASURED else {}
    return labels


def legal_triplets(problem: Problem, labels: Mapping[str, Mapping[str, int | None]], cell: Cell) -> LegalPairs:
    """All triplets of a problem in a cell: the positive has every condition, the negative all but the missing one,
    which is labelled 0 (not merely unlabelled). Texts differ."""

    def has_all_but(program: Program, missing_label: int) -> bool:
        wanted = ((name, missing_label if name == cell.missing else 1) for name in cell.dimensions)
        return all(labels[name].get(program.submission_id) == label for name, label in wanted)

    programs = sorted(problem.programs, key=lambda program: program.submission_id)
    positives = [program for program in programs if has_all_but(program, 1)]
    negatives = [program for program in programs if has_all_but(program, 0)] if positives else []
    return LegalPairs(positives, negatives, [0] * len(positives))


def fill_mc_qualcode(
    writers: Mapping[str, RowWriter], collection, source: LabelSource, *, seed: int, judged=None, progress=None
) -> dict:
    """Selects and writes the rows of all configurations.

    A first pass counts the triplets of every problem and cell. From the counts alone follows how many each problem
    gives: the cells of a configuration share 3,000 evenly (combinations first, then missing dimensions; what one lacks
    the others give), the problems of a cell take turns. A second pass draws them, without ever listing all.

    Args:
        writers (`Mapping[str, RowWriter]`): Configuration -> where its rows go.
        collection (`Collection`): The programs, with the values to label by.
        source (`LabelSource`): What those values are.
        seed (`int`): Of every draw.
        judged (`Collection`, *optional*): The programs with the judge's values; defaults to `collection`.
        progress (`Callable`, *optional*): Called as `progress(stage, done, total)`.

    Returns:
        `dict`: JSON-able counts: `programs_labelled`, `triplets`.
    """
    supplies, labelled = _count(collection, progress)
    shares = {cell: share for num in CONDITIONS for cell, share in _share_out(supplies, cells_of(num), seed).items()}
    wanted = sorted({problem_id for share in shares.values() for problem_id in share})
    for done, problem_id in enumerate(wanted, start=1):
        problem = collection.problem(problem_id)
        labels = label_problem(problem)
        for cell, share in shares.items():
            if problem_id in share:
                draws = Draws(seed, "triplet", cell.name, problem_id)
                for pair in legal_triplets(problem, labels, cell).draw(draws, share[problem_id]):
                    writers[CONDITIONS[len(cell.dimensions)]].add(_row(problem, cell, *pair, collection))
        if progress:
            progress("drawing triplets", done, len(wanted))
    write_labels(judged or collection, source, writers[LABELS], progress)
    return {
        "programs_labelled": labelled,
        "triplets": {
            config: {
                "wanted": TRIPLETS_PER_CONFIG,
                "triplets": writers[config].num_rows,
                "by_cell": [
                    {
                        "dimensions": list(cell.dimensions),
                        "missing_dimension": cell.missing,
                        "exist": sum(supplies[cell].values()),
                        "triplets": sum(shares[cell].values()),
                        "problems": len(shares[cell]),
                    }
                    for cell in cells_of(num_conditions)
                ],
            }
            for num_conditions, config in CONDITIONS.items()
        },
    }


def _count(collection, progress) -> tuple[dict[Cell, dict[str, int]], dict[str, dict[str, int]]]:
    """Cell -> problem id -> how many triplets exist, where any do; and how the programs were labelled."""
    supplies: dict[Cell, dict[str, int]] = {cell: {} for num in CONDITIONS for cell in cells_of(num)}
    labelled = {dimension: Counter() for dimension in dimension_names()}
    names = {1: "good", 0: "bad", None: "dropped"}
    for done, problem in enumerate(collection.problems(), start=1):
        labels = label_problem(problem)
        for dimension, found in labels.items():
            labelled[dimension].update(names[label] for label in found.values())
            labelled[dimension].update(problems=int(bool(found)), problems_with_too_few_measured=int(not found))
        for cell, supply in supplies.items():
            if count := len(legal_triplets(problem, labels, cell)):
                supply[problem.problem_id] = count
        if progress:
            progress("counting triplets", done, len(collection.problem_ids))
    order = ("problems", "problems_with_too_few_measured", *names.values())
    return supplies, {dimension: {name: found[name] for name in order} for dimension, found in labelled.items()}


def _share_out(supplies: dict[Cell, dict[str, int]], cells: list[Cell], seed: int) -> dict[Cell, dict[str, int]]:
    """Cell -> problem id -> how many triplets to draw."""
    groups: dict[tuple[str, ...], list[Cell]] = {}
    for cell in cells:
        groups.setdefault(cell.dimensions, []).append(cell)
    totals = {cell: sum(supplies[cell].values()) for cell in cells}
    quotas = fair_shares(TRIPLETS_PER_CONFIG, [sum(totals[cell] for cell in group) for group in groups.values()])
    shares = {}
    for quota, group in zip(quotas, groups.values(), strict=True):
        for cell, demand in zip(group, fair_shares(quota, [totals[cell] for cell in group]), strict=True):
            ids = sorted(supplies[cell], key=lambda problem_id: draw_key(seed, "turn", cell.name, problem_id))
            given = fair_shares(demand, [supplies[cell][problem_id] for problem_id in ids])
            shares[cell] = {problem_id: count for problem_id, count in zip(ids, given, strict=True) if count}
    return shares


def _row(problem: Problem, cell: Cell, positive: Program, negative: Program, collection) -> dict:
    return {
        "instruction": instruction_for(cell.dimensions),
        "query": problem.statement,
        "positive": collection.text(positive),
        "negative": collection.text(negative),
        "dimensions": list(cell.dimensions),
        "missing_dimension": cell.missing,
        "problem_id": problem.problem_id,
        "positive_id": positive.submission_id,
        "negative_id": negative.submission_id,
        "positive_value": positive.values[cell.missing],
        "negative_value": negative.values[cell.missing],
    }
