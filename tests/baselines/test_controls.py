"""The standard controls: which pairs a slice holds, and what a perturbation changes."""

from dataclasses import replace

import numpy as np
import pytest

from hf_qualcode.baselines.controls import (
    num_tokens,
    paraphrase,
    standard_perturbations,
    standard_slices,
    trivial_baselines,
)
from hf_qualcode.evaluation.preference import evaluate_preference
from hf_qualcode.evaluation.preference_report import preference_report
from hf_qualcode.evaluation.protocols import Perturbation, Slice
from hf_qualcode.quality import dimension_names, instruction_for
from hf_qualcode.types import PreferencePair


NUMPY = "import numpy as np\nprint(np.zeros(3))"


def pair(number=0, positive="x = 1", negative="y = 2", dimensions=("speed",), missing="", values=(10, 30)):
    return PreferencePair(
        id=f"{'+'.join(dimensions)}/{number}", instruction=instruction_for(dimensions), query=f"Print {number % 4}.",
        positive=positive, negative=negative, dimensions=dimensions, missing_dimension=missing,
        problem_id=f"p{number % 4}", positive_id=f"a{number}", negative_id=f"b{number}",
        positive_value=values[0], negative_value=values[1],
    )  # fmt: skip


def select(name, pairs, labels=None):
    (part,) = [part for part in standard_slices() if part.name == name]
    chosen = part.select(pairs, labels or {})
    assert chosen.dtype == bool
    return chosen.tolist()


def change(name, *pairs):
    (perturbation,) = [each for each in standard_perturbations() if each.name == name]
    return perturbation.transform(pairs)


def test_names_and_protocols():
    slices, perturbations, baselines = standard_slices(), standard_perturbations(), trivial_baselines()
    assert all(isinstance(part, Slice) for part in slices)
    assert all(isinstance(each, Perturbation) for each in perturbations)
    assert {part.name for part in slices} == {
        *("length-matched", "no numpy", "factor 2", "factor 3", "factor 5", "speed and memory disagree")
    }
    assert {each.name: each.expected for each in perturbations} == {
        "negated instruction": "reversed",
        "normalised names and comments": "same",
        "paraphrased instruction": "same",
    }
    names = [baseline.name for baseline in baselines]
    assert len(set(names)) == len(names)
    assert names[-1] == "static"
    assert all(each.description for each in (*slices, *perturbations))
    assert all(part.select([], {}).shape == (0,) for part in slices)
    assert all(each.transform([]) == [] for each in perturbations)


def test_tokens_are_words_and_signs():
    assert num_tokens("x_1 += foo(12, 'a b')  # why?") == 15
    assert num_tokens("") == 0


def test_length_matched_is_20_percent_inclusive():
    five, six, seven = "a b c d e", "a b c d e f", "a b c d e f g"
    pairs = [pair(0, five, six), pair(1, six, five), pair(2, five, seven), pair(3, "", "")]
    assert select("length-matched", pairs) == [True, True, False, True]


def test_no_numpy_looks_at_both_sides():
    pairs = [pair(0), pair(1, positive=NUMPY), pair(2, negative=NUMPY), pair(3, negative="# numpy\nnumpy = 1")]
    assert select("no numpy", pairs) == [True, False, False, True]


def test_factors_are_strict_and_of_smells_plus_one():
    pairs = [
        pair(0, values=(10, 20)), pair(1, values=(10, 20.5)), pair(2, values=(10, 31)), pair(3, values=(10, 51)),
        pair(4, values=(None, 51)),
        pair(5, dimensions=("maintainability",), values=(0, 3)),  # 1 against 4
        pair(6, dimensions=("maintainability",), values=(3, 8)),  # 4 against 9
        pair(7, dimensions=("speed", "maintainability"), missing="maintainability", values=(0, 5)),
        pair(8, dimensions=("maintainability", "speed"), missing="speed", values=(1, 5)),
    ]  # fmt: skip
    assert select("factor 2", pairs) == [False, True, True, True, False, True, True, True, True]
    assert select("factor 3", pairs) == [False, False, True, True, False, True, False, True, True]
    assert select("factor 5", pairs) == [False, False, False, True, False, False, False, True, False]


def row(cpu_time=None, memory=None, remeasured_speed=None, remeasured_memory=None):
    return {
        "cpu_time": cpu_time, "memory": memory, "remeasured_speed": remeasured_speed,
        "remeasured_memory": remeasured_memory,
    }  # fmt: skip


