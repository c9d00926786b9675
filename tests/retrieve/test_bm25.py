"""The token table's one form, and the BM25 index against bm25s and against the formula."""

import math
import random
import subprocess
import sys

import numpy as np
import pytest

from hf_qualcode.lexical import query_subtokens, subtokens
from hf_qualcode.retrieve.candidates.bm25 import K1, B, BM25Scorer, TokenTable
from hf_qualcode.retrieve.storage import DamagedStoreError


WORDS = ["read", "write", "file", "socket", "parse", "json", "xml", "größe", "queue", "lock", "thread", "cache"]


def make_texts(count, seed=0):
    rng = random.Random(seed)
    return [" ".join(rng.choices(WORDS, k=rng.randrange(0, 30))) for _ in range(count)]


def same_table(a, b):
    return (
        a.ids.tobytes() == b.ids.tobytes()
        and a.ids.dtype == b.ids.dtype == np.uint32
        and a.offsets.tobytes() == b.offsets.tobytes()
        and a.offsets.dtype == b.offsets.dtype == np.int64
        and a.vocabulary == b.vocabulary
    )


def test_table_holds_the_tokens_of_each_text():
    texts = make_texts(20)
    table = TokenTable.from_texts(iter(texts))
    assert table.num_documents == 20
    assert table.vocabulary == sorted({token for text in texts for token in subtokens(text)})
    for i, text in enumerate(texts):
        ids = table.ids[table.offsets[i] : table.offsets[i + 1]]
        assert [table.vocabulary[j] for j in ids] == subtokens(text)


def test_take_and_concat_in_any_order_equal_the_texts_bytes():
    rng = random.Random(3)
    texts = make_texts(30)
    for _ in range(50):
        first, second = rng.choices(range(30), k=rng.randrange(0, 8)), rng.choices(range(30), k=rng.randrange(0, 8))
        whole = TokenTable.from_texts(texts)
        table = whole.take(first).concat(whole.take(np.array(second, dtype=int)))
        assert same_table(table, TokenTable.from_texts([texts[i] for i in first + second]))
        order = rng.sample(range(len(first + second)), k=len(first + second))
        assert same_table(table.take(order), TokenTable.from_texts([texts[(first + second)[i]] for i in order]))


def test_table_and_index_survive_a_round_trip_with_equal_bytes(tmp_path):
    for texts in ([], ["", ""], make_texts(12)):
        table = TokenTable.from_texts(texts)
        folders = [tmp_path / f"{len(texts)}-{i}" for i in (1, 2)]
        for folder in folders:
            folder.mkdir()
            table.save(folder)
            BM25Scorer.from_tokens(table).save(folder)
        assert same_table(TokenTable.load(folders[0]), table)
        for path in folders[0].iterdir():
            assert path.read_bytes() == (folders[1] / path.name).read_bytes()
        for mmap in (True, False):
            scorer = BM25Scorer.load(folders[0], mmap=mmap)
            expected = BM25Scorer.from_tokens(table).score(["read json", "größe"])
            assert np.array_equal(scorer.score(["read json", "größe"]), expected)


def test_index_equals_that_of_bm25s(tmp_path):
    bm25s = pytest.importorskip("bm25s")
    texts = make_texts(200)
    table = TokenTable.from_texts(texts)
    ours = BM25Scorer.from_tokens(table)
    theirs = bm25s.BM25(k1=K1, b=B)
    documents = [table.ids[a:b].tolist() for a, b in zip(table.offsets, table.offsets[1:], strict=False)]
    theirs.index((documents, dict(ours.token_ids)), show_progress=False)
    for name in ("data", "indices", "indptr"):
        assert np.array_equal(theirs.scores[name], getattr(ours, name)), name
        assert theirs.scores[name].dtype == getattr(ours, name).dtype, name

    ours.save(tmp_path)
    loaded = bm25s.BM25.load(tmp_path, mmap=True)
    for query in ("read json file", "read read lock", "größe"):
        tokens = query_subtokens(query)
        for library in (theirs, loaded, ours.as_bm25s()):
            np.testing.assert_allclose(ours.score([query])[0], library.get_scores(tokens), rtol=1e-6)


