"""Writing a data set: Parquet files of a fixed schema, and a folder that is either whole or not there."""

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from datasets import Features
from filelock import FileLock, Timeout

from hf_qualcode.benchmark.schemas import SPLIT
from hf_qualcode.types import QualcodeError, UsageError


# A row group is closed at this size: small enough for memory, and for the 2 GiB an Arrow column of strings can hold.
_GROUP_BYTES = 32 * 2**20
REPORT_FILE, CARD_FILE = "report.json", "README.md"
BUILDER = "hf-qualcode"


class RowWriter:
    """Writes the rows of one configuration. The same rows give the same bytes.

    Args:
        folder (`Path`): The data set's.
        config (`str`): Name of the configuration.
        features (`Features`): Its columns.
        split (`str`, *optional*, defaults to `"test"`): Name of its only split.

    Attributes:
        num_rows, num_bytes (`int`): Rows so far, and their size in memory.
        file, file_bytes (`str`, `int`): Once closed, the file's path in the folder and its size.
    """

    def __init__(self, folder: Path, config: str, features: Features, split: str = SPLIT):
        self.num_rows = self.num_bytes = self.file_bytes = 0
        self.file = ""
        self._config, self._split = config, split
        self._path = folder / config / "unfinished.parquet"
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._schema = features.arrow_schema
        self._rows: list[Mapping] = []
        self._pending_bytes = 0
        self._writer = pq.ParquetWriter(
            self._path, self._schema, compression="zstd", compression_level=3, version="2.6"
        )

    def add(self, row: Mapping) -> None:
        """Take one row: a value, or `None`, for every column."""
        if row.keys() != set(self._schema.names):
            raise ValueError(f"columns {sorted(row)}; expected {sorted(self._schema.names)}.")
        self._rows.append(row)
        self._pending_bytes += sum(map(_size, row.values()))
        self.num_rows += 1
        if self._pending_bytes >= _GROUP_BYTES:
            self._flush()

    def _flush(self) -> None:
        if not self._rows:
            return
        columns = [pa.array([row[field.name] for row in self._rows], field.type) for field in self._schema]
        table = pa.Table.from_arrays(columns, schema=self._schema)
        self.num_bytes += table.nbytes
        self._writer.write_table(table)
        self._rows, self._pending_bytes = [], 0

    def close(self) -> None:
        """Write what is pending. A configuration without rows gets a file with the schema alone."""
        self._flush()
        self._writer.close()
        self.file_bytes = self._path.stat().st_size
        with self._path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        # `load_dataset` caches a local folder by its card, not by its files: named for its content, a file that was
        # changed is never taken for the old one.
        self.file = f"{self._config}/{self._split}-00000-of-00001-{digest[:16]}.parquet"
        self._path.rename(self._path.parent / Path(self.file).name)

    def __enter__(self) -> "RowWriter":
        return self

    def __exit__(self, *_) -> None:
        self.close()


def _size(value) -> int:
    if isinstance(value, str):
        return len(value)
    return sum(map(_size, value)) if isinstance(value, list | tuple) else 8


class Workplace:
    """Where a data set is written before it takes its place, and where an interrupted build finds what it has done.

    Used as a context manager, which holds a lock, and removes the folder only after `publish`.

    Args:
        out (`Path`): The folder to make. One that holds anything but an earlier build is refused.

    Raises:
        `UsageError`: When `out` is a file or somebody else's folder.
        `QualcodeError`: When it cannot be written to, or another build is at it.
    """

    def __init__(self, out: Path):
        self.out = Path(os.path.abspath(out.expanduser()))  # noqa: PTH100 (a link in the path stays one)
        if self.out.is_symlink():
            self.out = self.out.resolve()
        check_target(self.out)
        if os.path.ismount(self.out):
            raise UsageError(f"--out {self.out} is where a file system is mounted; name a folder in it")
        self.folder = self.out.parent / f".{self.out.name}.building"
        self.data = self.folder / "data"

    def __enter__(self) -> "Workplace":
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock = FileLock(self.folder / "lock")
            self._lock.acquire(timeout=0)
            if self.data.exists():
                shutil.rmtree(self.data)
            self.data.mkdir()
        except Timeout:
            raise QualcodeError(
                f"{self.out} is being built by another process; wait for it, or choose another --out"
            ) from None
        except OSError as error:
            raise QualcodeError(
                f"{self.folder} cannot be written to ({error.strerror}); choose another --out"
            ) from error
        return self

    def publish(self) -> None:
        """Put the data in its place, in one step where nothing was there, and remove the workplace."""
        check_target(self.out)
        if self.out.exists():
            old = self.folder / "replaced"
            shutil.rmtree(old, ignore_errors=True)
            self.out.rename(old)
        self.data.rename(self.out)
        shutil.rmtree(self.folder, ignore_errors=True)

    def __exit__(self, *_) -> None:
        self._lock.release()


def check_target(out: Path) -> None:
    """Raises `UsageError` when `out` holds anything that a build may not replace."""
    if not out.exists():
        return
    if not out.is_dir():
        raise UsageError(f"--out {out} is a file; name a folder")
    names = sorted(entry.name for entry in out.iterdir())
    if not names:
        return
    ours = set(_read_report(out).get("configs", ())) | {REPORT_FILE, CARD_FILE}
    foreign = [name for name in names if name not in ours]
    if len(ours) == 2 or foreign:
        what = f"holds {foreign[0]!r}, which" if foreign else "holds files that"
        raise UsageError(f"--out {out} {what} no build of a data set wrote; name a new or an empty folder")


def _read_report(out: Path) -> dict:
    try:
        report = json.loads((out / REPORT_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return report if isinstance(report, dict) and report.get("builder") == BUILDER else {}


def write_rows(
    folder: Path, schemas: Mapping[str, Features], fill: Callable[[dict[str, RowWriter]], None]
) -> dict[str, RowWriter]:
    """Opens a writer for every configuration, has them filled, and closes them.

    Args:
        folder (`Path`): The data set's.
        schemas (`Mapping[str, Features]`): Configuration -> columns.
        fill (`Callable`): Takes configuration -> writer and adds the rows.

    Returns:
        `dict[str, RowWriter]`: The closed writers, for their counts.
    """
    with ExitStack() as stack:
        writers = {name: stack.enter_context(RowWriter(folder, name, schema)) for name, schema in schemas.items()}
        fill(writers)
    return writers
