"""What became of each file: the closed set of outcomes, and the report that counts them."""

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple


INDEXED = "indexed"
REASONS = {
    "ignored": "hidden by an ignore rule, or a folder that is never searched (.git, node_modules, environments)",
    "unsupported": "in no language that is known",
    "symlink": "a symbolic link; what it points to is seen where it is",
    "special": "a pipe, socket or device",
    "too-large": "over the size limit",
    "empty": "nothing but white space",
    "no-code": "nothing but comments and imports",
    "binary": "not text",
    "generated": "written by a program",
    "malformed": "a notebook that cannot be read",
    "too-slow": "stopped at the parser's limits",
    "failed": "reading it met an error in this package",
    "crashed": "reading it ended the process that did",
    "unreadable": "the system refused to read it",
    "vanished": "gone before it was read",
}
# What these say holds as long as the file's bytes do; the others are asked anew on each scan. That a file was too slow
# or brought its process down may be the machine's doing, so an update asks again, as a fresh index would.
OUTCOMES_OF_CONTENT = {
    INDEXED,
    "unsupported",
    "empty",
    "no-code",
    "binary",
    "generated",
    "malformed",
}
MAX_EXAMPLES = 5


class FileRecord(NamedTuple):
    """A file that a scan saw and what became of it.

    Attributes:
        root (`int`): Position of its root among those scanned.
        path (`str`): POSIX path relative to the root; bytes that are not UTF-8 are written `\\xff`. Folders that were
            not entered end in `/`.
        size, mtime_ns, inode (`int`): As the file system gave them, 0 where it was not asked.
        sha256 (`str`): Of the bytes, `""` where they were not read.
        language (`str`): Module name in `hf_qualcode.languages`, `""` where unknown.
        outcome (`str`): `"indexed"` or a key of `REASONS`.
        detail (`str`): More on the outcome; for an indexed file its encoding, where not UTF-8, and syntax errors.
        num_units (`int`): Units found.
    """

    root: int
    path: str
    size: int = 0
    mtime_ns: int = 0
    inode: int = 0
    sha256: str = ""
    language: str = ""
    outcome: str = INDEXED
    detail: str = ""
    num_units: int = 0


@dataclass
class ScanReport:
    """Counts what a scan saw. Every file is either indexed or under one reason, so the counts add up.

    Attributes:
        counts (`Counter`): Files by outcome.
        languages (`Counter`): Indexed files by language.
        examples (`dict[str, list[str]]`): Up to `MAX_EXAMPLES` lines of path and detail for each reason.
        num_units (`int`): Units in the indexed files.
        num_flawed (`int`): Indexed files with syntax errors or an encoding other than UTF-8.
    """

    counts: Counter = field(default_factory=Counter)
    languages: Counter = field(default_factory=Counter)
    examples: dict[str, list[str]] = field(default_factory=dict)
    num_units: int = 0
    num_flawed: int = 0

    def add(self, record: FileRecord) -> None:
        """Counts one file."""
        self.counts[record.outcome] += 1
        if record.outcome == INDEXED:
            self.languages[record.language] += 1
            self.num_units += record.num_units
            self.num_flawed += bool(record.detail)
            return
        examples = self.examples.setdefault(record.outcome, [])
        if len(examples) < MAX_EXAMPLES:
            examples.append(f"{record.path}: {record.detail}" if record.detail else record.path)

    @property
    def num_seen(self) -> int:
        """Files and unentered folders in all."""
        return self.counts.total()

    @property
    def num_indexed(self) -> int:
        """Files whose units were found."""
        return self.counts[INDEXED]

    def to_dict(self) -> dict:
        """Returns the report as plain JSON values: `seen` equals `indexed` plus the counts under `skipped`."""
        return {
            "seen": self.num_seen,
            "indexed": self.num_indexed,
            "units": self.num_units,
            "flawed": self.num_flawed,
            "languages": dict(sorted(self.languages.items())),
            "skipped": {
                reason: {"count": self.counts[reason], "examples": self.examples[reason]}
                for reason in REASONS
                if self.counts[reason]
            },
        }
