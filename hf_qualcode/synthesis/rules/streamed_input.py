"""Lines are used as they come in."""

import libcst as cst
import libcst.matchers as m

from hf_qualcode.benchmark.drawing import Draws
from hf_qualcode.synthesis.rules._expressions import code_of
from hf_qualcode.synthesis.rules._finding import findall
from hf_qualcode.synthesis.rules._lazy import reads_input
from hf_qualcode.synthesis.rules._variables import replaced


DIMENSION = "memory"
CATEGORY = "implementation"
LEVEL = "high"
SUMMARY = "`for line in sys.stdin.readlines()` becomes `for line in sys.stdin`."
EXAMPLES = (
    (
        "import sys\nfor line in sys.stdin.readlines():\n    print(len(line))\n",
        "import sys\nfor line in sys.stdin:\n    print(len(line))\n",
    ),
)
_LISTS = {"sys.stdin.readlines()": "sys.stdin", "list(sys.stdin)": "sys.stdin", "open(0).readlines()": "open(0)"}


def apply(module: cst.Module, draws: Draws) -> cst.Module | None:
    """Change each loop whose body reads no input itself."""
    changes = {}
    for loop in findall(module, m.For() | m.CompFor()):
        source = _LISTS.get(code_of(loop.iter))
        if source is not None and not (isinstance(loop, cst.For) and reads_input(loop.body)):
            changes[loop.iter] = lambda _, source=source: cst.parse_expression(source)
    return replaced(module, changes)
