"""C++, with CUDA's dialect as far as the grammar reads it."""

import re

from hf_qualcode.languages._base import Language
from hf_qualcode.languages._c_family import IDLE_LINE, QUERY, name_of


def load_grammar(suffix: str) -> object:
    import tree_sitter_cpp

    return tree_sitter_cpp.language()


# `class TORCH_API Tensor {`: without knowing the macro the grammar takes the class for a function.
EXPORT_MACRO = re.compile(
    rb"(\b(?:class|struct|union)\s+)([A-Z][A-Z0-9]*_[A-Z0-9_]*(?:\([^()\n]*\))?)"
    rb"(?=\s+[A-Za-z_][\w:]*\s*(?:final\s*)?[:{<])"
)


# `int size() const NOEXCEPT {` would be a function called NOEXCEPT.
NOEXCEPT_MACRO = re.compile(rb"(\)\s*(?:const\s+)?)(_?[A-Z_]*NOEXCEPT)\b(?!\s*\()")


def prepare(source: bytes) -> bytes:
    """Blanks out macros that keep the grammar from seeing classes and functions."""
    for macro in (EXPORT_MACRO, NOEXCEPT_MACRO):
        source = macro.sub(lambda match: match[1] + b" " * len(match[2]), source)
    return source


LANGUAGE = Language(
    name="cpp",
    title="C++",
    suffixes=(".cpp", ".cc", ".cxx", ".c++", ".hpp", ".hh", ".hxx", ".h++", ".ipp", ".inl", ".tpp", ".cu", ".cuh"),
    load_grammar=load_grammar,
    name_of=name_of,
    prepare=prepare,
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
