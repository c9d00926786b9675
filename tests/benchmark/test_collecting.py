import csv
import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import textwrap
from collections import Counter
from pathlib import Path

import pytest

from hf_qualcode.benchmark.collecting import RawValues, collect
from hf_qualcode.benchmark.outcomes import (
    MEASUREMENT_OUTCOMES,
    PROBLEM_OUTCOMES,
    SMELL_OUTCOMES,
    SUBMISSION_OUTCOMES,
)
from hf_qualcode.benchmark.sifting import read_measurement, worth_of
from hf_qualcode.benchmark.sources import digest_of
from hf_qualcode.types import QualcodeError


class LineEngine:
    """Finds one smell for every line that says `smell`, and cannot read programs that say `unreadable`."""

    name, version, is_proxy, description = "lines", "1", True, "for tests"

    def __init__(self):
        self.num_calls = 0

    def analyse(self, texts, progress=None):
        self.num_calls += 1
        return [None if "unreadable" in text else ("T1",) * text.count("# smell") for text in texts]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


def everything(collection):
    """All that a collection says, so that two can be compared."""
    return collection.report, list(collection.problems()), [
        (sorted(collection.accepted_digests(name)), collection.raw_values(name)) for name in collection.problem_ids
    ]  # fmt: skip


def check_sums(report):
    """Every row, measurement and problem is counted once, under a reason that is explained."""
    assert sum(report["submissions"].values()) == report["num_rows"]
    assert report["submissions"].keys() <= SUBMISSION_OUTCOMES.keys()
    assert sum(report["problems"].values()) == report["num_listed"] + report["num_unlisted"]
    assert report["problems"].keys() <= PROBLEM_OUTCOMES.keys()
    for dimension, counts in report["measurements"].items():
        legal = SMELL_OUTCOMES if dimension == "maintainability" else MEASUREMENT_OUTCOMES
        assert counts.keys() <= legal.keys()
        assert sum(counts.values()) == report["submissions"].get("kept", 0)
    assert json.loads(json.dumps(report)) == report


def test_every_outcome_has_its_sentence():
    for outcomes in (SUBMISSION_OUTCOMES, MEASUREMENT_OUTCOMES, SMELL_OUTCOMES, PROBLEM_OUTCOMES):
        for name, sentence in outcomes.items():
            assert name.isidentifier()
            assert sentence[0].isupper() and sentence.endswith(".")


@pytest.mark.parametrize("step", [pytest.param(1, marks=pytest.mark.slow), 10])
@pytest.mark.filterwarnings("ignore::SyntaxWarning", "ignore::DeprecationWarning")
def test_the_real_cut_of_codenet(step, codenet_mini, tmp_path):
    """Against an independent reading with the csv module and the compiler."""
    root = codenet_mini
    if step > 1:  # part of the problems, for speed
        root = tmp_path / "codenet"
        (root / "metadata").mkdir(parents=True)
        for name in ("data", "problem_descriptions"):
            (root / name).symlink_to(codenet_mini / name)
        for table in sorted((codenet_mini / "metadata").glob("p0*.csv"))[::step]:
            shutil.copy(table, root / "metadata")
    collection = collect(root, tmp_path / "work", smells=None)
    report = collection.report
    check_sums(report)
    rows, compiles = {}, Counter()
    for table in sorted((root / "metadata").glob("p0*.csv")):
        for row in csv.DictReader(table.open(encoding="utf-8", newline="")):
            rows[row["problem_id"], row["submission_id"]] = row
    assert report["num_rows"] == len(rows)
    for (problem_id, submission_id), row in rows.items():
        text = (root / "data" / problem_id / "Python" / f"{submission_id}.py").read_text(encoding="utf-8-sig")
        try:
            compile(text, "", "exec", dont_inherit=True)
        except SyntaxError:
            compiles["no"] += problem_id in collection.problem_ids
            continue
        compiles["yes"] += problem_id in collection.problem_ids
        row["text"] = text
    assert report["submissions"]["kept"] == compiles["yes"]
    assert report["submissions"].get("does_not_compile", 0) == compiles["no"]
    # Pages in Japanese.
    assert {"p00134", "p00144", "p00447", "p00542"}.isdisjoint(collection.problem_ids)
    assert len(collection.problem_ids) > 115 / step
    assert list(collection.problem_ids) == sorted(collection.problem_ids)
    for problem in collection.problems():
        assert len(problem.statement) > 100
        assert [p.submission_id for p in problem.programs] == sorted(p.submission_id for p in problem.programs)
        for program in problem.programs:
            row = rows[program.problem_id, program.submission_id]
            assert program.values == {"speed": float(row["cpu_time"]), "memory": float(row["memory"])}
            assert collection.text(program) == row["text"]


