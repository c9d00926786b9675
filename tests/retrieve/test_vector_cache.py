"""The vector cache loses nothing it need not lose, and never gives a vector that was not put."""

import contextlib
import gc
import hashlib
import logging
import os
import signal
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from hf_qualcode.retrieve.vector_cache import VectorCache


def keys_of(*names):
    return [hashlib.sha256(str(name).encode()).digest() for name in names]


def vectors_of(count, dimension=8, seed=0):
    return np.random.default_rng(seed).standard_normal((count, dimension)).astype(np.float32)


def test_what_was_put_is_found_in_the_order_asked(tmp_path):
    keys, vectors = keys_of(*range(1200)), vectors_of(1200)
    VectorCache(tmp_path / "new" / "vectors.sqlite", "encoder", 8).put(keys, vectors)
    asked = [keys[7], *keys_of("absent"), keys[3], keys[7], keys[1199]]
    found, got = VectorCache(tmp_path / "new" / "vectors.sqlite", "encoder", 8).get(asked)
    assert found.tolist() == [True, False, True, True, True]
    np.testing.assert_array_equal(got, vectors[[7, 0, 3, 7, 1199]] * found[:, None])
    found, got = VectorCache(tmp_path / "vectors.sqlite", "encoder", 8).get([])
    assert found.shape == (0,) and got.shape == (0, 8)


def test_a_file_of_another_encoder_is_made_anew(tmp_path, caplog):
    path = tmp_path / "vectors.sqlite"
    keys, vectors = keys_of("a"), vectors_of(1)
    for fingerprint, dimension in (("other", 8), ("encoder", 4), ("encoder", 8)):
        with VectorCache(path, fingerprint, dimension) as cache:
            assert not cache.get(keys)[0].any()
            cache.put(keys, vectors[:, :dimension])
    np.testing.assert_array_equal(VectorCache(path, "encoder", 8).get(keys)[1], vectors)
    assert [record.message.count("another encoder") for record in caplog.records] == [1, 1]


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_values_that_are_not_finite_are_refused(tmp_path, bad):
    cache = VectorCache(tmp_path / "vectors.sqlite", "encoder", 2)
    with pytest.raises(ValueError, match="NaN"):
        cache.put(keys_of("a"), np.array([[1.0, bad]], dtype=np.float32))
    with pytest.raises(ValueError, match="shape"):
        cache.put(keys_of("a"), np.zeros((1, 3), dtype=np.float32))
    assert not cache.get(keys_of("a"))[0].any()


def test_deleting_the_file_loses_vectors_but_not_the_cache(tmp_path):
    cache = VectorCache(tmp_path / "vectors.sqlite", "encoder", 8)
    cache.put(keys_of("a"), vectors_of(1))
    cache.path.unlink()
    assert not cache.get(keys_of("a"))[0].any()
    cache.put(keys_of("b"), vectors_of(1))
    assert VectorCache(cache.path, "encoder", 8).get(keys_of("a", "b"))[0].tolist() == [False, True]


@pytest.mark.parametrize("damage", [b"not a database at all", b"SQLite format 3\x00" + b"\xff" * 5000, b""])
def test_damaged_file_is_made_anew(tmp_path, caplog, damage):
    path = tmp_path / "vectors.sqlite"
    path.write_bytes(damage)
    cache = VectorCache(path, "encoder", 8)
    assert not cache.get(keys_of("a"))[0].any()
    cache.put(keys_of("a"), vectors_of(1))
    assert VectorCache(path, "encoder", 8).get(keys_of("a"))[0].all()
    assert len(caplog.records) == (1 if damage else 0)


def test_truncated_file_is_made_anew(tmp_path):
    path = tmp_path / "vectors.sqlite"
    VectorCache(path, "encoder", 64).put(keys_of(*range(500)), vectors_of(500, 64))
    os.truncate(path, path.stat().st_size // 2)
    cache = VectorCache(path, "encoder", 64)
    found, got = cache.get(keys_of(*range(500)))
    np.testing.assert_array_equal(got[found], vectors_of(500, 64)[found])
    cache.put(keys_of("new"), vectors_of(1, 64))
    assert VectorCache(path, "encoder", 64).get(keys_of("new"))[0].all()


def test_changed_bytes_of_a_vector_count_as_absent(tmp_path):
    path = tmp_path / "vectors.sqlite"
    VectorCache(path, "encoder", 8).put(keys_of("a", "b"), vectors_of(2))
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE vectors SET vector = zeroblob(36) WHERE key = ?", keys_of("a"))
    assert VectorCache(path, "encoder", 8).get(keys_of("a", "b"))[0].tolist() == [False, True]


def test_foreign_layout_is_made_anew(tmp_path, caplog):
    path = tmp_path / "vectors.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE vectors (something TEXT)")
    VectorCache(path, "encoder", 8).put(keys_of("a"), vectors_of(1))
    assert VectorCache(path, "encoder", 8).get(keys_of("a"))[0].all()
    assert "layout version" in caplog.text


