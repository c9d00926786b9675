"""Tasks in processes of their own, none of which can hang or be lost unseen."""

import multiprocessing
import os
import signal
import sys
import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

from hf_qualcode.types import QualcodeError


SECONDS_TO_END = 5.0

Opener = Callable[..., AbstractContextManager[Callable[[Any], Any]]]


def run_tasks(opener: Opener, arguments: tuple, tasks: Sequence[Any], num_proc: int) -> Iterator[Any]:
    """Runs tasks in processes, each as soon as a process is free.

    Args:
        opener (`Callable`): Takes `arguments` and returns a context manager that gives the function to call with each
            task. It is entered once a process, so what is dear to start is started there. Can be pickled.
        arguments (`tuple`): Can be pickled.
        tasks (`Sequence`): In the order they are begun; put the longest first.
        num_proc (`int`): Number of processes.

    Yields:
        What the function returned, in the order of completion.

    Raises:
        [`QualcodeError`]: A task raised one, or a process died.
    """
    waiting = deque(tasks)
    # `spawn` is safe where threads (torch, tokenizers) run already; `fork` is not.
    context = multiprocessing.get_context("spawn")
    processes: dict[Connection, BaseProcess] = {}
    under_way: dict[Connection, Any] = {}
    try:
        for _ in range(min(num_proc, len(tasks))):
            here, there = context.Pipe()
            process = context.Process(target=_serve, args=(there, opener, arguments), daemon=True)
            process.start()
            there.close()  # so that the pipe ends when the process does
            processes[here] = process
            under_way[here] = waiting.popleft()
            _send(here, under_way[here])
        while under_way:
            for connection in wait(list(under_way)):
                task = under_way.pop(connection)
                result = _receive(connection, processes[connection], task)
                if waiting:
                    under_way[connection] = waiting.popleft()
                    _send(connection, under_way[connection])
                yield result
    finally:
        _end(processes)


def _send(connection: Connection, task: Any) -> None:
    with suppress(BrokenPipeError, ConnectionResetError):  # the process died; receiving says so
        connection.send(task)


def _receive(connection: Connection, process: BaseProcess, task: Any) -> Any:
    try:
        kind, value = connection.recv()
    except (EOFError, ConnectionResetError) as error:
        process.join(SECONDS_TO_END)
        code = process.exitcode
        how = f"was ended by {signal.Signals(-code).name}" if code is not None and code < 0 else f"ended with {code}"
        raise QualcodeError(
            f"a worker process {how} while it worked on {task} (out of memory?); what was finished is kept: run the "
            "same command again, with fewer processes if memory is short"
        ) from error
    if kind == "done":
        return value
    if kind == "failed":
        raise value
    raise RuntimeError(f"a worker process met an error in this package while it worked on {task}\n{value}")


def _end(processes: dict[Connection, BaseProcess]) -> None:
    for process in processes.values():
        process.terminate()
    for connection, process in processes.items():
        connection.close()
        process.join(SECONDS_TO_END)
        if process.is_alive():
            process.kill()
            process.join()


def _end_with_parent() -> None:
    """Ends this process as soon as the other one is gone.

    One that was killed holds its locks no more: the next run may begin at once, and would meet what a worker that
    went on with its task still writes.
    """
    wait([multiprocessing.parent_process().sentinel])
    os._exit(1)


def _serve(connection: Connection, opener: Opener, arguments: tuple) -> None:
    """A worker process: takes tasks until the pipe ends, as it does when the other process is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the other process ends this one
    told_to_end = threading.Event()

    def end(*_) -> None:
        told_to_end.set()
        sys.exit(0)  # leaves the blocks that close what was opened

    signal.signal(signal.SIGTERM, end)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        _work(connection, opener, arguments)
    except BaseException:
        if not told_to_end.is_set():
            raise
        # Where the signal struck, a lock of `logging` may be half taken: what comes of that is no news.
        os._exit(0)


def _work(connection: Connection, opener: Opener, arguments: tuple) -> None:
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        try:
            with opener(*arguments) as function:
                while True:
                    connection.send(("done", function(connection.recv())))
        except QualcodeError as error:
            connection.send(("failed", error))
        except (EOFError, BrokenPipeError, ConnectionResetError):
            raise
        except Exception:  # told to the other process, which raises it
            connection.send(("error", traceback.format_exc()))
