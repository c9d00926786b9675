"""What the reranking benchmarks read: problem statements and programs of codenet-mini, drawn with a fixed seed."""

import argparse
import os
import random
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from hf_qualcode.benchmark.codenet import CodeNet
from hf_qualcode.benchmark.statements import read_statement


class Problem(NamedTuple):
    """A statement, and programs that were handed in for it."""

    id: str
    statement: str
    programs: list[str]


def add_data_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--data", type=Path, help="folder that holds codenet-mini/; defaults to what HF_QUALCODE_TEST_DATA names"
    )


def read_problems(data: Path | None) -> list[Problem]:
    """All problems with a statement and programs, in the order of their ids."""
    data = data or (Path(named) if (named := os.environ.get("HF_QUALCODE_TEST_DATA")) else None)
    if data is None:
        sys.exit("name the folder that holds codenet-mini/ with --data, or by HF_QUALCODE_TEST_DATA")
    codenet = CodeNet.open(data / "codenet-mini")
    problems = []
    for problem_id in codenet.metadata_ids():
        files = sorted((codenet.root / "data" / problem_id / "Python").glob("*.py"))
        programs = [file.read_text(encoding="utf-8", errors="replace") for file in files]
        statement = read_statement(codenet.description(problem_id).decode("utf-8", errors="replace")).text
        if statement and programs:
            problems.append(Problem(problem_id, statement, programs))
    return problems


def draw_queries(problems: Sequence[Problem], num_queries: int, num_codes: int) -> list[tuple[str, list[str]]]:
    """Statements with distinct programs of any problem, as a first search would find them: of all lengths."""
    rng = random.Random(0)
    programs = sorted({program for problem in problems for program in problem.programs})
    return [(problem.statement, rng.sample(programs, num_codes)) for problem in rng.sample(problems, num_queries)]
