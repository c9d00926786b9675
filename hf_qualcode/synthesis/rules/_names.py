"""Local variables that can be renamed without anyone noticing, and their renaming."""

import builtins
import keyword
from collections.abc import Mapping
from typing import NamedTuple

import libcst as cst
import libcst.matchers as m
from libcst.metadata import Assignment, FunctionScope, MetadataWrapper, Scope, ScopeProvider

from hf_qualcode.synthesis.rules._expressions import names_in, reads_own_names


BUILTINS = frozenset(name for name in dir(builtins) if name[0] != "_")
RESERVED = frozenset((*keyword.kwlist, *keyword.softkwlist, *BUILTINS))


class LocalNames(NamedTuple):
    """What may be renamed in one function.

    Attributes:
        function (`FunctionDef`): Of the module's top level or a method there.
        names (`tuple[str, ...]`): Parameters and variables, in the order of their first appearance.
        taken (`frozenset[str]`): Every identifier in the function: a new name must be none of them.
    """

    function: cst.FunctionDef
    names: tuple[str, ...]
    taken: frozenset[str]


def local_names(module: cst.Module) -> tuple[cst.Module, list[LocalNames]]:
    """The variables of each function that mean the same wherever they stand in it.

    Left out: names that something inside binds again (comprehensions, lambdas, functions), declared `global` or
    `nonlocal`, imported, naming a function or class, beginning with two underscores, the `self` of methods,
    parameters that are passed by keyword anywhere in the module (all, where a call has `**`), and functions that look
    names up by their text.

    Returns:
        A copy of the module, and a `LocalNames` for each function of it that has any.
    """
    wrapper = MetadataWrapper(module)
    module = wrapper.module
    scopes = wrapper.resolve(ScopeProvider)
    all_scopes = {scope for scope in scopes.values() if scope is not None}
    keywords = {arg.keyword.value for arg in m.findall(module, m.Arg(keyword=m.Name()))}
    if m.findall(module, m.Arg(star="**")):
        keywords |= {parameter.name.value for parameter in m.findall(module, m.Param())}
    found = []
    for function, is_method in _outer_functions(module):
        scope = scopes.get(function.body)
        if not isinstance(scope, FunctionScope) or reads_own_names(function) or m.findall(function, m.Match()):
            continue
        names = _renamable(function, scope, all_scopes, keywords)
        if is_method and function.params.params:
            names -= {function.params.params[0].name.value}
        ordered = [name.value for name in m.findall(function, m.Name()) if name.value in names]
        if ordered:
            found.append(LocalNames(function, tuple(dict.fromkeys(ordered)), frozenset(names_in(function))))
    return module, found


def rename(module: cst.Module, plans: Mapping[cst.FunctionDef, Mapping[str, str]]) -> cst.Module:
    """The module with the variables of some of its functions renamed: by function, from old to new name."""
    return module.visit(_Renamer(plans))


def _outer_functions(module: cst.Module) -> list[tuple[cst.FunctionDef, bool]]:
    found = [(node, False) for node in module.body if isinstance(node, cst.FunctionDef)]
    for node in module.body:
        if isinstance(node, cst.ClassDef):
            found += [(inner, True) for inner in node.body.body if isinstance(inner, cst.FunctionDef)]
    return found


def _renamable(function: cst.FunctionDef, own: Scope, all_scopes: set[Scope], keywords: set[str]) -> set[str]:
    parameters = {parameter.name.value for parameter in m.findall(function.params, m.Param())}
    names = set()
    bindings: dict[str, list] = {}
    for assignment in own.assignments:
        bindings.setdefault(assignment.name, []).append(assignment)
    for name, found in bindings.items():
        plain = all(
            type(assignment) is Assignment and not isinstance(assignment.node, cst.FunctionDef | cst.ClassDef)
            for assignment in found
        )
        if plain and not name.startswith("__") and not (name in parameters and name in keywords):
            names.add(name)
    for scope in all_scopes:
        if scope is not own and _is_inside(scope, own):
            names -= {assignment.name for assignment in scope.assignments}
    for declared in m.findall(function, m.Global() | m.Nonlocal() | m.ImportAlias()):
        names -= names_in(declared)
    # Decorators, defaults and annotations are evaluated outside, where the name is another one.
    outside = [*function.decorators, function.returns]
    outside += [part for param in m.findall(function.params, m.Param()) for part in (param.default, param.annotation)]
    for part in outside:
        if part is not None:
            names -= names_in(part)
    return names


def _is_inside(scope: Scope, outer: Scope) -> bool:
    while scope.parent is not scope:
        scope = scope.parent
        if scope is outer:
            return True
    return False


class _Renamer(cst.CSTTransformer):
    def __init__(self, plans: Mapping[cst.FunctionDef, Mapping[str, str]]):
        super().__init__()
        self._plans = plans
        self._names: Mapping[str, str] = {}

    def visit_FunctionDef(self, node):
        if node in self._plans:
            self._names = self._plans[node]

    def leave_FunctionDef(self, original_node, updated_node):
        if original_node in self._plans:
            self._names = {}
        return updated_node.with_changes(name=original_node.name)

    def leave_Name(self, original_node, updated_node):
        name = self._names.get(updated_node.value)
        return updated_node if name is None else updated_node.with_changes(value=name)

    # Identifiers that are no variables.
    def leave_Attribute(self, original_node, updated_node):
        return updated_node.with_changes(attr=original_node.attr)

    def leave_Arg(self, original_node, updated_node):
        return updated_node.with_changes(keyword=original_node.keyword)

    def leave_ClassDef(self, original_node, updated_node):
        return updated_node.with_changes(name=original_node.name)
