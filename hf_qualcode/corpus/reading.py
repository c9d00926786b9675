"""File bytes to text.

The order of belief: a byte order mark, a Python coding cookie (PEP 263), UTF-8, UTF-8 with flaws, and only then a
guess. The text that comes out can always be encoded as UTF-8 again.
"""

import codecs
import re
from typing import NamedTuple

from hf_qualcode.corpus.lines import encodable
from hf_qualcode.types import QualcodeError


# UTF-32 first: its little-endian mark begins with that of UTF-16.
BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
COOKIE = re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)", re.ASCII)
# Text codecs that are not how anyone saves a file, and would turn backslashes in it into something else.
ODD_CODECS = {"idna", "punycode", "unicode_escape", "raw_unicode_escape", "undefined", "utf-7"}
GUESS_SAMPLE_BYTES = 100_000


class BinaryFileError(QualcodeError):
    """The bytes are not text."""


class Decoded(NamedTuple):
    """A file's text and the encoding it was read by; `"utf-8 (damaged)"` where some bytes had to be replaced."""

    text: str
    encoding: str


def decode(data: bytes, *, is_python: bool = False) -> Decoded:
    """Decodes the bytes of a source file.

    Args:
        data (`bytes`): The whole file.
        is_python (`bool`, *optional*, defaults to `False`): Follow a coding cookie in the first two lines.

    Returns:
        [`Decoded`]: Without the byte order mark.

    Raises:
        [`BinaryFileError`]: The file holds a NUL character.
    """
    for mark, encoding in BYTE_ORDER_MARKS:
        if data.startswith(mark):
            text = data[len(mark) :].decode(encoding, "replace")
            if "\0" in text:
                break
            return Decoded(text, encoding)
    if b"\0" in data:
        raise BinaryFileError("holds NUL bytes")
    if data.isascii():
        return Decoded(data.decode("ascii"), "utf-8")
    cookie = _cookie(data) if is_python else None
    if cookie not in (None, "utf-8"):
        try:
            return Decoded(encodable(data.decode(cookie)), cookie)
        except UnicodeError:
            pass  # the cookie is wrong; what follows does not need it
    try:
        return Decoded(data.decode("utf-8"), "utf-8")
    except UnicodeDecodeError:
        return _decode_flawed(data)


def _cookie(data: bytes) -> str | None:
    for line in data.split(b"\n", 2)[:2]:
        if match := COOKIE.match(line):
            try:
                codec = codecs.lookup(match[1].decode("ascii"))
            except LookupError:
                return None
            is_text = codec._is_text_encoding and codec.name.replace("-", "_") not in ODD_CODECS
            return codec.name if is_text else None
        if line.strip() and not line.lstrip().startswith(b"#"):
            return None
    return None


def _decode_flawed(data: bytes) -> Decoded:
    try:
        # Surrogates written as if they were characters (CESU-8, Java's modified UTF-8, Python's surrogatepass).
        return Decoded(encodable(data.decode("utf-8", "surrogatepass")), "utf-8 (surrogates)")
    except UnicodeDecodeError:
        pass
    text = data.decode("utf-8", "replace")
    num_bad = text.count("\ufffd")
    num_good = sum(character > "\x7f" for character in text) - num_bad
    if num_good >= num_bad:
        return Decoded(text, "utf-8 (damaged)")
    encoding = _guess(data)
    return Decoded(encodable(data.decode(encoding, "replace")), encoding)


def _guess(data: bytes) -> str:
    from charset_normalizer import from_bytes

    # Bytes outside ASCII are what tells encodings apart, so the sample starts near the first of them.
    first = next(position for position, byte in enumerate(data) if byte > 0x7F)
    start = data.rfind(b"\n", 0, first) + 1
    best = from_bytes(data[start : start + GUESS_SAMPLE_BYTES]).best()
    return best.encoding if best is not None and best.encoding != "ascii" else "latin-1"
