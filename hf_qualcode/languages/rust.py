"""Rust."""

import tree_sitter

from hf_qualcode.languages._base import Language, node_text


def load_grammar(suffix: str) -> object:
    import tree_sitter_rust

    return tree_sitter_rust.language()


def name_of(definition: tree_sitter.Node, name: tree_sitter.Node, source: bytes) -> list[str]:
    """Returns `Queue` for `impl<T> Put for &mut queue::Queue<T>`."""
    while name.type in ("generic_type", "reference_type"):
        inner = name.child_by_field_name("type")
        if inner is None:
            break
        name = inner
    return [node_text(name, source).split("<")[0].rsplit("::", 1)[-1]]


LANGUAGE = Language(
    name="rust",
    title="Rust",
    suffixes=(".rs",),
    load_grammar=load_grammar,
    name_of=name_of,
    inner_comment_markers=("//!", "/*!"),
    query="""
    (function_item name: (_) @name body: (_) @body) @function
    (struct_item name: (_) @name body: (_) @body) @class
    (enum_item name: (_) @name body: (_) @body) @class
    (union_item name: (_) @name body: (_) @body) @class
    (trait_item name: (_) @name body: (_) @body) @class
    (impl_item type: (_) @name body: (_) @body) @implementation
    (mod_item name: (_) @name body: (_) @body) @scope
    [(line_comment) (block_comment)] @comment
    (attribute_item) @attribute
    [(use_declaration) (extern_crate_declaration) (inner_attribute_item) (mod_item !body)] @idle
    """,
)
