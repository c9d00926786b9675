"""Variables that mean the same wherever they stand in a module, and how each place uses them."""

import functools
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import libcst as cst
import libcst.matchers as m

from hf_qualcode.synthesis.rules._expressions import reads_own_names
from hf_qualcode.synthesis.rules._finding import findall


class Use(NamedTuple):
    """One place where a variable stands.

    Attributes:
        kind (`str`): `"assigned"` (by `name = value`), `"bound"` (in any other way), `"augmented"`, `"deleted"`,
            `"parameter"`, `"method:<name>"` (called), `"attribute"`, `"item"` (`name[index]`, read), `"stored_item"`
            (written or deleted), `"slice"`, `"member"` (`x in name`), `"iterated"`, `"call:<builtin>"` (the only
            argument), `"returned"`, or `"other"`.
        node (`CSTNode`): What the kind names: the assignment, the call, the subscript, ...; else the name.
        parents (`tuple[CSTNode, ...]`): Around the name, from the nearest outwards.
    """

    kind: str
    node: cst.CSTNode
    parents: tuple[cst.CSTNode, ...]


class Variable(NamedTuple):
    """A variable.

    Attributes:
        name (`str`): As written.
        scope (`FunctionDef`, *optional*): The function it is local to; `None` for the module's.
        uses (`tuple[Use, ...]`): In the order of the text.
    """

    name: str
    scope: cst.FunctionDef | None
    uses: tuple[Use, ...]

    def kinds(self) -> set[str]:
        """The kinds of all uses."""
        return {use.kind for use in self.uses}

    def of_kind(self, *kinds: str) -> list[Use]:
        """The uses of these kinds."""
        return [use for use in self.uses if use.kind in kinds]


_SCOPES = (cst.FunctionDef, cst.Lambda, cst.ClassDef, cst.ListComp, cst.SetComp, cst.DictComp, cst.GeneratorExp)
_WRITTEN = ("assigned", "bound", "augmented", "deleted", "parameter")


# Many transformations ask this of one module, one after another.
@functools.lru_cache(maxsize=2)
def variables_of(module: cst.Module) -> list[Variable]:
    """The variables whose name is bound in one scope of the module only: at its top or in one function.

    Left out: names of functions, classes and imports, names declared `global` or `nonlocal`, those of comprehensions
    and lambdas. Where the module looks names up by their text, there are none.
    """
    if reads_own_names(module):
        return []
    collector = _Collector()
    module.visit(collector)
    found = []
    for name, places in collector.places.items():
        scopes = {id(scope): scope for use, scope in places if use.kind in _WRITTEN}
        if name in collector.taken or len(scopes) != 1:
            continue
        (scope,) = scopes.values()
        if isinstance(scope, _SCOPES) and not isinstance(scope, cst.FunctionDef):
            continue
        uses = tuple(use for use, _ in places)
        if scope is not None and any(scope not in use.parents for use in uses):
            continue
        found.append(Variable(name, scope, uses))
    return found


class _Collector(cst.CSTVisitor):
    def __init__(self):
        super().__init__()
        self.places: dict[str, list[tuple[Use, cst.CSTNode | None]]] = {}
        self.taken: set[str] = set()
        self._around: list[cst.CSTNode] = []

    def on_visit(self, node):
        if isinstance(node, cst.Name):
            self._add(node)
            return False
        if isinstance(node, cst.Global | cst.Nonlocal):
            self.taken |= {item.name.value for item in node.names}
            return False
        if isinstance(node, cst.FunctionDef | cst.ClassDef):
            self.taken.add(node.name.value)
        if isinstance(node, cst.Import | cst.ImportFrom | cst.ExceptHandler | cst.Match | cst.With | cst.NamedExpr):
            names = findall(node, m.Name()) if not isinstance(node, cst.With | cst.ExceptHandler) else []
            items = node.items if isinstance(node, cst.With) else [node] if isinstance(node, cst.ExceptHandler) else []
            names = [*names, *(one for item in items for alias in findall(item, m.AsName())
                               for one in findall(alias, m.Name()))]  # fmt: skip
            self.taken |= {name.value for name in names}
        self._around.append(node)
        return True

    def on_leave(self, original_node):
        if self._around and self._around[-1] is original_node:
            self._around.pop()

    def _add(self, name: cst.Name) -> None:
        parents = tuple(reversed(self._around))
        parent = parents[0] if parents else None
        if isinstance(parent, cst.Attribute) and parent.attr is name:
            return
        if isinstance(parent, cst.Arg) and parent.keyword is name:
            return
        if isinstance(parent, cst.FunctionDef | cst.ClassDef) and parent.name is name:
            return
        use = Use(*_kind(name, parents), parents)
        scope = None
        for inner, node in zip((name, *parents), parents, strict=False):
            if isinstance(node, _SCOPES) and not _is_outside(inner, node):
                scope = node
                break
        self.places.setdefault(name.value, []).append((use, scope))


