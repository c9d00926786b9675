"""A folder that is always whole: parts named by their content, one manifest that is replaced in one step.

Layout of a store:

    manifest.json                 what the store is, and for each part its file, size and sha256
    <part>-<sha256[:16]><suffix>  the parts; never changed once written
    .lock                         held while writing
    .tmp-*                        work in progress, removed by the next writer
    on-demand/                    caches; not part of the state

A writer puts new parts beside the old ones and then replaces the manifest, so a reader sees the old state or the new
one, never a mixture, and a writer killed at any moment leaves the old state. Parts that no manifest names any more are
removed by the writer that made them superfluous. A reader that had read the manifest just before then finds a part
gone, reads the manifest again and opens the new state (`open_store`); what a reader has open stays whole.
"""

import contextlib
import errno
import hashlib
import json
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import NamedTuple, TypeVar

from filelock import FileLock, Timeout

from hf_qualcode.types import QualcodeError


T = TypeVar("T")

MANIFEST = "manifest.json"
LOCK = ".lock"
TEMPORARY = ".tmp-"
# A folder beside the parts for what can be deleted at any time; no part of the store's state.
ON_DEMAND = "on-demand"
# Deliberately narrow: what matches may be removed once no manifest names it.
PART_NAME = re.compile(r"(units|files|tokens|bm25|vectors_[0-9a-f]{12})-[0-9a-f]{16}(\.parquet|\.safetensors)?")
# A store is refused, not guessed at, when it says a newer number than this.
FORMAT_VERSION = 1


class StoreError(QualcodeError):
    """A store that cannot be read: missing, foreign, newer or damaged."""


class MissingStoreError(StoreError):
    """There is no store in the folder."""


class DamagedStoreError(StoreError):
    """The store is ours, but a part of it is missing or not what the manifest says."""


class Part(NamedTuple):
    """One file or folder of a store: its name in the folder, its size in bytes and its sha256 (hex)."""

    file: str
    bytes: int
    sha256: str


def size_and_digest(path: Path) -> tuple[int, str]:
    """Size in bytes and sha256 (hex) of a file, or of a folder's files with their names, in sorted order."""
    if path.is_dir():
        digest, size = hashlib.sha256(), 0
        for entry in sorted(path.rglob("*")):
            if entry.is_file():
                entry_size, entry_sha256 = size_and_digest(entry)
                digest.update(f"{entry.relative_to(path).as_posix()}\0{entry_sha256}\n".encode())
                size += entry_size
        return size, digest.hexdigest()
    with path.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256")
    return path.stat().st_size, digest.hexdigest()


def read_manifest(directory: Path, kind: str) -> dict:
    """The manifest of the store in `directory`.

    Raises:
        `MissingStoreError`: there is no manifest.
        `StoreError`: it belongs to something else, or to a newer version of this package.
        `DamagedStoreError`: it is not the JSON it should be.
    """
    path = directory / MANIFEST
    try:
        text = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        raise MissingStoreError(f"no index in {directory}: make one with `hf-qualcode index PATH --out DIR`") from None
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror}") from error
    try:
        manifest = json.loads(text)
    except (ValueError, RecursionError):
        manifest = None
    if not isinstance(manifest, dict):
        raise DamagedStoreError(f"{path} is damaged (not a JSON object): make the index again from its folders")
    if manifest.get("format") != kind:
        raise StoreError(f"{path} is not an {kind} (format {str(manifest.get('format'))[:60]!r}): name another one")
    version = manifest.get("format_version")
    if not isinstance(version, int) or version > FORMAT_VERSION:
        raise StoreError(
            f"{directory} was written in format {version} by hf-qualcode {manifest.get('written_by')}; "
            f"this version reads up to {FORMAT_VERSION}: update hf-qualcode, or name another folder"
        )
    try:
        parts = {name: Part(**part) for name, part in manifest["parts"].items()}
        sound = all(
            PART_NAME.fullmatch(part.file) and isinstance(part.bytes, int) and isinstance(part.sha256, str)
            for part in parts.values()
        )
    except (KeyError, TypeError, AttributeError):
        sound = False
    if not sound:
        raise DamagedStoreError(f"{path} is damaged (its list of parts): make the index again from its folders")
    return manifest


def verify_part(directory: Path, name: str, part: Part, *, content: bool) -> Path:
    """The path of a part, after its size (and with `content` its sha256) was found as the manifest says."""
    path = directory / part.file
    if not path.exists():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    if content:
        size, sha256 = size_and_digest(path)
    else:
        files = [f for f in path.rglob("*") if f.is_file()] if path.is_dir() else [path]
        size = sum(f.stat().st_size for f in files)
        sha256 = part.sha256
    if (size, sha256) != (part.bytes, part.sha256):
        raise DamagedStoreError(
            f"{path} is damaged ({name}: {size} bytes, {part.bytes} expected"
            f"{'' if size != part.bytes else ', content differs'}): make the index again from its folders"
        )
    return path


