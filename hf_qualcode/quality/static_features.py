"""What a program's syntax tree shows at a glance: imports, reading and printing, loops, data structures, size.

Read off the tree of its normal form, so names, comments and layout make no difference. Chosen by thought from what
contest programs are known to differ in, not by looking at results.
"""

import ast
import functools
import math
from collections import Counter

import numpy as np

from hf_qualcode.languages import normal_python_tree


# Libraries that take a tenth of a second to load, more than most contest programs run.
HEAVY_MODULES = frozenset({"numpy", "scipy", "numba", "networkx", "pandas"})

_MODULES = (
    *("numpy", "scipy", "numba", "networkx", "pandas", "collections", "itertools", "functools", "heapq", "bisect"),
    *("math", "cmath", "fractions", "decimal", "re", "sys", "string", "random", "copy", "operator", "queue", "time"),
    *("datetime", "threading", "statistics", "array", "os", "typing", "resource", "io"),
)
# Feature -> canonical names of the functions whose calls it counts. `.name` is a method of anything.
_CALLS = {
    "calls input": ("input",),
    "calls readline": (".readline",),
    "reads all of stdin": (".read", ".readlines"),
    "opens a file": ("open",),
    "calls eval": ("eval",),
    "calls print": ("print",),
    "writes to stdout": (".write", ".writelines"),
    "calls join": (".join",),
    "calls format": (".format",),
    "calls map": ("map",),
    "calls filter, any or all": ("filter", "any", "all"),
    "calls zip or enumerate": ("zip", "enumerate"),
    "calls range": ("range",),
    "calls sorted or sort": ("sorted", ".sort"),
    "calls sum, min or max": ("sum", "min", "max"),
    "calls len": ("len",),
    "calls list": ("list",),
    "calls set": ("set", "frozenset"),
    "calls dict": ("dict",),
    "calls str": ("str", "repr"),
    "calls pow or divmod": ("pow", "divmod"),
    "calls append or extend": (".append", ".extend"),
    "calls pop": (".pop",),
    "calls insert": (".insert",),
    "calls index, count or remove": (".index", ".count", ".find", ".remove"),
    "calls replace": (".replace",),
    "calls add": (".add",),
    "calls get, setdefault or items": (".get", ".setdefault", ".items"),
    "calls copy": (".copy", ".deepcopy", "copy.copy", "copy.deepcopy"),
    "calls popleft": (".popleft",),
    "makes a deque": ("collections.deque",),
    "makes a Counter": ("collections.Counter",),
    "makes a defaultdict": ("collections.defaultdict",),
    "calls heapq": ("heapq.heappush", "heapq.heappop", "heapq.heapify", "heapq.heappushpop", "heapq.heapreplace"),
    "calls bisect": ("bisect.bisect", "bisect.bisect_left", "bisect.bisect_right", "bisect.insort"),
    "calls permutations, combinations or product": (
        *("itertools.permutations", "itertools.combinations", "itertools.product"),
        *("itertools.combinations_with_replacement",),
    ),
    "calls accumulate": ("itertools.accumulate",),
    "calls gcd": ("math.gcd", "fractions.gcd", "math.lcm"),
    "calls factorial or comb": ("math.factorial", "math.comb", "math.perm"),
    "calls sqrt": ("math.sqrt", "math.isqrt"),
    "calls setrecursionlimit": ("sys.setrecursionlimit",),
    "calls exit": ("exit", "quit", "sys.exit"),
}
_COUNTED = (
    *("statements", "nodes", "functions", "classes", "lambdas", "arguments", "returns", "yields", "for loops"),
    *("while loops", "breaks and continues", "comprehensions", "generator expressions", "ifs"),
    *("conditional expressions", "try blocks", "global statements", "assignments", "augmented assignments"),
    *("comparisons", "membership tests"),
    *("boolean operators", "additions", "multiplications", "divisions", "remainders", "powers", "bit operations"),
    *("list displays", "dict and set displays", "tuples", "subscripts", "slices", "f-strings", "string constants"),
    *("attributes", "calls", "starred arguments", "list multiplications", "list concatenations", "imported modules"),
)
_FLAGS = (
    *("no import", "imports a heavy module", "imports another module", "star import", "reads from sys.stdin"),
    *("opens file 0", "input is readline", "evaluates input", "reads buffered bytes", "reads everything at once"),
    *("input in a loop", "print in a loop", "print of many", "joins lines to print", "print with end or sep"),
    *("sort in a loop", "sum, min or max in a loop", "index, count or remove in a loop", "membership test in a loop"),
    *("slice in a loop", "list concatenation in a loop", "string building in a loop", "copy in a loop"),
    *("call of own function in a loop", "numpy call in a loop", "pop of the first", "loop at the top level"),
    *("loops nested twice", "loops nested three times", "loops nested four times", "while True", "recursion"),
    *("memoised by lru_cache", "compiled by numba", "main guard", "nested function", "table of two dimensions"),
    *("nested comprehension", "three-argument pow", "modulus of contests", "constant of 10**5 or more"),
    *("constant of 10**9 or more", "infinity", "list of 10**5 or more", "list of a range", "numpy table"),
)
FEATURE_NAMES = (
    *(f"imports {module}" for module in _MODULES), *_CALLS, *_COUNTED, *_FLAGS, "log10 of the largest constant"
)  # fmt: skip

