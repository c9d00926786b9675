"""What JavaScript and TypeScript share: the query, and how a function's name is found in what it is bound to."""

import re

import tree_sitter

from hf_qualcode.languages._base import LONE_BRACKETS, node_text


# `module.exports.x`, `exports.x`, `this.x` and `window.x` are x.
EXPORT_PREFIX = re.compile(r"^(?:(?:module\.)?exports|this|self|window|globalThis)\.")
IDLE_LINE = LONE_BRACKETS + r"|\s*(?:\"use strict\"|'use strict')\s*;?"

# A value that is a function, under a name; and one that lends its name to the functions in it.
FUNCTION_VALUE = """[
  (arrow_function body: (_) @body)
  (function_expression body: (_) @body)
  (generator_function body: (_) @body)
]"""
QUERY = f"""
(function_declaration name: (_) @name body: (_) @body) @function
(generator_function_declaration name: (_) @name body: (_) @body) @function
(method_definition name: (_) @name body: (_) @body) @function
(variable_declarator name: (identifier) @name value: {FUNCTION_VALUE}) @function
(assignment_expression left: [(identifier) (member_expression)] @name right: {FUNCTION_VALUE}) @function
(pair key: (_) @name value: {FUNCTION_VALUE}) @function
(export_statement "default" value: {FUNCTION_VALUE}) @function
(class_declaration name: (_) @name body: (_) @body) @class
(variable_declarator name: (identifier) @name value: (class body: (_) @body)) @class
(assignment_expression left: [(identifier) (member_expression)] @name right: (class body: (_) @body)) @class
(export_statement "default" value: (class body: (_) @body)) @class
(variable_declarator name: (identifier) @name value: (object) @body) @scope
(assignment_expression left: [(identifier) (member_expression)] @name right: (object) @body) @scope
(pair key: (_) @name value: (object) @body) @scope
(lexical_declaration . (variable_declarator) @wrapped) @wrapper
(variable_declaration . (variable_declarator) @wrapped) @wrapper
(export_statement declaration: (_) @wrapped) @wrapper
(comment) @comment
(decorator) @attribute
(import_statement) @idle
(export_statement source: (_)) @idle
(program (lexical_declaration
  . (variable_declarator value: (call_expression function: (identifier) @_require)) .) @idle
  (#eq? @_require "require"))
"""


def name_of(definition: tree_sitter.Node, name: tree_sitter.Node, source: bytes) -> list[str]:
    """Returns `Queue`, `push` for `Queue.prototype.push = function`, and `x` for `exports.x = ...`."""
    text = node_text(name, source)
    if name.type == "member_expression":
        text = EXPORT_PREFIX.sub("", text.replace(".prototype.", "."))
        text = "exports" if text in ("module.exports", "exports") else text
        owner, _, text = text.rpartition(".")
        return [owner.rstrip("? "), text.strip()] if owner else [text]
    return [text]