def test_scores_equal_the_formula():
    texts = make_texts(40)
    documents = [subtokens(text) for text in texts]
    mean_length = sum(map(len, documents)) / len(documents)
    scorer = BM25Scorer.from_tokens(TokenTable.from_texts(texts), k1=1.3, b=0.6)
    scores = scorer.score(["python read read json nowhere"])
    for document, score in zip(documents, scores[0], strict=True):
        expected = 0.0
        for token in ["read", "read", "json", "nowher"]:
            containing = sum(token in other for other in documents)
            idf = math.log(1 + (len(documents) - containing + 0.5) / (containing + 0.5))
            count = document.count(token)
            expected += idf * count / (1.3 * (1 - 0.6 + 0.6 * len(document) / mean_length) + count)
        assert score == pytest.approx(expected, rel=1e-5, abs=1e-7)


def test_edges():
    nothing = BM25Scorer.from_tokens(TokenTable.from_texts([]))
    assert nothing.score(["read"]).shape == (1, 0)
    assert nothing.rank(["read"], 5).documents.shape == (1, 0)
    silent = BM25Scorer.from_tokens(TokenTable.from_texts(["", "..."]))
    assert silent.score(["read", ""]).tolist() == [[0, 0], [0, 0]]
    scorer = BM25Scorer.from_tokens(TokenTable.from_texts(["read file", "", "write file"]))
    assert scorer.score([]).shape == (0, 3)
    assert scorer.score(["unheard of", ""]).tolist() == [[0, 0, 0], [0, 0, 0]]
    assert scorer.score(["read"]).dtype == np.float32
    one, many = scorer.score(["read file", "read file " * 50_000])
    np.testing.assert_allclose(many, one * 50_000, rtol=1e-5)
    assert scorer.score(["write read file"])[0].tolist() == scorer.score(["file read write"])[0].tolist()
    assert scorer.rank(["file"], 2).documents.tolist() == [[0, 2]]


@pytest.mark.parametrize("name", ["tokens.safetensors", "vocabulary.json"])
def test_a_damaged_table_is_one_line(tmp_path, name):
    TokenTable.from_texts(make_texts(5)).save(tmp_path)
    (tmp_path / name).write_bytes(b"[")
    with pytest.raises(DamagedStoreError, match="make the index again"):
        TokenTable.load(tmp_path)
    (tmp_path / name).unlink()
    with pytest.raises(FileNotFoundError):  # the store asks whether a writer has replaced it
        TokenTable.load(tmp_path)


@pytest.mark.parametrize(
    "name",
    ["data.csc.index.npy", "indices.csc.index.npy", "indptr.csc.index.npy", "vocab.index.json", "params.index.json"],
)
def test_a_damaged_index_is_one_line(tmp_path, name):
    BM25Scorer.from_tokens(TokenTable.from_texts(make_texts(5))).save(tmp_path)
    (tmp_path / name).write_bytes((tmp_path / name).read_bytes()[:7])
    with pytest.raises(DamagedStoreError, match="make the index again"):
        BM25Scorer.load(tmp_path)


def test_parts_that_do_not_belong_together_are_refused(tmp_path):
    BM25Scorer.from_tokens(TokenTable.from_texts(make_texts(5))).save(tmp_path)
    np.save(tmp_path / "data.csc.index.npy", np.zeros(1, np.float32))
    with pytest.raises(DamagedStoreError, match="contradicts"):
        BM25Scorer.load(tmp_path)
    TokenTable.from_texts(make_texts(5)).save(tmp_path)
    (tmp_path / "vocabulary.json").write_text('["a"]')
    with pytest.raises(DamagedStoreError, match="contradict"):
        TokenTable.load(tmp_path)


def test_searching_imports_nothing_heavy():
    code = (
        "import sys, hf_qualcode.retrieve.candidates.bm25, hf_qualcode.retrieve.candidates.fusion\n"
        "sys.exit(', '.join({'torch', 'bm25s', 'scipy', 'numba', 'jax'} & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
