"""The program that the sandbox runs: takes a job, compares each candidate in a process of its own, and reports.

The report begins with a word that only the caller and this program know, so that nothing else that a candidate
prints is taken for it. Standard library alone.
"""

import gc
import json
import os
import sys

from hf_qualcode.synthesis.verifying import function_runs, program_runs
from hf_qualcode.synthesis.verifying.runs import TooLongError, in_child


COMPARERS = {"function": function_runs.compare, "program": program_runs.compare}
CANDIDATE_SECONDS = 90


def main() -> None:
    """Reads the job from standard input (JSON), writes the report to standard output."""
    job = json.loads(sys.stdin.buffer.read())
    report = os.dup(1)
    os.set_inheritable(report, False)
    silence = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(silence, number)
    word = job.pop("word")
    candidates = job.pop("candidates")
    compare = COMPARERS[job["kind"]]
    # What is here now is no garbage, and need not be looked at for it again.
    gc.freeze()
    for number, (code, measure) in enumerate(candidates):
        os.chdir(os.environ.get("TMPDIR", "."))
        result = in_child(lambda code=code, measure=measure: _compare(compare, job, code, measure), CANDIDATE_SECONDS)
        line = json.dumps([number, result or {"outcome": "over_the_limits"}])
        os.write(report, f"{word} {line}\n".encode())


def _compare(compare, job: dict, code: str, measure: str) -> dict:
    try:
        return compare(job, code, measure)
    except (TooLongError, RecursionError, MemoryError):
        return {"outcome": "over_the_limits"}
