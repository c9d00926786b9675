"""`hf-qualcode dataset`: usage, notes on stderr, results on stdout, the scripts, publishing to a loopback stand-in."""

import argparse
import base64
import hashlib
import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from hf_qualcode.cli import dataset
from hf_qualcode.types import QualcodeError, UsageError


ROOT = Path(__file__).parents[2]
STATEMENT = (
    "<p>You are given a sequence of numbers. Write a program which reads the numbers and prints their sum. The first "
    "line of the input contains the length of the sequence, and the next line contains the numbers.</p>"
)


@pytest.fixture
def codenet(tmp_path) -> Path:
    """Three problems of four programs each."""
    root = tmp_path / "codenet"
    for folder in ("metadata", "problem_descriptions"):
        (root / folder).mkdir(parents=True)
    for problem_id in ("p00001", "p00002", "p00003"):
        rows = ["submission_id,problem_id,language,status,cpu_time,memory"]
        (root / "data" / problem_id / "Python").mkdir(parents=True)
        for number in range(4):
            submission_id = f"s{problem_id[-1]}{number:08}"
            rows.append(f"{submission_id},{problem_id},Python,Accepted,{10 + 30 * number},{3000 * (number + 1)}")
            (root / "data" / problem_id / "Python" / f"{submission_id}.py").write_text(f"print('{submission_id}')\n")
        (root / "metadata" / f"{problem_id}.csv").write_text("\n".join(rows) + "\n")
        (root / "problem_descriptions" / f"{problem_id}.html").write_text(STATEMENT)
    listed = "".join(f"{problem_id},Sum\n" for problem_id in ("p00001", "p00002", "p00003"))
    (root / "metadata" / "problem_list.csv").write_text("id,name\n" + listed)
    return root


def run(*arguments):
    parser = argparse.ArgumentParser(prog="hf-qualcode")
    dataset.add_parser(parser.add_subparsers(dest="command"))
    args = parser.parse_args(["dataset", "build", *map(str, arguments), "--num-proc", "1"])
    return args.run(args)


def test_builds_and_says_what_is_missing(codenet, tmp_path, capsys):
    assert run("qualcode", codenet, "--out", tmp_path / "out", "--smells", "none") == 0
    out, err = capsys.readouterr()
    assert "speed" in out and "3 problems" in out
    assert "no_program_analysed 3" in out
    assert "hf-qualcode: maintainability has no labels" in err
    assert "hf-qualcode: relevance: 6 of 6 rows have fewer than 99 negatives (at least 8)" in err
    assert (tmp_path / "out" / "README.md").is_file()


def test_json_is_the_report_alone(codenet, tmp_path, capsys):
    assert run("mc-qualcode", codenet, "--out", tmp_path / "out", "--smells", "none", "--json", "--seed", 5) == 0
    report = json.loads(capsys.readouterr().out)
    assert report == json.loads((tmp_path / "out" / "report.json").read_text())
    assert report["seed"] == 5
    assert report["configs"]["1-condition"] == 6


def test_a_proxy_is_named_on_stderr_and_in_every_output(codenet, tmp_path, capsys):
    assert run("qualcode", codenet, "--out", tmp_path / "out", "--smells", "ruff") == 0
    out, err = capsys.readouterr()
    assert "ruff" in out and "(a proxy)" in out
    assert "maintainability is counted by ruff" in err and "a proxy" in err
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert report["smells"]["is_proxy"] is True
    assert "a proxy" in report["labels"]["sources"]["maintainability"]
    assert "counted by a proxy" in (tmp_path / "out" / "README.md").read_text()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], r"--smells is missing.*sonar.*none \(no maintainability labels\)"),
        (["--smells", "sonnar"], "unknown smell engine 'sonnar'.*sonar"),
        (["--smells", "_base"], "unknown smell engine"),
        (["--smells", "none", "--seed", "-1"], "--seed -1"),
        (["--smells", "none", "--inputs", "x"], "--inputs has no part in --labels judge"),
        (["--smells", "none", "--push", "name"], "name the owner too"),
        (["--smells", "none", "--push", "a b/c"], "no name of a repository"),
        (["--smells", "none", "--push", "a/b/c"], "no name of a repository"),
    ],
)
def test_wrong_usage(arguments, words, codenet, tmp_path):
    with pytest.raises(UsageError, match=words) as error:
        run("qualcode", codenet, "--out", tmp_path / "out", *arguments)
    assert "\n" not in str(error.value)
    assert not (tmp_path / "out").exists()