_CALL_FEATURES = {function: feature for feature, functions in _CALLS.items() for function in functions}
_NODE_FEATURES = {
    ast.Lambda: "lambdas", ast.arg: "arguments", ast.Return: "returns", ast.Yield: "yields", ast.YieldFrom: "yields",
    ast.Break: "breaks and continues", ast.Continue: "breaks and continues", ast.ListComp: "comprehensions",
    ast.SetComp: "comprehensions", ast.DictComp: "comprehensions", ast.GeneratorExp: "generator expressions",
    ast.If: "ifs", ast.IfExp: "conditional expressions", ast.Try: "try blocks", ast.Global: "global statements",
    ast.Nonlocal: "global statements", ast.Assign: "assignments", ast.AnnAssign: "assignments",
    ast.AugAssign: "augmented assignments", ast.Compare: "comparisons", ast.BoolOp: "boolean operators",
    ast.List: "list displays", ast.Dict: "dict and set displays", ast.Set: "dict and set displays",
    ast.Tuple: "tuples", ast.Subscript: "subscripts", ast.JoinedStr: "f-strings", ast.Attribute: "attributes",
    ast.Call: "calls", ast.Starred: "starred arguments", ast.For: "for loops", ast.AsyncFor: "for loops",
    ast.While: "while loops", ast.FunctionDef: "functions", ast.AsyncFunctionDef: "functions",
    ast.ClassDef: "classes",
}  # fmt: skip
_OPERATORS = {
    ast.Add: "additions", ast.Sub: "additions", ast.Mult: "multiplications", ast.Div: "divisions",
    ast.FloorDiv: "divisions", ast.Mod: "remainders", ast.Pow: "powers", ast.LShift: "bit operations",
    ast.RShift: "bit operations", ast.BitOr: "bit operations", ast.BitAnd: "bit operations",
    ast.BitXor: "bit operations",
}  # fmt: skip
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_MODULI = frozenset({10**9 + 7, 10**9 + 6, 998244353})
_LARGEST = 10**18


@functools.lru_cache(maxsize=1 << 16)
def static_features(code: str) -> np.ndarray:
    """The features of one program.

    Args:
        code (`str`): Any text. One that is not Python 3 has 0 everywhere.

    Returns:
        `np.ndarray`: float64 [len(FEATURE_NAMES)], finite; counts as log(1 + count), the rest 0 or 1. Read only.
    """
    tree = normal_python_tree(code)
    counts = _Features(tree).counts if tree is not None else {}
    values = np.array([counts.get(name, 0) for name in FEATURE_NAMES], dtype=np.float64)
    np.log1p(values, out=values, where=_IS_COUNT)
    values.setflags(write=False)
    return values


@functools.lru_cache(maxsize=1 << 16)
def is_whole_program(code: str) -> bool:
    """Whether a text is Python 3 that does something when run, beyond defining and importing."""
    tree = normal_python_tree(code)
    return tree is not None and not all(isinstance(node, _DEFINITIONS) for node in tree.body)


_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom, ast.Pass)
_IS_COUNT = np.array([name in _CALLS or name in _COUNTED for name in FEATURE_NAMES])


