"""From answers to variants: what is left out and why (METHODS: filters act on each task and dimension)."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from hf_qualcode.languages import get_language
from hf_qualcode.quality.sandbox import Limits, Sandbox
from hf_qualcode.synthesis.answers import OUTCOMES, Answer, read_answer
from hf_qualcode.synthesis.plan import Plan, RecordKey
from hf_qualcode.synthesis.store import RunStore
from hf_qualcode.synthesis.tasks import Task
from hf_qualcode.synthesis.variants import Variant


REASONS = {
    **OUTCOMES,
    "missing": "was not asked for yet",
    "fails_tests": "fails the task's own tests, so it is no solution",
    "duplicate": "differs from an earlier one in names, comments and layout at most",
    "high_and_low": "was written as good code and as bad code",
    "too_few": "the task has fewer than 3 different programs in this dimension",
}
# SynH-Rank, section 4.1.
LEAST_PROGRAMS = 3
_LIMITS = Limits(cpu_seconds=10, memory_bytes=1 << 30)


class Candidate(NamedTuple):
    """An answer and what it answers."""

    key: RecordKey
    answer: Answer


@dataclass(slots=True)
class Filtered:
    """What is left.

    Attributes:
        variants (`list[Variant]`): In the order of the plan.
        counts (`Counter`): Key of `REASONS` -> requests; they add up to the plan's.
    """

    variants: list[Variant] = field(default_factory=list)
    counts: Counter = field(default_factory=Counter)


def read_candidates(plan: Plan, store: RunStore) -> list[Candidate]:
    """One candidate a request of the plan, in its order; the store's records of other plans are left alone."""
    keys = list(plan.request_keys())
    places = {key.digest(): place for place, key in enumerate(keys)}
    found: dict[int, Candidate] = {}
    for record in store.records():
        place = places.get(record.key.digest())
        if place is None:
            continue
        if record.error is None:
            found[place] = Candidate(record.key, read_answer(record.answer, record.finish_reason, plan.language))
        elif place not in found:
            found[place] = Candidate(record.key, Answer("failed"))
    return [found.get(place) or Candidate(key, Answer("missing")) for place, key in enumerate(keys)]


def filter_candidates(
    candidates: Iterable[Candidate],
    tasks: Sequence[Task],
    source: str,
    *,
    is_right: Callable[[Task, str], bool] | None = None,
    progress: Callable[[str, int, int | None], None] | None = None,
) -> Filtered:
    """Leaves out what is no program, fails the tests (where `is_right` is given), repeats another program, or was
    written as good and as bad; then all of a task and dimension with fewer than 3 programs.

    Programs count as equal if they are so up to names, comments and layout, where the language has a fingerprint.

    Args:
        candidates (`Iterable[Candidate]`): Of `read_candidates`.
        tasks (`Sequence[Task]`): Of the plan.
        source (`str`): What wrote them; goes into the variants.
        is_right (`Callable`, *optional*): `passes_tests` of a sandbox.
        progress (`Callable`, *optional*): Called as `progress(stage, done, total)`.
    """
    by_id = {task.id: task for task in tasks}
    result = Filtered()
    groups: dict[tuple[str, str], list[Candidate]] = defaultdict(list)
    candidates = list(candidates)
    for number, candidate in enumerate(candidates, 1):
        outcome = candidate.answer.outcome
        if outcome == "kept" and is_right is not None:
            if not is_right(by_id[candidate.key.task_id], candidate.answer.code):
                outcome = "fails_tests"
            if progress is not None:
                progress("programs tested", number, len(candidates))
        if outcome == "kept":
            groups[candidate.key.task_id, candidate.key.dimension].append(candidate)
        else:
            result.counts[outcome] += 1
    for group in groups.values():
        left = _unequal(group, result.counts)
        if len(left) < LEAST_PROGRAMS:
            result.counts["too_few"] += len(left)
            continue
        result.counts["kept"] += len(left)
        result.variants += [_variant(each.key, each.answer.code, by_id, source) for each in left]
    return result


def unfiltered(candidates: Iterable[Candidate], tasks: Sequence[Task], source: str) -> Filtered:
    """Whatever was written, as it is: the ablation without filters (section 6.2). An answer without anything that
    could be a program makes no variant."""
    by_id = {task.id: task for task in tasks}
    result = Filtered()
    for key, answer in candidates:
        text = answer.code or answer.fragment
        result.counts["kept" if text else answer.outcome] += 1
        if text:
            result.variants.append(_variant(key, text, by_id, source))
    return result


def passes_tests(sandbox: Sandbox) -> Callable[[Task, str], bool]:
    """Whether a program passes its task's tests, run in the sandbox; a task without any has nothing to fail."""

    def is_right(task: Task, code: str) -> bool:
        if not task.tests:
            return True
        program = "\n".join((task.setup, code, *task.tests, ""))
        return sandbox.run(program, limits=_LIMITS).outcome == "ok"

    return is_right


def _unequal(group: Sequence[Candidate], counts: Counter) -> list[Candidate]:
    """Those of one task and dimension that repeat nothing and are on one side."""
    marks = [_fingerprint(each) for each in group]
    levels: dict[str, set[str]] = defaultdict(set)
    for mark, each in zip(marks, group, strict=True):
        levels[mark].add(each.key.level)
    left, seen = [], set()
    for mark, each in zip(marks, group, strict=True):
        if len(levels[mark]) > 1:
            counts["high_and_low"] += 1
        elif mark in seen:
            counts["duplicate"] += 1
        else:
            left.append(each)
        seen.add(mark)
    return left


def _fingerprint(candidate: Candidate) -> str:
    make = get_language(candidate.key.language).fingerprint
    return candidate.answer.code if make is None else make(candidate.answer.code)


def _variant(key: RecordKey, code: str, by_id: dict[str, Task], source: str) -> Variant:
    return Variant(key.task_id, key.dimension, key.level, key.group, by_id[key.task_id].query, code, source)