def test_file_held_by_another_process_is_not_dropped(tmp_path, caplog, monkeypatch):
    path = tmp_path / "vectors.sqlite"
    VectorCache(path, "encoder", 8).put(keys_of("a"), vectors_of(1))
    monkeypatch.setattr("hf_qualcode.retrieve.vector_cache._SECONDS_TO_WAIT", 0.05)
    with sqlite3.connect(path, isolation_level=None) as holder:
        holder.execute("BEGIN EXCLUSIVE")
        cache = VectorCache(path, "encoder", 8)
        cache.put(keys_of("b"), vectors_of(1))
        assert cache.get(keys_of("a", "b"))[0].tolist() == [False, True]
        holder.execute("ROLLBACK")
    assert cache.get(keys_of("a", "b"))[0].all()
    assert len(caplog.records) == 1


def test_unwritable_place_is_kept_in_memory_with_one_line(tmp_path, caplog, monkeypatch):
    (tmp_path / "file").touch()
    cache = VectorCache(tmp_path / "file" / "vectors.sqlite", "encoder", 8)
    monkeypatch.setattr("hf_qualcode.retrieve.vector_cache._MOST_BYTES_IN_MEMORY", 5 * cache._bytes_a_row)
    with caplog.at_level(logging.WARNING):
        for number in range(10):
            cache.put(keys_of(number), vectors_of(1, seed=number))
    assert len(caplog.records) == 1 and "memory" in caplog.text
    found, got = cache.get(keys_of(*range(10)))
    assert found.tolist() == [False] * 5 + [True] * 5  # bounded
    np.testing.assert_array_equal(got[9:], vectors_of(1, seed=9))


def test_read_only_file_is_read(tmp_path, monkeypatch):
    path = tmp_path / "vectors.sqlite"
    VectorCache(path, "encoder", 8).put(keys_of("a"), vectors_of(1))
    cache = VectorCache(path, "encoder", 8)
    # Permissions do not bind root, so the file is opened as it would be where they do.
    opened = cache._open

    def refuse_writing(uri):
        if "mode=rwc" in uri:
            raise PermissionError("read-only")
        opened(uri)

    monkeypatch.setattr(cache, "_open", refuse_writing)
    cache.put(keys_of("b"), vectors_of(1, seed=1))
    assert cache.get(keys_of("a", "b"))[0].all()
    assert not VectorCache(path, "encoder", 8).get(keys_of("b"))[0].any()


def test_oldest_go_beyond_the_bound(tmp_path):
    keys, vectors = keys_of(*range(600)), vectors_of(600, 256)
    with VectorCache(tmp_path / "vectors.sqlite", "encoder", 256, max_bytes=300_000) as cache:
        for start in range(0, 600, 50):
            cache.put(keys[start : start + 50], vectors[start : start + 50])
        found, got = cache.get(keys)
    assert 150 < found.sum() < 300 and found[-100:].all() and (np.diff(found.astype(int)) >= 0).all()
    np.testing.assert_array_equal(got[found], vectors[found])
    assert cache.path.stat().st_size < 400_000


def test_without_a_bound_all_stay(tmp_path, monkeypatch):
    monkeypatch.setattr("hf_qualcode.retrieve.vector_cache._ROWS_A_TRANSACTION", 100)
    with VectorCache(tmp_path / "vectors.sqlite", "encoder", 8, max_bytes=None) as cache:
        cache.put(keys_of(*range(1000)), vectors_of(1000))
        assert cache.get(keys_of(*range(1000)))[0].all()


def test_discarding_some(tmp_path):
    with VectorCache(tmp_path / "vectors.sqlite", "encoder", 8) as cache:
        cache.put(keys_of(*range(1200)), vectors_of(1200))
        cache.discard(keys_of(*range(1000), "absent"))
        assert cache.get(keys_of(*range(1200)))[0].tolist() == [False] * 1000 + [True] * 200
        cache.discard([])
        assert cache.get(keys_of(1199))[0].all()


def test_discarding_all_removes_the_file(tmp_path, caplog):
    with VectorCache(tmp_path / "new" / "vectors.sqlite", "encoder", 8) as cache:
        cache.discard()
        assert not cache.path.parent.exists()
        cache.put(keys_of("a"), vectors_of(1))
        cache.discard()
        assert list(cache.path.parent.iterdir()) == []
        cache.put(keys_of("b"), vectors_of(1))
        assert cache.get(keys_of("a", "b"))[0].tolist() == [False, True]
    assert not caplog.records