NOT_KEPT = {
    "other_language": {"language": "C++"},
    "not_accepted": {"status": "Wrong Answer"},
    "status_misspelled": {"status": " Accepted"},
    "missing_file": {"source": None},
    "not_utf8": {"source": b"print('\xe9')\n"},
    "does_not_compile": {"source": "print 'Python 2'\n"},
    "empty_file": {"source": b"\xef\xbb\xbf \n"},
    "too_large": {"source": "x = 1\n" * 100_000},
}


@pytest.mark.parametrize(("outcome", "fields"), NOT_KEPT.items())
def test_rows_that_are_not_kept(outcome, fields, codenet_maker, tmp_path):
    collection = collect(codenet_maker.add("s1").add("s2", **fields).write(), tmp_path / "work", smells=None)
    check_sums(collection.report)
    assert collection.report["submissions"] == {"kept": 1, outcome: 1}
    assert collection.report["examples"] == {outcome: ["s2"]}
    assert [program.submission_id for program in collection.problem("p00001").programs] == ["s1"]


@pytest.mark.parametrize("status", ["accepted", "ACCEPTED", "Accepted ", " accepted\t"])
def test_statuses_that_only_read_like_accepted(status, codenet_maker, tmp_path):
    codenet_maker.add("s1", status=status, source="print('mine')\n").add("s2")
    collection = collect(codenet_maker.write(), tmp_path / "work", smells=None)
    assert collection.report["submissions"] == {"kept": 1, "status_misspelled": 1}
    assert digest_of("print('mine')\n") in collection.accepted_digests("p00001")  # it may be a solution all the same


@pytest.mark.parametrize("language", ["python", "Python ", "Python3", "PyPy", ""])
def test_languages_that_are_not_exactly_python(language, codenet_maker, tmp_path):
    collection = collect(codenet_maker.add("s1", language=language).write(), tmp_path / "work", smells=None)
    assert collection.report["submissions"] == {"other_language": 1}
    assert collection.report["problems"] == {"no_program_kept": 1}
    assert collection.problem_ids == ()
    assert list(collection.problems()) == []


def test_unreadable_and_hostile_ids(codenet_maker, tmp_path):
    (tmp_path / "secret.py").write_text("print('secret')\n")
    codenet_maker.add("s1")
    hostile_ids = ["../../../../secret", "/etc/passwd", "..", "s1/../s1", "", "s\x1b[2J" + "x" * 999]
    for number, hostile in enumerate(hostile_ids):
        codenet_maker.add(hostile, source=None, cpu_time=number)
    codenet_maker.add("link", source=None).add("fifo", source=None).add("s9", source=None)
    root = codenet_maker.write()
    codenet_maker.program("p00001", "link").symlink_to(tmp_path / "secret.py")
    os.mkfifo(codenet_maker.program("p00001", "fifo"))
    codenet_maker.program("p00001", "s9").mkdir()
    collection = collect(root, tmp_path / "work", smells=None)
    check_sums(collection.report)
    assert collection.report["submissions"] == {"kept": 1, "unsafe_id": 6, "unreadable_file": 2, "unsafe_path": 1}
    assert all(len(example) <= 100 for example in collection.report["examples"]["unsafe_id"])
    assert digest_of("print('secret')\n") not in collection.accepted_digests("p00001")
    assert not [path for path in (tmp_path / "work").rglob("*") if "secret" in path.name]


@pytest.mark.skipif(os.geteuid() == 0, reason="an administrator may read every file")
def test_a_file_without_permission(codenet_maker, tmp_path):
    root = codenet_maker.add("s1").write()
    codenet_maker.program("p00001", "s1").chmod(0)
    assert collect(root, tmp_path / "work", smells=None).report["submissions"] == {"unreadable_file": 1}
    for folder in ("data/p00001", "problem_descriptions"):
        (root / folder).chmod(0)
        try:
            check_sums(collect(root, tmp_path / "work", smells=None).report)
        finally:
            (root / folder).chmod(0o755)


