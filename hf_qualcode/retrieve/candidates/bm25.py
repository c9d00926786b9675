"""BM25 over code-aware sub-tokens: a table of tokens that can be updated, and the bm25s index made from it.

The index has the layout and the numbers of the library bm25s (its `BM25.load` opens the folder, a test holds both
equal), but it is built and read here with numpy alone. Two reasons, measured: bm25s indexes in Python loops, twenty
times slower than this rebuild, which follows every update of an index (tantivy from stored tokens: six times slower);
and importing it (with scipy, and numba and jax where present) takes 0.4 s of the second that a cold search may last.
"""

import json
import math
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from hf_qualcode.lexical import query_subtokens, subtokens
from hf_qualcode.retrieve.candidates.embedding import Ranking, rank_in_blocks
from hf_qualcode.retrieve.storage import DamagedStoreError


if TYPE_CHECKING:
    import bm25s

# Chosen on the 279 positive pairs of cosqa-train-570.json (MRR@20 .420; a plateau from k1 .6 to 1, b .75 to .9). BM25+
# and BM25L with their best k1 and b were within .002, so the plain variant stays.
K1 = 0.9
B = 0.8

_TOKENS_FILE = "tokens.safetensors"
_VOCABULARY_FILE = "vocabulary.json"
# The names under which bm25s keeps an index.
_DATA_FILE, _INDICES_FILE, _INDPTR_FILE = "data.csc.index.npy", "indices.csc.index.npy", "indptr.csc.index.npy"
_BM25S_VOCABULARY_FILE, _PARAMETERS_FILE = "vocab.index.json", "params.index.json"
_BM25S_VERSION = "0.3.16"


class TokenTable(NamedTuple):
    """The tokens of every document, from which the index is rebuilt after an update without reading any code again.

    A table depends on its documents and their order alone: however it came about, by `take` and `concat` or from the
    texts, it has the same bytes.

    Attributes:
        ids (`np.ndarray`): uint32 [num_tokens], positions in `vocabulary`, document after document.
        offsets (`np.ndarray`): int64 [num_documents + 1]; document `i` is `ids[offsets[i]:offsets[i + 1]]`.
        vocabulary (`list[str]`): Every token in use, sorted.
    """

    ids: np.ndarray
    offsets: np.ndarray
    vocabulary: list[str]

    @property
    def num_documents(self) -> int:
        return len(self.offsets) - 1

    @classmethod
    def from_texts(cls, texts: Iterable[str]) -> "TokenTable":
        """Tokenises texts with `hf_qualcode.lexical.subtokens`.

        Args:
            texts (`Iterable[str]`): One text a document; may be a generator.

        Returns:
            `TokenTable`: One row a text, in order.
        """
        first_seen: dict[str, int] = defaultdict(count().__next__)
        ids, lengths = array("I"), array("q")
        for text in texts:
            tokens = subtokens(text)
            lengths.append(len(tokens))
            ids.extend(map(first_seen.__getitem__, tokens))
        vocabulary = sorted(first_seen)
        rank = np.empty(len(vocabulary), dtype=np.uint32)
        rank[[first_seen[token] for token in vocabulary]] = np.arange(len(vocabulary), dtype=np.uint32)
        return cls(rank[np.frombuffer(ids, dtype=np.uint32)], _offsets(np.frombuffer(lengths, np.int64)), vocabulary)

    def take(self, rows: Sequence[int] | np.ndarray) -> "TokenTable":
        """The documents at `rows`, in that order.

        Args:
            rows (`Sequence[int]`): Positions, repeats allowed.

        Returns:
            `TokenTable`: [len(rows)] documents, with the vocabulary they use.
        """
        rows = np.asarray(rows, dtype=np.int64)
        lengths = np.diff(self.offsets)[rows]
        offsets = _offsets(lengths)
        positions = np.arange(offsets[-1]) + np.repeat(self.offsets[:-1][rows] - offsets[:-1], lengths)
        ids = self.ids[positions]
        used = np.zeros(len(self.vocabulary), dtype=bool)
        used[ids] = True
        renumbered = (np.cumsum(used) - 1).astype(np.uint32)
        return TokenTable(renumbered[ids], offsets, [self.vocabulary[i] for i in np.flatnonzero(used)])

    def concat(self, other: "TokenTable") -> "TokenTable":
        """This table's documents, then those of `other`.

        Args:
            other (`TokenTable`): The table to append.

        Returns:
            `TokenTable`: [num_documents + other.num_documents] documents.
        """
        vocabulary = sorted({*self.vocabulary, *other.vocabulary})
        rank = {token: i for i, token in enumerate(vocabulary)}
        tables = (self, other)
        ids = [np.fromiter(map(rank.__getitem__, t.vocabulary), np.uint32, len(t.vocabulary))[t.ids] for t in tables]
        offsets = np.concatenate([self.offsets, other.offsets[1:] + self.offsets[-1]])
        return TokenTable(np.concatenate(ids), offsets, vocabulary)

    def save(self, folder: str | Path) -> None:
        """Writes `tokens.safetensors` and `vocabulary.json` into an existing folder; equal tables give equal bytes."""
        folder = Path(folder)
        save_file({"ids": self.ids, "offsets": self.offsets}, folder / _TOKENS_FILE)
        text = json.dumps(self.vocabulary, ensure_ascii=False, separators=(",", ":"))
        (folder / _VOCABULARY_FILE).write_text(text, encoding="utf-8")

    @classmethod
    def load(cls, folder: str | Path) -> "TokenTable":
        """Reads what `save` wrote.

        Raises:
            `FileNotFoundError`: When a file is missing.
            `DamagedStoreError`: When they do not hold such a table.
        """
        folder = Path(folder)
        try:
            tensors = load_file(folder / _TOKENS_FILE)
            vocabulary = json.loads((folder / _VOCABULARY_FILE).read_text(encoding="utf-8"))
            ids, offsets = tensors["ids"], tensors["offsets"]
        except FileNotFoundError:
            raise
        except (OSError, ValueError, KeyError, SafetensorError) as error:
            raise DamagedStoreError(f"{folder} is damaged ({error}): make the index again") from error
        whole = len(offsets) > 0 and offsets[0] == 0 and offsets[-1] == len(ids) and (np.diff(offsets) >= 0).all()
        if not whole or (len(ids) and ids.max() >= len(vocabulary)):
            raise DamagedStoreError(f"{folder} is damaged (its tokens contradict one another): make the index again")
        return cls(ids, offsets, vocabulary)


