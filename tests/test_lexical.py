"""Sub-tokens: what is split, what is kept, and that queries meet code."""


import pytest

from hf_qualcode import lexical
from hf_qualcode.lexical import query_subtokens, subtokens


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("HTTPServer.read_files(utf8)", ["http", "server", "read", "fil", "utf", "8"]),
        ("parseJSONResponse", ["pars", "json", "respons"]),
        ("__init__ self.x2 = 0xFF", ["init", "self", "x", "2", "0", "x", "ff"]),
        ("snake_case camelCase PascalCase", ["snak", "cas", "camel", "cas", "pascal", "cas"]),
        ("IOError x86_64", ["io", "error", "x", "86", "64"]),
        ("", []),
        ("_ ... \x00 \n\t", []),
        ("größe ÉcoleNormale naïve", ["grösse", "école", "normal", "naïve"]),
        ("東京タワー", ["東", "京", "タ", "ワ", "ー", "東京", "京タ", "タワ", "ワー"]),
        ("読むFile", ["読", "む", "読む", "fil"]),
        ("Привет мир", ["привет", "мир"]),
    ],
)
def test_splits(text, tokens):
    assert subtokens(text) == tokens


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("files", "file"),
        ("entries", "entry"),
        ("boxes", "box"),
        ("naming", "names"),
        ("sorted", "sorting"),
        ("stopped", "stop"),
        ("caching", "cached"),
        ("values", "value"),
        ("Classes", "class"),
    ],
)
def test_forms_of_one_word_meet(one, other):
    assert subtokens(one) == subtokens(other)


@pytest.mark.parametrize("word", ["string", "speed", "class", "status", "this", "ring", "need", "bus"])
def test_words_that_only_look_inflected_stay(word):
    assert subtokens(word) == [word]


def test_composed_and_decomposed_letters_are_one_word():
    assert subtokens("caf\u00e9") == subtokens("cafe\u0301")


def test_lone_surrogates_separate_and_data_is_left_out():
    assert subtokens("left\ud800right") == ["left", "right"]
    assert subtokens("x" * 65 + " end") == ["end"]
    assert subtokens("ü" * 65 + " end") == ["end"]


def test_query_drops_language_names_unless_they_are_all():
    assert query_subtokens("python read csv") == ["read", "csv"]
    assert query_subtokens("Python") == ["python"]
    assert query_subtokens("go channel") == ["go", "channel"]
    assert query_subtokens("") == []


def test_tokens_are_stable_under_a_second_look_and_a_full_memory(monkeypatch):
    text = "readFiles read_files größe " * 3
    first = subtokens(text)
    monkeypatch.setattr(lexical, "_MAX_REMEMBERED_WORDS", 1)
    lexical._splits.clear()
    assert subtokens(text) == first
    assert len(lexical._splits) == 1
