"""A submission's bytes as text, and the digests that tell texts apart."""

import codecs
import hashlib
import io
import tokenize

from hf_qualcode.corpus.lines import normalize_newlines
from hf_qualcode.corpus.reading import ODD_CODECS


class UndecodableError(ValueError):
    """The bytes are not text in UTF-8 or in the encoding they declare."""


def decode_source(data: bytes) -> str:
    """Decodes a Python file as Python does, and never guesses.

    Args:
        data (`bytes`): The whole file.

    Returns:
        `str`: The text without byte order mark, line ends written `\\n`. Can be encoded as UTF-8. A coding cookie
        stays where it was, though it may not be true of the text any more.

    Raises:
        [`UndecodableError`]: Neither UTF-8 nor what a coding cookie in the first two lines says.
    """
    if data.startswith(codecs.BOM_UTF8):
        data, encoding = data[len(codecs.BOM_UTF8) :], "utf-8"
    elif data.isascii() and b"coding" not in data[:1000]:
        encoding = "ascii"
    else:
        encoding = _declared_encoding(data)
    try:
        text = data.decode(encoding)
        text.encode("utf-8")  # some codecs can give half a character
    except (UnicodeError, LookupError) as error:
        raise UndecodableError(str(error)) from error
    return normalize_newlines(text)


def _declared_encoding(data: bytes) -> str:
    try:
        encoding = tokenize.detect_encoding(io.BytesIO(data).readline)[0]
        codec = codecs.lookup(encoding).name
        # Programs are ASCII at least where their syntax is. What reads ASCII as something else (UTF-16, EBCDIC) is
        # refused by Python too, and some odd codecs take quadratic time.
        is_usable = not {codec, codec.replace("-", "_")} & ODD_CODECS and b"#c".decode(encoding) == "#c"
    except (SyntaxError, UnicodeError, LookupError) as error:
        raise UndecodableError(str(error)) from error
    if not is_usable:
        raise UndecodableError(f"{encoding} is no encoding of Python files")
    return encoding


def digest_of(text: str) -> str:
    """Returns the SHA-256 of a text, 64 hexadecimal digits."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()
