"""Sonar's real analyzer. Set HF_QUALCODE_TEST_SONAR to the folder that `hf-qualcode install-sonar` names."""

import multiprocessing
import os
import pickle
import random
import shutil
import threading
from pathlib import Path

import pytest

from hf_qualcode.quality.smells import Finding, _analyzer, engine_names, load_engine
from hf_qualcode.quality.smells._process import RestartingProcess
from hf_qualcode.quality.smells.sonar import SonarEngine
from hf_qualcode.types import QualcodeError, UsageError


# What each line breaks stands beside it. `after` has bugs, which are not smells.
DEMO = """
class badName:  # S101
    def BadMethod(self, unused):  # S100, S1172
        return self

    def empty(self):
        pass


def wide(a, b, c, d, e, f, g, h, i, j, k, l, m, n):  # S107
    return a, b, c, d, e, f, g, h, i, j, k, l, m, n


def deep(rows, seen=[]):  # S3776, S5717
    # TODO: take this apart  (S1135)
    leftover = 1  # S1481
    seen.append(leftover_of(rows))
    for row in rows:
        if row:
            for cell in row:
                if cell:
                    while cell > 1:
                        if cell % 2:
                            cell -= 1
                        elif cell % 3:
                            cell -= 2
                        else:
                            cell //= 2
    return "none" if not rows else "one" if len(rows) == 1 else "many"  # S3358


def careless(value):
    try:
        value()
    except ValueError:
        raise  # S2737
    try:
        value()
    except:  # S5754
        print("nothing")
    if not value == 3:  # S1940
        raise Exception("{} of {}".format("unlucky"))  # S112
    unused = 5
    left = 6  # S1481
    if type(value) == int:  # S6660
        return "a literal that is long"
    return ["a literal that is long", "a literal that is long", "a literal that is long"]  # S1192


def after(value):
    value = value
    return value
    print("never")
"""
DEMO_RULES = {
    "S100", "S101", "S107", "S112", "S1135", "S1172", "S1186", "S1192", "S1481", "S1940", "S2737", "S3358", "S3776",
    "S5717", "S5754", "S6660",
}  # fmt: skip
BUGS = {"S1656", "S1763"}
PROGRAMS = [
    DEMO,
    "",
    "x = 1\n",
    "def f(a):\n    left = 1\n    if a:\n        if a > 1:\n            print(1)\n",
    "def F():\n    return 1\n",
    "class C:\n    def Get(self):\n        return self\n",
    "import re\nprint(re.match('[a]', input()))\n",
    "import numpy as np\nprint(np.bool(1), np.random.rand(3))\n",
    "def f(x):\n    return not x == 1\n",
    "from os import *\n",
    "x = (",
]


@pytest.fixture(scope="session")
def sonar_folder():
    """Folder with the two jars; the test is skipped where it is not named."""
    folder = os.environ.get("HF_QUALCODE_TEST_SONAR")
    if not folder:
        pytest.skip("run `hf-qualcode install-sonar` and set HF_QUALCODE_TEST_SONAR to the folder it names")
    return Path(folder)


@pytest.fixture(scope="module")
def engine(sonar_folder):
    with SonarEngine(sonar_folder) as engine:
        yield engine


def test_rules_are_the_smells_of_sonar_way(engine):
    assert len(engine.rules) == 121
    assert {"python:S1192", "python:S3776", "python:S1481"} <= set(engine.rules)
    assert not {f"python:{key}" for key in BUGS} & set(engine.rules)
    # Off in the profile.
    assert not {"python:S1142", "python:S134", "python:S1720", "python:LineLength"} & set(engine.rules)
    assert (engine.name, engine.version, engine.is_proxy) == ("sonar", "4.19.0.15616", False)


def test_demo_file(engine):
    (findings,) = engine.examine([DEMO])
    rules = {finding.rule.removeprefix("python:") for finding in findings}
    assert rules == DEMO_RULES
    lines = DEMO.split("\n")
    for finding in findings:
        # The first keeps no line for itself; the second is silenced by any comment in the function.
        if finding.rule not in ("python:S1192", "python:S1186"):
            assert finding.rule.removeprefix("python:") in lines[finding.line - 1]
    literal = next(finding for finding in findings if finding.rule == "python:S1192")
    assert literal.message == 'Define a constant instead of duplicating this literal "a literal that is long" 4 times.'


def test_findings_are_hand_counted(engine):
    assert engine.examine(["def f():\n    left = 1\n"]) == [
        (Finding("python:S1481", 2, 'Remove the unused local variable "left".'),)
    ]
    clean = ["", "x = 1", "\ufeffx = 1\r\n", "print('ü')"]
    two = "def f():\n    left = 1\n    right = 2\n"
    assert engine.analyse([*clean, two]) == [(), (), (), (), ("python:S1481", "python:S1481")]


