"""The texts units are searched by, and tables that do not depend on how their rows came."""

import random
import textwrap

import pytest

from hf_qualcode.corpus.folder import FileRecord
from hf_qualcode.retrieve.tables import (
    embedding_text,
    file_records,
    files_table,
    sort_order,
    take_rows,
    text_hash,
    units_table,
    write_table,
)
from hf_qualcode.types import Unit


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("def f():\n    return 1", "def f():\n    return 1"),
        ("    def f(self):\n        return 1", "def f(self):\n    return 1"),
        ("    def f(self):\n\n        return 1  \n", "def f(self):\n\n    return 1"),
        ("\tif x:\n\t\ty()", "if x:\n\ty()"),
        # A tab and blanks share nothing, so nothing is taken away.
        ("\tif x:\n    y()", "\tif x:\n    y()"),
        ('    s = """\nflush left\n"""', '    s = """\nflush left\n"""'),
        ("   \n", ""),
        ("", ""),
        ("    # .+*( not a pattern\n    x", "# .+*( not a pattern\nx"),
    ],
)
def test_embedding_text_loses_shared_indentation_and_trailing_blanks_only(code, text):
    assert embedding_text(code) == text


def test_embedding_text_is_the_standard_dedent_on_random_code():
    generator = random.Random(0)
    for _ in range(500):
        lines = [
            generator.choice(["", "    ", "        ", "\t", "  "]) + generator.choice(["x = 1", "", "if y:", "# c"])
            for _ in range(generator.randrange(1, 8))
        ]
        code = "\n".join(lines)
        expected = "\n".join(line.rstrip(" \t") for line in textwrap.dedent(code).split("\n")).strip("\n")
        assert embedding_text(code) == expected
        # Copies at another depth are the same text.
        assert text_hash(embedding_text(textwrap.indent(code, "    "))) == text_hash(expected)


def unit(path, start, end, name="f"):
    return Unit(f"{path}::{name}", path, "python", "function", name, "", f"def {name}()", "", "x", start, end)


def test_rows_are_sorted_by_place_whatever_order_they_came_in():
    units = [unit("b.py", 1, 2), unit("a.py", 5, 6), unit("a.py", 1, 3, "inner"), unit("a.py", 1, 9, "outer")]
    names = None
    for _ in range(10):
        random.shuffle(units)
        table = units_table(units, 0)
        table = take_rows(table, sort_order(table))
        got = list(zip(table["path"].to_pylist(), table["name"].to_pylist(), strict=True))
        assert names in (None, got)
        names = got
    assert names == [("a.py", "outer"), ("a.py", "inner"), ("a.py", "f"), ("b.py", "f")]


def test_file_records_come_back_as_they_were(tmp_path):
    records = [
        FileRecord(0, "z.py", 3, 1_700_000_000_123_456_789, 2**63 + 5, "ab", "python", "indexed", "", 2),
        FileRecord(0, "a.bin", 0, 0, 1, "", "", "binary", "NUL byte", 0),
    ]
    table = files_table(records)
    assert file_records(table) == sorted(records, key=lambda record: record.path)
    assert file_records(files_table([])) == []
    write_table(table, tmp_path / "one")
    write_table(files_table(records[::-1]), tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
