"""Guidelines are data: Table 2 of the paper, in the files of the dimensions."""

import re
from types import SimpleNamespace

import pytest

from hf_qualcode.quality import dimension_names, get_dimension
from hf_qualcode.quality.guidelines import LEVELS, Guideline, guideline_groups, guideline_of


# SynH-Rank, Table 2: categories, and words of its cells that the full text must be about.
TABLE = {
    "speed": {
        "algorithm": (("closed-form",), ("brute force",)),
        "data structure": (("built-in",), ("list",)),
        "patterns": (("memo", "cache"), ("deep copies", "deepcopy", "copy")),
        "implementation": (("batch", "once"), ("recursi",)),
    },
    "memory": {
        "algorithm": (("space",), ("recursion", "recursive")),
        "data structure": (("generator", "iterator"), ("list",)),
        "patterns": (("shallow",), ("intermediate", "material")),
        "implementation": (("lazy", "lazily", "incremental", "piece"), ("entire", "whole")),
    },
    "maintainability": {
        "structure": (("responsib", "one thing"), ("hierarch", "layer")),
        "readability": (("descriptive", "name"), ("cryptic", "nest")),
        "robustness": (("specific", "exception"), ("bare",)),
        "modernity": (("python 3", "f-string", "import"), ("global", "deprecated", "old")),
    },
}


def test_the_groups_are_those_of_the_table():
    assert set(dimension_names()) == set(TABLE)
    for dimension, categories in TABLE.items():
        assert guideline_groups(dimension) == tuple(f"{dimension}/{category}" for category in categories)


@pytest.mark.parametrize("dimension", TABLE)
def test_both_sides_say_what_the_table_says(dimension):
    for category, sides in TABLE[dimension].items():
        guideline = guideline_of(f"{dimension}/{category}")
        for level, words in zip(LEVELS, sides, strict=True):
            text = " ".join(guideline.of(level)).lower()
            assert any(word in text for word in words), (category, level, text)


def test_instructions_are_whole_sentences_and_none_is_on_both_sides():
    seen = set()
    for group in (group for dimension in TABLE for group in guideline_groups(dimension)):
        guideline = guideline_of(group)
        for level in LEVELS:
            sentences = guideline.of(level)
            assert len(sentences) >= 2
            for sentence in sentences:
                assert re.fullmatch(r"[A-Z].*[.]", sentence), sentence
                assert sentence not in seen
                seen.add(sentence)
        assert guideline.of("high") == guideline.high
        assert guideline.of("low") == guideline.low


@pytest.mark.parametrize("group", ["speed/style", "speed", "", "colour/algorithm", "speed/algorithm/x"])
def test_an_unknown_group_is_named(group):
    with pytest.raises(ValueError, match=r"speed/algorithm|unknown"):
        guideline_of(group)


def test_a_new_dimension_needs_no_more_than_its_file(monkeypatch):
    """What a file `security.py` would hold is enough for groups, prompts and the plan."""
    from hf_qualcode import quality
    from hf_qualcode.synthesis import prompts

    security = SimpleNamespace(
        PHRASE="secure", NEGATED_PHRASE="insecure",
        GUIDELINES=(Guideline("input", ("Check every input.",), ("Trust every input.",)),),
    )  # fmt: skip
    found = get_dimension
    monkeypatch.setattr(quality, "get_dimension", lambda name: security if name == "security" else found(name))
    monkeypatch.setattr(prompts, "get_dimension", quality.get_dimension)
    assert guideline_groups("security") == ("security/input",)
    prompt = prompts.render_prompt("Add.", "security", "low", "security/input")
    assert "insecure" in prompt.user
    assert "- Trust every input." in prompt.user
    assert "Check every input." not in prompt.user


def test_a_dimension_without_guidelines_has_no_groups(monkeypatch):
    from hf_qualcode import quality

    monkeypatch.setattr(quality, "get_dimension", lambda name: SimpleNamespace())
    assert guideline_groups("anything") == ()
