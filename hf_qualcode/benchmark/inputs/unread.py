"""What is said when a statement is not understood."""

from dataclasses import dataclass


_MAX_REASON = 200

class Unread(Exception):
    """Raised inside the reader where a part of a statement is not understood; its text is the reason."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why no inputs are generated for a statement.

    Attributes:
        kind (`str`): One of a few words to count by: "no format", "format", "constraint", "unbounded", "sample",
            "generation".
        reason (`str`): The part that was not understood, for people. It may quote the statement, at most 200
            characters of it.
    """

    kind: str
    reason: str

    def __post_init__(self) -> None:
        if len(self.reason) > _MAX_REASON:
            object.__setattr__(self, "reason", f"{self.reason[:_MAX_REASON]}...")