def test_duplicate_ids(codenet_maker, tmp_path):
    codenet_maker.add("s1", source="print('one')\n")
    codenet_maker.add("twice").add("twice", source=None).add("twice", source=None)
    codenet_maker.add("conflict", cpu_time=10, source="print('conflict')\n").add("conflict", cpu_time=90, source=None)
    codenet_maker.add("conflict", cpu_time=10, source=None)
    codenet_maker.add("refused", status="Wrong Answer").add("refused", user_id="u2", source=None)
    collection = collect(codenet_maker.write(), tmp_path / "work", smells=None)
    check_sums(collection.report)
    assert collection.report["submissions"] == {"kept": 2, "duplicate_id": 2, "conflicting_id": 5}
    assert [program.submission_id for program in collection.problem("p00001").programs] == ["s1", "twice"]
    assert digest_of("print('conflict')\n") in collection.accepted_digests("p00001")
    for seed in range(5):
        again = collect(codenet_maker.write(seed), tmp_path / "work", smells=None)
        assert everything(again) == everything(collection)


def test_an_id_of_two_problems_names_neither(codenet_maker, tmp_path):
    codenet_maker.add("s1", "p00001", source="print('a')\n").add("s2", "p00001")
    codenet_maker.add("s1", "p00002").add("s3", "p00003")
    codenet_maker.add("s2", "p00003", status="Wrong Answer")  # not kept there, so the other is no double
    collection = collect(codenet_maker.write(), tmp_path / "work", smells=LineEngine())
    check_sums(collection.report)
    assert collection.report["submissions"] == {"kept": 2, "not_accepted": 1, "id_in_other_problem": 2}
    assert collection.report["problems"] == {"kept": 2, "no_program_kept": 1}
    assert collection.report["examples"]["id_in_other_problem"] == ["s1", "s1"]
    assert collection.problem_ids == ("p00001", "p00003")
    assert [program.submission_id for program in collection.problem("p00001").programs] == ["s2"]
    assert list(collection.raw_values("p00001")) == ["s2"]
    assert digest_of("print('a')\n") in collection.accepted_digests("p00001")


def test_a_row_of_another_problem(codenet_maker, tmp_path):
    codenet_maker.add("s1").add("s2")
    codenet_maker.rows[1]["problem_id"] = "p00002"
    collection = collect(codenet_maker.write(), tmp_path / "work", smells=None)
    assert collection.report["submissions"] == {"kept": 1, "other_problem": 1}


@pytest.mark.parametrize(
    ("field", "worth"),
    [
        ("20", "used"), ("2.5", "used"), ("1e3", "used"), (" 7 ", "used"), ("+7", "used"), (".5", "used"),
        ("0", "zero"), ("0.0", "zero"), ("-0", "zero"), ("", "blank"), ("  ", "blank"), ("-1", "negative"),
        ("nan", "not_a_number"), ("inf", "not_a_number"), ("-inf", "not_a_number"), ("NaN", "not_a_number"),
        ("1e999", "not_a_number"), ("9" * 5000, "not_a_number"), ("1_000", "not_a_number"), ("0x10", "not_a_number"),
        ("20 ms", "not_a_number"), ("１２", "not_a_number"), ("None", "not_a_number"), ("1,5", "not_a_number"),
        (".", "not_a_number"), ("--1", "not_a_number"),
    ],
)  # fmt: skip
def test_what_a_measurement_is_worth(field, worth):
    value = read_measurement(field)
    assert worth_of(value) == worth
    if worth in ("used", "zero", "negative"):
        assert value == float(field)


def test_measurements_are_counted_by_reason(codenet_maker, tmp_path):
    for number, field in enumerate(["20", "0", "", "-5", "nan", "inf", "abc", "30.5"]):
        codenet_maker.add(f"s{number}", cpu_time=field, memory=field)
    root = codenet_maker.write()
    collection = collect(root, tmp_path / "work", smells=None)
    check_sums(collection.report)
    counts = {"used": 2, "zero": 1, "blank": 1, "negative": 1, "not_a_number": 3}
    none = {"no_engine": 8}
    assert collection.report["measurements"] == {"speed": counts, "memory": counts, "maintainability": none}
    values = {program.submission_id: program.values for program in collection.problem("p00001").programs}
    assert {name: value for name, value in values.items() if value} == {
        "s0": {"speed": 20.0, "memory": 20.0},
        "s7": {"speed": 30.5, "memory": 30.5},
    }
    raw = collection.raw_values("p00001")
    assert [raw[f"s{number}"].cpu_time for number in range(8)] == [20.0, 0.0, None, -5.0, None, None, None, 30.5]

    kept = collect(root, tmp_path / "work", smells=None, keep_zero=True)
    check_sums(kept.report)
    assert kept.report["measurements"]["speed"] == {"used": 3, "blank": 1, "negative": 1, "not_a_number": 3}
    assert kept.problem("p00001").programs[1].values == {"speed": 0.0, "memory": 0.0}


