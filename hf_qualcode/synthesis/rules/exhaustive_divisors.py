"""Divisors are looked for beyond the square root."""

import libcst as cst
import libcst.matchers as m

from hf_qualcode.benchmark.drawing import Draws
from hf_qualcode.synthesis.rules._blocks import leaves, statements_of
from hf_qualcode.synthesis.rules._expressions import bare, code_of, names_in
from hf_qualcode.synthesis.rules._finding import findall
from hf_qualcode.synthesis.rules._variables import changed_names, replaced


DIMENSION = "speed"
CATEGORY = "algorithm"
LEVEL = "low"
SUMMARY = "A loop that looks for the first divisor of n up to its square root goes on up to n."
EXAMPLES = (
    (
        "def f(n):\n    for i in range(2, int(n ** 0.5) + 1):\n        if n % i == 0:\n            return False\n"
        "    return n > 1\n",
        "def f(n):\n    for i in range(2, n):\n        if n % i == 0:\n            return False\n    return n > 1\n",
    ),
    (
        "def f(n):\n    i = 2\n    while i * i <= n:\n        if n % i == 0:\n            return False\n"
        "        i += 1\n"
        "    return True\n",
        "def f(n):\n    i = 2\n    while i < n:\n        if n % i == 0:\n            return False\n        i += 1\n"
        "    return True\n",
    ),
)
_ROOT_TEXTS = (
    *("int(math.sqrt({n}))+1", "int(sqrt({n}))+1", "int({n}**0.5)+1", "int({n}**.5)+1", "math.isqrt({n})+1"),
    *("isqrt({n})+1", "int({n}**(1/2))+1", "int(math.sqrt({n})+1)", "int({n}**0.5+1)", "math.floor(math.sqrt({n}))+1"),
    *("int(math.floor(math.sqrt({n})))+1", "int(pow({n},0.5))+1", "1+int(math.sqrt({n}))", "1+int({n}**0.5)"),
    *("math.ceil(math.sqrt({n}))+1", "math.ceil(math.sqrt({n}+1))", "int(({n}**0.5)+1)", "(int)(math.sqrt({n}))+1"),
)


def apply(module: cst.Module, draws: Draws) -> cst.Module | None:
    """Change each such loop whose body is left at the first divisor and does nothing else.

    From 2, or from 3 in steps of 2: a number with a divisor in that range has one up to its square root.
    """
    changes = {}
    for loop in findall(module, m.For(target=m.Name())):
        number = first_divisor_number(loop)
        arguments = loop.iter.args if number else ()
        if number and _squeezed(arguments[1].value) in [text.format(n=number) for text in _ROOT_TEXTS]:
            changes[arguments[1].value] = lambda _, number=number: cst.Name(number)
    for loop in findall(module, m.While()):
        change = _while_bound(loop)
        if change:
            changes[loop.test] = lambda _, text=change: cst.parse_expression(text)
    return replaced(module, changes)


def first_divisor_number(loop: cst.For) -> str | None:
    """Name of n in `for i in range(2, ...): if n % i == 0: <leave>`, also from 3 by steps of 2."""
    if not m.matches(loop.iter, m.Call(func=m.Name("range"))) or not 2 <= len(loop.iter.args) <= 3:
        return None
    texts = [code_of(arg.value) for arg in loop.iter.args]
    if not (texts[0] == "2" and texts[2:] in ([], ["1"])) and not (texts[0] == "3" and texts[2:] in ([], ["2"])):
        return None
    body = statements_of(loop.body)
    return _tested(body[0], loop.target.value) if len(body) == 1 else None


def _tested(statement: cst.CSTNode, divisor: str) -> str | None:
    if not isinstance(statement, cst.If) or statement.orelse is not None or not leaves(statements_of(statement.body)):
        return None
    test = bare(statement.test)
    if m.matches(test, m.Comparison()):
        zero = m.ComparisonTarget(operator=m.Equal(), comparator=m.Integer("0"))
        if not m.matches(test, m.Comparison(comparisons=[zero])):
            return None
        test = bare(test.left)
    elif m.matches(test, m.UnaryOperation(operator=m.Not())):
        test = bare(test.expression)
    else:
        return None
    if not m.matches(test, m.BinaryOperation(left=m.Name(), operator=m.Modulo(), right=m.Name(divisor))):
        return None
    number = test.left.value
    within = names_in(statement.body)
    jumps = findall(statement.body, m.Continue())
    # What happens at the divisor must not depend on which one it is.
    return None if divisor in within or number in changed_names(statement.body) or jumps else number


def _while_bound(loop: cst.While) -> str | None:
    body = statements_of(loop.body)
    if len(body) != 2 or not m.matches(body[1], m.SimpleStatementLine(body=[m.AugAssign(target=m.Name())])):
        return None
    step = body[1].body[0]
    divisor = step.target.value
    number = _tested(body[0], divisor)
    if number is None or not isinstance(step.operator, cst.AddAssign) or code_of(step.value) not in ("1", "2"):
        return None
    text = _squeezed(loop.test)
    return f"{divisor} < {number}" if text in (f"{divisor}*{divisor}<={number}", f"{divisor}**2<={number}") else None


def _squeezed(node: cst.BaseExpression) -> str:
    return code_of(bare(node)).replace(" ", "").replace("\t", "")
