"""What an instruction in free words asks for: "a program that takes little time to run" wants speed.

A sentence encoder does not do for this: to MiniLM "fast" and "slow" are nearly one and the same (cosine .95), and a
linear map that was fitted on some forty words puts most words it has not seen on the wrong side. So words are looked
up, and what goes together is put together:

- a word of praise or blame counts alone ("fast", "messy");
- a resource counts with the amount that is said of it ("little time", "memory-hungry", "uses a lot of RAM"), an
  effort with its ease ("easy to read");
- saving a resource is good, wasting it bad; "not", "without" and their like turn the next finding round.

The words of a dimension lie in its file. A text in which nothing is found asks for nothing.
"""

import functools
import re
from typing import NamedTuple

from hf_qualcode.quality import dimension_names, get_dimension, instruction_for


# +1 is good of a resource or effort, -1 is bad.
_AMOUNTS = {
    1: (
        *("little", "low", "lower", "lowest", "less", "least", "few", "fewer", "fewest", "small", "smaller"),
        *("smallest", "short", "shorter", "shortest", "minimal", "minimum", "modest", "tiny", "frugal", "economical"),
        *("efficient", "efficiently", "efficiency", "saving", "friendly", "sparing", "light", "lean", "optimal"),
        *("best", "optimised", "optimized", "good", "better", "great", "excellent", "thrifty", "conservative"),
        *("tight", "cheap"),
        *("free", "constant", "quick", "fast", "negligible", "scarcely", "hardly", "barely", "reduced", "limited"),
    ),
    -1: (
        *("much", "lot", "lots", "high", "higher", "highest", "large", "larger", "largest", "big", "bigger", "long"),
        *("longer", "longest", "heavy", "hungry", "huge", "excessive", "intensive", "wasteful", "inefficient"),
        *("consuming", "greedy", "most", "more", "expensive", "costly", "bad", "worse", "worst", "poor", "terrible"),
        *("enormous", "considerable", "plenty", "tons", "loads", "vast", "unbounded", "full"),
        *("ages", "slow", "out", "extravagant", "guzzling", "guzzler", "hog", "needless", "needlessly", "forever"),
    ),
}
_EASE = {
    1: (
        *("easy", "easier", "easiest", "easily", "simple", "simpler", "straightforward", "pleasant", "painless"),
        *("effortless", "quick", "comfortable", "readily", "painlessly", "smoothly"),
    ),
    -1: (
        *("hard", "harder", "hardest", "difficult", "tough", "painful", "tricky", "impossible", "laborious"),
        *("awkward", "nightmare", "pain", "difficulty", "struggle", "struggles", "trouble", "painfully"),
    ),
}
_SAVING = (
    *("save", "saves", "minimise", "minimize", "minimises", "minimizes", "minimising", "minimizing", "reduce"),
    *("reduces", "reducing", "cut", "cuts", "limit", "limits", "conserve", "conserves", "spare", "spares"),
    *("economise", "economize", "lower", "lowers", "lowering"),
)
_WASTING = (
    *("waste", "wastes", "wasting", "eat", "eats", "eating", "hog", "hogs", "hogging", "burn", "burns", "burning"),
    *("gobble", "gobbles", "devour", "devours", "squander", "squanders", "bloat"),
)
_TURNS = (
    *("not", "no", "never", "without", "avoid", "avoids", "avoiding", "nor", "neither", "anything but"),
    *("opposite", "non"),
)
# Right before a word of praise, or one word earlier, they turn it round: "poorly structured", "lack of clarity".
_POOR = frozenset(
    (
        *("lack", "lacking", "poor", "poorly", "bad", "badly", "low", "lower", "lowest", "little", "less", "least"),
        *("worst", "terribly"),
    )
)
_WORD = re.compile(r"[a-z]+|[,.;:!?()]")
_BREAKS = frozenset(",.;:!?()") | {"and", "but", "or", "yet", "while", "rather", "instead"}
# How many words a modifier may stand away from what it modifies.
_REACH = 5
_TURN_REACH = 6
_MOST_CHARACTERS = 2000


class _Word(NamedTuple):
    """What one word may be: `kind` -> dimension or sign."""

    praise: tuple[tuple[str, int], ...]
    resource: tuple[str, ...]
    effort: tuple[str, ...]
    amount: int
    ease: int
    verb: int


