"""`hf-qualcode synthesize` as a user meets it."""

import argparse
import json
import socket
from pathlib import Path

import pytest
import yaml

from hf_qualcode.cli import synthesize as command
from hf_qualcode.cli.main import build_parser, main
from hf_qualcode.quality.sandbox import Sandbox
from hf_qualcode.synthesis.variants import read_variants
from hf_qualcode.types import QualcodeError
from tests.synthesis.loopback import Loopback, misbehaving


CONFIGS = Path(__file__).parents[2] / "examples" / "configs" / "synthesis"
ROWS = [
    {"task_id": 1, "text": "Twice as much.", "code": "def double(n):\n    return n + n\n",
     "test_list": ["assert double(3) == 6", "assert double(0) == 0"]},
    {"task_id": 2, "text": "Half of it.", "code": "def half(n):\n    return n // 2\n",
     "test_list": ["assert half(9) == 4"]},
]  # fmt: skip


@pytest.fixture
def tasks(tmp_path):
    path = tmp_path / "tasks.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return path


def options(*arguments):
    """What the command would do, as it reads it itself."""
    args = build_parser().parse_args(["synthesize", "--tasks", "t", "--out", "o", *map(str, arguments)])
    return command._options(args)


def run(capsys, tasks, out, *arguments):
    code = main(["synthesize", "--tasks", str(tasks), "--out", str(out), *map(str, arguments)])
    streams = capsys.readouterr()
    return code, streams.out, streams.err


def test_a_server_run_prints_a_table_or_json(capsys, tasks, tmp_path):
    with Loopback(misbehaving()) as there:
        told = ("--writer", "server", "--url", there.url, "--model", "m", "--dimensions", "speed", "--samples", 8)
        code, out, _ = run(capsys, tasks, tmp_path / "run", *told, "--json")
        assert code == 0
        report = json.loads(out)
        code, table, _ = run(capsys, tasks, tmp_path / "run", *told)
    assert code == 0
    assert report["requests"] == sum(report["outcomes"].values()) == 32
    shown = [line.split() for line in table.splitlines()]
    for words in (
        ["tasks", "2", "of", "2", "read"],
        ["requests", "32", "32", "answered", "before"],
        *([name, str(count)] for name, count in report["outcomes"].items()),
        ["variants:", "speed", str(report["variants"])],
    ):
        assert any(line[: len(words)] == words for line in shown), (words, table)
    assert f"{report['tokens']['completion_tokens']:,} out" in table
    assert len(list(read_variants(tmp_path / "run" / "variants.jsonl"))) == report["variants"]


def test_the_rules_writer_proves_pairs(capsys, tasks, tmp_path):
    try:
        Sandbox.open()
    except QualcodeError as error:
        pytest.skip(f"no program can be run on this machine: {error}")
    code, out, _ = run(capsys, tasks, tmp_path / "run", "--writer", "rules", "--json")
    assert code == 0
    report = json.loads(out)
    assert report["programs"] == 2
    assert report["pairs"] == sum(report["pairs_by_group"].values()) > 0
    assert report["table"]["unused_variables"] == {"verified": 2}
    variants = list(read_variants(tmp_path / "run" / "variants.jsonl"))
    assert len(variants) == report["variants"]
    assert {variant.task_id for variant in variants} == {"1", "2"}
    assert ROWS[0]["code"] in {variant.code for variant in variants if variant.level == "high"}
    code, table, _ = run(capsys, tasks, tmp_path / "run", "--writer", "rules", "--num-tasks", 1)
    assert code == 0
    assert "variants of 1 programs" in table
    assert ["unused_variables", "1", "1", "0", "0", "0", "0"] in [line.split() for line in table.splitlines()]


