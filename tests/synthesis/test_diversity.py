"""Diversity by hand, its sets and intervals, the comparison of two conditions, and the figure."""

import json
import runpy
import sys
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from hf_qualcode.synthesis.codebleu import codebleu
from hf_qualcode.synthesis.diversity import GUIDED, UNGUIDED, load_encoder, measure_diversity
from hf_qualcode.synthesis.diversity_plot import plot_diversity
from hf_qualcode.synthesis.diversity_report import PAPER, diversity_report, diversity_table
from hf_qualcode.types import QualcodeError, UsageError


EXAMPLE = Path(__file__).parents[2] / "examples" / "diversity.py"
SUM = "def total(values):\n    return sum(values)\n"
LOOP = "def total(values):\n    result = 0\n    for value in values:\n        result += value\n    return result\n"
FOLD = "from functools import reduce\n\ntotal = lambda values: reduce(lambda a, b: a + b, values, 0)\n"


@dataclass
class Written:
    task_id: str
    code: str
    dimension: str = "speed"
    level: str = "high"


class Angles:
    """Each program at an angle of its own, in degrees."""

    id = "angles"

    def __init__(self, angles):
        self.angles = angles

    def encode(self, texts):
        turned = np.radians([self.angles[text] for text in texts])
        return np.stack([np.cos(turned), np.sin(turned)], axis=1).astype(np.float32)


ENCODER = Angles({SUM: 0, LOOP: 60, FOLD: 90})


def written(task, *codes, **options):
    return [Written(task, code, **options) for code in codes]


def test_distances_are_means_over_all_pairs():
    (found,) = measure_diversity(written("t", SUM, LOOP, FOLD), ENCODER).sets
    # Angles of 60, 90 and 30 degrees between them.
    assert found.semantic == pytest.approx(1 - np.mean([0.5, 0, np.sqrt(3) / 2]), abs=1e-6)
    pairs = [(a, b) for one, other in combinations((SUM, LOOP, FOLD), 2) for a, b in ((one, other), (other, one))]
    assert found.syntactic == pytest.approx(1 - np.mean([codebleu(a, b).score for a, b in pairs]))
    assert (found.key, found.num_programs) == (("t", "speed", "high"), 3)


def test_copies_are_at_no_distance_and_count():
    (found,) = measure_diversity(written("t", SUM, SUM), ENCODER).sets
    assert found.syntactic == pytest.approx(0) and found.semantic == pytest.approx(0, abs=1e-6)
    (more,) = measure_diversity(written("t", SUM, SUM, LOOP), ENCODER).sets
    assert more.semantic == pytest.approx(0.5 * 2 / 3, abs=1e-6)


def test_sets_are_of_one_task_dimension_and_level():
    programs = [
        *written("a", SUM, LOOP), *written("a", SUM, FOLD, level="low"), *written("a", FOLD, dimension="memory"),
        *written("b", LOOP, FOLD), *written("c", SUM, " \n"),
    ]  # fmt: skip
    found = measure_diversity(programs, ENCODER)
    assert [each.key for each in found.sets] == [
        ("a", "speed", "high"), ("a", "speed", "low"), ("b", "speed", "high"),
    ]  # fmt: skip
    assert found.left_out == {"empty": 1, "alone in its set": 2}
    assert measure_diversity(programs[::-1], ENCODER) == found
    wider = [each.num_programs for each in measure_diversity(programs, ENCODER, within="dimension").sets]
    widest = [each.num_programs for each in measure_diversity(programs, ENCODER, within="task").sets]
    assert (wider, widest) == ([4, 2], [5, 2])
    with pytest.raises(UsageError, match="choose from: level, dimension, task"):
        measure_diversity(programs, ENCODER, within="file")


def test_nothing_to_compare_is_told_of():
    for programs in ([], written("a", SUM), written("a", SUM) + written("b", LOOP)):
        with pytest.raises(QualcodeError, match="no diversity can be measured with guidelines"):
            measure_diversity(programs, ENCODER)


def conditions():
    guided = [program for task in "abcd" for program in written(task, SUM, FOLD)]
    guided += written("a", SUM, LOOP, FOLD, level="low")
    unguided = [program for task in "abcx" for program in written(task, SUM, LOOP if task < "c" else SUM)]
    return measure_diversity(guided, ENCODER), measure_diversity(unguided, ENCODER, name=UNGUIDED)


def test_conditions_side_by_side():
    report = diversity_report(conditions(), num_resamples=500)
    assert json.loads(json.dumps(report)) == report
    guided, unguided = report["conditions"][GUIDED], report["conditions"][UNGUIDED]
    assert (guided["tasks"], guided["sets"], guided["programs"]) == (4, 5, 11)
    mean = (4 * 1 + (1 - np.mean([0.5, 0, np.sqrt(3) / 2]))) / 5
    assert guided["semantic"]["mean"] == pytest.approx(mean, abs=1e-6)
    assert guided["semantic"]["paper"] == PAPER[GUIDED]["semantic"] == 0.120
    assert list(guided["groups"]) == ["speed/high", "speed/low"]
    assert guided["groups"]["speed/high"]["semantic"]["mean"] == pytest.approx(1, abs=1e-6)
    assert unguided["semantic"]["mean"] == pytest.approx(0.25, abs=1e-6)
    assert unguided["semantic"]["low"] < 0.25 < unguided["semantic"]["high"]
    # Over what both have: tasks a, b and c, high.
    difference = report["difference"]
    assert (difference["sets"], difference["tasks"]) == (3, 3)
    assert difference["semantic"]["mean"] == pytest.approx(1 - (0.5 + 0.5 + 0) / 3, abs=1e-6)
    assert diversity_report(conditions(), num_resamples=500) == report


