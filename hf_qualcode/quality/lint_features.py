"""What a reviewer would count in a text: names, comments, dead code, nesting, handlers that hide errors.

Read off the text as it stands, since names and comments are part of what makes code easy or hard to maintain. Taken
from PEP 8 and from what linters agree on (the guidelines of `hf_qualcode.quality`, Table 2 of SynH-Rank), not from
looking at results.
"""

import ast
import builtins
import functools
import io
import keyword
import re
import tokenize
from collections import Counter
from collections.abc import Iterator

import numpy as np

from hf_qualcode.languages import parse_python


# Faults: the fewer the better, whoever reads.
LINT_FAULTS = (
    *("names against PEP 8", "short names", "names of builtins", "commented-out lines", "bare excepts"),
    *("handlers that hide errors", "handlers that only raise", "loops with else", "star imports", "unused variables"),
    *("unused parameters", "unreachable statements", "conditions that never change", "equal branches"),
    *("ifs that could be one", "nested conditional expressions", "jumps that change nothing", "inverted comparisons"),
    *("comparisons with None or types", "f-strings without fields", "globals in functions", "long lines"),
    *("base classes one after another",),
)
_MEASURES = ("lines", "comment lines", "docstrings", "mean length of names", "deepest block", "most parameters",
             "longest function", "branches")  # fmt: skip
LINT_FEATURE_NAMES = (*LINT_FAULTS, *_MEASURES)

_BUILTINS = frozenset(name for name in dir(builtins) if not name.startswith("_"))
_GIVEN = {"self", "cls"}
_SHORT, _LONG_LINE = 2, 100
_SNAKE = re.compile(r"_*[a-z0-9_]*\Z")
_CONSTANT = re.compile(r"_*[A-Z0-9_]+\Z")
_CAPITALISED = re.compile(r"_*[A-Z][A-Za-z0-9]*\Z")
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")
_JUMPS = (ast.Return, ast.Raise, ast.Break, ast.Continue)
_BRANCHES = (ast.If, ast.IfExp, ast.For, ast.AsyncFor, ast.While, ast.ExceptHandler, ast.BoolOp, ast.comprehension)
_STATEMENTS_OF_CODE = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return, ast.Import, ast.ImportFrom, ast.Call)


@functools.lru_cache(maxsize=1 << 16)
def lint_features(code: str) -> np.ndarray:
    """The features of a text.

    Args:
        code (`str`): Any text. One that is not Python 3 has 0 everywhere.

    Returns:
        `np.ndarray`: float64 [len(LINT_FEATURE_NAMES)], finite; log(1 + count) each. Read only.
    """
    tree = parse_python(code)
    counts = _counted(code, tree) if tree is not None else {}
    values = np.log1p(np.array([counts.get(name, 0) for name in LINT_FEATURE_NAMES], dtype=np.float64))
    values.setflags(write=False)
    return values


def _counted(code: str, tree: ast.AST) -> Counter:
    counts: Counter = Counter()
    nodes = list(ast.walk(tree))
    for node in nodes:
        _count_node(node, counts)
    _count_names(tree, nodes, counts)
    _count_comments(code, counts)
    _count_blocks(tree, counts)
    lines = [line for line in code.split("\n") if line.strip()]
    counts["lines"] = len(lines)
    counts["long lines"] = sum(len(line) > _LONG_LINE for line in lines)
    return counts


def _count_node(node: ast.AST, counts: Counter) -> None:
    if isinstance(node, _BRANCHES):
        counts["branches"] += 1
    if isinstance(node, _LOOPS) and node.orelse:
        counts["loops with else"] += 1
    elif isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
        counts["star imports"] += 1
    elif isinstance(node, ast.ExceptHandler):
        counts["bare excepts"] += node.type is None
        counts["handlers that hide errors"] += all(isinstance(one, ast.Pass | ast.Continue) for one in node.body)
        counts["handlers that only raise"] += isinstance(node.body[0], ast.Raise) and _raises_the_same(node)
    elif isinstance(node, ast.If):
        _count_if(node, counts)
    elif isinstance(node, ast.While) and isinstance(node.test, ast.Constant) and not node.test.value:
        counts["conditions that never change"] += 1
    elif isinstance(node, ast.IfExp):
        inner = (node.body, node.orelse)
        counts["nested conditional expressions"] += any(isinstance(one, ast.IfExp) for one in inner)
        counts["equal branches"] += _equal(*inner)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        counts["inverted comparisons"] += isinstance(node.operand, ast.Compare)
    elif isinstance(node, ast.Compare):
        counts["comparisons with None or types"] += _is_loose(node)
    elif isinstance(node, ast.JoinedStr):
        counts["f-strings without fields"] += not any(isinstance(one, ast.FormattedValue) for one in node.values)
    elif isinstance(node, ast.Global):
        counts["globals in functions"] += len(node.names)
    elif isinstance(node, ast.ClassDef):
        counts["base classes one after another"] += sum(isinstance(base, ast.Name) for base in node.bases)


def _count_if(node: ast.If, counts: Counter) -> None:
    counts["conditions that never change"] += _is_constant(node.test)
    if len(node.orelse) == len(node.body) and all(map(_equal, node.body, node.orelse)):
        counts["equal branches"] += 1
    inner = node.body[0]
    if len(node.body) == 1 and isinstance(inner, ast.If) and not node.orelse and not inner.orelse:
        counts["ifs that could be one"] += 1


