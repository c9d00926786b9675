"""The language a text is written in, offline and always the same for the same text."""

import re
import unicodedata
from functools import cache


UNDETERMINED = "und"

# A detector needs no more than this of a text.
_MAX_WORDS = 5_000
# Formulas would be judged as words otherwise: LaTeX commands, and names with indices such as `x_{ij}` or `A_i`.
_FORMULA = re.compile(r"\\[a-zA-Z]+|\w*[_^]\{[^{}]*\}\w*|\w*[_^]\w+|\w*\d\w*")
_WORD = re.compile(r"[^\W\d_]{2,}")
# English pages name things in other scripts here and there; more than this share of letters is another language.
_MAX_FOREIGN_LETTERS = 0.1


def language_of_text(text: str) -> str:
    """The ISO 639-1 code of the language most likely to be that of `text`'s prose, or "und" where it has no words.

    Words alone are judged: numbers, signs and formulas are not language. A few words are too few for a sure answer.
    """
    words = _words(text)
    if not words:
        return UNDETERMINED
    return _identifier().classify(" ".join(words))[0]


def is_english(text: str) -> bool:
    """Whether `text` is English: so the detector says, and nine of ten letters are Latin.

    The second rule takes out pages that are English in part, such as a Japanese one with an English summary.
    """
    words = _words(text)
    letters = sum(map(len, words))
    foreign = sum(not _is_latin(letter) for word in words for letter in word if letter > "\x7f")
    return letters > 0 and foreign <= _MAX_FOREIGN_LETTERS * letters and language_of_text(text) == "en"


def _words(text: str) -> list[str]:
    words = []
    for match in _WORD.finditer(_FORMULA.sub(" ", text)):
        words.append(match.group()[:50])
        if len(words) == _MAX_WORDS:
            break
    return words


def _is_latin(letter: str) -> bool:
    """Latin letters, and what formulas borrow from Greek and from mathematical alphabets."""
    return unicodedata.name(letter, "").startswith(("LATIN", "GREEK", "MATHEMATICAL", "SCRIPT", "FULLWIDTH LATIN"))


@cache
def _identifier():
    """py3langid's model, loaded from the installed package (about a second). Classifying changes nothing in it."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
