"""Static encoder: a text's vector is a sum of word vectors that were computed beforehand.

Loading and running it needs numpy and tokenizers only, no torch. It finds candidates; it does not rank as a
transformer does.

A word is a run of letters or of digits, split where camelCase starts a new one, in lower case; its vector is the sum
of its tokens' vectors. A text is the sum of its words' vectors, each times the square root of its count: code repeats
its variables, and a tenfold `self` does not make a text ten times as much about it. Punctuation counts for nothing. On
the 279 positives of CoSQA's training pairs this finds .84 of the targets among the first 200 of 6,267; the plain mean
over all tokens, punctuation included, finds .71.
"""

import json
import logging
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from hf_qualcode.digests import file_digest
from hf_qualcode.hub import MINILM_MISSING, cache_dir, packaged_minilm
from hf_qualcode.retrieve.encoder import STATIC, EncodeProgress
from hf_qualcode.types import QualcodeError


logger = logging.getLogger(__name__)

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W_a-zA-Z0-9]+").findall
_TEXTS_A_BATCH = 512
# Of how many words vectors are held at once: 64 MB at 256 components.
_WORDS_HELD = 65536


def packaged_static(*, progress: EncodeProgress | None = None) -> "StaticEncoder":
    """The static encoder of the packaged MiniLM, distilled into `cache_dir()/static` on first use (about 20 s).

    Written aside then renamed, under a lock: of two processes at once one waits, and a killed one leaves nothing that
    counts.

    Args:
        progress (`Callable[[int, int], None]`, *optional*): Called with tokens done and their total.

    Raises:
        `QualcodeError`: If MiniLM is not installed, or the cache folder cannot be written.
    """
    from hf_qualcode.retrieve.distillation import distill, distillation_key

    source = packaged_minilm()
    if source is None:
        raise QualcodeError(MINILM_MISSING)
    home = cache_dir() / "static"
    folder = home / distillation_key(source)
    encoder = _load_if_sound(folder)
    if encoder is not None:
        return encoder

    from filelock import FileLock

    try:
        home.mkdir(parents=True, exist_ok=True)
        with FileLock(home / f"{folder.name}.lock"):
            encoder = _load_if_sound(folder)  # another process may have made it meanwhile
            if encoder is not None:
                return encoder
            for leftover in (folder, *home.glob(f"{folder.name}.*.tmp")):
                shutil.rmtree(leftover, ignore_errors=True)
            logger.warning("distilling the static encoder from MiniLM, once, into %s", folder)
            aside = Path(tempfile.mkdtemp(prefix=f"{folder.name}.", suffix=".tmp", dir=home))
            distill(source, aside, progress=progress)
            aside.replace(folder)
    except OSError as error:
        raise QualcodeError(
            f"the static encoder cannot be written to {home} ({error}); set HF_QUALCODE_CACHE to a writable folder"
        ) from error
    return StaticEncoder(folder, id=STATIC)


def _load_if_sound(folder: Path) -> "StaticEncoder | None":
    if not folder.is_dir():
        return None
    try:
        return StaticEncoder(folder, id=STATIC)
    except QualcodeError as error:
        logger.warning("%s; it is made anew", error)
        return None


class StaticEncoder:
    """A table of token vectors. Meets `hf_qualcode.retrieve.encoder.Encoder`.

    A text without a known word has the zero vector: it is near to nothing.

    Args:
        folder (`Path`): What `hf_qualcode.retrieve.distillation.distill` wrote.
        id (`str`): Name of the encoder.

    Raises:
        `QualcodeError`: If a file is absent or damaged.
    """

    def __init__(self, folder: Path, *, id: str):
        from safetensors import SafetensorError
        from safetensors.numpy import load_file
        from tokenizers import Tokenizer

        try:
            config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
            for name, digest in config["sha256"].items():
                if file_digest(folder / name) != digest:
                    raise QualcodeError(f"static encoder {folder} is damaged: {name} is not what was written")
            self.table = load_file(folder / "model.safetensors")["embeddings"].astype(np.float32)
            self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
            self.fingerprint: str = config["fingerprint"]
        except (OSError, ValueError, KeyError, TypeError, SafetensorError) as error:
            raise QualcodeError(f"static encoder {folder} is incomplete or damaged: {error!r}") from error
        self.id = id
        self.dimension: int = self.table.shape[1]
        self._unknown = self._tokenizer.token_to_id(self._tokenizer.model.unk_token)

    def encode(
        self, texts: Sequence[str], *, is_query: bool = False, progress: EncodeProgress | None = None
    ) -> np.ndarray:
        """See `Encoder.encode`; `is_query` makes no difference."""
        vectors = np.zeros((len(texts), self.dimension), dtype=np.float32)
        words = _WordVectors(self)
        for start in range(0, len(texts), _TEXTS_A_BATCH):
            batch = texts[start : start + _TEXTS_A_BATCH]
            for row, counts in enumerate(words.count(batch), start):
                if counts:
                    weights = np.sqrt(np.fromiter(counts.values(), dtype=np.float32, count=len(counts)))
                    np.dot(weights, words.table[list(counts)], out=vectors[row])
            if progress is not None:
                progress(start + len(batch), len(texts))
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.divide(vectors, norms, out=vectors, where=norms > 0)

    def word_vectors(self, words: Sequence[str]) -> np.ndarray:
        """Sums of the words' token vectors, float32 `[num_words, dimension]`; zero where no token is known."""
        vectors = np.zeros((len(words), self.dimension), dtype=np.float32)
        for row, encoding in enumerate(self._tokenizer.encode_batch_fast(list(words), add_special_tokens=False)):
            ids = [id for id in encoding.ids if id != self._unknown]
            if ids:
                vectors[row] = self.table[ids].sum(axis=0)
        return vectors


class _WordVectors:
    """The word vectors met during one call of `encode`: each word is tokenised once, which is most of the work.

    Attributes:
        table (`np.ndarray`): float32 `[num_words, dimension]`; the rows that `count` speaks of.
    """

    def __init__(self, encoder: StaticEncoder):
        self._encoder = encoder
        self._clear()

    def _clear(self) -> None:
        self.table = np.empty((0, self._encoder.dimension), dtype=np.float32)
        self._rows: dict[str, int] = {}  # of words as written
        self._lower_rows: dict[str, int] = {}

    def count(self, texts: Sequence[str]) -> list[Counter[int]]:
        """How often each text has each row of `table`. What an earlier call returned is void."""
        if len(self._rows) > _WORDS_HELD:
            self._clear()
        words = [_WORDS(text) for text in texts]
        met = set().union(*words) - self._rows.keys()
        new = sorted({word.lower() for word in met} - self._lower_rows.keys())
        if new:
            self._lower_rows.update(zip(new, range(len(self.table), len(self.table) + len(new)), strict=True))
            self.table = np.concatenate([self.table, self._encoder.word_vectors(new)])
        self._rows.update((word, self._lower_rows[word.lower()]) for word in met)
        return [Counter(map(self._rows.__getitem__, found)) for found in words]
