"""From a CodeNet folder to the programs that the benchmarks are made of, and what became of every row."""

import fcntl
import functools
import logging
import platform
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from hf_qualcode.benchmark.codenet import CodeNet, SourceError, is_safe_id
from hf_qualcode.benchmark.programs import Problem, Program
from hf_qualcode.benchmark.sifting import sift_problem, worth_of
from hf_qualcode.benchmark.sources import digest_of
from hf_qualcode.benchmark.spool import Row, Spool
from hf_qualcode.benchmark.tallying import Tally
from hf_qualcode.benchmark.workers import run_tasks
from hf_qualcode.types import QualcodeError


if TYPE_CHECKING:
    from hf_qualcode.quality.smells import SmellEngine


logger = logging.getLogger(__name__)

STAGE = "collecting problems"
REMEASURED_DIMENSIONS = ("speed", "memory")

Progress = Callable[[str, int, int | None], None]


class RawValues(NamedTuple):
    """What the metadata say of a kept program, before any rule.

    Attributes:
        cpu_time (`float`, *optional*): Milliseconds; `None` where the field holds no number.
        memory (`float`, *optional*): Kilobytes; `None` where the field holds no number.
    """

    cpu_time: float | None
    memory: float | None


@dataclass(frozen=True)
class Collection:
    """The programs of CodeNet that can be used, read from disk problem by problem.

    Made by [`collect`]. Can be pickled; another process reads the same files.

    Attributes:
        codenet ([`CodeNet`]): Where the texts are.
        spool ([`Spool`]): Where the rest is.
        problem_ids (`tuple[str, ...]`): Problems with an English statement and at least one kept program, sorted.
        report (`dict`): Counts that JSON can hold: `num_rows`, `submissions`, `measurements` (by dimension),
            `num_listed`, `num_unlisted`, `problems`, `examples`, `problem_examples`; and `keep_zero`, `smell_engine`,
            `smell_version`, `python`. `submissions` adds up to `num_rows`, each table of `measurements` to the kept
            programs, `problems` to `num_listed + num_unlisted`. Keys are explained in `outcomes`; those that count 0
            are left out. Nothing in it depends on the order of the input or the number of processes.
        smell_engine, smell_version (`str`, *optional*): Which engine counted the smells.
        keep_zero (`bool`): Times and memory of 0 are measurements.
    """

    codenet: CodeNet
    spool: Spool
    problem_ids: tuple[str, ...]
    report: dict
    smell_engine: str | None
    smell_version: str | None
    keep_zero: bool
    _excluded: Mapping[str, frozenset[str]] = field(default_factory=dict, repr=False)
    _replaced: tuple[str, ...] = ()
    _values: Mapping[tuple[str, str], Mapping[str, float]] = field(default_factory=dict, repr=False)

    def problems(self) -> Iterator[Problem]:
        """Yields the problems in the order of their ids, one in memory at a time."""
        return map(self.problem, self.problem_ids)

    def problem(self, problem_id: str) -> Problem:
        """Returns one problem with its programs.

        Raises:
            [`QualcodeError`]: No such problem was collected, or what was written about it is gone.
        """
        programs = tuple(map(functools.partial(self._program, problem_id), self._kept(problem_id)))
        return Problem(problem_id, self.spool.finished(problem_id).statement, programs)

    def text(self, program: Program) -> str:
        """Returns a program's text, line ends written `\\n`, read from CodeNet.

        Raises:
            [`QualcodeError`]: The file changed since the programs were collected.
        """
        where = f"{program.submission_id} of {program.problem_id}"
        try:
            text = self.codenet.source(program.problem_id, program.submission_id)
        except SourceError as error:
            raise QualcodeError(
                f"{where} cannot be read any more ({error}); collect again, with CodeNet left alone meanwhile"
            ) from error
        if digest_of(text) != program.text_digest:
            raise QualcodeError(
                f"{where} changed since the programs were collected; collect again, with CodeNet left alone meanwhile"
            )
        return text

    def description(self, problem_id: str) -> bytes:
        """Returns a problem's page, HTML as it is in CodeNet."""
        try:
            return self.codenet.description(problem_id)
        except SourceError as error:
            raise QualcodeError(f"the page of {problem_id} cannot be read any more ({error})") from error

    def accepted_digests(self, problem_id: str) -> frozenset[str]:
        """Returns the digests of all texts that were accepted for a problem in Python, whether they compile or not.

        Programs that were dropped because of their id or the spelling of their status are among them: a text that may
        be a solution is no wrong answer.
        """
        self._check(problem_id)
        return frozenset(row.text_digest for row in self.spool.rows(problem_id))

    def raw_values(self, problem_id: str) -> dict[str, RawValues]:
        """Returns the judge's measurements of a problem's programs by submission id, as they stand in the metadata."""
        return {
            row.submission_id: RawValues(*(None if isinstance(v, str) else v for v in (row.cpu_time, row.memory)))
            for row in self._kept(problem_id)
        }

    def with_values(
        self,
        values: Mapping[tuple[str, str], Mapping[str, float]],
        dimensions: tuple[str, ...] = REMEASURED_DIMENSIONS,
    ) -> "Collection":
        """Returns this collection with other measurements.

        Args:
            values (`Mapping`): (problem id, submission id) -> dimension -> value, lower is better.
            dimensions (`tuple[str, ...]`, *optional*, defaults to speed and memory): Dimensions whose values come from
                `values` alone: a program without one there has none. The other dimensions keep theirs.
        """
        return replace(self, _replaced=dimensions, _values=values)

    def _check(self, problem_id: str) -> None:
        if problem_id not in self._known_ids:
            raise QualcodeError(f"{problem_id} is not among the {len(self.problem_ids)} problems that were collected")

    @functools.cached_property
    def _known_ids(self) -> frozenset[str]:
        return frozenset(self.problem_ids)

    def _kept(self, problem_id: str) -> Iterator[Row]:
        self._check(problem_id)
        excluded = self._excluded.get(problem_id, ())
        return (row for row in self.spool.rows(problem_id) if row.is_kept and row.submission_id not in excluded)

    def _program(self, problem_id: str, row: Row) -> Program:
        measured = {"speed": row.cpu_time, "memory": row.memory}
        usable = ("used", "zero") if self.keep_zero else ("used",)
        values = {dimension: value for dimension, value in measured.items() if worth_of(value) in usable}
        if row.smell_rules is not None:
            values["maintainability"] = float(len(row.smell_rules))
        if self._replaced:
            values = {dimension: value for dimension, value in values.items() if dimension not in self._replaced}
            others = self._values.get((problem_id, row.submission_id), {})
            values |= {dimension: float(others[dimension]) for dimension in self._replaced if dimension in others}
        rules = tuple(row.smell_rules) if row.smell_rules is not None else None
        return Program(row.submission_id, problem_id, row.text_digest, row.fingerprint, values, rules)


