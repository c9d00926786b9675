"""Comments that are former code go."""

import ast
import re

import libcst as cst

from hf_qualcode.benchmark.drawing import Draws


DIMENSION = "maintainability"
CATEGORY = "readability"
LEVEL = "high"
SUMMARY = "Comments that are code, and not words about it, are removed."
EXAMPLES = (
    (
        "def f(a):\n    # doubled\n    # print(a)\n    b = a * 2  # b = a\n    return b\n",
        "def f(a):\n    # doubled\n    b = a * 2\n    return b\n",
    ),
)
_CODE = (ast.Assign, ast.AugAssign, ast.Return, ast.Import, ast.ImportFrom, ast.For, ast.While, ast.If, ast.Assert)
# Of expressions only calls count: a word is a name to Python.
_CALL = re.compile(r"[\w.]+\(.*\)")


def apply(module: cst.Module, draws: Draws) -> cst.Module | None:
    """Remove each such comment, with its line where it has one to itself."""
    remover = _Remover()
    changed = module.visit(remover)
    return changed if remover.count else None


def is_code(comment: str) -> bool:
    """Whether a comment, with its `#`, reads as a statement of Python."""
    text = comment.lstrip("#!: ").strip()
    if comment.startswith("#!") or "coding" in text or not text:
        return False
    if _CALL.fullmatch(text):
        return _parses(text)
    if text.endswith(":"):
        text = f"{text} pass"
    return _parses(text, _CODE)


def _parses(text: str, kinds: tuple[type, ...] = (ast.Expr,)) -> bool:
    try:
        # `return` is code as well, though not by itself.
        body = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return len(body) == 1 and isinstance(body[0], kinds)


class _Remover(cst.CSTTransformer):
    def __init__(self):
        super().__init__()
        self.count = 0

    def leave_EmptyLine(self, original_node, updated_node):
        if updated_node.comment is None or not is_code(updated_node.comment.value):
            return updated_node
        self.count += 1
        return cst.RemoveFromParent()

    def leave_TrailingWhitespace(self, original_node, updated_node):
        if updated_node.comment is None or not is_code(updated_node.comment.value):
            return updated_node
        self.count += 1
        return updated_node.with_changes(comment=None, whitespace=cst.SimpleWhitespace(""))
