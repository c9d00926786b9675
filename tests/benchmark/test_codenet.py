import os

import pytest

from hf_qualcode.benchmark.codenet import MAX_LINE_BYTES, MAX_SOURCE_BYTES, CodeNet, SourceError, Table, is_safe_id
from hf_qualcode.benchmark.sources import UndecodableError, decode_source
from hf_qualcode.types import QualcodeError


def table(tmp_path, content):
    path = tmp_path / "table.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return Table(path, ("id", "status"))


@pytest.mark.parametrize(
    ("content", "rows"),
    [
        ("id,status\na,1\nb,2\n", [["a", "1"], ["b", "2"]]),
        ("id,status\r\na,1\r\nb,2", [["a", "1"], ["b", "2"]]),
        ("\ufeffid,status\na,1\n", [["a", "1"]]),
        ('"id",status\n"a","x,y"\n', [["a", "x,y"]]),
        ('id,status\na,"1\nb,2\nc,"3"\n', [None, ["b", "2"], ["c", "3"]]),  # a stray quote takes one line, not all
        ('id,status\na,1"2\n', [["a", '1"2']]),
        ('id,status\na,"1\n2"\nb,2\n', [None, None, ["b", "2"]]),  # a line break in a field
        ("id,status\na\nb,2,3\n\n\nc,3\n", [None, None, ["c", "3"]]),  # too few, too many, blank
        ("id,status\na,\0\n", [["a", "\0"]]),
        (b"id,status\na,\xff\n", [["a", "\ufffd"]]),
        ("id,status\na," + "x" * MAX_LINE_BYTES + "\nb,2\n", [None, ["b", "2"]]),
        ("id,status\na," + "x" * 3 * MAX_LINE_BYTES, [None]),
        ("id,other\na,1\n", [None]),
        ("id,status,id\na,1,b\n", [None]),
        ("id,status\n", []),
        ("", []),
    ],
)
def test_every_line_is_a_row_or_none(tmp_path, content, rows):
    assert list(table(tmp_path, content).rows()) == rows


def test_columns_are_found_by_name(tmp_path):
    found = table(tmp_path, "status,x,id\n1,2,3\n")
    assert found.has_columns
    assert (found.position("id"), found.position("status"), found.position("date")) == (2, 0, None)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"print(1)\r\nx = 2\ry = 3\n", "print(1)\nx = 2\ny = 3\n"),
        (b"\xef\xbb\xbfprint('\xc3\xa9')", "print('é')"),
        ("# café\n".encode(), "# café\n"),
        ("# -*- coding: latin-1 -*-\n# café\n".encode("latin-1"), "# -*- coding: latin-1 -*-\n# café\n"),
        ("#!/bin/python\n# coding=cp932\n# 和\n".encode("cp932"), "#!/bin/python\n# coding=cp932\n# 和\n"),
        ("# coding: euc-jp\ns = '和'\n".encode("euc-jp"), "# coding: euc-jp\ns = '和'\n"),
        (b"", ""),
    ],
)
def test_sources_are_decoded_as_python_does(data, text):
    assert decode_source(data) == text


@pytest.mark.parametrize(
    "data",
    [
        b"# caf\xe9\n",
        b"x = 1\ny = 2\n# coding: latin-1\n# caf\xe9\n",  # a cookie on the third line is none
        b"# coding: no-such-codec\n",
        b"# coding: rot13\nprvag(1)\n",
        b"# coding: utf-16\nprint(1)\n",
        b"# coding: cp037\nprint(1)\n",
        b"# coding: punycode\nprint(1)-\n",
        b"# coding: utf-8\n# caf\xe9\n",
        b"\xef\xbb\xbf# coding: latin-1\n# caf\xe9\n",
        "print(1)\n".encode("utf-16"),
    ],
)
def test_what_python_cannot_decode_is_not_guessed(data):
    with pytest.raises(UndecodableError):
        decode_source(data)


@pytest.mark.parametrize("text", ["s123", "p00001", "s-1", "s_1", "A"])
def test_plain_words_are_safe(text):
    assert is_safe_id(text)


@pytest.mark.parametrize(
    "text",
    ["", ".", "..", "../x", "a/b", "a\\b", "a.py", "s1\n", " s1", "-s1", "s１", "é", "a\0", "C:x", "~", "s" * 65,
     "\u202es"],
)
def test_other_ids_are_not(text):
    assert not is_safe_id(text)


