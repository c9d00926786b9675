"""The controls that every preference report carries: what could explain a result other than a judgement of quality."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

import numpy as np

from hf_qualcode.baselines.trivial import TRIVIAL_SCORERS, program_modules
from hf_qualcode.evaluation.label_noise import FIELDS
from hf_qualcode.evaluation.protocols import NamedScorer, Perturbation, Slice
from hf_qualcode.languages import get_language
from hf_qualcode.quality import dimension_names, get_dimension, instruction_for
from hf_qualcode.quality.static_features import HEAVY_MODULES
from hf_qualcode.quality.static_scorer import StaticFeatureScorer
from hf_qualcode.types import PreferencePair, QualcodeError


LENGTH_RATIO = 1.2
FACTORS = (2, 3, 5)
_TOKEN = re.compile(r"\w+|[^\w\s]")
_PARAPHRASES = {
    "speed": "takes little time to run",
    "memory": "needs little room in memory",
    "maintainability": "is easy to read and to change",
}

Pairs = Sequence[PreferencePair]
Labels = Mapping[str, Any]


def trivial_baselines() -> list[NamedScorer]:
    """The scorers of one idea each, and the static-feature scorer (`static`, run out-of-fold)."""
    trivial = [NamedScorer(name, scorer) for name, scorer in TRIVIAL_SCORERS.items()]
    return [*trivial, NamedScorer("static", StaticFeatureScorer())]


def standard_slices() -> list[Slice]:
    """Parts of the pairs that are reported on their own."""
    heavy = ", ".join(sorted(HEAVY_MODULES))
    factors = [
        Slice(
            f"factor {factor}",
            f"{factor} x the positive's value is below the negative's (of smells: value + 1)",
            partial(apart_by, factor=factor),
        )
        for factor in FACTORS
    ]
    return [
        Slice("length-matched", "the longer program has at most 1.2 x the shorter one's tokens", length_matched),
        Slice("no numpy", f"neither program imports {heavy}", without_heavy_modules),
        *factors,
        Slice(
            "speed and memory disagree",
            "asked for speed or memory alone, and the program that is better in it is worse in the other",
            speed_and_memory_disagree,
        ),
    ]


def standard_perturbations() -> list[Perturbation]:
    """Changes to the pairs that show what a model listens to. (The driver adds the opposite order of presentation.)"""
    return [
        Perturbation(
            "negated instruction",
            'the opposite is asked for ("Retrieve code that is slow"), of the same programs',
            negate_instructions,
            "reversed",
        ),
        Perturbation(
            "normalised names and comments",
            "comments and docstrings taken out, names of no meaning, one layout",
            normalise_programs,
            "same",
        ),
        Perturbation(
            "paraphrased instruction",
            f'other words for the same wish ("{paraphrase(("speed",))}")',
            paraphrase_instructions,
            "same",
        ),
    ]


@lru_cache(maxsize=1 << 16)
def num_tokens(code: str) -> int:
    """Length of a program in words and numbers (a run of letters, digits and underscores) and single signs."""
    return sum(1 for _ in _TOKEN.finditer(code))


def length_matched(pairs: Pairs, labels: Labels) -> np.ndarray:
    """Bool [n]: the longer of two programs has at most 20 % more tokens than the shorter one."""
    lengths = np.array([(num_tokens(pair.positive), num_tokens(pair.negative)) for pair in pairs]).reshape(-1, 2)
    return lengths.max(axis=1) <= LENGTH_RATIO * lengths.min(axis=1)


def without_heavy_modules(pairs: Pairs, labels: Labels) -> np.ndarray:
    """Bool [n]: neither program imports numpy or its kin."""
    free = {code: HEAVY_MODULES.isdisjoint(program_modules(code)) for code in _programs(pairs)}
    return np.array([free[pair.positive] and free[pair.negative] for pair in pairs], dtype=bool)


def apart_by(pairs: Pairs, labels: Labels, *, factor: float) -> np.ndarray:
    """Bool [n]: `factor` x the positive's value < the negative's, strictly; of smells, which may be 0, value + 1."""
    chosen = np.zeros(len(pairs), dtype=bool)
    for row, pair in enumerate(pairs):
        if pair.positive_value is not None and pair.negative_value is not None:
            measured = pair.missing_dimension or pair.dimensions[0]
            offset = 1 if measured == "maintainability" else 0
            chosen[row] = factor * (pair.positive_value + offset) < pair.negative_value + offset
    return chosen


def speed_and_memory_disagree(pairs: Pairs, labels: Labels) -> np.ndarray:
    """Bool [n]: pairs of speed, or of memory, of which the other dimension's labels say the opposite.

    Where a pair was made from repeated measurements, so is the comparison in the other dimension.
    """
    other_of = {("speed",): "memory", ("memory",): "speed"}
    chosen = np.zeros(len(pairs), dtype=bool)
    for row, pair in enumerate(pairs):
        other = other_of.get(pair.dimensions)
        if other is None or pair.missing_dimension not in ("", pair.dimensions[0]):
            continue
        sides = [labels.get(pair.positive_id), labels.get(pair.negative_id)]
        own_judged, own_repeated = FIELDS[pair.dimensions[0]]
        judged, repeated = FIELDS[other]
        # Repeated measurements are in other units, so the pair's own value says which ones it was made from.
        is_judged = _value(sides[0], own_judged) == pair.positive_value or _value(sides[0], own_repeated) is None
        better, worse = (_value(side, judged if is_judged else repeated) for side in sides)
        chosen[row] = better is not None and worse is not None and better > worse
    return chosen


def _value(row: Any, name: str) -> float | None:
    return row.get(name) if isinstance(row, Mapping) else getattr(row, name, None)


def negate_instructions(pairs: Pairs) -> list[PreferencePair]:
    """The same pairs under the instruction that asks for the opposite of each dimension."""
    return [replace(pair, instruction=instruction_for(pair.dimensions, negated=True)) for pair in pairs]


def normalise_programs(pairs: Pairs) -> list[PreferencePair]:
    """The same pairs with both programs in their normal form; one that has none stays as it is."""
    forms = {code: _normal_form(code) for code in _programs(pairs)}
    return [replace(pair, positive=forms[pair.positive], negative=forms[pair.negative]) for pair in pairs]


def paraphrase_instructions(pairs: Pairs) -> list[PreferencePair]:
    """The same pairs under an instruction of the same meaning, in words that no model was trained on."""
    return [replace(pair, instruction=paraphrase(pair.dimensions)) for pair in pairs]


def paraphrase(dimensions: Sequence[str]) -> str:
    """For example "Find a program that takes little time to run and needs little room in memory"."""
    names = [name for name in dimension_names() if name in dimensions]
    wishes = [_PARAPHRASES.get(name) or f"is {get_dimension(name).PHRASE}" for name in names]
    *first, last = wishes or ["does what is asked"]
    return "Find a program that " + (f"{', '.join(first)} and {last}" if first else last)


def _programs(pairs: Pairs) -> dict[str, None]:
    return dict.fromkeys(code for pair in pairs for code in (pair.positive, pair.negative))


def _normal_form(code: str) -> str:
    try:
        return get_language("python").normal_form(code)
    except QualcodeError:  # not Python 3, or too deep
        return code
