"""BGE-reranker-v2-m3: a stock XLM-RoBERTa classifier."""

from hf_qualcode.rerank.backbones import encoder
from hf_qualcode.rerank.backbones._base import Backbone
from hf_qualcode.rerank.backbones._folder import ModelFolder
from hf_qualcode.rerank.backbones._loading import LoadOptions


LICENSE = "apache-2.0"
_NAME = "bge-reranker"


def claims(folder: ModelFolder) -> int:
    """How well this family fits a folder: 3 where XLM-RoBERTa goes by the name of a BGE reranker."""
    return 3 if folder.model_type == "xlm-roberta" and folder.is_named(_NAME) else 0


def load(folder: ModelFolder, options: LoadOptions) -> Backbone:
    """The backbone in a folder; see `encoder.load`. Its licence is known where the folder is named after BGE, or says
    that it was made from one."""
    license = LICENSE if folder.is_named(_NAME) or folder.settings.get("license") == LICENSE else None
    return encoder.load(folder, options, name="bge", license=license)
