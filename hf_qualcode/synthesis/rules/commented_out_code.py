"""Code that is no longer in use stays behind as comments."""

import itertools

import libcst as cst

from hf_qualcode.benchmark.drawing import Draws
from hf_qualcode.synthesis.rules._blocks import after_docstring, assigned_name, blocks_of, only_part
from hf_qualcode.synthesis.rules._expressions import code_of


DIMENSION = "maintainability"
CATEGORY = "readability"
LEVEL = "low"
SUMMARY = "Up to three comments with former code: prints for debugging, and lines as they could have been before."
EXAMPLES = (
    (
        "def f(a):\n    b = a * 2\n",
        "def f(a):\n    # print(b)\n    # b = a * 2\n    b = a * 2\n",
    ),
)
_MOST = 3
_LONGEST = 80


def apply(module: cst.Module, draws: Draws) -> cst.Module | None:
    """Put comments before assignments and returns, at drawn places."""
    places = [statement for statement in _statements(module) if _former_code(statement)]
    if not places:
        return None
    chosen = itertools.islice(draws.permutation(len(places)), _MOST)
    return module.visit(_Commenter({id(places[number]) for number in chosen}))


def _statements(module: cst.Module) -> list[cst.SimpleStatementLine]:
    """Lines with simple statements, in the order of the text within each block."""
    return [
        statement
        for statements in blocks_of(module)
        for statement in statements[after_docstring(statements) :]
        if isinstance(statement, cst.SimpleStatementLine)
    ]


def _former_code(statement: cst.SimpleStatementLine) -> list[str]:
    """Lines of code that could have been there; none for a statement that gives no idea, or a long one."""
    part = only_part(statement)
    if not isinstance(part, cst.Assign | cst.AugAssign | cst.Return) or part.value is None:
        return []
    text = code_of(part).strip()
    if "\n" in text or "\r" in text or len(text) > _LONGEST or "coding" in text or "#" in text:
        return []
    assigned = assigned_name(statement)
    return [f"print({assigned[0]})", text] if assigned is not None else [text]


class _Commenter(cst.CSTTransformer):
    def __init__(self, chosen: set[int]):
        super().__init__()
        self._chosen = chosen

    def leave_SimpleStatementLine(self, original_node, updated_node):
        if id(original_node) not in self._chosen:
            return updated_node
        comments = [cst.EmptyLine(comment=cst.Comment(f"# {text}")) for text in _former_code(original_node)]
        return updated_node.with_changes(leading_lines=[*updated_node.leading_lines, *comments])
