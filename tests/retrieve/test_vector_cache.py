"""The vector cache loses nothing it need not lose, and never gives a vector that was not put."""

import hashlib
import logging
import os
import signal
import sqlite3
import subprocess
import sys
import time

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


def test_encoders_do_not_mix(tmp_path):
    path = tmp_path / "vectors.sqlite"
    keys, vectors = keys_of("a"), vectors_of(1)
    VectorCache(path, "encoder", 8).put(keys, vectors)
    assert not VectorCache(path, "other", 8).get(keys)[0].any()
    assert not VectorCache(path, "encoder", 4).get(keys)[0].any()
    VectorCache(path, "other", 8).put(keys, -vectors)
    np.testing.assert_array_equal(VectorCache(path, "encoder", 8).get(keys)[1], vectors)


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


def test_unwritable_place_is_kept_in_memory_with_one_line(tmp_path, caplog):
    (tmp_path / "file").touch()
    cache = VectorCache(tmp_path / "file" / "vectors.sqlite", "encoder", 8, max_vectors=50)
    with caplog.at_level(logging.WARNING):
        for number in range(10):
            cache.put(keys_of(number), vectors_of(1, seed=number))
    assert len(caplog.records) == 1 and "memory" in caplog.text
    found, got = cache.get(keys_of(*range(10)))
    assert found.tolist() == [False] * 5 + [True] * 5  # bounded: a tenth of max_vectors
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


def test_oldest_go_beyond_the_limit(tmp_path):
    cache = VectorCache(tmp_path / "vectors.sqlite", "encoder", 8, max_vectors=10)
    cache.put(keys_of(*range(8)), vectors_of(8))
    cache.put(keys_of(*range(8, 14)), vectors_of(6))
    assert cache.get(keys_of(*range(14)))[0].tolist() == [False] * 4 + [True] * 10


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


def test_lookups_are_quick(tmp_path):
    cache = VectorCache(tmp_path / "vectors.sqlite", "encoder", 384)
    keys = keys_of(*range(2000))
    cache.put(keys, vectors_of(2000, 384))
    took = []
    for start in range(0, 1000, 100):
        begin = time.perf_counter()
        assert cache.get(keys[start : start + 200])[0].all()
        took.append(time.perf_counter() - begin)
    # 1 ms where it was measured; the bound is wide, for a busy machine, and still far from a scan.
    assert min(took) < 0.01
