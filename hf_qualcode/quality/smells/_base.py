"""What the engines share: from findings to rule ids, and the end of a `with` block."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Self

from hf_qualcode.quality.smells import Finding


Progress = Callable[[str, int, int], None]


class BaseEngine(ABC):
    """A `SmellEngine` from its `examine`."""

    @abstractmethod
    def examine(self, texts: Sequence[str], progress: Progress | None = None) -> list[tuple[Finding, ...] | None]:
        """See `SmellEngine.examine`."""

    def analyse(self, texts: Sequence[str], progress: Progress | None = None) -> list[tuple[str, ...] | None]:
        """See `SmellEngine.analyse`."""
        return [
            None if findings is None else tuple(sorted(finding.rule for finding in findings))
            for findings in self.examine(texts, progress)
        ]

    def close(self) -> None:  # noqa: B027 (most engines hold nothing open)
        """Nothing to end, unless an engine says otherwise."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_) -> None:
        self.close()


def program_bytes(text: str) -> bytes | None:
    """A program as UTF-8 without byte order mark, `None` where it is no Unicode text (lone surrogates)."""
    try:
        return text.removeprefix("\ufeff").encode()
    except UnicodeEncodeError:
        return None