def test_statements(codenet_maker, tmp_path):
    pages = {
        "p00002": None,
        "p00003": "",
        "p00004": "<html><body><p> &nbsp; </p></body></html>",
        "p00005": "<h1>数の和</h1><p>整数の列が与えられる。これらの和を出力するプログラムを作成せよ。</p>",
        "p00006": b"\0\0binary\0",
    }
    codenet_maker.add("s1").add("s2", language="C").add("s3", source="print 1\n")
    for problem_id, page in pages.items():
        codenet_maker.add(f"t{problem_id}", problem_id).add(f"u{problem_id}", problem_id, language="Java")
        codenet_maker.statements[problem_id] = page
    collection = collect(codenet_maker.write(), tmp_path / "work", smells=None)
    check_sums(collection.report)
    assert collection.problem_ids == ("p00001",)
    statements = {"statement_missing": 1, "statement_unreadable": 1, "statement_empty": 2, "statement_not_english": 1}
    assert collection.report["problems"] == {"kept": 1} | statements
    assert collection.report["submissions"] == {"kept": 1, "other_language": 6, "does_not_compile": 1} | statements
    assert collection.report["problem_examples"]["statement_empty"] == ["p00003", "p00004"]
    assert collection.problem("p00001").statement.startswith("Sum of numbers")
    assert b"<h1>Sum" in collection.description("p00001")
    with pytest.raises(QualcodeError, match="p00002 is not among the 1 problems"):
        collection.problem("p00002")


def test_problems_without_table_and_tables_without_entry(codenet_maker, tmp_path):
    codenet_maker.add("s1", "p00001").add("s2", "p00002").add("s3", "p00003")
    codenet_maker.listed = ["p00001", "p00001", "p00009", "../p", "p00003"]
    root = codenet_maker.write()
    codenet_maker.table("p00003", b"nothing,useful\n1,2\n3,4\n")
    codenet_maker.table("p00004", b"")
    codenet_maker.table("not safe", b"submission_id,language,status\ns1,Python,Accepted\n")
    (root / "metadata" / "p00005.csv").symlink_to("/etc/passwd")
    (root / "metadata" / "p00006.csv").mkdir()
    with (root / "metadata" / "problem_list.csv").open("a") as file:
        file.write('p00008,"open\n')
    collection = collect(root, tmp_path / "work", smells=None)
    report = collection.report
    check_sums(report)
    assert collection.problem_ids == ("p00001", "p00002")
    assert (report["num_listed"], report["num_unlisted"]) == (6, 5)
    assert report["problems"] == {
        "kept": 2, "metadata_missing": 1, "metadata_unreadable": 3, "malformed_row": 1, "duplicate_id": 1,
        "unsafe_id": 2, "unsafe_path": 1,
    }  # fmt: skip
    assert report["submissions"] == {"kept": 2, "malformed_row": 2}


def test_no_list_is_no_fault(codenet_maker, tmp_path):
    root = codenet_maker.add("s1").write()
    (root / "metadata" / "problem_list.csv").unlink()
    report = collect(root, tmp_path / "work", smells=None).report
    check_sums(report)
    assert (report["num_listed"], report["num_unlisted"], report["problems"]) == (0, 1, {"kept": 1})


@pytest.mark.parametrize(
    ("table", "submissions", "worths"),
    [
        ("\ufeffsubmission_id,problem_id,language,status,cpu_time,memory\r\ns1,p00001,Python,Accepted,1,2\r\n",
         {"kept": 1}, ("used", "used")),
        ("memory,status,language,submission_id\n7,Accepted,Python,s1\n", {"kept": 1}, ("blank", "used")),
        ('submission_id,language,status\ns1,Python,Accepted\ns2,"Python,Accepted\n', {"kept": 1, "malformed_row": 1},
         ("blank", "blank")),
        ('submission_id,language,status,x\n"s1","Python","Accepted","a,b"\ns2,"Py\nthon",Accepted,\n',
         {"kept": 1, "malformed_row": 2}, ("blank", "blank")),
    ],
)  # fmt: skip
def test_odd_tables(table, submissions, worths, codenet_maker, tmp_path):
    root = codenet_maker.add("s1").add("s2").write()
    codenet_maker.table("p00001", table)
    report = collect(root, tmp_path / "work", smells=None).report
    check_sums(report)
    assert report["submissions"] == submissions
    assert [list(report["measurements"][name]) for name in ("speed", "memory")] == [[worth] for worth in worths]