def test_a_machine_that_cannot_shut_programs_in_is_said_before_the_build(codenet, tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise QualcodeError("programs cannot be shut in here")

    monkeypatch.setattr("hf_qualcode.benchmark.remeasured.Sandbox.open", refuse)
    before = sorted(tmp_path.iterdir())
    with pytest.raises(QualcodeError, match="cannot be shut in here"):
        run("qualcode", codenet, "--out", tmp_path / "out", "--smells", "none", "--labels", "remeasured")
    assert sorted(tmp_path.iterdir()) == before


def test_no_codenet_is_one_line(tmp_path):
    (tmp_path / "other").mkdir()
    with pytest.raises(QualcodeError, match="no Project_CodeNet folder"):
        run("qualcode", tmp_path / "other", "--out", tmp_path / "out", "--smells", "none")
    assert [path.name for path in tmp_path.iterdir()] == ["other"]


def test_no_inputs_are_said_before_the_build(codenet, tmp_path):
    before = sorted(tmp_path.iterdir())
    arguments = ("qualcode", codenet, "--out", tmp_path / "out", "--smells", "none", "--labels", "remeasured")
    with pytest.raises(QualcodeError, match="nothing holds no inputs"):
        run(*arguments, "--inputs", tmp_path / "nothing")
    assert sorted(tmp_path.iterdir()) == before
    (tmp_path / "given" / "p00001" / "1.in").mkdir(parents=True)  # a folder is no input
    with pytest.raises(QualcodeError, match="given holds no inputs"):
        run(*arguments, "--inputs", tmp_path / "given")
    assert not (tmp_path / ".out.building").exists()


def test_out_is_never_the_place_of_a_file_system(codenet, tmp_path, monkeypatch):
    (tmp_path / "out").mkdir()
    # Such a folder cannot be replaced, which would be found at the end of the build.
    monkeypatch.setattr("os.path.ismount", lambda path: str(path) == str(tmp_path / "out"))
    with pytest.raises(UsageError, match="a file system is mounted; name a folder in it"):
        run("qualcode", codenet, "--out", tmp_path / "out", "--smells", "none")


@pytest.mark.parametrize("place", ["", "metadata", "data", "data/p00001/Python"])
def test_codenet_itself_is_not_written_over(place, codenet):
    before = {path: path.read_bytes() for path in codenet.rglob("*") if path.is_file()}
    with pytest.raises(UsageError, match="no build of a data set wrote"):
        run("qualcode", codenet, "--out", codenet / place, "--smells", "none")
    assert {path: path.read_bytes() for path in codenet.rglob("*") if path.is_file()} == before


def test_publishing_is_refused_before_the_build(codenet, tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(QualcodeError, match="HF_HUB_OFFLINE is set"):
        run("qualcode", codenet, "--out", tmp_path / "out", "--smells", "none", "--push", "org/name")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("script", ["qualcode", "mc_qualcode"])
def test_scripts_build_the_same(script, codenet, tmp_path):
    name = script.replace("_", "-")
    run(name, codenet, "--out", tmp_path / "one", "--smells", "none")
    path = ROOT / "dataset_scripts" / f"{script}.py"
    arguments = [sys.executable, path, codenet, "--out", tmp_path / "two", "--smells", "none"]
    subprocess.run(arguments, check=True, capture_output=True, cwd=tmp_path)
    for file in (tmp_path / "one").rglob("*.*"):
        assert (tmp_path / "two" / file.relative_to(tmp_path / "one")).read_bytes() == file.read_bytes()


class HubStandIn(BaseHTTPRequestHandler):
    """As much of the Hub as an upload of small files asks for; keeps the last state of one data set."""

    protocol_version = "HTTP/1.1"
    files: dict[str, bytes]
    refuse = False

    def log_message(self, *_):
        pass

    def do_GET(self):
        path = urlsplit(self.path).path
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length) if self.headers.get("Transfer-Encoding") != "chunked" else self._chunks()
        if self.refuse:
            return self._answer(403, {"error": "no right to write here"})
        if path == "/api/repos/create":
            return self._answer(200, {"url": f"{self.address}/datasets/org/name"})
        if path.endswith("/preupload/main"):
            names = [file["path"] for file in json.loads(body)["files"]]
            return self._answer(200, {"files": [
                {"path": name, "uploadMode": "regular", "shouldIgnore": False} for name in names
            ]})  # fmt: skip
        if path.endswith("/commit/main"):
            for line in filter(None, body.splitlines()):
                operation = json.loads(line)
                value = operation["value"]
                if operation["key"] == "file":
                    self.files[value["path"]] = base64.b64decode(value["content"])
                elif operation["key"] == "deletedFile":
                    del self.files[value["path"]]
            address = f"{self.address}/datasets/org/name/commit/{'1' * 40}"
            return self._answer(200, {"commitOid": "1" * 40, "commitUrl": address, "success": True})
        if "/tree/" in path:
            entries = [
                {"type": "file", "path": name, "size": len(data), "oid": hashlib.sha1(data).hexdigest()}
                for name, data in sorted(self.files.items())
            ]
            return self._answer(200, entries)
        if path.startswith("/api/datasets/org/name"):
            siblings = [{"rfilename": name} for name in sorted(self.files)]
            return self._answer(200, {"_id": "1", "id": "org/name", "sha": "0" * 40, "siblings": siblings})
        return self._answer(200, {})

    do_POST = do_HEAD = do_GET

    def _chunks(self) -> bytes:
        data = b""
        while size := int(self.rfile.readline().strip() or b"0", 16):
            data += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return data

    def _answer(self, code, content):
        body = json.dumps(content).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


@pytest.fixture
def hub():
    """Address of a stand-in that listens on this machine alone, and its handler."""
    handler = type("Handler", (HubStandIn,), {"files": {"old/test.parquet": b"x", "note.txt": b"kept"}})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    handler.address = f"http://127.0.0.1:{server.server_address[1]}"
    yield handler.address, handler
    server.shutdown()
    server.server_close()


PUSH = """
import argparse, sys
from hf_qualcode.cli import dataset
from hf_qualcode.types import QualcodeError
parser = argparse.ArgumentParser()
dataset.add_parser(parser.add_subparsers(dest="command"))
args = parser.parse_args(sys.argv[1:])
try:
    sys.exit(args.run(args))
except QualcodeError as error:
    sys.exit(f"hf-qualcode: {error}")
"""


PUSH_ALONE = """
import sys
from pathlib import Path
from hf_qualcode.benchmark.publishing import publish
from hf_qualcode.hub import check_repository
from hf_qualcode.types import QualcodeError
try:
    check_repository("org/name")
    publish(Path(sys.argv[1]), "org/name")
except QualcodeError as error:
    sys.exit(f"hf-qualcode: {error}")
"""


def with_hub(address, tmp_path, program, *arguments, token="hf_test"):
    # huggingface_hub reads the address when it is imported.
    environment = {
        **os.environ, "HF_ENDPOINT": address, "HF_HUB_OFFLINE": "0", "HF_HOME": str(tmp_path / "home"),
        "HF_HUB_DISABLE_XET": "1", "HF_HUB_DISABLE_TELEMETRY": "1",
    }  # fmt: skip
    environment.pop("HF_TOKEN", None)
    if token:
        environment["HF_TOKEN"] = token
    command = [sys.executable, "-c", program, *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True)


def test_publishes_the_folder_and_deletes_what_is_no_longer_part_of_it(codenet, tmp_path, hub):
    address, handler = hub
    arguments = ["dataset", "build", "qualcode", codenet, "--out", tmp_path / "out", "--smells", "none"]
    done = with_hub(address, tmp_path, PUSH, *arguments, "--push", "org/name")
    assert done.returncode == 0, done.stderr
    assert f"published as {address}/datasets/org/name/commit/1" in done.stderr
    files = {str(path.relative_to(tmp_path / "out")): path.read_bytes() for path in (tmp_path / "out").rglob("*.*")}
    assert handler.files == {**files, "note.txt": b"kept"}
    assert not [name for name in files if name.endswith(".py")]


def test_a_refusal_is_one_line_that_says_how_to_push_later(tmp_path, hub):
    address, handler = hub
    handler.refuse = True
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "README.md").write_text("# A data set\n")
    done = with_hub(address, tmp_path, PUSH_ALONE, tmp_path / "out")
    assert done.returncode == 1
    assert "is built, but was not pushed to org/name" in done.stderr
    assert f"hf upload org/name {tmp_path / 'out'}" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_without_a_login_nothing_begins(tmp_path, hub):
    done = with_hub(hub[0], tmp_path, PUSH_ALONE, tmp_path, token=None)
    assert done.returncode == 1
    assert "needs a login" in done.stderr
