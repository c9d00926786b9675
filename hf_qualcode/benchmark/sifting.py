"""One problem of CodeNet: every row of its table gets an outcome, and the programs that are kept go to the spool."""

import hashlib
import json
import logging
import math
import platform
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import hf_qualcode
from hf_qualcode.benchmark.codenet import LANGUAGE, CodeNet, SourceError, Table, is_safe_id
from hf_qualcode.benchmark.detection import is_english
from hf_qualcode.benchmark.outcomes import KEPT, NONE_KEPT
from hf_qualcode.benchmark.sources import digest_of
from hf_qualcode.benchmark.spool import Row, RowWriter, Spool, Summary
from hf_qualcode.benchmark.statements import read_statement
from hf_qualcode.corpus.reading import BinaryFileError, decode
from hf_qualcode.languages import get_language
from hf_qualcode.types import QualcodeError


if TYPE_CHECKING:
    from hf_qualcode.quality.smells import SmellEngine


logger = logging.getLogger(__name__)

# Raised whenever what is written to the spool changes its form or its meaning.
FORMAT = 1
# Texts held at a time; an engine that starts a process for each call is called once for so many.
BATCH_PROGRAMS = 64
MAX_EXAMPLES = 5
MAX_EXAMPLE_CHARACTERS = 100

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
# Rows whose program was accepted, or may have been: its text is no wrong answer to this problem.
_MAYBE_ACCEPTED = (KEPT, "status_misspelled")


def read_measurement(text: str) -> float | str:
    """Returns a field's number, or the key of `MEASUREMENT_OUTCOMES` that says why there is none.

    >>> read_measurement("30"), read_measurement(""), read_measurement("nan")
    (30.0, 'blank', 'not_a_number')
    """
    text = text.strip()
    if not text:
        return "blank"
    if not _NUMBER.fullmatch(text) or math.isinf(value := float(text)):
        return "not_a_number"
    return value + 0.0  # -0 becomes 0


def worth_of(measurement: float | str) -> str:
    """Returns the key of `MEASUREMENT_OUTCOMES` of a field that `read_measurement` read."""
    if isinstance(measurement, str):
        return measurement
    return "used" if measurement > 0 else "negative" if measurement < 0 else "zero"


def key_of(codenet: CodeNet, problem_id: str, smells: "SmellEngine | None") -> str:
    """Returns a digest of all that a problem's result depends on: files, engine, Python and this package."""
    depends_on = [
        FORMAT,
        hf_qualcode.__version__,
        platform.python_implementation(),
        platform.python_version(),
        [smells.name, smells.version] if smells is not None else None,
        codenet.state(problem_id),
    ]
    return hashlib.sha256(json.dumps(depends_on).encode()).hexdigest()


def sift_problem(codenet: CodeNet, problem_id: str, spool: Spool, smells: "SmellEngine | None") -> Summary:
    """Finds out what becomes of every row of a problem's table, unless the spool knows it.

    Args:
        codenet ([`CodeNet`]): The folder.
        problem_id (`str`): Name of a table in it; a safe id.
        spool ([`Spool`]): Where the programs that are kept, and the summary, are written.
        smells ([`SmellEngine`], *optional*): Finds the maintainability smells of the programs that are kept.

    Returns:
        [`Summary`]: Its counts; they add up to the rows read.

    Raises:
        [`QualcodeError`]: The engine failed, or the spool cannot be written. Nothing that CodeNet holds raises.
    """
    key = key_of(codenet, problem_id, smells)
    known = spool.summary(problem_id)
    if known is not None and known.key == key:
        return known
    sift = _Sift(codenet, problem_id, smells)
    with spool.writing(problem_id) as out:
        outcome, statement = sift.run(out)
    measurements = {dimension: dict(sorted(counts.items())) for dimension, counts in sift.measurements.items()}
    summary = Summary(
        key, outcome, statement, sift.outcomes.total(), dict(sift.outcomes), measurements, dict(sift.examples)
    )
    spool.finish(problem_id, summary)
    return summary


class _Entry(NamedTuple):
    """A submission id of the table: the hash of all its fields, what the row alone says, and its two measurements."""

    fields_hash: int
    outcome: str
    cpu_time: float | str
    memory: float | str