HOSTILE = {
    "one_line": "x = [" + "1," * 20_000 + "]\n",
    "brackets": "(" * 50_000,
    "minus": "x = " + "-" * 100_000 + "1\n",
    "attributes": "x" + ".a" * 100_000,
    "sum": "x = 1" + "+1" * 100_000,
    "power": "x = " + "2**" * 60_000 + "2",
    "nots": "x = " + "not " * 60_000 + "x",
    "lambdas": "x = " + "lambda:" * 30_000 + "0",
    "calls": "f" + "()" * 100_000,
    "elifs": "if x: pass\n" + "elif x: pass\n" * 15_000,
    "blocks": "".join(" " * depth + "if x:\n" for depth in range(500)),
    "braces": "x = f'" + "{" * 10_000 + "'",
    "null": "x = 1\0\n",
    "surrogate": b"x = '\xed\xa0\x80'\n",
    "escape": "x = '\\N{no such character}'\n",
    "digits": "x = " + "9" * 100_000,
    "warns": "x = '\\d'\nif x is 'a': pass\n",
    "repeat": "x = 'a' * (1 << 40)\ny = 2 ** (1 << 40)\n",  # not folded
}


def test_hostile_sources_end_as_outcomes(codenet_maker, tmp_path, capfd):
    for name, source in HOSTILE.items():
        codenet_maker.add(name, source=source)
    collection = collect(codenet_maker.add("s1").write(), tmp_path / "work", smells=None)
    report = collection.report
    check_sums(report)
    assert report["num_rows"] == len(HOSTILE) + 1
    assert report["submissions"].keys() <= {"kept", "does_not_compile", "not_utf8", "too_large"}
    kept = {program.submission_id for program in collection.problem("p00001").programs}
    assert {"s1", "one_line", "warns"} <= kept
    assert kept.isdisjoint({"brackets", "null", "surrogate", "escape", "blocks"})
    assert capfd.readouterr().err == ""  # the compiler's warnings about strangers' code are nobody's business


def test_hostile_pages_end_as_outcomes(codenet_maker, tmp_path):
    for number, page in enumerate(["<div>" * 5_000, "<" * 9_000, "&#" * 9_000, "<!--" * 9_000, b"\xff\xfe<p>"]):
        codenet_maker.add(f"s{number}", f"p{number}").statements[f"p{number}"] = page
    check_sums(collect(codenet_maker.write(), tmp_path / "work", smells=None).report)


def odd_codenet(maker, num_problems=6):
    """A folder with a little of everything."""
    for problem in range(num_problems):
        problem_id = f"p{problem:05}"
        for number in range(5 + 3 * problem):
            smells = "# smell\n" * (number % 3)
            source = f"{smells}print({problem}, {number // 2})\n" if number % 4 else f"print {number}\n"
            measured = {"cpu_time": 10 * (number % 5), "memory": 100 + number}
            maker.add(f"s{problem}{number:03}", problem_id, source=source, **measured)
        maker.add(f"s{problem}900", problem_id, source="# unreadable\n", status="Accepted")
        maker.add(f"s{problem}901", problem_id, source=None).add(f"s{problem}902", problem_id, language="Go")
        maker.add(f"s{problem}001", problem_id, user_id="u9", source=None)
    return maker


def test_the_order_of_the_input_does_not_matter(codenet_maker, tmp_path):
    odd_codenet(codenet_maker)
    first = everything(collect(codenet_maker.write(), tmp_path / "work", smells=LineEngine()))
    check_sums(first[0])
    for seed in range(3):
        codenet_maker.root = tmp_path / f"codenet{seed}"
        other = collect(codenet_maker.write(seed), tmp_path / f"work{seed}", smells=LineEngine())
        assert everything(other) == first


