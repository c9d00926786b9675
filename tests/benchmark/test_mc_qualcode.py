"""MC-QualCode against brute force: every legal triplet listed, those drawn among them, balanced as far as they go."""

import itertools
from collections import Counter

import pytest
from datasets import load_dataset

from hf_qualcode.benchmark import mc_qualcode
from hf_qualcode.benchmark.building import write_data_set
from hf_qualcode.benchmark.labelling import judge_labels
from hf_qualcode.benchmark.mc_qualcode import Cell, cells_of, label_problem, legal_triplets
from hf_qualcode.quality import dimension_names, instruction_for
from hf_qualcode.quality.label_rules import label_thirds


CONFIGS = {1: "1-condition", 2: "2-condition", 3: "3-condition"}


def brute_force(collection):
    """Every legal triplet, from the definition alone: (conditions, missing, positive id, negative id)."""
    legal = set()
    for problem in collection.problems():
        labels = {}
        for dimension in dimension_names():
            measured = [p for p in problem.programs if dimension in p.values]
            if len(measured) < 3:
                continue
            values = [p.values[dimension] for p in measured]
            found = [int(v == 0) for v in values] if dimension == "maintainability" else label_thirds(values)
            labels |= {(p.submission_id, dimension): label for p, label in zip(measured, found, strict=True)}
        for p, n in itertools.permutations(problem.programs, 2):
            if p.text_digest == n.text_digest:
                continue
            for size in (1, 2, 3):
                for wanted in itertools.combinations(dimension_names(), size):
                    good = [labels.get((p.submission_id, dimension)) for dimension in wanted]
                    found = [labels.get((n.submission_id, dimension)) for dimension in wanted]
                    if set(good) == {1} and sorted(str(label) for label in found) == ["0", *["1"] * (size - 1)]:
                        legal.add((wanted, wanted[found.index(0)], p.submission_id, n.submission_id))
    return legal


def build(collection, folder, seed=7):
    report = write_data_set("mc-qualcode", collection, judge_labels(None), folder, seed=seed)
    # datasets opens a split without rows as a stream only.
    configs = {
        name: list(load_dataset(str(folder), name, split="test", streaming=not num_rows))
        for name, num_rows in report["configs"].items()
    }
    return report, configs


def key(row):
    return tuple(row["dimensions"]), row["missing_dimension"], row["positive_id"], row["negative_id"]


def test_cells_are_all_combinations_with_each_missing_dimension():
    assert [len(cells_of(count)) for count in (1, 2, 3)] == [3, 6, 3]
    assert Cell(("speed", "memory"), "memory") in cells_of(2)
    assert all(cell.missing in cell.dimensions for count in (1, 2, 3) for cell in cells_of(count))


@pytest.mark.parametrize("seed", range(4))
def test_counted_triplets_are_the_legal_ones(random_collection, seed):
    collection = random_collection(seed, num_problems=6, most_programs=20, ties=seed < 2)
    counted = {
        (cell.dimensions, cell.missing, p.submission_id, n.submission_id)
        for problem in collection.problems()
        for count in (1, 2, 3)
        for cell in cells_of(count)
        for triplets in [legal_triplets(problem, label_problem(problem), cell)]
        for p, n in (triplets[number] for number in range(len(triplets)))
    }
    assert counted == brute_force(collection)


def test_all_there_are_where_fewer_exist_than_wanted(random_collection, tmp_path):
    collection = random_collection(1, num_problems=6, most_programs=20, ties=False)
    report, configs = build(collection, tmp_path)
    legal = brute_force(collection)
    for count, config in CONFIGS.items():
        drawn = [key(row) for row in configs[config]]
        assert len(set(drawn)) == len(drawn)
        assert set(drawn) == {triplet for triplet in legal if len(triplet[0]) == count}
        by_cell = Counter((wanted, missing) for wanted, missing, _, _ in drawn)
        for cell in report["triplets"][config]["by_cell"]:
            assert cell["triplets"] == cell["exist"] == by_cell[tuple(cell["dimensions"]), cell["missing_dimension"]]
        assert any(note.startswith(f"{config}: {len(drawn)} of 3,000") for note in report["notes"])