SERVER = ("--writer", "server", "--url", "http://host", "--model", "m")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "--writer is missing; choose one of: local (needs"),
        (("--writer", "llm"), "unknown writer 'llm'; choose one of: local (needs"),
        (("--writer", "server", "--model", "m"), "needs --url"),
        (("--writer", "server", "--url", "http://host"), "needs --model"),
        (("--writer", "server", "--url", "host", "--model", "m"), "no plain http"),
        ((*SERVER, "--dimensions", "colour"), "quality 'colour'"),
        ((*SERVER, "--language", "klingon"), "'klingon'"),
        ((*SERVER, "--samples", "0"), "--samples 0"),
        ((*SERVER, "--temperature", "-1"), "--temperature -1.0: 0 or more"),
        ((*SERVER, "--max-characters", "0"), "--max-characters 0: 1 or more"),
        ((*SERVER, "--api-key-env", "NOT_SET_AT_ALL"), "--api-key-env names 'NOT_SET_AT_ALL'"),
        (("--writer", "rules", "--num-proc", "0"), "--num-proc 0"),
        (("--config", "nowhere.yaml"), "--config nowhere.yaml cannot be read"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_code_2(capsys, tasks, tmp_path, arguments, said):
    code, out, err = run(capsys, tasks, tmp_path / "run", *arguments)
    assert (code, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1


def test_a_file_without_tasks_is_a_failure_in_one_line(capsys, tmp_path):
    for path in (tmp_path / "nowhere", tmp_path):
        code, out, err = run(capsys, path, tmp_path / "run", "--writer", "server", "--url", "http://h", "--model", "m")
        assert (code, out) == (1, "")
        assert "cannot be read" in err
        assert err.count("\n") == 1


def test_a_server_that_is_not_there_is_a_failure_in_one_line_without_the_key(capsys, tasks, tmp_path, monkeypatch):
    monkeypatch.setenv("A_KEY", "sk-secret")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{probe.getsockname()[1]}"
        told = ("--writer", "server", "--url", url, "--model", "m", "--api-key-env", "A_KEY", "--max-retries", 0)
        code, out, err = run(capsys, tasks, tmp_path / "run", *told)
    assert (code, out) == (1, "")
    assert f"{url}/v1 gave no answer at all" in err
    assert err.count("\n") == 1
    assert not any("sk-secret" in text for text in (err, *(path.read_text() for path in (tmp_path / "run").iterdir())))


def test_options_that_are_none_are_wrong_usage(capsys, tasks, tmp_path):
    for arguments, said in (
        (("--temprature", "1"), "synthesize does not know: --temprature 1"),
        (("--samples", "x"), "--samples: invalid int value: 'x'"),
        (("extra",), "synthesize does not know: extra"),
    ):
        with pytest.raises(SystemExit) as caught:
            run(capsys, tasks, tmp_path / "run", *arguments)
        assert caught.value.code == 2
        assert said in capsys.readouterr().err


def test_an_output_that_is_a_file_is_a_failure_in_one_line(capsys, tasks, tmp_path):
    (tmp_path / "file").touch()
    for writer in ("server", "rules"):
        told = ("--writer", writer, "--url", "http://h", "--model", "m")
        code, out, err = run(capsys, tasks, tmp_path / "file", *told)
        assert (code, out) == (1, "")
        assert err.count("\n") == 1


# ---- configurations ----


def config(path, **content):
    path.write_text(yaml.safe_dump(content))
    return path


def test_the_command_wins_over_the_file_and_the_file_over_defaults(tmp_path):
    path = config(tmp_path / "c.yaml", **{"top-p": 0.5, "seed": 7, "guidelines": False, "temperature": 1})
    chosen = options("--config", path, "--seed", 9)
    assert (chosen["top_p"], chosen["seed"], chosen["guidelines"]) == (0.5, 9, False)
    assert (chosen["temperature"], chosen["top_k"]) == (1, 20)
    assert options("--config", path, "--no-filter")["filter"] is False
    assert options()["filter"] is True


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"colour": 1}, "unknown option 'colour'; known are: api_key_env"),
        ({"seed": "x"}, "seed is 'x', expected int"),
        ({"seed": True}, "seed is True, expected int"),
        ({"guidelines": "no"}, "guidelines is 'no', expected bool"),
        ({"temperature": "hot"}, "temperature is 'hot', expected float"),
        ({"temperature": 10**400}, "expected float"),
        ({"decontaminate": "a"}, "decontaminate is 'a', expected list"),
        ({"decontaminate": [1]}, "decontaminate is [1], expected list of texts"),
        ({"dimensions": 3}, "dimensions is 3, expected str or list of texts"),
        ({"dimensions": ["speed", 1]}, "dimensions is ['speed', 1], expected"),
        ({"num_tasks": "x"}, "num_tasks is 'x', expected int"),
        ({"num_tasks": 1.5}, "num_tasks is 1.5, expected int"),
        ({"num_tasks": True}, "num_tasks is True, expected int"),
        ({"url": 5}, "url is 5, expected str"),
        ({"model": ["m"]}, "model is ['m'], expected str"),
        ({"api_key_env": 3}, "api_key_env is 3, expected str"),
        ({"writer": 3}, "writer is 3, expected str"),
    ],
)
def test_a_file_with_something_else_is_named(tmp_path, content, said):
    with pytest.raises(QualcodeError, match="c.yaml: ") as caught:
        options("--config", config(tmp_path / "c.yaml", **content))
    assert said in str(caught.value)


def test_a_whole_number_of_the_file_is_the_number_of_the_command(tmp_path):
    # Or the same run would ask for everything again.
    told = options("--config", config(tmp_path / "c.yaml", temperature=1))["temperature"]
    assert repr(told) == repr(options("--temperature", "1")["temperature"])


@pytest.mark.parametrize(
    "text",
    [
        *("- a\n", "just text", "a: [", "", "a: !!python/object/apply:os.getcwd []", "seed: 2020-13-45"),
        f"a: {'[' * 600}{']' * 600}",
    ],
    ids=["list", "text", "cut", "empty", "object", "no date", "deep"],
)
def test_a_file_that_is_no_mapping_is_named(tmp_path, text):
    (tmp_path / "c.yaml").write_text(text)
    with pytest.raises(QualcodeError, match=r"--config .*c\.yaml (cannot be read as YAML|holds)"):
        options("--config", tmp_path / "c.yaml")


# SynH-Rank, section 5.4; section 6.2 for the ablations.
PAPER = {
    "writer": "server", "num_tasks": 1000, "samples": 4, "language": "python", "temperature": 0.7, "top_p": 0.8,
    "top_k": 20, "max_tokens": 1024, "model": "Qwen/Qwen3-Coder-30B-A3B-Instruct", "guidelines": True, "filter": True,
    "dimensions": ["speed", "memory", "maintainability"],
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("synh_rank", {}),
        ("without_guidelines", {"guidelines": False}),
        ("without_guidelines_and_filter", {"guidelines": False, "filter": False}),
    ],
)
def test_the_papers_runs_are_files(name, changes):
    chosen = options("--config", CONFIGS / f"{name}.yaml")
    assert {key: chosen[key] for key in PAPER} == PAPER | changes


def test_there_are_no_other_configurations():
    assert {path.stem for path in CONFIGS.iterdir()} == {
        "synh_rank", "without_guidelines", "without_guidelines_and_filter"
    }  # fmt: skip


def test_defaults_are_the_papers_too():
    chosen = options()
    assert all(chosen[name] == PAPER[name] for name in ("samples", "temperature", "top_p", "top_k", "max_tokens"))
    assert isinstance(build_parser(), argparse.ArgumentParser)
