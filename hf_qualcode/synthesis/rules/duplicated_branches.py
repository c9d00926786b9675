"""A branch is copied: two conditions of a chain do the same."""

import libcst as cst
import libcst.matchers as m

from hf_qualcode.benchmark.drawing import Draws
from hf_qualcode.synthesis.rules._blocks import block, line_count, rebinds, statements_of
from hf_qualcode.synthesis.rules._expressions import as_condition, disjuncts, is_repeatable, standalone


DIMENSION = "maintainability"
CATEGORY = "structure"
LEVEL = "low"
SUMMARY = "The body of an `if` is copied into an `elif` before or after it, so that a change has to be made twice."
EXAMPLES = (
    (
        "def f(a, b):\n    if a < 0 or b < 0:\n        print(a)\n        return b\n    return a\n",
        "def f(a, b):\n    if a < 0:\n        print(a)\n        return b\n"
        "    elif b < 0:\n        print(a)\n        return b\n    return a\n",
    ),
    (
        "def f(n):\n    if n > 9:\n        n -= 9\n        print(n)\n",
        "def f(n):\n    if n > 9 and isinstance(n, int):\n        n -= 9\n        print(n)\n"
        "    elif n > 9:\n        n -= 9\n        print(n)\n",
    ),
)
_MOST_LINES = 15


def apply(module: cst.Module, draws: Draws) -> cst.Module | None:
    """Copy the body of each short `if`, once."""
    # `isinstance(x, int)` must mean what it says.
    if rebinds(module, "isinstance", "int"):
        return None
    copier = _Copier()
    changed = module.visit(copier)
    return changed if copier.count else None


class _Copier(cst.CSTTransformer):
    def __init__(self):
        super().__init__()
        self.count = 0

    def leave_If(self, original_node, updated_node):
        # Innermost first: what holds a copy already would double it.
        node = updated_node
        before = self.count
        if line_count(node.body) > _MOST_LINES or _holds_if(original_node.body):
            return node
        parts = list(disjuncts(node.test))
        if len(parts) > 1:
            self.count += 1
            first, second = parts[0], parts[1]
            for part in parts[2:]:
                second = cst.BooleanOperation(left=second, operator=cst.Or(), right=part)
        elif is_repeatable(node.test) and (name := _variable(node.test)) is not None:
            self.count += 1
            second = node.test
            check = cst.parse_expression(f"isinstance({name}, int)")
            first = cst.BooleanOperation(left=_joined(node.test.deep_clone()), operator=cst.And(), right=check)
        if self.count == before:
            return node
        copy = cst.If(
            test=as_condition(second),
            body=block(statements_of(node.body.deep_clone())),
            orelse=node.orelse,
        )
        return node.with_changes(
            test=as_condition(first),
            body=block(statements_of(node.body)),
            orelse=copy,
            whitespace_before_test=cst.SimpleWhitespace(" "),
            whitespace_after_test=cst.SimpleWhitespace(""),
        )


def _joined(node: cst.BaseExpression) -> cst.BaseExpression:
    """The test as a part of `and`."""
    return node if isinstance(node, cst.Comparison | cst.Name) else standalone(node)


def _holds_if(body: cst.BaseSuite) -> bool:
    return bool(m.findall(body, m.If()))


def _variable(test: cst.BaseExpression) -> str | None:
    """The leftmost variable of a comparison: it is evaluated, and so bound, whenever the test is."""
    node = test
    while isinstance(node, cst.Comparison | cst.BinaryOperation | cst.BooleanOperation):
        node = node.left
    return node.value if isinstance(node, cst.Name) and node.value not in ("True", "False", "None") else None
