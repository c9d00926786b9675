"""The whole input is read before the first line is used."""

import libcst as cst
import libcst.matchers as m

from hf_qualcode.benchmark.drawing import Draws
from hf_qualcode.synthesis.rules._blocks import after_imports, line
from hf_qualcode.synthesis.rules._expressions import code_of, names_in
from hf_qualcode.synthesis.rules._finding import findall
from hf_qualcode.synthesis.rules._variables import replaced, with_import


DIMENSION = "memory"
CATEGORY = "implementation"
LEVEL = "low"
SUMMARY = "A program that reads its input line by line reads all of it at its start."
EXAMPLES = (
    (
        "n = int(input())\nfor i in range(n):\n    print(input())\n",
        "import sys\nlines = iter(sys.stdin.read().split('\\n'))\nn = int(next(lines))\nfor i in range(n):\n"
        "    print(next(lines))\n",
    ),
    (
        "import sys\nfor line in sys.stdin:\n    print(len(line))\n",
        "import sys\nfor line in sys.stdin.readlines():\n    print(len(line))\n",
    ),
)
_READING = {"stdin", "open", "fileinput", "readline", "readlines"}


def apply(module: cst.Module, draws: Draws) -> cst.Module | None:
    """Change `for line in sys.stdin`; or, where `input()` is all that reads and one call is in a loop, all of them."""
    changes = {}
    for loop in findall(module, m.For() | m.CompFor()):
        if code_of(loop.iter) == "sys.stdin" and not (_READING | {"input"}) & names_in(
            loop.body if isinstance(loop, cst.For) else cst.Name("x")
        ):
            changes[loop.iter] = lambda node: cst.parse_expression("sys.stdin.readlines()")
    if changes:
        return replaced(module, changes)
    names = names_in(module)
    calls = findall(module, m.Call(func=m.Name("input"), args=[]))
    # An end of the input would be another error, and a prompt is output.
    if not calls or len(calls) != len(findall(module, m.Name("input"))) or findall(module, m.Try()):
        return None
    if (_READING | {"lines"}) & names:
        return None
    loops = findall(module, m.For() | m.While() | m.ListComp() | m.GeneratorExp() | m.SetComp() | m.DictComp())
    if not any(findall(loop, m.Call(func=m.Name("input"))) for loop in loops):
        return None
    changed = replaced(module, {call: lambda _: cst.parse_expression("next(lines)") for call in calls})
    changed = with_import(changed, "import sys")
    place = after_imports(changed.body)
    reading = line("lines = iter(sys.stdin.read().split('\\n'))")
    return changed.with_changes(body=[*changed.body[:place], reading, *changed.body[place:]])
