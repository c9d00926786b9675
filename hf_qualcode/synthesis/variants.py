"""Variants: programs of a task that are good or bad in one dimension, as synthesis leaves them for training."""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from hf_qualcode.quality.guidelines import LEVELS
from hf_qualcode.types import QualcodeError


@dataclass(frozen=True, slots=True)
class Variant:
    """One program.

    Attributes:
        task_id (`str`): The task that it solves.
        dimension (`str`): The quality in which it is good or bad.
        level (`str`): `"high"` or `"low"`.
        group (`str`): The guideline group it was written after, for example `"speed/algorithm"`; `""` without one.
        query (`str`): What the task asks for.
        code (`str`): The program.
        source (`str`): What wrote it: a model's name, or `"rules"`.
        evidence (`Mapping`): JSON-able; what is known beyond the author's word, such as measured values.
    """

    task_id: str
    dimension: str
    level: str
    group: str
    query: str
    code: str
    source: str
    evidence: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self):
        if self.level not in LEVELS:
            raise ValueError(f"level of a variant is {self.level!r}, expected one of {', '.join(LEVELS)}")


_TEXTS = tuple(entry.name for entry in fields(Variant) if entry.name != "evidence")


def write_variants(path: str | Path, variants: Iterable[Variant]) -> int:
    """Writes JSON lines, all or nothing: until the last one is written, an old file stays what it is.

    Returns:
        `int`: How many there were.

    Raises:
        `QualcodeError`: It cannot be written.
    """
    path = Path(path)
    draft = path.with_name(f".{path.name}.{os.getpid()}.new")
    count = 0
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with draft.open("w", encoding="utf-8") as file:
            for variant in variants:
                # Escaped, for code may hold halves of surrogate pairs.
                file.write(json.dumps(asdict(variant)) + "\n")
                count += 1
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError as error:
        raise QualcodeError(f"{path} cannot be written ({error.strerror or error}); the old file, if any, is kept"
                            ) from error  # fmt: skip
    finally:
        draft.unlink(missing_ok=True)
    return count


def read_variants(path: str | Path) -> Iterator[Variant]:
    """Reads what `write_variants` wrote.

    Raises:
        `QualcodeError`: The file cannot be read, or a line is no variant; the message names it.
    """
    path = Path(path)
    try:
        with path.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    yield _variant(path, number, line)
    except (OSError, UnicodeDecodeError) as error:
        raise QualcodeError(f"{path} cannot be read ({error})") from error


def _variant(path: Path, number: int, line: str) -> Variant:
    try:
        row = json.loads(line)
        texts = {name: row[name] for name in _TEXTS}
        if not all(isinstance(text, str) for text in texts.values()):
            raise TypeError("a field that should be a text is not")
        return Variant(**texts, evidence=dict(row.get("evidence") or {}))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise QualcodeError(
            f"{path}, line {number} is no variant ({type(error).__name__}: {error}); expected an object with "
            f"{', '.join(_TEXTS)}"
        ) from error
