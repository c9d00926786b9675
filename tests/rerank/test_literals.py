"""Literals of programs and words of queries: by hand."""

import math

from hf_qualcode.rerank.literals import code_literals, document_frequencies, literal_overlap, query_tokens


def test_literals_are_short_strings_and_numbers():
    code = '''"""documentation of no interest"""
print("Yes" if n % 1000000007 else 'No way')  # 5
x = 10 ** 5 + 3.25 + a12 + 42
y = f"{x} ok"
'''
    assert code_literals(code) == {"Yes", "No", "way", "1000000007", "100000", "x", "ok", "10", "42"}


def test_an_unclosed_quote_ends_nothing_else():
    assert code_literals("'''never closed 'Yes'") == set()
    assert code_literals("") == set()


def test_numbers_of_queries_are_read_in_all_their_forms():
    tokens = query_tokens("Print Yes. N < 100,000; modulo 10^9 ... 1000000007")
    assert {"100000", "1000000007", "Print", "Yes"} <= tokens
    assert "1000000000" in query_tokens("at most 10^{9}")


def test_overlap_is_the_share_of_rare_literals_that_the_query_names():
    queries = ["Print Yes or No", "Print IMPOSSIBLE", "Print the sum"]
    frequencies = document_frequencies([*queries, queries[0]])
    assert frequencies["Print"] == 3
    assert frequencies["Yes"] == 1
    # Both literals weigh log(4 / 2) / log(5); named: Yes, unnamed: IMPOSSIBLE.
    weight = math.log(2) / math.log(5)
    found = literal_overlap(queries[0], "print('Yes', 'IMPOSSIBLE')", frequencies, 3)
    assert math.isclose(found, (weight - weight / 2) / (1 + 2 * weight))
    assert literal_overlap(queries[0], "print('Yes')", frequencies, 3) > found
    # What no query holds says nothing, and neither does code without literals.
    assert literal_overlap(queries[0], "print('zebra')", frequencies, 3) == 0
    assert literal_overlap(queries[0], "print(x)", frequencies, 3) == 0
