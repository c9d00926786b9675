"""Guidelines are data: Table 2 of the paper, in the files of the dimensions."""

import re
import sys

import pytest

from hf_qualcode import quality
from hf_qualcode.quality import dimension_names
from hf_qualcode.quality.guidelines import LEVELS, guideline_groups, guideline_of
from hf_qualcode.synthesis.plan import Plan
from hf_qualcode.synthesis.prompts import prompt_version
from hf_qualcode.synthesis.tasks import Task
from hf_qualcode.types import UsageError


# SynH-Rank, Table 2: the categories in its order, and of each cell the words by which our text says both of its parts.
TABLE = {
    "speed": {
        "algorithm": (("precompute", "closed-form formulas"), ("brute force", "enumerate all")),
        "data structure": (("cheapest", "built-in"), ("do not fit", "back and forth")),
        "patterns": (("memoise", "calls"), ("new objects", "deepcopy")),
        "implementation": (("batches", "arithmetic"), ("recursive", "without memoisation")),
    },
    "memory": {
        "algorithm": (("space complexity", "only the state"), ("all combinations", "deep recursion")),
        "data structure": (("generators and iterators", "flat"), ("large temporary lists", "nest")),
        "patterns": (("shallow copies", "release"), ("materialise", "between input and output")),
        "implementation": (("incrementally", "lazily"), ("entire input", "duplicate")),
    },
    "maintainability": {
        "structure": (("single responsibility", "clear interfaces"), ("deep hierarchies", "levels of abstraction")),
        "readability": (("descriptive names", "linear"), ("cryptic", "nest")),
        "robustness": (("specific exceptions", "edge cases"), ("bare `except:`", "root causes")),
        "modernity": (("modern", "python 3", "import"), ("deprecated", "global variables")),
    },
}


def test_the_groups_are_those_of_the_table():
    assert dimension_names() == tuple(TABLE)
    for dimension, categories in TABLE.items():
        assert guideline_groups(dimension) == tuple(f"{dimension}/{category}" for category in categories)


@pytest.mark.parametrize("dimension", TABLE)
def test_both_sides_say_what_the_table_says(dimension):
    for category, sides in TABLE[dimension].items():
        guideline = guideline_of(f"{dimension}/{category}")
        for level, words in zip(LEVELS, sides, strict=True):
            text = " ".join(guideline.of(level)).lower()
            assert [word for word in words if word not in text] == [], (category, level, text)


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


@pytest.mark.parametrize("group", ["speed/style", "speed", "speed/", "speed/Algorithm", "speed/algorithm/x"])
def test_an_unknown_group_lists_those_of_its_dimension(group):
    with pytest.raises(ValueError) as caught:
        guideline_of(group)
    assert str(caught.value) == (
        f"unknown guideline group {group!r}; choose from: speed/algorithm, speed/data structure, speed/patterns, "
        "speed/implementation"
    )


@pytest.mark.parametrize("group", ["", "colour/algorithm", "/algorithm"])
def test_a_group_of_no_dimension_lists_the_dimensions(group):
    with pytest.raises(ValueError, match=r"unknown quality .*speed, memory, maintainability"):
        guideline_of(group)


# ---- Another dimension is another file ----

SECURITY = """
from hf_qualcode.quality.guidelines import Guideline

PLACE = 4
PHRASE = "secure"
NEGATED_PHRASE = "insecure"
GUIDELINES = (
    Guideline("input", high=("Check every input.",), low=("Trust every input.",)),
    Guideline("secrets", high=("Read keys from the environment.",), low=("Write keys into the code.",)),
)
"""


@pytest.fixture
def add_dimension(tmp_path, monkeypatch):
    """Puts a file beside those of the other dimensions, as it were."""

    def add(name, content):
        (tmp_path / f"{name}.py").write_text(content)
        monkeypatch.setattr(quality, "__path__", [*quality.__path__, str(tmp_path)])
        # An import leaves both; they are taken away with the test.
        monkeypatch.setitem(sys.modules, f"{quality.__name__}.{name}", None)
        del sys.modules[f"{quality.__name__}.{name}"]
        monkeypatch.setattr(quality, name, None, raising=False)
        for cached in (dimension_names, prompt_version):
            cached.cache_clear()

    yield add
    monkeypatch.undo()
    for cached in (dimension_names, prompt_version):
        cached.cache_clear()


def test_a_new_dimension_needs_no_more_than_its_file(add_dimension):
    before = prompt_version()
    add_dimension("security", SECURITY)
    assert dimension_names() == ("speed", "memory", "maintainability", "security")
    assert guideline_groups("security") == ("security/input", "security/secrets")
    assert prompt_version() != before
    requests = list(Plan([Task("a", "Add.")], "m", {}, dimensions=["security"], num_samples=2))
    assert [(request.key.level, request.key.group) for request in requests] == [
        (level, group) for level in LEVELS for group in ("security/input", "security/secrets")
    ]
    asked = requests[3].prompt.user
    assert "The solution must be insecure:" in asked
    assert "# Guidelines: secrets\n- Write keys into the code.\n" in asked


def test_a_dimension_without_guidelines_has_no_groups_and_says_what_to_write(add_dimension):
    add_dimension("security", SECURITY.partition("GUIDELINES")[0])
    assert guideline_groups("security") == ()
    with pytest.raises(UsageError, match=r"security has no guidelines; write its GUIDELINES, or use --no-guidelines"):
        Plan([Task("a", "Add.")], "m", {})
    plan = Plan([Task("a", "Add.")], "m", {}, dimensions=["security"], guided=False)
    assert "The solution must be secure:" in next(iter(plan)).prompt.user


def test_no_dimension_stays_behind():
    assert dimension_names() == tuple(TABLE)
    assert not hasattr(quality, "security")
    assert "hf_qualcode.quality.security" not in sys.modules