def test_smells_are_counted_and_no_answer_is_no_label(codenet_maker, tmp_path):
    codenet_maker.add("s1", source="x = 1  # smell\ny = 2  # smell\n").add("s2", source="x = 1\n")
    codenet_maker.add("s3", source="# unreadable\n").add("s4", source="print 1  # smell\n")
    collection = collect(codenet_maker.write(), tmp_path / "work", smells=LineEngine())
    check_sums(collection.report)
    assert collection.report["measurements"]["maintainability"] == {"used": 2, "unlabelled": 1}
    assert (collection.smell_engine, collection.smell_version) == ("lines", "1")
    programs = collection.problem("p00001").programs
    found = {p.submission_id: (p.smell_rules, p.values.get("maintainability")) for p in programs}
    assert found == {"s1": (("T1", "T1"), 2.0), "s2": ((), 0.0), "s3": (None, None)}


def test_an_engine_that_loses_programs_is_an_error(codenet_maker, tmp_path):
    class Losing(LineEngine):
        def analyse(self, texts, progress=None):
            return []

    with pytest.raises(QualcodeError, match="lines gave 0 results for 1 programs"):
        collect(codenet_maker.add("s1").write(), tmp_path / "work", smells=Losing())


def test_programs_go_to_the_engine_in_batches(codenet_maker, tmp_path):
    for number in range(200):
        codenet_maker.add(f"s{number}")
    engine = LineEngine()
    collect(codenet_maker.write(), tmp_path / "work", smells=engine)
    assert 3 <= engine.num_calls <= 5


def written(work):
    return {path.name: path.stat().st_mtime_ns for path in (work / "problems").iterdir()}


def test_what_is_done_is_not_done_again(codenet_maker, tmp_path):
    root, work = odd_codenet(codenet_maker).write(), tmp_path / "work"
    engine = LineEngine()
    first = everything(collect(root, work, smells=engine))
    files, num_calls = written(work), engine.num_calls
    assert everything(collect(root, work, smells=engine)) == first
    assert (written(work), engine.num_calls) == (files, num_calls)

    codenet_maker.program("p00002", "s2001").write_text("print('changed, and longer')\n")
    collection = collect(root, work, smells=engine)
    changed = {name for name, time in written(work).items() if time != files[name]}
    assert changed == {"p00002.json", "p00002.jsonl"}
    assert digest_of("print('changed, and longer')\n") in collection.accepted_digests("p00002")

    engine.version = "2"
    assert collect(root, work, smells=engine).smell_version == "2"
    assert engine.num_calls == 2 * num_calls + 1
    assert "maintainability" not in next(collect(root, work, smells=None).problems()).programs[0].values


@pytest.mark.parametrize("damage", ["delete", "truncate"])
def test_damaged_work_is_done_again(damage, codenet_maker, tmp_path):
    root, work = odd_codenet(codenet_maker).write(), tmp_path / "work"
    first = everything(collect(root, work, smells=None))
    if damage == "delete":
        (work / "problems" / "p00001.jsonl").unlink()
    else:
        (work / "problems" / "p00001.json").write_text('{"key": "')
    assert everything(collect(root, work, smells=None)) == first


def test_an_interrupted_run_goes_on(codenet_maker, tmp_path):
    root, work = odd_codenet(codenet_maker).write(), tmp_path / "work"

    def interrupt(stage, done, total):
        assert total == 6
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        collect(root, work, smells=LineEngine(), progress=interrupt)
    files = written(work)
    assert len([name for name in files if name.endswith(".json")]) == 3
    (work / "problems" / "p00004.jsonl.tmp").write_text("half a li")  # as a run that was killed leaves it
    seen = []
    collection = collect(root, work, smells=LineEngine(), progress=lambda *args: seen.append(args))
    assert [done for _, done, _ in seen] == [1, 2, 3, 4, 5, 6]
    assert files.items() <= written(work).items()
    assert everything(collection) == everything(collect(root, tmp_path / "other", smells=LineEngine()))


ENGINES = """
    import os, signal, time
    from pathlib import Path

    class Engine:
        name, version, is_proxy, description = "lines", "1", True, "for tests"

        def __enter__(self):
            self.started = True
            return self

        def __exit__(self, *_):
            Path(os.environ["CLOSED"]).touch()

        def analyse(self, texts, progress=None):
            assert self.started
            return [None if "unreadable" in text else ("T1",) * text.count("# smell") for text in texts]

    class Dying(Engine):
        def analyse(self, texts, progress=None):
            if any("print(3, " in text for text in texts):
                os.kill(os.getpid(), signal.SIGKILL)
            return super().analyse(texts)

    class Failing(Engine):
        def analyse(self, texts, progress=None):
            from hf_qualcode.types import QualcodeError
            raise QualcodeError("the engine has no Java")

    class Slow(Engine):
        def analyse(self, texts, progress=None):
            time.sleep(60)
"""


