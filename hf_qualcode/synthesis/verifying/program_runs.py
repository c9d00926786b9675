"""Two versions of a program that reads standard input: equal output, and what each of them costs.

Runs inside the sandbox; standard library alone. Each run is a fork of a process that has imported what the programs
import, so that neither start-up nor imports are counted.
"""

import gc
import os
import sys
import threading
import time
import tracemalloc
from pathlib import Path

from hf_qualcode.synthesis.verifying.runs import TooLongError, in_child, limited


RUN_SECONDS = 5.0
ENOUGH_SECONDS = 0.3
ENOUGH_BYTES = 16_000_000
ROUNDS = 3
LEAST_SECONDS = 0.004
MOST_OUTPUT = 16 << 20
TRACING_SLOWDOWN = 4


def compare(job: dict, code: str, measure: str) -> dict:
    """Compares a version with the original.

    Args:
        job (`dict`): `original`, `samples` and `inputs` (texts; the latter in growing size), `imports` (a program).
        code (`str`): The other version.
        measure (`str`): `"speed"`, `"memory"` or `"equality"`.

    Returns:
        `dict`: As of `function_runs.compare`; at most one trial.
    """
    with limited(RUN_SECONDS):
        exec(compile(job["imports"], "imports.py", "exec", dont_inherit=True), {})
    pair = tuple(compile(text, "program.py", "exec", dont_inherit=True) for text in (job["original"], code))
    inputs = [text.encode() for text in job["inputs"]]
    for sample in job["samples"]:
        first, second = (_run(version, sample.encode()) for version in pair)
        if first["outcome"] != "ok":
            return {"outcome": "original_fails"}
        if second["outcome"] != "ok" or second["output"] != first["output"]:
            return {"outcome": "wrong_output"}
    if not inputs:
        return {"outcome": "measured" if measure == "equality" and job["samples"] else "no_calls", "trials": []}
    traced = measure == "memory"
    last, costs, checked = None, [], 0
    for number, stdin in enumerate(inputs):
        first, second = (_run(version, stdin, traced) for version in pair)
        if first["outcome"] != "ok":
            break
        if second["outcome"] == "failed":
            return {"outcome": "wrong_output"}
        if second["outcome"] != "ok":
            break
        if second["output"] != first["output"]:
            return {"outcome": "wrong_output"}
        last, costs, checked = number, [first, second], checked + 1
        if max(run["peak"] for run in costs) >= ENOUGH_BYTES:
            break
        if not traced and max(run["seconds"] for run in costs) >= ENOUGH_SECONDS:
            break
    if last is None:
        return {"outcome": "original_fails" if first["outcome"] != "ok" else "measured", "trials": []}
    trial = {"mode": "generated", "scale": last, "bytes": len(inputs[last]), "calls": checked}
    if measure == "memory":
        trial["peaks"] = [run["peak"] for run in costs]
    elif measure == "speed":
        least = [run["seconds"] for run in costs]
        for turn in range(ROUNDS - 1 if max(least) >= 0.05 else 0):
            for side in (1, 0) if turn % 2 == 0 else (0, 1):
                again = _run(pair[side], inputs[last])
                if again["outcome"] == "ok":
                    least[side] = min(least[side], again["seconds"])
        trial |= {"seconds": [round(one, 6) for one in least], "repeats": 1}
    return {"outcome": "measured", "trials": [trial]}


def _run(version, stdin: bytes, traced: bool = False) -> dict:
    """One run: `outcome` (`"ok"`, `"failed"`, `"too_long"`), `output` (a digest), `seconds`, `peak`."""
    done = in_child(lambda: _run_here(version, stdin, traced), round(2 * TRACING_SLOWDOWN * RUN_SECONDS))
    return done or {"outcome": "too_long"}


def _run_here(version, stdin: bytes, traced: bool) -> dict:
    import hashlib

    Path("stdin").write_bytes(stdin)
    os.dup2(os.open("stdin", os.O_RDONLY), 0)
    os.dup2(os.open("stdout", os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600), 1)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    namespace = {"__name__": "__main__", "__builtins__": __builtins__}
    gc.collect()
    gc.freeze()
    if traced:
        tracemalloc.start()
    outcome = "ok"
    begin = time.process_time()
    try:
        with limited(RUN_SECONDS * (TRACING_SLOWDOWN if traced else 1)):
            try:
                exec(version, namespace)
            except SystemExit as ending:
                outcome = "ok" if ending.code in (None, 0) else "failed"
            for thread in threading.enumerate():
                if thread is not threading.current_thread():
                    thread.join()
            sys.stdout.flush()
    except (TooLongError, RecursionError, MemoryError):
        outcome = "too_long"
    except Exception:  # whatever the program does not catch ends it
        outcome = "failed"
    # All threads' time, which Linux counts in ticks while a timer is set.
    seconds = max(time.process_time() - begin, LEAST_SECONDS)
    peak = tracemalloc.get_traced_memory()[1] if traced else 0
    with Path("stdout").open("rb") as file:
        output = file.read(MOST_OUTPUT)
    lines = b"\n".join(line.rstrip() for line in output.rstrip().splitlines())
    return {"outcome": outcome, "output": hashlib.sha256(lines).hexdigest(), "seconds": seconds, "peak": peak}
