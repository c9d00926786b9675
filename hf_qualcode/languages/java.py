"""Java."""

from hf_qualcode.languages._base import Language


def load_grammar(suffix: str) -> object:
    import tree_sitter_java

    return tree_sitter_java.language()


LANGUAGE = Language(
    name="java",
    title="Java",
    suffixes=(".java",),
    load_grammar=load_grammar,
    query="""
    (method_declaration name: (_) @name body: (_) @body) @function
    (constructor_declaration name: (_) @name body: (_) @body) @function
    (compact_constructor_declaration name: (_) @name body: (_) @body) @function
    (class_declaration name: (_) @name body: (_) @body) @class
    (interface_declaration name: (_) @name body: (_) @body) @class
    (enum_declaration name: (_) @name body: (_) @body) @class
    (record_declaration name: (_) @name body: (_) @body) @class
    (annotation_type_declaration name: (_) @name body: (_) @body) @class
    [(line_comment) (block_comment)] @comment
    [(package_declaration) (import_declaration)] @idle
    """,
)
