"""TREC files: round trips keep every digit, and a bad line is named."""

import pytest

from hf_qualcode.evaluation.protocols import ScoredDocument
from hf_qualcode.evaluation.trec import read_qrels, read_run, write_qrels, write_run
from hf_qualcode.types import QualcodeError


def test_run_round_trip_keeps_scores_exactly(tmp_path):
    run = {
        "q1": [ScoredDocument("größe::f", 0.1 + 0.2), ScoredDocument("b", 0.1), ScoredDocument("a", 0.1)],
        "q2": [ScoredDocument("a", 1e-300)],
    }
    write_run(tmp_path / "run", run, tag="my model")
    assert read_run(tmp_path / "run") == run
    assert (tmp_path / "run").read_text(encoding="utf-8").splitlines()[
        0
    ] == "q1 Q0 größe::f 1 0.30000000000000004 my-model"


def test_run_is_ordered_by_score_whatever_its_rank_column_says(tmp_path):
    (tmp_path / "run").write_text("\ufeffq Q0 low 1 0.5 t\r\n\r\nq Q0 high 2 7 t\n", encoding="utf-8")
    assert [document.doc_id for document in read_run(tmp_path / "run")["q"]] == ["high", "low"]


def test_qrels_round_trip(tmp_path):
    qrels = {"q1": {"a": 2, "b": 0}, "q2": {"a": 1}}
    write_qrels(tmp_path / "qrels", qrels)
    assert read_qrels(tmp_path / "qrels") == qrels
    assert (tmp_path / "qrels").read_text() == "q1 0 a 2\nq1 0 b 0\nq2 0 a 1\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("q Q0 a 1 1.0 t\nq Q0 b 2 1.0\n", "line 2: 5 columns; expected 6"),
        ("q Q0 a 1 high t\n", "line 1: score 'high' is not a finite number"),
        ("q Q0 a 1 nan t\n", "line 1: score 'nan'"),
        ("q Q0 a 1 1 t\nq Q0 a 2 0 t\n", "line 2: document a appears twice"),
    ],
)
def test_a_bad_run_line_is_named(tmp_path, text, words):
    (tmp_path / "run").write_text(text)
    with pytest.raises(QualcodeError, match=words) as error:
        read_run(tmp_path / "run")
    assert str(tmp_path / "run") in str(error.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("q 0 a\n", "line 1: 3 columns; expected 4"),
        ("q 0 a 1.5\n", "1.5 is not a whole number"),
        ("q 0 a 1\nq 0 a 2\n", "line 2: document a has two grades"),
    ],
)
def test_a_bad_qrels_line_is_named(tmp_path, text, words):
    (tmp_path / "qrels").write_text(text)
    with pytest.raises(QualcodeError, match=words):
        read_qrels(tmp_path / "qrels")


@pytest.mark.parametrize("identifier", ["a b", "", "a\n", "a\u2003b"])
def test_ids_that_the_format_cannot_carry_are_refused(tmp_path, identifier):
    with pytest.raises(QualcodeError, match="white space"):
        write_run(tmp_path / "run", {"q": [ScoredDocument(identifier, 1.0)]})
    with pytest.raises(QualcodeError, match="white space"):
        write_qrels(tmp_path / "qrels", {identifier: {"a": 1}})
    assert not list(tmp_path.iterdir())


def test_unreadable_files(tmp_path):
    with pytest.raises(QualcodeError, match="cannot be read"):
        read_run(tmp_path / "absent")
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(QualcodeError, match="cannot be read as UTF-8"):
        read_run(tmp_path / "binary")
