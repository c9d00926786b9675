"""Transformer encoders, run so that little is computed twice or for padding.

What pays, measured in float32 on 2 cores: batches by number of tokens after sorting by length, packed tokens without
padding (`PackedBert`), query, key and value in one product, equal texts encoded once, and batches side by
side with a core each. What did not: weights laid out for oneDNN or MKL beforehand (within noise), and the fused GELU
of oneDNN (slower).
"""

import logging
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

from hf_qualcode.batching import replace_surrogates, token_batches
from hf_qualcode.devices import choose_dtype, default_device
from hf_qualcode.encoders import EncodeProgress
from hf_qualcode.encoders.backbones import TransformersBackbone, packed_bert
from hf_qualcode.encoders.pooling import pool
from hf_qualcode.encoders.recipe import EncoderRecipe
from hf_qualcode.encoders.tokens import TextTokenizer
from hf_qualcode.packed_bert import PackedBert
from hf_qualcode.threads import map_side_by_side
from hf_qualcode.types import QualcodeError


logger = logging.getLogger(__name__)

# Texts that are tokenised, then sorted by length, together: bounds memory, and enough for runs of equal length.
_TEXTS_A_WINDOW = 8192
# On a CPU the states of a batch should stay in its caches; an accelerator wants to be filled.
_TOKENS_A_BATCH = 1024
_TOKENS_A_BATCH_ACCELERATED = 32768


def load_transformer(folder: Path, *, id: str, device: str | None = None, precision: str = "auto"):
    """The encoder in `folder`: a `TransformerEncoder`, or a `SentenceTransformerEncoder` for what that cannot run.

    Args:
        folder (`Path`): A transformers or sentence-transformers folder.
        id (`str`): Name of the encoder.
        device, precision (*optional*): See `load_encoder`.

    Raises:
        `QualcodeError`: If it needs code of its own, or cannot be loaded or run.
    """
    recipe = EncoderRecipe.read(folder)
    recipe.refuse_own_code()
    chosen = torch.device(device) if device else default_device()
    dtype = choose_dtype(precision, chosen)
    if recipe.exotic:
        logger.info("encoder %s has %s: run by sentence-transformers, without our batching", id, recipe.exotic)
    kind = SentenceTransformerEncoder if recipe.exotic else TransformerEncoder
    try:
        return kind(recipe, id=id, device=chosen, dtype=dtype)
    except QualcodeError:
        raise
    except Exception as error:  # weights and configuration that do not go together fail anywhere in the first run
        reason = str(error).strip().partition("\n")[0]
        raise QualcodeError(
            f"encoder {folder} cannot be run ({type(error).__name__}: {reason}); its files are damaged or do not "
            "belong together"
        ) from error


