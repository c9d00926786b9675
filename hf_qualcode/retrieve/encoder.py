"""Texts to vectors: what an encoder is, and how one is loaded by name."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from hf_qualcode.encoders import EncodeProgress
from hf_qualcode.hub import MINILM, existing_path, find_model, packaged_minilm, resolve_model
from hf_qualcode.types import QualcodeError, UsageError


STATIC = "static"
PRECISIONS = ("auto", "float32", "bfloat16")


class Encoder(Protocol):
    """Turns texts into vectors whose inner product says how near they are.

    Attributes:
        id (`str`): The name `load_encoder` finds it by.
        fingerprint (`str`): SHA-256 over all that shapes its vectors. Vectors with different fingerprints never mix.
        dimension (`int`): Number of components of a vector.
    """

    id: str
    fingerprint: str
    dimension: int

    def encode(
        self, texts: Sequence[str], *, is_query: bool = False, progress: EncodeProgress | None = None
    ) -> np.ndarray:
        """Encode texts.

        Args:
            texts (`Sequence[str]`): Any strings, empty ones and lone surrogates included.
            is_query (`bool`, *optional*, defaults to `False`): Whether the encoder's query prompt goes before each.
            progress (`Callable[[int, int], None]`, *optional*): Called with texts done and their total.

        Returns:
            `np.ndarray`: float32 `[num_texts, dimension]`, of unit norm, in the order of `texts`. A row does not
            depend on the other texts.
        """
        ...


def load_encoder(
    name: str, *, device: str | None = None, precision: str = "auto", progress: EncodeProgress | None = None
) -> Encoder:
    """Load an encoder.

    Args:
        name (`str`):
            `"minilm"` (packaged all-MiniLM-L6-v2), `"static"` (a table of token vectors distilled from it once, fast
            and coarse), a folder (transformers or sentence-transformers), or a Hub id `org/name[@revision]`.
        device (`str`, *optional*):
            `"cpu"`, `"cuda"`, `"mps"`, ... Defaults to the accelerator that torch finds, else the CPU.
        precision (`str`, *optional*, defaults to `"auto"`):
            `"float32"`, `"bfloat16"`, or `"auto"`: bfloat16 where the hardware multiplies in it (CPUs with AMX or
            AVX512-BF16, CUDA since compute capability 8.0), else float32.
        progress (`Callable[[int, int], None]`, *optional*):
            Called while `"static"` is distilled, with tokens done and their total.

    Returns:
        `Encoder`: Ready to use.

    Raises:
        `UsageError`: If `name` or `precision` is not legal.
        `QualcodeError`: If the encoder cannot be found, fetched or loaded.
    """
    if precision not in PRECISIONS:
        raise UsageError(f"precision {precision!r}; legal are {', '.join(PRECISIONS)}")
    if name == STATIC:
        from hf_qualcode.retrieve.static import packaged_static

        return packaged_static(progress=progress)
    folder = resolve_model(name)

    from hf_qualcode.encoders.transformer import load_transformer

    # An index keeps the id to load its encoder by, from whatever working directory.
    identity = name if name == MINILM or existing_path(name) is None else str(folder.resolve())
    return load_transformer(folder, id=identity, device=device, precision=precision)


def encoder_fingerprint(name: str) -> str | None:
    """The fingerprint that `load_encoder(name)` would have, without torch, weights in memory or the network.

    Large files are hashed once, then their digests are remembered (see `hf_qualcode.digests`).

    Args:
        name (`str`): As for `load_encoder`.

    Returns:
        `str`: `Encoder.fingerprint`, or `None` where the encoder is not on this machine: MiniLM is not installed, no
        such folder or one without a model, a Hub id that is not in the Hub cache, not a legal name.

    Raises:
        `QualcodeError`: If the encoder is here, but damaged.
    """
    from hf_qualcode.encoders.recipe import EncoderRecipe

    try:
        if name == STATIC:
            from hf_qualcode.retrieve.distillation import distillation_fingerprint

            source = packaged_minilm()
            return None if source is None else distillation_fingerprint(source)
        folder = find_model(name)
        return None if folder is None else EncoderRecipe.read(folder).fingerprint()
    except OSError:  # removed, or made unreadable, meanwhile
        return None


def is_present(name: str) -> bool:
    """Whether `load_encoder(name)` would find the encoder on this machine, the Hub cache included. It may still be
    damaged."""
    if name == STATIC:
        name = MINILM
    try:
        return find_model(name) is not None
    except OSError:
        return False
    except QualcodeError:
        return True
