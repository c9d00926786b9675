"""Output is held back to the end."""

import libcst as cst
import libcst.matchers as m

from hf_qualcode.benchmark.drawing import Draws
from hf_qualcode.synthesis.rules._blocks import after_imports, fresh_name, line
from hf_qualcode.synthesis.rules._expressions import names_in
from hf_qualcode.synthesis.rules._finding import findall
from hf_qualcode.synthesis.rules._lazy import reads_input
from hf_qualcode.synthesis.rules._variables import binds_any, replaced


DIMENSION = "memory"
CATEGORY = "patterns"
LEVEL = "low"
SUMMARY = "A program that prints as it goes collects its lines in a list and prints them at its end."
EXAMPLES = (
    (
        "n = int(input())\nfor i in range(n):\n    print(i, n)\n",
        "output = []\nn = int(input())\nfor i in range(n):\n    output.append(f'{i} {n}')\nif output:\n"
        "    print('\\n'.join(output))\n",
    ),
)
# Ways to end before the end, and to print by another way.
_ENDINGS = {"exit", "quit", "_exit", "stdout", "SystemExit", "Thread", "write", "stderr", "flush"}


def apply(module: cst.Module, draws: Draws) -> cst.Module | None:
    """Change all calls of `print`, where one is in a loop and none has options."""
    if binds_any(module, ("print", "str")) or _ENDINGS & names_in(module) or not reads_input(module):
        return None
    calls = findall(module, m.Call(func=m.Name("print")))
    if len(calls) != len(findall(module, m.Name("print"))):
        return None
    if any(arg.star or arg.keyword is not None for call in calls for arg in call.args):
        return None
    loops = findall(module, m.For() | m.While())
    if not any(findall(loop, m.Call(func=m.Name("print"))) for loop in loops):
        return None
    name = fresh_name("output", names_in(module))
    changed = replaced(module, {call: lambda node: _append(node, name) for call in calls})
    place = after_imports(changed.body)
    last = cst.parse_statement(f"if {name}:\n    print('\\n'.join({name}))\n")
    return changed.with_changes(body=[*changed.body[:place], line(f"{name} = []"), *changed.body[place:], last])


def _append(call: cst.Call, name: str) -> cst.Call:
    values = [arg.value for arg in call.args]
    if not values:
        text: cst.BaseExpression = cst.SimpleString("''")
    elif len(values) == 1:
        value = values[0]
        text = cst.Call(cst.Name("str"), [cst.Arg(value)])
    elif all(isinstance(value, cst.Name) for value in values):
        text = cst.parse_expression("f'" + " ".join(f"{{{value.value}}}" for value in values) + "'")
    else:
        items = cst.Tuple([cst.Element(value) for value in values])
        text = cst.Call(
            cst.parse_expression("' '.join"),
            [cst.Arg(cst.Call(cst.Name("map"), [cst.Arg(cst.Name("str")), cst.Arg(items)]))],
        )
    return cst.Call(cst.parse_expression(f"{name}.append"), [cst.Arg(text)])
