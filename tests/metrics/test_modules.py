"""The self-contained `evaluate` modules: numbers equal to the package's, copies equal to their originals, loading by
path and by name, in one process and in later ones, and the files that make each a Space."""

import doctest
import inspect
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pytest

from hf_qualcode import metrics, register_metrics, registration, resampling
from hf_qualcode.types import QualcodeError


ROOT = Path(__file__).parents[2]
NAMES = registration.METRICS
KEYS = ("ties", "tie_rate", "half_credit", "n", "ci_low", "ci_high")
SHARED = "# From here on: what every metric on pairs shares."


@pytest.fixture(autouse=True)
def own_evaluate_cache(monkeypatch, tmp_path):
    """Scores pass through files of `evaluate`; none of another test's, nor the user's. No network."""
    import evaluate.config
    import evaluate.loading

    monkeypatch.setattr(evaluate.config, "HF_MODULES_CACHE", str(tmp_path / "modules"))
    monkeypatch.setattr(evaluate.config, "HF_METRICS_CACHE", tmp_path / "metrics")
    monkeypatch.setattr(evaluate.config, "HF_EVALUATE_OFFLINE", True)
    monkeypatch.setattr(sys, "path", list(sys.path))
    loaded = set(sys.modules)
    yield
    for name in set(sys.modules) - loaded:
        if name.startswith("evaluate_modules"):
            del sys.modules[name]


def load(name):
    import evaluate

    return evaluate.load(str(ROOT / "metrics" / name))


def module_of(name):
    spec = spec_from_file_location(f"tested_{name}", ROOT / "metrics" / name / f"{name}.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def with_key(name, result):
    numbers = {name: result.accuracy, **{key: getattr(result, key) for key in KEYS}}
    groups = {group: with_key(name, part) for group, part in result.by_group.items()}
    return {**numbers, "by_group": groups} if groups else numbers


@pytest.mark.parametrize("name", NAMES)
def test_numbers_are_those_of_the_package_bit_for_bit(name):
    rng = np.random.default_rng(0)
    module = load(name)
    for n, num_problems in ((1, 1), (40, 7), (300, 60), (500, 9)):
        # Scores that differ in float64 alone, and ties.
        positive, negative = 1 + 1e-12 * rng.integers(0, 5, n), 1 + 1e-12 * rng.integers(0, 5, n)
        problems = [f"p{i * i // 40}" for i in rng.integers(0, num_problems, n)]
        groups = rng.choice(["speed", "memory"], n).tolist()
        for extra in ({}, {"problem_ids": problems}, {"problem_ids": problems, "groups": groups, "seed": 3}):
            expected = metrics.quality_preference_accuracy(positive, negative, **extra, num_resamples=500)
            given = module.compute(positive_scores=positive, negative_scores=negative, **extra, num_resamples=500)
            assert given == with_key(name, expected)
            assert json.loads(json.dumps(given)) == given


@pytest.mark.parametrize("name", NAMES)
def test_shared_functions_are_copies_of_the_package_s(name):
    module = module_of(name)
    originals = [getattr(metrics, each) for each in ("check_scores", "check_labels", "preference")]
    originals += [getattr(resampling, each) for each in ("cluster_sums", "percentile_interval", "resampled_means")]
    for original in originals:
        assert inspect.getsource(getattr(module, original.__name__)) == inspect.getsource(original)
    assert module._BLOCK == resampling._BLOCK


def test_the_modules_differ_in_words_and_name_alone():
    qpa, mca = ((ROOT / "metrics" / name / f"{name}.py").read_text(encoding="utf-8") for name in NAMES)
    assert qpa.split(SHARED)[1] == mca.split(SHARED)[1]
    code = [text.split("class ")[1].split(SHARED)[0] for text in (qpa, mca)]
    renamed = code[0].replace("QPA", "MCA").replace("qpa", "mca")
    assert renamed.replace("Quality preference accuracy", "Multi-condition accuracy") == code[1]


@pytest.mark.parametrize("name", NAMES)
def test_examples_of_the_docstring(name, monkeypatch):
    monkeypatch.chdir(ROOT)
    results = doctest.testmod(module_of(name))
    assert results.attempted >= 6
    assert results.failed == 0


@pytest.mark.parametrize("name", NAMES)
def test_scores_may_come_one_by_one_and_in_batches(name):
    module = load(name)
    positive, negative = [3.0, 1.0, 2.0, 2.0, 5.0], [1.0, 3.0, 2.0, 1.0, 6.0]
    labels = {"problem_ids": list("aabbc"), "groups": list("xxyyy")}
    at_once = module.compute(positive_scores=positive, negative_scores=negative, **labels)
    module.add(positive_scores=positive[0], negative_scores=negative[0])
    module.add_batch(positive_scores=np.array(positive[1:3], np.float32), negative_scores=negative[1:3])
    module.add_batch(positive_scores=positive[3:], negative_scores=negative[3:])
    assert module.compute(**labels) == at_once
    assert list(at_once) == [name, *KEYS, "by_group"]


def test_combined_results_carry_the_metric_s_name():
    import evaluate

    both = evaluate.combine([load(name) for name in NAMES])
    results = both.compute(positive_scores=[2.0, 1.0], negative_scores=[1.0, 1.0], groups=["s", "m"])
    assert (results["qpa"], results["mca"], results["qpa_ties"], results["mca_half_credit"]) == (0.5, 0.5, 1, 0.75)
    assert results["mca_by_group"]["s"]["mca"] == 1


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"positive_scores": [1.0, np.nan], "negative_scores": [0.0, 0.0]}, "NaN at position 1"),
        ({"positive_scores": [None, 1.0], "negative_scores": [0.0, 0.0]}, "NaN at position 0"),
        ({"positive_scores": [], "negative_scores": []}, "at least one pair"),
        ({"positive_scores": [1.0], "negative_scores": [0.0, 1.0]}, "Mismatch"),
        ({"positive_scores": [1.0], "negative_scores": [0.0], "problem_ids": ["a", "b"]}, "one label for each"),
        ({"positive_scores": [1.0], "negative_scores": [0.0], "groups": [None]}, "no label at position 0"),
    ],
)
def test_errors_say_what_came(name, arguments, words):
    with pytest.raises(ValueError, match=words):
        load(name).compute(**arguments)


