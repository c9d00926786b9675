"""Whether a text is Python 3, its normal form, and a fingerprint that forgets names, comments and layout.

Only parsed and compiled, never run. Everything here walks trees with a stack of its own, because a text decides how
deep its tree is.
"""

import ast
import builtins
import hashlib
import importlib
import re
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from hf_qualcode.types import QualcodeError


# The compiler needs time quadratic in the length of some texts (an f-string of 300,000 characters: 11 s) and up to 300
# bytes of memory a character; AtCoder's and Aizu's programs end far below.
MAX_CHARACTERS = 1 << 18
# What a text can make the parser and the compiler raise (CPython 3.11 to 3.13, tried with texts made for it).
_REFUSALS = (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError)

_BUILTINS = frozenset(dir(builtins))
_WORD = re.compile(r"[^\W\d]\w*")
# Programs that look names up by text keep all of theirs.
_DYNAMIC_NAMES = frozenset({"exec", "globals", "locals", "vars", "dir", "compile", "__import__", "import_module"})
_DYNAMIC_ATTRIBUTES = frozenset(
    {"modules", "_getframe", "f_locals", "f_globals", "f_back", "__globals__", "__code__", "__closure__", "__import__"}
    | {"import_module", "co_varnames", "currentframe"}
)
_DYNAMIC_MODULES = frozenset({"inspect", "gc", "__main__"})
# Modules whose names are looked up after `from ... import *`; any other may bind anything.
_STAR_MODULES = frozenset(
    {"bisect", "collections", "copy", "decimal", "fractions", "functools", "heapq", "itertools", "math", "operator"}
    | {"queue", "random", "re", "statistics", "string", "sys"}
)


def compile_error(text: str) -> str | None:
    """Says whether a text compiles as Python 3, by the Python this runs on.

    Args:
        text (`str`): Any text. A byte order mark at its start is no part of it.

    Returns:
        `str`: Why it does not compile, in one line, or `None`.
    """
    return _attempt(text, lambda: compile(_without_mark(text), "<text>", "exec", dont_inherit=True))[1]


def normal_form(text: str, *, names: bool = True, literals: bool = False) -> str:
    """Rewrites a program so that comments, layout and the choice of names no longer show.

    Docstrings, comments and other strings that stand alone go (docstrings stay where `__doc__` is read); layout is
    that of `ast.unparse`. Each variable, argument, function and class is called `v0`, `f0`, `C0`, ... in order of
    appearance, one name a scope and variable. Kept are attributes and with them what a class body binds, imported
    names, module variables called like a builtin, arguments that some call passes by keyword, names that begin with
    two underscores, and all names of a program that looks them up by text (`exec`, `globals`, ...).

    The program does what it did (unless it prints its own names), and the form of a form is itself.

    Args:
        text (`str`): A program.
        names (`bool`, *optional*, defaults to `True`): Rename.
        literals (`bool`, *optional*, defaults to `False`): Put `0`, `0.0`, `''` for numbers and strings; the form
            then stands for the program's shape and does not do what the program does.

    Returns:
        `str`: The form.

    Raises:
        `QualcodeError`: If the text is not Python 3, or too deeply nested to be written down.
    """
    tree, error = _normal_tree(text, names, literals)
    if tree is not None:
        form, error = _attempt(text, lambda: _unparsed(tree))
        if form is not None:
            return form
    raise QualcodeError(f"no normal form of this Python text: {error}")


def fingerprint(text: str, *, names: bool = True, literals: bool = False) -> str:
    """SHA-256 of a program's normal form: equal for programs that differ in names, comments and layout alone.

    Args:
        text (`str`): Any text. One that is not Python 3 is equal to itself alone.
        names, literals (`bool`, *optional*): As in `normal_form`.

    Returns:
        `str`: 64 hexadecimal digits; the same on every machine with the same minor version of Python.
    """
    tree, _ = _normal_tree(text, names, literals)
    if tree is None:
        return hashlib.sha256(b"text\0" + text.encode("utf-8", "surrogatepass")).hexdigest()
    digest = hashlib.sha256(b"tree\0")
    for part in _serialised(tree):
        digest.update(part.encode("utf-8", "surrogatepass") + b"\0")
    return digest.hexdigest()


def parse_python(text: str) -> ast.Module | None:
    """The syntax tree of a text, or `None` where it is not Python 3."""
    return _attempt(text, lambda: ast.parse(_without_mark(text)))[0]


