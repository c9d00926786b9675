"""Statements: text, sections and samples out of HTML, for hostile pages too; and the language they are in."""

import os
import random
from pathlib import Path

import pytest

from hf_qualcode.benchmark.detection import is_english, language_of_text
from hf_qualcode.benchmark.statements import MAX_PAGE_CHARACTERS, Sample, read_statement


ATCODER = """<span class="lang-en">
<p>Score : <var>100</var> points</p>
<div class="part"><section><h3>Problem Statement</h3><p>Is <var>a_i</var> &lt; 10<sup>5</sup>?
Take <i>x</i><sub>1</sub> and y<sub>i+1</sub>.</p></section></div>
<section><h3>Constraints</h3><ul><li><var>1 \\leq N &lt; 10^5</var></li><li><p>All integers.</p></li></ul></section>
<h3>Input</h3><p>Given as:</p><pre><var>N</var>
<var>a_1</var>  <var>a_N</var>
</pre>
<section><h3>Sample Input 1</h3><pre>2
1 2
</pre></section><section><h3>Sample Output 1</h3><pre>
3
</pre><p>Because.</p></section>
<h3>Sample Input 2</h3><pre>1\r\n5</pre><h3>Sample Output 2</h3><pre>5</pre>
</span>"""

AIZU = """<H1><font color="#000">Problem A:</font> Hills</H1><p>Find <b>hills</b>.<br>Now.</p>
<script>alert('x')</script><style>p {}</style><!-- hidden -->
<img src="a.png" alt="a.png"><img alt="A picture of hills">
<H2>Input</H2><p>Some numbers (0 &le; n)</p><H2>Sample Input</H2><pre>
1
</pre><H2>Output for the Sample Input</H2><pre>
2
</pre><table><tr><th>a</th><td>b</td></tr><tr><td>c</td><td>d</td></tr></table>"""


class TestText:
    def test_a_page_as_people_read_it(self):
        assert read_statement(ATCODER).text == "\n\n".join(
            [
                "Score : 100 points",
                "Problem Statement",
                "Is a_i < 10^5? Take x_1 and y_{i+1}.",
                "Constraints",
                "- 1 \\leq N < 10^5\n- All integers.",
                "Input",
                "Given as:",
                "N\na_1  a_N",
                "Sample Input 1",
                "2\n1 2",
                "Sample Output 1",
                "3",
                "Because.",
                "Sample Input 2",
                "1\n5",
                "Sample Output 2",
                "5",
            ]
        )

    def test_headings_of_any_case_images_and_tables(self):
        statement = read_statement(AIZU)
        assert [section.heading for section in statement.sections] == [
            "Problem A: Hills", "Input", "Sample Input", "Output for the Sample Input",
        ]  # fmt: skip
        assert "Find hills.\nNow." in statement.text
        assert "A picture of hills" in statement.text and "a.png" not in statement.text
        assert "a b\nc d" in statement.text
        for gone in ("alert", "hidden", "p {}"):
            assert gone not in statement.text

    def test_sections_keep_lines_and_blocks_apart(self):
        section = next(part for part in read_statement(ATCODER).sections if part.heading == "Input")
        assert section.lines == ("Given as:",)
        assert section.blocks == ("N\na_1  a_N\n",)
        assert section.text == "Given as:\n\nN\na_1  a_N"

    def test_prose_leaves_out_blocks(self):
        assert "Because." in read_statement(ATCODER).prose
        assert "a_1  a_N" not in read_statement(ATCODER).prose

    def test_the_english_part_is_taken(self):
        page = '<span><span class="lang-ja"><p>整数</p></span><span class="lang-en"><p>One</p></span></span>'
        assert read_statement(page).text == "One"

    @pytest.mark.parametrize("empty", ["", '<span class="lang-en"> </span>'])
    def test_a_japanese_part_alone_stays(self, empty):
        assert read_statement(f'<p class="lang-ja">整数</p>{empty}').text == "整数"

    def test_a_sign_that_opens_no_tag_is_text(self):
        assert read_statement("<p>1 < 2, a<b and 3 <= 4</p>").text == "1 < 2, a<b and 3 <= 4"

    def test_no_blank_lines_in_a_row(self):
        assert read_statement("<p></p><br><br><p>a</p>\n\n\n<hr><hr><div><div>b</div></div>").text == "a\n\nb"

    def test_a_paragraph_in_a_list_item_stays_with_its_mark(self):
        assert read_statement("<ul>\n<li>\n<p>a</p>\n</li>\n<li>b</li>\n</ul>").text == "- a\n\n- b"


class TestSamples:
    def test_pairs_by_number(self):
        assert read_statement(ATCODER).samples == (Sample("2\n1 2\n", "3\n"), Sample("1\n5\n", "5\n"))
        assert read_statement(AIZU).samples == (Sample("1\n", "2\n"),)

    def test_an_input_without_output_is_no_sample(self):
        page = (
            "<h3>Sample Input 1</h3><pre>1</pre><h3>Sample Input 2</h3><pre>2</pre>"
            "<h3>Sample Output 2</h3><pre>3</pre>"
        )
        assert read_statement(page).samples == (Sample("2\n", "3\n"),)


