"""Checks by `isinstance` become comparisons of types."""

import libcst as cst
import libcst.matchers as m

from hf_qualcode.benchmark.drawing import Draws
from hf_qualcode.synthesis.rules._blocks import rebinds
from hf_qualcode.synthesis.rules._expressions import bare, names_in


DIMENSION = "maintainability"
CATEGORY = "modernity"
LEVEL = "low"
SUMMARY = "`isinstance(x, list)` becomes `type(x) == list`, where no subclass can come along."
EXAMPLES = (
    (
        "def f(a):\n    if isinstance(a, list):\n        return a[0]\n    return a\n",
        "def f(a):\n    if type(a) == list:\n        return a[0]\n    return a\n",
    ),
)
# `int` has the subclass `bool`, and named tuples are tuples.
_SAFE_TYPES = frozenset(("str", "list", "dict", "set", "float", "bytes", "bool"))
# Modules that subclass the types above, or make objects of such classes.
_SUBCLASSING = frozenset(("collections", "enum", "numpy", "np", "http", "typing", "ctypes", "json", "email"))


def apply(module: cst.Module, draws: Draws) -> cst.Module | None:
    """Change each such check, in modules without classes of their own."""
    if m.findall(module, m.ClassDef()) or _SUBCLASSING & names_in(module):
        return None
    if rebinds(module, "type", "isinstance", *_SAFE_TYPES):
        return None
    changer = _Changer()
    changed = module.visit(changer)
    return changed if changer.count else None


class _Changer(cst.CSTTransformer):
    def __init__(self):
        super().__init__()
        self.count = 0

    def leave_Call(self, original_node, updated_node):
        if not m.matches(updated_node, m.Call(func=m.Name("isinstance"), args=[m.Arg(), m.Arg(value=m.Name())])):
            return updated_node
        subject, kind = updated_node.args
        if subject.star or kind.value.value not in _SAFE_TYPES:
            return updated_node
        self.count += 1
        call = cst.Call(func=cst.Name("type"), args=[cst.Arg(subject.value)])
        comparison = cst.Comparison(
            left=call, comparisons=[cst.ComparisonTarget(operator=cst.Equal(), comparator=cst.Name(kind.value.value))]
        )
        return comparison.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])

    # Parentheses are only needed where something else binds as tightly.
    def leave_If(self, original_node, updated_node):
        return self._without_parentheses(original_node, updated_node, "whitespace_before_test")

    def leave_While(self, original_node, updated_node):
        return self._without_parentheses(original_node, updated_node, "whitespace_after_while")

    def leave_BooleanOperation(self, original_node, updated_node):
        spaced = not updated_node.operator.whitespace_before.empty
        if isinstance(original_node.left, cst.Call) and not original_node.left.lpar and spaced:
            return updated_node.with_changes(left=bare(updated_node.left))
        return updated_node

    @staticmethod
    def _without_parentheses(original_node, updated_node, space: str):
        if isinstance(original_node.test, cst.Call) and not original_node.test.lpar:
            return updated_node.with_changes(test=bare(updated_node.test), **{space: cst.SimpleWhitespace(" ")})
        return updated_node
