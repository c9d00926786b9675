"""What C and C++ share: the query, and how a function's name is dug out of its declarator."""

import re

import tree_sitter

from hf_qualcode.languages._base import LONE_BRACKETS, node_text


# Conditions around code and guards of headers are not content.
CONDITION = r"\s*#\s*(?:if|ifdef|ifndef|else|elif|endif|pragma)\b.*"
HEADER_GUARD = r"\s*#\s*define\s+\w+_H(?:PP|XX)?_*\s*"
IDLE_LINE = f"{LONE_BRACKETS}|{CONDITION}|{HEADER_GUARD}"
MACRO_NAME = re.compile(r"[A-Z][A-Z0-9_]+$")
MAX_DECLARATORS = 50
NESTED_TYPES = {"template_type", "template_function", "template_method", "dependent_type", "dependent_name"}

QUERY = """
(function_definition declarator: (_) @name body: (_) @body) @function
(struct_specifier name: (_) @name body: (_) @body) @class
(union_specifier name: (_) @name body: (_) @body) @class
(enum_specifier name: (_) @name body: (_) @body) @class
(type_definition
  type: [(struct_specifier body: (_) @body) (union_specifier body: (_) @body) (enum_specifier body: (_) @body)]
  declarator: (type_identifier) @name) @class
(comment) @comment
(preproc_include) @idle
"""


def name_of(definition: tree_sitter.Node, name: tree_sitter.Node, source: bytes) -> list[str]:
    """Returns the name inside a declarator: `Queue`, `put` for `T *&Queue<T>::put(int) const`.

    A definition made by a macro (`TEST(Queue, Put) {}`) is called `TEST(Queue, Put)`, or all tests had one name.
    """
    node, parameters = name, None
    for _ in range(MAX_DECLARATORS):
        inner = node.child_by_field_name("declarator")
        if inner is None and node.type.endswith("_declarator") and node.named_child_count:
            inner = node.named_children[-1]
        if node.type == "operator_cast" or inner is None:
            break
        if node.type == "function_declarator":
            parameters = node.child_by_field_name("parameters")
        node = inner
    parts = _parts(node, source)
    if parameters is not None and MACRO_NAME.match(parts[-1]) and definition.child_by_field_name("type") is None:
        parts[-1] += node_text(parameters, source)
    return parts


def _parts(node: tree_sitter.Node, source: bytes) -> list[str]:
    """Splits `a::B<T>::c` into its names, without template arguments."""
    parts: list[str] = []
    for _ in range(MAX_DECLARATORS):
        if node.type == "qualified_identifier":
            scope = node.child_by_field_name("scope")
            if scope is not None:
                parts.append(_simple(scope, source))
            node = node.child_by_field_name("name") or node.named_children[-1]
        else:
            break
    if node.type == "nested_namespace_specifier":
        return [*parts, *node_text(node, source).replace(" ", "").split("::")]
    return [*parts, _simple(node, source)]


def _simple(node: tree_sitter.Node, source: bytes) -> str:
    for _ in range(MAX_DECLARATORS):
        inner = node.child_by_field_name("name") if node.type in NESTED_TYPES else None
        if inner is None:
            break
        node = inner
    if node.type == "operator_cast":
        return node_text(node, source).split("(")[0].strip()
    return node_text(node, source)
