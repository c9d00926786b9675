"""Lines of a pipe in windows: what is there at once together, and nothing kept back from a reader who waits for it."""

import os
import select
from collections.abc import Iterator
from typing import NamedTuple


_CHUNK = 1 << 20
# Bytes that are gathered before a window is worked on, if they come without a pause.
_WINDOW = 1 << 23
# A writer that is as fast as a pipe has its next bytes there within this time.
_PAUSE_S = 0.01
# A longer line is not kept in memory.
LONGEST_LINE = 1 << 28


class Line(NamedTuple):
    """One line of the input.

    Attributes:
        number (`int`): 1-based.
        content (`bytes`, *optional*): Without its end; `None` where it is longer than `LONGEST_LINE`.
    """

    number: int
    content: bytes | None


class _Splitter:
    """Cuts a stream into lines, whatever chunks it comes in. Each byte is looked at once."""

    def __init__(self):
        self._begun: list[bytes] = []
        self._length = 0
        self._number = 0

    def feed(self, chunk: bytes) -> list[Line]:
        *ends, rest = chunk.split(b"\n")
        lines = [self._finish(end) for end in ends]
        self._begin(rest)
        return lines

    def last(self) -> list[Line]:
        return [self._finish(b"")] if self._length else []

    def _begin(self, part: bytes) -> None:
        self._length += len(part)
        if self._length > LONGEST_LINE:
            self._begun = []
        elif part:
            self._begun.append(part)

    def _finish(self, end: bytes) -> Line:
        self._begin(end)
        self._number += 1
        content = b"".join(self._begun) if self._length <= LONGEST_LINE else None
        self._begun, self._length = [], 0
        return Line(self._number, content)


def line_windows(descriptor: int) -> Iterator[list[Line]]:
    """Windows of lines, each as soon as the writer pauses or 8 MiB are there. The last line needs no end.

    Args:
        descriptor (`int`): Of a pipe, file or terminal. Read past Python's buffers, which would wait to be full.
    """
    splitter = _Splitter()
    window: list[Line] = []
    size = 0
    while True:
        select.select([descriptor], [], [])  # whoever shares the pipe may have made it one that does not wait
        chunk = os.read(descriptor, _CHUNK)
        if not chunk:
            break
        window += splitter.feed(chunk)
        size += len(chunk)
        if window and (size >= _WINDOW or not _has_more(descriptor)):
            yield window
            window, size = [], 0
    window += splitter.last()
    if window:
        yield window


def _has_more(descriptor: int) -> bool:
    return bool(select.select([descriptor], [], [], _PAUSE_S)[0])
