"""CodeBLEU (Ren et al., 2020, arXiv 2009.10297): how near one program is to another, from 0 to 1.

It is the weighted sum of four parts, a quarter each:

- n-gram match: BLEU-4 of the tokens;
- weighted n-gram match: its recall counterpart, in which a keyword weighs 1 and any other single token 0.2;
- syntactic match: the share of the reference's syntax subtrees that the candidate has too;
- data-flow match: the share of the reference's data-flow edges that the candidate has too.

Details are those of the published implementation (microsoft/CodeXGLUE, PyPI `codebleu` 0.7): tokens are what white
space separates, a precision of 0 is smoothed to 0.1 counts, the weighted match has no brevity penalty (the paper's
formula has one; being recall, it needs none), subtrees are compared by the kinds and fields of their nodes, leaves are
no subtrees of their own, comments and docstrings do not count for trees and data flow.

Where we depart from it, each for a reason:

- A data-flow match of 0 is 0; `codebleu` 0.7 counts it 1. A reference without any data flow counts 1, as there.
- A program and itself always score 1, also a very short one: n-gram orders that neither program is long enough for are
  left out, weights that sum to less than 1 are not divided by 1, and two programs without a token match in both n-gram
  parts.
- The body of a loop with an `else` is read; there it is passed over.
- Names in a data-flow edge are sorted by place; there their order is that of a Python set, which changes by process.
- Where no data flow is known for a language, the other three parts share the weight.
"""

import hashlib
import keyword
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import tree_sitter

from hf_qualcode.languages import Language, get_language
from hf_qualcode.languages._parsing import parse
from hf_qualcode.synthesis.dataflow import FLOW_OF_LANGUAGE
from hf_qualcode.types import UsageError


__all__ = ["CodeBleu", "CodeFeatures", "code_features", "codebleu", "compare"]

WEIGHTS = (0.25, 0.25, 0.25, 0.25)
MAX_ORDER = 4
_KEYWORD_WEIGHT, _TOKEN_WEIGHT = 1.0, 0.2
# Chen and Cherry (2014), method 1: what a count of 0 is smoothed to.
_SMOOTHED_ZERO = 0.1
_DIGEST_BYTES = 12


class CodeBleu(NamedTuple):
    """A score and its parts, each from 0 to 1; `dataflow` is `None` where the language has none."""

    score: float
    ngram: float
    weighted_ngram: float
    syntax: float
    dataflow: float | None


@dataclass(frozen=True, slots=True)
class CodeFeatures:
    """What CodeBLEU needs to know of a program: computed once, compared with many.

    Attributes:
        num_tokens (`int`): White-space separated tokens.
        ngrams (`tuple[Counter, ...]`): Counts of the n-grams of orders 1 to 4.
        keywords (`frozenset[str]`): Those of the language.
        subtrees (`Counter[bytes]`): Digest of a syntax subtree -> how often it occurs.
        flows (`Counter[tuple]`, *optional*): Data-flow edge with names of no meaning -> how often it occurs.
    """

    num_tokens: int
    ngrams: tuple[Counter, ...]
    keywords: frozenset[str]
    subtrees: Counter
    flows: Counter | None


def codebleu(
    candidate: str, reference: str, language: str = "python", *, weights: Sequence[float] = WEIGHTS
) -> CodeBleu:
    """CodeBLEU of a candidate against one reference. It is not symmetric.

    Args:
        candidate, reference (`str`): Two programs; they need not be free of errors.
        language (`str`, *optional*, defaults to `"python"`): One of `hf_qualcode.languages`.
        weights (`Sequence[float]`, *optional*): Of the four parts, in the order above; they sum to 1.

    Returns:
        `CodeBleu`: The score and its parts.

    Raises:
        `UsageError`: On an unknown language, or other weights.
        `ParseLimitError`: When a program would take the parser too long.
    """
    return compare(code_features(candidate, language), code_features(reference, language), weights=weights)


def code_features(code: str, language: str = "python") -> CodeFeatures:
    """Reads one program; see `codebleu`."""
    known = get_language(language)
    tokens = code.split()
    source = known.prepare(code.strip().encode("utf-8", "replace"))
    tree, query = parse(known, source, known.suffixes[0])
    ignored = _ignored_nodes(tree.root_node, query)
    flow = FLOW_OF_LANGUAGE.get(language)
    return CodeFeatures(
        num_tokens=len(tokens),
        ngrams=tuple(Counter(zip(*(tokens[i:] for i in range(order)))) for order in range(1, MAX_ORDER + 1)),  # noqa: B905
        keywords=_keywords(known),
        subtrees=Counter(_subtree_digests(tree, ignored)),
        flows=None if flow is None else Counter(flow(tree.root_node, source, ignored)),
    )


def compare(
    candidate: CodeFeatures, reference: CodeFeatures, *, weights: Sequence[float] = WEIGHTS
) -> CodeBleu:
    """CodeBLEU of two programs that were read before; see `codebleu`."""
    if len(weights) != len(WEIGHTS) or min(weights) < 0 or not math.isclose(sum(weights), 1):
        raise UsageError(f"weights are {tuple(weights)}; expected four numbers of at least 0 that sum to 1")
    parts = (
        _bleu(candidate, reference, _precision, penalised=True),
        _bleu(candidate, reference, _weighted_recall, penalised=False),
        _share(candidate.subtrees, reference.subtrees, clipped=False),
        None if reference.flows is None else _share(candidate.flows, reference.flows, clipped=True),
    )
    used = [(weight, part) for weight, part in zip(weights, parts, strict=True) if part is not None]
    total = math.fsum(weight for weight, _ in used)
    score = math.fsum(weight * part for weight, part in used) / total if total else 1.0
    return CodeBleu(score, *parts)


