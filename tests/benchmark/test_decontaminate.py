"""Decontamination against a brute-force twin, the rules for words and tokens, the guard, and reading test sets."""

import hashlib
import io
import json
import os
import random
import time
import tokenize
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from datasets import Dataset

from hf_qualcode.benchmark.decontaminate import (
    Decontamination,
    HeldOutSet,
    HeldOutText,
    NgramIndex,
    TrainingRow,
    decontaminate,
    read_held_out,
)
from hf_qualcode.benchmark.ngrams import CODE, QUERY, code_tokens, ngram_hashes, query_words, rule_for
from hf_qualcode.types import QualcodeError, UsageError


TEN = "one two three four five six seven eight nine ten"


def held_out(*texts, kind=QUERY, name="test"):
    return HeldOutSet(name, tuple(HeldOutText(f"t{i}", f"p{i}", kind, text) for i, text in enumerate(texts)))


def build(*texts, kind=QUERY, **options):
    return NgramIndex.build([held_out(*texts, kind=kind)], **options)


# ---- The rules ----


def test_words_are_lower_case_with_one_spelling_and_numbers():
    assert " ".join(query_words("Print the N-th number, 1 <= N <= 10^5.")) == "print the n th number 1 n 10 5"
    assert query_words("ＡＢＣ Straße cafe\u0301") == ["abc", "strasse", "café"]
    assert query_words("snake_case x_1") == ["snake", "case", "x", "1"]


def test_each_character_of_a_script_without_spaces_is_a_word():
    assert query_words("整数Nを表示") == ["整", "数", "n", "を", "表", "示"]
    index = build("標準入力から整数Nが与えられる。")
    assert index.check(query="問題：標準入力から整数Nが").ngram == "標 準 入 力 か ら 整 数 n が"
    assert index.check(query="標準入力から整数M") is None


def test_names_and_signs_are_kept_and_literals_are_equal():
    assert " ".join(code_tokens("x = f(1.5e-3, 0xFF, .5j, 1_000)")) == "x = f ( 0 , 0 , 0 , 0 )"
    assert code_tokens("s = rb'a' + f\"{x}\" # no\n'''a\n'b''' ") == ["s", "=", '""', "+", '""', '""']
    assert code_tokens("if x:\n\treturn a**b // c\n") == ["if", "x", ":", "return", "a", "**", "b", "//", "c"]
    assert code_tokens("ﬁle = 1") == ["file", "=", "0"]
    assert code_tokens("abf'x'") == ["abf", '""']


def test_broken_programs_have_tokens_too():
    assert code_tokens("print('open\ny = 2 ? $") == ["print", "(", '""', "y", "=", "0", "?", "$"]
    assert code_tokens('a = """never closed\nb = 1') == ["a", "=", '""']
    assert code_tokens("print 'Python 2' \\\n , x\\") == ["print", '""', ",", "x"]
    assert code_tokens("\ud800\x00") == ["\ud800", "\x00"]


@pytest.mark.parametrize("text", ['"""\\' * 20_000, "'\\" * 20_000, "f" * 50_000 + "'", "0x" * 20_000], ids=range(4))
def test_tokens_of_hostile_texts_take_linear_time(text):
    start = time.perf_counter()
    code_tokens(text)
    assert time.perf_counter() - start < 2


def test_tokens_are_those_of_python_itself():
    root = os.environ.get("HF_QUALCODE_TEST_DATA")
    files = sorted(Path(root).glob("codenet-mini/data/p*/Python/*.py"))[::12] if root else []
    if not files:
        pytest.skip("needs codenet-mini in HF_QUALCODE_TEST_DATA")
    layout = {tokenize.NEWLINE, tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.COMMENT, tokenize.ENDMARKER}
    compared = 0
    for file in files:
        text = file.read_text(encoding="utf-8", errors="replace")
        if "f'" in text or 'f"' in text:  # other tokens since Python 3.12
            continue
        try:
            tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
        except (SyntaxError, tokenize.TokenError):
            continue
        normal = {tokenize.STRING: '""', tokenize.NUMBER: "0"}
        expected = [normal.get(token.type, token.string) for token in tokens if token.type not in layout]
        assert code_tokens(text) == expected, file
        compared += 1
    assert compared > 50


