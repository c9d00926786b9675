"""Go."""

import tree_sitter

from hf_qualcode.languages._base import Language, node_text


def load_grammar(suffix: str) -> object:
    import tree_sitter_go

    return tree_sitter_go.language()


def name_of(definition: tree_sitter.Node, name: tree_sitter.Node, source: bytes) -> list[str]:
    """Returns `Queue`, `Put` for `func (q *Queue[T]) Put()`."""
    receiver = definition.child_by_field_name("receiver")
    if receiver is None:
        return [node_text(name, source)]
    words = node_text(receiver, source).strip("()").split("[")[0].replace("*", " ").split()
    return [*(word.strip("()") for word in words[-1:]), node_text(name, source)]


LANGUAGE = Language(
    name="go",
    title="Go",
    suffixes=(".go",),
    load_grammar=load_grammar,
    name_of=name_of,
    query="""
    (function_declaration name: (_) @name body: (_) @body) @function
    (method_declaration name: (_) @name body: (_) @body) @function
    (type_spec name: (_) @name type: [(struct_type) (interface_type)] @body) @class
    (type_declaration . (type_spec) @wrapped .) @wrapper
    (comment) @comment
    [(package_clause) (import_declaration)] @idle
    """,
)