def _is_constant(test: ast.expr) -> bool:
    if isinstance(test, ast.UnaryOp):
        test = test.operand
    operands = [test.left, *test.comparators] if isinstance(test, ast.Compare) else [test]
    return all(isinstance(one, ast.Constant) for one in operands)


def _is_loose(node: ast.Compare) -> bool:
    sides = [node.left, *node.comparators]
    if not any(isinstance(op, ast.Eq | ast.NotEq) for op in node.ops):
        return False
    return any(
        (isinstance(one, ast.Constant) and (one.value is None or isinstance(one.value, bool)))
        or (isinstance(one, ast.Call) and isinstance(one.func, ast.Name) and one.func.id == "type")
        for one in sides
    )


def _raises_the_same(handler: ast.ExceptHandler) -> bool:
    raised = handler.body[0].exc
    return raised is None or (isinstance(raised, ast.Name) and raised.id == handler.name)


def _equal(first: ast.AST, second: ast.AST) -> bool:
    # Cheap differences first: text decides how large the trees are.
    return type(first) is type(second) and ast.dump(first) == ast.dump(second)


def _count_names(tree: ast.Module, nodes: list[ast.AST], counts: Counter) -> None:
    bound, loaded, parameters = Counter(), set(), []
    classes = set()
    for node in nodes:
        if isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Load):
                loaded.add(node.id)
            else:
                bound[node.id] += 1
        elif isinstance(node, ast.arg):
            bound[node.arg] += 1
            parameters.append(node.arg)
        elif isinstance(node, _FUNCTIONS):
            bound[node.name] += 1
            loaded.add(node.name)  # what a file defines is used by others
            counts["most parameters"] = max(counts["most parameters"], len(_parameters(node)))
            counts["longest function"] = max(counts["longest function"], _statements(node))
        elif isinstance(node, ast.ClassDef):
            classes.add(node.name)
        if isinstance(node, (*_FUNCTIONS, ast.ClassDef, ast.Module)):
            counts["docstrings"] += _has_docstring(node)
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            loaded.add(node.target.id)
        if isinstance(node, ast.Global | ast.Nonlocal):
            loaded.update(node.names)
    constants = {
        node.id
        for statement in tree.body if isinstance(statement, ast.Assign | ast.AnnAssign)
        for node in ast.walk(statement) if isinstance(node, ast.Name) and _CONSTANT.match(node.id)
    }  # fmt: skip
    odd = sum(not _SNAKE.match(name) and name not in constants for name in bound)
    counts["names against PEP 8"] = odd + sum(not _CAPITALISED.match(name) for name in classes)
    counts["short names"] = sum(len(name) <= _SHORT and name != "_" for name in bound)
    counts["names of builtins"] = sum(name in _BUILTINS for name in (*bound, *classes))
    unused = [name for name in bound if name not in loaded | _GIVEN and not name.startswith("_")]
    counts["unused parameters"] = sum(name in parameters for name in unused)
    counts["unused variables"] = len(unused) - counts["unused parameters"]
    names = [*bound, *classes]
    counts["mean length of names"] = sum(map(len, names)) / len(names) if names else 0


def _parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.arg]:
    arguments = function.args
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]


def _statements(function: ast.AST) -> int:
    return sum(isinstance(node, ast.stmt) for node in ast.walk(function)) - 1


def _has_docstring(node: ast.AST) -> bool:
    first = node.body[0] if node.body else None
    return isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)


def _count_comments(code: str, counts: Counter) -> None:
    try:
        comments = [
            token.string.lstrip("#!: ")
            for token in tokenize.generate_tokens(io.StringIO(code).readline)
            if token.type == tokenize.COMMENT
        ]
    except (tokenize.TokenError, SyntaxError, ValueError):
        return
    counts["comment lines"] = len(comments)
    counts["commented-out lines"] = sum(map(_is_code, comments))


def _is_code(comment: str) -> bool:
    """Whether a comment is a statement that does something; words alone, with or without a comma, are none."""
    if not comment or len(comment) > 4 * _LONG_LINE or not set("=(.").intersection(comment):
        return comment.split(" ")[0] in ("return", "import", "from") and parse_python(comment) is not None
    if comment.endswith(":"):
        comment += " pass" if keyword.iskeyword(comment.split(" ")[0]) else ""
    tree = parse_python(comment)
    return tree is not None and any(isinstance(node, _STATEMENTS_OF_CODE) for node in ast.walk(tree))


def _count_blocks(tree: ast.AST, counts: Counter) -> None:
    stack: list[tuple[ast.AST, int]] = [(tree, 0)]
    while stack:
        node, depth = stack.pop()
        counts["deepest block"] = max(counts["deepest block"], depth)
        for block in _blocks(node):
            ended = False
            for statement in block:
                counts["unreachable statements"] += ended
                ended = ended or isinstance(statement, _JUMPS)
                stack.append((statement, depth + 1))
            counts["jumps that change nothing"] += _is_idle_jump(node, block)


def _blocks(node: ast.AST) -> Iterator[list]:
    for name in _BLOCKS:
        block = getattr(node, name, None)
        if isinstance(block, list) and block:
            yield block


def _is_idle_jump(node: ast.AST, block: list) -> bool:
    last = block[-1]
    if isinstance(node, _LOOPS):
        return block is node.body and isinstance(last, ast.Continue)
    is_bare = isinstance(last, ast.Return) and (last.value is None)
    return isinstance(node, _FUNCTIONS) and is_bare
