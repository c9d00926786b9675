"""`CodeIndex`: the units of a code base, ready to be searched."""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from hf_qualcode.corpus.folder import FileRecord
from hf_qualcode.retrieve.candidates.bm25 import BM25Scorer, TokenTable
from hf_qualcode.retrieve.storage import DamagedStoreError, Part, open_store, verify_part
from hf_qualcode.retrieve.tables import FILE_SCHEMA, UNIT_SCHEMA, file_records
from hf_qualcode.retrieve.vector_sets import VectorSet, VectorSetInfo, load_vectors
from hf_qualcode.types import Unit


KIND = "hf-qualcode index"
# progress(stage, done, total): total is None where it is not known beforehand.
Progress = Callable[[str, int, int | None], None]

# Everything but the text: small, and needed to filter and to show hits.
_LIGHT = ["id", "root", "path", "start_line", "end_line", "language", "kind", "name", "parent", "text_hash"]
_CACHED_ROW_GROUPS = 64


class CodeIndex:
    """The units of one or more folders (or of given documents), with a lexical index and any number of vector sets.

    An index is a folder; see `hf_qualcode.retrieve.storage` for what makes it safe to read while it is written. An
    object of this class is one state of it, read lazily and by memory map.

    Args:
        directory (`Path`): The index's folder.
        manifest (`dict`): Its manifest.
        parts (`dict[str, Path]`): The verified file or folder of each part.

    Attributes:
        directory (`Path`): The index's folder.
        manifest (`dict`): What `manifest.json` says.
        lexical (`BM25Scorer`): The BM25 index over all units.

    Example:

        >>> index = CodeIndex.build(["src"], "src.index")  # doctest: +SKIP
        >>> index = CodeIndex.load("src.index")  # doctest: +SKIP
        >>> index.update()  # doctest: +SKIP
    """

    def __init__(self, directory: Path, manifest: dict, parts: dict[str, Path]):
        _check_manifest(directory, manifest)
        self.directory = directory
        self.manifest = manifest
        self._parts = parts
        self._row_groups: OrderedDict[int, pa.Table] = OrderedDict()
        # Everything a search reads is opened now: what is open stays whole when a writer replaces it.
        self._units_file = _open_table(parts, "units", UNIT_SCHEMA)
        self._files_file = _open_table(parts, "files", FILE_SCHEMA)
        self.lexical = BM25Scorer.load(parts["bm25"])
        num_units = self._units_file.metadata.num_rows
        if self.lexical.num_documents != num_units or any(info.of != num_units for info in self.vector_sets):
            raise DamagedStoreError(f"{directory} is damaged (its parts are not of one index): make the index again")
        self._vector_sets = {info.part: load_vectors(parts[info.part], info) for info in self.vector_sets}

    @classmethod
    def build(
        cls,
        paths: Sequence[str | Path],
        out: str | Path,
        encoder: str = "auto",
        *,
        exclude: Sequence[str] = (),
        num_proc: int = 1,
        progress: Progress | None = None,
    ) -> "CodeIndex":
        """Index folders (or single files) into `out`; where `out` holds an index already, only do what changed.

        Args:
            paths (`list` of `str` or `Path`): Folders and files to index.
            out (`str` or `Path`): The index's folder, new, empty or an index.
            encoder (`str`, *optional*, defaults to `"auto"`):
                `"static"`, `"minilm"`, a Hub id or a folder: keep vectors of every unit under this encoder, beside
                those of other encoders that are there. `"none"`: lexical only, vectors that are there go. `"auto"`:
                `"static"` where the packaged MiniLM is installed, else as `"none"`, with a warning.
            exclude (`list[str]`, *optional*): Globs in the manner of .gitignore, relative to each folder; part of the
                index's scope.
            num_proc (`int`, *optional*, defaults to 1): Processes that read and parse files.
            progress (`Callable`, *optional*): Called as `progress(stage, done, total)`.

        Raises:
            `UsageError`: a path that does not exist, an unknown encoder.
            `StoreError`: `out` cannot be written, or holds something else.
        """
        from hf_qualcode.retrieve.building import build_index

        return build_index(
            paths, Path(out), encoder, exclude=exclude, num_proc=num_proc, progress=progress
        )

    @classmethod
    def from_documents(
        cls,
        ids: Sequence[str],
        texts: Sequence[str],
        out: str | Path,
        encoder: str = "auto",
        *,
        language: str = "python",
        progress: Progress | None = None,
    ) -> "CodeIndex":
        """Index given texts, one unit each, instead of folders. Rows are in the order given.

        Args:
            ids (`list[str]`): Distinct ids; they become `Unit.id`.
            texts (`list[str]`): The code of each document.
            out (`str` or `Path`): The index's folder, new or empty.
            encoder (`str`, *optional*, defaults to `"auto"`): As in `build`.
            language (`str`, *optional*, defaults to `"python"`): Language of all documents.
            progress (`Callable`, *optional*): Called as `progress(stage, done, total)`.
        """
        from hf_qualcode.retrieve.building import index_documents

        return index_documents(ids, texts, Path(out), encoder, language=language, progress=progress)

    @classmethod
    def load(cls, directory: str | Path, *, verify: bool = True) -> "CodeIndex":
        """Open an index.

        Args:
            directory (`str` or `Path`): The index's folder.
            verify (`bool`, *optional*, defaults to `True`): Check the sha256 of every part, not its size alone
                (about 0.6 ms a megabyte).

        Raises:
            `StoreError`: no index, a damaged one, a foreign one, or one of a newer format.
        """
        directory = Path(directory)

        def open_parts(manifest: dict, parts: dict[str, Path]) -> "CodeIndex":
            return cls(directory, manifest, parts)

        return open_store(directory, KIND, open_parts, content=verify, unchecked=["tokens"])

    def update(
        self, *, encoder: str | None = None, num_proc: int = 1, progress: Progress | None = None
    ) -> "CodeIndex":
        """Bring the index up to date with its folders, in place: only new and changed units are encoded.

        Args:
            encoder (`str`, *optional*): As in `build`; defaults to what the index was made with.
            num_proc (`int`, *optional*, defaults to 1): Processes that read and parse files.
            progress (`Callable`, *optional*): Called as `progress(stage, done, total)`.

        Returns:
            `CodeIndex`: the same object, now in the new state.
        """
        from hf_qualcode.retrieve.building import refresh_index

        return self._become(refresh_index(self.directory, encoder=encoder, num_proc=num_proc, progress=progress))

    def add_vectors(
        self, encoder: str, *, limit: int | None = None, progress: Progress | None = None
    ) -> "CodeIndex":
        """Add the vector set of an encoder, in place. The sets of other encoders stay.

        Args:
            encoder (`str`): `"static"`, `"minilm"`, a Hub id or a folder.
            limit (`int`, *optional*): Cover only so many distinct texts, evenly spread over the index, those that are
                covered already included. A set that is not complete serves the units it covers; a later call without
                `limit` completes it.
            progress (`Callable`, *optional*): Called as `progress(stage, done, total)`.
        """
        from hf_qualcode.retrieve.building import add_vector_set

        return self._become(add_vector_set(self.directory, encoder, limit=limit, progress=progress))

    def _become(self, newer: "CodeIndex") -> "CodeIndex":
        """Take over another object's state, all that it has open included."""
        self.__dict__.clear()
        self.__dict__.update(newer.__dict__)
        return self

    def __len__(self) -> int:
        return self._units_file.metadata.num_rows

    @property
    def roots(self) -> list[str]:
        """Absolute path of each folder that was indexed; empty for an index of documents."""
        return [root["path"] for root in self.manifest["roots"]]

    @property
    def report(self) -> dict:
        """What became of every file seen: counts by outcome, and examples."""
        return self.manifest["report"]

    @property
    def vector_sets(self) -> list[VectorSetInfo]:
        """What vector sets there are, in the order they were added."""
        return [VectorSetInfo(**entry) for entry in self.manifest["vector_sets"]]

    def vectors(self, info: VectorSetInfo) -> VectorSet:
        """The vectors of one of `vector_sets`."""
        return self._vector_sets[info.part]

    @cached_property
    def tokens(self) -> TokenTable:
        """The sub-tokens of all units, from which the BM25 index is made anew at an update.

        Read, and checked, by writers under the write lock: a later writer may have removed them.
        """
        verify_part(self.directory, "tokens", Part(**self.manifest["parts"]["tokens"]), content=True)
        return TokenTable.load(self._parts["tokens"])

    @cached_property
    def table(self) -> pa.Table:
        """Every unit without its text: the columns of `hf_qualcode.retrieve.tables.UNIT_SCHEMA` up to `text_hash`."""
        return self._units_file.read(columns=_LIGHT)

    @cached_property
    def text_hashes(self) -> np.ndarray:
        """`S32` `[num_units]`: equal hash, equal text."""
        column = self.table["text_hash"].combine_chunks()
        # NumPy's S32 drops trailing NULs, so hashes are compared as 32-byte voids.
        if not len(column):
            return np.zeros(0, "V32")
        return np.frombuffer(column.buffers()[1], "V32", count=len(column), offset=32 * column.offset)

    def copies_of(self, row: int) -> np.ndarray:
        """int64 `[num_copies]`: the other units with the same text, in the order of the index."""
        order, leading = self._by_hash
        key = self._leading_bytes[row]
        first, last = np.searchsorted(leading, key, "left"), np.searchsorted(leading, key, "right")
        rows = np.sort(order[first:last])
        return rows[(rows != row) & (self.text_hashes[rows] == self.text_hashes[row])]

    @cached_property
    def copies(self) -> tuple[np.ndarray, np.ndarray]:
        """int64 `[num_units_with_copies]` twice: the units whose text others have too, and a number for each text."""
        order, leading = self._by_hash
        same = np.concatenate([[False], leading[1:] == leading[:-1], [False]])
        texts = np.cumsum(~same[:-1])
        in_group = same[:-1] | same[1:]
        return order[in_group], texts[in_group]

    @cached_property
    def _leading_bytes(self) -> np.ndarray:
        return np.ascontiguousarray(self.text_hashes.view(np.uint64).reshape(-1, 4)[:, 0])

    @cached_property
    def _by_hash(self) -> tuple[np.ndarray, np.ndarray]:
        order = np.argsort(self._leading_bytes, kind="stable")
        return order, self._leading_bytes[order]

    @cached_property
    def file_records(self) -> dict[tuple[int, str], FileRecord]:
        """Every file seen, with what became of it, by root and path."""
        return {(record.root, record.path): record for record in file_records(self._files_file.read())}

    def full_table(self) -> pa.Table:
        """Every unit with its text. Reads all of it; use `unit` for single ones."""
        return self._units_file.read()

    def summary(self, row: int) -> dict:
        """A unit without its text: one row of `table`, by column name."""
        return {name: column[row].as_py() for name, column in zip(_LIGHT, self.table.columns, strict=True)}

    def unit(self, row: int) -> Unit:
        """The unit of one row."""
        values = {name: self._text_columns(row, name) for name in ("signature", "doc", "code")}
        for name in ("id", "path", "language", "kind", "name", "parent", "start_line", "end_line"):
            values[name] = self.table[name][row].as_py()
        return Unit(**values)

    def codes(self, rows: Sequence[int]) -> list[str]:
        """The code of each row."""
        return [self._text_columns(int(row), "code") for row in rows]

    def root_of(self, row: int) -> str:
        """Absolute path of the folder a unit was found under; `""` in an index of documents."""
        return self.roots[self.table["root"][row].as_py()] if self.roots else ""

    def _text_columns(self, row: int, column: str) -> str:
        group, position = self._locate(row)
        if group not in self._row_groups:
            self._row_groups[group] = self._units_file.read_row_group(group, columns=["signature", "doc", "code"])
            if len(self._row_groups) > _CACHED_ROW_GROUPS:
                self._row_groups.popitem(last=False)
        else:
            self._row_groups.move_to_end(group)
        return self._row_groups[group][column][position].as_py()

    def _locate(self, row: int) -> tuple[int, int]:
        if not 0 <= row < len(self):
            raise IndexError(f"row {row} of an index of {len(self)} units")
        group = int(np.searchsorted(self._group_starts, row, side="right")) - 1
        return group, row - int(self._group_starts[group])

    @cached_property
    def _group_starts(self) -> np.ndarray:
        metadata = self._units_file.metadata
        sizes = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
        return np.cumsum([0, *sizes])[:-1]


