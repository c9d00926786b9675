"""Distil a transformer encoder into a table of token vectors, by the method of Model2Vec.

Each token of the vocabulary is encoded alone; the vectors are reduced by PCA and weighted by how rare the token is
(smooth inverse frequency, the frequency taken from the rank by Zipf's law).
"""

import hashlib
import json
from pathlib import Path

import numpy as np

from hf_qualcode.digests import file_digest
from hf_qualcode.encoders.recipe import EncoderRecipe
from hf_qualcode.retrieve.encoder import EncodeProgress


# Chosen on the 279 positives of CoSQA's training pairs: of 128, 256 and 384 components, and 1e-3 to 1e-5.
DIMENSION = 256
SIF_COEFFICIENT = 1e-4
# Count up when the files, or how `StaticEncoder` reads words, change.
_LAYOUT = 2


def distillation_key(source: Path) -> str:
    """Names the result of `distill(source, ...)`: source and settings."""
    return distillation_fingerprint(source)[:24]


def distillation_fingerprint(source: Path) -> str:
    """`StaticEncoder.fingerprint` of what `distill(source, ...)` writes, found without distilling."""
    # Of what the table is made from, not of its bytes: those may differ in a last bit from machine to machine.
    content = [EncoderRecipe.read(source).fingerprint(), DIMENSION, SIF_COEFFICIENT, _LAYOUT]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def distill(source: Path, target: Path, *, progress: EncodeProgress | None = None) -> None:
    """Write the static encoder of a BERT-like one into a folder.

    Args:
        source (`Path`): Folder of the transformer; its tokenizer.json must be WordPiece.
        target (`Path`): Existing folder to write config.json, tokenizer.json and model.safetensors into.
        progress (`Callable[[int, int], None]`, *optional*): Called with tokens done and their total.
    """
    from safetensors.numpy import save_file

    vectors = token_vectors(source, progress=progress)
    table = reduce_and_weight(vectors, dimension=DIMENSION, sif_coefficient=SIF_COEFFICIENT)
    tokenizer = json.loads((source / "tokenizer.json").read_text(encoding="utf-8"))
    tokenizer["truncation"] = tokenizer["padding"] = None
    (target / "tokenizer.json").write_text(json.dumps(tokenizer, ensure_ascii=False), encoding="utf-8")
    save_file({"embeddings": table.astype(np.float16)}, target / "model.safetensors")
    config = {
        "fingerprint": distillation_fingerprint(source),
        "dimension": table.shape[1],
        "sif_coefficient": SIF_COEFFICIENT,
        "sha256": {name: file_digest(target / name) for name in ("model.safetensors", "tokenizer.json")},
    }
    (target / "config.json").write_text(json.dumps(config, indent=2), encoding="utf-8")


def token_vectors(source: Path, *, progress: EncodeProgress | None = None) -> np.ndarray:
    """Each token of the vocabulary encoded alone, between the special tokens.

    Returns:
        `np.ndarray`: float32 `[vocab_size, dimension]`.
    """
    import torch
    from tokenizers import Tokenizer

    from hf_qualcode.encoders.backbones import packed_bert

    recipe = EncoderRecipe.read(source)
    backbone = packed_bert(recipe, torch.float32)
    tokenizer = Tokenizer.from_file(str(source / "tokenizer.json"))
    tokenizer.no_padding()
    first, last = tokenizer.encode("").ids
    total = tokenizer.get_vocab_size()
    parts = []
    with torch.inference_mode():
        for start in range(0, total, 512):
            stop = min(start + 512, total)
            ((_, states),) = backbone([[first, token, last] for token in range(start, stop)])
            parts.append(states.mean(dim=1))
            if progress is not None:
                progress(stop, total)
    return torch.cat(parts).numpy()


def reduce_and_weight(vectors: np.ndarray, *, dimension: int, sif_coefficient: float) -> np.ndarray:
    """PCA to `dimension` components, then each row times `a / (a + p)` with `p` the row's probability by Zipf's law.

    Args:
        vectors (`np.ndarray`): float32 `[vocab_size, original_dimension]`, most frequent token first.
        dimension (`int`): Components to keep.
        sif_coefficient (`float`): The `a`.

    Returns:
        `np.ndarray`: float32 `[vocab_size, min(dimension, original_dimension)]`.
    """
    centred = (vectors - vectors.mean(axis=0)).astype(np.float64)
    _, axes = np.linalg.eigh(centred.T @ centred)
    axes = axes[:, ::-1][:, :dimension]
    # An eigenvector's sign is arbitrary: fixed, so that the bytes are the same on every run.
    axes = axes * np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])])
    inverse_rank = 1 / np.arange(2, len(vectors) + 2)
    probability = inverse_rank / inverse_rank.sum()
    weight = sif_coefficient / (sif_coefficient + probability)
    return (centred @ axes * weight[:, None]).astype(np.float32)
