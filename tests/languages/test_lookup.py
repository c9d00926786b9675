import pytest

from hf_qualcode.languages import get_language, language_names, language_of
from hf_qualcode.languages._lookup import header_language
from hf_qualcode.types import UsageError


def test_every_language_file_is_found_by_its_name():
    assert language_names() == ("c", "cpp", "go", "java", "javascript", "python", "rust", "typescript")
    for name in language_names():
        language = get_language(name)
        assert language.name == name
        for suffix in language.suffixes:
            assert language.grammar_and_query(suffix)


def test_no_two_languages_share_a_suffix():
    suffixes = [suffix for name in language_names() for suffix in get_language(name).suffixes]
    assert len(set(suffixes)) == len(suffixes)


def test_unknown_name_lists_the_legal_ones():
    with pytest.raises(UsageError, match=r"'cobol'; choose one of: c, cpp, go"):
        get_language("cobol")
    with pytest.raises(UsageError):
        get_language("_base")


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("a/b.py", "python"),
        ("A.PYI", "python"),
        ("x.mjs", "javascript"),
        ("x.jsx", "javascript"),
        ("x.d.ts", "typescript"),
        ("x.tsx", "typescript"),
        ("X.java", "java"),
        ("x.go", "go"),
        ("x.c", "c"),
        ("x.h", "c"),
        ("x.hpp", "cpp"),
        ("x.cu", "cpp"),
        ("x.rs", "rust"),
        ("README.md", None),
        ("Makefile", None),
        (".py", None),
    ],
)
def test_language_by_suffix(path, name):
    language = language_of(path)
    assert (language.name if language else None) == name


@pytest.mark.parametrize(
    ("first_line", "name"),
    [
        ("#!/usr/bin/python", "python"),
        ("#!/usr/bin/env python3.11", "python"),
        ("#!/usr/bin/env -S python3 -u", "python"),
        ("#! /usr/local/bin/pypy3", "python"),
        ("#!/usr/bin/env node", "javascript"),
        ("#!/bin/sh", None),
        ("#!/usr/bin/env pythonista", None),
        ("import python", None),
    ],
)
def test_language_by_shebang(first_line, name):
    language = language_of("bin/tool", first_line)
    assert (language.name if language else None) == name
    assert language_of("tool.txt", first_line) is None


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("int f(void);\n", "c"),
        ("#include <stdio.h>\nstruct class_table { int using; };\n", "c"),
        ("/* a:b */ typedef struct x x;\n", "c"),
        ("class A;\n", "cpp"),
        ("#include <vector>\n", "cpp"),
        ("namespace a { }\n", "cpp"),
        ("struct A {\n public:\n  int x;\n};\n", "cpp"),
        ("inline int f() { return a::g(); }\n", "cpp"),
    ],
)
def test_header_is_c_unless_it_smells_of_cpp(source, name):
    assert header_language(source).name == name
