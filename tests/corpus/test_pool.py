import os
import signal
from concurrent.futures import Future

from hf_qualcode.corpus.extraction import ScannedFile, ScanOptions, Task, read_file
from hf_qualcode.corpus.outcomes import INDEXED, FileRecord
from hf_qualcode.corpus.pool import MAX_AHEAD, _Pool, read_files_in_processes


def read_or_die(task: Task, options: ScanOptions) -> ScannedFile:
    if "deadly" in task.path:
        os.kill(os.getpid(), signal.SIGSEGV)
    return read_file(task, options)


def items_of(folder, names):
    for name in names:
        if name.endswith(".py"):
            (folder / name).write_text("def f(): pass\n")
            yield Task(0, name, str(folder / name), ""), None
        else:
            yield ScannedFile(FileRecord(0, name, outcome="unsupported"), []), None


def test_file_that_kills_its_process_is_named_and_the_rest_goes_on(tmp_path):
    names = [f"{number:03}.py" for number in range(60)]
    names[20], names[21], names[40] = "020-deadly.py", "note.txt", "040-deadly.py"
    results = list(
        read_files_in_processes(items_of(tmp_path, names), ScanOptions(), num_proc=2, read=read_or_die, min_files=5)
    )
    assert [item.record.path for item, _ in results] == names
    for item, _ in results:
        expected = "crashed" if "deadly" in item.record.path else INDEXED
        assert item.record.outcome == (expected if item.record.path.endswith(".py") else "unsupported")


def test_few_files_are_read_in_this_process(tmp_path):
    items = items_of(tmp_path, ["a.py", "b.txt", "c.py"])
    pids = []

    def read(task, options):
        pids.append(os.getpid())
        return read_file(task, options)

    results = list(read_files_in_processes(items, ScanOptions(), num_proc=4, read=read))
    assert [item.record.path for item, _ in results] == ["a.py", "b.txt", "c.py"]
    assert set(pids) == {os.getpid()}


def test_reading_can_be_left_early(tmp_path):
    items = items_of(tmp_path, [f"{number:03}.py" for number in range(100)])
    reading = read_files_in_processes(items, ScanOptions(), num_proc=2, min_files=5)
    assert next(reading)[0].record.path == "000.py"
    reading.close()


def test_few_items_wait_behind_a_file_to_read(tmp_path):
    (tmp_path / "a.py").write_text("def f(): pass\n")
    num_looked = 0

    def looked():
        nonlocal num_looked
        yield Task(0, "a.py", str(tmp_path / "a.py"), ""), None
        for number in range(10 * MAX_AHEAD):
            num_looked += 1
            yield ScannedFile(FileRecord(0, f"{number}", outcome="unsupported"), []), None

    reading = read_files_in_processes(looked(), ScanOptions(), num_proc=2)
    assert next(reading)[0].record.outcome == INDEXED
    assert num_looked <= MAX_AHEAD
    assert sum(1 for _ in reading) == 10 * MAX_AHEAD


def test_batch_cancelled_by_a_closing_executor_is_read_again(tmp_path):
    (tmp_path / "a.py").write_text("def f(): pass\n")
    cancelled = Future()
    cancelled.cancel()
    pool = _Pool(ScanOptions(), 1, read_file)
    try:
        (result,) = pool._results([Task(0, "a.py", str(tmp_path / "a.py"), "")], cancelled)
    finally:
        pool._close()
    assert result.record.outcome == INDEXED
