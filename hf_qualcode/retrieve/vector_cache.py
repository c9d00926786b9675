"""Vectors computed on demand, kept beside an index so that the next search, or a build that was killed, finds them.

A cache in the strict sense: it may be deleted at any time, may be damaged or unwritable, and nothing depends on what
it holds. One SQLite file serves one encoder.
"""

import contextlib
import logging
import os
import sqlite3
import struct
import threading
import weakref
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np


logger = logging.getLogger(__name__)

_SCHEMA_VERSION = 2
_SCHEMA = f"""
CREATE TABLE encoder (fingerprint TEXT, dimension INTEGER);
CREATE TABLE vectors (id INTEGER PRIMARY KEY AUTOINCREMENT, key BLOB UNIQUE, vector BLOB);
PRAGMA user_version = {_SCHEMA_VERSION};
"""
# Primary result codes that mean a damaged or foreign file; others (locked, read-only, disk full) leave it sound.
_DAMAGE = {sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT}
# SQLite's oldest limit on the parameters of one statement is 999.
_KEYS_A_QUERY = 500
_ROWS_A_TRANSACTION = 4096
_SECONDS_TO_WAIT = 3
_MOST_BYTES = 4 * 2**30
_MOST_BYTES_IN_MEMORY = 2**28
# Of a row beside its vector: the key twice (table and index), checksum, ids and the pages' own.
_BYTES_BESIDE_A_VECTOR = 128


class _ForeignFileError(sqlite3.DatabaseError):
    """A sound database, but of another layout, or another encoder's."""


