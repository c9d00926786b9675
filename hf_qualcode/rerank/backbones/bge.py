"""BGE-reranker-v2-m3: a stock XLM-RoBERTa classifier."""

from hf_qualcode.rerank.backbones import encoder
from hf_qualcode.rerank.backbones._base import Backbone
from hf_qualcode.rerank.backbones._folder import ModelFolder
from hf_qualcode.rerank.backbones._loading import LoadOptions


LICENSE = "apache-2.0"


def claims(folder: ModelFolder) -> int:
    """How well this family fits a folder: 3 where XLM-RoBERTa goes by the name of a BGE reranker."""
    named = f"{folder.name} {folder.path} {folder.config.get('_name_or_path', '')}".lower()
    return 3 if folder.model_type == "xlm-roberta" and "bge-reranker" in named else 0


def load(folder: ModelFolder, options: LoadOptions) -> Backbone:
    """The backbone in a folder; see `encoder.load`."""
    return encoder.load(folder, options, name="bge", license=LICENSE)
