"""Iterables that make their items one by one, and lists in their place."""

import libcst as cst
import libcst.matchers as m

from hf_qualcode.synthesis.rules._expressions import code_of, names_in
from hf_qualcode.synthesis.rules._finding import findall
from hf_qualcode.synthesis.rules._variables import READING_CALLS, READING_METHODS, changed_names


LAZY = ("range", "enumerate", "zip", "reversed", "map", "filter")
COMBINING = ("product", "permutations", "combinations", "combinations_with_replacement", "accumulate", "chain")
COMBINING_NAMES = (*COMBINING, *(f"itertools.{name}" for name in COMBINING))
# Reductions that look at their items one by one and keep none.
CONSUMING = ("sum", "max", "min", "any", "all")
MOST_LISTED = 10**6
_STEADY = READING_CALLS - {"print"} | {"ord", "chr", "isinstance", "pow", "divmod", "round", "hash"}


def is_call_of(node: cst.CSTNode, names: tuple[str, ...]) -> bool:
    """Whether the node is a call of one of these functions, with arguments."""
    return isinstance(node, cst.Call) and bool(node.args) and code_of(node.func) in names


def is_steady(node: cst.CSTNode) -> bool:
    """Whether an expression may be evaluated earlier or later: what it calls changes nothing."""
    if findall(node, m.NamedExpr() | m.Await() | m.Yield() | m.Lambda()):
        return False
    for call in findall(node, m.Call()):
        name = call.func.value if isinstance(call.func, cst.Name) else None
        method = call.func.attr.value if isinstance(call.func, cst.Attribute) else None
        is_input = code_of(call) in (
            "input()",
            "input().split()",
            "sys.stdin.readline()",
            "sys.stdin.readline().split()",
        )
        if not (name in _STEADY or name in LAZY or method in READING_METHODS or is_input):
            return False
    return True


def is_same_early(iterable: cst.Call, body: cst.CSTNode | None) -> bool:
    """Whether a list of all items, made before the body runs, gives it the same items one by one."""
    name = code_of(iterable.func)
    if name == "range":
        # One without an end, as good as, is meant to be left early.
        numbers = [number.evaluated_value for number in findall(iterable, m.Integer())]
        return not findall(iterable, m.Power() | m.Name("maxsize") | m.Attribute(attr=m.Name("maxsize"))) and all(
            number <= MOST_LISTED for number in numbers
        )
    if name in ("map", "filter"):
        function = iterable.args[0].value
        if not (isinstance(function, cst.Name) and function.value in _STEADY | {"None"}):
            return False
    if name == "itertools.chain" or any(arg.star for arg in iterable.args):
        return False
    return body is None or not names_in(iterable) & changed_names(body)


def reads_input(node: cst.CSTNode) -> bool:
    """Whether a piece of code reads standard input."""
    return bool({"input", "stdin", "open", "fileinput", "readline"} & names_in(node))