def test_intervals_are_by_task():
    """Twelve sets of one task are one observation, so their interval has no width of its own."""
    one_task = [
        program
        for dimension, level, other in [("speed", "high", LOOP), ("speed", "low", FOLD), ("memory", "low", SUM)]
        for program in written("a", SUM, other, dimension=dimension, level=level)
    ]
    found = measure_diversity(one_task, ENCODER).estimate("semantic")
    assert found.low == found.mean == found.high
    assert found.n == 3


def test_the_table_shows_both_and_the_papers_values():
    report = diversity_report(conditions(), num_resamples=200)
    text = diversity_table(report)
    assert "0.684" in text and "0.120" in text and "0.585" in text and "0.084" in text
    lines = text.splitlines()
    assert [line.split("  ")[0] for line in lines if not line.startswith(" ")][:3] == [GUIDED, UNGUIDED, "difference"]
    assert "of angles; the paper's, of Qwen/Qwen3-Embedding-0.6B, are on another scale" in lines[-1]
    alone = diversity_report(conditions()[:1], num_resamples=200)
    assert "difference" not in alone and "difference" not in diversity_table(alone)


def test_conditions_that_cannot_be_compared_are_refused():
    guided, _ = conditions()
    with pytest.raises(QualcodeError, match="two conditions are called"):
        diversity_report([guided, guided])
    other = Angles(ENCODER.angles)
    other.id = "other"
    with pytest.raises(QualcodeError, match="different encoders"):
        diversity_report([guided, measure_diversity(written("a", SUM, LOOP), other, name=UNGUIDED)])


def test_a_real_encoder_by_its_folder(tiny_bert):
    found = measure_diversity(written("t", SUM, LOOP), load_encoder(str(tiny_bert), device="cpu"))
    assert 0 < found.sets[0].semantic < 2
    assert found.encoder == str(tiny_bert)


@pytest.mark.parametrize("suffix", [".png", ".svg"])
def test_the_figure_is_drawn(tmp_path, suffix):
    pytest.importorskip("matplotlib", reason="the figure needs matplotlib (extra `plot`)")
    path = tmp_path / f"diversity{suffix}"
    plot_diversity(conditions(), path)
    content = path.read_bytes()
    assert content.startswith(b"\x89PNG" if suffix == ".png" else b"<?xml")
    assert len(content) > 5_000


def test_a_figure_that_cannot_be_drawn_is_told_of(tmp_path, monkeypatch):
    with pytest.raises(QualcodeError, match="ends in .png, .svg, .pdf"):
        plot_diversity(conditions(), tmp_path / "diversity.bmp")
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(QualcodeError, match=r"hf-qualcode\[plot\]"):
        plot_diversity(conditions(), tmp_path / "diversity.png")


# ---- The example ----


@pytest.fixture(scope="module")
def example():
    return runpy.run_path(str(EXAMPLE))["main"]


def store(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def test_the_example_compares_two_runs(example, tmp_path, tiny_bert, capsys):
    pytest.importorskip("matplotlib", reason="the figure needs matplotlib (extra `plot`)")
    guided = store(tmp_path / "variants.jsonl", [asdict(each) for each in written("a", SUM, FOLD)])
    answers = [f"Here it is:\n```python\n{code}```\n" for code in (SUM, LOOP)] + [None, "I cannot."]
    key = {"task_id": "a", "dimension": "speed", "level": "high"}
    rows = [{"key": key, "answer": answer, "finish_reason": "stop"} for answer in answers]
    unguided = store(tmp_path / "records.jsonl", rows)
    out = tmp_path / "diversity"
    options = ["--encoder", str(tiny_bert), "--device", "cpu", "--out", str(out)]
    assert example(["--guided", guided, "--unguided", unguided, *options]) == 0
    said = capsys.readouterr()
    report = json.loads(said.out)
    assert [report["conditions"][name]["programs"] for name in (GUIDED, UNGUIDED)] == [2, 2]
    assert report == json.loads((out / "report.json").read_text(encoding="utf-8"))
    assert (out / "diversity.png").read_bytes().startswith(b"\x89PNG")
    assert "difference" in said.err


def test_the_example_says_what_it_cannot_read(example, tmp_path, capsys):
    for content in ('{"code": "x"}\n', "[1]\n", "{\n"):
        (tmp_path / "bad.jsonl").write_text(content, encoding="utf-8")
        assert example(["--guided", str(tmp_path / "bad.jsonl")]) == 1
        assert "line 1 is neither a record nor a variant" in capsys.readouterr().err
    assert example(["--guided", str(tmp_path / "absent.jsonl")]) == 1
    assert len(capsys.readouterr().err.strip().splitlines()) == 1
