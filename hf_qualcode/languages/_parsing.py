"""Source text to syntax tree, within bounds that hold for hostile files too."""

import time
from collections.abc import Iterator

import tree_sitter

from hf_qualcode.languages._base import Language
from hf_qualcode.types import QualcodeError


TIME_LIMIT_SECONDS = 2.0
# A query needs time quadratic in the children of an error node (100,000 unclosed brackets: 17 s), and the binding's
# hook to stop a query crashes, so such trees are turned away before: this many squared children take about 1 s.
ERROR_WORK_LIMIT = 5e8
SMALL_SOURCE_BYTES = 20_000  # too small to come near the limit above


class ParseLimitError(QualcodeError):
    """The source would take the parser too long."""


def parse(
    language: Language, source: bytes, suffix: str, time_limit: float = TIME_LIMIT_SECONDS
) -> tuple[tree_sitter.Tree, tree_sitter.Query]:
    """Parses UTF-8 source text.

    Args:
        language ([`Language`]): Grammar to use.
        source (`bytes`): UTF-8 text.
        suffix (`str`): Suffix of the file, for languages with several grammars.
        time_limit (`float`, *optional*, defaults to 2.0): Seconds of processor time after which the parser is stopped.

    Returns:
        `tuple[tree_sitter.Tree, tree_sitter.Query]`: The tree and the language's query, compiled for its grammar.

    Raises:
        [`ParseLimitError`]: The parser ran out of time, or the tree is one that queries would take too long for.
    """
    grammar, query = language.grammar_and_query(suffix)
    deadline = time.thread_time() + time_limit
    parser = tree_sitter.Parser(grammar)
    try:
        # Only the form that reads through a callback takes a progress callback; it costs nothing measurable.
        tree = parser.parse(
            lambda offset, _: source[offset:] if offset else source,
            progress_callback=lambda _offset, _has_error: time.thread_time() > deadline,
        )
    except ValueError as error:
        raise ParseLimitError(f"not parsed within {max(time_limit, 0):.2g} s") from error
    is_flawed = len(source) > SMALL_SOURCE_BYTES and tree.root_node.has_error
    if is_flawed and _error_work(tree.root_node) > ERROR_WORK_LIMIT:
        raise ParseLimitError("an unreadable stretch is too long (unclosed brackets?)")
    return tree, query


def _error_work(root: tree_sitter.Node) -> float:
    return sum(node.child_count**2 for node in _nodes_with_errors(root) if node.is_error)


def _nodes_with_errors(root: tree_sitter.Node) -> Iterator[tree_sitter.Node]:
    stack = [root]
    while stack:
        node = stack.pop()
        yield node
        if node.child_count:
            stack.extend(child for child in node.children if child.has_error)
