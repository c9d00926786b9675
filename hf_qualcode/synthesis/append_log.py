"""A file of JSON lines that only grows, and survives whatever ends its writer: SIGKILL, a full disk, a power cut."""

import json
import logging
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from hf_qualcode.types import QualcodeError


logger = logging.getLogger(__name__)


class AppendLog:
    """JSON objects, one a line.

    A line goes to the system in one write, so a killed process loses at most the line it was writing; a power cut may
    lose those of the last seconds. What is left of a cut line is taken off when the file is opened next. A line that
    is damaged in some other place is left where it is, named once, and read as if it were not there.

    Args:
        path (`Path`): The file; made, with its folder, where it is not there.

    Raises:
        `QualcodeError`: Another process writes it, or it cannot be opened.
    """

    def __init__(self, path: str | Path):
        self.path = Path(path)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._lock = FileLock(self.path.with_name(f".{self.path.name}.lock"))
            self._lock.acquire(blocking=False)
        except Timeout as error:
            raise QualcodeError(f"{self.path} is being written by another process; wait for it, or stop it") from error
        except OSError as error:
            raise QualcodeError(f"{self.path} cannot be opened ({error.strerror or error})") from error
        try:
            self._file = self.path.open("ab+", buffering=0)
            self._cut_off_the_end()
        except OSError as error:
            self._lock.release()
            raise QualcodeError(f"{self.path} cannot be opened ({error.strerror or error})") from error

    def append(self, row: Mapping[str, Any]) -> None:
        """Adds a line, which outlives this process when the call returns.

        Raises:
            `QualcodeError`: It cannot be written, for the disk is full, say. What was there before is whole.
        """
        line = json.dumps(row, ensure_ascii=True).encode() + b"\n"
        end = os.fstat(self._file.fileno()).st_size
        written = 0
        try:
            while written < len(line):
                written += self._file.write(line[written:])
        except OSError as error:
            os.ftruncate(self._file.fileno(), end)
            raise QualcodeError(
                f"{self.path} cannot be written ({error.strerror or error}); what is in it is kept: make room and run "
                "the same command again"
            ) from error

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """All lines, one at a time."""
        damaged: list[int] = []
        with self.path.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                try:
                    row = json.loads(line)
                except (ValueError, RecursionError):
                    row = None
                if isinstance(row, dict):
                    yield row
                else:
                    damaged.append(number)
        if damaged:
            logger.warning(
                "%s: %d lines are damaged (the first is line %d) and count as missing",
                self.path, len(damaged), damaged[0],
            )  # fmt: skip

    def close(self) -> None:
        """Lets others write the file."""
        if not self._file.closed:
            os.fsync(self._file.fileno())
            self._file.close()
        self._lock.release()

    def __enter__(self) -> "AppendLog":
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def _cut_off_the_end(self) -> None:
        """Takes off what stands behind the last line end."""
        descriptor = self._file.fileno()
        end = size = os.fstat(descriptor).st_size
        while end > 0:
            start = max(0, end - (1 << 16))
            place = os.pread(descriptor, end - start, start).rfind(b"\n")
            if place >= 0:
                end = start + place + 1
                break
            end = start
        if end < size:
            os.ftruncate(descriptor, end)
