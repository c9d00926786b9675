"""The vectors of an index's units: taken from where they are already, encoded where they are not."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from hf_qualcode.retrieve.index import CodeIndex, Progress
from hf_qualcode.retrieve.storage import ON_DEMAND
from hf_qualcode.retrieve.tables import embedding_text
from hf_qualcode.retrieve.vector_cache import VectorCache
from hf_qualcode.retrieve.vector_sets import VectorSetInfo


if TYPE_CHECKING:
    from hf_qualcode.retrieve.encoder import Encoder

# Texts encoded between two saves: what a killed run loses at most.
ENCODE_BLOCK = 2048
# Encoders that make vectors faster than a cache would give them back, and that find candidates but do not rank.
STATIC_ENCODERS = ("static",)


def on_demand_cache(directory: Path, fingerprint: str, dimension: int, **options) -> VectorCache:
    """The vectors of single units computed so far under one encoder, beside the index in `directory`."""
    return VectorCache(directory / ON_DEMAND / f"{fingerprint[:16]}.sqlite", fingerprint, dimension, **options)


def discard_cached(directory: Path, info: VectorSetInfo) -> None:
    """Delete what is cached of the vectors of a set that the index now holds whole."""
    if info.complete and info.encoder not in STATIC_ENCODERS and (directory / ON_DEMAND).is_dir():
        with on_demand_cache(directory, info.fingerprint, info.dimension) as cache:
            cache.discard()


class UnitVectors:
    """The vectors of units under one encoder, some of them still to be found.

    Args:
        units (`pa.Table`): Rows of `UNIT_SCHEMA`.
        fingerprint (`str`): Of the encoder.
        dimension (`int`): Of its vectors.

    Attributes:
        matrix (`np.ndarray`): float32 `[num_texts, dimension]`, one row a distinct text, in order of first appearance.
        found (`np.ndarray`): bool `[num_texts]`: the rows that hold a vector.
        row_of_unit (`np.ndarray`): int32 `[num_units]`.
    """

    def __init__(self, units: pa.Table, fingerprint: str, dimension: int):
        self._codes = units["code"]
        self._fingerprint = fingerprint
        self._row_of_hash: dict[bytes, int] = {}
        self._first_unit: list[int] = []
        self.row_of_unit = np.empty(len(units), dtype=np.int32)
        for unit, text_hash in enumerate(units["text_hash"].to_pylist()):
            row = self._row_of_hash.setdefault(text_hash, len(self._row_of_hash))
            if row == len(self._first_unit):
                self._first_unit.append(unit)
            self.row_of_unit[unit] = row
        self.matrix = np.zeros((len(self._first_unit), dimension), dtype=np.float32)
        self.found = np.zeros(len(self.matrix), dtype=bool)

    def take_over(self, old: CodeIndex) -> None:
        """Take the vectors of texts that the present index has under the same encoder."""
        info = next((info for info in old.vector_sets if info.fingerprint == self._fingerprint), None)
        if info is None:
            return
        vectors = old.vectors(info)
        for unit, text_hash in enumerate(old.table["text_hash"].to_pylist()):
            row, source = self._row_of_hash.get(text_hash), vectors.row_of_unit[unit]
            if row is not None and source >= 0 and not self.found[row]:
                self.matrix[row], self.found[row] = vectors.matrix[source], True

    def encode(
        self, encoder: "Encoder", directory: Path, *, limit: int | None = None, progress: Progress | None = None
    ) -> None:
        """Find the rest: in the cache beside the index, else by encoding, block by block, each saved before the next.

        Args:
            encoder (`Encoder`): Makes the vectors.
            directory (`Path`): The index's folder.
            limit (`int`, *optional*): Have vectors of at most so many texts in the end, evenly spread.
            progress (`Callable`, *optional*): Called as `progress(stage, done, total)`.
        """
        missing = np.flatnonzero(~self.found)
        if limit is not None:
            wanted = min(max(0, limit - int(self.found.sum())), len(missing))
            missing = missing[np.linspace(0, len(missing) - 1, wanted).astype(int)] if wanted else missing[:0]
        if not len(missing):
            return
        distinct = list(self._row_of_hash)
        cache = None
        if encoder.id not in STATIC_ENCODERS:
            # Whatever its size: what is encoded now must still be there when a killed run resumes.
            cache = on_demand_cache(directory, encoder.fingerprint, encoder.dimension, max_bytes=None)
        try:
            for start in range(0, len(missing), ENCODE_BLOCK):
                block = missing[start : start + ENCODE_BLOCK]

                def on_encoded(done: int, total: int, start: int = start) -> None:
                    if progress is not None:
                        progress(f"encoding with {encoder.id}", start + done, len(missing))

                def texts_of(positions: np.ndarray, block: np.ndarray = block) -> list[str]:
                    units = [self._first_unit[row] for row in block[positions]]
                    return [embedding_text(self._codes[unit].as_py()) for unit in units]

                keys = [distinct[row] for row in block]
                self.matrix[block] = encode_cached(encoder, cache, keys, texts_of, on_encoded)
                self.found[block] = True
        finally:
            if cache is not None:
                cache.close()

    def drop_missing(self) -> None:
        """Leave out the rows without a vector; their units get -1."""
        if not self.found.all():
            new_row = np.cumsum(self.found, dtype=np.int32) - 1
            new_row[~self.found] = -1
            self.matrix, self.row_of_unit = self.matrix[self.found], new_row[self.row_of_unit]
            self.found = self.found[self.found]


def encode_cached(
    encoder: "Encoder",
    cache: VectorCache | None,
    keys: Sequence[bytes],
    texts_of: Callable[[np.ndarray], list[str]],
    progress: Callable[[int, int], None] | None = None,
) -> np.ndarray:
    """The vectors of some texts: from the cache where it has them, else encoded and put there.

    Args:
        encoder (`Encoder`): Makes the vectors.
        cache (`VectorCache`, *optional*): Where they are kept.
        keys (`list[bytes]`): The hash of each text.
        texts_of (`Callable`): Gives the texts at some positions; called once, for those that must be encoded.
        progress (`Callable`, *optional*): Called as `progress(done, total)`.

    Returns:
        float32 `[len(keys), dimension]`.
    """
    if cache is None:
        return encoder.encode(texts_of(np.arange(len(keys))), progress=progress)
    have, vectors = cache.get(keys)
    rest = np.flatnonzero(~have)
    if len(rest):
        vectors[rest] = encoder.encode(texts_of(rest), progress=progress)
        cache.put([keys[i] for i in rest], vectors[rest])
    return vectors
