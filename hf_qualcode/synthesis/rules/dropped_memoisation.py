"""Results of recursive calls are no longer kept."""

import libcst as cst
import libcst.matchers as m

from hf_qualcode.benchmark.drawing import Draws
from hf_qualcode.synthesis.rules._blocks import statements_of
from hf_qualcode.synthesis.rules._expressions import code_of
from hf_qualcode.synthesis.rules._finding import findall
from hf_qualcode.synthesis.rules._variables import calls_of, replaced


DIMENSION = "speed"
CATEGORY = "implementation"
LEVEL = "low"
SUMMARY = "`lru_cache` or `cache` is taken from a function that calls itself."
EXAMPLES = (
    (
        "from functools import lru_cache\n\n@lru_cache(maxsize=None)\ndef fib(n):\n"
        "    return n if n < 2 else fib(n - 1) + fib(n - 2)\n",
        "\ndef fib(n):\n    return n if n < 2 else fib(n - 1) + fib(n - 2)\n",
    ),
    (
        "def f(n, memo={}):\n    if n in memo:\n        return memo[n]\n"
        "    memo[n] = 1 if n < 2 else f(n - 1) + f(n - 2)\n"
        "    return memo[n]\n",
        "def f(n, memo={}):\n    memo[n] = 1 if n < 2 else f(n - 1) + f(n - 2)\n    return memo[n]\n",
    ),
)
_CACHES = ("lru_cache", "cache", "functools.lru_cache", "functools.cache")


def apply(module: cst.Module, draws: Draws) -> cst.Module | None:
    """Take the cache from each function that calls itself; also a lookup in a dict that began empty."""
    changes = {}
    for function in findall(module, m.FunctionDef()):
        if len(calls_of(function, function.name.value)) < 2:
            continue
        kept = [decorator for decorator in function.decorators if not _is_cache(decorator)]
        statements = statements_of(function.body)
        looked_up = statements[0] if statements else None
        if len(kept) < len(function.decorators) and not _asks_cache(module, function.name.value):
            changes[function] = _without_cache
        elif len(statements) > 1 and (name := _memo(looked_up)) and _began_empty(module, function, name):
            changes[looked_up] = lambda _: cst.RemovalSentinel.REMOVE
    changed = replaced(module, changes)
    return _without_unused_import(changed) if changed is not None else None


def _without_cache(function: cst.FunctionDef) -> cst.FunctionDef:
    return function.with_changes(decorators=[one for one in function.decorators if not _is_cache(one)])


def _is_cache(decorator: cst.Decorator) -> bool:
    called = decorator.decorator
    return code_of(called.func if isinstance(called, cst.Call) else called) in _CACHES


def _asks_cache(module: cst.Module, name: str) -> bool:
    return bool(findall(module, m.Attribute(value=m.Name(name))))


def _memo(statement: cst.CSTNode) -> str | None:
    """Name of the dict in `if key in memo: return memo[key]`."""
    if not isinstance(statement, cst.If) or statement.orelse is not None:
        return None
    body = statements_of(statement.body)
    test = m.Comparison(comparisons=[m.ComparisonTarget(operator=m.In(), comparator=m.Name())])
    if len(body) != 1 or not m.matches(statement.test, test):
        return None
    name, key = statement.test.comparisons[0].comparator.value, code_of(statement.test.left)
    return name if code_of(body[0]).strip() == f"return {name}[{key}]" else None


def _began_empty(module: cst.Module, function: cst.FunctionDef, name: str) -> bool:
    empty = m.Dict(elements=[]) | m.Call(func=m.Name("dict"), args=[])
    assigned = findall(module, m.Assign(targets=[m.AssignTarget(m.Name(name))]))
    default = findall(function.params, m.Param(name=m.Name(name)))
    starts = [one.value for one in assigned] + [one.default for one in default if one.default is not None]
    # Every item must be a result: whatever else is stored there would be missing.
    stored = findall(module, m.AssignTarget(m.Subscript(value=m.Name(name))))
    within = findall(function, m.AssignTarget(m.Subscript(value=m.Name(name))))
    return bool(starts) and all(m.matches(one, empty) for one in starts) and len(stored) == len(within)


def _without_unused_import(module: cst.Module) -> cst.Module:
    def is_unused(statement: cst.CSTNode) -> bool:
        lone = m.SimpleStatementLine(
            body=[m.ImportFrom(module=m.Name("functools"), names=[m.ImportAlias(name=m.Name())])]
        )
        if not m.matches(statement, lone):
            return False
        alias = statement.body[0].names[0]
        name = alias.name.value
        return alias.asname is None and name in _CACHES and len(findall(module, m.Name(name))) == 1

    return module.with_changes(body=[statement for statement in module.body if not is_unused(statement)])