def test_disagreement_of_speed_and_memory():
    name = "speed and memory disagree"
    speed, memory = pair(0), pair(0, dimensions=("memory",), values=(100, 400))
    worse = {"a0": row(10, 400), "b0": row(30, 100)}  # faster, and larger
    alike = {"a0": row(10, 100), "b0": row(30, 400)}
    equal = {"a0": row(10, 100), "b0": row(30, 100)}
    unknown = {"a0": row(10, 100), "b0": row(30)}
    assert [select(name, [speed], labels)[0] for labels in (worse, alike, equal, unknown, {})] == [True, *[False] * 4]
    leaner = {"a0": row(30, 100), "b0": row(10, 400)}
    assert [select(name, [memory], labels)[0] for labels in (leaner, alike)] == [True, False]
    # Pairs that were made from repeated measurements are compared in those.
    again = replace(speed, positive_value=1.5, negative_value=4.5)
    labels = {"a0": row(10, 100, 1.5, 9), "b0": row(30, 400, 4.5, 8)}
    assert select(name, [again, speed], labels) == [True, False]
    # Neither of one dimension alone.
    both = pair(0, dimensions=("speed", "memory"))
    smells = pair(0, dimensions=("maintainability",))
    assert select(name, [both, smells], worse) == [False, False]


def test_labels_may_be_objects():
    class Row:
        def __init__(self, cpu_time, memory):
            self.cpu_time, self.memory, self.remeasured_speed, self.remeasured_memory = cpu_time, memory, None, None

    assert select("speed and memory disagree", [pair(0)], {"a0": Row(10, 400), "b0": Row(30, 100)}) == [True]


def test_negation_changes_the_instruction_alone():
    asked = [pair(0), pair(1, dimensions=("speed", "maintainability"), missing="speed")]
    changed = change("negated instruction", *asked)
    assert [each.instruction for each in changed] == [
        "Retrieve code that is slow", "Retrieve code that is slow and hard to maintain"
    ]  # fmt: skip
    assert [replace(new, instruction=old.instruction) for new, old in zip(changed, asked, strict=True)] == asked


def test_paraphrases():
    assert paraphrase(("speed",)) == "Find a program that takes little time to run"
    assert paraphrase(("memory", "speed")) == (
        "Find a program that takes little time to run and needs little room in memory"
    )
    assert paraphrase(dimension_names()) == (
        "Find a program that takes little time to run, needs little room in memory and is easy to read and to change"
    )
    (changed,) = change("paraphrased instruction", pair(0))
    assert changed == replace(pair(0), instruction=paraphrase(("speed",)))
    # It shares no word with what a model is told otherwise, but for the smallest.
    shared = {word for name in dimension_names() for word in paraphrase((name,)).split()} & {
        word for name in dimension_names() for word in instruction_for(name).split()
    }
    assert shared <= {"that", "is"}


def test_normalised_programs():
    long = '"""Docs."""\ncount = 3  # three\nprint(count)'
    (changed,) = change("normalised names and comments", pair(0, positive=long, negative="print 'python 2'"))
    assert changed == replace(pair(0), positive="v0 = 3\nprint(v0)\n", negative="print 'python 2'")


def test_a_report_with_all_controls():
    """A model that judges by reading stdin, and obeys "slow": the driver runs every control on it."""

    class Model:
        def score(self, instructions, queries, codes):
            signs = [-1 if "slow" in instruction else 1 for instruction in instructions]
            return np.array([sign * ("stdin" in code) for sign, code in zip(signs, codes, strict=True)], np.float32)

    pairs = [
        pair(n, f"import sys\nx = sys.stdin.read()\nprint({n})", f"x = input()\nprint(x, {n})") for n in range(8)
    ]
    controls = [*standard_slices(), *standard_perturbations()]
    result = evaluate_preference(pairs, Model(), controls=controls, baselines=trivial_baselines(), folds=2)
    assert result.scores.right.all()
    assert {baseline.name for baseline in trivial_baselines()} == set(result.baselines)
    assert result.baselines["static"].right.all()
    assert (result.baselines["random"].half_credit == 0.5).all()
    assert result.baselines["reads-stdin"].right.all()
    assert (result.perturbations["negated instruction"].scores.margins == -1).all()
    for name in ("normalised names and comments", "paraphrased instruction"):
        assert (result.perturbations[name].scores.margins == 1).all()
        assert result.perturbations[name].changed.all()
    assert result.slices["no numpy"].rows.all()
    assert preference_report(result, source="x", config={}, metric="qpa")


@pytest.mark.parametrize("perturbation", standard_perturbations(), ids=lambda each: each.name)
def test_perturbations_keep_ids_order_and_labels(perturbation):
    pairs = [pair(n, NUMPY, f"print({n})") for n in range(3)]
    for old, new in zip(pairs, perturbation.transform(pairs), strict=True):
        assert (new.id, new.problem_id, new.dimensions) == (old.id, old.problem_id, old.dimensions)
        assert (new.query, new.positive_id, new.negative_id) == (old.query, old.positive_id, old.negative_id)
        assert (new.positive_value, new.negative_value) == (old.positive_value, old.negative_value)