@pytest.mark.parametrize("wanted", [12, 60, 150])
def test_drawn_ones_are_balanced_as_far_as_the_supply_allows(random_collection, tmp_path, monkeypatch, wanted):
    monkeypatch.setattr(mc_qualcode, "TRIPLETS_PER_CONFIG", wanted)
    collection = random_collection(2, num_problems=8, most_programs=25, ties=False)
    _, configs = build(collection, tmp_path)
    legal = brute_force(collection)
    problem_of = {program.submission_id: program.problem_id for program in collection.programs}
    for count, config in CONFIGS.items():
        rows = [key(row) for row in configs[config]]
        supply = Counter((dimensions, missing) for dimensions, missing, _, _ in legal if len(dimensions) == count)
        assert len(set(rows)) == len(rows) == min(wanted, sum(supply.values()))
        assert set(rows) <= legal
        drawn = Counter((dimensions, missing) for dimensions, missing, _, _ in rows)
        # Combinations first: one that gives fewer than another has nothing left. Then cells, then problems alike.
        check_fair(total_by(drawn, lambda cell: cell[0]), total_by(supply, lambda cell: cell[0]))
        for combination in {dimensions for dimensions, _ in supply}:
            check_fair(*({c: counts[c] for c in supply if c[0] == combination} for counts in (drawn, supply)))
        for cell in supply:
            of_cell = [triplet for triplet in legal if triplet[:2] == cell]
            by_problem = Counter(problem_of[triplet[2]] for triplet in of_cell)
            check_fair(Counter(problem_of[triplet[2]] for triplet in rows if triplet[:2] == cell), by_problem)


def total_by(counts, group):
    totals = Counter()
    for name, count in counts.items():
        totals[group(name)] += count
    return totals


def check_fair(drawn, supply):
    for name, other in itertools.permutations(supply, 2):
        assert drawn[name] >= drawn[other] - 1 or drawn[name] == supply[name]


def test_rows_and_their_values(random_collection, tmp_path):
    collection = random_collection(4, num_problems=10, most_programs=20)
    _, configs = build(collection, tmp_path)
    programs = {program.submission_id: program for program in collection.programs}
    rows = [row for config in CONFIGS.values() for row in configs[config]]
    assert rows
    for row in rows:
        positive, negative = programs[row["positive_id"]], programs[row["negative_id"]]
        assert row["instruction"] == instruction_for(row["dimensions"])
        assert row["problem_id"] == positive.problem_id == negative.problem_id
        assert (row["positive"], row["negative"]) == (collection.text(positive), collection.text(negative))
        missing = row["missing_dimension"]
        assert (row["positive_value"], row["negative_value"]) == (positive.values[missing], negative.values[missing])
        assert row["positive_value"] < row["negative_value"]


def test_labels_are_counted(random_collection, tmp_path):
    collection = random_collection(5, num_problems=10)
    report, configs = build(collection, tmp_path)
    for dimension, counts in report["programs_labelled"].items():
        measured = Counter(program.problem_id for program in collection.programs if dimension in program.values)
        enough = {problem: count for problem, count in measured.items() if count >= 3}
        assert counts["problems"] == len(enough)
        assert counts["problems"] + counts["problems_with_too_few_measured"] == len(collection.problem_ids)
        assert counts["good"] + counts["bad"] + counts["dropped"] == sum(enough.values())
    assert len(configs["labels"]) == len(collection.programs)


def test_a_large_problem_is_not_listed(memory_collection, tmp_path):
    # A quarter of a million legal pairs for speed alone.
    for number in range(1500):
        memory_collection.add("p1", f"s{number:04}", speed=number + 1, memory=(number * 37) % 1500 + 1, rules=[])
    memory_collection.add("p1", "s9999", rules="AB")
    report, configs = build(memory_collection, tmp_path)
    cells = {(tuple(c["dimensions"]), c["missing_dimension"]): c for c in report["triplets"]["1-condition"]["by_cell"]}
    assert cells[("speed",), "speed"]["exist"] == 500**2
    assert [len(configs[config]) for config in ("1-condition", "2-condition")] == [3000, 3000]
    assert len({key(row) for row in configs["1-condition"]}) == 3000


def test_one_program_a_problem_and_equal_values_give_empty_configurations(memory_collection, tmp_path):
    memory_collection.add("p1", "s1", speed=1, memory=1, rules=[])
    for number in range(9):
        memory_collection.add("p2", f"t{number}", speed=5, memory=7, rules=[])
    report, configs = build(memory_collection, tmp_path)
    assert [len(configs[config]) for config in CONFIGS.values()] == [0, 0, 0]
    assert any(note.startswith("without rows: 1-condition, 2-condition, 3-condition") for note in report["notes"])
    assert len(configs["labels"]) == 10
