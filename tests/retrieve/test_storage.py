"""A store is always whole: what a reader sees after writers that finish, fail, are killed, or write at once."""

import json
import signal
import subprocess
import sys
import threading
import time

import pytest

from hf_qualcode.retrieve.storage import (
    DamagedStoreError,
    MissingStoreError,
    StoreError,
    StoreWriter,
    holds_nothing_else,
    open_store,
    read_manifest,
    writer_lock,
)


KIND = "hf-qualcode index"


def write(directory, text, **content):
    with writer_lock(directory), StoreWriter(directory, KIND) as writer:
        writer.add("units", ".parquet", lambda path: path.write_text(text))
        writer.add("bm25", "", lambda path: (path / "a.npy").write_text(text))
        writer.commit(**content)


def read(directory):
    return open_store(directory, KIND, lambda manifest, parts: (manifest, parts["units"].read_text()))


def test_what_was_written_is_read_and_nothing_else_stays(tmp_path):
    store = tmp_path / "new" / "store"
    write(store, "one", note=1)
    write(store, "two", note=2)
    manifest, text = read(store)
    assert (manifest["note"], text) == (2, "two")
    names = sorted(entry.name.split("-")[0] for entry in store.iterdir())
    assert names == [".lock", "bm25", "manifest.json", "units"]


def test_equal_content_gives_equal_manifests(tmp_path):
    write(tmp_path / "a", "same")
    write(tmp_path / "b", "other")
    write(tmp_path / "b", "same")
    assert (tmp_path / "a/manifest.json").read_bytes() == (tmp_path / "b/manifest.json").read_bytes()


def test_a_writer_that_fails_leaves_the_old_state(tmp_path):
    write(tmp_path, "old")

    def fail(path):
        path.write_text("half")
        raise RuntimeError("disk full")

    with pytest.raises(RuntimeError), writer_lock(tmp_path), StoreWriter(tmp_path, KIND) as writer:
        writer.add("units", ".parquet", fail)
    assert read(tmp_path)[1] == "old"
    write(tmp_path, "new")
    assert read(tmp_path)[1] == "new"


@pytest.mark.parametrize("moment", ["before a part", "after a part", "after the manifest"])
def test_sigkill_at_any_moment_leaves_a_whole_store_and_the_next_writer_heals(tmp_path, moment):
    write(tmp_path, "old")
    program = f"""
import os, signal, sys
from pathlib import Path
from hf_qualcode.retrieve import storage
die = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
with storage.writer_lock(Path(sys.argv[1])), storage.StoreWriter(Path(sys.argv[1]), {KIND!r}) as writer:
    if {moment!r} == "before a part":
        writer.add("units", ".parquet", lambda path: (path.write_text("ne"), die()))
    writer.add("units", ".parquet", lambda path: path.write_text("new"))
    if {moment!r} == "after a part":
        die()
    storage._remove = die  # the first thing removed after the manifest was replaced
    writer.commit()
"""
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert read(tmp_path)[1] == ("new" if moment == "after the manifest" else "old")
    write(tmp_path, "healed")
    assert read(tmp_path)[1] == "healed"
    assert not [entry for entry in tmp_path.iterdir() if entry.name.startswith(".tmp-")]
    assert len(list(tmp_path.iterdir())) == 4


def test_a_first_writer_that_was_killed_leaves_a_folder_that_counts_as_empty(tmp_path):
    write(tmp_path, "text")
    (tmp_path / "manifest.json").unlink()
    (tmp_path / ".tmp-x").mkdir()
    (tmp_path / "on-demand").mkdir()
    assert holds_nothing_else(tmp_path)
    (tmp_path / "thesis.tex").touch()
    assert not holds_nothing_else(tmp_path)