def _is_outside(inner: cst.CSTNode, scope: cst.CSTNode) -> bool:
    """Whether a part of a function, its decorator say, belongs to the scope around it."""
    return isinstance(scope, cst.FunctionDef) and inner is not scope.body and inner is not scope.params


def _kind(name: cst.Name, parents: tuple[cst.CSTNode, ...]) -> tuple[str, cst.CSTNode]:
    parent = parents[0]
    above = parents[1] if len(parents) > 1 else None
    if isinstance(parent, cst.AssignTarget):
        return ("assigned" if len(above.targets) == 1 else "bound"), above
    if isinstance(parent, cst.AugAssign) and parent.target is name:
        return "augmented", parent
    if isinstance(parent, cst.Param) and parent.name is name:
        return "parameter", parent
    if _binds(name, parents):
        return "bound", parent
    if isinstance(parent, cst.Attribute):
        if isinstance(above, cst.Call) and above.func is parent:
            return f"method:{parent.attr.value}", above
        return "attribute", parent
    if isinstance(parent, cst.Subscript) and parent.value is name:
        slices = any(isinstance(element.slice, cst.Slice) for element in parent.slice)
        if _is_target(parent, parents[1:]):
            return "stored_item", parent
        return ("slice" if slices else "item"), parent
    if isinstance(parent, cst.ComparisonTarget) and isinstance(parent.operator, cst.In | cst.NotIn):
        return "member", parent
    if isinstance(parent, cst.For | cst.CompFor) and parent.iter is name:
        return "iterated", parent
    if isinstance(parent, cst.Arg) and isinstance(above, cst.Call) and isinstance(above.func, cst.Name):
        if len(above.args) == 1 and not parent.star and parent.keyword is None:
            return f"call:{above.func.value}", above
        return "other", name
    if isinstance(parent, cst.Return):
        return "returned", parent
    return "other", name


def _binds(name: cst.CSTNode, parents: tuple[cst.CSTNode, ...]) -> bool:
    """Whether the name, alone or among others of a tuple, is a target."""
    inner = name
    for node in parents:
        if isinstance(node, cst.For | cst.CompFor | cst.AssignTarget | cst.AnnAssign | cst.NamedExpr | cst.Del):
            return getattr(node, "target", None) is inner
        if not isinstance(node, cst.Element | cst.StarredElement | cst.Tuple | cst.List):
            return False
        inner = node
    return False


def _is_target(node: cst.CSTNode, parents: tuple[cst.CSTNode, ...]) -> bool:
    inner = node
    for above in parents:
        if isinstance(above, cst.AugAssign | cst.For | cst.CompFor | cst.AssignTarget | cst.AnnAssign):
            return above.target is inner
        if isinstance(above, cst.Del):
            return True
        if isinstance(above, cst.Subscript) and above.value is inner:
            # `name[i][j] = x` writes into the item, not into the list.
            pass
        elif not isinstance(above, cst.Element | cst.StarredElement | cst.Tuple | cst.List):
            return False
        inner = above
    return False


class Replacer(cst.CSTTransformer):
    """Puts other nodes in the place of some, innermost first.

    Args:
        changes (`dict`): From a node of the tree (by identity) to a function that takes the node as it is by then and
            returns the new one (for statements also `FlattenSentinel` or `RemovalSentinel`).
    """

    def __init__(self, changes: dict[cst.CSTNode, object]):
        super().__init__()
        self._changes = {id(node): change for node, change in changes.items()}

    def on_leave(self, original_node, updated_node):
        updated_node = super().on_leave(original_node, updated_node)
        change = self._changes.get(id(original_node))
        return updated_node if change is None else change(updated_node)


def replaced(module: cst.Module, changes: dict[cst.CSTNode, object]) -> cst.Module | None:
    """The module with some nodes replaced; `None` where there are none to replace."""
    return module.visit(Replacer(changes)) if changes else None


def call(name: str, *arguments: cst.BaseExpression) -> cst.Call:
    """`name(argument, ...)`; the name may be dotted."""
    return cst.Call(func=cst.parse_expression(name), args=[cst.Arg(argument) for argument in arguments])


def enclosing(use: Use, *kinds: type) -> cst.CSTNode | None:
    """The nearest node of these kinds around a use."""
    return next((node for node in use.parents if isinstance(node, kinds)), None)


def own_loops(use: Use, scope: cst.CSTNode | None) -> Iterator[cst.CSTNode]:
    """The loops and comprehensions around a use, inside the scope."""
    for node in use.parents:
        if node is scope:
            return
        if isinstance(node, cst.For | cst.While | cst.CompFor):
            yield node