@pytest.fixture
def engines(tmp_path, monkeypatch):
    """A module of engines that other processes can import too."""
    folder = tmp_path / "modules"
    folder.mkdir()
    (folder / "engines_of_a_test.py").write_text(textwrap.dedent(ENGINES))
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setenv("CLOSED", str(tmp_path / "closed"))
    monkeypatch.delitem(sys.modules, "engines_of_a_test", raising=False)
    import engines_of_a_test

    return engines_of_a_test


def test_the_number_of_processes_does_not_matter(codenet_maker, tmp_path, engines):
    root = odd_codenet(codenet_maker).write()
    seen = []
    several = collect(
        root, tmp_path / "work3", smells=engines.Engine(), num_proc=3, progress=lambda *args: seen.append(args)
    )
    one = collect(root, tmp_path / "work1", smells=engines.Engine().__enter__())
    assert everything(several) == everything(one)
    assert [done for _, done, _ in seen] == [1, 2, 3, 4, 5, 6]
    assert (tmp_path / "closed").exists()  # every process stops its engine
    for path in (tmp_path / "work1" / "problems").glob("*.jsonl"):
        assert path.read_bytes() == (tmp_path / "work3" / "problems" / path.name).read_bytes()


def test_a_worker_that_dies_is_an_error_and_the_rest_is_kept(codenet_maker, tmp_path, engines):
    root, work = odd_codenet(codenet_maker).write(), tmp_path / "work"
    with pytest.raises(QualcodeError, match=r"SIGKILL while it worked on p00003 \(out of memory\?\)") as caught:
        collect(root, work, smells=engines.Dying(), num_proc=2)
    assert "\n" not in str(caught.value)
    files = written(work)
    collection = collect(root, work, smells=engines.Engine().__enter__())
    assert {name: time for name, time in files.items() if name.endswith(".json")}.items() <= written(work).items()
    assert everything(collection) == everything(collect(root, tmp_path / "other", smells=LineEngine()))


def test_an_error_in_a_worker_is_the_error_of_the_run(codenet_maker, tmp_path, engines):
    root = odd_codenet(codenet_maker).write()
    with pytest.raises(QualcodeError, match="^the engine has no Java$"):
        collect(root, tmp_path / "work", smells=engines.Failing(), num_proc=2)