@pytest.mark.parametrize("text", ["x = (", "def f(:\n", "x = '\n", "if True:\nx = 1\n", "\ud800"])
def test_what_does_not_parse_is_not_clean(engine, text):
    assert engine.analyse([text, "x = 1"]) == [None, ()]


def test_no_comment_silences_a_rule(engine):
    for comment in ("# NOSONAR", "# noqa"):
        assert engine.analyse([f"def f():\n    left = 1  {comment}\n"]) == [("python:S1481",)]


def test_order_and_company_change_nothing(engine):
    together = engine.analyse(PROGRAMS)
    for seed in range(2):
        order = random.Random(seed).sample(range(len(PROGRAMS)), len(PROGRAMS))
        assert engine.analyse([PROGRAMS[index] for index in order]) == [together[index] for index in order]
    engine.close()
    assert engine.analyse(PROGRAMS[-2:0:-1]) == together[-2:0:-1]


@pytest.mark.slow
def test_deep_and_long_programs(engine):
    nested = "x = " + "(" * 90 + "1" + ")" * 90
    long_sum = "x = " + " + ".join(["1"] * 3_000)
    unparsed, *parsed = engine.analyse(["x = " + "[" * 200_000, nested, long_sum, "def f():\n    left = 1\n"])
    assert unparsed is None
    assert set(parsed[0]) == {"python:S1110"}
    assert parsed[1:] == [(), ("python:S1481",)]


def test_progress_counts_programs(engine):
    seen = []
    engine.analyse(["x = 1"] * 3, progress=lambda *event: seen.append(event))
    assert seen == [("smells (sonar)", done, 3) for done in (1, 2, 3)]


def in_a_process(engine, texts, results):
    with engine:
        results.put(engine.analyse(texts))


def test_copies_for_other_processes(engine):
    expected = engine.analyse(PROGRAMS[:3])
    with pickle.loads(pickle.dumps(engine)) as copy:
        assert copy.analyse(PROGRAMS[:3]) == expected
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    child = context.Process(target=in_a_process, args=(engine, PROGRAMS[:3], results))
    child.start()
    assert results.get(timeout=120) == expected == engine.analyse(PROGRAMS[:3])
    child.join()


@pytest.mark.slow
def test_the_main_is_compiled_once_even_by_two_at_once(sonar_folder, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_QUALCODE_CACHE", str(tmp_path))
    jars, java, folders = _analyzer.require_jars(sonar_folder), _analyzer.find_java(), []
    threads = [threading.Thread(target=lambda: folders.append(_analyzer.compiled_main(jars, java))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(folders)) == 1
    assert [path.name for path in (tmp_path / "sonar").iterdir()] == [folders[0].name]
    # A second time needs no compiler.
    assert _analyzer.compiled_main(jars, java._replace(javac=None)) == folders[0]
    shutil.rmtree(folders[0])
    with pytest.raises(QualcodeError, match="without the compiler javac"):
        _analyzer.compiled_main(jars, java._replace(javac=None))


def test_java_that_dies_at_the_start_is_one_line(engine):
    lost = RestartingProcess(lambda: [engine._java.java, "-cp", ".", "NoSuchClass"], lambda: engine._classes, 30)
    with pytest.raises(QualcodeError, match="NoSuchClass"):
        lost.ask(b"x = 1")


def test_without_the_jars_it_names_the_command(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_QUALCODE_CACHE", str(tmp_path))
    with pytest.raises(QualcodeError, match="is missing in .*run `hf-qualcode install-sonar`"):
        load_engine("sonar")
    folder = tmp_path / "sonar" / "4.19.0.15616"
    folder.mkdir(parents=True)
    (folder / "sonarpython.jar").write_bytes(b"half a jar")
    with pytest.raises(QualcodeError, match="is damaged or another version .*run `hf-qualcode install-sonar`"):
        load_engine("sonar")


def test_engines_are_found_by_name():
    assert engine_names() == ("ruff", "sonar", "sonarqube")
    with pytest.raises(UsageError, match="unknown smell engine 'pylint'; choose one of: ruff, sonar, sonarqube"):
        load_engine("pylint")


@pytest.mark.slow
def test_real_programs_in_any_order(engine):
    data = os.environ.get("HF_QUALCODE_TEST_DATA")
    if not data:
        pytest.skip("set HF_QUALCODE_TEST_DATA to a folder with codenet-mini")
    files = sorted(Path(data, "codenet-mini", "data").glob("*/Python/*.py"))[::5]
    texts = [file.read_text(encoding="utf-8") for file in files]
    together = engine.analyse(texts)
    assert engine.analyse(texts[::-1]) == together[::-1]
    assert any(together)
