"""What QualCode is made of: the one pair of a problem, all clear pairs, negatives and pools, against brute force."""

import itertools
from collections import Counter

import pytest
from datasets import load_dataset

from hf_qualcode.benchmark.building import write_data_set
from hf_qualcode.benchmark.drawing import Draws, SmallestKeys, draw_key, fair_shares
from hf_qualcode.benchmark.labelling import judge_labels
from hf_qualcode.benchmark.negatives import NUM_NEGATIVES, NegativePool, draw_negatives
from hf_qualcode.benchmark.pairs import REASONS, Chosen, all_pairs, choose_pair, draw_all_pairs
from hf_qualcode.quality import dimension_names, get_dimension, instruction_for


def ids(chosen):
    return (chosen.positive.submission_id, chosen.negative.submission_id)


def pair_of(collection, dimension="speed", seed=1):
    return choose_pair(collection.problem("p1"), dimension, seed)


def add_all(collection, dimension, values):
    for number, value in enumerate(values, start=1):
        collection.add("p1", f"s{number}", **{dimension: value})
    return collection


@pytest.mark.parametrize("dimension", ["speed", "memory"])
@pytest.mark.parametrize(
    ("values", "outcome"),
    [
        ([10, 15, 21], ("s1", "s3")),
        ([21, 15, 10], ("s3", "s1")),
        ([10, 20], "less_than_twice_apart"),
        ([10, 10, 30, 30], ("s1", "s3")),
        ([7, 7, 7], "less_than_twice_apart"),
        ([5], "one_program_measured"),
        ([None, None], "no_program_measured"),
        ([None, 5, 11], ("s2", "s3")),
        ([0, 1], ("s1", "s2")),
    ],
)
def test_speed_and_memory_by_hand(memory_collection, dimension, values, outcome):
    chosen = pair_of(add_all(memory_collection, dimension, values), dimension)
    assert (chosen if isinstance(outcome, str) else ids(chosen)) == outcome


@pytest.mark.parametrize("dimension", ["speed", "memory"])
def test_smells_decide_nothing_about_speed_and_memory(memory_collection, dimension):
    memory_collection.add("p1", "s1", rules="AB", **{dimension: 10}).add("p1", "s2", rules="", **{dimension: 10})
    memory_collection.add("p1", "s3", rules="", **{dimension: 50}).add("p1", "s4", rules="ABC", **{dimension: 50})
    assert ids(pair_of(memory_collection, dimension)) == ("s1", "s3")


def test_equal_texts_are_never_paired(memory_collection):
    memory_collection.add("p1", "s1", text="a", speed=10).add("p1", "s2", text="a", speed=100)
    assert pair_of(memory_collection) == "only_equal_texts"
    memory_collection.add("p1", "s3", text="b", speed=19)
    # The best against another text fails the rule, so the worst meets the next-best positive.
    assert ids(pair_of(memory_collection)) == ("s3", "s2")
    memory_collection.add("p1", "s4", text="c", speed=50)
    assert ids(pair_of(memory_collection)) == ("s1", "s4")
    memory_collection.add("p1", "s5", text="d", speed=10)
    assert ids(pair_of(memory_collection)) == ("s5", "s2")


def test_maintainability_takes_most_smells_then_most_rules_then_id(memory_collection):
    memory_collection.add("p1", "s1", rules=[]).add("p1", "s9", rules="AAA").add("p1", "s5", rules="AAB")
    assert ids(pair_of(memory_collection, "maintainability")) == ("s1", "s5")
    memory_collection.add("p1", "s4", rules="CCB")
    assert ids(pair_of(memory_collection, "maintainability")) == ("s1", "s4")
    memory_collection.add("p1", "s8", rules="AAAA")
    assert ids(pair_of(memory_collection, "maintainability")) == ("s1", "s8")


@pytest.mark.parametrize(
    ("rules", "reason"),
    [
        ([None, None], "no_program_analysed"),
        (["A", None], "no_program_without_smells"),
        (["", ""], "no_program_with_smells"),
    ],
)
def test_maintainability_without_a_pair(memory_collection, rules, reason):
    for number, found in enumerate(rules):
        memory_collection.add("p1", f"s{number}", rules=found)
    assert pair_of(memory_collection, "maintainability") == reason