HOSTILE = {
    "nested div": "<div>" * 20_000 + "x",
    "nested b": "<b>" * 20_000 + "x",
    "nested headings": "<h1>" * 20_000 + "x",
    "nested sub": "a<sub>" * 20_000 + "x",
    "nested pre": "<pre>" * 20_000 + "x",
    "unclosed comments": "<!--" * 50_000,
    "unclosed declarations": "<!" * 80_000 + "<![if",
    "unclosed quotes": "<a b='" * 30_000,
    "unclosed instructions": "<?" * 80_000,
    "closing tags alone": "</p>" * 40_000,
    "wrong closing": "<i>" * 10_000 + "</b>" * 10_000,
    "ampersands": "&" * 100_000,
    "surrogates": "a\ud800b&#xd800;&#0;\0c",
    "attributes": "<p class=lang-en class='a' =''>x</p>",
    "pre never closed": "<h3>Sample Input</h3><pre>1",
}


class TestHostilePages:
    @pytest.mark.parametrize("page", HOSTILE.values(), ids=HOSTILE.keys())
    def test_never_raises_and_gives_text_that_can_be_written(self, page):
        statement = read_statement(page)
        statement.text.encode("utf-8")
        assert "\0" not in statement.text

    def test_a_large_page_is_cut(self):
        assert len(read_statement("a " * MAX_PAGE_CHARACTERS).text) <= MAX_PAGE_CHARACTERS

    def test_random_tags(self):
        source = random.Random(0)
        parts = ["<p>", "</p>", "<pre>", "</pre>", "<li>", "<h3>", "</h3>", "<sub>", "</sub>", "<br/>", "<td>", "a",
                 " ",
                 "\n", "<", "&lt;", "<!--", "-->", "<table>", "</ul>", "<img alt=z>", "<![CDATA[", "]]>"]  # fmt: skip
        for _ in range(300):
            statement = read_statement("".join(source.choices(parts, k=40)))
            assert "\n\n\n" not in statement.text
            assert statement.text == statement.text.strip("\n")


ENGLISH = "You are given an integer N. Print the sum of all positive divisors of N, in decimal notation."


class TestLanguage:
    @pytest.mark.parametrize(
        ("text", "code"),
        [
            (ENGLISH, "en"),
            ("整数 N が与えられます。N の約数の和を出力してください。", "ja"),
            ("给定一个整数，输出它的所有约数的和。答案对一个质数取模。", "zh"),
            ("Дано целое число. Выведите сумму всех его делителей.", "ru"),
            ("Gegeben ist eine ganze Zahl. Gib die Summe aller Teiler dieser Zahl aus.", "de"),
            ("On vous donne un entier. Affichez la somme de tous ses diviseurs.", "fr"),
            ("", "und"),
            ("12 34 a_1 x_{ij} \\leq 10^5", "und"),
        ],
    )
    def test_languages(self, text, code):
        assert language_of_text(text) == code
        assert is_english(text) == (code == "en")

    def test_short_english(self):
        assert is_english("Print the answer.")

    def test_mixed_pages_are_not_english(self):
        japanese = "整数が与えられます。約数の和を出力してください。制約は次の通りです。"
        assert not is_english(ENGLISH + japanese)
        assert is_english(ENGLISH * 3 + "(大崎)")

    def test_formulas_and_samples_do_not_sway(self):
        assert is_english(ENGLISH + "\n1 2 3\n" * 500 + "\\leq \\frac{a_i}{b_{ij}} " * 100)

    def test_greek_letters_of_formulas_are_not_foreign(self):
        assert is_english(ENGLISH * 2 + " αβ γδ εζ ηθ κλ μν ξο")


@pytest.fixture(scope="module")
def real_statements():
    folder = os.environ.get("HF_QUALCODE_TEST_DATA")
    pages = sorted((Path(folder) / "codenet-mini" / "problem_descriptions").glob("*.html")) if folder else []
    if not pages:
        pytest.skip("no CodeNet statements: set HF_QUALCODE_TEST_DATA to the folder that holds codenet-mini")
    return {page.stem: read_statement(page.read_text(encoding="utf-8")) for page in pages}


class TestRealStatements:
    def test_which_are_not_english(self, real_statements):
        others = {name for name, statement in real_statements.items() if not is_english(statement.prose)}
        assert others == {"p00134", "p00144", "p00447", "p00542", "p01138"}

    def test_text_and_samples(self, real_statements):
        for name, statement in real_statements.items():
            assert len(statement.text) > 100, name
            assert "\n\n\n" not in statement.text, name
            assert not {"<var>", "</", "&lt;", "<sub>"} & set(statement.text.split()), name
            assert statement.samples, name