def processes_that_say(word):
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if word in (folder / "environ").read_bytes().decode(errors="replace"):
                found.append(int(folder.name))
        except OSError:
            continue
    return found


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc to see the processes")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_no_process_outlives_a_run_that_is_stopped(how, codenet_maker, tmp_path, engines):
    root = odd_codenet(codenet_maker).write()
    source = Path(engines.__file__).read_text().replace("time.sleep(60)", "os.write(1, b'busy'); time.sleep(1.5)")
    Path(engines.__file__).write_text(source)
    script = tmp_path / "script.py"
    script.write_text(
        "import sys\nfrom pathlib import Path\nimport engines_of_a_test\n"
        "from hf_qualcode.benchmark.collecting import collect\n"
        "if __name__ == '__main__':\n"
        f"    codenet, work = Path({str(root)!r}), Path({str(tmp_path / 'work')!r})\n"
        "    collect(codenet, work, smells=engines_of_a_test.Slow(), num_proc=2)\n"
    )
    path = os.pathsep.join([str(Path(engines.__file__).parent), str(Path.cwd()), os.environ.get("PYTHONPATH", "")])
    process = subprocess.Popen(
        [sys.executable, str(script)], env=os.environ | {"PYTHONPATH": path}, text=True, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout.read(4) == "busy"
    process.send_signal(how)
    process.communicate(timeout=60)  # both pipes end: no process holds them any more
    assert process.returncode not in (0, None)
    assert not [pid for pid in processes_that_say(f"CLOSED={tmp_path / 'closed'}") if pid != os.getpid()]


def test_two_runs_do_not_share_a_folder(codenet_maker, tmp_path):
    root, work = codenet_maker.add("s1").write(), tmp_path / "work"

    def another(*_):
        with pytest.raises(QualcodeError, match="another run is collecting into"):
            collect(root, work, smells=None)

    collect(root, work, smells=None, progress=another)
    collect(root, work, smells=None)


def test_a_folder_that_cannot_be_written(codenet_maker, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(QualcodeError, match="cannot be written"):
        collect(codenet_maker.add("s1").write(), tmp_path / "file", smells=None)


def test_texts_are_those_that_were_collected(codenet_maker, tmp_path):
    codenet_maker.add("s1", source=b"\xef\xbb\xbfprint(1)\r\nprint(2)\r\n").add("s2").add("s3")
    collection = collect(codenet_maker.write(), tmp_path / "work", smells=None)
    programs = collection.problem("p00001").programs
    assert collection.text(programs[0]) == "print(1)\nprint(2)\n"
    assert digest_of(collection.text(programs[1])) == programs[1].text_digest
    codenet_maker.program("p00001", "s1").write_text("print(1)\nprint(2)\n")  # the same text in other bytes
    assert collection.text(programs[0]) == "print(1)\nprint(2)\n"
    codenet_maker.program("p00001", "s2").write_text("print('another')\n")
    codenet_maker.program("p00001", "s3").unlink()
    with pytest.raises(QualcodeError, match="s2 of p00001 changed since"):
        collection.text(programs[1])
    with pytest.raises(QualcodeError, match="s3 of p00001 cannot be read any more"):
        collection.text(programs[2])


def test_equal_texts_and_equal_programs(codenet_maker, tmp_path):
    codenet_maker.add("s1", source="x = 1\nprint(x)\n").add("s2", source="x = 1\r\nprint(x)\r\n")
    codenet_maker.add("s3", source="y = 1  # one\nprint( y )\n").add("s4", source="x = 2\nprint(x)\n")
    collection = collect(codenet_maker.write(), tmp_path / "work", smells=None)
    one, two, three, four = collection.problem("p00001").programs
    assert one.text_digest == two.text_digest != three.text_digest
    assert one.fingerprint == two.fingerprint == three.fingerprint != four.fingerprint
    assert collection.accepted_digests("p00001") == {one.text_digest, three.text_digest, four.text_digest}


def test_programs_that_do_not_compile_are_solutions_too(codenet_maker, tmp_path):
    codenet_maker.add("s1").add("s2", source="print 'two'\n").add("s3", source="print('no')\n", status="Wrong Answer")
    digests = collect(codenet_maker.write(), tmp_path / "work", smells=None).accepted_digests("p00001")
    assert digests == {digest_of("print(0)\n"), digest_of("print 'two'\n")}


def test_remeasured_values_take_the_place_of_the_judges(codenet_maker, tmp_path):
    codenet_maker.add("s1", cpu_time=10, memory=100).add("s2", cpu_time=20, memory=200).add("s3", cpu_time=0)
    collection = collect(codenet_maker.write(), tmp_path / "work", smells=LineEngine())
    again = collection.with_values({("p00001", "s1"): {"speed": 5}, ("p00001", "s3"): {"speed": 7, "memory": 9}})
    assert [program.values for program in again.problem("p00001").programs] == [
        {"speed": 5.0, "maintainability": 0.0},
        {"maintainability": 0.0},
        {"speed": 7.0, "memory": 9.0, "maintainability": 0.0},
    ]
    assert again.raw_values("p00001")["s1"] == RawValues(10.0, 100.0)
    only = collection.with_values({("p00001", "s1"): {"speed": 5, "memory": 1}}, dimensions=("speed",))
    assert only.problem("p00001").programs[0].values == {"speed": 5.0, "memory": 100.0, "maintainability": 0.0}
    assert collection.problem("p00001").programs[0].values == {"speed": 10.0, "memory": 100.0, "maintainability": 0.0}


def test_a_collection_can_be_sent_to_another_process(codenet_maker, tmp_path):
    collection = collect(odd_codenet(codenet_maker).write(), tmp_path / "work", smells=None)
    assert everything(pickle.loads(pickle.dumps(collection))) == everything(collection)


def test_one_submission_a_problem(codenet_maker, tmp_path):
    collection = collect(codenet_maker.add("s1").write(), tmp_path / "work", smells=None)
    (problem,) = collection.problems()
    assert [program.submission_id for program in problem.programs] == ["s1"]


def test_no_codenet_folder_is_one_clear_error(tmp_path):
    with pytest.raises(QualcodeError, match="is no Project_CodeNet folder"):
        collect(tmp_path, tmp_path / "work", smells=None)
    assert not (tmp_path / "work").exists()