def test_the_clean_program_is_drawn_with_the_seed_whatever_the_order(memory_collection):
    for number in range(20):
        memory_collection.add("p1", f"s{number:02}", rules=[])
    memory_collection.add("p1", "s99", rules="A")
    drawn = [ids(pair_of(memory_collection, "maintainability", seed))[0] for seed in range(200)]
    assert len(set(drawn)) == 20
    assert max(Counter(drawn).values()) < 30
    memory_collection.programs.reverse()
    again = [ids(pair_of(memory_collection, "maintainability", seed))[0] for seed in range(200)]
    assert again == drawn


def legal_pairs(problem, dimension, is_legal):
    measured = [program for program in problem.programs if dimension in program.values]
    return {
        (p.submission_id, n.submission_id)
        for p, n in itertools.permutations(measured, 2)
        if p.text_digest != n.text_digest and is_legal(p.values[dimension], n.values[dimension])
    }


@pytest.mark.parametrize("seed", range(6))
def test_pairs_of_random_problems_keep_the_rules(random_collection, seed):
    for problem in random_collection(seed, num_problems=20).problems():
        for dimension in dimension_names():
            legal = legal_pairs(problem, dimension, get_dimension(dimension).is_pair)
            chosen = choose_pair(problem, dimension, seed)
            if isinstance(chosen, str):
                assert chosen in REASONS
                assert not legal
                continue
            assert ids(chosen) in legal
            by_id = {program.submission_id: program.values.get(dimension) for program in problem.programs}
            # No legal pair is better on one side without being worse on the other.
            for p, n in legal:
                assert not (by_id[p] < by_id[ids(chosen)[0]] and by_id[n] >= by_id[ids(chosen)[1]])
                assert not (by_id[n] > by_id[ids(chosen)[1]] and by_id[p] <= by_id[ids(chosen)[0]])


@pytest.mark.parametrize("seed", range(6))
def test_all_pairs_are_all_clear_pairs(random_collection, seed):
    for problem in random_collection(seed, num_problems=12, most_programs=25).problems():
        for dimension in dimension_names():
            rules = get_dimension(dimension)
            numbered = all_pairs(problem, dimension)
            listed = [(p.submission_id, n.submission_id) for p, n in map(numbered.__getitem__, range(len(numbered)))]
            assert len(set(listed)) == len(listed)
            assert set(listed) == legal_pairs(problem, dimension, rules.is_clear)
            drawn, count = draw_all_pairs(problem, dimension, seed)
            assert count == len(listed)
            assert len(drawn) == len(set(map(ids, drawn))) == min(50, count)
            assert set(map(ids, drawn)) <= set(listed)


def test_all_pairs_of_a_large_problem_are_a_fair_sample(memory_collection):
    for number in range(400):
        memory_collection.add("p1", f"s{number:03}", speed=10 if number % 2 else 30)
    problem = memory_collection.problem("p1")
    seen = Counter()
    for seed in range(40):
        drawn, count = draw_all_pairs(problem, "speed", seed)
        assert count == 200 * 200
        assert len(drawn) == 50
        seen.update(pair.positive.submission_id for pair in drawn)
    # 2,000 draws over 200 positives: 10 each on average.
    assert len(seen) > 190
    assert max(seen.values()) < 30


def test_a_problem_of_equal_texts_has_no_pairs_and_costs_little(memory_collection):
    for number in range(3000):
        memory_collection.add("p1", f"s{number:04}", text="same", speed=1 + number)
    assert draw_all_pairs(memory_collection.problem("p1"), "speed", 0) == ([], 0)


def test_a_permutation_is_one_and_is_lazy():
    assert sorted(Draws(3, "x").permutation(50)) == list(range(50))
    first = [next(Draws(seed, "x").permutation(10**15)) for seed in range(50)]
    assert len(set(first)) == 50
    starts = Counter(next(Draws(seed, "y").permutation(5)) for seed in range(2000))
    assert all(330 < count < 470 for count in starts.values())