class TransformerEncoder:
    """A transformer, pooling and unit norm. Meets `hf_qualcode.retrieve.encoder.Encoder`.

    Args:
        recipe (`EncoderRecipe`): What the folder says.
        id (`str`): Name of the encoder.
        device (`torch.device`): Where it runs.
        dtype (`torch.dtype`): Of weights and states; pooling and norm are float32.
    """

    def __init__(self, recipe: EncoderRecipe, *, id: str, device: torch.device, dtype: torch.dtype):
        fits = PackedBert.fits(recipe.config)
        self.id = id
        self.recipe = recipe
        self.device = device
        self.dtype = dtype
        self.fingerprint = recipe.fingerprint()
        self.tokenizer = TextTokenizer(recipe, direct=fits)
        # On an accelerator many small attention calls cost more than padding does.
        packed = fits and device.type == "cpu"
        self.backbone = packed_bert(recipe, dtype) if packed else TransformersBackbone(recipe, dtype, device)
        self.dimension = self._run(self.tokenizer([""])).shape[1]

    def encode(
        self, texts: Sequence[str], *, is_query: bool = False, progress: EncodeProgress | None = None
    ) -> np.ndarray:
        """See `Encoder.encode`.

        Raises:
            `QualcodeError`: If the model gives a vector that is not finite.
        """
        prompt = self.recipe.query_prompt if is_query else self.recipe.document_prompt
        unique: dict[str, int] = {}
        rows = np.array([unique.setdefault(text, len(unique)) for text in texts], dtype=np.int64)
        copies = np.bincount(rows, minlength=len(unique))
        vectors = np.empty((len(unique), self.dimension), dtype=np.float32)
        done = 0
        for batch, part in self._encode_unique([prompt + text for text in unique] if prompt else list(unique)):
            vectors[batch] = part
            done += int(copies[batch].sum())
            if progress is not None:
                progress(done, len(texts))
        bad = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
        if len(bad):
            raise QualcodeError(
                f"encoder {self.id} gave NaN or infinite values for {len(bad)} of {len(unique)} texts, first "
                f"{list(unique)[bad[0]][:60]!r}; its weights are damaged, or {self.dtype} is too coarse for it"
            )
        return vectors[rows] if len(unique) < len(texts) else vectors

    def _encode_unique(self, texts: list[str]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Rows of `texts` and their vectors, batch by batch."""
        starts = range(0, len(texts), _TEXTS_A_WINDOW)
        windows = [texts[start : start + _TEXTS_A_WINDOW] for start in starts]
        with ThreadPoolExecutor(max_workers=1) as ahead:
            tokenised = ahead.submit(self.tokenizer, windows[0]) if windows else None
            for number, start in enumerate(starts):
                ids = tokenised.result()
                if number + 1 < len(windows):
                    tokenised = ahead.submit(self.tokenizer, windows[number + 1])
                batches = list(token_batches([len(row) for row in ids], self._tokens_a_batch))

                def run(batch: np.ndarray, ids: list[list[int]] = ids) -> np.ndarray:
                    return self._run([ids[row] for row in batch])

                side_by_side = isinstance(self.backbone, PackedBert) and len(batches) > 1
                results = map_side_by_side(run, batches) if side_by_side else ((b, run(b)) for b in batches)
                for batch, vectors in results:
                    yield start + batch, vectors

    @property
    def _tokens_a_batch(self) -> int:
        return _TOKENS_A_BATCH if self.device.type == "cpu" else _TOKENS_A_BATCH_ACCELERATED

    @torch.inference_mode()
    def _run(self, batch: list[list[int]]) -> np.ndarray:
        """Vectors of one batch of token ids sorted by length, float32 `[num_texts, dimension]`."""
        pooled = torch.cat([pool(states, self.recipe.pooling) for _, states in self.backbone(batch)])
        return F.normalize(pooled, dim=-1).cpu().numpy()


class SentenceTransformerEncoder:
    """An encoder with parts that only sentence-transformers knows, run by it. Meets `Encoder`.

    Args:
        recipe, id, device, dtype: As for `TransformerEncoder`.

    Raises:
        `QualcodeError`: If sentence-transformers cannot load it without running code from its folder.
    """

    def __init__(self, recipe: EncoderRecipe, *, id: str, device: torch.device, dtype: torch.dtype):
        from sentence_transformers import SentenceTransformer

        try:
            self.model = SentenceTransformer(
                str(recipe.folder),
                device=str(device),
                local_files_only=True,
                trust_remote_code=False,
                model_kwargs={"dtype": dtype, "use_safetensors": True},
            )
        except Exception as error:  # an odd configuration raises anything
            reason = str(error).strip().partition("\n")[0]
            raise QualcodeError(f"encoder {recipe.folder} cannot be loaded: {reason}") from error
        self.id = id
        self.recipe = recipe
        self.fingerprint = recipe.fingerprint()
        self.dimension = self.encode([""]).shape[1]

    def encode(
        self, texts: Sequence[str], *, is_query: bool = False, progress: EncodeProgress | None = None
    ) -> np.ndarray:
        """See `Encoder.encode`."""
        prompt = self.recipe.query_prompt if is_query else self.recipe.document_prompt
        parts = []
        for start in range(0, len(texts), _TEXTS_A_WINDOW):
            window = [replace_surrogates(text) for text in texts[start : start + _TEXTS_A_WINDOW]]
            part = self.model.encode(
                window, prompt=prompt, normalize_embeddings=True, show_progress_bar=False, convert_to_numpy=True
            )
            parts.append(part.astype(np.float32))
            if progress is not None:
                progress(start + len(window), len(texts))
        vectors = np.concatenate(parts) if parts else np.empty((0, self.dimension), dtype=np.float32)
        if not np.isfinite(vectors).all():
            raise QualcodeError(f"encoder {self.id} gave NaN or infinite values; its weights may be damaged")
        return vectors
