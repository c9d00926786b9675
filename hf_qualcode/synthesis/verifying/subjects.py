"""What is verified: a function with its tests, or a program with inputs; and how the sandbox is told of it."""

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hf_qualcode.languages import parse_python
from hf_qualcode.quality.measuring import import_only


@dataclass(frozen=True, slots=True)
class FunctionSubject:
    """A function that assertions test.

    Attributes:
        code (`str`): The original.
        tests (`tuple[str, ...]`): Assertions. Those that call a function of the code with literals can be enlarged.
        setup (`str`): Runs before the code.
    """

    code: str
    tests: tuple[str, ...]
    setup: str = ""

    def job(self) -> dict[str, Any]:
        """What the sandbox is told."""
        calls = repr(literal_calls(self.code, self.tests))
        return {
            "kind": "function",
            "setup": self.setup,
            "original": self.code,
            "tests": list(self.tests),
            "calls": calls,
        }


@dataclass(frozen=True, slots=True)
class ProgramSubject:
    """A program that reads standard input and writes standard output.

    Attributes:
        code (`str`): The original.
        samples (`tuple[str, ...]`): Small inputs.
        inputs (`tuple[str, ...]`): Inputs in growing size.
    """

    code: str
    samples: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()

    def job(self) -> dict[str, Any]:
        """What the sandbox is told."""
        return {
            "kind": "program",
            "original": self.code,
            "samples": list(self.samples),
            "inputs": list(self.inputs),
            "imports": import_only(self.code),
        }


Subject = FunctionSubject | ProgramSubject


def literal_calls(code: str, tests: Sequence[str]) -> list[tuple[str, list, dict]]:
    """The calls in assertions of a function that the code defines, with nothing but literals for arguments.

    Of several calls in one assertion the first counts. Equal calls count once.

    Returns:
        `list[tuple[str, list, dict]]`: Name, arguments, keywords; in the order of the tests.
    """
    tree = parse_python(code)
    if tree is None:
        return []
    own = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    found: dict[str, tuple[str, list, dict]] = {}
    for test in tests:
        parsed = parse_python(test)
        for node in ast.walk(parsed) if parsed is not None else ():
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in own:
                call = _literals(node)
                if call is not None:
                    found.setdefault(repr(call), call)
                break
    return list(found.values())


def _literals(node: ast.Call) -> tuple[str, list, dict] | None:
    if any(keyword.arg is None for keyword in node.keywords):
        return None
    try:
        arguments = [ast.literal_eval(argument) for argument in node.args]
        keywords = {keyword.arg: ast.literal_eval(keyword.value) for keyword in node.keywords}
        call = (node.func.id, arguments, keywords)
        # What is told as text must be read back as it was: no infinity, no nesting without end.
        return call if ast.literal_eval(repr(call)) == call else None
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
