"""Words and numbers that a program prints or compares with, and its task names: "Yes", "IMPOSSIBLE", 998244353.

Two right programs for one task mostly hold the same literals however they are written, so this says whether a program
belongs to a task, and little about how well it is made.
"""

import functools
import math
import re
from collections.abc import Iterable, Mapping


# A string on one line, not longer than a message; what stands in triple quotes is mostly documentation.
_STRING = re.compile(r"""("{3}|'{3})|'((?:[^'\\\n]|\\.){1,60})'|"((?:[^"\\\n]|\\.){1,60})\"""")
_NUMBER = re.compile(r"(?<![\w.])\d{2,19}(?![\w.])")
_POWER = re.compile(r"(?<![\w.])10\s*\*\*\s*(\d{1,2})(?!\w)")
_WORD = re.compile(r"[A-Za-z]+")
_QUERY_TOKEN = re.compile(r"[A-Za-z]+|\d+")
# Statements write large numbers with separators and as powers: 100,000 and 10^5 and 10**5 are one number.
_SEPARATED = re.compile(r"(?<=\d)[,_ ](?=\d{3}(?!\d))")
_CARET = re.compile(r"(?<!\d)10\s*\^\s*\{?(\d{1,2})")
# What a program holds and its task does not name counts against it, but less: messages of its own are no sign.
_UNNAMED_WEIGHT = 0.5
_MOST_CHARACTERS = 20_000


@functools.lru_cache(maxsize=1 << 15)
def code_literals(code: str) -> frozenset[str]:
    """Words of the string literals, and whole numbers of two digits and more, of the first 20,000 characters."""
    code = code[:_MOST_CHARACTERS]
    found = set(_NUMBER.findall(code))
    found |= {"1" + "0" * int(power) for power in _POWER.findall(code)}
    place, end = 0, len(code)
    while place < end and (match := _STRING.search(code, place)):
        place = match.end()
        if match[1]:
            closing = code.find(match[1], place)
            place = end if closing < 0 else closing + 3
            continue
        found.update(_WORD.findall(match[2] or match[3]))
    return frozenset(found)


@functools.lru_cache(maxsize=1 << 12)
def query_tokens(query: str) -> frozenset[str]:
    """Words as they are written, and whole numbers, of a query."""
    joined = _SEPARATED.sub("", query[:_MOST_CHARACTERS])
    powers = {"1" + "0" * int(power) for power in _CARET.findall(joined)}
    return frozenset(_QUERY_TOKEN.findall(joined)) | powers


def document_frequencies(queries: Iterable[str]) -> dict[str, int]:
    """How many of the distinct queries hold each token."""
    counts: dict[str, int] = {}
    for query in dict.fromkeys(queries):
        for token in query_tokens(query):
            counts[token] = counts.get(token, 0) + 1
    return counts


def literal_overlap(query: str, code: str, frequencies: Mapping[str, int], num_queries: int) -> float:
    """How far the literals of a program are named in the query, rare ones weighing more.

    Args:
        query, code (`str`): The texts.
        frequencies (`Mapping[str, int]`): Token -> number of reference queries that hold it.
        num_queries (`int`): How many reference queries there are.

    Returns:
        `float`: `(named - unnamed / 2) / (1 + named + unnamed)` over the inverse document frequencies of the literals,
        so between -1/2 and 1; a literal that no reference query holds counts only where the query names it. 0 for
        code without literals.
    """
    named = unnamed = 0.0
    tokens = query_tokens(query)
    for literal in code_literals(code):
        frequency = frequencies.get(literal, 0)
        weight = math.log((num_queries + 1) / (frequency + 1)) / math.log(num_queries + 2)
        if literal in tokens:
            named += weight
        elif frequency:
            unnamed += weight
    return (named - _UNNAMED_WEIGHT * unnamed) / (1 + named + unnamed)
