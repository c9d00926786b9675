"""The server engine against a stand-in of the server and of the scanner, both on this machine."""

import http.server
import json
import os
import pickle
import sys
import threading
import urllib.parse

import pytest

from hf_qualcode.quality.smells import Finding, load_engine
from hf_qualcode.quality.smells import sonarqube as module
from hf_qualcode.types import QualcodeError


TOKEN = "squ_secret"
SCANNER = """#!{python}
import json, os, sys, urllib.request
assert "{token}" not in " ".join(sys.argv), "the token is on the command line"
said = dict(argument[2:].split("=", 1) for argument in sys.argv[1:])
if os.environ.get("FAIL"):
    print("INFO: hello\\nERROR: not authorised with " + os.environ["SONAR_TOKEN"])
    sys.exit(2)
files = {{}}
for name in os.listdir(os.path.join(said["sonar.projectBaseDir"], "sources")):
    with open(os.path.join(said["sonar.projectBaseDir"], "sources", name), encoding="utf-8") as file:
        files[name] = file.read()
    if "(((" in files[name]:
        print("WARN: Unable to parse file: sources/" + name)
body = json.dumps({{"project": said["sonar.projectKey"], "files": files}}).encode()
urllib.request.urlopen(os.environ["SONAR_HOST_URL"] + "/push", data=body).read()
if not os.environ.get("NO_REPORT"):
    with open(said["sonar.scanner.metadataFilePath"], "w") as file:
        file.write("projectKey=" + said["sonar.projectKey"] + "\\nceTaskId=T1\\n")
"""


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.projects, self.statuses, self.version, self.limit, self.questions = {}, [], "10.4.1", 10_000, []


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        address = urllib.parse.urlsplit(self.path)
        question = dict(urllib.parse.parse_qsl(address.query))
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            self.send_error(401)
            return
        self.server.questions.append((address.path, question))
        if address.path == "/api/system/status":
            self.say({"version": self.server.version, "status": "UP"})
        elif address.path == "/api/ce/task":
            status = self.server.statuses.pop(0) if self.server.statuses else "SUCCESS"
            self.say({"task": {"id": question["id"], "status": status}})
        else:
            self.say(self.issues(question))

    def issues(self, question):
        """One issue for every `x` of a program, at its line; as a server, no more than `limit` of them."""
        name = "componentKeys" if self.server.version.startswith("9.") else "components"
        if question["types"] != "CODE_SMELL":
            return {"issues": []}
        found = []
        for component in question[name].split(","):
            project, _, path = component.partition(":")
            text = self.server.projects[project][path.removeprefix("sources/")]
            found += [
                {"component": component, "rule": "python:S1", "line": line, "message": "x"}
                for line, content in enumerate(text.split("\n"), 1)
                for _ in range(content.count("x"))
            ]
        size, page = int(question["ps"]), int(question["p"])
        assert size * page <= max(self.server.limit, size)
        return {"paging": {"total": len(found)}, "issues": found[size * (page - 1) : size * page]}

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        if self.path == "/push":
            pushed = json.loads(body)
            self.server.projects[pushed["project"]] = pushed["files"]
            self.say({})
        else:
            del self.server.projects[dict(urllib.parse.parse_qsl(body))["project"]]
            self.send_response(204)
            self.end_headers()

    def say(self, answer):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(answer).encode())

    def log_message(self, *_):
        pass


@pytest.fixture
def server(tmp_path, monkeypatch):
    scanner = tmp_path / "bin" / "sonar-scanner"
    scanner.parent.mkdir()
    scanner.write_text(SCANNER.format(python=sys.executable, token=TOKEN))
    scanner.chmod(0o755)
    monkeypatch.setenv("PATH", f"{scanner.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("SONAR_TOKEN", TOKEN)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(module, "_PAUSE_SECONDS", 0.01)
    with Server() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("SONAR_HOST_URL", f"http://127.0.0.1:{server.server_port}/")
        yield server
        server.shutdown()


def test_issues_by_program(server):
    server.statuses = ["PENDING", "IN_PROGRESS", "SUCCESS"]
    with load_engine("sonarqube") as engine:
        assert (engine.version, engine.is_proxy) == ("10.4.1", False)
        assert "SonarQube 10.4.1" in engine.description
        assert engine.examine(["x", "y", "a\nx", "(((", "\ud800", ""]) == [
            (Finding("python:S1", 1, "x"),), (), (Finding("python:S1", 2, "x"),), None, None, ()
        ]  # fmt: skip
        assert pickle.loads(pickle.dumps(engine)).analyse(["x x"]) == [("python:S1", "python:S1")]
    assert server.projects == {}  # deleted


def test_many_programs_go_in_batches(server, monkeypatch):
    monkeypatch.setattr(module, "_BATCH_PROGRAMS", 70)
    texts = ["x" * (number % 4) for number in range(150)]
    assert load_engine("sonarqube").analyse(texts) == [("python:S1",) * (number % 4) for number in range(150)]


def test_more_issues_than_the_server_lists(server, monkeypatch):
    monkeypatch.setattr(module, "_LISTED_ISSUES", 100)
    monkeypatch.setattr(module, "_PAGE_ISSUES", 20)
    server.limit = 100
    texts = ["x" * (number % 30) for number in range(40)]
    assert [len(rules) for rules in load_engine("sonarqube").analyse(texts)] == [number % 30 for number in range(40)]


def test_older_servers_name_files_otherwise(server):
    server.version = "9.9.0.65466"
    assert load_engine("sonarqube").analyse(["x"]) == [("python:S1",)]


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("SONAR_HOST_URL", "", "SONAR_HOST_URL is no plain http"),
        ("SONAR_HOST_URL", "http://me:pw@127.0.0.1", "SONAR_HOST_URL is no plain http"),
        ("SONAR_HOST_URL", "http://127.0.0.1:9", "does not answer api/system/status .*is it running"),
        ("SONAR_TOKEN", "", "SONAR_TOKEN is not set"),
        ("SONAR_TOKEN", "squ_wrong", "answered 401 to api/system/status; SONAR_TOKEN is not valid"),
        ("PATH", "/nowhere", "sonar-scanner is not on the path"),
    ],
)
def test_what_is_missing_is_said_in_one_line(server, monkeypatch, name, value, message):
    monkeypatch.setenv(name, value)
    with pytest.raises(QualcodeError, match=message) as error:
        load_engine("sonarqube")
    assert "\n" not in str(error.value)
    assert not {"squ_", "pw"} & set(str(error.value).replace(":", " ").split())


@pytest.mark.parametrize(
    ("name", "message"),
    [("FAIL", r"ended with 2 and said: ERROR: not authorised with \*\*\*"), ("NO_REPORT", "left no report-task.txt")],
)
def test_a_scanner_that_fails(server, monkeypatch, name, message):
    monkeypatch.setenv(name, "1")
    with pytest.raises(QualcodeError, match=message):
        load_engine("sonarqube").analyse(["x"])


@pytest.mark.parametrize("status", ["FAILED", "CANCELED"])
def test_a_task_that_fails_on_the_server(server, status):
    server.statuses = ["PENDING", status]
    with pytest.raises(QualcodeError, match=f"background task T1 ended with {status}"):
        load_engine("sonarqube").analyse(["x"])
    assert server.projects == {}
