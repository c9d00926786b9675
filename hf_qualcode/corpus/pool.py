"""Reads files in several processes, in order, and outlives a process that one of them brings down."""

import itertools
import multiprocessing
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool

from hf_qualcode.corpus.extraction import ScannedFile, ScanOptions, Task, read_file
from hf_qualcode.corpus.outcomes import FileRecord


BATCH_FILES = 16
BATCHES_AHEAD = 4  # a process; bounds the memory held by results that wait for their turn
# Starting processes costs about as much as reading this many files.
MIN_FILES = 128
# While they are counted no more than this many wait; where tasks are that rare, one process is enough for them.
MAX_AHEAD = 4_096

Looked = tuple[ScannedFile | Task, FileRecord | None]
Result = tuple[ScannedFile, FileRecord | None]
Reader = Callable[[Task, ScanOptions], ScannedFile]


def read_files_in_processes(
    items: Iterator[Looked], options: ScanOptions, num_proc: int, read: Reader = read_file, min_files: int = MIN_FILES
) -> Iterator[Result]:
    """Reads the files among `items` in `num_proc` processes, or in this one where there are few.

    Args:
        items (`Iterator`): Files to read (`Task`) and files done with, each with its old record.
        options ([`ScanOptions`]): Limits.
        num_proc (`int`): Number of processes.
        read (`Callable`, *optional*): Reads one file; can be pickled.
        min_files (`int`, *optional*, defaults to 128): Fewer files to read than this stay in this process.

    Yields:
        `tuple[ScannedFile, FileRecord | None]`: In the order of `items`.
    """
    ahead: deque[Looked] = deque()
    num_tasks = 0
    for item in items:
        ahead.append(item)
        num_tasks += isinstance(item[0], Task)
        if num_tasks >= min_files:
            yield from _Pool(options, num_proc, read).run(itertools.chain(ahead, items))
            return
        # Files already done with need not wait.
        while ahead and (not isinstance(ahead[0][0], Task) or len(ahead) > MAX_AHEAD):
            item, old = ahead.popleft()
            if isinstance(item, Task):
                num_tasks -= 1
                item = read(item, options)
            yield item, old
    for item, old in ahead:
        yield (read(item, options) if isinstance(item, Task) else item), old


def _read_batch(tasks: list[Task], options: ScanOptions, read: Reader) -> list[ScannedFile]:
    return [read(task, options) for task in tasks]


class _Pool:
    def __init__(self, options: ScanOptions, num_proc: int, read: Reader):
        self.options = options
        self.num_proc = num_proc
        self.read = read
        self.executor: ProcessPoolExecutor | None = None

    def run(self, items: Iterator[Looked]) -> Iterator[Result]:
        waiting: deque[tuple[list[Looked], Future | None]] = deque()
        try:
            while True:
                while len(waiting) < self.num_proc * BATCHES_AHEAD and (batch := self._next_batch(items)):
                    waiting.append((batch, self._submit([item for item, _ in batch if isinstance(item, Task)])))
                if not waiting:
                    return
                batch, future = waiting.popleft()
                tasks = [item for item, _ in batch if isinstance(item, Task)]
                results = iter(self._results(tasks, future))
                for item, old in batch:
                    yield (next(results) if isinstance(item, Task) else item), old
        finally:
            self._close()

    def _next_batch(self, items: Iterator[Looked]) -> list[Looked]:
        batch, num_tasks = [], 0
        for item in items:
            batch.append(item)
            num_tasks += isinstance(item[0], Task)
            if num_tasks == BATCH_FILES or len(batch) == 32 * BATCH_FILES:
                break
        return batch

    def _submit(self, tasks: list[Task]) -> Future | None:
        if not tasks:
            return None
        if self.executor is None:
            # `spawn` is safe where threads (torch, tokenizers) run already; `fork` is not.
            context = multiprocessing.get_context("spawn")
            self.executor = ProcessPoolExecutor(self.num_proc, mp_context=context)
        try:
            return self.executor.submit(_read_batch, tasks, self.options, self.read)
        except BrokenProcessPool:
            self._close()
            return self._submit(tasks)

    def _results(self, tasks: list[Task], future: Future | None) -> list[ScannedFile]:
        if future is None:
            return []
        try:
            return future.result()
        except (BrokenProcessPool, CancelledError):  # the latter where another batch had the executor closed
            self._close()
        # One file of the batches under way brought its process down. Each file alone shows which.
        return [self._read_alone(task) for task in tasks]

    def _read_alone(self, task: Task) -> ScannedFile:
        future = self._submit([task])
        try:
            return future.result()[0]
        except BrokenProcessPool:
            self._close()
            record = FileRecord(task.root, task.path, outcome="crashed", detail="the process reading it died")
            return ScannedFile(record, [])

    def _close(self) -> None:
        if self.executor is not None:
            self.executor.shutdown(wait=False, cancel_futures=True)
            self.executor = None