# ---- Looking up ----


def test_a_hit_names_the_run_and_both_ids():
    index = NgramIndex.build([held_out("nothing here", name="a"), held_out(f"zero {TEN} eleven", name="b")])
    hit = index.check(query=f"Now: {TEN.upper()}!", id="task 7")
    assert (hit.row_id, hit.kind, hit.test_set, hit.test_id, hit.problem_id) == ("task 7", QUERY, "b", "t0", "p0")
    assert hit.ngram == TEN
    assert index.check(query=TEN.replace("five", "fife")) is None
    assert index.check(query=" ".join(TEN.split()[:9])) is None


def test_the_first_shared_run_and_the_first_text_that_has_it_are_named():
    index = build(f"b {TEN}", f"{TEN} c", TEN)
    assert index.check(query=f"x b {TEN} c").ngram == "b " + TEN.removesuffix(" ten")
    assert index.check(query=f"x {TEN} c").test_id == "t0"


def test_short_texts_are_compared_whole_and_with_short_texts_alone():
    index = build("sort a list", TEN)
    assert index.check(query="Sort a list!").ngram == "sort a list"
    assert index.check(query="please sort a list") is None
    assert index.check(query=f"sort a list {TEN.replace('one', '1')}") is None
    assert index.check(query="") is None and index.check(query="?!") is None and index.check() is None


def test_a_statement_is_no_program():
    index = build(TEN, kind=CODE)
    assert index.check(query=TEN) is None
    assert index.check(query=TEN, code=TEN).kind == CODE


def test_boilerplate_of_many_problems_is_no_evidence():
    reading = "n = int(input())\na = list(map(int, input().split()))\n"
    shared = [f"{reading}print(x{i} + y{i} * z{i} - w{i})" for i in range(4)]
    code = f"{reading}print(max(a))"
    assert build(*shared[:3], kind=CODE).check(code=code) is not None
    guarded = build(*shared, kind=CODE)
    assert guarded.check(code=code) is None
    assert guarded.check(code="q = 1\nprint(x2 + y2 * z2 - w2)").test_id == "t2"
    assert guarded.describe()["ngrams_too_common"][CODE] > 0
    assert build(*shared, kind=CODE, max_code_problems=4).check(code=code) is not None
    assert build(*shared, kind=CODE, max_code_problems=None).check(code=code) is not None
    assert build(*[TEN] * 5).check(query=TEN) is not None
    assert build(*[TEN] * 5, max_query_problems=4).check(query=TEN) is None


def test_programs_of_one_problem_count_once_for_the_guard():
    same = [HeldOutText(f"t{i}", "p", CODE, TEN) for i in range(9)]
    sets = [HeldOutSet("a", tuple(same)), HeldOutSet("b", tuple(same))]
    assert NgramIndex.build(sets).check(code=TEN) is not None


def random_texts(rng, number, letters):
    return [" ".join(rng.choices(letters, k=rng.randrange(0, 14))) for _ in range(number)]


@pytest.mark.parametrize("n", [1, 3, 10])
@pytest.mark.parametrize("kind", [QUERY, CODE])
def test_the_same_hits_as_a_set_of_tuples(n, kind):
    rng = random.Random(n)
    letters = ["é", "数", *(map("w{}".format, range(4 if n > 1 else 400)))]
    tests, rows = random_texts(rng, 40, letters), random_texts(rng, 400, letters)
    tokens = {QUERY: query_words, CODE: code_tokens}[kind]

    def runs(text):
        words = tokens(text)
        whole = [tuple(words)] if 0 < len(words) < n else []
        return [*whole, *(tuple(words[i : i + n]) for i in range(len(words) - n + 1))]

    problems = {}
    for number, text in enumerate(tests):
        for run in runs(text):
            problems.setdefault(run, set()).add(number)
    limit = 3 if kind == CODE else None
    allowed = {run for run, found in problems.items() if limit is None or len(found) <= limit}
    expected = [next((" ".join(run) for run in runs(text) if run in allowed), None) for text in rows]
    index = build(*tests, kind=kind, n=n)
    hits = list(index.scan(TrainingRow(str(i), **{kind: text}) for i, text in enumerate(rows)))
    assert [hit and hit.ngram for hit in hits] == expected
    assert {None} < set(expected)
    assert index.describe()["ngrams"][kind] == len(allowed)