@dataclass(slots=True)
class _Repeats:
    """What is known of an id that stands in several rows."""

    num_rows: int
    conflicting: bool
    maybe_accepted: bool


class _Candidate(NamedTuple):
    """A program to read. Its outcome is `KEPT` unless the reading finds otherwise, or another that is final."""

    submission_id: str
    outcome: str
    entry: _Entry


@dataclass
class _Sift:
    codenet: CodeNet
    problem_id: str
    smells: "SmellEngine | None"
    outcomes: Counter = field(default_factory=Counter)
    measurements: dict[str, Counter] = field(
        default_factory=lambda: {"speed": Counter(), "memory": Counter(), "maintainability": Counter()}
    )
    examples: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    def run(self, out: RowWriter) -> tuple[str, str]:
        """Returns the problem's outcome and its statement."""
        try:
            table = self.codenet.submissions(self.problem_id)
            entries, repeats = self._read_table(table)
        except SourceError as error:
            self.outcomes.clear()
            self.examples.clear()
            return ("unsafe_path" if error.outcome == "unsafe_path" else "metadata_unreadable"), ""
        why_not, statement = read_english_statement(self.codenet, self.problem_id)
        candidates = self._candidates(entries, repeats, why_not)
        while batch := list(islice(candidates, BATCH_PROGRAMS)):
            self._read_batch(batch, out)
        if not table.has_columns:
            return "metadata_unreadable", ""
        if why_not:
            return why_not, ""
        return (KEPT if self.outcomes[KEPT] else NONE_KEPT), statement

    def _count(self, outcome: str, example: str, num_rows: int = 1) -> None:
        """Ids come sorted, so the first examples do not depend on the order of the rows."""
        self.outcomes[outcome] += num_rows
        if outcome != KEPT and len(self.examples[outcome]) < MAX_EXAMPLES:
            self.examples[outcome].append(example[:MAX_EXAMPLE_CHARACTERS])

    def _read_table(self, table: Table) -> tuple[dict[str, _Entry], dict[str, _Repeats]]:
        entries: dict[str, _Entry] = {}
        repeats: dict[str, _Repeats] = {}
        columns = ("submission_id", "problem_id", "language", "status", "cpu_time", "memory")
        positions = [table.position(column) for column in columns]
        num_malformed = 0
        for fields in table.rows():
            if fields is None:
                num_malformed += 1
                continue
            values = [fields[position] if position is not None else "" for position in positions]
            entry = self._entry(hash(tuple(fields)), positions[1] is not None, *values)
            first = entries.setdefault(values[0], entry)
            if first is not entry:
                known = repeats.setdefault(values[0], _Repeats(1, False, first.outcome in _MAYBE_ACCEPTED))
                known.num_rows += 1
                known.conflicting |= entry.fields_hash != first.fields_hash
                known.maybe_accepted |= entry.outcome in _MAYBE_ACCEPTED
        if num_malformed:
            self._count("malformed_row", f"{self.problem_id}.csv", num_malformed)
        return entries, repeats

    def _entry(
        self, fields_hash: int, has_problem_id: bool, submission_id: str, problem_id: str, language: str, status: str,
        cpu_time: str, memory: str,
    ) -> _Entry:  # fmt: skip
        """What a row says by itself."""
        if not is_safe_id(submission_id):
            outcome = "unsafe_id"
        elif has_problem_id and problem_id != self.problem_id:
            outcome = "other_problem"
        elif language != LANGUAGE:
            outcome = "other_language"
        elif status == "Accepted":
            return _Entry(fields_hash, KEPT, read_measurement(cpu_time), read_measurement(memory))
        elif status.strip().casefold() == "accepted":
            outcome = "status_misspelled"
        else:
            outcome = "not_accepted"
        return _Entry(fields_hash, outcome, "blank", "blank")

    def _candidates(
        self, entries: dict[str, _Entry], repeats: dict[str, _Repeats], why_not: str
    ) -> Iterator[_Candidate]:
        """Yields the programs to read, and counts the rows that are done with."""
        for submission_id in sorted(entries):
            entry = entries[submission_id]
            outcome, num_rows, maybe_accepted = entry.outcome, 1, entry.outcome in _MAYBE_ACCEPTED
            if repeat := repeats.get(submission_id):
                if repeat.conflicting:
                    outcome, num_rows, maybe_accepted = "conflicting_id", repeat.num_rows, repeat.maybe_accepted
                else:
                    self._count("duplicate_id", submission_id, repeat.num_rows - 1)
            if outcome == KEPT and why_not:
                outcome = why_not
            if outcome != KEPT:
                self._count(outcome, submission_id, num_rows)
            if maybe_accepted and not why_not and is_safe_id(submission_id):
                yield _Candidate(submission_id, outcome, entry)

    def _read_batch(self, batch: list[_Candidate], out: RowWriter) -> None:
        rows, texts = [], []
        for candidate in batch:
            outcome, text, fingerprint = _read_program(self.codenet, self.problem_id, candidate)
            if candidate.outcome == KEPT and outcome != KEPT:
                self._count(outcome, candidate.submission_id)
            if text is None:
                continue
            row = Row(candidate.submission_id, digest_of(text))
            if outcome == KEPT:
                entry = candidate.entry
                row = row._replace(fingerprint=fingerprint, cpu_time=entry.cpu_time, memory=entry.memory)
                texts.append(text)
            rows.append(row)
        findings = iter(_analyse(self.smells, texts))
        for row in rows:
            if row.is_kept:
                rules = next(findings)
                row = row._replace(smell_rules=None if rules is None else list(rules))
                self._count(KEPT, row.submission_id)
                self.measurements["speed"][worth_of(row.cpu_time)] += 1
                self.measurements["memory"][worth_of(row.memory)] += 1
                self.measurements["maintainability"][smell_worth_of(row, self.smells is not None)] += 1
            out.write(row)