def normal_python_tree(text: str) -> ast.Module | None:
    """The syntax tree of a text's normal form, or `None` where it is not Python 3."""
    return _normal_tree(text, names=True, literals=False)[0]


def _without_mark(text: str) -> str:
    return text.removeprefix("\ufeff")


def _attempt(text: str, action):
    """Returns (result, None), or (None, why not) for what a hostile text can cause."""
    if len(text) > MAX_CHARACTERS:
        return None, f"{len(text):,} characters; at most {MAX_CHARACTERS:,} are read"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return action(), None
    except _REFUSALS as error:
        line = f" (line {error.lineno})" if isinstance(error, SyntaxError) and error.lineno else ""
        reason = " ".join((error.msg if isinstance(error, SyntaxError) else str(error)).split())[:200]
        return None, f"{type(error).__name__}{': ' if reason else ''}{reason}{line}"


def _unparsed(tree: ast.Module) -> str:
    form = ast.unparse(tree)
    ast.parse(form)  # unparse is not without faults (nested f-strings); a form that cannot be read is none
    return form + "\n" if form else ""


def _normal_tree(text: str, names: bool, literals: bool) -> tuple[ast.Module | None, str | None]:
    def make() -> ast.Module:
        source = _without_mark(text)
        # A tree may be parsed that does not compile (`return` at the top).
        compile(source, "<text>", "exec", dont_inherit=True)
        tree = ast.parse(source)
        if "__doc__" not in source or not _reads_docs(tree):
            _drop_strings(tree)
        if literals:
            _blank_literals(tree)
        if names:
            _rename(tree)
        return tree

    return _attempt(text, make)


def _walk(tree: ast.AST) -> Iterator[ast.AST]:
    """Every node, parents first, in source order."""
    stack = [tree]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(list(ast.iter_child_nodes(node))))


def _serialised(tree: ast.AST) -> Iterator[str]:
    stack: list = [tree]
    while stack:
        item = stack.pop()
        if isinstance(item, ast.AST):
            yield type(item).__name__
            if isinstance(item, ast.Constant):
                value = item.value
                # Long integers have no decimal form for Python.
                yield f"{type(value).__name__} {hex(value) if type(value) is int else repr(value)}"
            else:
                fields = [name for name in item._fields if name not in ("ctx", "type_comment", "type_ignores")]
                stack.extend(getattr(item, name, None) for name in reversed(fields))
        elif isinstance(item, list):
            yield f"[{len(item)}"
            stack.extend(reversed(item))
        else:
            yield repr(item)


# Where statements stand in statements.
_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")


def _drop_strings(tree: ast.Module) -> None:
    stack: list[ast.AST] = [tree]
    while stack:
        node = stack.pop()
        for name in _BLOCKS:
            block = getattr(node, name, None)
            if not block:
                continue
            if any(map(_is_lone_string, block)):
                block = [statement for statement in block if not _is_lone_string(statement)]
                if not block and node is not tree:
                    block = [ast.Pass()]
                setattr(node, name, block)
            stack.extend(block)


def _reads_docs(tree: ast.Module) -> bool:
    return any("__doc__" in (getattr(node, "id", ""), getattr(node, "attr", "")) for node in _walk(tree))


