"""C++, with CUDA's dialect as far as the grammar reads it."""

from hf_qualcode.languages._base import Language
from hf_qualcode.languages._c_family import IDLE_LINE, QUERY, name_of


def load_grammar(suffix: str) -> object:
    import tree_sitter_cpp

    return tree_sitter_cpp.language()


LANGUAGE = Language(
    name="cpp",
    suffixes=(".cpp", ".cc", ".cxx", ".c++", ".hpp", ".hh", ".hxx", ".h++", ".ipp", ".inl", ".tpp", ".cu", ".cuh"),
    load_grammar=load_grammar,
    name_of=name_of,
    idle_line=IDLE_LINE + r"|\s*(?:public|private|protected)\s*:\s*",
    query=f"""{QUERY}
    (class_specifier name: (_) @name body: (_) @body) @class
    (namespace_definition name: (_) @name body: (_) @body) @scope
    (template_declaration [(template_declaration) (function_definition) (class_specifier) (struct_specifier)] @wrapped)
      @wrapper
    (friend_declaration (function_definition) @wrapped) @wrapper
    [(using_declaration) (alias_declaration)] @idle
    """,
)
