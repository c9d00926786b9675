import json

import pytest

from hf_qualcode.corpus.folder import ScanOptions, find_roots, scan
from hf_qualcode.corpus.notebooks import NotebookError, UnknownKernelError, extract_notebook_units, read_notebook


def notebook(*cells, metadata=None, **extra):
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": metadata or {}, "cells": list(cells), **extra})


def code(source, cell_id=None):
    cell = {"cell_type": "code", "source": source, "metadata": {}, "outputs": []}
    return cell if cell_id is None else {**cell, "id": cell_id}


def units_of(text, path="n.ipynb"):
    extraction = extract_notebook_units(read_notebook(text), path)
    return [(u.kind, u.id.removeprefix(f"{path}::"), u.start_line, u.end_line, u.code) for u in extraction.units]


def test_cells_and_their_functions():
    text = notebook(
        code("import os\n\ndef f(x):\n    return x\n\nf(1)", "aa"),
        {"cell_type": "markdown", "source": "# def no(): pass"},
        code(["class A:\n", "    x = 1\n", "\n", "x = 1\n"], "bb"),
        code("def f(): pass", "cc"),
    )
    assert units_of(text) == [
        ("function", "f", 3, 4, "def f(x):\n    return x"),
        ("cell", "<cell aa>@after:f", 6, 6, "f(1)"),
        ("class", "A", 7, 8, "class A:\n    x = 1"),
        ("cell", "<cell bb>@after:A", 10, 10, "x = 1"),
        ("function", "f#2", 12, 12, "def f(): pass"),
    ]
    # Line numbers count in the sources of the code cells, one after the other.
    lines = read_notebook(text).source.split("\n")
    for _, _, start, end, cell_code in units_of(text):
        assert "\n".join(lines[start - 1 : end]) == cell_code


def test_magics_do_not_break_the_parse():
    source = (
        "%%time\n%matplotlib inline\n!pip install x \\\n    y\nfiles = !ls\nz = %who_ls\n?len\nlen?\n"
        "def f():\n    !ls\n    return 'a' \\\n        % 1\n\nmessage = ('%d'\n    % 1)"
    )
    extraction = extract_notebook_units(read_notebook(notebook(code(source, "m"))), "n.ipynb")
    assert not extraction.has_errors
    assert [(u.kind, u.name) for u in extraction.units] == [("function", "f"), ("cell", "<cell m>")]
    assert extraction.units[0].code == "def f():\n    !ls\n    return 'a' \\\n        % 1"
    bash = extract_notebook_units(read_notebook(notebook(code("%%bash\nfor x in y; do\n", "b"))), "n.ipynb")
    assert bash == ([], False)


def test_old_format_and_missing_ids():
    old = {
        "nbformat": 3,
        "metadata": {},
        "worksheets": [{"cells": [{"cell_type": "code", "input": ["x = 1\n", "y"]}]}],
    }
    assert units_of(json.dumps(old)) == [("cell", "<cell 95c5cf5e>", 1, 2, "x = 1\ny")]
    twice = notebook(code("a()", "same"), code("b()", "same"), code("c()"), code("b()"))
    names = [name for _, name, *_ in units_of(twice)]
    assert names == ["<cell same>", "<cell 71fdb8d8>", "<cell bafe815f>", "<cell 71fdb8d8>#2"]


def test_ids_of_cells_without_ids_outlive_cells_above():
    cells = [code("a()"), code("def f(): pass\nb()")]
    before = {name: text for _, name, _, _, text in units_of(notebook(*cells))}
    after = {name: text for _, name, _, _, text in units_of(notebook(code("x = 1"), *cells))}
    assert len(before) == 3
    assert before.items() <= after.items()


@pytest.mark.parametrize(
    ("metadata", "language"),
    [
        ({}, "python"),
        ({"kernelspec": {"language": "python", "name": "x"}}, "python"),
        ({"kernelspec": {"name": "python3"}}, "python"),
        ({"kernelspec": {"name": "conda-env-x"}, "language_info": {"name": "python"}}, "python"),
        ({"language_info": {"name": "rust"}}, "rust"),
        ({"kernelspec": 3}, "python"),
        ([], "python"),
    ],
)
def test_language_of_the_kernel(metadata, language):
    assert read_notebook(notebook(code("x"), metadata=metadata)).language == language


@pytest.mark.parametrize(
    "text", ["{", "[1]", "{}", '{"cells": 3}', '{"cells": [{"cell_type": "code", "source": 5}]}', "[" * 100_000]
)
def test_broken_notebooks_have_a_reason(text):
    with pytest.raises(NotebookError, match="not"):
        read_notebook(text)


def test_unknown_kernel():
    with pytest.raises(UnknownKernelError, match="'r'"):
        read_notebook(notebook(code("x"), metadata={"kernelspec": {"language": "R"}}))


def test_notebooks_in_a_folder(tmp_path):
    (tmp_path / "a.ipynb").write_text(notebook(code("def f(): pass")))
    (tmp_path / "b.ipynb").write_text("{")
    (tmp_path / "c.ipynb").write_text(notebook(code("x"), metadata={"kernelspec": {"language": "R"}}))
    (tmp_path / "d.ipynb").write_text(notebook())
    records = [scanned.record for scanned in scan(find_roots([tmp_path]))]
    assert [(record.outcome, record.language) for record in records] == [
        ("indexed", "python"),
        ("malformed", ""),
        ("unsupported", ""),
        ("no-code", "python"),
    ]
    assert "not JSON" in records[1].detail


def test_lone_surrogates_are_replaced():
    text = '{"cells": [{"cell_type": "code", "id": "a\\ud800", "source": "x = \'\\ud800\'"}]}'
    (unit,) = extract_notebook_units(read_notebook(text), "n.ipynb").units
    assert (unit.name, unit.code) == ("<cell a\ufffd>", "x = '\ufffd'")


def test_hostile_cells(tmp_path):
    repetitive = "x = [\n" + "    0,\n" * 10_000 + "]\n"
    (tmp_path / "a.ipynb").write_text(notebook(code(repetitive, "big"), code("def f(): pass", "small")))
    (tmp_path / "b.ipynb").write_text(notebook(*[code("(\n" * 60_000)] * 20))
    first, second = scan(find_roots([tmp_path]), ScanOptions(max_file_bytes=10**7, parse_seconds=0.5))
    assert [unit.name for unit in first.units] == ["<cell big>", "f"]
    assert second.record.outcome == "too-slow"


def test_output_does_not_count_against_the_size_limit(tmp_path):
    big = notebook({**code("def f(): pass"), "outputs": [{"data": {"image/png": "iVBORw0K" * 150_000}}]})
    (tmp_path / "a.ipynb").write_text(big)
    (tmp_path / "b.ipynb").write_text(notebook(code("x = 1\n" * 200_000)))
    (tmp_path / "c.ipynb").write_text(big + " " * 20_000_000)
    first, second, third = (item.record for item in scan(find_roots([tmp_path])))
    assert (first.outcome, first.num_units) == ("indexed", 1)
    assert (second.outcome, second.detail) == ("too-large", "1200000 bytes of code")
    assert third.outcome == "too-large"
