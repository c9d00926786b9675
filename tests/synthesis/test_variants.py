"""Variants on disk: whole or not at all, and errors that name the line."""

import json
from dataclasses import replace

import pytest

from hf_qualcode.synthesis.variants import Variant, read_variants, write_variants
from hf_qualcode.types import QualcodeError


ONE = Variant("t", "speed", "high", "speed/patterns", "Add. \u2028", "x = '\ud800'\n", "m", {"ratio": 2.5})
TEXTS = dict.fromkeys(("task_id", "dimension", "level", "group", "query", "code", "source"), "x")


def test_what_is_written_comes_back(tmp_path):
    rows = [ONE, replace(ONE, level="low", evidence={}), replace(ONE, group="", code="")]
    path = tmp_path / "new" / "variants.jsonl"
    assert write_variants(path, iter(rows)) == 3
    assert list(read_variants(path)) == rows
    assert [entry.name for entry in path.parent.iterdir()] == ["variants.jsonl"]


def test_a_failure_on_the_way_leaves_the_old_file(tmp_path):
    path = tmp_path / "variants.jsonl"
    write_variants(path, [ONE])

    def two_then_none():
        yield ONE
        yield ONE
        raise OSError(28, "No space left on device")

    with pytest.raises(QualcodeError, match=r"cannot be written \(No space left on device\); the old file"):
        write_variants(path, two_then_none())
    assert list(read_variants(path)) == [ONE]
    assert [entry.name for entry in tmp_path.iterdir()] == ["variants.jsonl"]


def test_a_level_that_is_none_is_refused():
    with pytest.raises(ValueError, match="'middle', expected one of high, low"):
        replace(ONE, level="middle")


@pytest.mark.parametrize(
    "line",
    ["{", "[]", "null", json.dumps({"task_id": "t"}), "[" * 5000]
    + [json.dumps({**TEXTS, "level": level}) for level in ("high up", 3)]
    + [json.dumps({**TEXTS, "level": "high", "evidence": "x"})],
)
def test_a_line_that_is_no_variant_is_named(tmp_path, line):
    path = tmp_path / "variants.jsonl"
    write_variants(path, [ONE])
    with path.open("a") as file:
        file.write(f"\n{line}\n")
    with pytest.raises(QualcodeError, match=r"variants\.jsonl, line 3 is no variant .*task_id, dimension"):
        list(read_variants(path))


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    for content in (None, b"\xff\xfe"):
        if content:
            (tmp_path / "v").write_bytes(content)
        with pytest.raises(QualcodeError, match="v cannot be read"):
            list(read_variants(tmp_path / "v"))
