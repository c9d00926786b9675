"""The description that every language module fills in."""

import functools
from collections.abc import Callable
from dataclasses import dataclass

import tree_sitter


# Lines of nothing but brackets and separators hold no content of their own.
TEXT_MAX_BYTES = 4_000  # names may be any expression, with functions inside that have such names in turn
LONE_BRACKETS = r"[\s{}()\[\];,]*"


def node_text(node: tree_sitter.Node, source: bytes) -> str:
    """Returns the node's source text on one line, quotes around a string literal taken off.

    (`Node.text` calls back into Python for every byte of a tree that was parsed under a time limit.)
    """
    end = min(node.end_byte, node.start_byte + TEXT_MAX_BYTES)
    text = " ".join(source[node.start_byte : end].decode("utf-8", "replace").split())
    if len(text) > 1 and text[0] in "\"'`" and text[-1] == text[0]:
        text = text[1:-1]
    return text


def unchanged(source: bytes) -> bytes:
    """The parser is given the file as it is."""
    return source


def plain_name(definition: tree_sitter.Node, name: tree_sitter.Node, source: bytes) -> list[str]:
    """The name is the text of the node that the query captured as `@name`."""
    return [node_text(name, source)]


@dataclass(frozen=True)
class Language:
    """What a language is: its files, its grammar and where its definitions are.

    The query is the heart. It runs in C over the whole syntax tree, once a file, and speaks through these captures:

    - `@function`, `@class`: the node of a definition, in the same pattern as its `@body` and `@name` (without a name
      it is called `default`).
    - `@scope`, `@implementation`: lends its `@name` to the definitions inside but is none itself (a namespace, an
      object literal); functions inside an `@implementation` are methods (Rust's `impl`).
    - `@wrapper` with `@wrapped`: the span of the inner definition starts where the wrapper does (decorators, `export`,
      `template<>`).
    - `@docstring` with `@body`: the string that documents the definition with that body.
    - `@comment`, `@attribute`: belongs to the definition on the next line (see `leading_comments`).
    - `@idle`: code without content worth finding (imports, package lines).

    Attributes:
        name (`str`): Module name in `hf_qualcode.languages`, and what fenced code blocks are marked with.
        title (`str`): What people call it.
        suffixes (`tuple[str, ...]`): File name endings, with the dot, lower case.
        load_grammar (`Callable[[str], object]`): Takes a suffix and returns the grammar's pointer. Imports the wheel
            only when called.
        query (`str`): Tree-sitter query with the captures above.
        name_of (`Callable`): Takes the node of a definition, its `@name` node and the file's bytes, and returns the
            parts of the name (`["Queue", "put"]` where the head names the type a method belongs to).
        prepare (`Callable[[bytes], bytes]`): Blanks out what the grammar cannot read; must keep every byte's position.
        interpreters (`tuple[str, ...]`): Names in a `#!` line that stand for this language.
        leading_comments (`bool`, *optional*, defaults to `True`): Comments and attributes directly above a definition
            belong to it and are its documentation.
        inner_comment_markers (`tuple[str, ...]`): Openings of comments that document what *encloses* them.
        idle_line (`str`): Regular expression of whole lines without content.
        variants (`tuple[str, ...]`): Suffixes that have a grammar of their own.
        compile_error (`Callable[[str], str | None]`, *optional*): Says why a text does not compile, `None` if it does.
        normal_form (`Callable[[str], str]`, *optional*): The text without comments, with names of no meaning and one
            layout.
        fingerprint (`Callable[[str], str]`, *optional*): Equal for texts that differ in names, comments and layout
            alone.
    """

    name: str
    title: str
    suffixes: tuple[str, ...]
    load_grammar: Callable[[str], object]
    query: str
    name_of: Callable[[tree_sitter.Node, tree_sitter.Node, bytes], list[str]] = plain_name
    prepare: Callable[[bytes], bytes] = unchanged
    interpreters: tuple[str, ...] = ()
    leading_comments: bool = True
    inner_comment_markers: tuple[str, ...] = ()
    idle_line: str = LONE_BRACKETS
    variants: tuple[str, ...] = ()
    compile_error: Callable[[str], str | None] | None = None
    normal_form: Callable[..., str] | None = None
    fingerprint: Callable[..., str] | None = None

    def grammar_and_query(self, suffix: str) -> tuple[tree_sitter.Language, tree_sitter.Query]:
        """Returns the compiled grammar and query for files that end in `suffix`, loaded on first use."""
        return _compile(self, suffix if suffix in self.variants else self.suffixes[0])


@functools.cache
def _compile(language: Language, suffix: str) -> tuple[tree_sitter.Language, tree_sitter.Query]:
    grammar = tree_sitter.Language(language.load_grammar(suffix))
    return grammar, tree_sitter.Query(grammar, language.query)
