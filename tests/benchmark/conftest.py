"""Small Project_CodeNet folders, made row by row."""

import hashlib
import os
import random
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from hf_qualcode.benchmark.programs import Problem, Program


COLUMNS = (
    "submission_id", "problem_id", "user_id", "date", "language", "original_language", "filename_ext", "status",
    "cpu_time", "memory", "code_size", "accuracy",
)  # fmt: skip
ENGLISH = """
<h1>Sum of numbers</h1>
<p>You are given a sequence of numbers. Write a program which reads the numbers and prints their sum. The first line
of the input contains the length of the sequence, and the next line contains the numbers, separated by spaces.</p>
<h2>Constraints</h2><p>The length of the sequence does not exceed 1000.</p>
"""


@dataclass
class CodeNetMaker:
    """Collects rows, sources and statements, and writes them as a CodeNet folder."""

    root: Path
    rows: list[dict] = field(default_factory=list)
    sources: dict[tuple[str, str], bytes] = field(default_factory=dict)
    statements: dict[str, str | bytes | None] = field(default_factory=dict)
    listed: list[str] | None = None

    def add(self, submission_id, problem_id="p00001", source: str | bytes | None = "", **fields):
        """A row; `source` is written too (`""` = a program of its own, `None` = no file)."""
        row = dict.fromkeys(COLUMNS, "")
        row |= {"submission_id": submission_id, "problem_id": problem_id, "user_id": "u1", "language": "Python"}
        row |= {"filename_ext": "py", "status": "Accepted", "cpu_time": "20", "memory": "3000", "code_size": "9"}
        self.rows.append(row | {name: str(value) for name, value in fields.items()} | {"_table": problem_id})
        if source == "":
            source = f"print({len(self.sources)})\n"
        if source is not None:
            self.sources[problem_id, submission_id] = source if isinstance(source, bytes) else source.encode()
        self.statements.setdefault(problem_id, ENGLISH)
        return self

    def write(self, seed=None) -> Path:
        """Writes the folder; with a seed rows and files come in another order."""
        rows, sources = list(self.rows), list(self.sources.items())
        if seed is not None:
            random.Random(seed).shuffle(rows)
            random.Random(seed).shuffle(sources)
        for name in ("metadata", "data", "problem_descriptions"):
            (self.root / name).mkdir(parents=True, exist_ok=True)
        problem_ids = list(dict.fromkeys(row["_table"] for row in rows))
        listed = self.listed if self.listed is not None else problem_ids
        self.table("problem_list", "id,name\n" + "".join(f"{problem_id},A name\n" for problem_id in listed))
        for problem_id in problem_ids:
            lines = [",".join(row[name] for name in COLUMNS) for row in rows if row["_table"] == problem_id]
            self.table(problem_id, "\n".join([",".join(COLUMNS), *lines]) + "\n")
        for (problem_id, submission_id), source in sources:
            self.program(problem_id, submission_id).write_bytes(source)
        for problem_id, html in self.statements.items():
            if html is not None:
                page = self.root / "problem_descriptions" / f"{problem_id}.html"
                page.write_bytes(html if isinstance(html, bytes) else html.encode())
        return self.root

    def table(self, name, content: str | bytes):
        """Writes a file of metadata as it is."""
        content = content if isinstance(content, bytes) else content.encode()
        (self.root / "metadata" / f"{name}.csv").write_bytes(content)

    def program(self, problem_id, submission_id) -> Path:
        """Where a program's file is."""
        path = self.root / "data" / problem_id / "Python" / f"{submission_id}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        return path


@pytest.fixture
def codenet_maker(tmp_path) -> CodeNetMaker:
    """An empty maker of a CodeNet folder."""
    return CodeNetMaker(tmp_path / "codenet")


@pytest.fixture(scope="session")
def codenet_mini() -> Path:
    """The real cut of CodeNet; the test is skipped where it is not there."""
    folder = Path(os.environ.get("HF_QUALCODE_TEST_DATA", "")) / "codenet-mini"
    if not os.environ.get("HF_QUALCODE_TEST_DATA") or not folder.is_dir():
        pytest.skip("HF_QUALCODE_TEST_DATA names no folder with codenet-mini, a cut of Project_CodeNet")
    return folder


@dataclass
class MemoryCollection:
    """Programs in memory, with the reading half of `Collection`: for tests of what is selected from one."""

    programs: list[Program] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)
    others: dict[str, set[str]] = field(default_factory=dict)
    smell_engine: str | None = "toy"
    smell_version: str | None = "1"

    def add(self, problem_id, submission_id, *, text=None, rules=None, **values):
        """A program; without a text it has one of its own. `rules` gives maintainability its value."""
        text = f"print({submission_id!r})\n" if text is None else text
        digest = hashlib.sha256(text.encode()).hexdigest()
        if rules is not None:
            values["maintainability"] = float(len(rules))
            rules = tuple(sorted(rules))
        values = {name: float(value) for name, value in values.items() if value is not None}
        self.programs.append(Program(submission_id, problem_id, digest, f"form of {digest}", values, rules))
        self.texts[digest] = text
        return self

    def accept(self, problem_id, text):
        """A text that was accepted for the problem but is no program of the benchmark."""
        self.others.setdefault(problem_id, set()).add(hashlib.sha256(text.encode()).hexdigest())

    @property
    def problem_ids(self):
        return tuple(sorted({program.problem_id for program in self.programs}))

    def problems(self):
        return map(self.problem, self.problem_ids)

    def problem(self, problem_id):
        programs = [program for program in self.programs if program.problem_id == problem_id]
        ordered = tuple(sorted(programs, key=lambda program: program.submission_id))
        return Problem(problem_id, f"Statement of {problem_id}.", ordered)

    def text(self, program):
        return self.texts[program.text_digest]

    def accepted_digests(self, problem_id):
        digests = {program.text_digest for program in self.programs if program.problem_id == problem_id}
        return frozenset(digests | self.others.get(problem_id, set()))

    @property
    def report(self):
        kept = {"kept": len(self.programs)}
        measurements = {name: {"used": len(self.programs)} for name in ("speed", "memory", "maintainability")}
        return {
            "num_rows": len(self.programs), "submissions": kept, "measurements": measurements,
            "problems": {"kept": len(self.problem_ids)}, "keep_zero": False,
        }  # fmt: skip


@pytest.fixture
def memory_collection() -> MemoryCollection:
    """An empty collection to fill."""
    return MemoryCollection()


@pytest.fixture(scope="module")
def empty_collection() -> MemoryCollection:
    """An empty collection to fill, once for a module."""
    return MemoryCollection()


@pytest.fixture(scope="session")
def random_collection():
    """Makes a collection with every oddity: missing values, ties, equal texts within and across problems."""

    def make(seed=0, num_problems=8, most_programs=14, ties=True) -> MemoryCollection:
        rng, collection = random.Random(seed), MemoryCollection()
        for problem in range(num_problems):
            for _ in range(rng.randrange(1, most_programs)):
                number = len(collection.programs)
                text = f"print({rng.randrange(8)})\n" if rng.random() < 0.25 else None
                rules = [rng.choice("ABC") for _ in range(rng.choice((0, 0, 1, 2, 5)))]
                collection.add(
                    f"p{problem:05}", f"s{number:09}", text=text,
                    speed=rng.choice((None, 10, 20, 20, 45, 90, 200)) if ties else rng.randrange(1, 400),
                    memory=rng.choice((None, 3000, 3000, 7000, 9000, 40_000)) if ties else rng.randrange(1, 400),
                    rules=rules if rng.random() < 0.9 else None,
                )  # fmt: skip
        return collection

    return make