@pytest.mark.parametrize("name", NAMES)
def test_each_metric_is_a_space(name):
    import yaml

    folder = ROOT / "metrics" / name
    _, front, card = (folder / "README.md").read_text(encoding="utf-8").split("---\n", 2)
    front = yaml.safe_load(front)
    assert front["title"] == name.upper()
    assert (front["sdk"], front["app_file"], front["tags"]) == ("gradio", "app.py", ["evaluate", "metric"])
    for words in ("How to use", "Output values", "Limitations", "Citation", *(f"**{key}**" for key in (name, *KEYS))):
        assert words in card
    compile((folder / "app.py").read_text(encoding="utf-8"), "app.py", "exec")
    assert f'evaluate.load("{name}.py")' in (folder / "app.py").read_text(encoding="utf-8")
    wanted = {line.split(">=")[0] for line in (folder / "requirements.txt").read_text(encoding="utf-8").split()}
    assert wanted == {"datasets", "evaluate", "numpy"}


def test_the_package_holds_the_same_bytes():
    bundled = Path(registration.__file__).parent / "bundled" / "metrics"
    for name in NAMES:
        files = sorted(file.name for file in (ROOT / "metrics" / name).iterdir() if file.is_file())
        assert files == ["README.md", "app.py", f"{name}.py", "requirements.txt"]
        for file in files:
            assert (bundled / name / file).read_bytes() == (ROOT / "metrics" / name / file).read_bytes()


