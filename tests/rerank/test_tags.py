"""The line of tags: by hand on programs whose tree is known."""

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file
from safetensors.torch import load_file
from safetensors.torch import save_file as save_tensors

from hf_qualcode.quality import dimension_names
from hf_qualcode.quality.static_features import FEATURE_NAMES
from hf_qualcode.quality.wishes import read_wishes
from hf_qualcode.rerank.tags import NUM_LEVELS, JudgedTags, code_tags, judgement, with_tags
from hf_qualcode.types import QualcodeError


SLOW = """import numpy as np
import sys
def f(n):
    return f(n - 1)
for i in range(3):
    for j in range(3):
        print(sorted([i, j]))
x = input()
"""


def test_tags_name_what_is_there():
    assert code_tags(SLOW) == (
        "imports: numpy sys; reads: input; prints: in loop; loops: 2 deep 2; functions: 1; branches: 0; "
        "size: 8; in loops: sort; uses: recursion"
    )


def test_a_program_of_nothing_much():
    assert code_tags("print(1)") == (
        "imports: none; reads: none; prints: none; loops: 0; functions: 0; branches: 0; size: 1; in loops: none; "
        "uses: none"
    )


def test_names_and_comments_make_no_difference():
    renamed = SLOW.replace("f(", "solve(").replace("i,", "first,").replace("for i", "for first") + "# a comment\n"
    assert code_tags(renamed.replace("[i", "[first")) == code_tags(SLOW)


def test_other_languages_have_no_tags():
    code = "int main() { return 0; }"
    assert code_tags(code) == ""
    assert with_tags(code) == code
    assert with_tags("") == ""
    assert with_tags("print(1)").endswith("\nprint(1)")


def test_judgements_are_in_the_words_of_instructions():
    assert judgement([1, 4, 3]) == "very fast, memory-hungry, neither maintainable nor hard to maintain"
    assert judgement([6, 0, 2]) == "extremely slow, extremely memory-efficient, maintainable"
    for level, sign in ((0, 1), (2, 1), (4, -1), (6, -1)):
        assert read_wishes(judgement([level] * 3)) == (sign,) * 3


@pytest.fixture
def tags():
    """Fast is what prints little, lean what loops little; nothing is known of the rest."""
    weights = np.zeros((len(dimension_names()), len(FEATURE_NAMES)))
    weights[0, FEATURE_NAMES.index("calls print")] = -1
    weights[1, FEATURE_NAMES.index("for loops")] = -1
    programs = ["print(1)\n" * number + f"for i in range({number}):\n    pass\n" for number in range(1, 15)]
    return JudgedTags.fit(weights, programs)


def test_levels_hold_about_equally_many_programs(tags):
    read = [tags("print(1)\n" * number + "x = 1\n").partition("\n")[0].split(", ")[0] for number in range(1, 15)]
    assert len(set(read)) == NUM_LEVELS
    assert [read.count(word) for word in dict.fromkeys(read)] == [2] * NUM_LEVELS
    assert read[0] == "extremely fast"
    assert read[-1] == "extremely slow"


def test_only_whole_programs_are_judged(tags):
    for code in ("def f():\n    print(1)\n", "int main() {}", "", "import os\n"):
        assert tags(code) == code
    assert tags("print(1)").endswith("\nprint(1)")


def test_judged_tags_are_kept_in_a_folder(tags, tmp_path):
    tags.save(tmp_path)
    loaded = JudgedTags.load(tmp_path)
    for code in ("print(1)", "for i in range(3):\n    print(i)\n"):
        assert loaded(code) == tags(code)


@pytest.mark.parametrize("content", [None, b"", b"junk that is no safetensors file at all"])
def test_a_damaged_file_of_tags_is_one_line(tags, tmp_path, content):
    if content is not None:
        (tmp_path / "tags.safetensors").write_bytes(content)
    with pytest.raises(QualcodeError, match="cannot be read"):
        JudgedTags.load(tmp_path)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float8_e4m3fn, torch.int64])
def test_tags_of_another_type_are_one_line(tags, tmp_path, dtype):
    tags.save(tmp_path)
    arrays = load_file(tmp_path / "tags.safetensors")
    save_tensors({name: array.to(dtype) for name, array in arrays.items()}, tmp_path / "tags.safetensors")
    with pytest.raises(QualcodeError, match="cannot be read"):
        JudgedTags.load(tmp_path)


def test_tags_of_another_version_are_one_line(tags, tmp_path):
    save_file({"static_weights": np.zeros((3, 2)), "thresholds": tags.thresholds}, tmp_path / "tags.safetensors")
    with pytest.raises(QualcodeError, match="other qualities or features"):
        JudgedTags.load(tmp_path)
