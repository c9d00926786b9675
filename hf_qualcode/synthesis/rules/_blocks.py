"""Questions about statements and blocks that several transformations ask, and a transformer that sees whole blocks."""

from collections.abc import Callable, Sequence

import libcst as cst
import libcst.matchers as m

from hf_qualcode.synthesis.rules._expressions import code_of, names_in


Statement = cst.BaseStatement
Loop = cst.For | cst.While
# Bodies of their own: what is in them does not run with the block around.
_INNER = (cst.FunctionDef, cst.ClassDef, cst.Lambda)


class BlockTransformer(cst.CSTTransformer):
    """Gives each block of a module, innermost first, to `change`, which returns its new statements.

    Args:
        change (`Callable`): From a block's statements (a list) and the node that holds them (the module, or an
            `IndentedBlock`) to the new ones. The same list means no change.
    """

    def __init__(self, change: Callable[[list[Statement], cst.CSTNode], list[Statement]]):
        super().__init__()
        self._change = change
        self.changes = 0

    def leave_IndentedBlock(self, original_node, updated_node):
        return self._changed(updated_node)

    def leave_Module(self, original_node, updated_node):
        return self._changed(updated_node)

    def _changed(self, node):
        before = list(node.body)
        after = self._change(before, node)
        if after is before:
            return node
        self.changes += 1
        return node.with_changes(body=after)


def change_blocks(module: cst.Module, change: Callable) -> cst.Module | None:
    """The module with each block changed; `None` where `change` left all as they were."""
    transformer = BlockTransformer(change)
    changed = module.visit(transformer)
    return changed if transformer.changes else None


def blocks_of(module: cst.Module) -> list[list[Statement]]:
    """The statements of the module and of each block in it."""
    return [list(module.body), *(list(found.body) for found in m.findall(module, m.IndentedBlock()))]


def block(statements: Sequence[Statement]) -> cst.IndentedBlock:
    """Statements as the body of a compound statement."""
    return cst.IndentedBlock(body=list(statements))


def statements_of(suite: cst.BaseSuite) -> list[Statement]:
    """The statements of a body, also where it stands on the line of its colon."""
    if isinstance(suite, cst.IndentedBlock):
        return list(suite.body)
    parts = [part.with_changes(semicolon=cst.MaybeSentinel.DEFAULT) for part in suite.body]
    return [cst.SimpleStatementLine(body=[part]) for part in parts]


def line(text: str) -> cst.SimpleStatementLine:
    """A simple statement from its source text."""
    return cst.ensure_type(cst.parse_statement(text), cst.SimpleStatementLine)


def only_part(statement: cst.CSTNode) -> cst.BaseSmallStatement | None:
    """The one small statement of a line; `None` for a compound statement and for several on a line."""
    if isinstance(statement, cst.SimpleStatementLine) and len(statement.body) == 1:
        return statement.body[0]
    return None


def assigned_name(statement: cst.CSTNode) -> tuple[str, cst.BaseExpression] | None:
    """Name and value of `name = value`; `None` for any other statement."""
    part = only_part(statement)
    if (
        isinstance(part, cst.Assign)
        and len(part.targets) == 1
        and isinstance(part.targets[0].target, cst.Name)
        and not part.targets[0].target.lpar
    ):
        return part.targets[0].target.value, part.value
    return None


def is_docstring(statement: cst.CSTNode) -> bool:
    """Whether the statement is a string by itself."""
    part = only_part(statement)
    return isinstance(part, cst.Expr) and isinstance(part.value, cst.SimpleString | cst.ConcatenatedString)


def after_docstring(statements: Sequence[cst.CSTNode]) -> int:
    """Place of the first statement of a function that is neither docstring nor `global` nor `nonlocal`."""
    place = 1 if statements and is_docstring(statements[0]) else 0
    while place < len(statements) and isinstance(only_part(statements[place]), cst.Global | cst.Nonlocal):
        place += 1
    return place


def after_imports(statements: Sequence[cst.CSTNode]) -> int:
    """Place of the first statement of a module after its docstring and imports."""
    place = 1 if statements and is_docstring(statements[0]) else 0
    for number, statement in enumerate(statements):
        if isinstance(statement, cst.SimpleStatementLine) and all(
            isinstance(part, cst.Import | cst.ImportFrom) for part in statement.body
        ):
            place = number + 1
        elif number >= place:
            break
    return place