class VectorCache:
    """Vectors of one encoder, by the hash of their text.

    Each stored vector carries a checksum, so a damaged one counts as absent. A damaged file, or one of another
    encoder, is dropped and made anew; where nothing can be written, vectors are kept in memory for the life of the
    process. Each is logged in one line. Any number of processes and threads may use one file at once, and a process
    may fork.

    Use it in a `with` block, or `close` it. It may be used again afterwards.

    Args:
        path (`Path`):
            The SQLite file. Made on first use, with its folder.
        fingerprint (`str`):
            `Encoder.fingerprint` of the encoder the vectors come from.
        dimension (`int`):
            Number of components of a vector.
        max_bytes (`int`, *optional*, defaults to 4 GiB):
            What the file may hold (2 million vectors of 384 components); beyond that the oldest go. `None` lifts the
            bound: for a build, which must find all it has encoded when it is resumed.
    """

    def __init__(self, path: Path, fingerprint: str, dimension: int, *, max_bytes: int | None = _MOST_BYTES):
        self.path = Path(path)
        self.fingerprint = fingerprint
        self.dimension = dimension
        self.max_bytes = max_bytes
        self._lock = threading.Lock()
        self._memory: dict[bytes, np.ndarray] = {}
        self._connection: sqlite3.Connection | None = None
        self._inode: int | None = None
        self._writable = True
        self._complained = False
        _living.add(self)

    def __enter__(self) -> "VectorCache":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __del__(self):
        with contextlib.suppress(Exception):  # half made, or the interpreter is ending
            self._disconnect()

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

    def discard(self, keys: Sequence[bytes] | None = None) -> None:
        """Let vectors go, those in memory included.

        Args:
            keys (`Sequence[bytes]`, *optional*): Whose; absent ones are ignored. Without it all go, and the file with
                them. A file that another process is writing just then, or that cannot be written, stays.
        """
        with self._lock:
            for key in list(self._memory) if keys is None else keys:
                self._memory.pop(key, None)
            if self.path.is_file():
                self._attempt(self._delete_file if keys is None else lambda: self._delete(keys))

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
                logger.warning("vector cache %s dropped and made anew (%s)", self.path, error)
        return None

    def _connect(self) -> None:
        if self._connection is not None and (not self._writable or self._inode == _inode_of(self.path)):
            return
        self._disconnect()  # the file was deleted or replaced since it was opened
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._open(f"{self.path.absolute().as_uri()}?mode=rwc")
            if self._is_empty():
                self._create()
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
            raise _ForeignFileError(f"its layout version is {version}, not {_SCHEMA_VERSION}")
        if self._connection.execute("SELECT * FROM encoder").fetchall() != [(self.fingerprint, self.dimension)]:
            raise _ForeignFileError("it is of another encoder")
        self._inode = _inode_of(self.path)

    def _open(self, uri: str) -> None:
        # Rollback journal, not WAL: it needs no side files to be read, so read-only folders and deletion are safe.
        self._connection = sqlite3.connect(
            uri, uri=True, timeout=_SECONDS_TO_WAIT, isolation_level=None, check_same_thread=False
        )
        self._connection.execute("PRAGMA cache_size = -8192")

    def _create(self) -> None:
        with _transaction(self._connection):
            if self._is_empty():  # another process may have been first
                for statement in _SCHEMA.strip().split("\n"):
                    self._connection.execute(statement)
                self._connection.execute("INSERT INTO encoder VALUES (?, ?)", (self.fingerprint, self.dimension))

    def _is_empty(self) -> bool:
        # Asked before the version is: tables and version appear in one transaction of whichever process is first.
        return self._connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is None

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = self._inode = None

    def _drop(self) -> bool:
        try:
            self.path.unlink(missing_ok=True)
            self.path.with_name(f"{self.path.name}-journal").unlink(missing_ok=True)
        except OSError:
            return False
        return True

    def _select(self, keys: list[bytes]) -> dict[bytes, np.ndarray]:
        stored = {}
        for chunk, marks in _chunks(keys):
            query = f"SELECT key, vector FROM vectors WHERE key IN ({marks})"
            for key, blob in self._connection.execute(query, chunk):
                vector = _unpack(blob, self.dimension)
                if vector is not None:
                    stored[key] = vector
        return stored

    def _insert(self, keys: Sequence[bytes], vectors: np.ndarray) -> bool | None:
        if not self._writable:
            return None
        for start in range(0, len(keys), _ROWS_A_TRANSACTION):
            stop = start + _ROWS_A_TRANSACTION
            rows = ((key, _pack(vector)) for key, vector in zip(keys[start:stop], vectors[start:stop], strict=True))
            with _transaction(self._connection):
                self._connection.executemany("INSERT OR IGNORE INTO vectors (key, vector) VALUES (?, ?)", rows)
                self._trim()
        return True

    def _trim(self) -> None:
        """Let the oldest rows go where the file holds too much, and some more, so that it does not at the next put."""
        if self.max_bytes is None:
            return
        page, pages, free = (
            self._connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("page_size", "page_count", "freelist_count")
        )
        used = page * (pages - free)
        if used > self.max_bytes:
            count = int(used - 0.9 * self.max_bytes) // self._bytes_a_row + 1
            self._connection.execute(
                "DELETE FROM vectors WHERE id IN (SELECT id FROM vectors ORDER BY id LIMIT ?)", (count,)
            )

    def _delete(self, keys: Sequence[bytes]) -> bool:
        if self._writable:
            with _transaction(self._connection):
                for chunk, marks in _chunks(keys):
                    self._connection.execute(f"DELETE FROM vectors WHERE key IN ({marks})", chunk)
        return True

    def _delete_file(self) -> bool:
        if self._writable:
            self._connection.execute("BEGIN EXCLUSIVE")  # no other process is in the middle of a write
            self._drop()
            self._disconnect()
        return True

    def _remember(self, keys: Sequence[bytes], vectors: np.ndarray) -> None:
        for key, vector in zip(keys, vectors, strict=True):
            self._memory.setdefault(bytes(key), vector.copy())
        while len(self._memory) * self._bytes_a_row > _MOST_BYTES_IN_MEMORY:
            del self._memory[next(iter(self._memory))]

    @property
    def _bytes_a_row(self) -> int:
        return 4 * self.dimension + _BYTES_BESIDE_A_VECTOR

    def _complain(self, message: str) -> None:
        if not self._complained:
            logger.warning(message)
        self._complained = True


# All caches of the process, for what a fork must do to them.
_living: "weakref.WeakSet[VectorCache]" = weakref.WeakSet()
_abandoned: list[sqlite3.Connection] = []


def _after_fork_in_child() -> None:
    # A connection must not be used on both sides of a fork; closing one that was at work would undo the parent's work.
    for cache in list(_living):
        if cache._lock.locked() and cache._connection is not None:
            _abandoned.append(cache._connection)
            cache._connection = None
        cache._lock = threading.Lock()
        cache._disconnect()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


@contextlib.contextmanager
def _transaction(connection: sqlite3.Connection, kind: str = "IMMEDIATE"):
    connection.execute(f"BEGIN {kind}")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _chunks(keys: Sequence[bytes]) -> Iterator[tuple[Sequence[bytes], str]]:
    """Keys of one statement each, and their placeholders."""
    for start in range(0, len(keys), _KEYS_A_QUERY):
        chunk = keys[start : start + _KEYS_A_QUERY]
        yield chunk, ",".join("?" * len(chunk))


def _is_damage(error: Exception) -> bool:
    if isinstance(error, _ForeignFileError):
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
