"""SHA-256 of large files, remembered by size and time of change so that the second time costs nothing."""

import hashlib
import json
import logging
import os
import tempfile
from pathlib import Path

from hf_qualcode.hub import cache_dir


logger = logging.getLogger(__name__)

# Below this a digest is faster to compute than to look up.
_REMEMBER_FROM = 4 * 2**20


def file_digest(path: Path) -> str:
    """SHA-256 of a file's bytes.

    Args:
        path (`Path`):
            File to read. For files of 4 MiB and more the digest is remembered in
            `cache_dir()/digests`, keyed by the resolved path and valid for one (size, mtime). A cache that cannot be
            written only makes the next call slower.

    Returns:
        `str`: 64 hexadecimal digits.

    Raises:
        `OSError`: If the file cannot be read.
    """
    path = path.resolve()
    state = path.stat()
    if state.st_size < _REMEMBER_FROM:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    stamp = [state.st_size, state.st_mtime_ns]
    record = cache_dir() / "digests" / f"{hashlib.sha256(os.fsencode(path)).hexdigest()[:32]}.json"
    remembered = _read_record(record)
    if remembered is not None and remembered.get("stamp") == stamp:
        return remembered["sha256"]
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    _write_record(record, {"path": str(path), "stamp": stamp, "sha256": digest})
    return digest


def _read_record(record: Path) -> dict | None:
    try:
        content = json.loads(record.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) and isinstance(content.get("sha256"), str) else None


def _write_record(record: Path, content: dict) -> None:
    # Written aside then renamed: a reader in another process sees the old record or the new one, never half of it.
    try:
        record.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", errors="backslashreplace", dir=record.parent, suffix=".tmp", delete=False
        ) as file:
            json.dump(content, file)
        Path(file.name).replace(record)
    except OSError as error:
        logger.debug("digest of %s not remembered: %s", content["path"], error)