def test_missing_foreign_newer_and_damaged_stores_are_refused_in_one_line(tmp_path):
    with pytest.raises(MissingStoreError, match="no index in"):
        read(tmp_path / "nowhere")
    write(tmp_path, "text")
    manifest_file = tmp_path / "manifest.json"
    manifest = json.loads(manifest_file.read_text())

    def refused(match, error=DamagedStoreError, **changes):
        manifest_file.write_text(json.dumps(manifest | changes))
        with pytest.raises(error, match=match) as caught:
            read(tmp_path)
        assert "\n" not in str(caught.value)

    refused("is not an hf-qualcode index", StoreError, format="tantivy")
    refused("written in format 2", StoreError, format_version=2)
    refused("written in format None", StoreError, format_version=None)
    refused("list of parts", parts=None)
    refused("list of parts", parts={"units": {"file": "../../etc/passwd", "bytes": 1, "sha256": ""}})
    refused("list of parts", parts={"units": {"file": "x"}})
    elsewhere = manifest["parts"]["units"] | {"file": "units-" + "0" * 16}
    refused("is missing", parts=manifest["parts"] | {"units": elsewhere})
    for damage in (b"", b"[]", b"{", b"\xff\xfe", b"[" * 100_000):
        manifest_file.write_bytes(damage)
        with pytest.raises(DamagedStoreError, match="damaged"):
            read(tmp_path)


def test_a_flipped_byte_or_a_cut_part_is_found(tmp_path):
    write(tmp_path, "some text")
    part = next(tmp_path.glob("units-*"))
    part.write_text("some texs")
    with pytest.raises(DamagedStoreError, match="content differs"):
        read(tmp_path)
    part.write_text("some")
    with pytest.raises(DamagedStoreError, match="4 bytes, 9 expected"):
        open_store(tmp_path, KIND, lambda *_: None, content=False)
    write(tmp_path, "some text")  # the damaged file has the name of the new one: it must not be kept
    assert read(tmp_path)[1] == "some text"


def test_a_second_writer_waits_or_fails_in_one_line(tmp_path):
    waited = []
    with writer_lock(tmp_path):
        program = (
            "import sys; from pathlib import Path; from hf_qualcode.retrieve.storage import writer_lock\n"
            "with writer_lock(Path(sys.argv[1]), wait_s=0.2): pass"
        )
        done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True)
        assert done.returncode == 1
        assert "is being written by another process" in done.stderr

    release = threading.Event()

    def hold():
        with writer_lock(tmp_path):
            held.set()
            release.wait(10)

    held = threading.Event()
    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(10)
    threading.Timer(0.3, release.set).start()
    with writer_lock(tmp_path, on_wait=lambda: waited.append(time.monotonic())):
        assert waited
    thread.join()


def test_readers_see_one_state_while_writers_replace_it(tmp_path):
    """Each state has both parts equal; a reader that mixed two states would see them differ."""
    write(tmp_path, "0")
    program = f"""
import sys
from pathlib import Path
from hf_qualcode.retrieve.storage import StoreWriter, writer_lock
for i in range(60):
    with writer_lock(Path(sys.argv[1])), StoreWriter(Path(sys.argv[1]), {KIND!r}) as writer:
        writer.add("units", ".parquet", lambda path: path.write_text(str(i)))
        writer.add("bm25", "", lambda path: (path / "a.npy").write_text(str(i)))
        writer.commit()
"""
    writers = [subprocess.Popen([sys.executable, "-c", program, str(tmp_path)]) for _ in range(2)]
    states = 0
    while any(writer.poll() is None for writer in writers):
        seen = open_store(
            tmp_path, KIND, lambda _, parts: (parts["units"].read_text(), (parts["bm25"] / "a.npy").read_text())
        )
        assert seen[0] == seen[1]
        states += 1
    assert all(writer.returncode == 0 for writer in writers)
    assert states > 10


def test_a_folder_that_cannot_be_written_is_one_clear_error(tmp_path):
    (tmp_path / "file").touch()  # in the way of a folder, for root as well
    with pytest.raises(StoreError, match="cannot write to") as caught, writer_lock(tmp_path / "file" / "store"):
        pass
    assert "\n" not in str(caught.value)


def test_read_manifest_says_what_a_file_in_place_of_a_folder_is(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(MissingStoreError):
        read_manifest(tmp_path / "file", KIND)