def test_two_runs_of_one_number_make_no_hit():
    index = build(TEN)
    side = index._sides[QUERY]
    other = TEN.replace("ten", "eleven")
    side.numbers[:] = ngram_hashes([other], rule_for(QUERY), 10)[0]
    side.seen[:] = True
    assert index.check(query=other) is None


def test_numbers_of_runs_are_the_same_in_every_process():
    expected = 0
    for word in TEN.split():
        number = int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest(), "big")
        expected = (expected * 0x9E3779B97F4A7C15 + number) % 2**64
    assert ngram_hashes([TEN], rule_for(QUERY), 10)[0].tolist() == [expected]
    assert len(set(ngram_hashes(["a b", "b a", "a", "a a"], rule_for(QUERY), 10)[0].tolist())) == 4


# ---- Rows ----


def tasks(*queries):
    return [SimpleNamespace(id=str(i), query=query) for i, query in enumerate(queries)]


def test_rows_without_a_hit_are_kept_in_order_and_counted():
    stages = []
    rows = tasks("a b", TEN, "c d", f"{TEN} {TEN}")
    kept, found = decontaminate(rows, [held_out(TEN)], progress=lambda *args: stages.append(args))
    assert [task.id for task in kept] == ["0", "2"]
    report = found.report()
    assert json.loads(json.dumps(report)) == report
    assert (report["rows"], report["kept"], report["contaminated"]) == (4, 2, {QUERY: 2, CODE: 0})
    assert report["test_sets"]["test"] == {
        "queries": 1, "codes": 0, "problems": 1, "rows_hit": {QUERY: 2, CODE: 0},
    }  # fmt: skip
    assert [hit["row_id"] for hit in report["hits"]] == ["1", "3"]
    assert "2 of 4 rows share no 10-gram" in found.table()
    assert stages[-1] == ("decontaminating", 4, 4)


def test_rows_are_read_as_they_are_needed():
    read = 0

    def endless():
        nonlocal read
        while True:
            read += 1
            yield SimpleNamespace(id=read, query="a b", code=TEN if read % 2 else None)

    found = Decontamination(build(TEN, kind=CODE), max_listed=3)
    rows = found.keep(endless())
    assert [next(rows).id for _ in range(1500)] == list(range(2, 3002, 2))
    assert read < 5000
    report = found.report()
    assert (len(report["hits"]), report["hits_not_listed"]) == (3, report["contaminated"][CODE] - 3)


def test_many_rows_give_what_single_ones_do():
    rng = random.Random(0)
    index = build(*random_texts(rng, 50, list("abc")), n=4)
    rows = [TrainingRow(str(i), text) for i, text in enumerate(random_texts(rng, 3000, list("abc")))]
    assert list(index.scan(rows)) == [index.check(query=row.query, id=row.id) for row in rows]


def test_wrong_numbers_and_names_are_refused():
    for options in ({"n": 0}, {"max_code_problems": 0}, {"max_query_problems": -1}):
        with pytest.raises(UsageError, match="expected 1 or more"):
            build(TEN, **options)
    with pytest.raises(UsageError, match="'test' is given twice"):
        NgramIndex.build([held_out(TEN), held_out(TEN)])


def test_without_a_test_set_all_is_kept():
    rows = tasks("a", TEN)
    assert decontaminate(rows, []).kept == rows


# ---- Test sets ----


