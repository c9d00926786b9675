"""What a transformation is, and how one is applied to the text of a program."""

import functools
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Protocol

from hf_qualcode.benchmark.drawing import Draws


if TYPE_CHECKING:
    import libcst


LEVELS = ("low", "high")


class Transformation(Protocol):
    """A change of code that keeps what it does and moves its quality.

    One module a transformation in this package. `apply` keeps the behaviour of every program it changes (where in
    doubt it changes nothing), gives the same for equal draws, and leaves code that compiles.

    Attributes:
        DIMENSION (`str`): Name of a quality dimension.
        CATEGORY (`str`): Guideline group of that dimension, as in its module's `GUIDELINES`.
        LEVEL (`str`): `"low"`: makes code worse. `"high"`: makes it better.
        SUMMARY (`str`): One sentence: what is changed.
        EXAMPLES (`tuple[tuple[str, str], ...]`): Texts before and after, under `Draws(0)`.
    """

    DIMENSION: str
    CATEGORY: str
    LEVEL: str
    SUMMARY: str
    EXAMPLES: tuple[tuple[str, str], ...]

    @staticmethod
    def apply(module: "libcst.Module", draws: Draws) -> "libcst.Module | None":
        """The changed module; `None` where there is nothing to change."""
        ...


@dataclass(frozen=True, slots=True)
class Changed:
    """A program after a transformation.

    Attributes:
        outcome (`str`): `"changed"`, `"nothing_to_change"`, `"not_read"` (libcst cannot parse the text), or
            `"does_not_compile"` (what came out; a fault of the transformation, which drops the program).
        code (`str`): The text; empty unless changed.
    """

    outcome: str
    code: str = ""


def transform(text: str, transformation: ModuleType | Transformation, draws: Draws) -> Changed:
    """Applies a transformation to a program.

    Args:
        text (`str`): The program, any line ends.
        transformation (`Transformation`): Its module.
        draws (`Draws`): For those that choose a place.
    """
    module = _parse_again(text)
    if module is None:
        return Changed("not_read")
    try:
        changed = transformation.apply(module, draws)
    except RecursionError:  # an expression nested deeper than any a person writes
        return Changed("not_read")
    if changed is None or changed.code == module.code:
        return Changed("nothing_to_change")
    if not compiles(changed.code):
        return Changed("does_not_compile")
    return Changed("changed", changed.code)


def parse(text: str) -> "libcst.Module | None":
    """The program as a tree that keeps its layout, with `\\n` line ends; `None` where it is no Python 3."""
    import libcst

    plain = text.replace("\r\n", "\n").replace("\r", "\n")
    if not compiles(plain):
        return None
    try:
        return libcst.parse_module(plain)
    except (libcst.ParserSyntaxError, libcst.CSTValidationError, RecursionError):
        return None


# Every transformation is tried on a program before the next one comes; trees are never changed.
_parse_again = functools.lru_cache(maxsize=4)(parse)


def compiles(text: str) -> bool:
    """Whether a text is Python that this interpreter takes."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "invalid escape sequence", "is" with a literal: the program's own
        try:
            compile(text, "program.py", "exec", dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError):
            return False
    return True