def test_a_program_is_read(codenet_maker):
    codenet = CodeNet.open(codenet_maker.add("s1", source=b"\xef\xbb\xbfprint(1)\r\n").write())
    assert codenet.source("p00001", "s1") == "print(1)\n"
    with pytest.raises(SourceError, match="missing_file"):
        codenet.source("p00001", "s2")
    with pytest.raises(SourceError, match="missing_file"):
        codenet.source("p00002", "s1")


def outcome_of(codenet, *ids):
    with pytest.raises(SourceError) as caught:
        codenet.source(*ids)
    return caught.value.outcome


def test_nothing_outside_is_read(codenet_maker, tmp_path):
    codenet = CodeNet.open(codenet_maker.add("s1").write())
    (tmp_path / "secret.py").write_text("print('secret')\n")
    codenet_maker.program("p00001", "s2").symlink_to(tmp_path / "secret.py")
    codenet_maker.program("p00001", "s3").symlink_to("/etc/passwd")
    codenet_maker.program("p00001", "s4").symlink_to("s1.py")
    codenet_maker.program("p00001", "s5").symlink_to("nowhere.py")
    (tmp_path / "away" / "Python").mkdir(parents=True)
    (tmp_path / "away" / "Python" / "s1.py").write_text("print('secret')\n")
    (codenet.root / "data" / "p00002").symlink_to(tmp_path / "away")
    (codenet.root / "problem_descriptions" / "p00003.html").symlink_to(tmp_path / "secret.py")
    (codenet.root / "metadata" / "p00003.csv").symlink_to(tmp_path / "secret.py")
    assert outcome_of(codenet, "p00001", "../../../../secret") == "unsafe_path"
    assert outcome_of(codenet, "..", "s1") == "unsafe_path"
    assert outcome_of(codenet, "p00001", "s2") == "unsafe_path"
    assert outcome_of(codenet, "p00001", "s3") == "unsafe_path"
    assert outcome_of(codenet, "p00001", "s5") == "missing_file"
    assert outcome_of(codenet, "p00002", "s1") == "unsafe_path"
    assert codenet.source("p00001", "s4") == codenet.source("p00001", "s1")  # a link that stays inside
    for read in (codenet.description, codenet.submissions):
        with pytest.raises(SourceError, match="unsafe_path"):
            read("p00003")


def test_the_folders_themselves_may_be_links(codenet_maker, tmp_path):
    root = codenet_maker.add("s1").write()
    for name in ("metadata", "data", "problem_descriptions"):
        (tmp_path / "linked").mkdir(exist_ok=True)
        (tmp_path / "linked" / name).symlink_to(root / name)
    assert CodeNet.open(tmp_path / "linked").source("p00001", "s1") == "print(0)\n"


def test_what_is_no_file_is_not_waited_for(codenet_maker):
    codenet = CodeNet.open(codenet_maker.add("s1").write())
    os.mkfifo(codenet_maker.program("p00001", "s2"))
    codenet_maker.program("p00001", "s3").mkdir()
    codenet_maker.program("p00001", "s4").write_bytes(b"#" * (MAX_SOURCE_BYTES + 1))
    codenet_maker.program("p00001", "s5").symlink_to("s5.py")
    assert outcome_of(codenet, "p00001", "s2") == "unreadable_file"
    assert outcome_of(codenet, "p00001", "s3") == "unreadable_file"
    assert outcome_of(codenet, "p00001", "s4") == "too_large"
    assert outcome_of(codenet, "p00001", "s5") == "unreadable_file"


def test_the_state_tells_of_every_change(codenet_maker):
    codenet = CodeNet.open(codenet_maker.add("s1").add("s2").write())
    states = [codenet.state("p00001")]
    for path in (
        codenet_maker.program("p00001", "s1"),
        codenet.root / "metadata" / "p00001.csv",
        codenet.root / "problem_descriptions" / "p00001.html",
    ):
        path.write_bytes(path.read_bytes() + b"\n")
        states.append(codenet.state("p00001"))
    codenet_maker.program("p00001", "s2").unlink()
    states.append(codenet.state("p00001"))
    assert len(set(states)) == len(states)
    assert codenet.state("p00001") == states[-1]


def test_other_folders_are_refused_in_one_line(tmp_path, codenet_maker):
    codenet_maker.add("s1").write()
    (codenet_maker.root / "metadata" / "p00001.csv").unlink()
    file = tmp_path / "file"
    file.write_text("")
    for folder, told in (
        (tmp_path / "none", "lacks metadata/, data/, problem_descriptions/"),
        (file, "lacks metadata/"),
        (codenet_maker.root / "data", "lacks metadata/"),
        (codenet_maker.root, "no table of submissions"),
    ):
        with pytest.raises(QualcodeError, match=told) as caught:
            CodeNet.open(folder)
        assert "\n" not in str(caught.value)