class BM25Scorer:
    """BM25 (Lucene's variant) with scores computed ahead, one column a token, as bm25s stores them.

    Make one with `from_tokens` or `load`.

    Args:
        data (`np.ndarray`): float32 [num_entries], the score a token adds to a document.
        indices (`np.ndarray`): int32 [num_entries], the document, ascending within a token.
        indptr (`np.ndarray`): int64 [num_tokens + 1], where a token's entries start.
        num_documents (`int`): Size of the corpus.
        token_ids (`dict[str, int]`): Token -> its column.
        k1, b (`float`): The parameters `data` was computed with.
    """

    def __init__(self, data, indices, indptr, num_documents: int, token_ids: dict[str, int], k1: float, b: float):
        self.data, self.indices, self.indptr = data, indices, indptr
        self.num_documents, self.token_ids = num_documents, token_ids
        self.k1, self.b = k1, b

    @classmethod
    def from_tokens(cls, table: TokenTable, k1: float = K1, b: float = B) -> "BM25Scorer":
        """Computes the index. 10 million tokens take about a second.

        Args:
            table (`TokenTable`): The corpus.
            k1 (`float`, *optional*, defaults to 0.9): Saturation of repeats.
            b (`float`, *optional*, defaults to 0.8): Strength of the length normalisation, 0 to 1.

        Returns:
            `BM25Scorer`: Over `table.num_documents` documents.
        """
        num_documents, num_tokens = table.num_documents, len(table.vocabulary)
        lengths = np.diff(table.offsets)
        # A sorted 64-bit key (token, document) per token groups equal pairs and orders them as the index needs them.
        shift = max(1, num_documents).bit_length()
        keys = table.ids.astype(np.int64)
        keys <<= shift
        keys |= np.repeat(np.arange(num_documents), lengths)
        keys.sort()
        starts = np.flatnonzero(np.diff(keys, prepend=-1))
        frequencies = np.diff(starts, append=len(keys)).astype(np.float32)
        keys = keys[starts]
        documents = keys & ((1 << shift) - 1)
        tokens = keys >> shift
        document_frequencies = np.bincount(tokens, minlength=num_tokens)

        idf = np.empty(num_tokens, dtype=np.float32)
        for frequency in np.unique(document_frequencies):
            # math.log, not np.log: the same bits on every processor.
            value = math.log(1 + (num_documents - frequency + 0.5) / (frequency + 0.5))
            idf[document_frequencies == frequency] = value
        mean_length = lengths.mean() if num_documents else 1.0
        norms = k1 * ((1 - b) + b * lengths / max(mean_length, 1e-9))
        data = (idf[tokens] * (frequencies / (norms[documents] + frequencies))).astype(np.float32)
        indptr = _offsets(document_frequencies)
        token_ids = {token: i for i, token in enumerate(table.vocabulary)}
        return cls(data, documents.astype(np.int32), indptr, num_documents, token_ids, k1, b)

    def score(self, queries: Sequence[str]) -> np.ndarray:
        """BM25 of every document for every query; a token that the query repeats counts as often as it stands there.

        Args:
            queries (`Sequence[str]`): As typed.

        Returns:
            `np.ndarray`: float32 [num_queries, num_documents], 0 where no token is shared.
        """
        scores = np.zeros((len(queries), self.num_documents), dtype=np.float32)
        for row, query in zip(scores, queries, strict=True):
            repeats = Counter(self.token_ids[t] for t in query_subtokens(query) if t in self.token_ids)
            if not repeats:
                continue
            columns = [slice(self.indptr[token], self.indptr[token + 1]) for token in repeats]
            documents = np.concatenate([self.indices[column] for column in columns])
            pairs = zip(columns, repeats.values(), strict=True)
            added = [self.data[column] * n if n > 1 else self.data[column] for column, n in pairs]
            # Sums in float64, so the order of the query's words cannot change a score. Four times faster than adding
            # column by column.
            row[:] = np.bincount(documents, np.concatenate(added), minlength=self.num_documents)
        return scores

    def rank(self, queries: Sequence[str], k: int) -> Ranking:
        """The `k` best documents of each query, a few queries at a time; documents with score 0 fill the end.

        Args:
            queries (`Sequence[str]`): As typed.
            k (`int`): How many.

        Returns:
            `Ranking`: [num_queries, min(k, num_documents)].
        """
        return rank_in_blocks(self.score, queries, k, self.num_documents)

    def save(self, folder: str | Path) -> None:
        """Writes the index into an existing folder, in the format of bm25s; equal indexes give equal bytes."""
        folder = Path(folder)
        for name, values in ((_DATA_FILE, self.data), (_INDICES_FILE, self.indices), (_INDPTR_FILE, self.indptr)):
            np.save(folder / name, values, allow_pickle=False)
        vocabulary = json.dumps(self.token_ids, ensure_ascii=False, separators=(",", ":"))
        (folder / _BM25S_VOCABULARY_FILE).write_text(vocabulary, encoding="utf-8")
        parameters = {**self._bm25s_parameters(), "num_docs": self.num_documents, "version": _BM25S_VERSION}
        (folder / _PARAMETERS_FILE).write_text(json.dumps(parameters, indent=4), encoding="utf-8")

    @classmethod
    def load(cls, folder: str | Path, mmap: bool = True) -> "BM25Scorer":
        """Opens what `save` wrote.

        Args:
            folder (`str` or `Path`): The index's folder.
            mmap (`bool`, *optional*, defaults to `True`): Map the arrays instead of reading them.

        Returns:
            `BM25Scorer`: Ready to score.

        Raises:
            `FileNotFoundError`: When a file is missing.
            `DamagedStoreError`: When they are not such an index.
        """
        folder = Path(folder)
        try:
            arrays = [_load_array(folder / name, mmap) for name in (_DATA_FILE, _INDICES_FILE, _INDPTR_FILE)]
            token_ids = json.loads((folder / _BM25S_VOCABULARY_FILE).read_text(encoding="utf-8"))
            parameters = json.loads((folder / _PARAMETERS_FILE).read_text(encoding="utf-8"))
            scorer = cls(*arrays, parameters["num_docs"], token_ids, parameters["k1"], parameters["b"])
            entries = len(scorer.data)
            whole = len(scorer.indptr) == len(token_ids) + 1 and scorer.indptr[-1] == entries == len(scorer.indices)
        except FileNotFoundError:
            raise  # `open_store` looks whether a writer has replaced it
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DamagedStoreError(f"{folder} is damaged ({error}): make the index again") from error
        if not whole:
            raise DamagedStoreError(f"{folder} is damaged (it contradicts itself): make the index again")
        return scorer

    def as_bm25s(self) -> "bm25s.BM25":
        """The same index as an object of the library bm25s, sharing the arrays.

        Returns:
            `bm25s.BM25`: Query it with tokens of `hf_qualcode.lexical.query_subtokens`.
        """
        import bm25s

        index = bm25s.BM25(**self._bm25s_parameters())
        index.scores = {
            "data": self.data, "indices": self.indices, "indptr": self.indptr, "num_docs": self.num_documents
        }  # fmt: skip
        index.vocab_dict, index.unique_token_ids_set = self.token_ids, set(self.token_ids.values())
        index.nonoccurrence_array = None
        return index

    def _bm25s_parameters(self) -> dict:
        return {
            "k1": self.k1, "b": self.b, "delta": 0.5, "method": "lucene", "idf_method": "lucene",
            "dtype": "float32", "int_dtype": "int32", "backend": "numpy",
        }  # fmt: skip


def _offsets(lengths: np.ndarray) -> np.ndarray:
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def _load_array(path: Path, mmap: bool) -> np.ndarray:
    # An empty array cannot be memory mapped.
    try:
        return np.load(path, mmap_mode="r" if mmap else None, allow_pickle=False)
    except ValueError:
        return np.load(path, allow_pickle=False)
