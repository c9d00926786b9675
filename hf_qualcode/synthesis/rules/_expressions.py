"""Questions about expressions that several transformations ask, and expressions moved to another place."""

from collections.abc import Iterator

import libcst as cst
import libcst.matchers as m


# Builtins that change nothing and give the same answer twice, as long as the types are Python's own.
_STEADY_CALLS = frozenset(
    ("abs", "bool", "chr", "divmod", "float", "int", "isinstance", "len", "ord", "repr", "round", "str", "type")
)
_CONSTANTS = frozenset(("True", "False", "None"))
# What lets a program see or change the names of its variables.
_REFLECTION = frozenset(
    ("eval", "exec", "locals", "vars", "dir", "globals", "compile", "inspect", "setattr", "getattr", "delattr")
)


def code_of(node: cst.CSTNode) -> str:
    """The source text of a node, without its module's indentation and line ends."""
    return cst.Module([]).code_for_node(node)


def names_in(node: cst.CSTNode) -> set[str]:
    """Every identifier in a node: variables, attributes, keywords, parameters."""
    collector = _Names()
    node.visit(collector)
    return collector.found


class _Names(cst.CSTVisitor):
    # Several times as fast as a matcher, and asked for all the time.
    def __init__(self):
        super().__init__()
        self.found: set[str] = set()

    def visit_Name(self, node):
        self.found.add(node.value)


def reads_own_names(node: cst.CSTNode) -> bool:
    """Whether the node may look variables up by the text of their names (`eval`, `locals`, `f"{x=}"`, ...)."""
    return bool(names_in(node) & _REFLECTION) or bool(
        m.findall(node, m.FormattedStringExpression(equal=m.AssignEqual()))
    )


def is_literal(node: cst.BaseExpression) -> bool:
    """Whether evaluating the node can neither fail nor do anything: constants, and lists and tuples of such."""
    if isinstance(node, cst.Name):
        return node.value in _CONSTANTS
    if isinstance(node, cst.UnaryOperation):
        return isinstance(node.operator, cst.Minus) and is_number(node.expression)
    if isinstance(node, cst.List | cst.Tuple):
        return all(type(element) is cst.Element and is_literal(element.value) for element in node.elements)
    if isinstance(node, cst.Set):
        return all(type(element) is cst.Element and is_constant(element.value) for element in node.elements)
    if isinstance(node, cst.Dict):
        return all(
            type(element) is cst.DictElement and is_constant(element.key) and is_literal(element.value)
            for element in node.elements
        )
    return is_constant(node)


def is_number(node: cst.BaseExpression) -> bool:
    """Whether the node is a number as written, without a sign."""
    return isinstance(node, cst.Integer | cst.Float | cst.Imaginary)


def is_constant(node: cst.BaseExpression) -> bool:
    """Whether the node is a number, a string without fields, `True`, `False` or `None`."""
    if isinstance(node, cst.Name):
        return node.value in _CONSTANTS
    return is_number(node) or isinstance(node, cst.SimpleString)


def is_repeatable(node: cst.BaseExpression) -> bool:
    """Whether evaluating the node twice is the same as once, for values of Python's own types.

    `in` is left out where the right side could be an iterator, which it would use up.
    """
    if isinstance(node, cst.Name) or is_literal(node):
        return True
    if isinstance(node, cst.UnaryOperation):
        return is_repeatable(node.expression)
    if isinstance(node, cst.BinaryOperation | cst.BooleanOperation):
        return is_repeatable(node.left) and is_repeatable(node.right)
    if isinstance(node, cst.Comparison):
        return is_repeatable(node.left) and all(
            is_literal(target.comparator)
            if isinstance(target.operator, cst.In | cst.NotIn)
            else is_repeatable(target.comparator)
            for target in node.comparisons
        )
    if isinstance(node, cst.Subscript):
        return is_repeatable(node.value) and all(
            is_repeatable(element.slice.value) if isinstance(element.slice, cst.Index) else False
            for element in node.slice
        )
    if isinstance(node, cst.Call):
        return (
            isinstance(node.func, cst.Name)
            and node.func.value in _STEADY_CALLS
            and all(not arg.star and is_repeatable(arg.value) for arg in node.args)
        )
    return False


def standalone(node: cst.BaseExpression) -> cst.BaseExpression:
    """The expression with parentheses wherever it could need some in another place."""
    atoms = (
        *(cst.Name, cst.Call, cst.Subscript, cst.Attribute, cst.List, cst.Dict, cst.Set, cst.Integer, cst.Float),
        *(cst.SimpleString, cst.FormattedString, cst.ListComp, cst.SetComp, cst.DictComp),
    )
    if node.lpar or (isinstance(node, atoms) and "\n" not in code_of(node)):
        return node
    return node.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])


def as_condition(node: cst.BaseExpression) -> cst.BaseExpression:
    """The expression as the test of an `if`: in parentheses only where it runs over lines or binds too loosely."""
    loose = cst.NamedExpr | cst.Lambda | cst.IfExp | cst.Tuple
    if node.lpar or ("\n" not in code_of(node) and not isinstance(node, loose)):
        return node
    return standalone(node)


def bare(node: cst.BaseExpression) -> cst.BaseExpression:
    """The expression without its outer parentheses, where it stands on one line."""
    if not node.lpar or isinstance(node, cst.Tuple | cst.GeneratorExp | cst.NamedExpr | cst.Yield):
        return node
    stripped = node.with_changes(lpar=[], rpar=[])
    return node if "\n" in code_of(node) else stripped


def negated(node: cst.BaseExpression) -> cst.BaseExpression:
    """`not node`, or what was negated where it is a negation already; to be used for its truth only."""
    inner = bare(node)
    if isinstance(inner, cst.UnaryOperation) and isinstance(inner.operator, cst.Not):
        return as_condition(inner.expression)
    tight = isinstance(inner, cst.Comparison | cst.UnaryOperation | cst.BinaryOperation) and "\n" not in code_of(inner)
    return cst.UnaryOperation(operator=cst.Not(), expression=inner if tight else standalone(inner))


def conjuncts(node: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """The parts of `a and b and c`, in order; the node itself where it is none."""
    inner = bare(node)
    if isinstance(inner, cst.BooleanOperation) and isinstance(inner.operator, cst.And):
        yield from conjuncts(inner.left)
        yield from conjuncts(inner.right)
    else:
        yield node


def disjuncts(node: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """The parts of `a or b or c`, in order; the node itself where it is none."""
    inner = bare(node)
    if isinstance(inner, cst.BooleanOperation) and isinstance(inner.operator, cst.Or):
        yield from disjuncts(inner.left)
        yield from disjuncts(inner.right)
    else:
        yield node


def text_of(node: cst.BaseExpression) -> str | None:
    """The value of a plain string literal; `None` for bytes and for anything else."""
    if not isinstance(node, cst.SimpleString):
        return None
    value = node.evaluated_value
    return value if isinstance(value, str) else None