def _is_lone_string(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


_BLANKS = {int: 0, float: 0.0, complex: 0j, str: "", bytes: b""}


def _blank_literals(tree: ast.Module) -> None:
    # Keys of a pattern must differ from one another.
    kept = {id(key) for node in _walk(tree) if isinstance(node, ast.MatchMapping) for key in node.keys}
    stack: list[ast.AST] = [tree]
    while stack:
        node = stack.pop()
        if id(node) in kept:
            continue
        if isinstance(node, ast.Constant) and type(node.value) in _BLANKS:
            node.value = _BLANKS[type(node.value)]
            node.kind = None
        if isinstance(node, ast.JoinedStr):
            node.values = [value for value in node.values if not isinstance(value, ast.Constant)]
        stack.extend(ast.iter_child_nodes(node))


@dataclass(eq=False)
class _Scope:
    kind: str  # module, function, comprehension or class
    parent: "_Scope | None" = None
    globals: set[str] = field(default_factory=set)
    nonlocals: set[str] = field(default_factory=set)
    loaded: set[str] = field(default_factory=set)
    # name -> how: variable, argument, import, function or class
    bound: dict[str, set[str]] = field(default_factory=dict)


@dataclass(slots=True)
class _Occurrence:
    node: ast.AST
    attribute: str
    index: int | None
    name: str
    scope: _Scope

    def put(self, name: str) -> None:
        if self.index is None:
            setattr(self.node, self.attribute, name)
        else:
            getattr(self.node, self.attribute)[self.index] = name


class _Scopes:
    """Where each name of a module is bound, by the rules of Python's reference ("Naming and binding")."""

    def __init__(self, tree: ast.Module):
        self.module = _Scope("module")
        self.occurrences: list[_Occurrence] = []
        self.stores: list[tuple[_Scope, str, str]] = []
        stack: list[tuple[ast.AST, _Scope]] = [(tree, self.module)]
        while stack:
            node, scope = stack.pop()
            stack.extend(reversed(self._enter(node, scope)))
        for scope, name, how in self.stores:
            target = self.module if name in scope.globals else scope
            if name in scope.nonlocals:
                continue  # bound by the function that owns it
            target.bound.setdefault(name, set()).add(how)

    def _enter(self, node: ast.AST, scope: _Scope) -> list[tuple[ast.AST, _Scope]]:
        """Notes the node's own names and returns its children with their scopes."""
        match node:
            case ast.Name():
                if isinstance(node.ctx, ast.Load):
                    scope.loaded.add(node.id)
                    self._occurs(node, "id", scope)
                else:
                    self._occurs(node, "id", scope, "variable")
                return []
            case ast.NamedExpr():
                owner = scope
                while owner.kind == "comprehension":
                    owner = owner.parent
                self._occurs(node.target, "id", owner, "variable")
                return [(node.value, scope)]
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self._occurs(node, "name", scope, "function")
                inner = _Scope("function", scope)
                annotations = [node.returns] if node.returns else []
                outside = [*node.decorator_list, *_outside(node.args), *annotations]
                return [*_at(outside, scope), *_at([*_arguments(node.args), *node.body], inner)]
            case ast.Lambda():
                inner = _Scope("function", scope)
                return [*_at(_outside(node.args), scope), *_at([*_arguments(node.args), node.body], inner)]
            case ast.arg():
                self._occurs(node, "arg", scope, "argument")
                return []
            case ast.ClassDef():
                self._occurs(node, "name", scope, "class")
                outside = [*node.decorator_list, *node.bases, *node.keywords]
                return [*_at(outside, scope), *_at(node.body, _Scope("class", scope))]
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                inner = _Scope("comprehension", scope)
                first, *rest = node.generators
                results = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
                return [(first.iter, scope), *_at([first.target, *first.ifs, *rest, *results], inner)]
            case ast.Global() | ast.Nonlocal():
                (scope.globals if isinstance(node, ast.Global) else scope.nonlocals).update(node.names)
                for index in range(len(node.names)):
                    self._occurs(node, "names", scope, index=index)
                return []
            case ast.Import() | ast.ImportFrom():
                for alias in node.names:
                    self.stores.append((scope, alias.asname or alias.name.split(".")[0], "import"))
                return []
            case ast.ExceptHandler() | ast.MatchAs() | ast.MatchStar() if node.name:
                self._occurs(node, "name", scope, "variable")
            case ast.MatchMapping() if node.rest:
                self._occurs(node, "rest", scope, "variable")
        return _at(ast.iter_child_nodes(node), scope)

    def _occurs(self, node, attribute: str, scope: _Scope, how: str | None = None, index: int | None = None) -> None:
        name = getattr(node, attribute)
        name = name if index is None else name[index]
        self.occurrences.append(_Occurrence(node, attribute, index, name, scope))
        if how is not None:
            self.stores.append((scope, name, how))

    def owner(self, scope: _Scope, name: str) -> _Scope | None:
        """The scope that binds `name` as seen from `scope`; `None` for builtins and unbound names."""
        if name in scope.bound and name not in scope.globals:
            return scope
        outer = None if name in scope.globals else scope.parent
        while outer is not None and name not in outer.globals:
            if outer.kind in ("function", "comprehension") and name in outer.bound:
                return outer
            outer = outer.parent
        return self.module if name in self.module.bound else None


def _at(nodes: Iterable[ast.AST], scope: _Scope) -> list[tuple[ast.AST, _Scope]]:
    return [(node, scope) for node in nodes]


def _arguments(arguments: ast.arguments) -> list[ast.arg]:
    rest = [argument for argument in (arguments.vararg, arguments.kwarg) if argument is not None]
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *rest]