def open_store(
    directory: Path,
    kind: str,
    open_parts: Callable[[dict, dict[str, Path]], T],
    *,
    content: bool = True,
    unchecked: Collection[str] = (),
) -> T:
    """Open a store's parts, all of one state.

    A writer may replace the state between the reading of the manifest and the opening of the parts. Whatever goes
    wrong then is put down to that, and all is opened anew, as long as there is a newer manifest.

    Args:
        directory (`Path`): The store's folder.
        kind (`str`): The `format` its manifest must have.
        open_parts (`Callable`): Gets the manifest and the verified path of each part; opens (maps) what it needs.
        content (`bool`, *optional*, defaults to `True`): Check the sha256 of each part, not its size alone.
        unchecked (`list[str]`, *optional*): Parts of which only the size is checked in any case.

    Raises:
        `StoreError`: see `read_manifest` and `verify_part`.
    """
    manifest = read_manifest(directory, kind)
    while True:
        try:
            parts = {name: Part(**part) for name, part in manifest["parts"].items()}
            paths = {
                name: verify_part(directory, name, part, content=content and name not in unchecked)
                for name, part in parts.items()
            }
            return open_parts(manifest, paths)
        except (FileNotFoundError, DamagedStoreError) as error:
            newer = read_manifest(directory, kind)
            if newer == manifest:
                if isinstance(error, DamagedStoreError):
                    raise
                missing = Path(error.filename).name if error.filename else "a part"
                raise DamagedStoreError(
                    f"{directory} is damaged ({missing} is missing): make the index again from its folders"
                ) from None
            manifest = newer


@contextlib.contextmanager
def writer_lock(
    directory: Path, *, wait_s: float = 600.0, on_wait: Callable[[], None] | None = None
) -> Iterator[None]:
    """Hold the store's write lock; the operating system frees it when the process dies.

    Args:
        directory (`Path`): The store's folder; made if need be.
        wait_s (`float`, *optional*, defaults to 600): Seconds to wait for another writer.
        on_wait (`Callable`, *optional*): Called once when there is another writer to wait for.

    Raises:
        `StoreError`: the folder cannot be written, or the other writer took longer than `wait_s`.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        lock = FileLock(directory / LOCK)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            if on_wait is not None:
                on_wait()
            lock.acquire(timeout=wait_s)
    except Timeout:
        raise StoreError(f"{directory} is being written by another process: try again when it is done") from None
    except OSError as error:
        raise StoreError(f"cannot write to {directory}: {error.strerror or error}") from error
    try:
        yield
    finally:
        lock.release()


def holds_nothing_else(directory: Path) -> bool:
    """Whether all that is in `directory`, the manifest aside, is of a store, or the leavings of a killed writer."""
    if not directory.exists():
        return True
    own = (MANIFEST, LOCK, ON_DEMAND)
    return all(
        entry.name in own or entry.name.startswith(TEMPORARY) or PART_NAME.fullmatch(entry.name)
        for entry in directory.iterdir()
    )


class StoreWriter:
    """Writes new parts aside and commits them with one manifest. Use it under `writer_lock`.

    Args:
        directory (`Path`): The store's folder.
        kind (`str`): The `format` of the manifest.
    """

    def __init__(self, directory: Path, kind: str):
        self.directory = directory
        self.kind = kind
        for leaving in directory.glob(f"{TEMPORARY}*"):
            _remove(leaving)
        self._workplace = Path(tempfile.mkdtemp(prefix=TEMPORARY, dir=directory))
        probe = self._workplace / "mode"
        probe.touch()
        self._mode = stat.S_IMODE(probe.stat().st_mode)
        self.parts: dict[str, Part] = {}

    def keep(self, name: str, part: Part) -> None:
        """Take a part of the present store over as it is."""
        self.parts[name] = part

    def add(self, name: str, suffix: str, write: Callable[[Path], None]) -> None:
        """Write one part: `write` gets the path of a file to make or, with suffix `""`, of an empty folder to fill."""
        path = self._workplace / f"{name}{suffix}"
        if not suffix:
            path.mkdir()
        write(path)
        size, sha256 = size_and_digest(path)
        part = Part(f"{name}-{sha256[:16]}{suffix}", size, sha256)
        target = self.directory / part.file
        for file in [path, *path.rglob("*")]:
            if file.is_file():
                # Some libraries write for the owner alone; an index is shared like any other file.
                file.chmod(self._mode)
                _sync(file)
        if target.exists() and size_and_digest(target) != (size, sha256):
            # The leaving of a damaged store: the same name, other bytes.
            _remove(target)
        if not target.exists():
            path.rename(target)
        self.parts[name] = part

    def commit(self, **content) -> None:
        """Make the parts the store's state; `content` goes into the manifest. Then remove what is no longer named."""
        from hf_qualcode import __version__

        manifest = {
            "format": self.kind,
            "format_version": FORMAT_VERSION,
            "written_by": __version__,
            **content,
            "parts": {name: part._asdict() for name, part in sorted(self.parts.items())},
        }
        path = self._workplace / MANIFEST
        path.write_text(json.dumps(manifest, indent=1, ensure_ascii=True) + "\n", encoding="ascii")
        _sync(path)
        path.replace(self.directory / MANIFEST)
        _sync(self.directory)
        named = {part.file for part in self.parts.values()}
        for entry in self.directory.iterdir():
            if PART_NAME.fullmatch(entry.name) and entry.name not in named:
                _remove(entry)

    def close(self) -> None:
        """Remove the work in progress."""
        _remove(self._workplace)

    def __enter__(self) -> "StoreWriter":
        return self

    def __exit__(self, *_) -> None:
        self.close()


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
