"""One spelling for the signs of formulas, which statements write in LaTeX, in Unicode or in plain letters."""

import re


_SPELLINGS = (
    (re.compile(r"(?<=\d)\s*\\[ ,]\s*(?=\d{3}(?!\d))|(?<=\d)\{,\}(?=\d{3})"), ""),  # 10 \ 000 and 200{,}000
    (re.compile(r"\\(?:leqslant|leq|le)(?![a-z])|[≤≦⩽]"), " <= "),
    (re.compile(r"\\(?:geqslant|geq|ge)(?![a-z])|[≥≧⩾]"), " >= "),
    (re.compile(r"\\lt(?![a-z])|＜"), " < "),
    (re.compile(r"\\gt(?![a-z])|＞"), " > "),
    (re.compile(r"\\(?:neq|ne)(?![a-z])|≠"), " != "),
    (re.compile(r"\\(?:times|cdot)(?![a-z])|[×·]"), " * "),
    (re.compile(r"\\vdots|[⋮︙]"), " : "),
    (re.compile(r"\\(?:ldots|dots|cdots)(?![a-z])|[…⋯]+|\.\.+"), " ... "),
    (re.compile(r"\\(?:left|right|displaystyle|mathrm|rm|text)(?![a-z])"), ""),
    (re.compile(r"\\(min|max|alpha|beta)(?![a-z])"), r"\1"),
    (re.compile(r"\\[ ,;:!]|\\quad|[ 　]"), " "),
    (re.compile(r"[−－–]"), "-"),
    (re.compile(r"[⁄÷]"), "/"),
    (re.compile(r"α"), "alpha"),
    (re.compile(r"\\(?=[|{}_])"), ""),
)
_BLANKS = re.compile(r"[ \t]+")


def plain_formulas(line: str) -> str:
    """`line` with formulas in plain signs (`<=`, `!=`, `*`, `...`) and single blanks."""
    for pattern, replacement in _SPELLINGS:
        line = pattern.sub(replacement, line)
    return _BLANKS.sub(" ", line).strip()
