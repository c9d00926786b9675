"""Python 2 and 3."""

from hf_qualcode.languages._base import LONE_BRACKETS, Language
from hf_qualcode.languages._python_form import compile_error, fingerprint, normal_form


def load_grammar(suffix: str) -> object:
    import tree_sitter_python

    return tree_sitter_python.language()


LANGUAGE = Language(
    name="python",
    title="Python",
    suffixes=(".py", ".pyi", ".pyw"),
    load_grammar=load_grammar,
    interpreters=("python", "pypy", "ipython"),
    leading_comments=False,
    compile_error=compile_error,
    normal_form=normal_form,
    fingerprint=fingerprint,
    idle_line=LONE_BRACKETS + r"|\s*pass\s*(?:#.*)?",
    query="""
    (function_definition name: (identifier) @name body: (block) @body) @function
    (class_definition name: (identifier) @name body: (block) @body) @class
    (function_definition body: (block . (expression_statement . (string) @docstring .)) @body)
    (class_definition body: (block . (expression_statement . (string) @docstring .)) @body)
    (module . (comment)* . (expression_statement . (string) @docstring .)) @body
    (decorated_definition definition: (_) @wrapped) @wrapper
    (comment) @comment
    [(import_statement) (import_from_statement) (future_import_statement)] @idle
    (module (expression_statement (assignment left: (identifier) @_name)) @idle (#eq? @_name "__all__"))
    (module (expression_statement (augmented_assignment left: (identifier) @_name)) @idle (#eq? @_name "__all__"))
    (module
      (if_statement
        condition: (comparison_operator . (identifier) @_name)
        consequence: (block . [(expression_statement (call)) (raise_statement)] .)
        !alternative) @idle
      (#eq? @_name "__name__"))
    """,
)
