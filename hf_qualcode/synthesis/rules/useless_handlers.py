"""Handlers that catch everything and do nothing but raise it again."""

import libcst as cst

from hf_qualcode.benchmark.drawing import Draws
from hf_qualcode.synthesis.rules._blocks import after_docstring, block, runs, statements_of


DIMENSION = "maintainability"
CATEGORY = "robustness"
LEVEL = "low"
SUMMARY = "The bodies of functions, or the loops of a module without functions, are wrapped in a useless handler."
EXAMPLES = (
    (
        "def f(a):\n    return a * 2\n",
        "def f(a):\n    try:\n        return a * 2\n    except Exception:\n        raise\n",
    ),
    (
        "for n in range(3):\n    print(n)\n",
        "try:\n    for n in range(3):\n        print(n)\nexcept Exception:\n    raise\n",
    ),
)


def apply(module: cst.Module, draws: Draws) -> cst.Module | None:
    """Wrap the body of each function of the top level; where there is none, each loop there."""
    body, count = [], 0
    for statement in module.body:
        if isinstance(statement, cst.FunctionDef) and isinstance(statement.body, cst.IndentedBlock):
            statements = statements_of(statement.body)
            start = after_docstring(statements)
            if statements[start:] and not any(runs(inner, cst.Global, cst.Nonlocal) for inner in statements[start:]):
                count += 1
                wrapped = [*statements[:start], _wrapped(statements[start:])]
                statement = statement.with_changes(body=statement.body.with_changes(body=wrapped))
        body.append(statement)
    if not count:
        for place, statement in enumerate(body):
            if isinstance(statement, cst.For | cst.While):
                count += 1
                inner = statement.with_changes(leading_lines=[])
                body[place] = _wrapped([inner]).with_changes(leading_lines=statement.leading_lines)
    return module.with_changes(body=body) if count else None


def _wrapped(statements: list[cst.BaseStatement]) -> cst.Try:
    handler = cst.ExceptHandler(
        type=cst.Name("Exception"),
        body=block([cst.SimpleStatementLine(body=[cst.Raise()])]),
        whitespace_after_except=cst.SimpleWhitespace(" "),
    )
    return cst.Try(body=block(statements), handlers=[handler])
