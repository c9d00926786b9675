"""Two versions of a function: equal on its tests and on larger arguments, and what each of them costs there.

Runs inside the sandbox; standard library alone.
"""

import ast
import gc
import math
import pickle
import time
import tracemalloc
from typing import Any, NamedTuple

from hf_qualcode.synthesis.verifying.comparing import same, settled
from hf_qualcode.synthesis.verifying.enlarging import count_elements, enlarge, linked_lengths, modes_for
from hf_qualcode.synthesis.verifying.runs import TooLongError, limited


# One call of one version, CPU time.
CALL_SECONDS = 1.0
# So many times as long where `tracemalloc` looks on.
TRACING_FACTOR = 2.5
# Growing stops where the slower version takes this long, or where memory is asked, this much of it.
ENOUGH_SECONDS = 0.15
ENOUGH_BYTES = 3_500_000
# Longer lists would only take longer: beyond this the calls are repeated.
LARGEST_SCALE = 6_000.0
FIRST_GROWTH = 8.0
LEAST_GROWTH = 1.5
MOST_STEPS = 14
# CPU time of all steps; what was reached by then counts.
GROWING_SECONDS = 3.0
# Growth that is checked where only equality is asked.
EQUALITY_SCALES = (2.0, 6.0)


class Call(NamedTuple):
    """A call of a tested function, as in an assertion."""

    name: str
    arguments: list
    keywords: dict


class Tried(NamedTuple):
    """What came of calling both versions with equal arguments.

    Attributes:
        outcome (`str`): `"same"`; `"different"`; `"invalid"`: the original fails on these arguments; `"too_long"`:
            either needs too much time, memory or stack.
        seconds (`tuple[float, float]`): CPU time of each.
        peaks (`tuple[int, int]`): Bytes at the peak of each beyond what was there before; 0 unless traced.
        changes (`bool`): The call changes its arguments.
    """

    outcome: str
    seconds: tuple[float, float] = (0.0, 0.0)
    peaks: tuple[int, int] = (0, 0)
    changes: bool = False


def load(setup: str, code: str) -> dict:
    """The namespace of a version."""
    namespace: dict[str, Any] = {"__name__": "subject"}
    with limited(CALL_SECONDS):
        exec(compile(setup, "setup.py", "exec", dont_inherit=True), namespace)
        exec(compile(code, "subject.py", "exec", dont_inherit=True), namespace)
    return namespace


def passes(setup: str, code: str, tests: list[str]) -> bool:
    """Whether a version passes the assertions."""
    try:
        namespace = load(setup, code)
        for test in tests:
            with limited(CALL_SECONDS):
                exec(compile(test, "test.py", "exec", dont_inherit=True), namespace)
    except (Exception, TooLongError, SystemExit):
        return False
    return True


def compare(job: dict, code: str, measure: str) -> dict:
    """Compares a version with the original.

    Args:
        job (`dict`): `setup`, `original`, `tests`, and `calls`, the text of a list of (name, arguments, keywords).
        code (`str`): The other version.
        measure (`str`): `"speed"`, `"memory"` or `"equality"`.

    Returns:
        `dict`: `outcome` (`"measured"`, `"original_fails"`, `"wrong_output"`, `"no_calls"`) and `trials`: for each
        mode of growth the costs of both at the greatest scale reached.
    """
    if not passes(job["setup"], job["original"], job["tests"]):
        return {"outcome": "original_fails"}
    if not passes(job["setup"], code, job["tests"]):
        return {"outcome": "wrong_output"}
    calls = [Call(*parts) for parts in ast.literal_eval(job["calls"])]
    if not calls:
        return {"outcome": "measured" if measure == "equality" else "no_calls", "trials": []}
    pair = (load(job["setup"], job["original"]), load(job["setup"], code))
    traced = measure == "memory"
    trials = []
    links = linked_lengths([call.arguments for call in calls])
    for call in calls:
        if _try(pair, call, traced=False).outcome == "different":
            return {"outcome": "wrong_output"}
    modes = modes_for([call.arguments for call in calls])
    if traced:
        # Peaks do not add up, so one call is as good as all.
        calls = [max(calls, key=lambda call: count_elements(call.arguments))]
    for mode in modes:
        if measure == "equality":
            grown = [_grow_to(call, scale, mode, links) for scale in EQUALITY_SCALES for call in calls]
            if any(call and _try(pair, call, traced=False).outcome == "different" for call in grown):
                return {"outcome": "wrong_output"}
            continue
        trial = _grow(pair, calls, mode, links, traced)
        if trial is None:
            return {"outcome": "wrong_output"}
        if measure == "speed" and trial["calls"]:
            trial |= _time(pair, [Call(*parts) for parts in trial["calls"]])
        trial["calls"] = len(trial["calls"])
        trials.append(trial)
        if _is_settled(trial, traced):
            break
    return {"outcome": "measured", "trials": trials}


def _is_settled(trial: dict, traced: bool) -> bool:
    """Whether the versions differ so clearly that other ways to grow need not be tried."""
    costs = trial["peaks"] if traced else trial.get("seconds", (0.0, 0.0))
    enough = ENOUGH_BYTES / 2 if traced else ROUND_SECONDS / 2
    return max(costs) >= enough and max(costs) >= CLEARLY_APART * min(costs)


def _grow_to(call: Call, scale: float, mode: str, links: dict) -> Call | None:
    try:
        return call._replace(arguments=enlarge(call.arguments, scale, mode, links))
    except OverflowError:
        return None


