"""The answers of a run, kept as they came: nothing is asked for twice, and nothing that came is lost."""

import json
import logging
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hf_qualcode.synthesis.append_log import AppendLog
from hf_qualcode.synthesis.plan import RecordKey
from hf_qualcode.types import QualcodeError


logger = logging.getLogger(__name__)

RECORDS, MANIFEST = "records.jsonl", "manifest.json"


@dataclass(frozen=True, slots=True)
class Record:
    """What came of a request.

    Attributes:
        key (`RecordKey`): Of the request.
        answer (`str`): Raw text; `""` where there is none.
        finish_reason (`str`, *optional*): Why the model stopped, in the server's words.
        usage (`Mapping[str, int]`): Tokens, as they were told.
        error (`str`, *optional*): Why there is no answer, after all attempts.
    """

    key: RecordKey
    answer: str
    finish_reason: str | None
    usage: Mapping[str, int] = field(default_factory=dict)
    error: str | None = None


class RunStore:
    """Records in a folder: `records.jsonl`, and beside it `manifest.json`, which says what the run was told.

    Records of other keys (another model, other prompts) live side by side. One without an answer is asked for again
    when the run is started again; of several records of one key the last with an answer counts.

    Args:
        folder (`str` or `Path`): Made where it is not there.

    Raises:
        `QualcodeError`: Another process writes it, or it cannot be opened.
    """

    def __init__(self, folder: str | Path):
        self.folder = Path(folder)
        self._log = AppendLog(self.folder / RECORDS)
        self._answered: set[bytes] = set()
        self._failed: set[bytes] = set()
        try:
            for row in self._log:
                if isinstance(row.get("digest"), str):
                    self._note(row["digest"], row.get("error"))
        except (OSError, ValueError) as error:
            self._log.close()
            raise QualcodeError(
                f"{self._log.path} is no file of records ({error}); choose another --out"
            ) from error

    def known_digests(self) -> Iterator[str]:
        """Digests of all keys that have an answer."""
        return (digest.hex() for digest in self._answered)

    def failed_digests(self) -> Iterator[str]:
        """Digests of all keys that were asked for and have no answer."""
        return (digest.hex() for digest in self._failed)

    def append(self, record: Record) -> None:
        """Keeps a record.

        Raises:
            `QualcodeError`: As `AppendLog.append`.
        """
        digest = record.key.digest()
        row = {
            "digest": digest,
            "key": record.key.to_dict(),
            "answer": record.answer,
            "finish_reason": record.finish_reason,
            "usage": dict(record.usage),
            "error": record.error,
        }
        self._log.append(row)
        self._note(digest, record.error)

    def records(self) -> Iterator[Record]:
        """All records, one at a time, in the order in which they came; a key that failed and was asked again has
        several."""
        for row in self._log:
            try:
                yield Record(
                    RecordKey.of(row["key"]), str(row["answer"]), row.get("finish_reason"), row.get("usage") or {},
                    row.get("error"),
                )  # fmt: skip
            except (KeyError, TypeError) as error:
                raise QualcodeError(
                    f"{self._log.path} holds a line that is no record ({type(error).__name__}: {error}); remove it"
                ) from error

    def _note(self, digest: str, error: str | None) -> None:
        known = bytes.fromhex(digest)
        if error is None:
            self._answered.add(known)
            self._failed.discard(known)
        elif known not in self._answered:
            self._failed.add(known)

    def write_manifest(self, content: Mapping[str, Any]) -> None:
        """Writes what the run was told and what came of it; the old one stays until the new one is whole.

        Raises:
            `QualcodeError`: It cannot be written.
        """
        path = self.folder / MANIFEST
        draft = path.with_name(f".{path.name}.new")
        try:
            with draft.open("w", encoding="utf-8") as file:
                file.write(json.dumps(content, indent=2, sort_keys=True) + "\n")
                file.flush()
                os.fsync(file.fileno())
            draft.replace(path)
        except OSError as error:
            raise QualcodeError(f"{path} cannot be written ({error.strerror or error})") from error

    def close(self) -> None:
        """Lets others write the folder."""
        self._log.close()

    def __enter__(self) -> "RunStore":
        return self

    def __exit__(self, *_) -> None:
        self.close()
