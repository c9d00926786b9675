"""Limited calls, and calls in a process of their own. Runs inside the sandbox; standard library alone."""

import json
import os
import resource
import select
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


WALL_FACTOR = 30


class TooLongError(BaseException):
    """A call ran over its CPU time. No `Exception`, so that fewer handlers of the program's take it for their own."""


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Ends what runs inside by `TooLongError` after that much CPU time, again and again if it is caught."""

    def end(*_):
        raise TooLongError

    signal.signal(signal.SIGPROF, end)
    signal.setitimer(signal.ITIMER_PROF, seconds, 0.1)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def in_child(function: Callable[[], Any], cpu_seconds: int) -> Any | None:
    """What a function returns (JSON-able), called in a fork of this process; `None` where that ends otherwise.

    Args:
        function (`Callable`): What to call.
        cpu_seconds (`int`): After that much CPU time the fork is ended. A busy machine is not its fault, so the wall
            time that it may take is many times as long, and only ends what waits for ever.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(reading)
            resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds))
            answer = json.dumps(function()).encode()
            while answer:
                answer = answer[os.write(writing, answer) :]
            code = 0
        finally:
            os._exit(code)
    os.close(writing)
    parts, deadline = [], time.monotonic() + WALL_FACTOR * cpu_seconds
    while True:
        ready, _, _ = select.select([reading], [], [], max(0.0, deadline - time.monotonic()))
        part = os.read(reading, 1 << 16) if ready else b""
        if not part:
            break
        parts.append(part)
    os.close(reading)
    # One that went over its time is ended; the others have ended or are about to.
    if time.monotonic() >= deadline:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if os.waitstatus_to_exitcode(status) != 0:
        return None
    try:
        return json.loads(b"".join(parts))
    except ValueError:
        return None
