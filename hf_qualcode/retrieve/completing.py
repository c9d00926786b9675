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


if TYPE_CHECKING:
    from hf_qualcode.retrieve.encoder import Encoder

# Texts encoded between two saves: what a killed run loses at most.
ENCODE_BLOCK = 2048
# A static encoder makes vectors faster than a cache would give them back.
UNCACHED_ENCODERS = ("static",)


def on_demand_cache(directory: Path, encoder: "Encoder") -> VectorCache:
    """The vectors of single units computed so far under `encoder`, beside the index in `directory`."""
    return VectorCache(
        directory / ON_DEMAND / f"{encoder.fingerprint[:16]}.sqlite", encoder.fingerprint, encoder.dimension
    )


def complete_vectors(
    units: pa.Table,
    encoder: "Encoder",
    directory: Path,
    old: CodeIndex | None,
    *,
    limit: int | None = None,
    progress: Progress | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """The vectors of `units` under `encoder`.

    Vectors are found by text: in the present index's set of the same encoder, then in the on-demand cache; the rest is
    encoded, block by block, each saved before the next begins, so that a killed run resumes.

    Args:
        units (`pa.Table`): Rows of `UNIT_SCHEMA`.
        encoder (`Encoder`): Makes the vectors.
        directory (`Path`): The index's folder.
        old (`CodeIndex`, *optional*): The index's present state.
        limit (`int`, *optional*): Encode for at most so many units, evenly spread, beyond those that have a vector.
        progress (`Callable`, *optional*): Called as `progress(stage, done, total)`.

    Returns:
        matrix (float32 `[num_texts, dimension]`, one row per distinct text, in order of first appearance) and
        row_of_unit (int32 `[num_units]`, -1 where a unit is not covered).
    """
    hashes = units["text_hash"].to_pylist()
    row_of_hash: dict[bytes, int] = {}
    first_unit: list[int] = []
    row_of_unit = np.empty(len(hashes), dtype=np.int32)
    for unit, text_hash in enumerate(hashes):
        row = row_of_hash.setdefault(text_hash, len(row_of_hash))
        if row == len(first_unit):
            first_unit.append(unit)
        row_of_unit[unit] = row
    matrix = np.zeros((len(row_of_hash), encoder.dimension), dtype=np.float32)
    found = np.zeros(len(matrix), dtype=bool)

    known = next((info for info in old.vector_sets if info.fingerprint == encoder.fingerprint), None) if old else None
    if known is not None:
        vectors = old.vectors(known)
        for unit, text_hash in enumerate(old.table["text_hash"].to_pylist()):
            row, source = row_of_hash.get(text_hash), vectors.row_of_unit[unit]
            if row is not None and source >= 0 and not found[row]:
                matrix[row], found[row] = vectors.matrix[source], True

    missing = np.flatnonzero(~found)
    if limit is not None:
        keep = np.unique(np.linspace(0, len(missing) - 1, min(limit, len(missing))).astype(int)) if limit else []
        missing = missing[keep] if len(keep) else missing[:0]
    if len(missing):
        cache = None if encoder.id in UNCACHED_ENCODERS else on_demand_cache(directory, encoder)
        distinct = list(row_of_hash)
        codes = units["code"]
        for start in range(0, len(missing), ENCODE_BLOCK):
            block = missing[start : start + ENCODE_BLOCK]

            def on_encoded(done: int, total: int, start: int = start) -> None:
                if progress is not None:
                    progress(f"encoding with {encoder.id}", start + done, len(missing))

            def texts_of(positions: np.ndarray, block: np.ndarray = block) -> list[str]:
                return [embedding_text(codes[first_unit[row]].as_py()) for row in block[positions]]

            keys = [distinct[row] for row in block]
            matrix[block] = encode_cached(encoder, cache, keys, texts_of, on_encoded)
            found[block] = True

    if not found.all():
        new_row = np.cumsum(found, dtype=np.int32) - 1
        new_row[~found] = -1
        matrix, row_of_unit = matrix[found], new_row[row_of_unit]
    return matrix, row_of_unit


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
