"""The package as a whole: silent and cheap to import, imports that point down, and a help text for every command."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import hf_qualcode
from hf_qualcode.cli.main import COMMANDS, build_parser, main


PACKAGE = Path(hf_qualcode.__file__).parent
# Lower numbers are further down; a module imports its own level or lower ones.
LEVELS = {
    "types": 0,
    "losses": 0,
    "metrics": 0,
    "lexical": 0,
    "digests": 0,
    "hub": 0,
    "batching": 0,
    "devices": 0,
    "packed_bert": 0,
    "threads": 0,
    "registration": 0,
    "resampling": 0,
    "smollm2": 0,
    "encoders": 1,
    "languages": 1,
    "quality": 1,
    "corpus": 2,
    "benchmark": 3,
    "synthesis": 3,
    "evaluation": 3,
    "rerank": 4,
    "retrieve": 4,
    "baselines": 5,
    "serve": 6,
    "cli": 6,
    "__main__": 7,
}
NEVER = {("rerank", "retrieve"), ("retrieve", "rerank")}


def modules():
    return sorted(file.relative_to(PACKAGE.parent) for file in PACKAGE.rglob("*.py"))


def imported(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module


@pytest.mark.parametrize("module", modules(), ids=str)
def test_imports_point_down(module):
    here = module.with_suffix("").parts[1]
    for name in imported(ast.parse((PACKAGE.parent / module).read_bytes())):
        if not name.startswith("hf_qualcode."):
            continue
        there = name.split(".")[1]
        if here == "__init__":
            continue
        assert LEVELS[there] <= LEVELS[here], f"{module} imports {name}"
        assert (here, there) not in NEVER, f"{module} imports {name}"


def run_python(program, *arguments):
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", program, *arguments], capture_output=True, text=True, check=True
    )


def test_import_is_silent_and_loads_nothing_large():
    done = run_python(
        "import sys, hf_qualcode\n"
        "heavy = {'torch', 'transformers', 'numpy', 'pyarrow', 'sentence_transformers'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    assert (done.stdout, done.stderr) == ("", "")


def test_help_loads_nothing_large():
    run_python(
        "import sys\nfrom hf_qualcode.cli.main import build_parser\nbuild_parser()\n"
        "heavy = {'torch', 'transformers', 'numpy', 'pyarrow'} & set(sys.modules)\nassert not heavy, heavy"
    )


def test_every_public_name_resolves_and_an_unknown_one_lists_them():
    for name in hf_qualcode.__all__:
        assert getattr(hf_qualcode, name) is not None
        assert name in dir(hf_qualcode)
    with pytest.raises(AttributeError, match="public names: .*CodeIndex"):
        hf_qualcode.CodeIndexx  # noqa: B018


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_a_help_text(command, capsys):
    with pytest.raises(SystemExit) as exit_:
        main([command, "--help"])
    assert exit_.value.code == 0
    assert f"hf-qualcode {command}" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [[], ["serch"], ["search"], ["search", "q", "--top-k", "ten"], ["index", "."]])
def test_wrong_usage_exits_with_2(arguments, capsys):
    with pytest.raises(SystemExit) as exit_:
        main(arguments)
    assert exit_.value.code == 2
    assert capsys.readouterr().out == ""


def test_commands_are_the_modules_that_add_a_parser():
    with_parser = {
        file.stem.replace("_", "-")
        for file in (PACKAGE / "cli").glob("*.py")
        if "def add_parser(" in file.read_text(encoding="utf-8")
    }
    assert with_parser == set(COMMANDS)
    assert build_parser().prog == "hf-qualcode"
