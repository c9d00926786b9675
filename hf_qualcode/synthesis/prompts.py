"""Prompts that ask a language model for code of high or low quality (SynH-Rank, section 4.1, Fig. 2)."""

import functools
import hashlib
import json
from dataclasses import dataclass

from hf_qualcode.languages import get_language
from hf_qualcode.quality import dimension_names, get_dimension
from hf_qualcode.quality.guidelines import Level, guideline_groups, guideline_of


_SYSTEM = """\
You are an expert {title} programmer who writes training data for a code search engine. The quality at issue is \
{dimension}: the engine must learn to tell code that is {phrase} from code that is {negated}. For one task you write \
one complete solution of either kind. Whatever its quality, the solution must be correct: it solves the task for \
every valid input.
"""
_USER = """\
Write a complete {title} solution of the task below. The solution must be {phrase}: {aim}.
{guidelines}
# Rules
- The solution must be correct and complete, and must run as it is.
- Keep to {title} and its standard library unless the task names something else.
- {naming}
- Answer with the solution alone, in one block that begins with ```{fence} and ends with ```.

# Task
{query}
"""
_GUIDELINES = """
# Guidelines: {category}
{sentences}
"""
_AIMS = {
    "high": "of high quality in this respect, as the best engineers would write it",
    "low": "of low quality in this respect, although it is correct",
}
# A text that says of itself that it is slow teaches a model to read comments.
_NAMING = "Neither names nor comments may say how good or bad the solution is."


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a model is asked: the two messages of a chat."""

    system: str
    user: str


def render_prompt(
    query: str, dimension: str, level: Level, group: str | None = None, *, language: str = "python"
) -> Prompt:
    """The prompt for one solution.

    Args:
        query (`str`): The task's statement; it is put in as it is.
        dimension (`str`): The quality.
        level (`str`): `"high"` or `"low"`.
        group (`str`, *optional*): A guideline group of the dimension; `None` asks for quality without guidelines (the
            ablation of section 6.2).
        language (`str`, *optional*, defaults to `"python"`): In which to write.

    Raises:
        `ValueError`: On an unknown dimension or group.
        `UsageError`: On a language that nothing is known of.
    """
    module = get_dimension(dimension)
    guidelines = ""
    if group is not None:
        guideline = guideline_of(group)
        sentences = "\n".join(f"- {sentence}" for sentence in guideline.of(level))
        guidelines = _GUIDELINES.format(category=guideline.category, sentences=sentences)
    title = get_language(language).title
    user = _USER.format(
        title=title,
        phrase=module.PHRASE if level == "high" else module.NEGATED_PHRASE,
        aim=_AIMS[level],
        guidelines=guidelines,
        naming=_NAMING,
        fence=language,
        query=query,
    )
    system = _SYSTEM.format(
        title=title, dimension=dimension, phrase=module.PHRASE, negated=module.NEGATED_PHRASE
    )  # fmt: skip
    return Prompt(system.strip(), user.strip())


@functools.cache
def prompt_version() -> str:
    """Twelve hexadecimal digits that change with anything that shapes a prompt: templates, guidelines, phrases."""
    guidelines = {
        group: [list(guideline_of(group).high), list(guideline_of(group).low)]
        for name in dimension_names()
        for group in guideline_groups(name)
    }
    phrases = {name: [get_dimension(name).PHRASE, get_dimension(name).NEGATED_PHRASE] for name in dimension_names()}
    shape = json.dumps([_SYSTEM, _USER, _GUIDELINES, _AIMS, _NAMING, guidelines, phrases], sort_keys=True)
    return hashlib.sha256(shape.encode()).hexdigest()[:12]
