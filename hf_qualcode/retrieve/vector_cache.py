"""Vectors computed on demand, kept beside a frozen index so that the next search finds them.

A cache in the strict sense: it may be deleted at any time, may be damaged or unwritable, and nothing depends on what
it holds. One SQLite file serves any number of encoders; a vector is found only under the encoder that made it.
"""

import logging
import sqlite3
import struct
import threading
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np


logger = logging.getLogger(__name__)

_SCHEMA_VERSION = 1
_SCHEMA = f"""
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS encoders (id INTEGER PRIMARY KEY, fingerprint TEXT, dimension INTEGER,
    UNIQUE (fingerprint, dimension));
CREATE TABLE IF NOT EXISTS vectors (id INTEGER PRIMARY KEY AUTOINCREMENT, encoder INTEGER, key BLOB, vector BLOB,
    UNIQUE (encoder, key));
PRAGMA user_version = {_SCHEMA_VERSION};
COMMIT;
"""
# Primary result codes that mean a damaged or foreign file; others (locked, read-only, disk full) leave it sound.
_DAMAGE = {sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT}
# SQLite's oldest limit on the parameters of one statement is 999.
_KEYS_A_QUERY = 500
_ROWS_A_TRANSACTION = 4096
_SECONDS_TO_WAIT = 3


class _ForeignLayoutError(sqlite3.DatabaseError):
    """A sound database, but not one that this version reads."""