def leaves(statements: Sequence[cst.CSTNode]) -> bool:
    """Whether the block surely ends in `return`, `raise`, `break` or `continue`."""
    if not statements:
        return False
    last = statements[-1]
    if isinstance(last, cst.SimpleStatementLine):
        return isinstance(last.body[-1], cst.Return | cst.Raise | cst.Break | cst.Continue)
    if isinstance(last, cst.If) and last.orelse is not None:
        other = last.orelse
        rest = [other] if isinstance(other, cst.If) else statements_of(other.body)
        return leaves(statements_of(last.body)) and leaves(rest)
    return False


class _Search(cst.CSTVisitor):
    """Looks for nodes that run with the block: not in functions and classes in it, nor, for jumps, in its loops."""

    def __init__(self, kinds: tuple[type, ...], into_loops: bool):
        super().__init__()
        self._kinds, self._into_loops = kinds, into_loops
        self.found = False

    def on_visit(self, node):
        if isinstance(node, self._kinds):
            self.found = True
        if self.found or isinstance(node, _INNER):
            return False
        if isinstance(node, cst.For | cst.While) and not self._into_loops:
            # Its `else` belongs to the loop around.
            if node.orelse is not None:
                node.orelse.visit(self)
            return False
        return True


def runs(node: cst.CSTNode, *kinds: type) -> bool:
    """Whether a node of these kinds is in `node`, functions and classes inside left out."""
    search = _Search(kinds, into_loops=True)
    node.visit(search)
    return search.found


def breaks(loop: cst.For | cst.While) -> bool:
    """Whether the loop has a `break` of its own."""
    search = _Search((cst.Break,), into_loops=False)
    loop.body.visit(search)
    return search.found


def is_generator(function: cst.FunctionDef) -> bool:
    """Whether calling the function makes a generator or a coroutine."""
    return function.asynchronous is not None or runs(function.body, cst.Yield, cst.Await)


def own_functions(module: cst.Module) -> list[cst.FunctionDef]:
    """The functions of the module's top level whose names stand for nothing else in it, in order."""
    functions = [statement for statement in module.body if isinstance(statement, cst.FunctionDef)]
    bound = [function.name.value for function in m.findall(module, m.FunctionDef() | m.ClassDef())]
    targets = m.AssignTarget() | m.AugAssign() | m.AnnAssign() | m.For() | m.CompFor() | m.NamedExpr()
    bound += [name for node in m.findall(module, targets) for name in names_in(node.target)]
    bound += [parameter.name.value for parameter in m.findall(module, m.Param())]
    others = m.Global() | m.Nonlocal() | m.Del() | m.AsName() | m.ImportAlias()
    bound += [name for node in m.findall(module, others) for name in names_in(node)]
    return [function for function in functions if bound.count(function.name.value) == 1]


def rebinds(module: cst.Module, *names: str) -> bool:
    """Whether one of the names is bound in the module: assigned, a parameter, imported, or a definition."""
    bound = m.findall(module, m.AssignTarget() | m.For() | m.CompFor() | m.AnnAssign() | m.NamedExpr())
    parts = [node.target for node in bound]
    parts += [node.name for node in m.findall(module, m.Param() | m.FunctionDef() | m.ClassDef() | m.AsName())]
    parts += m.findall(module, m.ImportAlias())
    return any(set(names) & names_in(part) for part in parts)


def simple_parameters(function: cst.FunctionDef) -> bool:
    """Whether the function takes positional parameters only, and none of them by `*` or `**`."""
    parameters = function.params
    return (
        isinstance(parameters.star_arg, cst.MaybeSentinel)
        and not parameters.kwonly_params
        and parameters.star_kwarg is None
        and not parameters.posonly_params
    )


def calls_itself(module: cst.Module, function: cst.FunctionDef) -> bool:
    """Whether a function of the module's top level mentions itself, or a function there that does so in turn."""
    mentions = {each.name.value: names_in(each.body) for each in module.body if isinstance(each, cst.FunctionDef)}
    reached, new = set(), {function.name.value}
    while new:
        reached |= new
        mentioned = set().union(*(mentions[name] for name in new))
        if function.name.value in mentioned:
            return True
        new = (mentioned & mentions.keys()) - reached
    return False


def line_count(node: cst.CSTNode) -> int:
    """Lines of the node's source text, blank ones left out."""
    return sum(bool(text.strip()) for text in code_of(node).splitlines())


def fresh_name(wanted: str, taken: set[str]) -> str:
    """`wanted`, with a number after it where that is taken."""
    name, number = wanted, 2
    while name in taken:
        name, number = f"{wanted}_{number}", number + 1
    return name