def _open_table(parts: dict[str, Path], name: str, schema: pa.Schema) -> pq.ParquetFile:
    try:
        file = pq.ParquetFile(parts[name], memory_map=True)
    except pa.ArrowException as error:
        raise DamagedStoreError(f"{parts[name]} is damaged ({error}): make the index again") from None
    if not file.schema_arrow.equals(schema):
        raise DamagedStoreError(f"{parts[name]} is damaged (other columns): make the index again")
    return file


# What the manifest says beside its parts; anything else in these places is damage.
_MANIFEST_TYPES = {
    "roots": list,
    "exclude": list,
    "encoder": str,
    "made_with": dict,
    "scanned_at_ns": int,
    "report": dict,
    "vector_sets": list,
}


def _check_manifest(directory: Path, manifest: dict) -> None:
    def is_root(root) -> bool:
        known = isinstance(root, dict) and root.keys() == {"path", "only"}
        return known and isinstance(root["path"], str) and isinstance(root["only"], str | None)

    wrong = [key for key, kind in _MANIFEST_TYPES.items() if not isinstance(manifest.get(key), kind)]
    if not wrong:
        if not all(map(is_root, manifest["roots"])):
            wrong.append("roots")
        if not all(isinstance(line, str) for line in manifest["exclude"]):
            wrong.append("exclude")
        if not all(VectorSetInfo.is_valid(entry) for entry in manifest["vector_sets"]):
            wrong.append("vector_sets")
    needed = {"units", "files", "tokens", "bm25"}
    if not wrong:
        needed |= {VectorSetInfo(**entry).part for entry in manifest["vector_sets"]}
    if wrong or needed - manifest["parts"].keys():
        what = ", ".join(wrong or sorted(needed - manifest["parts"].keys()))
        raise DamagedStoreError(f"{directory / 'manifest.json'} is damaged ({what}): make the index again")