def test_a_file_of_rows_is_read(tmp_path):
    file = tmp_path / "mbpp.jsonl"
    rows = [{"task_id": 3, "text": "Sort.", "code": "x"}, {"id": "a", "problem_id": "p", "query": "Add."}, "Bare."]
    file.write_text("\ufeff" + "\n\n".join(map(json.dumps, rows)), encoding="utf-8")
    found = read_held_out(str(file))
    assert found.name == str(file)
    assert [(text.id, text.problem_id, text.kind, text.text) for text in found.texts] == [
        ("3", "3", QUERY, "Sort."), ("3", "3", CODE, "x"), ("a", "p", QUERY, "Add."),
        ("row 5", "row 5", QUERY, "Bare."),
    ]  # fmt: skip
    as_list = tmp_path / "taco.json"
    as_list.write_text(json.dumps([{"task_id": 1, "prompt": "Sort."}]), encoding="utf-8")
    assert read_held_out(str(as_list), "taco") == HeldOutSet("taco", (HeldOutText("1", "1", QUERY, "Sort."),))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.jsonl", b'{"query": "a"}\n{"query', "line 2 is not JSON"),
        ("a.jsonl", b'{"title": "a"}', "row 1 has none of query, prompt, text, code"),
        ("a.jsonl", b'{"query": 3}', "its query is a int; expected text"),
        ("a.jsonl", b"[1]", "is a list; expected an object or a text"),
        ("a.jsonl", b"\xff\xfe", "cannot be read"),
        ("a.jsonl", b"", "has no statement and no program"),
        ("a.json", b"{}", "is a JSON dict; expected a list"),
        ("a.json", b"[" * 100_000, "cannot be read|is not JSON"),
    ],
)
def test_a_bad_file_is_told_of_in_one_line(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(QualcodeError, match=message) as error:
        read_held_out(str(tmp_path / name))
    assert "\n" not in str(error.value)


def test_what_is_no_test_set_is_refused(tmp_path):
    (tmp_path / "a.csv").write_text("a")
    for source in (str(tmp_path / "a.csv"), "nowhere", str(tmp_path / "absent.jsonl")):
        with pytest.raises(UsageError):
            read_held_out(source)
    with pytest.raises(QualcodeError, match="cannot be read as a test set|no configuration"):
        read_held_out(str(tmp_path))


def test_a_benchmark_folder_is_read(tmp_path):
    pair = {"query": ["Q1", "Q2"], "problem_id": ["p1", "p2"], "positive": ["a", "b"], "positive_id": ["s1", "s2"]}
    pairs = {**pair, "negative": ["c", "a"], "negative_id": ["s3", "s4"]}
    lists = {**pair, "negatives": [["z"], ["z"]]}
    for config, columns in (("speed", pairs), ("relevance", lists), ("corpus", {"x": [1]})):
        (tmp_path / config).mkdir()
        Dataset.from_dict(columns).to_parquet(tmp_path / config / "test.parquet")
    (tmp_path / "README.md").write_text(
        "---\nconfigs:\n"
        + "".join(
            f"- config_name: {config}\n  data_files:\n  - split: test\n    path: {config}/test.parquet\n"
            for config in ("speed", "relevance", "corpus")
        )
        + "---\n"
    )
    found = read_held_out(f"qualcode:{tmp_path}")
    assert {(text.id, text.problem_id, text.kind, text.text) for text in found.texts} == {
        ("p1", "p1", QUERY, "Q1"), ("p2", "p2", QUERY, "Q2"), ("s1", "p1", CODE, "a"), ("s2", "p2", CODE, "b"),
        ("s3", "p1", CODE, "c"), ("s4", "p2", CODE, "a"),
    }  # fmt: skip


def test_hashes_are_unsigned_numbers_of_64_bits():
    numbers, rows, offsets = ngram_hashes(["a b c", "", "d"], rule_for(QUERY), 2)
    assert numbers.dtype == np.uint64
    assert (rows.tolist(), offsets.tolist()) == ([0, 0, 2], [0, 1, 0])
