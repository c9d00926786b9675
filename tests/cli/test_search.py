"""`index`, `search`, `env` and `quickstart` as a user meets them: arguments in, stdout, stderr and exit code out."""

import json
import os
import pty
import select
import subprocess
import sys
import time

import pytest

from hf_qualcode.cli.main import main
from hf_qualcode.cli.output import printable
from hf_qualcode.cli.search import cached_index
from hf_qualcode.cli.searching.preview import clip


KEYS = [
    "rank",
    "score",
    "path",
    "root",
    "start_line",
    "end_line",
    "name",
    "language",
    "code",
    "retrieval_score",
    "quality_score",
    "copies",
    "stale",
]
QUEUE = '''class Queue:
    """First in, first out."""

    def put_item(self, item):
        self.items.append(item)
'''


@pytest.fixture
def code(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_QUALCODE_CACHE", str(tmp_path / "cache"))
    root = tmp_path / "code"
    (root / "pkg").mkdir(parents=True)
    (root / "queue.py").write_text(QUEUE)
    (root / "pkg/copied.py").write_text(QUEUE)
    (root / "main.go").write_text("package main\n\n// Puts it.\nfunc putItem(item int) int {\n\treturn item\n}\n")
    return root


def run(capsys, *arguments):
    exit_code = main([str(argument) for argument in arguments])
    streams = capsys.readouterr()
    return exit_code, streams.out, streams.err


def hits(capsys, *arguments):
    exit_code, out, _ = run(capsys, "search", *arguments, "--json", "--retriever", "bm25")
    assert exit_code == 0
    return [json.loads(line) for line in out.splitlines()]


def test_search_of_a_folder_never_seen_is_enough(code, capsys):
    found = hits(capsys, "put item", code)
    assert [list(hit) for hit in found] == [KEYS] * len(found)
    assert [hit["rank"] for hit in found] == list(range(1, len(found) + 1))
    scores = [hit["score"] for hit in found]
    assert scores == sorted(scores, reverse=True)
    by_name = {hit["name"]: hit for hit in found}
    put = by_name["Queue.put_item"]
    # The path is part of the lexical text; the shorter one makes the rest weigh more.
    assert (put["path"], put["start_line"], put["end_line"]) == ("queue.py", 4, 5)
    assert put["root"] == str(code)
    assert put["code"] == "    def put_item(self, item):\n        self.items.append(item)"
    assert put["copies"] == [{"path": "pkg/copied.py", "root": str(code), "start_line": 4, "end_line": 5}]
    assert put["quality_score"] is None
    assert put["retrieval_score"] == put["score"]
    assert put["stale"] is False


def test_the_cached_index_follows_the_folder_unless_told_not_to(code, capsys):
    assert not hits(capsys, "frobnicate", code)
    (code / "new.py").write_text("def frobnicate(x):\n    return x\n")
    assert not hits(capsys, "frobnicate", code, "--no-refresh")
    assert [hit["path"] for hit in hits(capsys, "frobnicate", code)] == ["new.py"]
    (code / "new.py").write_text("def frobnicate(x):\n    return x + 1\n")
    assert [hit["stale"] for hit in hits(capsys, "frobnicate", code, "--no-refresh")] == [True]
    assert [hit["stale"] for hit in hits(capsys, "frobnicate", code)] == [False]
    (code / "new.py").unlink()
    assert [hit["stale"] for hit in hits(capsys, "frobnicate", code, "--no-refresh")] == [True]
    assert not hits(capsys, "frobnicate", code)


def test_options_may_stand_between_query_and_path(code, capsys, tmp_path):
    found = hits(capsys, "put item", "--top-k", "1", code)
    assert len(found) == 1
    exit_code, out, _ = run(
        capsys, "index", code / "queue.py", "--out", tmp_path / "i", "--encoder", "none", code / "pkg", "--json"
    )
    assert exit_code == 0
    assert len(json.loads(out)["roots"]) == 2
    with pytest.raises(SystemExit) as exit_:
        main(["search", "put item", "--top-k", "1", str(code), "another"])
    assert exit_.value.code == 2
    assert "does not know: another" in capsys.readouterr().err


def test_a_folder_without_code_says_so(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("HF_QUALCODE_CACHE", str(tmp_path / "cache"))
    (tmp_path / "ruby").mkdir()
    (tmp_path / "ruby/x.rb").write_text("puts 1")
    exit_code, out, err = run(capsys, "search", "put", tmp_path / "ruby")
    assert (exit_code, out) == (0, "")
    assert "nothing to search" in err and err.count("\n") == 1
    assert not (tmp_path / "cache/static").exists()  # nothing is distilled for nothing


def test_no_hit_is_no_line_and_no_failure(code, capsys):
    assert run(capsys, "search", "zzzz", code, "--retriever", "bm25") == (0, "", "")


def test_filters(code, capsys):
    assert {hit["language"] for hit in hits(capsys, "put item", code, "--language", "go")} == {"go"}
    assert {hit["path"] for hit in hits(capsys, "put item", code, "--include", "pkg/")} == {"pkg/copied.py"}
    without = hits(capsys, "put item", code, "--exclude", "pkg/", "--exclude", "*.go")
    assert {hit["path"] for hit in without} == {"queue.py"}
    assert all(not hit["copies"] for hit in without)  # a copy that is filtered away is not named either
    assert len(hits(capsys, "put item", code, "--top-k", "1")) == 1
    exit_code, out, err = run(capsys, "search", "x", code, "--language", "cobol", "--retriever", "bm25")
    assert (exit_code, out) == (2, "")
    assert "cobol" in err and "python" in err and err.count("\n") == 1


def test_plain_output_names_the_place_and_shows_context(code, capsys):
    exit_code, out, err = run(
        capsys, "search", "put item", code / "queue.py", "--retriever", "bm25", "--context", "2", "--top-k", "1"
    )
    assert (exit_code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].startswith("1. queue.py:4-5  Queue.put_item  (python)")
    assert lines[1:4] == ['     2      """First in, first out."""', "     3", "     4      def put_item(self, item):"]


def test_strangers_code_cannot_drive_the_terminal(code, capsys):
    (code / "evil.py").write_text('def clear_screen():\n    return "\x1b[2J\x1b]0;title\x07\u202e\x9b"\n')
    _, out, _ = run(capsys, "search", "clear screen", code, "--retriever", "bm25")
    assert "\x1b" not in out and "\u202e" not in out and "\x9b" not in out
    assert r"\x1b[2J" in out
    assert printable("a\tb\nc\rd\x00") == "a\tb\nc\\rd\\x00"


def test_a_file_name_cannot_forge_a_hit(code, capsys):
    (code / "evil\n2. trusted.py:1-2  safe.py").write_text("def clear_screen():\n    return 0\n")
    _, out, _ = run(capsys, "search", "clear screen", code, "--retriever", "bm25")
    assert out.splitlines()[0].startswith(r"1. evil\n2. trusted.py:1-2  safe.py:1-2  clear_screen")


def test_a_message_is_one_line_that_drives_no_terminal(code, capsys):
    exit_code, out, err = run(capsys, "search", "x", "/no/such\x1b[2J\nfolder")
    assert (exit_code, out) == (2, "")
    assert err.count("\n") == 1 and "\x1b" not in err


def test_long_and_odd_folder_names_have_a_cached_index(tmp_path):
    for name in ("x" * 255, "\u65e5" * 80, "a\nb", "..."):
        assert len(cached_index(tmp_path / name).name.encode()) <= 255
        assert "\n" not in cached_index(tmp_path / name).name


def test_the_preview_counts_columns_not_letters():
    assert clip("abc", 2) == "ab"
    assert clip("\u65e5\u672c\u8a9e", 5) == "\u65e5\u672c"
    assert clip("abc", 80) == "abc"


def test_no_refresh_of_a_folder_never_seen_says_what_to_do(code, capsys):
    exit_code, out, err = run(capsys, "search", "x", code, "--no-refresh")
    assert (exit_code, out) == (1, "")
    assert "leave out --no-refresh" in err and err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "exit_code", "message"),
    [
        (["search", "x", "/no/such/folder"], 2, "cannot read '/no/such/folder'"),
        (["search", "  ", "."], 2, "the query is empty"),
        (["search", "x", ".", "--top-k", "0"], 2, "--top-k 0"),
        (["search", "x", ".", "--context", "-1"], 2, "--context -1"),
        (["search", "x", ".", "--index", "y"], 2, "name one"),
        (["search", "x", "--index", "/no/such/index"], 1, "no index in /no/such/index"),
        (["index", "--out", "/no/such/index"], 1, "no index in /no/such/index"),
        (["index", ".", "--out", "x", "--num-proc", "0"], 2, "--num-proc 0"),
        (["index", "--out", "x", "--exclude", "y"], 2, "name its PATHs too"),
    ],
)
def test_wrong_calls_are_one_clear_line(code, capsys, monkeypatch, arguments, exit_code, message):
    monkeypatch.chdir(code)
    got, out, err = run(capsys, *arguments)
    assert (got, out) == (exit_code, "")
    assert message in err
    assert err.count("\n") == 1
    assert err.startswith("hf-qualcode: ")


