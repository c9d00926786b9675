"""TypeScript; `.tsx` has a grammar of its own."""

from hf_qualcode.languages._base import Language
from hf_qualcode.languages._javascript import FUNCTION_VALUE, IDLE_LINE, QUERY, name_of


def load_grammar(suffix: str) -> object:
    import tree_sitter_typescript

    if suffix == ".tsx":
        return tree_sitter_typescript.language_tsx()
    return tree_sitter_typescript.language_typescript()


LANGUAGE = Language(
    name="typescript",
    title="TypeScript",
    suffixes=(".ts", ".mts", ".cts", ".tsx"),
    load_grammar=load_grammar,
    interpreters=("ts-node", "tsx"),
    name_of=name_of,
    idle_line=IDLE_LINE,
    variants=(".tsx",),
    query=f"""{QUERY}
    (public_field_definition name: (_) @name value: {FUNCTION_VALUE}) @function
    (abstract_class_declaration name: (_) @name body: (_) @body) @class
    (interface_declaration name: (_) @name body: (_) @body) @class
    (enum_declaration name: (_) @name body: (_) @body) @class
    (internal_module name: (_) @name body: (_) @body) @scope
    (module name: (_) @name body: (_) @body) @scope
    (ambient_declaration (_) @wrapped) @wrapper
    """,
)
