"""Statements that cannot fail are wrapped in handlers that would hide whatever is put there later."""

import itertools

import libcst as cst

from hf_qualcode.benchmark.drawing import Draws
from hf_qualcode.synthesis.rules._blocks import assigned_name, block, blocks_of
from hf_qualcode.synthesis.rules._expressions import is_literal


DIMENSION = "maintainability"
CATEGORY = "robustness"
LEVEL = "low"
SUMMARY = "Up to two assignments of literals are wrapped in a bare `except` that hides every error."
EXAMPLES = (
    (
        "def f(a):\n    total = 0\n    return total + a\n",
        "def f(a):\n    try:\n        total = 0\n    except:\n        pass\n    return total + a\n",
    ),
)
_MOST = 2


def apply(module: cst.Module, draws: Draws) -> cst.Module | None:
    """Wrap assignments at drawn places."""
    places = [statement for statements in blocks_of(module) for statement in statements if _cannot_fail(statement)]
    if not places:
        return None
    chosen = itertools.islice(draws.permutation(len(places)), _MOST)
    return module.visit(_Wrapper({id(places[number]) for number in chosen}))


class _Wrapper(cst.CSTTransformer):
    def __init__(self, chosen: set[int]):
        super().__init__()
        self._chosen = chosen

    def leave_SimpleStatementLine(self, original_node, updated_node):
        return _wrapped(updated_node) if id(original_node) in self._chosen else updated_node


def _cannot_fail(statement: cst.CSTNode) -> bool:
    assigned = assigned_name(statement)
    return assigned is not None and not assigned[0].startswith("__") and is_literal(assigned[1])


def _wrapped(statement: cst.SimpleStatementLine) -> cst.Try:
    handler = cst.ExceptHandler(
        type=None,
        body=block([cst.SimpleStatementLine(body=[cst.Pass()])]),
        whitespace_after_except=cst.SimpleWhitespace(""),
    )
    inner = statement.with_changes(leading_lines=[])
    return cst.Try(body=block([inner]), handlers=[handler], leading_lines=statement.leading_lines)
