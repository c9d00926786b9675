"""What a page shows: copies folded, no overlaps, changed files marked."""

import os

import numpy as np
import pytest

from hf_qualcode.retrieve.index import CodeIndex
from hf_qualcode.retrieve.page import build_page
from hf_qualcode.retrieve.ranking import RankedUnits


CODE = """def outer(items):
    def inner(item):
        return item + 1

    return [inner(item) for item in items]


def other(items):
    return items
"""


@pytest.fixture
def index(tmp_path):
    root = tmp_path / "code"
    root.mkdir()
    (root / "a.py").write_text(CODE)
    (root / "b.py").write_text(CODE)
    (root / "c.py").write_text("class Holder:\n    def other(items):\n        return items\n")
    return CodeIndex.build([root], tmp_path / "index", "none")


def page(index, *names, top_k=10, eligible=None):
    ids = index.table["id"].to_pylist()
    rows = np.array([ids.index(name) for name in names], dtype=np.int64)
    scores = np.linspace(1, 0.5, len(rows), dtype=np.float32)
    return build_page(index, RankedUnits(rows, scores), top_k, eligible)


def test_equal_text_is_one_hit_with_its_copies_whatever_its_indentation(index):
    hits = page(index, "b.py::other", "a.py::other", "c.py::Holder.other", "a.py::outer")
    assert [hit.unit_id for hit in hits] == ["b.py::other", "a.py::outer"]
    assert [(c.path, c.start_line, c.end_line) for c in hits[0].copies] == [("a.py", 8, 9), ("c.py", 2, 3)]
    assert [hit.rank for hit in hits] == [1, 2]
    assert hits[0].code == "def other(items):\n    return items"


def test_copies_are_found_by_brute_force_alike(index):
    hashes = [text_hash.tobytes() for text_hash in index.text_hashes]
    for row, text_hash in enumerate(hashes):
        expected = [other for other, h in enumerate(hashes) if h == text_hash and other != row]
        assert index.copies_of(row).tolist() == expected


def test_overlapping_spans_of_a_file_do_not_fill_the_page(index):
    names = ["a.py::outer.inner", "a.py::outer", "a.py::other"]
    assert [hit.unit_id for hit in page(index, *names)] == ["a.py::outer.inner", "a.py::other"]
    assert [hit.unit_id for hit in page(index, *names[1:], names[0])] == ["a.py::outer", "a.py::other"]
    # The same lines of another file are another place, and another text is another hit.
    (hit,) = page(index, "a.py::outer.inner", "b.py::outer.inner")
    assert [copy.path for copy in hit.copies] == ["b.py"]


def test_top_k_counts_hits_not_rows(index):
    hits = page(index, "a.py::other", "b.py::other", "a.py::outer", top_k=2)
    assert [hit.unit_id for hit in hits] == ["a.py::other", "a.py::outer"]


def test_copies_that_are_filtered_away_are_not_named(index):
    eligible = np.array([path != "c.py" for path in index.table["path"].to_pylist()])
    (hit,) = page(index, "a.py::other", eligible=eligible)
    assert [copy.path for copy in hit.copies] == ["b.py"]


def test_stale_is_what_changed_or_went_and_nothing_else(index, tmp_path):
    code = tmp_path / "code"
    assert [hit.stale for hit in page(index, "a.py::other")] == [False]
    (code / "a.py").touch()  # a new time, the same content
    assert [hit.stale for hit in page(index, "a.py::other")] == [False]
    (code / "a.py").write_text(CODE.replace("+ 1", "+ 2"))  # the same size
    assert [hit.stale for hit in page(index, "a.py::other")] == [True]
    (code / "b.py").unlink()
    assert [hit.stale for hit in page(index, "b.py::other")] == [True]
    (code / "c.py").unlink()
    (code / "c.py").mkdir()
    assert [hit.stale for hit in page(index, "c.py::Holder.other")] == [True]


def test_a_file_name_that_is_not_utf8_is_found_again(tmp_path):
    name = os.fsdecode(b"caf\xe9.py")
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / name).write_text(CODE)
    index = CodeIndex.build([tmp_path / "code"], tmp_path / "index", "none")
    row = index.table["name"].to_pylist().index("other")
    (hit,) = build_page(index, RankedUnits(np.array([row]), np.ones(1, np.float32)), 1)
    assert (hit.path, hit.stale) == (r"caf\xe9.py", False)
    (tmp_path / "code" / name).unlink()
    (hit,) = build_page(index, RankedUnits(np.array([row]), np.ones(1, np.float32)), 1)
    assert hit.stale


def test_no_rows_no_hits(index):
    assert build_page(index, RankedUnits(np.zeros(0, np.int64), np.zeros(0, np.float32)), 10) == []
