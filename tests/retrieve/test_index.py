"""`CodeIndex`: what is built is found again, an update equals a fresh build, and nothing breaks it on the way."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from hf_qualcode.retrieve.index import CodeIndex
from hf_qualcode.retrieve.storage import DamagedStoreError, MissingStoreError, StoreError
from hf_qualcode.types import QualcodeError, UsageError


def write(root, **files):
    for name, text in files.items():
        path = root / name.replace("__", "/").replace("_py", ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def function(name, body="return 1"):
    return f"def {name}(value):\n    {body}\n"


@pytest.fixture
def code(tmp_path):
    root = tmp_path / "code"
    write(
        root,
        a_py=function("read_lines") + "\n\n" + function("write_lines"),
        pkg__b_py="class Queue:\n    '''First in.'''\n\n    def put(self, item):\n        self.items.append(item)\n",
        pkg__c_py=function("read_lines"),
    )
    return root


def state(index):
    """What makes two indexes equal: the content of every part."""
    return {name: part["sha256"] for name, part in index.manifest["parts"].items()}


def test_units_come_back_as_they_were_extracted(code, tmp_path):
    index = CodeIndex.build([code], tmp_path / "index", "none")
    units = [index.unit(row) for row in range(len(index))]
    assert [(u.path, u.name, u.start_line, u.end_line) for u in units] == [
        ("a.py", "read_lines", 1, 2),
        ("a.py", "write_lines", 5, 6),
        ("pkg/b.py", "Queue", 1, 2),
        ("pkg/b.py", "Queue.put", 4, 5),
        ("pkg/c.py", "read_lines", 1, 2),
    ]
    for unit in units:
        lines = (code / unit.path).read_text().split("\n")
        assert unit.code == "\n".join(lines[unit.start_line - 1 : unit.end_line])
    assert index.roots == [str(code)]
    assert index.report["seen"] == index.report["indexed"] == 3
    assert index.codes([3]) == [units[3].code]
    # Equal text, equal hash: the copies can be found.
    hashes = [text_hash.tobytes() for text_hash in index.text_hashes]
    assert hashes[0] == hashes[4]
    assert len(set(hashes)) == 4
    with pytest.raises(IndexError, match="row 5 of an index of 5 units"):
        index.unit(5)


def test_a_refresh_with_nothing_changed_writes_nothing(code, tmp_path):
    index = CodeIndex.build([code], tmp_path / "index", "none")
    before = {entry.name: entry.stat().st_mtime_ns for entry in (tmp_path / "index").iterdir() if entry.name[0] != "."}
    index.update()
    CodeIndex.build([code], tmp_path / "index", "none")
    after = {entry.name: entry.stat().st_mtime_ns for entry in (tmp_path / "index").iterdir() if entry.name[0] != "."}
    assert before == after


def test_files_written_just_before_a_scan_are_vouched_for_by_a_later_one(code, tmp_path, monkeypatch):
    """Within two seconds of its writing a file could change again under one time stamp, so it is read again; after
    that the next refresh notes that it need not be any more."""
    from hf_qualcode.corpus import folder

    read = []
    original = folder.read_file
    monkeypatch.setattr(folder, "read_file", lambda task, options: read.append(task.path) or original(task, options))
    index = CodeIndex.build([code], tmp_path / "index", "none")
    for file in code.rglob("*.py"):
        os.utime(file, ns=(0, time.time_ns() - 1_500_000_000))
    read.clear()
    index.update()
    assert len(read) == 3
    time.sleep(0.6)
    for expected in (3, 0, 0):
        read.clear()
        index.update()
        assert len(read) == expected


def test_encoder_none_lets_vectors_go_and_a_refresh_does_not(code, tmp_path, tiny_bert):
    index = CodeIndex.build([code], tmp_path / "index", "none")
    index.add_vectors(str(tiny_bert))
    assert len(index.update().vector_sets) == 1
    assert len(CodeIndex.build([code], tmp_path / "index", str(tiny_bert)).vector_sets) == 1
    index = CodeIndex.build([code], tmp_path / "index", "none")
    assert index.vector_sets == []
    assert not list((tmp_path / "index").glob("vectors*"))


def change_at_random(root, generator):
    files = sorted(root.rglob("*.py"))
    name = f"f{generator.randrange(40)}"
    kind = generator.choice(["add", "edit", "delete", "rename", "shrink", "empty", "touch", "break"])
    file = generator.choice(files) if files else root / "first.py"
    if kind == "add" or not files:
        folder = root / generator.choice(["", "pkg", "pkg/deep"])
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.py").write_text(function(name) + "\n\n" + function(f"{name}_too", "return value"))
    elif kind == "edit":
        file.write_text(f"# a line above\n{file.read_text()}\n\n{function(name, 'return [value]')}")
    elif kind == "delete":
        file.unlink()
    elif kind == "rename":
        file.rename(file.with_name(f"{name}_moved.py"))
    elif kind == "shrink":
        file.write_text(function(name))
    elif kind == "empty":
        file.write_text("")
    elif kind == "touch":
        os.utime(file)
    else:
        file.write_bytes(b"\0binary")


@pytest.mark.parametrize("seed", range(4))
def test_an_update_equals_a_fresh_index_part_for_part(tmp_path, seed, tiny_bert):
    """Random changes of every kind; after each round all parts have the content of an index made from nothing."""
    generator = random.Random(seed)
    root = tmp_path / "code"
    root.mkdir()
    for _ in range(6):
        change_at_random(root, generator)
    index = CodeIndex.build([root], tmp_path / "index", str(tiny_bert))
    for round_ in range(4):
        for _ in range(generator.randrange(1, 5)):
            change_at_random(root, generator)
        index.update()
        fresh = CodeIndex.build([root], tmp_path / f"fresh{round_}", str(tiny_bert))
        vectors = [name for name in state(index) if name.startswith("vectors_")]
        assert {k: v for k, v in state(index).items() if k not in vectors} == {
            k: v for k, v in state(fresh).items() if k not in vectors
        }
        assert index.vector_sets == fresh.vector_sets
        assert index.report == fresh.report
        if not len(index):
            continue
        (info,), (fresh_info,) = index.vector_sets, fresh.vector_sets
        # A text encoded among other texts may differ in the last bits of a float.
        assert index.vectors(info).matrix == pytest.approx(fresh.vectors(fresh_info).matrix, abs=1e-5)
        assert (index.vectors(info).row_of_unit == fresh.vectors(fresh_info).row_of_unit).all()


def test_only_changed_units_are_encoded(code, tmp_path, tiny_bert, encoded):
    index = CodeIndex.build([code], tmp_path / "index", str(tiny_bert))
    assert len(encoded) == 4  # five units, two of them the same text
    encoded.clear()
    (code / "pkg/c.py").write_text("import os\n\n\n" + function("read_lines") + "\n\n" + function("new"))
    (code / "a.py").rename(code / "renamed.py")
    index.update()
    assert encoded == [function("new").rstrip()]
    assert index.vector_sets[0].complete


def test_units_of_deleted_renamed_shrunk_and_emptied_files_go(code, tmp_path):
    index = CodeIndex.build([code], tmp_path / "index", "none")
    (code / "pkg/b.py").unlink()
    (code / "pkg/c.py").write_text("")
    (code / "a.py").write_text(function("read_lines"))
    index.update()
    assert index.table["id"].to_pylist() == ["a.py::read_lines"]
    shutil.rmtree(code / "pkg")
    (code / "a.py").unlink()
    index.update()
    assert len(index) == 0
    assert len(CodeIndex.load(tmp_path / "index")) == 0


def test_a_changed_scope_is_a_new_state_of_the_same_index(code, tmp_path):
    index = CodeIndex.build([code], tmp_path / "index", "none")
    index = CodeIndex.build([code / "pkg", code / "a.py"], tmp_path / "index", "none")
    assert index.roots == [str(code / "pkg"), str(code)]
    assert index.table["id"].to_pylist() == [
        "b.py::Queue",
        "b.py::Queue.put",
        "c.py::read_lines",
        "@2/a.py::read_lines",
        "@2/a.py::write_lines",
    ]
    index = CodeIndex.build([code], tmp_path / "index", "none", exclude=["pkg/"])
    assert set(index.table["path"].to_pylist()) == {"a.py"}
    assert index.update().report["skipped"]["ignored"]["count"] == 1


def test_an_index_inside_the_folder_it_indexes_does_not_index_itself(code):
    index = CodeIndex.build([code], code / "index", "none")
    assert index.report["seen"] == 3
    before = state(index)
    assert state(index.update()) == before


def test_a_folder_with_something_else_in_it_is_never_written_to(code, tmp_path):
    target = tmp_path / "thesis"
    write(target, chapter_py="x = 1")
    with pytest.raises(StoreError, match="not empty and holds no index"):
        CodeIndex.build([code], target, "none")
    assert [entry.name for entry in target.iterdir()] == ["chapter.py"]
    (target / "manifest.json").write_text('{"format": "web app"}')
    with pytest.raises(StoreError, match="is not an hf-qualcode index"):
        CodeIndex.build([code], target, "none")
    with pytest.raises(StoreError, match="is a file"):
        CodeIndex.build([code], target / "chapter.py", "none")


def test_a_newer_index_is_neither_read_nor_overwritten(code, tmp_path):
    CodeIndex.build([code], tmp_path / "index", "none")
    manifest = tmp_path / "index/manifest.json"
    manifest.write_text(manifest.read_text().replace('"format_version": 1', '"format_version": 99'))
    before = manifest.read_text()
    for call in (
        lambda: CodeIndex.load(tmp_path / "index"),
        lambda: CodeIndex.build([code], tmp_path / "index", "none"),
    ):
        with pytest.raises(StoreError, match="format 99 by hf-qualcode .*: update hf-qualcode"):
            call()
    assert manifest.read_text() == before


def test_every_damaged_part_is_refused_and_an_index_run_makes_it_anew(code, tmp_path, tiny_bert, caplog):
    index = CodeIndex.build([code], tmp_path / "index", str(tiny_bert))
    whole = state(index)
    files = [f for f in (tmp_path / "index").rglob("*") if f.is_file() and f.suffix not in ("", ".sqlite")]
    assert len(files) >= 7
    for file in files:
        content = file.read_bytes()
        for damaged in (content[: len(content) // 2], content[:-1] + bytes([content[-1] ^ 1]), None):
            if damaged is None:
                file.unlink()
            else:
                file.write_bytes(damaged)
            with pytest.raises(StoreError) as caught:
                index = CodeIndex.load(tmp_path / "index")
                # A search does not read the tokens; whoever does finds the damage.
                assert file.parent.name.startswith("tokens")
                _ = index.tokens
            assert "\n" not in str(caught.value)
            absent = file.name == "manifest.json" and damaged is None
            assert isinstance(caught.value, MissingStoreError if absent else DamagedStoreError)
            file.write_bytes(content)
    part = next((tmp_path / "index").glob("units-*"))
    part.write_bytes(b"")
    assert state(CodeIndex.build([code], tmp_path / "index", str(tiny_bert))) == whole
    assert "making it anew" in caplog.text


def test_two_encoders_never_mix(code, tmp_path, tiny_bert, other_tiny_bert):
    index = CodeIndex.build([code], tmp_path / "index", str(tiny_bert))
    index.add_vectors(str(other_tiny_bert))
    first, second = index.vector_sets
    assert (first.covered, second.covered) == (5, 5)
    assert first.fingerprint != second.fingerprint
    assert not np.allclose(index.vectors(first).matrix, index.vectors(second).matrix)
    (code / "pkg/c.py").write_text(function("new"))
    index.update()
    assert [info.complete for info in index.vector_sets] == [True, True]
    # New weights under an old name are another encoder: everything is encoded anew.
    moved = tmp_path / "encoder"
    shutil.copytree(tiny_bert, moved)
    index = CodeIndex.build([code], tmp_path / "index2", str(moved))
    old = index.vector_sets[0]
    shutil.rmtree(moved)
    shutil.copytree(other_tiny_bert, moved)
    (code / "pkg/c.py").write_text(function("newer"))
    index.update()
    (new,) = index.vector_sets
    assert new.fingerprint == second.fingerprint != old.fingerprint
    assert new.complete


def test_a_partial_set_serves_what_it_covers_and_is_completed_later(code, tmp_path, tiny_bert):
    index = CodeIndex.build([code], tmp_path / "index", "none")
    index.add_vectors(str(tiny_bert), limit=2)
    (info,) = index.vector_sets
    assert 2 <= info.covered < info.of == 5
    vectors = index.vectors(info)
    assert vectors.covers(np.arange(5)).sum() == info.covered
    scores = vectors.cosine(vectors.matrix[:1])
    assert np.isneginf(scores[0]).sum() == 5 - info.covered
    index.add_vectors(str(tiny_bert))
    assert index.vector_sets[0].complete
    assert index.vectors(index.vector_sets[0]).of_units(np.array([0, 4])) == pytest.approx(
        index.vectors(index.vector_sets[0]).of_units(np.array([4, 0]))
    )


def test_an_interrupted_encoding_resumes_from_the_cache(code, tmp_path, tiny_bert, monkeypatch):
    from hf_qualcode.encoders import transformer
    from hf_qualcode.retrieve import completing

    monkeypatch.setattr(completing, "ENCODE_BLOCK", 2)
    original = transformer.TransformerEncoder.encode
    encoded = []

    def failing(self, texts, **options):
        if len(encoded) >= 2 and failing.armed:
            raise KeyboardInterrupt
        encoded.extend(texts)
        return original(self, texts, **options)

    failing.armed = True
    monkeypatch.setattr(transformer.TransformerEncoder, "encode", failing)
    with pytest.raises(KeyboardInterrupt):
        CodeIndex.build([code], tmp_path / "index", str(tiny_bert))
    failing.armed = False
    index = CodeIndex.build([code], tmp_path / "index", str(tiny_bert))
    assert index.vector_sets[0].complete
    assert len(encoded) == len(set(encoded)) == 4
    # What the index holds now does not lie beside it a second time.
    assert not list((tmp_path / "index/on-demand").glob("*.sqlite"))


BUILD = "import sys; from hf_qualcode import CodeIndex; CodeIndex.build([sys.argv[1]], sys.argv[2], 'none')"


def test_sigkill_at_random_moments_never_loses_the_index(tmp_path):
    root, out = tmp_path / "code", tmp_path / "index"
    root.mkdir()
    for i in range(150):
        (root / f"m{i}.py").write_text("\n\n".join(function(f"f{i}_{j}") for j in range(8)))
    CodeIndex.build([root], out, "none")
    generator = random.Random(7)
    finished = 0
    for round_ in range(8):
        (root / f"m{round_}.py").write_text(function(f"changed{round_}") * (round_ + 1))
        process = subprocess.Popen([sys.executable, "-c", BUILD, str(root), str(out)])
        try:
            process.wait(timeout=generator.uniform(0.3, 1.2))
            finished += 1
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
        assert len(CodeIndex.load(out)) > 1000
    index = CodeIndex.build([root], out, "none")
    assert state(index) == state(CodeIndex.build([root], tmp_path / "fresh", "none"))
    assert not [entry.name for entry in out.iterdir() if entry.name.startswith(".tmp-")]


def test_two_runs_at_once_give_one_whole_index(code, tmp_path):
    out = tmp_path / "index"
    runs = [
        subprocess.Popen([sys.executable, "-c", BUILD, str(scope), str(out)], stderr=subprocess.PIPE, text=True)
        for scope in (code, code / "pkg", code, code / "pkg")
    ]
    assert [run.wait() for run in runs] == [0] * 4, [run.stderr.read() for run in runs]
    index = CodeIndex.load(out)
    fresh = CodeIndex.build(index.roots, tmp_path / "fresh", "none")
    assert state(index) == state(fresh)


def test_a_search_goes_on_in_an_index_that_is_replaced(code, tmp_path):
    index = CodeIndex.build([code], tmp_path / "index", "none")
    for i in range(3):
        (code / "a.py").write_text(function(f"other{i}"))
        CodeIndex.build([code], tmp_path / "index", "none")
    assert index.unit(1).name == "write_lines"
    assert index.lexical.score(["write lines"])[0, 1] > 0
    assert len(index.file_records) == 3


def test_documents_keep_their_order_and_their_ids(tmp_path):
    index = CodeIndex.from_documents(["b", "a", "c"], ["def x(): pass", "", "def x(): pass"], tmp_path / "i", "none")
    assert [index.unit(row).id for row in range(3)] == ["b", "a", "c"]
    assert index.roots == []
    assert index.root_of(0) == ""
    with pytest.raises(UsageError, match="made from documents"):
        index.update()
    with pytest.raises(UsageError, match="not distinct"):
        CodeIndex.from_documents(["a", "a"], ["", ""], tmp_path / "j", "none")
    with pytest.raises(UsageError, match="2 ids for 1 texts"):
        CodeIndex.from_documents(["a", "b"], [""], tmp_path / "j", "none")


def test_a_root_that_is_gone_is_said_and_nothing_is_lost(code, tmp_path):
    index = CodeIndex.build([code], tmp_path / "index", "none")
    shutil.rmtree(code)
    with pytest.raises(StoreError, match="is gone"):
        index.update()
    assert len(CodeIndex.load(tmp_path / "index")) == 5


def test_an_older_rule_of_extraction_reads_everything_anew(code, tmp_path):
    index = CodeIndex.build([code], tmp_path / "index", "none")
    manifest_file = tmp_path / "index/manifest.json"
    manifest = json.loads(manifest_file.read_text())
    manifest["made_with"]["extraction"] = 0
    manifest_file.write_text(json.dumps(manifest))
    time.sleep(0.01)
    again = CodeIndex.load(tmp_path / "index").update()
    assert state(again) == state(index)
    assert again.manifest["made_with"] == index.manifest["made_with"]


def test_a_manifest_with_anything_missing_or_of_another_type_is_damage(code, tmp_path):
    CodeIndex.build([code], tmp_path / "index", "none")
    manifest_file = tmp_path / "index/manifest.json"
    whole = json.loads(manifest_file.read_text())
    wrong = [None, [], {}, "x", -1, 2**70, True, [None], [{}], {"units": {}}, [{"path": 1, "only": None}]]
    seen = 0
    for key in whole:
        if key == "written_by":
            continue
        for value in [*wrong, ...]:
            changed = {k: v for k, v in whole.items() if k != key} if value is ... else whole | {key: value}
            manifest_file.write_text(json.dumps(changed))
            try:
                index = CodeIndex.load(tmp_path / "index")
                index.update()  # what is legal, if odd, does what an index does
            except QualcodeError as error:
                assert "\n" not in str(error)
                seen += isinstance(error, StoreError)
            manifest_file.write_text(json.dumps(whole))
            CodeIndex.build([code], tmp_path / "index", "none")
    assert seen > 60


def test_a_manifest_of_another_program_is_no_damaged_index(code, tmp_path):
    target = tmp_path / "extension"
    target.mkdir()
    (target / "manifest.json").write_text("// a web extension\n{}")
    (target / "thesis.tex").write_text("mine")
    with pytest.raises(StoreError, match="holds no index"):
        CodeIndex.build([code], target, "none")
    assert sorted(entry.name for entry in target.iterdir()) == ["manifest.json", "thesis.tex"]


def test_a_limit_is_a_limit_however_often_it_is_given(code, tmp_path, tiny_bert):
    index = CodeIndex.build([code], tmp_path / "index", "none")
    for _ in range(3):
        index.add_vectors(str(tiny_bert), limit=2)
        assert len(index.vectors(index.vector_sets[0]).matrix) == 2


def test_a_set_with_a_limit_is_not_completed_when_the_scope_grows(code, tmp_path, tiny_bert):
    index = CodeIndex.build([code / "pkg/c.py"], tmp_path / "index", "none")
    index.add_vectors(str(tiny_bert), limit=3)
    assert index.vector_sets[0].complete  # one unit, and three were allowed
    index = CodeIndex.build([code, code / "pkg/c.py"], tmp_path / "index", str(tiny_bert))
    assert index.vector_sets[0].limit is None  # asked for by name, all are wanted
    index = CodeIndex.build([code / "pkg/c.py"], tmp_path / "index2", "none")
    index.add_vectors(str(tiny_bert), limit=1)
    (code / "pkg/c.py").write_text(function("read_lines") + "\n\n" + function("more"))
    index.update()
    (info,) = index.vector_sets
    assert (info.covered, info.of, info.limit) == (1, 2, 1)


def test_a_changed_encoder_is_renewed_though_no_file_changed(code, tmp_path, tiny_bert, other_tiny_bert):
    encoder = tmp_path / "encoder"
    shutil.copytree(tiny_bert, encoder)
    index = CodeIndex.build([code], tmp_path / "index", str(encoder))
    old = index.vector_sets[0]
    shutil.rmtree(encoder)
    shutil.copytree(other_tiny_bert, encoder)
    (new,) = index.update().vector_sets
    assert new.fingerprint != old.fingerprint
    assert new.complete


def test_vectors_are_mapped_not_read(code, tmp_path, tiny_bert):
    index = CodeIndex.build([code], tmp_path / "index", str(tiny_bert))
    vectors = index.vectors(index.vector_sets[0])
    assert isinstance(vectors.matrix, np.memmap)
    assert isinstance(index.lexical.data, np.memmap)


def test_readers_open_whole_states_while_an_index_is_replaced(code, tmp_path):
    """Every state has one function in a.py, named alike in all parts."""
    program = (
        "import sys\nfrom pathlib import Path\nfrom hf_qualcode import CodeIndex\n"
        "for i in range(25):\n"
        "    (Path(sys.argv[1]) / 'a.py').write_text(f'def turn{i}(x):\\n    return {i}\\n')\n"
        "    CodeIndex.build([sys.argv[1]], sys.argv[2], 'none')\n"
    )
    out = tmp_path / "index"
    CodeIndex.build([code], out, "none")
    writer = subprocess.Popen([sys.executable, "-c", program, str(code), str(out)])
    opened = 0
    while writer.poll() is None:
        index = CodeIndex.load(out)
        row = index.table["path"].to_pylist().index("a.py")
        name = index.unit(row).name
        assert index.lexical.score([name.replace("_", " ")])[0, row] > 0
        opened += 1
    assert writer.returncode == 0
    assert opened > 5


def test_parts_of_another_index_are_damage(code, tmp_path):
    """A part and its entry, taken over together from elsewhere (a bad merge): each is sound, together they are not."""
    index = CodeIndex.build([code], tmp_path / "index", "none")
    (tmp_path / "other").mkdir()
    (tmp_path / "other/x.py").write_text(function("x"))
    other = CodeIndex.build([tmp_path / "other"], tmp_path / "other.index", "none")
    manifest_file = tmp_path / "index/manifest.json"
    whole = manifest_file.read_text()
    for name in ("bm25", "units"):
        manifest = json.loads(whole)
        manifest["parts"][name] = other.manifest["parts"][name]
        source = tmp_path / "other.index" / manifest["parts"][name]["file"]
        (shutil.copytree if source.is_dir() else shutil.copy)(source, tmp_path / "index" / source.name)
        manifest_file.write_text(json.dumps(manifest))
        with pytest.raises(DamagedStoreError, match="not of one index"):
            CodeIndex.load(tmp_path / "index")
    assert state(CodeIndex.build([code], tmp_path / "index", "none")) == state(index)


def test_one_path_may_be_given_as_it_is(code, tmp_path):
    assert len(CodeIndex.build(code, tmp_path / "index", "none")) == 5
    assert len(CodeIndex.build(str(code), tmp_path / "index2", "none")) == 5