@pytest.mark.slow
def test_an_installed_wheel_holds_them(tmp_path):
    pytest.importorskip("setuptools", reason="setuptools is not installed, so no wheel can be built offline")
    import shutil
    from zipfile import ZipFile

    tree = tmp_path / "tree"
    skipped = shutil.ignore_patterns(".*", "__pycache__", "*.egg-info", "build", "dist")
    shutil.copytree(ROOT, tree, symlinks=True, ignore=skipped)
    pip = [sys.executable, "-m", "pip", "wheel", str(tree), "-w", str(tmp_path / "wheel")]
    options = ["--no-deps", "--no-build-isolation", "--disable-pip-version-check", "-q"]
    done = subprocess.run([*pip, *options], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    with ZipFile(next((tmp_path / "wheel").glob("*.whl"))) as wheel:
        bundled = {name.split("bundled/")[1]: wheel.read(name) for name in wheel.namelist() if "/bundled/" in name}
    for folder in ("metrics", "model_cards"):
        files = [path for path in (ROOT / folder).rglob("*") if path.is_file() and "__pycache__" not in path.parts]
        assert files
        for path in files:
            assert bundled[path.relative_to(ROOT).as_posix()] == path.read_bytes()


def test_the_features_are_float64():
    for name in NAMES:
        assert {feature.dtype for feature in load(name).features.values()} == {"float64"}


# Registration: what later processes find.


def run_later(tmp_path, program, **environment):
    """A process that knows nothing of this package, in an empty folder, with nothing to reach."""
    folder = tmp_path / "elsewhere"
    folder.mkdir(exist_ok=True)
    chosen = {"HF_HOME": str(tmp_path / "home"), "HF_MODULES_CACHE": str(tmp_path / "modules"), **environment}
    environment = {**os.environ, "HF_ENDPOINT": "http://127.0.0.1:9", "HF_EVALUATE_OFFLINE": "1", **chosen}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_names_load_in_a_later_process_that_never_imports_the_package(tmp_path):
    register_metrics()
    out = run_later(
        tmp_path,
        "import sys, evaluate\n"
        "q = evaluate.load('qpa').compute(positive_scores=[2.0], negative_scores=[1.0])['qpa']\n"
        "m = evaluate.load('mca').compute(positive_scores=[2.0], negative_scores=[1.0])['mca']\n"
        "both = evaluate.combine(['qpa', 'mca']).compute(positive_scores=[1.0], negative_scores=[1.0])\n"
        "print(q, m, both['qpa_half_credit'], 'hf_qualcode' in sys.modules)",
    )
    assert out == ["1.0", "1.0", "0.5", "False"]


def test_registering_again_changes_nothing_and_many_may_do_it_at_once(tmp_path):
    first = register_metrics()
    before = {path: path.stat().st_mtime_ns for path in first.values()}
    with ThreadPoolExecutor(8) as pool:
        assert all(result == first for result in pool.map(lambda _: register_metrics(), range(40)))
    assert {path: path.stat().st_mtime_ns for path in first.values()} == before
    for path in first.values():
        assert path.is_relative_to(tmp_path / "modules")
        assert sorted(file.name for file in path.parent.iterdir()) == ["__init__.py", path.name]
        assert len(path.parent.name) == 64


@pytest.mark.slow
def test_many_processes_may_register_at_once(tmp_path):
    program = "from hf_qualcode import register_metrics; print(register_metrics()['qpa'])"
    with ThreadPoolExecutor(3) as pool:
        outputs = list(pool.map(lambda _: run_later(tmp_path, program), range(3)))
    assert len({out[0] for out in outputs}) == 1
    assert Path(outputs[0][0]).read_bytes() == (ROOT / "metrics" / "qpa" / "qpa.py").read_bytes()


def test_the_version_that_registered_last_is_loaded(tmp_path, monkeypatch):
    import evaluate

    def half_credit_of_a_tie():
        return evaluate.load("qpa").compute(positive_scores=[1.0], negative_scores=[1.0])["half_credit"]

    monkeypatch.chdir(tmp_path)
    register_metrics()
    changed = tmp_path / "next"
    for name in NAMES:
        (changed / name).mkdir(parents=True)
        text = (ROOT / "metrics" / name / f"{name}.py").read_text(encoding="utf-8")
        (changed / name / f"{name}.py").write_text(text.replace("ties / 2", "ties / 4"), encoding="utf-8")
    with monkeypatch.context() as patch:
        patch.setattr(registration, "_BUNDLED", changed)
        register_metrics()
    assert half_credit_of_a_tie() == 0.25
    register_metrics()
    assert half_credit_of_a_tie() == 0.5


def test_a_damaged_copy_is_mended():
    path = register_metrics()["qpa"]
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    assert register_metrics()["qpa"] == path
    assert path.read_bytes() == content


def test_a_cache_that_cannot_be_written_is_one_line(tmp_path, monkeypatch):
    import evaluate.config

    (tmp_path / "file").touch()
    monkeypatch.setattr(evaluate.config, "HF_MODULES_CACHE", str(tmp_path / "file" / "modules"))
    with pytest.raises(QualcodeError, match="set HF_MODULES_CACHE"):
        register_metrics()


def test_an_installation_without_its_metrics_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(registration, "_BUNDLED", tmp_path)
    with pytest.raises(QualcodeError, match="install hf-qualcode again"):
        register_metrics()


def test_links_to_nowhere_in_the_cache_are_passed_over():
    target = register_metrics()["qpa"]
    dead = target.parent.parent / ("d" * 64)
    dead.mkdir()
    (dead / target.name).symlink_to("/nonexistent/qpa.py")
    assert register_metrics()["qpa"] == target


def test_the_command_prints_what_it_registered(capsys):
    import argparse

    from hf_qualcode.cli import register_metrics as command

    parser = argparse.ArgumentParser()
    command.add_parser(parser.add_subparsers())
    args = parser.parse_args(["register-metrics"])
    assert args.run(args) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("  ")[0] for line in lines] == list(NAMES)
    assert all(Path(line.split("  ")[1]).is_file() for line in lines)


def test_results_of_the_package_are_plain_numbers():
    result = metrics.quality_preference_accuracy([1.0, 2.0], [2.0, 1.0], groups=["a", "b"])
    assert json.loads(json.dumps(asdict(result)))["by_group"]["b"]["accuracy"] == 1
