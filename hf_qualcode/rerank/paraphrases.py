"""The same wish in many words, for training: a model that has heard "fast" alone takes "quick" for anything."""

from collections.abc import Sequence

from hf_qualcode.benchmark.drawing import Draws
from hf_qualcode.quality import dimension_names, get_dimension, instruction_for


_FRAMES = (
    "Retrieve code that is {}", "Find code that is {}", "I want code that is {}", "Show a solution that is {}",
    "Prefer code that is {}", "The code should be {}", "Give me something {}",
)  # fmt: skip
_LITTLE = ("low in {}", "sparing of {}", "efficient in {}", "{}-saving", "light on {}")
_MUCH = ("high in {}", "wasteful of {}", "heavy on {}", "{}-hungry", "{}-consuming")
_EASY = ("easy to {}", "simple to {}")
_HARD = ("difficult to {}", "hard to {}", "painful to {}")
# Of the words of a dimension, those that stand well in these frames.
_ADJECTIVE_ENDINGS = ("ly", "ity", "ness", "ance", "put", "speed")
_NUM_RESOURCES, _NUM_EFFORTS = 4, 6


def paraphrase(dimensions: Sequence[str], negated: bool, draws: Draws) -> str:
    """An instruction for these qualities; every second one is that of `instruction_for`.

    Args:
        dimensions (`Sequence[str]`): Names of qualities, at least one.
        negated (`bool`): Ask for the opposite of each.
        draws (`Draws`): Where chance comes from.
    """
    if draws.below(2) == 0:
        return instruction_for(dimensions, negated=negated)
    names = [name for name in dimension_names() if name in dimensions]
    wishes = [_wish(name, negated, draws) for name in names]
    *first, last = wishes
    joined = f"{', '.join(first)} and {last}" if first else last
    return _FRAMES[draws.below(len(_FRAMES))].format(joined)


def _wish(name: str, negated: bool, draws: Draws) -> str:
    dimension = get_dimension(name)
    words = dimension.BLAME if negated else dimension.PRAISE
    options = [word for word in words if not word.endswith(_ADJECTIVE_ENDINGS)]
    options += [dimension.NEGATED_PHRASE if negated else dimension.PHRASE]
    amounts, ease = (_MUCH, _HARD) if negated else (_LITTLE, _EASY)
    phrases = [frame.format(word) for word in dimension.RESOURCES[:_NUM_RESOURCES] for frame in amounts]
    phrases += [frame.format(word) for word in getattr(dimension, "EFFORTS", ())[:_NUM_EFFORTS] for frame in ease]
    # Adjectives and phrases alike, however many there are of each.
    chosen = options if draws.below(2) == 0 else phrases
    return chosen[draws.below(len(chosen))]
