"""What an index holds of its units and files: the two Parquet tables, and the text a unit is searched by."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from os.path import commonprefix
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from hf_qualcode.corpus.folder import FileRecord
from hf_qualcode.types import QualcodeError, Unit


UNIT_SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("root", pa.int32(), nullable=False),
        pa.field("path", pa.string(), nullable=False),
        pa.field("start_line", pa.int32(), nullable=False),
        pa.field("end_line", pa.int32(), nullable=False),
        pa.field("language", pa.string(), nullable=False),
        pa.field("kind", pa.string(), nullable=False),
        pa.field("name", pa.string(), nullable=False),
        pa.field("parent", pa.string(), nullable=False),
        # Identity of the text: units with one hash are copies of each other and share their vectors.
        pa.field("text_hash", pa.binary(32), nullable=False),
        pa.field("signature", pa.string(), nullable=False),
        pa.field("doc", pa.string(), nullable=False),
        pa.field("code", pa.string(), nullable=False),
    ]
)
FILE_SCHEMA = pa.schema(
    [
        pa.field("root", pa.int32(), nullable=False),
        pa.field("path", pa.string(), nullable=False),
        pa.field("size", pa.int64(), nullable=False),
        pa.field("mtime_ns", pa.int64(), nullable=False),
        pa.field("inode", pa.uint64(), nullable=False),
        pa.field("sha256", pa.string(), nullable=False),
        pa.field("language", pa.string(), nullable=False),
        pa.field("outcome", pa.string(), nullable=False),
        pa.field("detail", pa.string(), nullable=False),
        pa.field("num_units", pa.int32(), nullable=False),
    ]
)
# Small enough that fetching the code of ten hits reads little, large enough that compression works.
ROW_GROUP = 1024

# Of a path the end counts: what is in a folder 500 folders deep is not 500 times as long.
_PATH_PARTS = 6
_INDENT = re.compile(r"^[ \t]*(?=[^ \t\n])", re.MULTILINE)


def embedding_text(code: str) -> str:
    """The text an encoder sees: the code without the indentation all its lines share, and without trailing blanks.

    The same function is the same text wherever it stands, so copies share one vector.
    """
    shared = commonprefix(_INDENT.findall(code))  # noqa: RUF071 (character by character is what is wanted)
    if shared:
        code = re.sub(rf"^{shared}", "", code, flags=re.MULTILINE)
    return "\n".join(line.rstrip(" \t") for line in code.split("\n")).strip("\n")


def lexical_text(path: str, name: str, code: str) -> str:
    """The text the lexical part sees: where the code is and what it is called, then the code."""
    return f"{'/'.join(path.split('/')[-_PATH_PARTS:])}\n{name}\n{code}"


def text_hash(text: str) -> bytes:
    """The 32-byte identity of an embedding text."""
    return hashlib.sha256(text.encode()).digest()


def units_table(units: Sequence[Unit], root: int) -> pa.Table:
    """Units found under one root, as rows of `UNIT_SCHEMA`."""
    columns = {name: [getattr(unit, name) for unit in units] for name in Unit.__slots__}
    columns["root"] = np.full(len(units), root, dtype=np.int32)
    columns["text_hash"] = [text_hash(embedding_text(code)) for code in columns["code"]]
    return _table(columns, UNIT_SCHEMA)


def _table(columns: Mapping[str, Sequence], schema: pa.Schema) -> pa.Table:
    return pa.table([_array(columns[field.name], field.type) for field in schema], schema=schema)


def _array(values: Sequence, kind: pa.DataType) -> pa.Array:
    """An Arrow array without `pa.array`, which imports pandas (0.4 s) to ask whether `values` is one of its own."""
    if pa.types.is_string(kind):
        encoded = [value.encode() for value in values]
        lengths = np.array([0, *map(len, encoded)], dtype=np.int64)
        if lengths.sum() > np.iinfo(np.int32).max:
            raise QualcodeError(f"{lengths.sum():,} bytes of text in one block; at most 2 GiB fit: give fewer at once")
        offsets = np.cumsum(lengths).astype(np.int32)
        return pa.StringArray.from_buffers(len(encoded), pa.py_buffer(offsets), pa.py_buffer(b"".join(encoded)))
    if pa.types.is_fixed_size_binary(kind):
        data = pa.py_buffer(b"".join(values))
    else:
        data = pa.py_buffer(np.array(values, dtype=kind.to_pandas_dtype()))
    return pa.Array.from_buffers(kind, len(values), [None, data])


def sort_order(table: pa.Table) -> np.ndarray:
    """The order of rows in an index: by root, path, first line, longest first, id. Independent of how they came."""
    keys = zip(
        table["root"].to_pylist(),
        table["path"].to_pylist(),
        table["start_line"].to_pylist(),
        (-line for line in table["end_line"].to_pylist()),
        table["id"].to_pylist(),
        strict=True,
    )
    return np.array([row for *_, row in sorted((*key, row) for row, key in enumerate(keys))], dtype=np.int64)


def take_rows(table: pa.Table, rows: np.ndarray) -> pa.Table:
    """The given rows, in the given order."""
    if np.array_equal(rows, np.arange(len(table))):
        return table  # the first scan of a folder comes in order, and `take` costs an import of 50 ms
    return table.take(_array(rows, pa.int64()))


def files_table(records: Sequence[FileRecord]) -> pa.Table:
    """One row per file seen, by root and path."""
    ordered = sorted(records, key=lambda record: (record.root, record.path))
    columns = zip(*ordered, strict=True) if ordered else [[] for _ in FILE_SCHEMA]
    by_name = dict(zip(FileRecord._fields, columns, strict=True))
    return _table(by_name, FILE_SCHEMA)


def file_records(table: pa.Table) -> list[FileRecord]:
    """The rows of `files_table`."""
    return [FileRecord(*row) for row in zip(*(table[f].to_pylist() for f in FileRecord._fields), strict=True)]


def write_table(table: pa.Table, path: Path) -> None:
    """Write a table so that equal rows give equal bytes."""
    pq.write_table(
        table.combine_chunks(),
        path,
        row_group_size=ROW_GROUP,
        compression="zstd",
        compression_level=3,
        use_dictionary=["path", "language", "kind", "outcome"],
        write_statistics=False,
    )
