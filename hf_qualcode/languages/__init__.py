"""What a programming language is to this package: one small module a language, found by its name.

A module `hf_qualcode/languages/<name>.py` defines `LANGUAGE = Language(...)`; adding a language is adding that file.
"""

from hf_qualcode.languages._base import Language
from hf_qualcode.languages._lookup import get_language, language_names, language_of
from hf_qualcode.languages._parsing import ParseLimitError
from hf_qualcode.languages._python_form import normal_python_tree, parse_python


__all__ = [
    "Language",
    "ParseLimitError",
    "get_language",
    "language_names",
    "language_of",
    "normal_python_tree",
    "parse_python",
]
