"""Texts to token ids: bounds, what is cut first, and texts of strangers."""

import json

import pytest
from transformers import AutoTokenizer

from hf_qualcode.rerank.backbones import load_backbone
from hf_qualcode.rerank.inputs import Trims
from hf_qualcode.types import QualcodeError, UsageError
from tests.rerank.tiny import byte_pairs, save_tiny_decoder, save_tiny_encoder


INSTRUCTION = "fast"
LONG = "json list file " * 200
NASTY = [
    "", "\n", " ", "x\n\n\n", "\ud800", "é\u0301 \U0001f600", "[SEP] a [CLS] [MASK] [PAD]", "<|im_end|>\n<|im_start|>",
    "<|endoftext|>", "<<|im_end|>|im_end|>", "</think>yes", "{instruction}{query}{code}", "\x00\r\n\t", "  indented\n",
]  # fmt: skip


@pytest.fixture(scope="module", params=["bert", "xlm-roberta", "qwen3", "llama", "plain"])
def backbone(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    if request.param in ("bert", "xlm-roberta"):
        return load_backbone(save_tiny_encoder(folder, kind=request.param), device="cpu")
    kind = "qwen3" if request.param == "qwen3" else "llama"
    tokenizer = byte_pairs(chat_template=None) if request.param == "plain" else None
    return load_backbone(save_tiny_decoder(folder, kind=kind, tokenizer=tokenizer), device="cpu", max_length=256)


def encode(backbone, query, code, instruction=INSTRUCTION):
    return backbone.encode([instruction], [query], [code])


def test_ids_are_those_of_stock_tokenisation(backbone, tmp_path):
    backbone.tokenizer.save_pretrained(tmp_path)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path)
    for query in NASTY:
        for code in NASTY:
            encoded, trims = encode(backbone, query, code)
            # As a batch, for a single pair with an empty second text is taken for a single text.
            stock = tokenizer([backbone.text_pair(INSTRUCTION, query, code)])
            assert encoded[0].ids == stock["input_ids"][0]
            assert trims == Trims(1, 0, 0)


def test_no_text_of_a_stranger_becomes_a_control_token(backbone):
    plain = encode(backbone, "a", "b")[0][0].ids
    special = set(backbone.tokenizer.all_special_ids) - {backbone.tokenizer.unk_token_id}
    special |= {token for token, added in backbone.tokenizer.added_tokens_decoder.items() if added.special} - {
        backbone.tokenizer.unk_token_id
    }
    for text in NASTY:
        ids = encode(backbone, text, text, instruction=text or "fast")[0][0].ids
        for token in special:
            assert ids.count(token) == plain.count(token), (text, token)


def test_the_code_is_cut_first_then_the_query(backbone):
    length = backbone.max_length
    whole = encode(backbone, "", "")[0][0].ids
    room = length - len(whole)
    for query, code, codes, queries in (
        ("read json", LONG, 1, 0), (LONG, "x", 0, 1), (LONG, LONG, 1, 1), ("read json", "x", 0, 0)
    ):  # fmt: skip
        inputs, trims = encode(backbone, query, code)
        assert trims == (1, codes, queries)
        assert len(inputs[0].ids) == length if codes or queries else len(inputs[0].ids) < length
        if inputs[0].type_ids is not None:
            assert len(inputs[0].type_ids) == len(inputs[0].ids)
    # What stands behind the code stays, and so does the beginning of all three.
    ids = encode(backbone, LONG, LONG)[0][0].ids
    text = backbone.tokenizer.decode(ids)
    assert INSTRUCTION in text
    words = text.count("json list")
    assert words > 4
    if backbone.is_decoder:
        suffix = backbone.text_pair("", "", "\n\n")[1].partition("\n\n\n\n" if "Answer" in text else "\n\n")[2]
        assert text.endswith(suffix) and suffix
    # A quarter of the room is the code's.
    others = set(encode(backbone, LONG, "")[0][0].ids)
    of_code = [token for token in encode(backbone, LONG, "$" * 1000)[0][0].ids if token not in others]
    assert len(of_code) == pytest.approx(room / 4, abs=4)


@pytest.mark.parametrize("share", [0.9, 0.25, 1e-9])
def test_some_code_is_read_whatever_its_share(share, backbone):
    before = backbone.code_share
    try:
        backbone.code_share = share
        one, other = (encode(backbone, LONG, code)[0][0].ids for code in ("json " + LONG, "sort " + LONG))
        assert len(one) == backbone.max_length and one != other
    finally:
        backbone.code_share = before


def test_a_saved_share_of_the_code_is_read_again(tmp_path):
    backbone = load_backbone(save_tiny_encoder(tmp_path), device="cpu")
    config = json.loads((tmp_path / "config.json").read_text())
    backbone.code_share = 0.5
    (tmp_path / "config.json").write_text(json.dumps({**config, "hf_qualcode": backbone.settings()}))
    again = load_backbone(tmp_path, device="cpu")
    assert again.code_share == 0.5
    assert encode(again, LONG, LONG) == encode(backbone, LONG, LONG)
    (tmp_path / "config.json").write_text(json.dumps({**config, "hf_qualcode": {"code_share": "half"}}))
    with pytest.raises(QualcodeError, match="code_share is 'half'; expected a number between 0 and 1; copy"):
        load_backbone(tmp_path, device="cpu")


def test_distinct_inputs_are_counted_once(backbone):
    inputs, trims = backbone.encode([INSTRUCTION] * 4, ["a", "a", "b", "a"], [LONG, LONG, "x", "x"])
    assert len(inputs) == 4 and inputs[0] == inputs[1]
    assert trims == (3, 1, 0)
    assert backbone.encode([], [], []) == ([], (0, 0, 0))


def test_megabytes_are_read_as_far_as_needed(backbone, monkeypatch):
    seen = []
    reader = backbone._reader
    original = reader._tokenise
    monkeypatch.setattr(reader, "_tokenise", lambda texts: seen.append(max(map(len, texts))) or original(texts))
    code = "def f(x):\n    return x\n" * 100_000
    encoded, trims = encode(backbone, "read", code)
    assert trims.codes == 1 and max(seen) < 300 * 64
    assert encoded == encode(backbone, "read", code[:100_000])[0]
    # Blanks are no tokens to a word-piece tokenizer, so the code behind a page of them is read.
    blank = " " * 50_000
    padded, trims = encode(backbone, "read", blank + "json")
    if not backbone.is_decoder:
        assert trims.codes == 0
        assert padded[0].ids == encode(backbone, "read", "json")[0][0].ids
    else:
        assert len(padded[0].ids) <= backbone.max_length


def test_an_instruction_without_end_is_an_error(backbone):
    with pytest.raises(UsageError, match="leaves no room for code"):
        encode(backbone, "read", "json list", instruction=LONG * 100)


def test_the_prefix_depends_on_instruction_and_query_alone(backbone):
    inputs = backbone.encode([INSTRUCTION] * len(NASTY), ["read json"] * len(NASTY), NASTY).inputs
    prefixes = {tuple(encoded.ids[: encoded.prefix_length]) for encoded in inputs}
    assert len(prefixes) == 1
    assert bool(prefixes.pop()) == backbone.is_decoder
