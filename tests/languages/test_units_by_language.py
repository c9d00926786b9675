"""Small hand-written sources of each language and the units they must give."""

from pathlib import Path

import pytest

from hf_qualcode.corpus.units import extract_units
from hf_qualcode.languages import language_names, language_of


SOURCES = Path(__file__).parent / "sources"  # `.txt`, so that no tool takes the broken ones for code of this project
# For each file: kind, name, first line, last line, and the doc's first line where there is one.
EXPECTED = {
    "Outer.java": [
        ("class", "A", 3, 6, "d"),
        ("method", "A.m", 7, 9, "doc m"),
        ("function", "A.m.k", 9, 9),
        ("method", "A.A", 10, 10),
        ("method", "A.A#2", 11, 11),
        ("method", "A.R.R", 12, 12),
        ("method", "A.I.j", 13, 13),
        ("method", "A.E.q", 14, 14),
    ],
    "broken.py": [
        ("function", "before", 1, 2),
        ("function", "broken", 5, 6),
        ("function", "after", 9, 10),
    ],
    "legacy.py": [
        ("module", "<module>", 1, 5, "Python 2, with more than one trap."),
        ("class", "Visitor", 8, 13, "Visits."),
        ("method", "Visitor.name", 15, 18, "The name."),
        ("method", "Visitor.name#2", 20, 22),
        ("class", "Visitor@after:name#2", 24, 25),
        ("method", "Visitor.visit", 27, 33),
        ("function", "Visitor.visit.inner", 28, 29),
        ("function", "fetch", 36, 36),
        ("function", "text", 40, 40),
        ("function", "text#2", 42, 43),
        ("class", "Empty", 45, 45),
    ],
    "list.c": [
        ("function", "foo", 3, 10, "doc"),
        ("class", "Node", 11, 13),
        ("class", "u", 14, 14),
        ("function", "fp", 15, 15),
        ("function", "kr", 16, 16),
        ("function", "PyInit_x", 17, 17),
    ],
    "model.ts": [
        ("function", "N.M.f", 1, 1),
        ("method", "Q.m", 6, 8, "doc"),
        ("class", "Q@after:m", 9, 9),
        ("method", "Q.z", 10, 10),
        ("class", "E", 12, 12),
        ("class", "I", 13, 13),
        ("function", "f", 15, 15),
    ],
    "queue.js": [
        ("function", "add", 6, 12, "Adds."),
        ("function", "sub", 12, 12),
        ("function", "default", 13, 15, "doc"),
        ("class", "A", 16, 18),
        ("method", "A.#p", 19, 19),
        ("method", "A.y", 21, 21),
        ("method", "A.y#2", 22, 22),
        ("method", "A.z", 23, 23),
        ("function", "q", 25, 25),
        ("method", "Q.push", 26, 26),
        ("function", "Q.push.inner", 26, 26),
        ("function", "o.a", 27, 27),
        ("function", "o.b", 27, 27),
        ("function", "o.c d", 27, 27),
        ("function", "o.n.deep", 27, 27),
        ("function", "exports", 28, 28),
        ("method", "C.m", 30, 30),
        ("function", "gen", 31, 31),
        ("method", "D.[Symbol.iterator]", 32, 32),
        ("method", "D.a.b", 32, 32),
        ("function", "last", 35, 35),
    ],
    "shapes.cpp": [
        ("method", "A.f", 2, 4, "doc"),
        ("class", "S", 5, 7),
        ("method", "S.~S", 8, 8),
        ("method", "S.operator==", 9, 9),
        ("method", "S.operator int", 10, 10),
        ("class", "S@after:operator int", 11, 13),
        ("function", "a.b.g", 16, 16),
        ("class", "a.b.K", 18, 18),
        ("method", "a.b.K.h", 19, 19),
        ("class", "T", 21, 21),
        ("class", "E", 22, 22),
        ("method", "H.q", 24, 24),
        ("function", "TEST(Foo, Bar)", 25, 25),
        ("function", "TEST_F(Foo, Baz)", 26, 26),
        ("function", "r", 28, 28),
        ("class", "Tensor", 29, 31),
        ("method", "Tensor.dim", 32, 32),
        ("method", "Bar.f", 34, 34),
    ],
    "store.go": [
        ("method", "Recv.M", 3, 4, "M does."),
        ("method", "Recv.N", 5, 5),
        ("class", "A", 7, 8, "A is"),
        ("class", "B", 9, 9),
        ("class", "P", 11, 14, "P is"),
        ("function", "F", 16, 16),
        ("function", "init", 17, 17),
        ("function", "init#2", 18, 18),
    ],
    "tree.rs": [
        ("function", "f", 3, 6, "doc"),
        ("method", "Foo.m", 8, 8),
        ("method", "Foo.m#2", 12, 13, "doc m"),
        ("function", "q.z", 15, 15),
        ("method", "W.e", 16, 16),
        ("class", "P", 17, 18),
        ("function", "last", 20, 20),
    ],
    "view.tsx": [
        ("function", "C", 1, 1),
        ("method", "X.render", 2, 2),
    ],
}


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_units_of_a_small_source(name):
    source = (SOURCES / f"{name}.txt").read_text()
    extraction = extract_units(source, name, language_of(name))
    lines = source.split("\n")
    got = []
    for unit in extraction.units:
        assert unit.code == "\n".join(lines[unit.start_line - 1 : unit.end_line])
        assert unit.language == language_of(name).name
        item = (unit.kind, unit.id.removeprefix(f"{name}::"), unit.start_line, unit.end_line)
        got.append((*item, unit.doc.split("\n")[0]) if unit.doc else item)
    assert got == EXPECTED[name]
    assert extraction.has_errors == (name == "broken.py")  # the grammar knows Python 2 as well


def test_every_language_has_a_source():
    assert {language_of(name).name for name in EXPECTED} == set(language_names())
