"""JavaScript, with JSX."""

from hf_qualcode.languages._base import Language
from hf_qualcode.languages._javascript import FUNCTION_VALUE, IDLE_LINE, QUERY, name_of


def load_grammar(suffix: str) -> object:
    import tree_sitter_javascript

    return tree_sitter_javascript.language()


LANGUAGE = Language(
    name="javascript",
    title="JavaScript",
    suffixes=(".js", ".mjs", ".cjs", ".jsx"),
    load_grammar=load_grammar,
    interpreters=("node", "nodejs", "deno", "bun"),
    name_of=name_of,
    idle_line=IDLE_LINE,
    query=f"""{QUERY}
    (field_definition property: (_) @name value: {FUNCTION_VALUE}) @function
    """,
)