def _grow(pair: tuple[dict, dict], calls: list[Call], mode: str, links: dict, traced: bool) -> dict | None:
    """The greatest scale within the time; `None` where the versions differ on the way."""
    scale, growth = 1.0, FIRST_GROWTH
    best = {"mode": mode, "scale": 1.0, "peaks": [0, 0], "calls": []}
    begin = time.thread_time()
    for _ in range(MOST_STEPS):
        if time.thread_time() - begin > GROWING_SECONDS:
            break
        wanted = scale * growth
        tried = [(call, _try(pair, call, traced)) for call in (_grow_to(one, wanted, mode, links) for one in calls)
                 if call is not None]  # fmt: skip
        if any(one.outcome == "different" for _, one in tried):
            return None
        usable = [(call, one) for call, one in tried if one.outcome == "same"]
        if len(usable) < len(calls):
            # Half as far: the arguments may be too large for one of the versions, or for what they mean.
            growth = growth**0.5
            if not (best["calls"] or usable) or growth < LEAST_GROWTH:
                if usable and not best["calls"]:
                    best |= _as_best(wanted, usable)
                if growth < LEAST_GROWTH:
                    break
            continue
        scale = wanted
        best |= _as_best(scale, usable)
        slower = max(sum(one.seconds[side] for _, one in usable) for side in (0, 1))
        if (max(best["peaks"]) >= ENOUGH_BYTES) if traced else (slower >= ENOUGH_SECONDS):
            break
        if not traced and mode != "numbers" and scale >= LARGEST_SCALE:
            break
        if slower * growth**2 > 4 * ENOUGH_SECONDS:
            growth = max(2.0, growth**0.5)
    return best


def _as_best(scale: float, usable: list[tuple[Call, Tried]]) -> dict:
    largest = max((one.peaks for _, one in usable), key=max)
    return {"scale": round(scale, 3), "peaks": list(largest), "calls": [call for call, _ in usable]}


def _try(pair: tuple[dict, dict], call: Call, traced: bool) -> Tried:
    results, seconds, peaks = [], [], []
    changes = False
    packed = pickle.dumps((call.arguments, call.keywords), -1)
    for number, namespace in enumerate(pair):
        arguments, keywords = pickle.loads(packed)
        function = namespace.get(call.name)
        if traced:
            gc.collect()
            tracemalloc.start()
        begin = time.thread_time()
        try:
            with limited(CALL_SECONDS * (TRACING_FACTOR if traced else 1)):
                result = settled(function(*arguments, **keywords))
        except (TooLongError, RecursionError, MemoryError):
            return Tried("too_long")
        except (Exception, SystemExit):
            # What the original cannot take says nothing; what only the other one cannot take does.
            return Tried("different" if number else "invalid")
        finally:
            seconds.append(time.thread_time() - begin)
            if traced:
                peaks.append(tracemalloc.get_traced_memory()[1])
                tracemalloc.stop()
        changed = not same(arguments, call.arguments)
        results.append((result, arguments if changed else None))
        changes = changes or changed
    is_same = same(results[0][0], results[1][0]) and same(results[0][1], results[1][1])
    return Tried("same" if is_same else "different", tuple(seconds), tuple(peaks) if traced else (0, 0), changes)


ROUNDS = 5
# Beyond these, more rounds would not change what is said.
CLEARLY_APART, CLEARLY_ALIKE = 2.5, 1.2
# What the slower version is given to do in a round.
ROUND_SECONDS = 0.2
MOST_REPEATS = 500_000


def _time(pair: tuple[dict, dict], calls: list[Call]) -> dict:
    """Least CPU time of each version over rounds in which they take turns, each on equal arguments."""
    tried = [_try(pair, call, traced=False) for call in calls]
    if any(one.outcome != "same" for one in tried):
        return {"seconds": [0.0, 0.0], "repeats": 0}
    changes = [one.changes for one in tried]
    repeats = _repeats(pair, calls, changes)
    least = [float("inf"), float("inf")]
    gc.freeze()
    for turn in range(ROUNDS):
        for side in (0, 1) if turn % 2 == 0 else (1, 0):
            taken = _round(pair[side], calls, repeats, changes)
            least[side] = min(least[side], taken)
        ratio = max(least) / max(min(least), 1e-9)
        if turn and not CLEARLY_ALIKE < ratio < CLEARLY_APART:
            break
    return {"seconds": [round(one, 6) for one in least], "repeats": repeats}


def _repeats(pair: tuple[dict, dict], calls: list[Call], changes: list[bool]) -> int:
    """How often the calls are made in a round: until the slower version takes its time."""
    repeats = 1
    while True:
        slower = max(_round(namespace, calls, repeats, changes) for namespace in pair)
        if slower >= ROUND_SECONDS / 4 or repeats >= MOST_REPEATS:
            return min(MOST_REPEATS, max(1, math.ceil(repeats * ROUND_SECONDS / max(slower, 1e-6))))
        repeats = min(MOST_REPEATS, 4 * repeats)


def _round(namespace: dict, calls: list[Call], repeats: int, changes: list[bool]) -> float:
    return sum(
        _timed(namespace[call.name], call, repeats, changed) for call, changed in zip(calls, changes, strict=True)
    )


def _timed(function, call: Call, repeats: int, changes: bool) -> float:
    """CPU time of calls that are known to end; arguments that a call changes are made anew, outside the time.

    The thread's time: after a timer was set, Linux counts a process's in ticks.
    """
    clock = time.thread_time
    packed = pickle.dumps((call.arguments, call.keywords), -1)
    if not changes:
        arguments, keywords = pickle.loads(packed)
        begin = clock()
        for _ in range(repeats):
            settled(function(*arguments, **keywords))
        return clock() - begin
    total = 0.0
    for _ in range(repeats):
        arguments, keywords = pickle.loads(packed)
        begin = clock()
        settled(function(*arguments, **keywords))
        total += clock() - begin
    return total