def test_index_reports_every_file_and_refreshes_its_own_folders(code, tmp_path, capsys):
    (code / "data.bin").write_bytes(b"\0")
    exit_code, out, err = run(capsys, "index", code, "--out", tmp_path / "index", "--encoder", "none", "--json")
    assert (exit_code, err) == (0, "")
    report = json.loads(out)
    files = report["files"]
    assert files["seen"] == 4 == files["indexed"] + sum(entry["count"] for entry in files["skipped"].values())
    assert report["units"] == files["units"]
    (code / "data.bin").unlink()
    exit_code, out, _ = run(capsys, "index", "--out", tmp_path / "index")
    assert exit_code == 0
    assert out.splitlines()[2].split() == ["3", "seen"]
    assert "vectors: none" in out
    exit_code, out, _ = run(capsys, "search", "put item", "--index", tmp_path / "index")
    assert exit_code == 0
    assert "Queue.put_item" in out


def test_index_excludes_what_it_is_told_to(code, tmp_path, capsys):
    run(capsys, "index", code, "--out", tmp_path / "index", "--encoder", "none", "--exclude", "pkg/")
    assert {hit["path"] for hit in hits(capsys, "put item", "--index", tmp_path / "index")} == {"queue.py", "main.go"}


def test_a_damaged_cache_is_made_anew(code, capsys):
    before = hits(capsys, "put item", code)
    units = next(cached_index(code).glob("units-*"))
    units.write_bytes(units.read_bytes()[:-1])
    exit_code, out, err = run(capsys, "search", "put item", code, "--retriever", "bm25", "--json")
    assert exit_code == 0
    assert [json.loads(line) for line in out.splitlines()] == before
    assert "damaged" in err and "making it anew" in err


