"""The proxy: its rules exist, nothing of the user's or of the program's switches them off."""

import pickle
import random
import subprocess

import pytest

from hf_qualcode.quality.smells import load_engine
from hf_qualcode.quality.smells.ruff import RULES, SONAR_RULES, RuffEngine


@pytest.fixture(scope="module")
def engine():
    with load_engine("ruff") as engine:
        yield engine


def test_it_is_a_proxy_and_says_so(engine):
    assert engine.is_proxy
    assert "proxy, not Sonar" in engine.description
    assert engine.version.startswith("0.17.")
    assert pickle.loads(pickle.dumps(engine)).version == engine.version


def test_every_rule_exists_and_is_stable(engine):
    for rule in RULES:
        done = subprocess.run([engine._path, "rule", rule], capture_output=True, text=True, check=True)
        assert f"({rule})" in done.stdout.splitlines()[0]
        assert "unstable and in [preview]" not in done.stdout, rule
        assert "removed" not in done.stdout.splitlines()[2], rule


def test_artefacts_are_not_rules():
    assert not {"W292", "UP034"} & set(RULES)
    assert len(SONAR_RULES) == 42


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        ("", ()),
        ("x = ((1))", ()),  # no line end, double parentheses
        ("def f(a):\n    x = 1\n", ("ARG001", "F841")),
        ("def Big(aB):\n    return aB\n", ("N802", "N803")),
        ("def f():\n    a = 1\n    b = 1\n", ("F841", "F841")),
        ("try:\n    f()\nexcept:\n    pass\n", ("E722", "S110", "SIM105")),
        ("def f(a, b, c, d, e, f, g, h, i, j, k, l, m):\n    print(a, b, c, d, e, f, g, h, i, j, k, l, m)\n", ()),
        ("\ufefffrom os import *\n", ("F403",)),
        ("type X = int\nmatch X:\n    case 1: pass\n", ()),
    ],
)
def test_findings(engine, text, rules):
    assert engine.analyse([text]) == [rules]


@pytest.mark.parametrize("text", ["print 1", "x = (", "\ud800", "x = '\n", "def f():\npass"])
def test_what_does_not_parse_is_not_clean(engine, text):
    assert engine.analyse([text, "x = 1"]) == [None, ()]


@pytest.mark.parametrize(
    "comment",
    ["# noqa", "# noqa: F841", "# ruff: noqa", "# flake8: noqa", "# ruff: disable[F841]", "# ruff: ignore[F841]"],
)
def test_a_comment_silences_nothing(engine, comment):
    for text in (f"{comment}\ndef f():\n    x = 1\n", f"def f():\n    x = 1  {comment}\n"):
        assert "F841" in engine.analyse([text])[0]


def test_no_configuration_of_the_users_is_read(engine, tmp_path, monkeypatch):
    (tmp_path / "ruff.toml").write_text('exclude = ["*"]\n[lint]\nselect = ["D"]\n', encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("RUFF_OUTPUT_FORMAT", "full")
    monkeypatch.setattr("tempfile.tempdir", None)
    assert engine.analyse(["def f():\n    x = 1\n"]) == [("F841",)]


def test_order_and_company_change_nothing(engine):
    texts = [f"def f{n}({'a' * (n % 3)}):\n" + "    x = 1\n" * (n % 5 + 1) for n in range(30)] + ["x = ("]
    alone = [engine.analyse([text])[0] for text in texts[:6]]
    together = engine.analyse(texts)
    assert together[:6] == alone
    order = random.Random(1).sample(range(len(texts)), len(texts))
    assert engine.analyse([texts[index] for index in order]) == [together[index] for index in order]


def test_findings_have_lines_and_messages(engine):
    (findings,) = engine.examine(["def f():\n    left = 1\n"])
    assert findings[0].rule == "F841"
    assert findings[0].line == 2
    assert "left" in findings[0].message


def test_a_program_that_brings_ruff_down_costs_no_other(monkeypatch):
    engine, calls = RuffEngine(), []
    check = engine._check

    def fragile(programs):
        calls.append(len(programs))
        return None if b"boom" in programs else check(programs)

    monkeypatch.setattr(engine, "_check", fragile)
    texts = ["def f():\n    x = 1\n"] * 5 + ["boom"] + ["y = 1"] * 7
    assert engine.analyse(texts) == [("F841",)] * 5 + [None] + [()] * 7
    assert 1 in calls


def test_progress_ends_at_the_number_of_programs(engine):
    seen = []
    engine.analyse(["x = 1"] * 3, progress=lambda *event: seen.append(event))
    assert seen == [("smells (ruff)", 3, 3)]
    assert engine.analyse([]) == []
