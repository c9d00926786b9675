"""Qwen3-Reranker: yes/no log-odds under the template it was trained with."""

from hf_qualcode.rerank.backbones import causal
from hf_qualcode.rerank.backbones._base import Backbone
from hf_qualcode.rerank.backbones._folder import ModelFolder
from hf_qualcode.rerank.backbones._loading import LoadOptions
from hf_qualcode.rerank.backbones._reading import PairTemplate


# The official transformers example (the one for vLLM joins the fields by blank lines). Pinned: scores change with any
# byte of it.
TEXT = (
    "<|im_start|>system\n"
    "Judge whether the Document meets the requirements based on the Query and the Instruct provided. "
    'Note that the answer can only be "yes" or "no".<|im_end|>\n'
    "<|im_start|>user\n"
    "<Instruct>: {instruction}\n<Query>: {query}\n"
)
PAIR = "<Document>: {code}<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"
TEMPLATE_ID = "qwen3-reranker-1"
LICENSE = "apache-2.0"
_NAME = "qwen3-reranker"


def claims(folder: ModelFolder) -> int:
    """How well this family fits a folder: 3 for any Qwen3."""
    return 3 if folder.model_type == "qwen3" else 0


def load(folder: ModelFolder, options: LoadOptions) -> Backbone:
    """The backbone in a folder; see `causal.load`. Its licence is known where the folder is named after
    Qwen3-Reranker, or says that it was made from one: other models of this architecture are under licences of their
    own."""
    license = LICENSE if folder.is_named(_NAME) or folder.settings.get("license") == LICENSE else None
    template = PairTemplate.parse(TEXT, PAIR, name=folder.name)
    return causal.load(folder, options, name="qwen3", template=template, template_id=TEMPLATE_ID, license=license)