def test_env_is_json_a_program_can_read(capsys):
    exit_code, out, _ = run(capsys, "env", "--json")
    facts = json.loads(out)
    assert exit_code == 0
    assert facts["packages"]["torch"].startswith("2.13.0")
    assert "python" in facts["languages"]


def command(*arguments, **options):
    return subprocess.run(
        [sys.executable, "-m", "hf_qualcode", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        **options,
    )


def test_search_by_words_imports_neither_torch_nor_pandas(code):
    program = (
        "import sys; from hf_qualcode.cli.main import main\n"
        f"assert main(['search', 'put item', {str(code)!r}, '--retriever', 'bm25']) == 0\n"
        "heavy = {'torch', 'transformers', 'pandas', 'sklearn', 'scipy', 'numba'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Queue.put_item" in done.stdout


def test_a_reader_that_goes_away_is_no_failure(code):
    for i in range(40):
        (code / f"m{i}.py").write_text("\n".join(f"def put_item_{i}_{j}(item):\n    return {j}\n" for j in range(40)))
    search = [sys.executable, "-m", "hf_qualcode", "search", "put item", str(code), "--retriever", "bm25"]
    process = subprocess.Popen([*search, "--top-k", "1500"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.read(10)
    process.stdout.close()
    err = process.stderr.read()
    assert process.wait() == 0
    assert b"Traceback" not in err and b"hf-qualcode:" not in err


def test_a_locale_without_unicode_does_not_end_a_search(code):
    (code / "stra\u00dfe.py").write_text('def put_item(x):\n    return "\u65e5\u672c"\n', encoding="utf-8")
    environment = os.environ | {"PYTHONIOENCODING": "ascii", "LC_ALL": "C"}
    for arguments in ((), ("--json",)):
        done = command("search", "put item", code, "--retriever", "bm25", *arguments, env=environment)
        assert (done.returncode, done.stderr) == (0, "")
        assert "put_item" in done.stdout


def test_on_a_terminal_hits_are_shown_with_colours(code):
    done, shown = on_terminal("search", "put item", str(code), "--retriever", "bm25")
    assert done == 0
    assert "Queue.put_item" in shown
    assert "\x1b[" in shown


def on_terminal(*arguments):
    """Run a command on a pseudo-terminal; its exit code and all it wrote."""
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "hf_qualcode", *arguments],
        stdout=follower,
        stderr=follower,
        stdin=subprocess.DEVNULL,
        env=os.environ | {"TERM": "xterm-256color", "COLUMNS": "120"},
    )
    os.close(follower)
    shown = b""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        ready, _, _ = select.select([leader], [], [], 0.1)
        if not ready:
            continue
        try:
            chunk = os.read(leader, 65536)
        except OSError:
            break  # the last holder of the other end has gone
        if not chunk:
            break
        shown += chunk
    os.close(leader)
    return process.wait(timeout=10), shown.decode(errors="replace")


@pytest.mark.parametrize("option", ["--include", "--exclude"])
def test_a_malformed_glob_is_wrong_usage_and_in_a_strangers_file_it_is_passed_over(code, capsys, option, tmp_path):
    exit_code, out, err = run(capsys, "search", "put item", code, "--retriever", "bm25", option, "[z-a]")
    assert (exit_code, out) == (2, "")
    assert "cannot be read" in err and err.count("\n") == 1
    exit_code, _, err = run(capsys, "index", code, "--out", tmp_path / "index", "--exclude", "[z-a]")
    assert exit_code == 2
    assert err.count("\n") == 1
    (code / ".gitignore").write_text("[z-a].py\nmain.go\n")
    assert {hit["path"] for hit in hits(capsys, "put item", code)} == {"queue.py"}


def test_streams_that_are_closed_are_no_failure(code):
    for command_line in (["search", "put item", str(code), "--retriever", "bm25"], ["env"]):
        shell = f'"$0" -m hf_qualcode {" ".join(map(repr, command_line))} >&- 2>&-'
        done = subprocess.run(["sh", "-c", shell, sys.executable], check=False)
        assert done.returncode == 0


@pytest.mark.parametrize(
    "arguments",
    [["search", "x", ""], ["search", "x", "--index", ""], ["index", "", "--out", "x"], ["index", ".", "--out", ""]],
)
def test_an_empty_path_is_not_this_folder(code, capsys, monkeypatch, arguments):
    monkeypatch.chdir(code)
    try:
        exit_code = main(arguments)
    except SystemExit as exit_:
        exit_code = exit_.code
    assert exit_code == 2
    assert "empty" in capsys.readouterr().err
    assert not (code / "x").exists()