# ---- n-grams ----


def _bleu(candidate: CodeFeatures, reference: CodeFeatures, count_matches, *, penalised: bool) -> float:
    """Geometric mean of what `count_matches` gives for each order, times the brevity penalty where asked for."""
    longer = max(candidate.num_tokens, reference.num_tokens)
    if not longer:
        return 1.0
    logs = []
    for order in range(1, min(MAX_ORDER, longer) + 1):
        matched, total = count_matches(candidate, reference, order)
        if order == 1 and not matched:
            return 0.0
        logs.append(math.log((matched or _SMOOTHED_ZERO) / (total or 1)))
    mean = math.fsum(logs) / len(logs)
    return math.exp(min(0.0, 1 - reference.num_tokens / candidate.num_tokens) + mean if penalised else mean)


def _precision(candidate: CodeFeatures, reference: CodeFeatures, order: int) -> tuple[float, float]:
    counts, others = candidate.ngrams[order - 1], reference.ngrams[order - 1]
    return sum(min(count, others[ngram]) for ngram, count in counts.items()), counts.total()


def _weighted_recall(candidate: CodeFeatures, reference: CodeFeatures, order: int) -> tuple[float, float]:
    counts, others = candidate.ngrams[order - 1], reference.ngrams[order - 1]
    matched = {ngram: min(count, counts[ngram]) for ngram, count in others.items()}
    if order > 1:
        return sum(matched.values()), others.total()
    keywords = reference.keywords

    def weighed(ngrams) -> float:
        weight = {ngram: _KEYWORD_WEIGHT if ngram[0] in keywords else _TOKEN_WEIGHT for ngram in ngrams}
        return math.fsum(count * weight[ngram] for ngram, count in ngrams.items())

    return weighed(matched), weighed(others)


def _keywords(language: Language) -> frozenset[str]:
    if language.name == "python":
        return frozenset(keyword.kwlist) | {"match", "case", "type"}
    grammar, _ = language.grammar_and_query(language.suffixes[0])
    # What a grammar spells out and consists of letters.
    kinds = ((number, grammar.node_kind_for_id(number)) for number in range(grammar.node_kind_count))
    return frozenset(
        kind for number, kind in kinds if kind and kind.isidentifier() and not grammar.node_kind_is_named(number)
    )


# ---- trees ----


def _share(candidate: Counter, reference: Counter, *, clipped: bool) -> float:
    """The share of the reference's items that the candidate has; 1 where the reference has none.

    Clipped, an item counts at most as often as the candidate has it. The published implementation does that for data
    flow, and not for subtrees.
    """
    total = reference.total()
    if not total:
        return 1.0
    if clipped:
        return sum(min(count, candidate[item]) for item, count in reference.items()) / total
    return sum(count for item, count in reference.items() if item in candidate) / total


def _ignored_nodes(root: tree_sitter.Node, query: tree_sitter.Query) -> frozenset[int]:
    """Ids of comments, docstrings, and statements that are nothing but a docstring."""
    ignored = set()
    for _, captures in tree_sitter.QueryCursor(query).matches(root):
        ignored.update(node.id for node in captures.get("comment", ()))
        for node in captures.get("docstring", ()):
            ignored.add(node.id)
            if node.parent is not None and node.parent.child_count == 1:
                ignored.add(node.parent.id)
    return frozenset(ignored)


def _subtree_digests(tree: tree_sitter.Tree, ignored: frozenset[int]) -> Iterator[bytes]:
    """A digest of each node that has children: equal for equal kinds and fields of the named nodes below.

    Two subtrees have one digest if and only if tree-sitter writes them as the same S-expression, which itself takes
    quadratic time for all subtrees of a deep tree.
    """
    cursor = tree.walk()
    open_nodes: list[_OpenNode] = []  # the way down to where the cursor is
    while True:
        node = cursor.node
        if node.id not in ignored:
            if cursor.goto_first_child():
                open_nodes.append(_OpenNode([]))
                continue
            if not open_nodes:  # the whole program, without a token
                yield _digest(node, ())
                return
            open_nodes[-1].add(node, cursor.field_name, ())
        while not cursor.goto_next_sibling():
            cursor.goto_parent()
            node, closed = cursor.node, open_nodes.pop()
            if closed.has_children or not open_nodes:
                yield _digest(node, closed.below)
            if not open_nodes:
                return
            open_nodes[-1].add(node, cursor.field_name, closed.below)


@dataclass(slots=True)
class _OpenNode:
    below: list[bytes]  # field and digest of each named child so far
    has_children: bool = False

    def add(self, child: tree_sitter.Node, field: str | None, below: Sequence[bytes]) -> None:
        self.has_children = True
        if child.is_named or child.is_missing:
            self.below.append((field or "").encode() + b"=" + _digest(child, below))


def _digest(node: tree_sitter.Node, below: Sequence[bytes]) -> bytes:
    text = b"\0".join((node.type.encode(), b"missing" if node.is_missing else b"", *below))
    return hashlib.blake2b(text, digest_size=_DIGEST_BYTES).digest()