def collect(
    codenet: Path,
    work: Path,
    *,
    smells: "SmellEngine | None",
    keep_zero: bool = False,
    num_proc: int = 1,
    progress: Progress | None = None,
) -> Collection:
    """Reads a Project_CodeNet folder.

    What is found out about a problem is written to `work`, so memory does not grow with CodeNet, and a run that was
    interrupted goes on where it was. A problem is done anew when its files (size or time of change), the engine or its
    version, Python's version or this package's are others than they were.

    Args:
        codenet (`Path`): The folder that holds `metadata`, `data` and `problem_descriptions`.
        work (`Path`): Folder for what is found out; made where it is missing.
        smells ([`SmellEngine`], *optional*): Counts the maintainability smells. With several processes each gets a
            copy by pickle; the caller closes the one given.
        keep_zero (`bool`, *optional*, defaults to `False`): Use times and memory of 0.
        num_proc (`int`, *optional*, defaults to 1): Processes, which share the problems out among them.
        progress (`Callable`, *optional*): Called with stage, problems done and their number.

    Returns:
        [`Collection`]: The same for the same files, whatever the order of rows and the number of processes.

    Raises:
        [`QualcodeError`]: `codenet` is no such folder, `work` cannot be written or is in use, the engine failed, or a
            worker process died.
    """
    source = CodeNet.open(codenet)
    spool = Spool(Path(work) / "problems")
    with _locked(Path(work)):
        tally = Tally(smells is not None, keep_zero)
        readable = _list_problems(source, tally)
        _sift_all(source, spool, readable, smells, num_proc, progress)
        excluded = _ids_of_several_problems(spool, readable)
        kept = []
        for problem_id in readable:
            ids = excluded.get(problem_id, ())
            rows = [row for row in spool.rows(problem_id) if row.is_kept and row.submission_id in ids] if ids else []
            if tally.add_summary(problem_id, spool.finished(problem_id), rows):
                kept.append(problem_id)
    engine, version = (smells.name, smells.version) if smells is not None else (None, None)
    options = {"keep_zero": keep_zero, "smell_engine": engine, "smell_version": version}
    report = tally.to_report() | options | {"python": platform.python_version()}
    return Collection(source, spool, tuple(kept), report, engine, version, keep_zero, excluded)


