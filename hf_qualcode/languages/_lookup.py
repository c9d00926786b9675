"""Finds languages: by name, by file name, by the interpreter in a script's first line."""

import functools
import importlib
import pkgutil
import re
from pathlib import PurePosixPath

import hf_qualcode.languages as package
from hf_qualcode.languages._base import Language
from hf_qualcode.types import UsageError


SHEBANG = re.compile(r"#!\s*(?:\S*/env\s+(?:-\S+\s+|\w+=\S*\s+)*)?(?:\S*/)?([A-Za-z]+)[\d.]*(?:\s|$)")
# C and C++ share `.h`. C, unless a line near the top can only be C++.
CPP_IN_HEADER = re.compile(
    r"^[ \t]*(?:class\s+\w|namespace\b|template\s*<|using\s+\w|(?:public|private|protected)\s*:|constexpr\b|"
    r"#\s*include\s*<(?:c?[a-z_]+)>)|\w::\w|\boperator\s*[=+\-*/<>!(\[]|\bvirtual\s",
    re.MULTILINE,
)
HEADER_SAMPLE_CHARS = 20_000


@functools.cache
def language_names() -> tuple[str, ...]:
    """Returns the names of all languages, sorted."""
    return tuple(sorted(found.name for found in pkgutil.iter_modules(package.__path__) if found.name[0] != "_"))


@functools.cache
def get_language(name: str) -> Language:
    """Returns the language called `name`.

    Raises:
        `UsageError`: No such language; the message lists those there are.
    """
    if name not in language_names():
        raise UsageError(f"unknown language {name!r}; choose one of: {', '.join(language_names())}")
    return importlib.import_module(f"{package.__name__}.{name}").LANGUAGE


@functools.cache
def suffix_table() -> dict[str, Language]:
    """Returns the language of each file suffix."""
    languages = map(get_language, language_names())
    return {suffix: language for language in languages for suffix in language.suffixes}


@functools.cache
def _interpreter_table() -> dict[str, Language]:
    languages = map(get_language, language_names())
    return {interpreter: language for language in languages for interpreter in language.interpreters}


def language_of(path: str, first_line: str | None = None) -> Language | None:
    """Says what language a file is in, from its name or, where the name has no suffix, from its `#!` line.

    `.h` is taken for C here; `header_language` looks inside.

    Args:
        path (`str`): File name or path.
        first_line (`str`, *optional*): First line of the file, only looked at for names without a suffix.

    Returns:
        [`Language`] or `None` where the file is in none that is known.
    """
    suffix = PurePosixPath(path).suffix.lower()
    if suffix:
        return suffix_table().get(suffix)
    shebang = SHEBANG.match(first_line) if first_line else None
    return _interpreter_table().get(shebang[1]) if shebang else None


def header_language(source: str) -> Language:
    """Tells a C header (`.h`) from a C++ one: C++ when a line near the top could not be C.

    Such lines open a class, namespace or template, start with `using`, `constexpr` or an access label, hold `a::b`,
    `virtual` or an operator, or include a header without a suffix (`<vector>`).
    """
    return get_language("cpp" if CPP_IN_HEADER.search(source, 0, HEADER_SAMPLE_CHARS) else "c")
