"""Free-text instructions to wishes: by hand, against `instruction_for`, and on words that stand in many frames."""

from itertools import combinations

import pytest

from hf_qualcode.quality import dimension_names, get_dimension, instruction_for
from hf_qualcode.quality.wishes import read_wishes, standard_instruction


def wanted(**signs):
    return tuple(float(signs.get(name, 0)) for name in dimension_names())


@pytest.mark.parametrize("negated", [False, True])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_every_instruction_of_ours_is_understood(size, negated):
    for names in combinations(dimension_names(), size):
        expected = wanted(**dict.fromkeys(names, -1 if negated else 1))
        assert read_wishes(instruction_for(names, negated=negated)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Find a program that takes little time to run", wanted(speed=1)),
        ("takes a long time", wanted(speed=-1)),
        ("a time-consuming way", wanted(speed=-1)),
        ("low memory", wanted(memory=1)),
        ("high memory efficiency", wanted(memory=1)),
        ("the most memory-efficient way", wanted(memory=1)),
        ("uses a lot of RAM", wanted(memory=-1)),
        ("does not eat RAM", wanted(memory=1)),
        ("doesn't waste memory", wanted(memory=1)),
        ("should waste no cycles", wanted(speed=1)),
        ("minimises memory use", wanted(memory=1)),
        ("easy to read and to change", wanted(maintainability=1)),
        ("not hard to read", wanted(maintainability=1)),
        ("poorly structured", wanted(maintainability=-1)),
        ("lack of clarity", wanted(maintainability=-1)),
        ("no spaghetti code please", wanted(maintainability=1)),
        ("slow but readable", wanted(speed=-1, maintainability=1)),
        ("FAST, and lean.", wanted(speed=1, memory=1)),
        ("fast fast fast", wanted(speed=1)),
        ("fast or slow", wanted()),
    ],
)
def test_what_goes_together_is_put_together(text, expected):
    assert read_wishes(text) == expected


@pytest.mark.parametrize(
    "text", ["", "Retrieve code that is relevant", "sort a list of numbers", "\ud800\x00 ,,;", "parse an ISO date"]
)
def test_a_text_without_a_wish_asks_for_nothing(text):
    assert read_wishes(text) == wanted()


def test_a_negation_turns_every_adjective_round():
    for name in dimension_names():
        dimension = get_dimension(name)
        for word in dimension.PRAISE:
            plain = read_wishes(f"code that is {word}")
            assert plain[dimension_names().index(name)] == 1, word
            assert read_wishes(f"code that is not {word}") == tuple(-value for value in plain), word
        for word in dimension.BLAME:
            assert read_wishes(f"code that is {word}")[dimension_names().index(name)] == -1, word


def test_only_the_beginning_of_a_long_text_is_read():
    assert read_wishes("x " * 1000 + "fast") == wanted()
    assert read_wishes("fast " * 10_000) == wanted(speed=1)


def test_a_word_belongs_to_one_dimension():
    for first, second in combinations(map(get_dimension, dimension_names()), 2):
        for kind in ("PRAISE", "BLAME", "RESOURCES"):
            assert not set(getattr(first, kind)) & set(getattr(second, kind)), kind


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("takes little time and is easy to read", "Retrieve code that is fast and maintainable"),
        ("a memory-hungry, sluggish thing", "Retrieve code that is slow and memory-hungry"),
        ("Retrieve code that is fast", "Retrieve code that is fast"),
        ("slow but readable", "slow but readable"),
        ("Retrieve code that is relevant", "Retrieve code that is relevant"),
        ("whatever", "whatever"),
    ],
)
def test_what_is_understood_has_standard_words(text, expected):
    assert standard_instruction(text) == expected
