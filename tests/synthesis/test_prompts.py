"""Prompts: byte for byte what is in the golden files, and the task's text untouched."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from hf_qualcode.quality import dimension_names, get_dimension
from hf_qualcode.quality import guidelines as guidelines_module
from hf_qualcode.quality.guidelines import LEVELS, guideline_groups
from hf_qualcode.synthesis import prompts
from hf_qualcode.synthesis.prompts import prompt_version, render_prompt
from hf_qualcode.types import UsageError


GOLDEN = Path(__file__).parent / "golden"
QUERY = "Print the sum of the numbers in the list."


def rendered(dimension):
    """All prompts of a dimension for one task, as a text that a person can read."""
    parts = []
    for group in (None, *guideline_groups(dimension)):
        for level in LEVELS:
            prompt = render_prompt(QUERY, dimension, level, group)
            parts.append(f"===== {group or dimension + ', without guidelines'}: {level}\n")
            parts.append(f"----- system\n{prompt.system}\n----- user\n{prompt.user}\n")
    return "\n".join(parts)


@pytest.mark.parametrize("dimension", ["speed", "memory", "maintainability"])
def test_prompts_are_those_of_the_golden_file(dimension):
    path = GOLDEN / f"{dimension}.txt"
    assert rendered(dimension).encode() == path.read_bytes(), (
        f"the prompts of {path.name} changed: if that is meant, write the golden files anew by `python -m "
        "tests.synthesis.test_prompts` in the root of the repository, and read their difference"
    )


def test_there_is_a_golden_file_for_each_dimension():
    assert {path.stem for path in GOLDEN.iterdir()} == set(dimension_names())


def test_every_prompt_of_a_task_is_another():
    asked = [
        render_prompt(QUERY, dimension, level, group)
        for dimension in dimension_names()
        for level in LEVELS
        for group in (None, *guideline_groups(dimension))
    ]
    assert len({prompt.user for prompt in asked}) == len(asked) == 3 * 2 * 5


@pytest.mark.parametrize(
    "query", ["{title} {0} {query}", "```python\nx = 1\n```", "  blanks  ", "naïve 数 \u2028 end", "%s $x \\n", ""]
)
def test_the_task_is_put_in_as_it_is(query):
    user = render_prompt(query, "speed", "high", "speed/algorithm").user
    assert user.endswith(f"# Task\n{query}".strip())


def test_each_side_hears_its_own_guidelines_alone():
    for dimension in dimension_names():
        for group in guideline_groups(dimension):
            guideline = guidelines_module.guideline_of(group)
            for level, other in (LEVELS, LEVELS[::-1]):
                user = render_prompt(QUERY, dimension, level, group).user
                assert all(f"- {sentence}\n" in user for sentence in guideline.of(level))
                assert not any(sentence in user for sentence in guideline.of(other))
                module = get_dimension(dimension)
                assert f"must be {module.PHRASE if level == 'high' else module.NEGATED_PHRASE}: of {level} q" in user


def test_without_guidelines_only_quality_is_asked_for():
    user = render_prompt(QUERY, "memory", "low").user
    assert "Guidelines" not in user
    assert get_dimension("memory").NEGATED_PHRASE in user


def test_another_language_is_named_and_fenced():
    prompt = render_prompt(QUERY, "speed", "high", "speed/algorithm", language="cpp")
    assert "C++" in prompt.system
    assert "```cpp" in prompt.user
    assert "Write a complete C++ solution" in prompt.user


def test_an_unknown_language_is_a_usage_error():
    with pytest.raises(UsageError, match="klingon.*choose one of.*python"):
        render_prompt(QUERY, "speed", "high", language="klingon")


def test_an_unknown_dimension_or_group_is_refused():
    with pytest.raises(ValueError, match="colour"):
        render_prompt(QUERY, "colour", "high")
    with pytest.raises(ValueError, match="speed/colour"):
        render_prompt(QUERY, "speed", "high", "speed/colour")


def test_the_version_changes_with_whatever_shapes_a_prompt(monkeypatch):
    def version():
        prompt_version.cache_clear()
        return prompt_version()

    first = version()
    assert re.fullmatch("[0-9a-f]{12}", first)
    assert version() == first
    found = guidelines_module.guideline_of
    changes = (
        (prompts, "_USER", prompts._USER + " "),
        (prompts, "_SYSTEM", prompts._SYSTEM + " "),
        (prompts, "_NAMING", "."),
        (prompts, "_GUIDELINES", "{category}{sentences}"),
        (prompts, "_AIMS", {**prompts._AIMS, "low": "bad"}),
        (get_dimension("memory"), "PHRASE", "small"),
        (get_dimension("memory"), "NEGATED_PHRASE", "large"),
        (get_dimension("memory"), "GUIDELINES", get_dimension("memory").GUIDELINES[1:]),
        (prompts, "guideline_of", lambda group: replace(found(group), high=(*found(group).high, "More."))),
        (prompts, "guideline_of", lambda group: replace(found(group), low=found(group).low[1:])),
    )
    versions = {first}
    for module, name, value in changes:
        with monkeypatch.context() as patch:
            patch.setattr(module, name, value)
            versions.add(version())
    assert len(versions) == len(changes) + 1
    assert version() == first


if __name__ == "__main__":
    GOLDEN.mkdir(exist_ok=True)
    for dimension_ in dimension_names():
        (GOLDEN / f"{dimension_}.txt").write_bytes(rendered(dimension_).encode())
