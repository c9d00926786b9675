"""Jina-reranker-v2-base-multilingual: XLM-RoBERTa, published for code of its own that is never run here.

The weights are those of an ordinary XLM-RoBERTa under other names, with query, key and value in one matrix. They are
renamed to the class of transformers, so what is saved afterwards is a stock model.
"""

import re
from collections.abc import Iterator

from torch import Tensor

from hf_qualcode.rerank.backbones import encoder
from hf_qualcode.rerank.backbones._base import Backbone
from hf_qualcode.rerank.backbones._folder import ModelFolder
from hf_qualcode.rerank.backbones._loading import LoadOptions
from hf_qualcode.types import QualcodeError


# As the model's card says; whatever is derived from the weights stays under it.
LICENSE = "cc-by-nc-4.0"
_FUSED = {"mixer.Wqkv": ("query", "key", "value"), "mixer.Wkv": ("key", "value"), "mixer.Wq": ("query",)}
_RENAMED = {
    "mixer.out_proj": "attention.output.dense",
    "norm1": "attention.output.LayerNorm",
    "mlp.fc1": "intermediate.dense",
    "mlp.fc2": "output.dense",
    "norm2": "output.LayerNorm",
}
_LAYER = re.compile(r"(roberta\.encoder\.)layers(\.\d+\.)(.+)\.(weight|bias)")
_EMBEDDING_NORM = ("roberta.emb_ln.", "roberta.embeddings.LayerNorm.")


def claims(folder: ModelFolder) -> int:
    """How well this family fits a folder: 3 where the weights bear the names of Jina's implementation, or the folder
    the name of its model."""
    return 3 if _has_own_names(folder) or folder.is_named("jina-reranker-v2") else 0


def load(folder: ModelFolder, options: LoadOptions) -> Backbone:
    """The backbone in a folder, under Jina's names or the stock ones.

    Raises:
        `QualcodeError`: If it cannot be loaded, or its positions are rotary, as those of Jina's embedding models.
    """
    rotary = folder.config.get("position_embedding_type", "absolute") != "absolute"
    if folder.model_type != "xlm-roberta" or rotary:
        raise QualcodeError(
            f"{folder.name} is no XLM-RoBERTa with absolute positions, as Jina-reranker-v2 is; name another backbone"
        )
    tensors = None
    if _has_own_names(folder):
        tensors = dict(pair for name in folder.tensor_files for pair in stock_weights(name, folder.tensor(name)))
    return encoder.load(folder, options, name="jina", license=LICENSE, tensors=tensors)


def stock_weights(name: str, tensor: Tensor) -> Iterator[tuple[str, Tensor]]:
    """One tensor of Jina's implementation as tensors of `XLMRobertaForSequenceClassification`.

    Args:
        name (`str`): For example `roberta.encoder.layers.0.mixer.Wqkv.weight`, [3 * hidden_size, hidden_size].
        tensor (`Tensor`): It.

    Yields:
        `tuple[str, Tensor]`: Name and tensor, for example `roberta.encoder.layer.0.attention.self.query.weight`,
        [hidden_size, hidden_size].
    """
    found = _LAYER.fullmatch(name)
    if found is None:
        yield name.replace(*_EMBEDDING_NORM), tensor
        return
    start, number, module, kind = found.groups()
    if module in _FUSED:
        parts = _FUSED[module]
        for part, share in zip(parts, tensor.chunk(len(parts)), strict=True):
            yield f"{start}layer{number}attention.self.{part}.{kind}", share.contiguous()
    else:
        yield f"{start}layer{number}{_RENAMED.get(module, module)}.{kind}", tensor


def _has_own_names(folder: ModelFolder) -> bool:
    return any(".mixer." in name or ".emb_ln." in name for name in folder.tensor_files)
