"""What a program's syntax tree shows at a glance, as a line of text put before the code: `imports: numpy; loops: 2`.

A model that reads the first hundred tokens of a program then knows of an import at its top and a loop at its end
alike, and word pieces, which know nothing of indentation, tell it how deep the loops are nested. Code that is not
Python 3 has no line.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from hf_qualcode.quality import dimension_names, get_dimension
from hf_qualcode.quality.static_features import FEATURE_NAMES, is_whole_program, static_features
from hf_qualcode.types import QualcodeError


PYTHON_TAGS = "python-1"
JUDGED_TAGS = "python-2"
_WEIGHTS = "tags.safetensors"
# From the highest static score of a program to the lowest.
_LEVELS = (
    "extremely {good}", "very {good}", "{good}", "neither {good} nor {bad}", "{bad}", "very {bad}", "extremely {bad}"
)  # fmt: skip
_COLUMN = {name: number for number, name in enumerate(FEATURE_NAMES)}
_MODULES = tuple(name.removeprefix("imports ") for name in FEATURE_NAMES[: FEATURE_NAMES.index("calls input")])
# Tag -> feature that it names. The order is that of the line, which is cut at its end where it is too long.
_READS = {
    "everything": "reads everything at once", "lines": "calls readline", "open 0": "opens file 0",
    "stdin": "reads from sys.stdin", "input": "calls input", "in loop": "input in a loop", "eval": "evaluates input",
}  # fmt: skip
_PRINTS = {"joined": "joins lines to print", "write": "writes to stdout", "in loop": "print in a loop"}
_IN_LOOPS = {
    "sort": "sort in a loop", "sum": "sum, min or max in a loop", "search": "index, count or remove in a loop",
    "member": "membership test in a loop", "slice": "slice in a loop", "copy": "copy in a loop",
    "concatenate": "list concatenation in a loop", "numpy": "numpy call in a loop",
    "call": "call of own function in a loop",
}  # fmt: skip
_USES = {
    "recursion": "recursion", "cache": "memoised by lru_cache", "numba": "compiled by numba",
    "table": "table of two dimensions", "large list": "list of 10**5 or more", "range list": "list of a range",
    "array": "numpy table", "dict": "calls dict", "set": "calls set", "deque": "makes a deque",
    "heap": "calls heapq", "bisect": "calls bisect", "permutations": "calls permutations, combinations or product",
    "pop first": "pop of the first", "generator": "generator expressions", "comprehension": "comprehensions",
    "main guard": "main guard", "nested function": "nested function", "global": "global statements",
    "try": "try blocks", "class": "classes", "lambda": "lambdas", "star import": "star import",
    "forever": "while True",
}  # fmt: skip


def code_tags(code: str) -> str:
    """The line of tags of one program, without a line end.

    Args:
        code (`str`): Any text.

    Returns:
        `str`: For example `imports: numpy; reads: lines; loops: 3 deep 2; functions: 1; size: 24; uses: table`; `""`
        for what is not Python 3.
    """
    values = static_features(code)
    if not code.strip() or not values.any():
        return ""

    def has(feature: str) -> bool:
        return bool(values[_COLUMN[feature]])

    def count(feature: str) -> int:
        return round(float(np.expm1(values[_COLUMN[feature]])))

    def named(tags: dict[str, str]) -> str:
        return " ".join(tag for tag, feature in tags.items() if has(feature)) or "none"

    imported = [module for module in _MODULES if has(f"imports {module}")]
    imported += ["other"] * has("imports another module")
    depth = 1 + sum(has(f"loops nested {times}") for times in ("twice", "three times", "four times"))
    loops = count("for loops") + count("while loops")
    parts = [
        f"imports: {' '.join(imported) or 'none'}",
        f"reads: {named(_READS)}",
        f"prints: {named(_PRINTS)}",
        f"loops: {loops}" + f" deep {depth}" * (depth > 1),
        f"functions: {count('functions')}",
        f"branches: {count('ifs')}",
        f"size: {count('statements')}",
        f"in loops: {named(_IN_LOOPS)}",
        f"uses: {named(_USES)}",
    ]
    return "; ".join(parts)


def with_tags(code: str) -> str:
    """A program as the model reads it: its tags, a line end, its text; the text alone where there are no tags."""
    tags = code_tags(code)
    return f"{tags}\n{code}" if tags else code


NUM_LEVELS = len(_LEVELS)


def judgement(levels: Sequence[int]) -> str:
    """Levels in words, for example `very fast, memory-hungry, neither maintainable nor hard to maintain`.

    Args:
        levels (`Sequence[int]`): One a dimension, in the order of `dimension_names()`, from 0, the best.
    """
    words = []
    for name, level in zip(dimension_names(), levels, strict=True):
        dimension = get_dimension(name)
        words.append(_LEVELS[level].format(good=dimension.PHRASE, bad=dimension.NEGATED_PHRASE))
    return ", ".join(words)


class JudgedTags:
    """Tags that say what static scores make of a program: `very fast, memory-hungry, maintainable`.

    A model needs only to compare these words with the instruction's. What is not a whole program has no such line, for
    no judgement of it was learnt.

    Args:
        static_weights (`np.ndarray`): float64 [num_dimensions, num_features].
        thresholds (`np.ndarray`): float64 [num_dimensions, num_levels - 1], descending.
    """

    name = JUDGED_TAGS

    def __init__(self, static_weights: np.ndarray, thresholds: np.ndarray):
        self.static_weights = np.asarray(static_weights, dtype=np.float64)
        self.thresholds = np.asarray(thresholds, dtype=np.float64)

    @classmethod
    def fit(cls, static_weights: np.ndarray, programs: Sequence[str]) -> "JudgedTags":
        """Levels that hold about equally many of `programs` each."""
        scores = np.asarray(static_weights) @ np.stack([static_features(code) for code in programs], axis=1)
        shares = 1 - np.arange(1, NUM_LEVELS) / NUM_LEVELS
        return cls(static_weights, np.quantile(scores, shares, axis=1).T)

    def __call__(self, code: str) -> str:
        """As `with_tags`."""
        if not is_whole_program(code):
            return code
        scores = self.static_weights @ static_features(code)
        return f"{judgement((scores[:, None] <= self.thresholds).sum(axis=1))}\n{code}"

    def save(self, folder: Path) -> None:
        """Writes weights and thresholds beside the model."""
        from safetensors.numpy import save_file

        arrays = {"static_weights": self.static_weights, "thresholds": self.thresholds}
        save_file({name: np.ascontiguousarray(array) for name, array in arrays.items()}, folder / _WEIGHTS)

    @classmethod
    def load(cls, folder: Path) -> "JudgedTags":
        """Reads what `save` wrote.

        Raises:
            `QualcodeError`: If it is missing, damaged, or of other qualities and features.
        """
        from safetensors import SafetensorError
        from safetensors.numpy import load_file

        try:
            arrays: Mapping[str, np.ndarray] = load_file(folder / _WEIGHTS)
            if not all(array.dtype.kind == "f" for array in arrays.values()):
                raise ValueError("its arrays are no floating point numbers")
            tags = cls(arrays["static_weights"], arrays["thresholds"])
        except (OSError, SafetensorError, KeyError, ValueError, TypeError, AttributeError) as error:
            reason = " ".join(str(error).split())[:200]
            raise QualcodeError(f"tags of {folder} cannot be read ({reason}); copy the reranker again") from error
        shapes = [(len(dimension_names()), size) for size in (len(FEATURE_NAMES), NUM_LEVELS - 1)]
        finite = np.isfinite(tags.static_weights).all() and np.isfinite(tags.thresholds).all()
        if [tags.static_weights.shape, tags.thresholds.shape] != shapes or not finite:
            raise QualcodeError(
                f"tags of {folder} were made for other qualities or features than this version has; install the "
                "hf-qualcode that made it"
            )
        return tags