def imported_modules(tree: ast.AST) -> list[str]:
    """Top-level names of the modules that a tree imports anywhere, one entry an imported name."""
    modules = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules.extend(alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            modules.extend((node.module or "").split(".")[0] for _ in node.names)
    return modules


def loop_depth(tree: ast.AST) -> int:
    """How deep loops and comprehensions are nested at most, within one function."""
    return _Features(tree).depth


class _Features:
    """Walks a tree once, with the loops and functions around each node.

    Attributes:
        counts (`Counter`): Feature -> count, 0 or 1.
        depth (`int`): Of the deepest nest of loops.
    """

    def __init__(self, tree: ast.AST):
        self.counts: Counter[str] = Counter()
        self.depth = 0
        self.canonical: dict[str, str] = {}  # local name -> what it was imported as
        self.readline_names: set[str] = set()
        self.own_functions: set[str] = set()
        self.largest = 1
        nodes = list(ast.walk(tree))
        for node in nodes:
            self._declare(node)
        stack: list[tuple[ast.AST, int, tuple[str, ...]]] = [(tree, 0, ())]
        while stack:
            node, depth, functions = stack.pop()
            self._visit(node, depth, functions)
            stack.extend(self._children(node, depth, functions))
        for depth, times in ((2, "twice"), (3, "three times"), (4, "four times")):
            self.counts[f"loops nested {times}"] = int(self.depth >= depth)
        self.counts["nodes"] = len(nodes)
        self.counts["no import"] = int(not self.counts["imported modules"])
        self.counts["log10 of the largest constant"] = math.log10(self.largest)
        for name in _FLAGS:
            self.counts[name] = int(self.counts[name] > 0)

    def _declare(self, node: ast.AST) -> None:
        match node:
            case ast.Import():
                for alias in node.names:
                    self.canonical[alias.asname or alias.name.split(".")[0]] = alias.name
                    self._imports(alias.name)
            case ast.ImportFrom():
                for alias in node.names:
                    self.canonical[alias.asname or alias.name] = f"{node.module}.{alias.name}"
                    self._imports(node.module or "")
                    self.counts["star import"] += alias.name == "*"
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Attribute(attr="readline")):
                self.readline_names.add(name)
                self.counts["input is readline"] += 1
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                self.own_functions.add(name)

    def _imports(self, module: str) -> None:
        top = module.split(".")[0]
        self.counts["imported modules"] += 1
        self.counts["imports a heavy module"] += top in HEAVY_MODULES
        if top in _MODULES:
            self.counts[f"imports {top}"] = 1
        else:
            self.counts["imports another module"] += 1

    def _children(self, node: ast.AST, depth: int, functions: tuple[str, ...]):
        if isinstance(node, ast.For | ast.AsyncFor):
            self.depth = max(self.depth, depth + 1)
            yield node.iter, depth, functions
            yield node.target, depth + 1, functions
            for child in node.body:
                yield child, depth + 1, functions
            for child in node.orelse:
                yield child, depth, functions
        elif isinstance(node, ast.While):
            self.depth = max(self.depth, depth + 1)
            for child in (node.test, *node.body):
                yield child, depth + 1, functions
            for child in node.orelse:
                yield child, depth, functions
        elif isinstance(node, _COMPREHENSIONS):
            for number, generator in enumerate(node.generators):
                yield generator.iter, depth + number, functions
                for child in (generator.target, *generator.ifs):
                    yield child, depth + number + 1, functions
            inner = depth + len(node.generators)
            self.depth = max(self.depth, inner)
            for child in (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,):
                yield child, inner, functions
        elif isinstance(node, _FUNCTIONS):
            for child in (*node.decorator_list, node.args):
                yield child, depth, functions
            for child in node.body:
                # Ten functions are looked for, from the innermost outwards.
                yield child, 0, (*functions[-9:], node.name)
        else:
            for child in ast.iter_child_nodes(node):
                yield child, depth, functions

    def _visit(self, node: ast.AST, depth: int, functions: tuple[str, ...]) -> None:
        counts, in_loop = self.counts, depth > 0
        counts["statements"] += isinstance(node, ast.stmt)
        feature = _NODE_FEATURES.get(type(node))
        if feature is not None:
            counts[feature] += 1
        match node:
            case ast.Call():
                self._visit_call(node, depth, functions)
            case ast.Constant():
                self._visit_constant(node.value)
            case ast.Attribute(attr=attribute):
                counts["reads from sys.stdin"] += attribute == "stdin"
                counts["reads buffered bytes"] += attribute == "buffer"
                counts["infinity"] += attribute == "inf"
            case ast.Name(id=name):
                counts["reads from sys.stdin"] += self.canonical.get(name) == "sys.stdin"
            case ast.For() | ast.While():
                counts["loop at the top level"] += not functions
                counts["while True"] += isinstance(node, ast.While) and isinstance(node.test, ast.Constant)
            case ast.BinOp(op=operator, left=left, right=right):
                counts[_OPERATORS.get(type(operator), "multiplications")] += 1
                if isinstance(operator, ast.Mult) and isinstance(left, ast.List):
                    counts["list multiplications"] += 1
                    size = _constant(right)
                    counts["list of 10**5 or more"] += size is not None and size >= 10**5
                    counts["table of two dimensions"] += in_loop
                elif isinstance(operator, ast.Add) and (isinstance(left, ast.List) or isinstance(right, ast.List)):
                    counts["list concatenations"] += 1
                    counts["list concatenation in a loop"] += in_loop
                elif isinstance(operator, ast.Pow | ast.Add | ast.Sub):
                    self._visit_constant(_constant(node))
            case ast.AugAssign(op=operator, value=value):
                counts[_OPERATORS.get(type(operator), "multiplications")] += 1
                if in_loop and isinstance(operator, ast.Add):
                    counts["list concatenation in a loop"] += isinstance(value, ast.List)
                    counts["string building in a loop"] += self._is_text(value)
            case ast.Compare(ops=operators):
                members = sum(isinstance(operator, ast.In | ast.NotIn) for operator in operators)
                counts["membership tests"] += members
                counts["membership test in a loop"] += bool(members and in_loop)
            case ast.Slice():
                counts["slices"] += 1
                counts["slice in a loop"] += in_loop
            case ast.ListComp(elt=element):
                if depth < 3:  # further in, the outer ones have found it already
                    counts["nested comprehension"] += any(isinstance(c, _COMPREHENSIONS) for c in ast.walk(element))
                counts["table of two dimensions"] += isinstance(element, ast.ListComp)
            case ast.If(test=ast.Compare(left=ast.Name(id="__name__"))):
                counts["main guard"] += 1
            case ast.FunctionDef(decorator_list=decorators) | ast.AsyncFunctionDef(decorator_list=decorators):
                counts["nested function"] += bool(functions)
                for decorator in decorators:
                    name = self._name_of(decorator.func if isinstance(decorator, ast.Call) else decorator)
                    counts["memoised by lru_cache"] += name.endswith(("lru_cache", "functools.cache", ".cache"))
                    counts["compiled by numba"] += name.endswith("jit")

    def _visit_call(self, node: ast.Call, depth: int, functions: tuple[str, ...]) -> None:
        counts, in_loop, arguments = self.counts, depth > 0, node.args
        name = self._name_of(node.func)
        method = f".{name.rpartition('.')[2]}"
        is_method = isinstance(node.func, ast.Attribute)
        feature = _CALL_FEATURES.get(name) or (_CALL_FEATURES.get(method) if is_method else None)
        if feature is not None:
            counts[feature] += 1
        if feature in ("calls input", "calls readline"):
            counts["input in a loop"] += in_loop
        elif feature == "calls print":
            counts["print in a loop"] += in_loop
            counts["print of many"] += any(isinstance(argument, ast.Starred) for argument in arguments)
            counts["print with end or sep"] += bool(node.keywords)
            called = [self._name_of(argument.func) for argument in arguments if isinstance(argument, ast.Call)]
            counts["joins lines to print"] += any(other.endswith(".join") for other in called)
        elif feature == "calls eval":
            counts["evaluates input"] += any(
                isinstance(argument, ast.Call) and self._name_of(argument.func) in ("input", ".readline")
                for argument in arguments
            )
        elif feature == "reads all of stdin":
            counts["reads everything at once"] += 1
        elif feature == "opens a file":
            counts["opens file 0"] += any(_constant(argument) == 0 for argument in arguments)
        elif feature == "calls sorted or sort":
            counts["sort in a loop"] += in_loop
        elif feature == "calls sum, min or max":
            counts["sum, min or max in a loop"] += in_loop and len(arguments) == 1
        elif feature == "calls index, count or remove":
            counts["index, count or remove in a loop"] += in_loop
        elif feature == "calls copy":
            counts["copy in a loop"] += in_loop
        elif feature == "calls pop":
            counts["pop of the first"] += any(_constant(argument) == 0 for argument in arguments)
        elif feature == "calls pow or divmod":
            counts["three-argument pow"] += len(arguments) == 3
        elif feature == "calls list":
            counts["list of a range"] += any(
                isinstance(argument, ast.Call) and self._name_of(argument.func) == "range" for argument in arguments
            )
        if name.startswith("numpy."):
            counts["numpy call in a loop"] += in_loop
            counts["numpy table"] += method in (".zeros", ".ones", ".empty", ".full", ".arange", ".array")
        own = name in self.own_functions or (is_method and method[1:] in self.own_functions)
        counts["call of own function in a loop"] += own and in_loop
        counts["recursion"] += (name if not is_method else method[1:]) in functions
        if name == "float" and arguments and isinstance(arguments[0], ast.Constant):
            counts["infinity"] += "inf" in str(arguments[0].value).lower()

    def _visit_constant(self, value) -> None:
        if isinstance(value, str | bytes):
            self.counts["string constants"] += 1
        elif isinstance(value, int) and not isinstance(value, bool):
            size = min(abs(value), _LARGEST)
            self.counts["modulus of contests"] += value in _MODULI
            self.counts["constant of 10**5 or more"] += size >= 10**5
            self.counts["constant of 10**9 or more"] += size >= 10**9
            self.largest = max(self.largest, size)
        elif isinstance(value, float) and math.isfinite(value):
            self.largest = max(self.largest, min(abs(value), _LARGEST))

    def _name_of(self, function: ast.AST) -> str:
        """Canonical dotted name: `numpy.zeros` for `np.zeros`, `.append` for a method of anything else."""
        parts: list[str] = []
        while isinstance(function, ast.Attribute) and len(parts) < 4:
            parts.append(function.attr)
            function = function.value
        if not isinstance(function, ast.Name):
            return f".{parts[0]}" if parts else ""
        if function.id in self.readline_names and not parts:
            return ".readline"
        base = self.canonical.get(function.id)
        if base is None and parts:
            return f".{parts[0]}"
        return ".".join([base or function.id, *reversed(parts)])

    def _is_text(self, value: ast.AST) -> bool:
        if isinstance(value, ast.Constant):
            return isinstance(value.value, str)
        if isinstance(value, ast.BinOp):
            return self._is_text(value.left) or self._is_text(value.right) if _is_shallow(value) else False
        called = self._name_of(value.func) if isinstance(value, ast.Call) else ""
        return isinstance(value, ast.JoinedStr) or called in ("str", "chr", ".join", ".format")


def _is_shallow(value: ast.BinOp, limit: int = 20) -> bool:
    while isinstance(value, ast.BinOp) and limit:
        value, limit = value.left, limit - 1
    return limit > 0


def _constant(node: ast.AST) -> int | None:
    """The value of an integer written as a literal, a power of two literals, or a sum of these; `None` for others."""
    match node:
        case ast.Constant(value=int(value)) if not isinstance(value, bool):
            return value
        case ast.BinOp(op=ast.Pow(), left=ast.Constant(value=int(base)), right=ast.Constant(value=int(exponent))):
            # Beyond this it is a large number, whatever its value.
            return base**exponent if 0 <= exponent <= 64 and abs(base) <= 1 << 32 else _LARGEST
        case ast.BinOp(op=ast.Add() | ast.Sub(), left=ast.BinOp(op=ast.Pow()) as left, right=ast.Constant() as right):
            first, second = _constant(left), _constant(right)
            if first is not None and second is not None:
                return first + second if isinstance(node.op, ast.Add) else first - second
        case ast.BinOp(op=ast.Mult(), left=ast.Constant(value=int(left)), right=ast.Constant(value=int(right))):
            return left * right if max(abs(left), abs(right)) <= _LARGEST else _LARGEST
    return None
