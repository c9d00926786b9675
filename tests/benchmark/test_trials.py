"""Which inputs count, from answers made by hand."""

import pytest

from hf_qualcode.benchmark.trials import Answer, Choice, InputVerdict, choose_inputs, judge_input


def equal(first, second):
    return first.split() == second.split()


def ok(output, seconds=0.01):
    return Answer("ok", output, seconds)


def test_three_of_five_are_a_majority_and_the_slowest_of_them_is_told():
    answers = {"a": ok(b"1\n", 0.2), "b": ok(b"1", 0.05), "c": ok(b"1 "), "d": ok(b"2", 9.0), "e": ok(b"3")}
    verdict = judge_input(answers, equal)
    assert verdict == InputVerdict(("a", "b", "c"), 0.2)
    assert verdict.is_agreed
    assert verdict.counts


@pytest.mark.parametrize(
    "answers",
    [
        {},
        {"a": ok(b"1"), "b": ok(b"1")},  # two are too few, even if all
        {**{x: ok(b"1") for x in "abc"}, **{x: ok(b"2") for x in "def"}},  # half is no majority
        {"a": ok(b"1"), "b": ok(b"1"), "c": ok(b"1"), **{x: Answer("failed", b"", 0) for x in "defg"}},
        {"a": ok(b""), "b": ok(b" \n"), "c": ok(b"")},  # nothing said is nothing vouched for
        {x: Answer("timeout", b"1", 10.0) for x in "abcd"},
    ],
)
def test_no_majority(answers):
    verdict = judge_input(answers, equal)
    assert not verdict.is_agreed
    assert not verdict.counts


def test_the_order_of_programs_decides_nothing():
    answers = {"b": ok(b"1"), "a": ok(b"2"), "d": ok(b"1"), "c": ok(b"1"), "e": ok(b"2")}
    assert judge_input(answers, equal) == judge_input(dict(reversed(answers.items())), equal)
    assert judge_input(answers, equal).agreeing == ("b", "c", "d")


FAST, AGREED, SLOW = (InputVerdict(("a", "b", "c"), seconds) for seconds in (0.099, 0.1, 0.51))
SPLIT = InputVerdict((), 0.0)


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        ([], "no_agreement"),
        ([SPLIT, SPLIT], "no_agreement"),
        ([AGREED, AGREED], "too_few_sizes"),
        ([FAST, SPLIT, AGREED], "too_few_sizes"),
        ([FAST, FAST, FAST], "never_slow"),
        ([FAST, FAST, AGREED], Choice(2, 2)),
        ([FAST, SPLIT, AGREED, AGREED, SPLIT], Choice(3, 3)),
        ([AGREED, AGREED, SLOW, SLOW], Choice(1, 3)),
        ([FAST, FAST, SLOW, SLOW], Choice(2, 3)),
    ],
)
def test_choice(verdicts, expected):
    assert choose_inputs(verdicts) == expected
