"""The preference driver and its report: independent twins of every number, on random data with ties."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from hf_qualcode.evaluation.label_noise import label_noise
from hf_qualcode.evaluation.preference import SWAPPED, evaluate_preference
from hf_qualcode.evaluation.preference_report import preference_report, preference_tables
from hf_qualcode.evaluation.protocols import NamedScorer, Perturbation, Slice
from hf_qualcode.evaluation.scoring import PairScores
from hf_qualcode.metrics import quality_preference_accuracy
from hf_qualcode.types import QualcodeError


def of_dimension(pairs, name):
    return [replace(each, dimensions=(name,), id=f"{name}/{each.id}") for each in pairs]


@pytest.fixture
def pairs(pairs_of):
    sizes = np.random.default_rng(0).integers(1, 9, 25)
    base = pairs_of(sizes)
    return of_dimension(base, "speed") + of_dimension(base[::2], "memory")


def noisy(seed, levels=4):
    def score(instructions, queries, codes):
        rng = np.random.default_rng(seed)
        return rng.integers(0, levels, len(codes)) + 0.5 * np.array([code[0] == "p" for code in codes])

    return score


def report_of(data, **kwargs):
    kwargs = {"source": "DIR", "config": {"split": "test"}, **kwargs}
    report = preference_report(data, **kwargs)
    assert json.loads(json.dumps(report)) == report
    return report


def test_the_common_keys_and_numbers_equal_to_the_metric(pairs):
    data = evaluate_preference(pairs, noisy(1), name="m", baselines=[NamedScorer("b", noisy(2))])
    report = report_of(data)
    keys = ("data", "config", "model", "n", "metrics", "intervals", "baselines", "by_group", "slices", "controls")
    assert set(report) >= {*keys, "label_noise"}
    problem_ids = [pair.problem_id for pair in pairs]
    groups = [pair.dimensions[0] for pair in pairs]
    for numbers, scores in ((report, data.scores), (report["baselines"]["b"], data.baselines["b"])):
        expected = quality_preference_accuracy(scores.positive, scores.negative, problem_ids, groups)
        assert numbers["metrics"]["qpa"] == expected.accuracy
        assert numbers["metrics"]["half_credit"] == pytest.approx(expected.half_credit)
        assert (numbers["metrics"]["ties"], numbers["metrics"]["tie_rate"]) == (expected.ties, expected.tie_rate)
        assert numbers["intervals"]["qpa"] == [expected.ci_low, expected.ci_high]
    for name, part in expected.by_group.items():
        numbers = report["by_group"][name]["baselines"]["b"]
        assert numbers["metrics"]["qpa"] == part.accuracy
        assert numbers["intervals"]["qpa"] == [part.ci_low, part.ci_high]
        assert report["by_group"][name]["n"] == part.n
    assert (report["n"], report["problems"]) == (len(pairs), 25)


def test_macro_is_the_mean_of_the_problems(pairs):
    data = evaluate_preference(pairs, noisy(3))
    report = report_of(data)
    by_problem = {}
    for pair, right, half in zip(pairs, data.scores.right, data.scores.half_credit, strict=True):
        by_problem.setdefault(pair.problem_id, []).append((right, half))
    means = np.array([np.mean(values, axis=0) for values in by_problem.values()])
    assert report["metrics"]["macro"] == pytest.approx(means[:, 0].mean())
    assert report["metrics"]["macro_half_credit"] == pytest.approx(means[:, 1].mean())
    assert report["metrics"]["macro"] != report["metrics"]["qpa"]
    low, high = report["intervals"]["macro"]
    assert low < report["metrics"]["macro"] < high


def test_differences_are_paired_and_clustered(pairs):
    data = evaluate_preference(pairs, noisy(1), baselines=[NamedScorer("b", noisy(2)), NamedScorer("same", noisy(1))])
    baselines = report_of(data)["baselines"]
    ours, theirs = data.scores, data.baselines["b"]
    difference = baselines["b"]["differences"]["half_credit"]
    assert difference["difference"] == pytest.approx(np.mean(ours.half_credit - theirs.half_credit))
    # A plain loop over drawn problems.
    rng = np.random.default_rng(5)
    members = [np.flatnonzero(data.problem_ids == name) for name in np.unique(data.problem_ids)]
    means = []
    for _ in range(3_000):
        drawn = np.concatenate([members[i] for i in rng.integers(0, len(members), len(members))])
        means.append(np.mean(ours.half_credit[drawn] - theirs.half_credit[drawn]))
    low, high = np.quantile(means, [0.025, 0.975])
    assert difference["low"] == pytest.approx(low, abs=0.08 * (high - low))
    assert difference["high"] == pytest.approx(high, abs=0.08 * (high - low))
    counts = baselines["b"]["mcnemar"]
    assert counts["only_first"] == np.sum((ours.right == 1) & (theirs.right == 0))
    assert counts["only_second"] == np.sum((ours.right == 0) & (theirs.right == 1))
    same = baselines["same"]
    assert same["differences"]["qpa"] == {"difference": 0, "low": 0, "high": 0, "p_value": 1}
    assert same["mcnemar"]["p_value"] == 1


def test_slices_choose_pairs_by_themselves_and_their_labels(pairs):
    chosen = {"odd": lambda each: int(each.positive_id[1:]) % 2 == 1, "none": lambda each: False}
    slices = [
        Slice(name, f"pairs that are {name}", lambda pairs, labels, f=f: np.array([f(each) for each in pairs]))
        for name, f in chosen.items()
    ]
    slices.append(Slice("known", "", lambda pairs, labels: np.array([each.positive_id in labels for each in pairs])))
    baselines = [NamedScorer("b", noisy(2))]
    data = evaluate_preference(pairs, noisy(1), labels={"a1": {}}, controls=slices, baselines=baselines)
    report = report_of(data)
    rows = np.array([chosen["odd"](each) for each in pairs])
    odd = report["slices"]["odd"]
    assert odd["n"] == rows.sum()
    assert odd["metrics"]["qpa"] == data.scores.right[rows].mean()
    assert odd["problems"] == len(np.unique(data.problem_ids[rows]))
    half_credit = data.baselines["b"].half_credit[rows].mean()
    assert odd["baselines"]["b"]["metrics"]["half_credit"] == pytest.approx(half_credit)
    assert sum(part["n"] for part in odd["by_group"].values()) == odd["n"]
    assert report["slices"]["none"] == {
        "description": "pairs that are none", "n": 0, "problems": 0, "metrics": {}, "intervals": {},
        "baselines": {"b": {"metrics": {}, "differences": {}}},
        "by_group": {name: {"n": 0, "problems": 0, "metrics": {}, "intervals": {}, "baselines": {"b": {"metrics": {}}}}
                     for name in ("speed", "memory")},
    }  # fmt: skip
    assert report["slices"]["known"]["n"] == sum(each.positive_id == "a1" for each in pairs) >= 1
    text = "".join(table.to_text() for table in preference_tables(report))
    assert all(word in text for word in ("odd", "none", "QPA", "half credit", "memory"))
    for bad in (np.zeros(3, dtype=bool), np.zeros(len(pairs))):
        with pytest.raises(QualcodeError, match="slice 'bad' gave"):
            evaluate_preference(pairs, noisy(1), controls=[Slice("bad", "", lambda *_, bad=bad: bad)])


def changed(function, expected="same", name="change"):
    return Perturbation(name, "", lambda pairs: [replace(each, **function(each)) for each in pairs], expected)


class Obedient:
    """Prefers `p` programs, and `n` programs when the instruction is negated; a share of the problems it ignores."""

    def __init__(self, deaf=()):
        self.deaf = {f"statement of {name}" for name in deaf}

    def score(self, instructions, queries, codes):
        return [
            (1 if code[0] == "p" else -1) * (-1 if "slow" in instruction and query not in self.deaf else 1)
            for instruction, query, code in zip(instructions, queries, codes, strict=True)
        ]


def test_a_negated_instruction_turns_an_obedient_model_round(pairs):
    negated = changed(lambda each: {"instruction": "Retrieve code that is slow"}, "reversed", "negated")
    report = report_of(evaluate_preference(pairs, Obedient(), controls=[negated]))
    control = report["controls"]["negated"]
    assert control["metrics"]["qpa"] == 0
    assert control["exchanged"]["metrics"]["qpa"] == 1
    assert (control["flip_rate"], control["turns_round"], control["changed_inputs"]) == (1, True, len(pairs))
    assert control["score_change"]["mean"] == 2
    assert set(control["by_group"]) == {"speed", "memory"}
    deaf = {pair.problem_id for pair in pairs[: len(pairs) // 3]}
    data = evaluate_preference(pairs, Obedient(deaf), controls=[negated])
    control = report_of(data)["controls"]["negated"]
    share = np.mean([pair.problem_id not in deaf for pair in pairs])
    assert control["flip_rate"] == pytest.approx(share)
    assert control["exchanged"]["metrics"]["qpa"] == pytest.approx(share)
    assert "flips" in "".join(table.to_text() for table in preference_tables(report_of(data)))


def test_a_model_that_ignores_the_instruction_does_not_turn_round(pairs, by_text):
    negated = changed(lambda each: {"instruction": "slow"}, "reversed", "negated")
    deaf = Obedient({pair.problem_id for pair in pairs})
    control = report_of(evaluate_preference(pairs, deaf, controls=[negated]))["controls"]["negated"]
    assert (control["flip_rate"], control["turns_round"]) == (0, False)
    assert control["score_change"]["mean"] == 0
    # One that prefers the worse programs whatever it is told passes the literal rule, and the table says how.
    stubborn = evaluate_preference(pairs, by_text(lambda i, q, code: -(code[0] == "p")), controls=[negated])
    control = report_of(stubborn)["controls"]["negated"]
    assert (control["flip_rate"], control["turns_round"]) == (0, True)
    text = "".join(table.to_text() for table in preference_tables(report_of(stubborn)))
    assert "a model that ignores the instruction flips nothing, and gets a yes all the same" in text
    # One score for everything: no flip, but nothing that speaks against one either.
    constant = evaluate_preference(pairs, lambda i, q, codes: np.zeros(len(codes)), controls=[negated])
    control = report_of(constant)["controls"]["negated"]
    assert (control["flip_rate"], control["flip_rate_with_ties"], control["turns_round"]) == (0, 1, False)
    assert control["score_change"]["in_standard_deviations"] is None


def test_a_change_that_should_not_matter(pairs, by_text):
    lengthened = changed(lambda each: {"positive": each.positive + "#", "negative": each.negative})
    scorer = by_text(lambda instruction, query, code: (code[0] == "p") - 2.0 * code.endswith("#") * (query[-1] == "0"))
    data = evaluate_preference(pairs, scorer, controls=[lengthened])
    assert len(scorer.calls) == 3  # as given, changed, and the other way round
    assert all(len(set(call)) == len(call) for call in scorer.calls)
    control = report_of(data)["controls"]["change"]
    touched = np.mean([pair.query[-1] == "0" for pair in pairs])
    assert control["decision_changed"] == pytest.approx(touched)
    assert control["metrics"]["qpa"] == pytest.approx(1 - touched)
    assert control["score_change"]["mean"] == pytest.approx(touched)
    assert "flip_rate" not in control
    swapped = report_of(data)["controls"][SWAPPED]
    assert (swapped["decision_changed"], swapped["score_change"]["mean"]) == (0, 0)


def test_a_scorer_that_depends_on_the_order_is_caught(pairs):
    def by_position(instructions, queries, codes):
        return np.arange(len(codes), dtype=float)

    control = report_of(evaluate_preference(pairs, by_position, controls=[changed(lambda each: {})]))["controls"]
    assert control[SWAPPED]["decision_changed"] == 1
    assert control["change"]["decision_changed"] == 0


def test_a_perturbation_must_keep_ids_and_order(pairs):
    reorder = Perturbation("reorder", "", lambda pairs: list(pairs[::-1]), "same")
    with pytest.raises(QualcodeError, match="'reorder' must keep"):
        evaluate_preference(pairs, noisy(1), controls=[reorder])


def test_trained_models_are_perturbed_without_being_fitted_again(pairs):
    class Trainable:
        fits = 0

        def fit(self, pairs):
            Trainable.fits += 1
            return Obedient()

    negated = changed(lambda each: {"instruction": "slow"}, "reversed", "negated")
    report = report_of(evaluate_preference(pairs, Trainable(), controls=[negated], folds=3))
    assert Trainable.fits == 3
    assert report["metrics"]["qpa"] == 1
    assert report["controls"]["negated"]["flip_rate"] == 1


def test_scores_from_elsewhere_cannot_be_perturbed_which_is_said(pairs):
    scores = PairScores(np.ones(len(pairs)), np.zeros(len(pairs)))
    data = evaluate_preference(pairs, scores, controls=[changed(lambda each: {})])
    report = report_of(data)
    assert report["metrics"]["qpa"] == 1
    assert report["controls"] == {}
    assert "without the model" in report["notes"][0]
    with pytest.raises(QualcodeError, match="scores of 2 pairs"):
        evaluate_preference(pairs, PairScores(np.ones(2), np.zeros(2)))


def test_groups_of_multi_condition_pairs(pair):
    pairs = [
        pair(0, "q0", dimension="speed", missing="speed"),
        pair(1, "q1", dimension="speed+memory", missing="memory"),
        pair(2, "q1", dimension="speed+memory", missing="speed"),
    ]
    report = report_of(evaluate_preference(pairs, lambda i, q, codes: [c[0] == "p" for c in codes]), metric="mca")
    counts = {name: numbers["n"] for name, numbers in report["by_group"].items()}
    assert counts == {
        "1-condition": 1, "2-condition": 2, "speed": 1, "speed+memory": 2, "speed missing": 2, "memory missing": 1
    }  # fmt: skip
    assert report["metrics"]["mca"] == 1
    assert "MCA" in preference_tables(report)[0].to_text()


def test_rows_hold_what_a_comparison_needs(pairs, by_text):
    data = evaluate_preference(pairs, by_text({t: 1 for p in pairs for t in (p.positive, p.negative)}, "log-odds"))
    row = data.rows()[0]
    assert row == {
        "id": pairs[0].id, "positive_score": 1.0, "negative_score": 1.0, "problem_id": "q0", "dimension": "speed",
        "missing_dimension": "", "positive_id": "a0", "negative_id": "b0", "scale": "log-odds",
    }  # fmt: skip
    assert "scale" not in evaluate_preference(pairs, noisy(1)).rows()[0]


def test_wrong_calls(pairs):
    for call, words in (
        (lambda: evaluate_preference([], noisy(1)), "no pairs"),
        (lambda: evaluate_preference([pairs[0]] * 2, noisy(1)), "appears twice"),
        (lambda: evaluate_preference(pairs, noisy(1), name="b", baselines=[NamedScorer("b", noisy(2))]), "named 'b'"),
        (lambda: evaluate_preference(pairs, noisy(1), controls=[changed(lambda e: {})] * 2), "named 'change'"),
    ):
        with pytest.raises(QualcodeError, match=words):
            call()


def label(problem, fingerprint, cpu_time=None, memory=None, smells=None, again=None):
    return {
        "problem_id": problem, "fingerprint": fingerprint, "cpu_time": cpu_time, "memory": memory, "smells": smells,
        "remeasured_speed": again, "remeasured_memory": None,
    }  # fmt: skip


def test_label_noise_by_hand():
    labels = {
        "s1": label("q1", "f", 10, 100, 0),
        "s2": label("q1", "f", 25, 100, 0),  # 2.5 x
        "s3": label("q1", "f", 12, 100, 2),  # 1.2 x and 2.08 x; smells + 1: 3 x
        "s4": label("q1", "g", 999, 999, 9),
        "s5": label("q2", "f", 999, 999, 9),  # another problem
        "s6": label("q2", "h"),
        "s7": label("q3", "f", 10, 100, 1),
        "s8": label("q3", "f", 20, 200, 0),  # 2 x is not more than 2 x: such a pair has no label
    }
    noise = label_noise(labels)
    assert noise["remeasured"] == {}
    speed = noise["same_code"]["speed"]
    assert (speed["groups"], speed["pairs"], speed["problems"]) == (2, 4, 2)
    assert speed["differ_by_2"] == pytest.approx(2 / 4)
    assert speed["median_ratio"] == pytest.approx((2 + 25 / 12) / 2)
    assert noise["same_code"]["memory"]["differ_by_2"] == 0
    assert noise["same_code"]["maintainability"]["differ_by_2"] == pytest.approx(2 / 4)


def test_remeasured_labels_agree_contradict_or_tie():
    rows = {
        "s1": label("q1", "a", 10, again=1.0),
        "s2": label("q1", "b", 20.5, again=2.0),
        "s3": label("q1", "c", 60, again=0.5),
        "s4": label("q2", "d", 10, again=3.0),
        "s5": label("q2", "e", 25, again=3.0),
        "s6": label("q2", "f", 99),
        "s7": label("q2", "g", 20, again=9.0),  # 2 x s4, which is not more: no pair of the benchmark
    }
    noise = label_noise({name: SimpleNamespace(**row) for name, row in rows.items()})["remeasured"]["speed"]
    # Ratios: 2.05 (agrees), 6 and 2.9 (contradict), 2.5 (a tie in the second measurement).
    assert [(noise[f]["pairs"], noise[f]["problems"]) for f in ("2", "3", "5")] == [(4, 2), (1, 1), (1, 1)]
    assert (noise["2"]["agree"], noise["2"]["contradict"]) == (0.25, 0.5)
    assert (noise["3"]["agree"], noise["3"]["contradict"]) == (0, 1)


def test_label_noise_reaches_the_report(pairs):
    labels = {"s1": label("q1", "f", 10), "s2": label("q1", "f", 25)}
    report = report_of(evaluate_preference(pairs, noisy(1), labels=labels))
    assert report["label_noise"]["same_code"]["speed"]["differ_by_2"] == 1
    assert "factor of 2" in preference_tables(report)[-1].to_text()


def test_equal_seeds_give_equal_reports(pairs):
    reports = [report_of(evaluate_preference(pairs, noisy(1)), seed=seed) for seed in (1, 1, 2)]
    assert reports[0] == reports[1] != reports[2]
