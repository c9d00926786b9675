"""Vector sets: one matrix per encoder, with the encoder's identity and the units it covers."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

from hf_qualcode.retrieve.candidates.embedding import EmbeddingScorer
from hf_qualcode.retrieve.storage import DamagedStoreError


@dataclass(frozen=True)
class VectorSetInfo:
    """What the manifest says of a vector set.

    Attributes:
        encoder (`str`): What the user called the encoder: `static`, `minilm`, a Hub id or a folder.
        fingerprint (`str`): The encoder's identity; vectors of different fingerprints are never compared.
        dimension (`int`): Length of a vector.
        covered (`int`): Units that have a vector.
        of (`int`): Units in the index.
        limit (`int`, *optional*): Of how many texts it was asked to hold vectors; `None`: of all. A refresh completes
            a set without a limit only.
    """

    encoder: str
    fingerprint: str
    dimension: int
    covered: int
    of: int
    limit: int | None = None

    @staticmethod
    def is_valid(entry: object) -> bool:
        """Whether `entry` is what `to_dict` makes."""
        kinds = {"encoder": str, "fingerprint": str, "dimension": int, "covered": int, "of": int, "limit": int | None}
        return (
            isinstance(entry, dict)
            and entry.keys() == kinds.keys()
            and all(isinstance(entry[key], kind) for key, kind in kinds.items())
        )

    @property
    def part(self) -> str:
        """Name of the part that holds the vectors."""
        return f"vectors_{self.fingerprint[:12]}"

    @property
    def complete(self) -> bool:
        """Whether every unit has a vector."""
        return self.covered == self.of

    def to_dict(self) -> dict:
        """As the manifest stores it."""
        return asdict(self)


@dataclass(frozen=True)
class VectorSet:
    """The vectors of an index under one encoder.

    Attributes:
        info (`VectorSetInfo`): Whose vectors they are.
        matrix (`np.ndarray`): float32 `[num_texts, dimension]`, unit norm, one row per distinct text, memory-mapped.
        row_of_unit (`np.ndarray`): int32 `[num_units]`, the row of each unit's text in `matrix`; -1 where it has none.
    """

    info: VectorSetInfo
    matrix: np.ndarray
    row_of_unit: np.ndarray

    def covers(self, units: np.ndarray) -> np.ndarray:
        """bool `[len(units)]`: which of the units have a vector."""
        return self.row_of_unit[units] >= 0

    def of_units(self, units: np.ndarray) -> np.ndarray:
        """float32 `[len(units), dimension]`; every unit must be covered."""
        return np.asarray(self.matrix[self.row_of_unit[units]])

    def cosine(self, query_vectors: np.ndarray) -> np.ndarray:
        """float32 `[num_queries, num_units]`: cosine of each query with each unit, -inf where a unit has no vector."""
        if not len(self.matrix):
            return np.full((len(query_vectors), len(self.row_of_unit)), -np.inf, dtype=np.float32)
        scores = EmbeddingScorer(self.matrix).score(query_vectors)[:, self.row_of_unit]
        scores[:, self.row_of_unit < 0] = -np.inf
        return scores


def write_vectors(path: Path, matrix: np.ndarray, row_of_unit: np.ndarray) -> None:
    """Write the two arrays of a vector set as safetensors."""
    save_file(
        {
            "vectors": np.ascontiguousarray(matrix, dtype=np.float32),
            "row_of_unit": np.ascontiguousarray(row_of_unit, dtype=np.int32),
        },
        path,
    )


def load_vectors(path: Path, info: VectorSetInfo) -> VectorSet:
    """Memory-map a vector set.

    Raises:
        `DamagedStoreError`: the file does not hold what the manifest says.
    """
    arrays = map_safetensors(path)
    matrix, row_of_unit = arrays.get("vectors"), arrays.get("row_of_unit")
    if (
        matrix is None
        or row_of_unit is None
        or matrix.dtype != np.float32
        or matrix.ndim != 2
        or matrix.shape[1] != info.dimension
        or row_of_unit.shape != (info.of,)
        or (len(row_of_unit) and int(row_of_unit.max()) >= len(matrix))
    ):
        raise DamagedStoreError(f"{path} is damaged (not the vectors its manifest names): make the index again")
    return VectorSet(info, matrix, row_of_unit)


_DTYPES = {"F32": np.float32, "I32": np.int32}


def map_safetensors(path: Path) -> dict[str, np.ndarray]:
    """The arrays of a safetensors file as read-only memory maps (`safetensors.numpy` would copy them).

    Raises:
        `DamagedStoreError`: the header is not one this package writes.
    """
    size = path.stat().st_size
    with path.open("rb") as stream:
        header_size = int.from_bytes(stream.read(8), "little")
        if not 0 < header_size <= min(size - 8, 1 << 20):
            raise DamagedStoreError(f"{path} is damaged (no safetensors header): make the index again")
        header = stream.read(header_size)
    arrays = {}
    try:
        for name, entry in json.loads(header).items():
            if name == "__metadata__":
                continue
            begin, end = entry["data_offsets"]
            dtype, shape = np.dtype(_DTYPES[entry["dtype"]]), tuple(entry["shape"])
            if end - begin != dtype.itemsize * int(np.prod(shape)) or 8 + header_size + end > size:
                raise ValueError(f"the size of {name}")
            if begin == end:
                arrays[name] = np.zeros(shape, dtype)
            else:
                arrays[name] = np.memmap(path, dtype, mode="r", offset=8 + header_size + begin, shape=shape)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DamagedStoreError(f"{path} is damaged ({error}): make the index again") from None
    return arrays