@functools.lru_cache(maxsize=4096)
def read_wishes(text: str) -> tuple[float, ...]:
    """How much of each quality a text asks for.

    Args:
        text (`str`): An instruction, as of `instruction_for` or in free English. Its first 2,000 characters are read.

    Returns:
        `tuple[float, ...]`: [num_dimensions], in the order of `dimension_names()`: 1 asks for it, -1 for its opposite,
        0 says nothing of it.
    """
    words = _WORD.findall(text[:_MOST_CHARACTERS].lower().replace("’", "'").replace("n't", " not"))
    senses = [_senses(word) for word in words]
    found: dict[str, float] = dict.fromkeys(dimension_names(), 0.0)
    used: set[int] = set()
    # Resources and efforts first: their modifiers ("fast", "efficient") are then not praise of something else.
    for place, sense in enumerate(senses):
        for names, signs in ((sense.resource, "amount"), (sense.effort, "ease")):
            if not names:
                continue
            modifier = _modifier(words, senses, place, signs)
            if modifier is None:
                continue
            where, sign = modifier
            used |= {where, place}
            first, last = sorted((where, place))
            sign *= _turned(words, first) * (-1) ** sum(word in _TURNS for word in words[first + 1 : last])
            for name in names:
                found[name] += sign
    for place, sense in enumerate(senses):
        if place not in used:
            poor = -1 if _POOR.intersection(words[max(0, place - 2) : place]) else 1
            for name, sign in sense.praise:
                found[name] += sign * poor * _turned(words, place)
    return tuple(max(-1.0, min(1.0, value)) for value in found.values())


def standard_instruction(text: str) -> str:
    """The instruction of `instruction_for` that asks for the same, where that is understood; else the text as it is.

    A text that asks for one quality and for the opposite of another has none.
    """
    wishes = dict(zip(dimension_names(), read_wishes(text), strict=True))
    names = [name for name, wish in wishes.items() if wish]
    signs = {wishes[name] for name in names}
    return instruction_for(names, negated=signs == {-1.0}) if signs in ({1.0}, {-1.0}) else text


def _modifier(words: list[str], senses: list[_Word], place: int, kind: str) -> tuple[int, int] | None:
    """Place and sign of the word that says how much, or how easy: right after ("memory-hungry"), else the nearest
    before, else the nearest after. An effort is also reached across an "and" ("easy to read and to change")."""
    is_effort = kind == "ease"
    before, after = [], []
    for where in range(place - 1, max(-1, place - 1 - _REACH - 3 * is_effort), -1):
        if words[where] in _BREAKS and not (is_effort and words[where] in ("and", "or")):
            break
        before.append(where)
    for where in range(place + 1, min(len(words), place + 1 + _REACH)):
        if words[where] in _BREAKS:
            break
        after.append(where)
    for where in (*after[:1], *before, *after[1:]):
        sign = getattr(senses[where], kind)
        if not sign and not is_effort and where < place:
            sign = senses[where].verb
        if sign:
            return where, sign
    return None


def _turned(words: list[str], place: int) -> int:
    """-1 where a negation stands before a finding, in the same clause."""
    sign = 1
    for step in range(1, _TURN_REACH + 1):
        where = place - step
        if where < 0 or words[where] in _BREAKS:
            break
        if words[where] in _TURNS:
            sign = -sign
    return sign


@functools.lru_cache(maxsize=8192)
def _senses(word: str) -> _Word:
    praise, resources, efforts = [], [], []
    for name in dimension_names():
        dimension = get_dimension(name)
        praise += [(name, 1)] * (word in dimension.PRAISE) + [(name, -1)] * (word in dimension.BLAME)
        resources += [name] * (word in dimension.RESOURCES)
        efforts += [name] * (word in getattr(dimension, "EFFORTS", ()))
    amount = next((sign for sign, words in _AMOUNTS.items() if word in words), 0)
    ease = next((sign for sign, words in _EASE.items() if word in words), 0)
    verb = 1 if word in _SAVING else -1 if word in _WASTING else 0
    return _Word(tuple(praise), tuple(resources), tuple(efforts), amount, ease, verb)