def test_draws_stay_what_they_are():
    # Published data sets depend on these numbers.
    assert draw_key(42, "a", "b") != draw_key(42, "ab", "") != draw_key(42, "", "ab")
    draws = Draws(42, "relevance", "p00001/speed")
    assert [draws.below(1000) for _ in range(3)] == [284, 608, 401]


def test_smallest_keys_are_kept_whatever_the_order():
    keys = [draw_key(0, str(number)) for number in range(300)]
    for order in (keys, keys[::-1], sorted(keys)):
        sample = SmallestKeys(20)
        for key in order + order[:50]:
            sample.offer(key, key)
        assert sample.items() == sorted(keys)[:20]
        assert not sample.is_whole
    whole = SmallestKeys(300)
    for key in keys + keys:
        whole.offer(key, key)
    assert whole.is_whole


@pytest.mark.parametrize(
    ("demand", "supplies", "shares"),
    [
        (10, [], []),
        (10, [3, 100], [3, 7]),
        (10, [100, 100, 100], [4, 3, 3]),
        (2, [5, 5, 5], [1, 1, 0]),
        (100, [1, 0, 2], [1, 0, 2]),
        (0, [4], [0]),
    ],
)
def test_fair_shares(demand, supplies, shares):
    assert fair_shares(demand, supplies) == shares


def filled_pool(collection, size=20_000, seed=5):
    pool = NegativePool(seed, size)
    for problem in collection.problems():
        for program in problem.programs:
            pool.offer(program)
    return pool


@pytest.mark.parametrize("size", [20_000, 110])
def test_negatives_are_distinct_texts_of_other_problems(memory_collection, size):
    for number in range(400):
        memory_collection.add(f"p{number % 9}", f"s{number:03}", text=f"print({number % 350})")
    memory_collection.accept("p1", "print(5)")
    accepted = memory_collection.accepted_digests("p1")
    pool = filled_pool(memory_collection, size)
    drawn = draw_negatives(pool, memory_collection, "p1/speed", "p1", accepted)
    assert len(drawn) == len({program.text_digest for program in drawn}) == NUM_NEGATIVES
    assert not {program.text_digest for program in drawn} & accepted
    assert "p1" not in {program.problem_id for program in drawn}
    assert drawn == draw_negatives(pool, memory_collection, "p1/speed", "p1", accepted)
    assert drawn != draw_negatives(pool, memory_collection, "p1/memory", "p1", accepted)


def test_one_problem_that_fills_the_pool_still_gets_its_negatives(memory_collection):
    for number in range(2000):
        memory_collection.add("p1", f"s{number:04}")
    for number in range(120):
        memory_collection.add("p2", f"t{number:04}")
    pool = filled_pool(memory_collection, size=300)
    drawn = draw_negatives(pool, memory_collection, "p1/speed", "p1", memory_collection.accepted_digests("p1"))
    assert len({program.submission_id for program in drawn}) == NUM_NEGATIVES
    assert {program.problem_id for program in drawn} == {"p2"}


@pytest.fixture(scope="module")
def written(random_collection, tmp_path_factory):
    collection, folder = random_collection(3, num_problems=30), tmp_path_factory.mktemp("written")
    collection.accept("p00002", collection.texts[collection.programs[0].text_digest])
    report = write_data_set("qualcode", collection, judge_labels(None), folder, seed=9)
    configs = {name: list(load_dataset(str(folder), name, split="test")) for name in report["configs"]}
    return collection, report, configs


def test_rows_hold_what_was_chosen(written):
    collection, _, configs = written
    problems = {problem.problem_id: problem for problem in collection.problems()}
    programs = {program.submission_id: program for program in collection.programs}
    for dimension in dimension_names():
        assert configs[dimension]
        for row in configs[dimension]:
            chosen = choose_pair(problems[row["problem_id"]], dimension, 9)
            assert isinstance(chosen, Chosen)
            assert row == {
                "instruction": instruction_for(dimension),
                "query": f"Statement of {row['problem_id']}.",
                "positive": collection.text(chosen.positive),
                "negative": collection.text(chosen.negative),
                "dimension": dimension,
                "problem_id": row["problem_id"],
                "positive_id": chosen.positive.submission_id,
                "negative_id": chosen.negative.submission_id,
                "positive_value": chosen.positive.values[dimension],
                "negative_value": chosen.negative.values[dimension],
            }
    for row in configs["all-pairs"]:
        rules = get_dimension(row["dimension"])
        values = [programs[row[side]].values[row["dimension"]] for side in ("positive_id", "negative_id")]
        assert values == [row["positive_value"], row["negative_value"]]
        assert rules.is_clear(*values)
        assert row["positive"] != row["negative"]


