"""Texts to words and programs to tokens, and runs of n of them to 64-bit numbers, for looking up overlaps.

The numbers are the same on every machine. They only find candidates: whoever reports an overlap compares the words.
"""

import hashlib
import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np


QUERY, CODE = "query", "code"
KINDS = (QUERY, CODE)

# Scripts without spaces between words: each character is a word.
_UNSPACED = "\u2e80-\u2fff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_WORD = re.compile(rf"[{_UNSPACED}]|(?:(?![{_UNSPACED}])[^\W_])+")
_ASCII_WORD = re.compile(r"[a-z0-9]+")

# A comment is matched outside the group. A name comes first, for most tokens are names; one that a quote follows may
# be a string's prefix. What is not closed ends with its line, in triple quotes with the text, so broken programs have
# tokens too.
_ESCAPED = r"\\(?:[\s\S]|\Z)"
_CODE_TOKEN = re.compile(
    rf"""\#[^\n]*|(
    [^\W\d]\w*+(?!["'])
    |[bBfFrRtTuU]{{0,2}}(?:
        \"\"\"(?:[^\\]|{_ESCAPED})*?(?:\"\"\"|\Z)|'''(?:[^\\]|{_ESCAPED})*?(?:'''|\Z)
        |"(?:[^"\\\n]|{_ESCAPED})*"?|'(?:[^'\\\n]|{_ESCAPED})*'?)
    |[^\W\d]\w*
    |0[xXoObB][0-9a-fA-F_]+|(?:[0-9][0-9_]*\.?[0-9_]*|\.[0-9][0-9_]*)(?:[eE][+-]?[0-9][0-9_]*)?[jJ]?
    |\*\*=?|//=?|>>=?|<<=?|->|:=|\.\.\.|[-+*/%&|^@=<>!]=?
    |[^\s\\]
    )""",
    re.VERBOSE,
)
_NUMBER, _STRING = "0", '""'

# A bound on what is remembered keeps memory flat over any number of texts.
_MAX_REMEMBERED = 500_000
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


def query_words(text: str) -> list[str]:
    """The words of a text, in order: lower case, one spelling for what Unicode holds compatible, numbers included.

    Words are runs of letters and digits. Of Chinese and Japanese, which put no spaces, each character is a word.
    """
    if text.isascii():
        return _ASCII_WORD.findall(text.lower())
    return _WORD.findall(unicodedata.normalize("NFKC", text).casefold())


def code_tokens(code: str) -> list[str]:
    """The tokens of a Python program, in order: names and signs kept, any number `0`, any string `""`.

    Comments, line ends and indentation are none. Every text has tokens, a Python program or not: what no rule knows is
    a token a character, and a string that is not closed ends with its line (in triple quotes, with the text).
    """
    return [_normal_token(token) for token in _raw_tokens(code)]


def _raw_tokens(code: str) -> list[str]:
    return [token for token in _CODE_TOKEN.findall(code) if token]


def _normal_token(token: str) -> str:
    if '"' in token or "'" in token:
        return _STRING
    if "0" <= token[0] <= "9" or (token[0] == "." and token not in (".", "...")):
        return _NUMBER
    return token if token.isascii() else unicodedata.normalize("NFKC", token)


class _Hashes(dict):
    """Raw token -> 64-bit number of its normal form, computed on first sight."""

    def __init__(self, normal_form: Callable[[str], str]):
        super().__init__()
        self._normal_form = normal_form

    def __missing__(self, token: str) -> int:
        if len(self) >= _MAX_REMEMBERED:
            self.clear()
        text = self._normal_form(token).encode("utf-8", "surrogatepass")
        number = self[token] = int.from_bytes(hashlib.blake2b(text, digest_size=8).digest())
        return number


@dataclass(frozen=True)
class Rule:
    """How texts of one kind become tokens."""

    tokens: Callable[[str], list[str]]
    raw_tokens: Callable[[str], list[str]]
    hashes: _Hashes


def rule_for(kind: str) -> Rule:
    """The rule of `"query"` or `"code"`. It remembers the numbers of tokens it has seen."""
    if kind == QUERY:
        return Rule(query_words, query_words, _Hashes(str))
    return Rule(code_tokens, _raw_tokens, _Hashes(_normal_token))


def ngram_hashes(texts: Sequence[str], rule: Rule, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The numbers of all n-grams of several texts. A text of fewer than n tokens has one, of all its tokens.

    Args:
        texts (`Sequence[str]`): Any texts.
        rule (`Rule`): How they become tokens.
        n (`int`): Tokens a run, at least 1.

    Returns:
        `tuple[np.ndarray, np.ndarray, np.ndarray]`: uint64 numbers, int64 which text each is of, and int64 at which
        token of it the run begins; in the order of texts and tokens.
    """
    hashes, numbers, lengths = rule.hashes, [], []
    for text in texts:
        before = len(numbers)
        numbers.extend([hashes[token] for token in rule.raw_tokens(text)])
        lengths.append(len(numbers) - before)
    tokens, lengths = np.array(numbers, dtype=np.uint64), np.array(lengths, dtype=np.int64)
    ends = np.cumsum(lengths)
    starts = ends - lengths
    short = np.flatnonzero((lengths > 0) & (lengths < n))
    # Windows over all texts in a row; those that leave their text are taken out again.
    windows = _windows(tokens, n)
    owner = np.repeat(np.arange(len(texts)), lengths)[: len(windows)]
    inside = np.arange(len(windows)) + n <= ends[owner]
    places = np.flatnonzero(inside)
    whole = np.array([_whole(tokens[starts[row] : ends[row]]) for row in short], dtype=np.uint64)
    found = np.concatenate([windows[places], whole])
    rows = np.concatenate([owner[places], short])
    offsets = np.concatenate([places - starts[owner[places]], np.zeros(len(short), dtype=np.int64)])
    order = np.argsort(rows, kind="stable")
    return found[order], rows[order], offsets[order]


def _windows(tokens: np.ndarray, n: int) -> np.ndarray:
    """A polynomial of each run of n tokens modulo 2^64."""
    if len(tokens) < n:
        return np.empty(0, dtype=np.uint64)
    size = len(tokens) - n + 1
    total = np.zeros(size, dtype=np.uint64)
    for place in range(n):
        total *= _MULTIPLIER
        total += tokens[place : place + size]
    return total


def _whole(tokens: np.ndarray) -> np.uint64:
    """Like the number of a run, and never taken for one of another length."""
    text = b"whole %d" % len(tokens)
    return _windows(tokens, len(tokens))[0] ^ np.uint64(int.from_bytes(hashlib.blake2b(text, digest_size=8).digest()))


def find_run(tokens: Sequence[str], run: Sequence[str], n: int) -> bool:
    """Whether `run` is an n-gram of `tokens`, or all of them where both are shorter than n."""
    if len(run) < n:
        return list(tokens) == list(run)
    return any(tokens[start : start + n] == run for start in range(len(tokens) - n + 1))