def smell_worth_of(row: Row, has_engine: bool) -> str:
    """Returns the key of `SMELL_OUTCOMES` of a kept program."""
    if not has_engine:
        return "no_engine"
    return "used" if row.smell_rules is not None else "unlabelled"


def _read_program(codenet: CodeNet, problem_id: str, candidate: _Candidate) -> tuple[str, str | None, str]:
    """Returns a program's outcome, its text (`None` where it has none) and, if it is kept, its fingerprint."""
    submission_id = candidate.submission_id
    try:
        text = codenet.source(problem_id, submission_id)
    except SourceError as error:
        return error.outcome, None, ""
    if not text.strip():
        return "empty_file", text, ""
    if candidate.outcome != KEPT:
        return candidate.outcome, text, ""
    language = get_language("python")
    try:
        if language.compile_error(text) is not None:
            return "does_not_compile", text, ""
        return KEPT, text, language.fingerprint(text)
    # The one border behind which nothing a program holds may end a run over millions of others: an error in this
    # package or in Python (its parser has limits of its own) becomes the row's outcome, is counted, and shows here.
    except Exception as error:
        detail = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        logger.warning("%s of %s could not be read as a program: %a", submission_id, problem_id, detail)
        return "failed", text, ""


def _analyse(smells: "SmellEngine | None", texts: list[str]) -> list[tuple[str, ...] | None]:
    if smells is None or not texts:
        return [None] * len(texts)
    findings = smells.analyse(texts)
    if len(findings) != len(texts):
        raise QualcodeError(f"the smell engine {smells.name} gave {len(findings)} results for {len(texts)} programs")
    return findings


def read_english_statement(codenet: CodeNet, problem_id: str) -> tuple[str, str]:
    """Reads a problem's page.

    Returns:
        `tuple[str, str]`: A key of `STATEMENT_OUTCOMES`, `""` if there is an English statement; and its clean text.
    """
    try:
        html = decode(codenet.description(problem_id)).text
    except SourceError as error:
        return ("statement_missing" if error.outcome == "missing_file" else "statement_unreadable"), ""
    except BinaryFileError:
        return "statement_unreadable", ""
    statement = read_statement(html)
    if not statement.text.strip():
        return "statement_empty", ""
    # Samples and formulas are in no language.
    if not is_english(statement.prose.strip() or statement.text):
        return "statement_not_english", ""
    return "", statement.text


