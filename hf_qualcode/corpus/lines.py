"""Text as the rest works on it: without lone surrogates, and cut into lines.

A line is text up to `\\n`, `\\r\\n` or `\\r`, as editors count and as `git` shows.
`str.splitlines` also breaks at form feeds, U+2028 and others, so it must not be used for line numbers.
"""


def normalize_newlines(text: str) -> str:
    """Returns the text with every line end written `\\n`."""
    if "\r" not in text:
        return text
    return text.replace("\r\n", "\n").replace("\r", "\n")


def split_lines(text: str) -> list[str]:
    """Returns the lines of a text, without their ends. A line end at the very end opens no further line."""
    lines = normalize_newlines(text).split("\n")
    if lines[-1] == "":
        lines.pop()
    return lines


def encodable(text: str) -> str:
    """Returns the text as UTF-8 can hold it: surrogate pairs joined to the characters they stand for, lone surrogates
    as U+FFFD."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