def test_counts_add_up(written):
    collection, report, configs = written
    assert report["configs"] == {name: len(rows) for name, rows in configs.items()}
    for dimension, counts in report["pairs"].items():
        assert counts["problems"] == len(collection.problem_ids)
        assert counts["pairs"] == len(configs[dimension])
        assert counts["problems"] == counts["pairs"] + sum(counts["problems_without_pair"].values())
    for dimension, counts in report["all_pairs"].items():
        rows = [row for row in configs["all-pairs"] if row["dimension"] == dimension]
        assert counts["pairs"] == len(rows)
        assert counts["problems"] == len({row["problem_id"] for row in rows})
    assert len(configs["labels"]) == len(collection.programs)
    assert len(configs["relevance"]) == len(configs["queries"]) == sum(
        len(configs[dimension]) for dimension in dimension_names()
    )


def test_relevance_rows(written):
    collection, _, configs = written
    programs = {program.submission_id: program for program in collection.programs}
    for row in configs["relevance"]:
        accepted = collection.accepted_digests(row["problem_id"])
        chosen = [programs[submission_id] for submission_id in row["negative_ids"]]
        assert row["negatives"] == [collection.text(program) for program in chosen]
        assert len(set(row["negatives"])) == len(row["negatives"]) == NUM_NEGATIVES
        assert not {program.text_digest for program in chosen} & accepted
        pair = next(p for p in configs[row["dimension"]] if p["problem_id"] == row["problem_id"])
        assert (row["positive"], row["positive_id"]) == (pair["positive"], pair["positive_id"])


def test_the_corpus_is_every_text_and_pools_lack_other_solutions(written):
    collection, _, configs = written
    pairs = [row for dimension in dimension_names() for row in configs[dimension]]
    texts = {row["_id"]: row["text"] for row in configs["corpus"]}
    assert sorted(texts.values()) == sorted({row[side] for row in pairs for side in ("positive", "negative")})
    digest_of = {text: digest for digest, text in collection.texts.items()}
    relevant = {row["query-id"]: row["corpus-id"] for row in configs["qrels"]}
    assert {row["score"] for row in configs["qrels"]} == {1}
    for row in configs["queries"]:
        pair = next(p for p in configs[row["dimension"]] if p["problem_id"] == row["problem_id"])
        assert row["_id"] == f"{row['problem_id']}/{row['dimension']}"
        assert row["text"] == f"{row['instruction']}\n{row['query']}"
        assert texts[relevant[row["_id"]]] == pair["positive"]
        accepted = collection.accepted_digests(row["problem_id"])
        solutions = {doc_id for doc_id, text in texts.items() if digest_of[text] in accepted}
        assert set(row["excluded_ids"]) == solutions - {relevant[row["_id"]]}
    assert any(len(row["excluded_ids"]) > 4 for row in configs["queries"])


def test_labels_keep_nulls(written):
    collection, _, configs = written
    by_id = {row["submission_id"]: row for row in configs["labels"]}
    for program in collection.programs:
        row = by_id[program.submission_id]
        assert (row["cpu_time"], row["memory"]) == (program.values.get("speed"), program.values.get("memory"))
        assert row["fingerprint"] == program.fingerprint
        if program.smell_rules is None:
            assert [value for name, value in row.items() if name.startswith("smell")] == [None] * 4
        else:
            assert (row["smells"], tuple(row["smell_rules"])) == (len(program.smell_rules), program.smell_rules)
            assert (row["smell_engine"], row["smell_engine_version"]) == ("toy", "1")
        assert row["remeasured_speed"] is row["remeasured_speed_unit"] is None