class VectorCache:
    """Vectors of one encoder, by the hash of their text.

    Each stored vector carries a checksum, so a damaged one counts as absent. A damaged file is dropped and made anew;
    where nothing can be written, vectors are kept in memory for the life of the process. Each is logged in one line.
    Any number of processes and threads may use one file at once.

    Args:
        path (`Path`):
            The SQLite file. Made on first use, with its folder.
        fingerprint (`str`):
            `Encoder.fingerprint` of the encoder the vectors come from.
        dimension (`int`):
            Number of components of a vector.
        max_vectors (`int`, *optional*, defaults to 200,000):
            How many vectors the file holds (300 MB at 384 components); beyond that the oldest go. A tenth of it bounds
            what is kept in memory where the file cannot be written.
    """

    def __init__(self, path: Path, fingerprint: str, dimension: int, *, max_vectors: int = 200_000):
        self.path = Path(path)
        self.fingerprint = fingerprint
        self.dimension = dimension
        self.max_vectors = max_vectors
        self._lock = threading.Lock()
        self._memory: dict[bytes, np.ndarray] = {}
        self._connection: sqlite3.Connection | None = None
        self._inode: int | None = None
        self._encoder_id: int | None = None
        self._writable = True
        self._complained = False

    def get(self, keys: Sequence[bytes]) -> tuple[np.ndarray, np.ndarray]:
        """Look vectors up.

        Args:
            keys (`Sequence[bytes]`): Hashes of texts, in any order, duplicates allowed.

        Returns:
            `tuple`: `found`, bool `[num_keys]`, and `vectors`, float32 `[num_keys, dimension]`, zero where absent.
        """
        found = np.zeros(len(keys), dtype=bool)
        vectors = np.zeros((len(keys), self.dimension), dtype=np.float32)
        if not keys:
            return found, vectors
        unique = list(dict.fromkeys(keys))
        with self._lock:
            stored = {key: self._memory[key] for key in unique if key in self._memory}
            stored |= self._attempt(lambda: self._select([key for key in unique if key not in stored])) or {}
        for row, key in enumerate(keys):
            vector = stored.get(key)
            if vector is not None:
                found[row] = True
                vectors[row] = vector
        return found, vectors

    def put(self, keys: Sequence[bytes], vectors: np.ndarray) -> None:
        """Keep vectors. A key that is kept already stays as it is.

        Args:
            keys (`Sequence[bytes]`): Hashes of the texts.
            vectors (`np.ndarray`): float32 `[num_keys, dimension]`.

        Raises:
            `ValueError`: If the shape is another one, or a value is not finite.
        """
        vectors = np.ascontiguousarray(vectors, dtype=np.float32)
        if vectors.shape != (len(keys), self.dimension):
            raise ValueError(f"vectors of shape {vectors.shape}, expected {(len(keys), self.dimension)}")
        if not np.isfinite(vectors).all():
            raise ValueError("vectors hold NaN or infinite values; such an encoder output must not be kept")
        if not len(keys):
            return
        with self._lock:
            if self._attempt(lambda: self._insert(keys, vectors)) is None:
                self._remember(keys, vectors)

    def close(self) -> None:
        """Close the file. The cache may be used again afterwards."""
        with self._lock:
            self._disconnect()

    def _attempt(self, action):
        """Run `action` on the open file; once more after a damaged file was dropped. `None` when there is no file."""
        for attempt in range(2):
            try:
                self._connect()
                return None if self._connection is None else action()
            except (sqlite3.Error, OSError) as error:
                self._disconnect()
                if attempt or not _is_damage(error) or not self._drop():
                    self._complain(f"vector cache {self.path} cannot be used ({error}); vectors are kept in memory")
                    return None
                logger.warning("vector cache %s was damaged (%s): dropped and made anew", self.path, error)
        return None

    def _connect(self) -> None:
        if self._connection is not None and (not self._writable or self._inode == _inode_of(self.path)):
            return
        self._disconnect()  # the file was deleted or replaced since it was opened
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._open(f"{self.path.absolute().as_uri()}?mode=rwc")
            if self._is_empty():
                self._connection.executescript(_SCHEMA)
            self._writable = True
        except (OSError, sqlite3.Error) as error:
            if _is_damage(error):
                raise
            self._disconnect()
            self._complain(f"vector cache {self.path} cannot be written ({error}); new vectors are kept in memory")
            if not self.path.is_file():
                return
            self._open(f"{self.path.absolute().as_uri()}?mode=ro")
            self._writable = False
            if self._is_empty():
                self._disconnect()
                return
        version = self._connection.execute("PRAGMA user_version").fetchone()[0]
        if version != _SCHEMA_VERSION:
            raise _ForeignLayoutError(f"its layout version is {version}, not {_SCHEMA_VERSION}")
        self._inode = _inode_of(self.path)

    def _open(self, uri: str) -> None:
        # Rollback journal, not WAL: it needs no side files to be read, so read-only folders and deletion are safe.
        self._connection = sqlite3.connect(
            uri, uri=True, timeout=_SECONDS_TO_WAIT, isolation_level=None, check_same_thread=False
        )
        self._connection.execute("PRAGMA cache_size = -8192")

    def _is_empty(self) -> bool:
        # Asked before the version is: tables and version appear in one transaction of whichever process is first.
        return self._connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is None

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = self._inode = self._encoder_id = None

    def _drop(self) -> bool:
        try:
            self.path.unlink(missing_ok=True)
            self.path.with_name(f"{self.path.name}-journal").unlink(missing_ok=True)
        except OSError:
            return False
        return True

    def _encoder(self) -> int | None:
        if self._encoder_id is None:
            row = self._connection.execute(
                "SELECT id FROM encoders WHERE fingerprint = ? AND dimension = ?", (self.fingerprint, self.dimension)
            ).fetchone()
            self._encoder_id = row[0] if row else None
        return self._encoder_id

    def _select(self, keys: list[bytes]) -> dict[bytes, np.ndarray]:
        stored = {}
        encoder = self._encoder()
        if encoder is None:
            return stored
        for start in range(0, len(keys), _KEYS_A_QUERY):
            chunk = keys[start : start + _KEYS_A_QUERY]
            marks = ",".join("?" * len(chunk))
            query = f"SELECT key, vector FROM vectors WHERE encoder = ? AND key IN ({marks})"
            for key, blob in self._connection.execute(query, (encoder, *chunk)):
                vector = _unpack(blob, self.dimension)
                if vector is not None:
                    stored[key] = vector
        return stored

    def _insert(self, keys: Sequence[bytes], vectors: np.ndarray) -> bool | None:
        if not self._writable:
            return None
        connection = self._connection
        if self._encoder() is None:
            connection.execute(
                "INSERT OR IGNORE INTO encoders (fingerprint, dimension) VALUES (?, ?)",
                (self.fingerprint, self.dimension),
            )
        encoder = self._encoder()
        for start in range(0, len(keys), _ROWS_A_TRANSACTION):
            stop = start + _ROWS_A_TRANSACTION
            rows = (
                (encoder, key, _pack(vector))
                for key, vector in zip(keys[start:stop], vectors[start:stop], strict=True)
            )
            connection.execute("BEGIN IMMEDIATE")
            try:
                connection.executemany("INSERT OR IGNORE INTO vectors (encoder, key, vector) VALUES (?, ?, ?)", rows)
                connection.execute(
                    "DELETE FROM vectors WHERE id <= (SELECT max(id) FROM vectors) - ?", (self.max_vectors,)
                )
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
        return True

    def _remember(self, keys: Sequence[bytes], vectors: np.ndarray) -> None:
        for key, vector in zip(keys, vectors, strict=True):
            self._memory.setdefault(bytes(key), vector.copy())
        while len(self._memory) > self.max_vectors // 10:
            del self._memory[next(iter(self._memory))]

    def _complain(self, message: str) -> None:
        if not self._complained:
            logger.warning(message)
        self._complained = True


def _is_damage(error: Exception) -> bool:
    if isinstance(error, _ForeignLayoutError):
        return True
    return isinstance(error, sqlite3.DatabaseError) and (getattr(error, "sqlite_errorcode", 0) & 0xFF) in _DAMAGE


def _inode_of(path: Path) -> int | None:
    try:
        return path.stat().st_ino
    except OSError:
        return None


def _pack(vector: np.ndarray) -> bytes:
    data = vector.astype("<f4").tobytes()
    return struct.pack("<I", zlib.crc32(data)) + data


def _unpack(blob: bytes, dimension: int) -> np.ndarray | None:
    data = memoryview(blob)[4:]
    if len(data) != 4 * dimension or struct.unpack_from("<I", blob)[0] != zlib.crc32(data):
        return None
    return np.frombuffer(data, dtype="<f4")
