"""What is learnt from pairs of functions: weights, files, and the figures of held-out transformations."""

import json
from dataclasses import asdict

import numpy as np
import pytest

from hf_qualcode.quality import dimension_names
from hf_qualcode.quality.function_features import FUNCTION_FEATURE_NAMES, function_features
from hf_qualcode.quality.static_features import FEATURE_NAMES, static_features
from hf_qualcode.rerank.function_pairs import (
    FunctionPair,
    fit_function_weights,
    read_function_pairs,
    spread_of_programs,
)
from hf_qualcode.rerank.recipe.function_validation import held_out_weights, task_folds
from hf_qualcode.types import QualcodeError


ONES = np.ones(3)


def pair(task, change, dimension="speed"):
    """A function and a slower one: by a deep copy, by sorting, or by an index in a loop."""
    body = f"def f{task}(values):\n    total = {task}\n"
    plain = body + "    for value in values:\n        total += value\n    return total\n"
    slow = {
        "copies": body + "    for value in copy.deepcopy(values):\n        total += value\n    return total\n",
        "sorts": body + "    for value in sorted(values):\n        total += value\n    return total\n",
        "indexes": body + "    for value in values:\n        total += values.index(value)\n    return total\n",
    }
    slow["copies+sorts"] = slow["copies"].replace("copy.deepcopy(values)", "sorted(copy.deepcopy(values))")
    return FunctionPair(str(task), "Sum.", dimension, f"{dimension}/patterns", change, plain, slow[change])


PAIRS = [pair(task, change) for task in range(10) for change in ("copies", "sorts", "indexes", "copies+sorts")]


def score(weights, code, dimension="speed"):
    return weights[dimension_names().index(dimension)] @ function_features(code)


def test_weights_prefer_what_the_pairs_prefer():
    weights = fit_function_weights(PAIRS, ONES)
    assert all(score(weights, each.high) > score(weights, each.low) for each in PAIRS)
    others = [row for row, name in enumerate(dimension_names()) if name != "speed"]
    assert not weights[others].any()


def test_weights_do_not_depend_on_the_order_and_follow_the_pairs_turned_round():
    weights = fit_function_weights(PAIRS, ONES)
    np.testing.assert_allclose(fit_function_weights(PAIRS[::-1], ONES), weights, atol=1e-6)
    turned = [FunctionPair(*(*list(asdict(each).values())[:5], each.low, each.high)) for each in PAIRS]
    np.testing.assert_allclose(fit_function_weights(turned, ONES), -weights, atol=1e-6)


def test_scores_have_the_spread_that_is_asked_for():
    codes = [code for each in PAIRS for code in (each.high, each.low)]
    for spread in (0.5, 3.0):
        weights = fit_function_weights(PAIRS, np.full(3, spread))
        assert np.std([score(weights, code) for code in codes]) == pytest.approx(spread)


def test_the_spread_of_programs_is_that_of_their_static_scores():
    programs = ["print(1)\n", "for number in range(3):\n    print(number)\n", "x = 1\n"]
    static = np.random.default_rng(0).normal(size=(3, len(FEATURE_NAMES)))
    scores = [[row @ static_features(code) for code in programs] for row in static]
    np.testing.assert_allclose(spread_of_programs(static, programs), np.std(scores, axis=1))


def test_a_frequent_transformation_does_not_drown_the_others():
    few = [pair(0, "sorts")]
    # Of equal pairs each counts as the root of its number.
    many = [pair(0, "copies")] * 100
    weights = fit_function_weights(few + many, ONES)
    place = {name: number for number, name in enumerate(FUNCTION_FEATURE_NAMES)}
    row = weights[dimension_names().index("speed")]
    assert row[place["calls sorted or sort"]] < 0
    assert abs(row[place["calls sorted or sort"]]) > abs(row[place["calls copy"]]) / 20


def test_without_pairs_all_weights_are_0():
    assert not fit_function_weights([], ONES).any()


def test_a_held_out_pair_is_judged_by_what_shares_nothing_with_it(monkeypatch):
    from hf_qualcode.rerank.recipe import function_validation

    seen = []

    def fit(pairs, spread):
        seen.append(pairs)
        return fit_function_weights(pairs, spread)

    monkeypatch.setattr(function_validation, "fit_function_weights", fit)
    pairs = PAIRS + [pair(task, "sorts", "memory") for task in range(10)]
    found = held_out_weights(pairs, pairs, ONES)
    folds = task_folds(pairs, 42)
    assert sorted(folds.values()) == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
    assert len(seen) == 5 * 5
    for each, own in zip(pairs, found, strict=True):
        allowed = [
            other for other in pairs
            if other.dimension == each.dimension and folds[other.task_id] != folds[each.task_id]
            and not other.transformations & each.transformations
        ]  # fmt: skip
        np.testing.assert_allclose(
            own, fit_function_weights(allowed, ONES)[dimension_names().index(each.dimension)], atol=1e-9
        )
    # Nothing else is known of memory, so nothing is said.
    assert not any(own.any() for each, own in zip(pairs, found, strict=True) if each.dimension == "memory")


def test_drawn_pairs_are_of_single_transformations_and_no_more_than_are_asked_for(monkeypatch):
    from hf_qualcode.rerank.recipe import function_validation

    single = [each for each in PAIRS if "+" not in each.transformation]
    assert function_validation.drawn_pairs(PAIRS, 1) == single
    monkeypatch.setattr(function_validation, "MOST_PAIRS", 7)
    drawn = function_validation.drawn_pairs(PAIRS, 1)
    assert len(drawn) == 7
    assert [each for each in single if each in drawn] == drawn
    assert drawn == function_validation.drawn_pairs(PAIRS, 1)
    assert len({tuple(map(id, function_validation.drawn_pairs(PAIRS, seed))) for seed in range(5)}) > 1


# ---- files ----


def write(path, *rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_pairs_are_read_without_whole_programs(tmp_path):
    row = asdict(PAIRS[0]) | {"level": "low", "evidence": {}}
    program = row | {"high": "print(1)\n"}
    assert read_function_pairs(write(tmp_path / "pairs.jsonl", row, program, row)) == [PAIRS[0], PAIRS[0]]


@pytest.mark.parametrize("line", ["{", "[]", "{}", '{"task_id": 1}', "null"])
def test_a_line_that_is_no_pair_is_named(tmp_path, line):
    path = write(tmp_path / "pairs.jsonl", asdict(PAIRS[0]))
    path.write_text(path.read_text() + line + "\n")
    with pytest.raises(QualcodeError, match="line 2 is no pair of the rules writer"):
        read_function_pairs(path)


def test_an_unknown_quality_and_a_missing_file_are_named(tmp_path):
    with pytest.raises(QualcodeError, match="colour"):
        read_function_pairs(write(tmp_path / "pairs.jsonl", asdict(PAIRS[0]) | {"dimension": "colour"}))
    with pytest.raises(QualcodeError, match="cannot be read"):
        read_function_pairs(tmp_path / "nowhere")
