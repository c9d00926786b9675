"""The line of tags: by hand on programs whose tree is known."""

from hf_qualcode.rerank.tags import code_tags, with_tags


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