def test_discarding_what_another_process_writes_leaves_it(tmp_path, monkeypatch):
    path = tmp_path / "vectors.sqlite"
    monkeypatch.setattr("hf_qualcode.retrieve.vector_cache._SECONDS_TO_WAIT", 0.05)
    with VectorCache(path, "encoder", 8) as cache:
        cache.put(keys_of("a"), vectors_of(1))
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as holder:
            holder.execute("BEGIN IMMEDIATE")
            cache.discard()
            holder.execute("COMMIT")
        assert cache.get(keys_of("a"))[0].all()


def test_memory_is_discarded_too(tmp_path):
    (tmp_path / "file").touch()
    with VectorCache(tmp_path / "file" / "vectors.sqlite", "encoder", 8) as cache:
        cache.put(keys_of("a", "b"), vectors_of(2))
        cache.discard(keys_of("a"))
        assert cache.get(keys_of("a", "b"))[0].tolist() == [False, True]
        cache.discard()
        assert not cache.get(keys_of("b"))[0].any()


def test_connections_are_closed(tmp_path):
    with VectorCache(tmp_path / "vectors.sqlite", "encoder", 8) as cache:
        cache.put(keys_of("a"), vectors_of(1))
        in_block = cache._connection
    assert cache.get(keys_of("a"))[0].all()  # opened again
    forgotten = cache._connection
    del cache
    gc.collect()
    for connection in (in_block, forgotten):
        with pytest.raises(sqlite3.ProgrammingError, match="closed"):
            connection.execute("SELECT 1")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_has_its_own_connection(tmp_path):
    program = """
import os, sys, hashlib, threading, numpy as np
from pathlib import Path
from hf_qualcode.retrieve.vector_cache import VectorCache
key = lambda name: hashlib.sha256(name.encode()).digest()
one = np.ones((1, 8), dtype=np.float32)
cache = VectorCache(Path(sys.argv[1]), "encoder", 8)
cache.put([key("parent")], one)
cache._lock.acquire()  # as another thread of the parent may hold it, in the middle of a write
cache._connection.execute("BEGIN IMMEDIATE")
cache._connection.execute("INSERT INTO vectors (key, vector) VALUES (x'00', x'00')")
child = os.fork()
if child == 0:
    assert cache._connection is None
    assert cache.get([key("parent")])[0].all()
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
cache._connection.execute("COMMIT")
cache._lock.release()
child = os.fork()
if child == 0:
    cache.put([key("child")], one)
    sys.exit()
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
print(cache.get([key("parent"), key("child"), b"\\0"])[0].tolist())
"""
    command = [sys.executable, "-c", program, str(tmp_path / "vectors.sqlite")]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (run.stdout, run.stderr) == ("[True, True, False]\n", "")


def test_many_threads_at_once(tmp_path):
    keys, vectors = keys_of(*range(400)), vectors_of(400)

    def put_and_get(row):
        cache.put(keys[row : row + 1], vectors[row : row + 1])
        return cache.get(keys[row : row + 1])[1][0]

    with VectorCache(tmp_path / "vectors.sqlite", "encoder", 8) as cache, ThreadPoolExecutor(8) as pool:
        np.testing.assert_array_equal(np.stack(list(pool.map(put_and_get, range(400)))), vectors)
        assert cache.get(keys)[0].all()


WRITER = """
import sys, hashlib, numpy as np
from pathlib import Path
from hf_qualcode.retrieve.vector_cache import VectorCache
cache, start = VectorCache(Path(sys.argv[1]), "encoder", 8), int(sys.argv[2])
for number in range(start, start + int(sys.argv[3])):
    key = hashlib.sha256(str(number).encode()).digest()
    cache.put([key], np.full((1, 8), number, dtype=np.float32))
    print(number, flush=True)
"""


def start_writer(path, start, count):
    arguments = [sys.executable, "-c", WRITER, str(path), str(start), str(count)]
    return subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)


def test_many_processes_at_once(tmp_path):
    path = tmp_path / "vectors.sqlite"
    writers = [start_writer(path, 40 * number, 40) for number in range(4)]
    assert [writer.communicate(timeout=60) and writer.returncode for writer in writers] == [0] * 4
    found, vectors = VectorCache(path, "encoder", 8).get(keys_of(*range(160)))
    assert found.all() and vectors[:, 0].tolist() == list(range(160))


def test_killed_writer_leaves_what_it_had_put(tmp_path):
    path = tmp_path / "vectors.sqlite"
    writer = start_writer(path, 0, 10**6)
    for _ in range(20):
        last = int(writer.stdout.readline())
    writer.send_signal(signal.SIGKILL)
    writer.communicate()
    found, vectors = VectorCache(path, "encoder", 8).get(keys_of(*range(last + 1)))
    assert found.all() and vectors[:, 0].tolist() == list(range(last + 1))