def _outside(arguments: ast.arguments) -> list[ast.expr]:
    """What of a function's head is evaluated where the function is defined."""
    annotations = [argument.annotation for argument in _arguments(arguments)]
    return [node for node in (*arguments.defaults, *arguments.kw_defaults, *annotations) if node is not None]


@dataclass
class _Uses:
    """What a program does that ties its hands in renaming."""

    dynamic: bool = False  # looks names up by text
    evaluates: bool = False
    spreads: bool = False  # passes keyword arguments that are not written out
    shows_names: bool = False
    mangles: bool = False
    keywords: set[str] = field(default_factory=set)
    attributes: set[str] = field(default_factory=set)
    words: set[str] = field(default_factory=set)  # in strings
    starred: set[str] = field(default_factory=set)  # may come from `import *`
    any_starred: bool = False

    @classmethod
    def of(cls, tree: ast.Module) -> "_Uses":
        uses = cls()
        for node in _walk(tree):
            uses._add(node)
        return uses

    def _add(self, node: ast.AST) -> None:
        match node:
            case ast.Name(id=name):
                self.dynamic |= name in _DYNAMIC_NAMES
                self.evaluates |= name == "eval"
                self.mangles |= name.startswith("__") and not name.endswith("__")
            case ast.Attribute(attr=name):
                self.attributes.add(name)
                self.dynamic |= name in _DYNAMIC_ATTRIBUTES
                self.shows_names |= name in ("__name__", "__qualname__")
                self.mangles |= name.startswith("__") and not name.endswith("__")
            case ast.keyword(arg=name):
                self.spreads |= name is None or name == "kwargs"
                self.dynamic |= name == "locals"  # numba's
                self.keywords.add(name or "")
            case ast.Constant(value=str(value)):
                self.words.update(_WORD.findall(value))
                self.dynamic |= "__main__" in value and value != "__main__"
            case ast.Import(names=aliases):
                self.dynamic |= any(alias.name in _DYNAMIC_MODULES for alias in aliases)
            case ast.ImportFrom(module=module, names=aliases):
                self.dynamic |= module in _DYNAMIC_MODULES
                if any(alias.name == "*" for alias in aliases):
                    if module in _STAR_MODULES and not node.level:
                        source = importlib.import_module(module)
                        self.starred.update(getattr(source, "__all__", dir(source)))
                    else:
                        self.any_starred = True
        # Type parameters have scopes of their own (Python 3.12).
        self.dynamic |= bool(getattr(node, "type_params", None)) or type(node).__name__ == "TypeAlias"


def _rename(tree: ast.Module) -> None:
    uses = _Uses.of(tree)
    if uses.dynamic:
        return
    scopes = _Scopes(tree)
    # `x = x` in a class body reads the module's `x`.
    module_read = set()
    for scope in {occurrence.scope for occurrence in scopes.occurrences}:
        if scope.kind == "class":
            module_read |= scope.loaded & scope.bound.keys()

    def stays(scope: _Scope, name: str) -> bool:
        how = scope.bound[name]
        if scope.kind == "class" or "import" in how or name.startswith("__"):
            return True
        if "argument" in how and (uses.spreads or name in uses.keywords):
            return True
        if uses.evaluates and name in uses.words:
            return True
        if (uses.shows_names and how & {"function", "class"}) or (uses.mangles and "class" in how):
            return True
        if scope is scopes.module:
            return name in _BUILTINS or name in module_read or uses.any_starred or name in uses.starred
        return False

    owners = [scopes.owner(occurrence.scope, occurrence.name) for occurrence in scopes.occurrences]
    renamed: dict[tuple[int, str], str | None] = {}
    taken = uses.keywords | uses.attributes | uses.words | uses.starred | _BUILTINS
    taken |= {name for scope in {*owners} if scope for name in scope.bound if stays(scope, name)}
    taken |= {o.name for o, owner in zip(scopes.occurrences, owners, strict=True) if owner is None}
    taken |= scopes.module.bound.keys() & {name for _, name, how in scopes.stores if how == "import"}
    counts = dict.fromkeys("vfC", 0)
    for occurrence, owner in zip(scopes.occurrences, owners, strict=True):
        if owner is None or stays(owner, occurrence.name):
            continue
        key = (id(owner), occurrence.name)
        if key not in renamed:
            how = owner.bound[occurrence.name]
            prefix = "C" if "class" in how else "f" if "function" in how else "v"
            while (fresh := f"{prefix}{counts[prefix]}") in taken:
                counts[prefix] += 1
            counts[prefix] += 1
            renamed[key] = fresh
        occurrence.put(renamed[key])
