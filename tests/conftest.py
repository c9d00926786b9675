"""Shared fixtures: a cache folder of the session's own, no network, and tiny real models made in code."""

import json
import shutil
import signal
from pathlib import Path

import pytest


def pytest_configure():
    # A shell that starts something in the background has it ignore Ctrl-C, and so do all processes that it starts.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def isolated_environment(tmp_path_factory):
    """Every test, and every process a test starts, is offline and has an empty cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_HUB_OFFLINE", "1")
        patch.setenv("HF_QUALCODE_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


TINY_TEXTS = [
    "def read_json(path):\n    with open(path) as file:\n        return json.load(file)",
    "def write_json(path, value):\n    path.write_text(json.dumps(value))",
    "class Queue:\n    def put(self, item):\n        self.items.append(item)",
    "sort a list of numbers",
    "open a file and read it line by line",
]


def train_word_pieces(texts=TINY_TEXTS, vocab_size=300):
    """A BERT tokenizer trained on `texts`, with [CLS] and [SEP] around each."""
    from tokenizers import BertWordPieceTokenizer
    from tokenizers.processors import TemplateProcessing

    tokenizer = BertWordPieceTokenizer(lowercase=True)
    tokenizer.train_from_iterator(texts, vocab_size=vocab_size, min_frequency=1, show_progress=False)
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]",
        special_tokens=[(token, tokenizer.token_to_id(token)) for token in ("[CLS]", "[SEP]")],
    )
    return tokenizer._tokenizer


def save_tiny_bert(folder: Path, *, seed: int = 0, model_type: str = "bert") -> Path:
    """A transformers folder of a two-layer BERT or RoBERTa with random weights and a trained tokenizer."""
    import torch
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast, RobertaConfig, RobertaModel

    config_class, model_class = {"bert": (BertConfig, BertModel), "roberta": (RobertaConfig, RobertaModel)}[model_type]
    words = train_word_pieces()
    torch.manual_seed(seed)
    config = config_class(
        vocab_size=words.get_vocab_size(),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=66,
        pad_token_id=words.token_to_id("[PAD]"),
        initializer_range=0.5,  # far from zero, so that texts differ
    )
    model_class(config).eval().save_pretrained(folder)
    PreTrainedTokenizerFast(
        tokenizer_object=words, model_max_length=64, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]",
        sep_token="[SEP]", mask_token="[MASK]",
    ).save_pretrained(folder)  # fmt: skip
    return folder


def save_sentence_transformer(folder: Path, source: Path, *, pooling="mean", prompts=None, max_length=48) -> Path:
    """A sentence-transformers folder around the transformers folder `source`, in the layout that library writes."""
    shutil.copytree(source, folder, dirs_exist_ok=True)
    kinds = {"": "models.Transformer", "1_Pooling": "models.Pooling", "2_Normalize": "models.Normalize"}
    modules = [
        {"idx": number, "name": str(number), "path": path, "type": f"sentence_transformers.{kind}"}
        for number, (path, kind) in enumerate(kinds.items())
    ]
    contents = {
        "modules.json": modules,
        "1_Pooling/config.json": {"embedding_dimension": 32, "pooling_mode": pooling, "include_prompt": True},
        "2_Normalize/config.json": {},
        "sentence_bert_config.json": {"max_seq_length": max_length, "do_lower_case": False},
        "config_sentence_transformers.json": {"prompts": prompts or {}, "default_prompt_name": None},
    }
    for name, content in contents.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(json.dumps(content), encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def make_tiny_bert():
    """`save_tiny_bert`, for tests that need another seed or model type."""
    return save_tiny_bert


@pytest.fixture(scope="session")
def make_sentence_transformer():
    """`save_sentence_transformer`, for tests that need another pooling, prompts or length."""
    return save_sentence_transformer


@pytest.fixture(scope="session")
def tiny_bert(tmp_path_factory) -> Path:
    """A plain transformers folder. Read only: copy it before changing it."""
    return save_tiny_bert(tmp_path_factory.mktemp("tiny_bert"))


@pytest.fixture(scope="session")
def tiny_sentence_transformer(tmp_path_factory, tiny_bert) -> Path:
    """The same model as a sentence-transformers folder: mean pooling, unit norm, 48 tokens. Read only."""
    return save_sentence_transformer(tmp_path_factory.mktemp("tiny_sentence_transformer"), tiny_bert)


@pytest.fixture(scope="session")
def minilm_folder() -> Path:
    """The packaged MiniLM; the test is skipped where it is not installed."""
    from hf_qualcode.hub import packaged_minilm

    folder = packaged_minilm()
    if folder is None:
        pytest.skip("the packaged MiniLM is not installed (extra `offline`)")
    return folder