@contextmanager
def _locked(work: Path) -> Iterator[None]:
    """Keeps a second run out of a folder; the system lifts the lock even when the process is killed."""
    try:
        (work / "problems").mkdir(parents=True, exist_ok=True)
        file = (work / "lock").open("w")
    except OSError as error:
        raise QualcodeError(f"{work} cannot be written ({error.strerror}); name another folder to work in") from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise QualcodeError(
                f"another run is collecting into {work}; wait for it, or name another folder to work in"
            ) from error
        except OSError as error:  # a file system without locks
            logger.debug("%s is not locked: %s", work, error)
        yield


def _list_problems(source: CodeNet, tally: Tally) -> list[str]:
    """Counts the problems without a table, and returns the ids of those that have one, sorted."""
    listed = Counter(source.listed_ids())
    tally.num_listed = listed.total()
    if num_malformed := listed.pop(None, 0):
        tally.add_problem("malformed_row", "problem_list.csv", num_malformed)
    tables = set(source.metadata_ids())
    tally.num_unlisted = len(tables - listed.keys())
    for problem_id in sorted(tables | listed.keys()):
        if listed[problem_id] > 1:
            tally.add_problem("duplicate_id", problem_id, listed[problem_id] - 1)
        if not is_safe_id(problem_id):
            tally.add_problem("unsafe_id", problem_id)
        elif problem_id not in tables:
            tally.add_problem("metadata_missing", problem_id)
    return sorted(filter(is_safe_id, tables))


def _sift_all(
    source: CodeNet,
    spool: Spool,
    problem_ids: list[str],
    smells: "SmellEngine | None",
    num_proc: int,
    progress: Progress | None,
) -> None:
    if num_proc > 1 and len(problem_ids) > 1:
        # The longest first, so that no process is left alone with one at the end.
        tasks = sorted(problem_ids, key=source.table_bytes, reverse=True)
        done = run_tasks(_open_sift, (source, spool, smells), tasks, num_proc)
    else:
        done = (_sift(source, spool, smells, problem_id) for problem_id in problem_ids)
    for number, _ in enumerate(done, 1):
        if progress is not None:
            progress(STAGE, number, len(problem_ids))


@contextmanager
def _open_sift(source: CodeNet, spool: Spool, smells: "SmellEngine | None") -> Iterator[Callable[[str], None]]:
    """What a worker process does: its own engine is started once and stopped in the end."""
    with smells if smells is not None else nullcontext():
        yield functools.partial(_sift, source, spool, smells)


def _sift(source: CodeNet, spool: Spool, smells: "SmellEngine | None", problem_id: str) -> None:
    try:
        sift_problem(source, problem_id, spool, smells)
    except OSError as error:  # the disk is full, say
        raise QualcodeError(f"{problem_id} could not be collected into {spool.folder}: {error}") from error


def _ids_of_several_problems(spool: Spool, problem_ids: list[str]) -> dict[str, frozenset[str]]:
    """Returns the kept submissions, by problem, whose id is that of a kept submission of another problem too.

    CodeNet has none, so the usual case is the one that is cheap: 8 bytes a program.
    """
    import numpy as np

    hashes = array("q")
    for problem_id in problem_ids:
        hashes.extend(hash(row.submission_id) for row in spool.rows(problem_id) if row.is_kept)
    ordered = np.sort(np.frombuffer(hashes, np.int64)) if hashes else np.empty(0, np.int64)
    suspects = set(ordered[1:][ordered[1:] == ordered[:-1]].tolist())
    if not suspects:
        return {}
    owners = defaultdict(list)
    for problem_id in problem_ids:
        for row in spool.rows(problem_id):
            if row.is_kept and hash(row.submission_id) in suspects:
                owners[row.submission_id].append(problem_id)
    excluded = defaultdict(set)
    for submission_id, owning in owners.items():
        for problem_id in owning if len(owning) > 1 else ():
            excluded[problem_id].add(submission_id)
    return {problem_id: frozenset(ids) for problem_id, ids in excluded.items()}
