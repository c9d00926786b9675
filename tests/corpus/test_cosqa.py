"""CoSQA's published files: what is read, and one clear line for everything that can be wrong with them."""

import json
import os
from pathlib import Path

import pytest

from hf_qualcode.corpus.cosqa import load_cosqa
from hf_qualcode.types import QualcodeError, UsageError


CODES = ["def a(): pass", "def b(): pass", "def c(): pass"]


def row(number, **changes):
    return {
        "idx": f"cosqa-dev-{number}",
        "doc": f"query {number}",
        "code": CODES[number],
        "retrieval_idx": number,
        **changes,
    }


@pytest.fixture
def folder(tmp_path):
    write(tmp_path, "code_idx_map.txt", {code: i for i, code in reversed(list(enumerate(CODES)))})
    write(tmp_path, "cosqa-retrieval-dev-500.json", [row(2, label=1), row(0, label=0), row(1)])
    return tmp_path


def write(folder, name, content):
    (folder / name).write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")


def test_reads_pool_and_queries_and_leaves_label_0_out(folder):
    data = load_cosqa(folder)
    assert data.corpus_ids == ["0", "1", "2"]
    assert data.corpus_texts == CODES
    assert data.query_ids == ["cosqa-dev-2", "cosqa-dev-1"]
    assert data.query_texts == ["query 2", "query 1"]
    assert data.qrels == {"cosqa-dev-2": {"2": 1}, "cosqa-dev-1": {"1": 1}}
    assert (data.name, data.split) == ("cosqa", "dev")


def test_an_absent_split_is_one_line_and_an_unknown_one_a_usage_error(folder):
    with pytest.raises(QualcodeError, match="cosqa-retrieval-test-500.json is missing"):
        load_cosqa(folder, "test")
    with pytest.raises(UsageError, match="no split 'train'; choose from dev, test"):
        load_cosqa(folder, "train")
    with pytest.raises(QualcodeError, match="not a folder"):
        load_cosqa(folder / "nowhere")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "not readable JSON"),
        ({"data": []}, "expected a JSON list"),
        ([], "no row with label 1"),
        ([row(1, label=0)], "no row with label 1"),
        (["text"], "row 0: no idx, doc, retrieval_idx"),
        ([{"idx": 1, "doc": "x"}], "row 0: no retrieval_idx"),
        ([row(1), row(2, retrieval_idx=3)], "row 1: retrieval_idx 3 is not in the pool of 3"),
        ([row(1, retrieval_idx=-1)], "retrieval_idx -1"),
        ([row(1, retrieval_idx="1")], "retrieval_idx '1'"),
        ([row(1, retrieval_idx=True)], "retrieval_idx True"),
        ([row(1, retrieval_idx=2)], "files do not match"),
        ([row(1), row(1)], "cosqa-dev-1 appears twice"),
    ],
)
def test_bad_query_files(folder, content, words):
    write(folder, "cosqa-retrieval-dev-500.json", content)
    with pytest.raises(QualcodeError, match=words):
        load_cosqa(folder)


@pytest.mark.parametrize("content", ["[]", "{}", '{"a": 0, "b": 0}', '{"a": 1}', '{"a": "0"}', "nonsense"])
def test_bad_pools(folder, content):
    write(folder, "code_idx_map.txt", content)
    with pytest.raises(QualcodeError, match="code_idx_map.txt"):
        load_cosqa(folder)


def test_the_real_files():
    root = os.environ.get("HF_QUALCODE_TEST_DATA")
    if not root or not (Path(root) / "cosqa").is_dir():
        pytest.skip("HF_QUALCODE_TEST_DATA does not name a folder with cosqa/ in it")
    data = load_cosqa(Path(root) / "cosqa")
    assert len(data.corpus_ids) == 6267
    assert len(data.query_ids) == 500