def with_import(module: cst.Module, text: str) -> cst.Module:
    """The module with an import statement at its beginning, unless it is there."""
    from hf_qualcode.synthesis.rules._blocks import after_docstring, only_part

    wanted = cst.ensure_type(cst.parse_statement(text), cst.SimpleStatementLine)
    for statement in module.body:
        part = only_part(statement)
        if part is not None and part.deep_equals(wanted.body[0]):
            return module
    place = after_docstring(module.body)
    while place < len(module.body) and "__future__" in cst.Module([]).code_for_node(module.body[place]):
        place += 1
    body = list(module.body)
    if place < len(body):
        lines = body[place].leading_lines
        body[place] = body[place].with_changes(leading_lines=[])
        wanted = wanted.with_changes(leading_lines=lines)
    return module.with_changes(body=[*body[:place], wanted, *body[place:]])


def binds_any(module: cst.Module, names: Iterable[str]) -> bool:
    """Whether the module gives any of these builtins another meaning."""
    bound, imports_all = _bindings(module)
    return bool(bound & set(names)) or imports_all


@functools.lru_cache(maxsize=2)
def _bindings(module: cst.Module) -> tuple[frozenset[str], bool]:
    """Every name that the module binds, and whether it imports all of a package that replaces builtins."""
    targets = findall(module, m.AssignTarget() | m.For() | m.CompFor() | m.AugAssign() | m.NamedExpr() | m.AnnAssign())
    bound = {name.value for node in targets for name in findall(node.target, m.Name())
             if not isinstance(node.target, cst.Subscript | cst.Attribute)}  # fmt: skip
    bound |= {node.name.value for node in findall(module, m.FunctionDef() | m.ClassDef() | m.Param())}
    bound |= {name.value for node in findall(module, m.ImportAlias() | m.AsName()) for name in findall(node, m.Name())}
    stars = findall(module, m.ImportFrom(names=m.ImportStar()))
    return frozenset(bound), any("numpy" in cst.Module([]).code_for_node(star) for star in stars)


# Builtins that look at their argument and keep no hold of it, and methods that change nothing.
READING_CALLS = frozenset(
    ("len", "sum", "max", "min", "sorted", "set", "frozenset", "list", "tuple", "any", "all", "print", "str", "bool",
     "enumerate", "reversed", "range", "abs", "int", "float", "dict", "Counter")
)  # fmt: skip
READING_METHODS = frozenset(
    ("count", "index", "get", "items", "keys", "values", "copy", "split", "startswith", "endswith", "join", "find",
     "lower", "upper", "strip", "replace", "isdigit", "isalpha", "most_common", "issubset", "union", "intersection")
)  # fmt: skip


def only_reads(use: Use) -> bool:
    """Whether a use leaves the variable's value as it is and keeps no hold of the container itself."""
    if use.kind in ("item", "slice", "member", "iterated", "returned"):
        return True
    what, _, name = use.kind.partition(":")
    if what == "call":
        return name in READING_CALLS
    if what == "method":
        return name in READING_METHODS
    if use.kind != "other":
        return False
    parent = use.parents[0]
    if isinstance(parent, cst.Arg) and len(use.parents) > 1:
        above = use.parents[1]
        if isinstance(above, cst.Call) and isinstance(above.func, cst.Attribute):
            return above.func.attr.value == "join"
        # `print(*name)`, `sorted(name, key=...)`
        return isinstance(above, cst.Call) and isinstance(above.func, cst.Name) and above.func.value in READING_CALLS
    return isinstance(parent, cst.If | cst.While | cst.BooleanOperation) or (
        isinstance(parent, cst.UnaryOperation) and isinstance(parent.operator, cst.Not)
    )


def changed_names(node: cst.CSTNode) -> set[str]:
    """Names whose value a piece of code may change: those it binds, stores items in, or calls methods of."""
    targets = findall(node, m.AssignTarget() | m.AugAssign() | m.For() | m.CompFor() | m.AnnAssign() | m.NamedExpr()
                        | m.Del())  # fmt: skip
    names = {name.value for target in targets for name in findall(target.target, m.Name())}
    methods = findall(node, m.Call(func=m.Attribute()))
    names |= {name.value for method in methods if method.func.attr.value not in READING_METHODS
              for name in findall(method.func.value, m.Name())}  # fmt: skip
    return names


def in_function(use: Use, scope: cst.FunctionDef | None) -> bool:
    """Whether a use runs in the variable's own scope, not in a function, lambda or class inside."""
    return enclosing(use, cst.FunctionDef, cst.Lambda, cst.ClassDef) is scope


def is_empty_list(value: cst.BaseExpression) -> bool:
    """`[]` or `list()`."""
    return (isinstance(value, cst.List) and not value.elements) or m.matches(
        value, m.Call(func=m.Name("list"), args=[])
    )


def calls_of(node: cst.CSTNode, name: str) -> list[cst.Call]:
    """Calls by this very name."""
    return list(findall(node, m.Call(func=m.Name(name))))
