"""C."""

from hf_qualcode.languages._base import Language
from hf_qualcode.languages._c_family import IDLE_LINE, QUERY, name_of


def load_grammar(suffix: str) -> object:
    import tree_sitter_c

    return tree_sitter_c.language()


LANGUAGE = Language(
    name="c",
    title="C",
    suffixes=(".c", ".h"),
    load_grammar=load_grammar,
    name_of=name_of,
    idle_line=IDLE_LINE,
    query=QUERY,
)
