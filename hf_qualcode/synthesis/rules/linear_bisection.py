"""Places in sorted lists are found by going through them."""

import libcst as cst
import libcst.matchers as m

from hf_qualcode.benchmark.drawing import Draws
from hf_qualcode.synthesis.rules._expressions import code_of, is_repeatable, names_in, standalone
from hf_qualcode.synthesis.rules._finding import findall
from hf_qualcode.synthesis.rules._variables import binds_any, replaced


DIMENSION = "speed"
CATEGORY = "algorithm"
LEVEL = "low"
SUMMARY = "`bisect_left` and `bisect_right` become counts of the elements below."
EXAMPLES = (
    (
        "import bisect\n\ndef f(xs, x):\n    return bisect.bisect_left(xs, x)\n",
        "import bisect\n\ndef f(xs, x):\n    return sum(item < x for item in xs)\n",
    ),
)
_SIGNS = {"bisect_left": "<", "bisect_right": "<=", "bisect": "<="}


def apply(module: cst.Module, draws: Draws) -> cst.Module | None:
    """Change each call with a list and a value."""
    if binds_any(module, ("sum", "item")):
        return None
    imported = {name.value for node in findall(module, m.ImportFrom(module=m.Name("bisect")))
                for name in findall(node, m.Name())}  # fmt: skip
    changes = {}
    for call in findall(module, m.Call(args=[m.Arg(keyword=None, star=""), m.Arg(keyword=None, star="")])):
        name = code_of(call.func)
        short = name.removeprefix("bisect.")
        if short not in _SIGNS or (short == name and name not in imported):
            continue
        values, wanted = (arg.value for arg in call.args)
        if (
            isinstance(values, cst.Name | cst.Subscript | cst.Attribute)
            and is_repeatable(wanted)
            and ("item" not in names_in(call))
        ):
            text = f"sum(item {_SIGNS[short]} {code_of(standalone(wanted))} for item in {code_of(values)})"
            changes[call] = lambda _, text=text: cst.parse_expression(text)
    return replaced(module, changes)
