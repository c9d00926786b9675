"""Scorers of one idea each, which know nothing of quality: what they reach, a benchmark gives away.

None of them reads the instruction or the query. Compare them by half credit: most tie often, and strict accuracy
counts ties as misses.
"""

import ast
import re
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np

from hf_qualcode.languages import parse_python
from hf_qualcode.quality.static_features import HEAVY_MODULES, imported_modules, loop_depth


class CodeScorer:
    """A `Scorer` that asks one function about each distinct code.

    Args:
        name (`str`): What reports call it.
        description (`str`): Its idea, in words.
        measure (`Callable[[str], float]`): The code's score, higher is better.
    """

    def __init__(self, name: str, description: str, measure: Callable[[str], float]):
        self.name, self.description, self.measure = name, description, measure

    def score(self, instructions: Sequence[str], queries: Sequence[str], codes: Sequence[str]) -> np.ndarray:
        """See `Scorer.score`."""
        scores = {code: self.measure(code) for code in dict.fromkeys(codes)}
        return np.array([scores[code] for code in codes], dtype=np.float32)

    def __repr__(self) -> str:
        return f"CodeScorer({self.name!r})"


# For texts that are not Python 3, as far as they can be read.
_IMPORT_LINE = re.compile(r"^\s*(?:from\s+([\w.]+)\s+import|import\s+([\w.]+))", re.MULTILINE)


@lru_cache(maxsize=1 << 16)
def program_modules(code: str) -> tuple[str, ...]:
    """Top-level names of the modules that a program imports, one entry an imported name."""
    tree = parse_python(code)
    if tree is not None:
        return tuple(imported_modules(tree))
    return tuple((first or second).split(".")[0] for first, second in _IMPORT_LINE.findall(code))


def _lines(code: str) -> int:
    return sum(not line.isspace() and line != "" for line in code.split("\n"))


def _reads_stdin(code: str) -> bool:
    tree = parse_python(code)
    return tree is not None and any(map(_is_stdin, ast.walk(tree)))


def _is_stdin(node: ast.AST) -> bool:
    match node:
        case ast.Attribute(attr="stdin" | "__stdin__"):
            return True
        case ast.ImportFrom(module="sys", names=names):
            return any(alias.name == "stdin" for alias in names)
        case ast.Call(func=ast.Name(id="open"), args=[ast.Constant(value=0 | "/dev/stdin"), *_]):
            return True
        case ast.Call(func=ast.Attribute(value=ast.Name(id="os"), attr="read" | "fdopen"), args=[first, *_]):
            return isinstance(first, ast.Constant) and first.value == 0
    return False


def _depth(code: str) -> int:
    tree = parse_python(code)
    return 0 if tree is None else loop_depth(tree)


TRIVIAL_SCORERS = {
    scorer.name: scorer
    for scorer in (
        CodeScorer("random", "no opinion: every pair is a tie", lambda code: 0),
        CodeScorer("shorter", "the program of fewer characters", lambda code: -len(code)),
        CodeScorer("longer", "the program of more characters", len),
        CodeScorer("fewer-lines", "the program of fewer lines that are not blank", lambda code: -_lines(code)),
        CodeScorer("fewer-imports", "the program that imports fewer names", lambda code: -len(program_modules(code))),
        CodeScorer(
            "no-numpy",
            f"the program without {', '.join(sorted(HEAVY_MODULES))}",
            lambda code: -float(not HEAVY_MODULES.isdisjoint(program_modules(code))),
        ),
        CodeScorer("reads-stdin", "the program that reads sys.stdin or file 0, not by input()", _reads_stdin),
        CodeScorer(
            "less-loop-nesting", "the program whose loops and comprehensions are nested less deeply",
            lambda code: -_depth(code),
        ),
    )
}  # fmt: skip
"""Name (as `evaluate --model` takes it) -> scorer. `random` gets .5 by half credit, by definition."""
