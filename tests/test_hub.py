"""Models are found by alias, folder and Hub id; every failure is one clear line; nothing large is imported."""

import errno
import hashlib
import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from hf_qualcode import hub
from hf_qualcode.digests import file_digest
from hf_qualcode.types import QualcodeError, UsageError


def test_cache_dir_follows_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("HF_QUALCODE_CACHE", str(tmp_path / "own"))
    assert hub.cache_dir() == tmp_path / "own"
    monkeypatch.delenv("HF_QUALCODE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert hub.cache_dir() == tmp_path / "hf-qualcode"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert hub.cache_dir() == Path.home() / ".cache" / "hf-qualcode"


def test_import_is_light():
    program = "import sys, hf_qualcode.hub; print([m for m in ('torch', 'transformers', 'numpy') if m in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", program], text=True).strip() == "[]"


def test_folder_resolves_to_itself(tiny_bert, tiny_sentence_transformer):
    assert hub.resolve_model(str(tiny_bert)) == tiny_bert
    assert hub.resolve_model(str(tiny_sentence_transformer)) == tiny_sentence_transformer


@pytest.mark.parametrize("name", ["minilmm", "./no/such", "/no/such/folder", "a/b/c", "", "org/name@", "~no-user"])
def test_what_cannot_be_a_model_is_wrong_usage(name):
    with pytest.raises(UsageError) as caught:
        hub.resolve_model(name)
    assert repr(name) in str(caught.value) and "org/name" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_unreachable_hub_is_one_line(monkeypatch, tmp_path):
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    with pytest.raises(QualcodeError, match="neither a folder here nor in the Hub cache") as caught:
        hub.resolve_model("some-org/no-such-model")
    assert "\n" not in str(caught.value)


def _hub_cache_entry(cache: Path, repo: str, files: dict[str, str]) -> Path:
    """A repository as huggingface_hub keeps it after a download."""
    entry = cache / f"models--{repo.replace('/', '--')}"
    snapshot = entry / "snapshots" / ("0" * 40)
    snapshot.mkdir(parents=True)
    (entry / "refs").mkdir()
    (entry / "refs" / "main").write_text("0" * 40)
    for name, content in files.items():
        (snapshot / name).write_text(content)
    return snapshot


def test_cached_hub_model_needs_no_network(monkeypatch, tmp_path):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    snapshot = _hub_cache_entry(tmp_path, "org/encoder", {"config.json": "{}", "model.safetensors": ""})
    assert hub.resolve_model("org/encoder") == snapshot
    assert hub.resolve_model("org/encoder@main") == snapshot


def test_cached_hub_model_with_modules_alone_needs_no_network(monkeypatch, tmp_path):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    snapshot = _hub_cache_entry(tmp_path, "org/encoder", {"modules.json": "[]", "model.safetensors": ""})
    assert hub.resolve_model("org/encoder") == snapshot == hub.find_model("org/encoder")


def test_an_adapter_is_a_model_too(monkeypatch, tmp_path):
    (tmp_path / "adapter").mkdir()
    for name in ("adapter_config.json", "adapter_model.safetensors"):
        (tmp_path / "adapter" / name).touch()
    assert hub.resolve_model(str(tmp_path / "adapter")) == tmp_path / "adapter"
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    snapshot = _hub_cache_entry(tmp_path, "org/lora", {"adapter_config.json": "{}", "adapter_model.safetensors": ""})
    assert hub.resolve_model("org/lora") == snapshot


@pytest.mark.parametrize("code", ["ENOSPC", "EACCES", "EROFS"])
def test_a_full_disk_is_not_called_a_network_failure(monkeypatch, code):
    def fail(local_files_only=False, **request):
        if local_files_only:
            raise LocalEntryNotFoundError("absent")
        raise OSError(getattr(errno, code), os.strerror(getattr(errno, code)), "/cache/blob")

    from huggingface_hub.errors import LocalEntryNotFoundError

    monkeypatch.setattr("huggingface_hub.snapshot_download", fail)
    monkeypatch.setattr("huggingface_hub.HfApi.model_info", lambda *arguments, **options: None)
    with pytest.raises(QualcodeError, match="cannot be kept in the Hub cache") as caught:
        hub.resolve_model("org/encoder")
    assert os.strerror(getattr(errno, code)) in str(caught.value) and "/cache/blob" in str(caught.value)
    assert "reached" not in str(caught.value)


@pytest.mark.parametrize("listening", [False, True], ids=["refused", "silent"])
def test_an_unreachable_hub_is_one_line_after_one_try(tmp_path, listening):
    program = """
from hf_qualcode import hub
from hf_qualcode.types import QualcodeError
hub._SECONDS_TO_ANSWER = 0.5
try:
    hub.resolve_model("org/encoder")
except QualcodeError as error:
    print(error)
"""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        if listening:
            server.listen()  # connects, and never answers
        endpoint = f"http://127.0.0.1:{server.getsockname()[1]}"
        environment = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
        environment |= {"HF_HUB_OFFLINE": "0", "HF_ENDPOINT": endpoint, "HF_HOME": str(tmp_path)}
        command = [sys.executable, "-c", program]
        run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=100)
    (line,) = run.stdout.splitlines()
    assert "the Hub cannot be reached" in line and run.stderr == ""


def test_find_model_is_none_where_nothing_is(tmp_path):
    (tmp_path / "empty").mkdir()
    for name in ("org/absent", "nonsense", "/no/such", "x" * 5000, str(tmp_path / "empty")):
        assert hub.find_model(name) is None


def test_a_name_too_long_for_a_path_is_wrong_usage():
    with pytest.raises(UsageError):
        hub.resolve_model("x" * 5000)


def test_half_cached_hub_model_is_not_taken(monkeypatch, tmp_path):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    _hub_cache_entry(tmp_path, "org/encoder", {"config.json": "{}"})
    with pytest.raises(QualcodeError):
        hub.resolve_model("org/encoder")


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({}, "no config.json"),
        ({"config.json": "{}"}, "complete the copy"),
        ({"config.json": "{}", "pytorch_model.bin": ""}, "only pickled weights"),
    ],
)
def test_folder_without_a_model_says_what_is_missing(tmp_path, files, said):
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    with pytest.raises(QualcodeError, match=said):
        hub.resolve_model(str(tmp_path))


def test_a_file_is_not_a_model(tmp_path):
    (tmp_path / "model.safetensors").touch()
    with pytest.raises(UsageError, match="is a file"):
        hub.resolve_model(str(tmp_path / "model.safetensors"))


def test_packaged_minilm(minilm_folder):
    assert hub.resolve_model("minilm") == minilm_folder
    assert (minilm_folder / "tokenizer.json").is_file()


def test_wrong_packaged_weights_are_refused(monkeypatch, tmp_path):
    (tmp_path / hub.MINILM_PACKAGE / "model").mkdir(parents=True)
    (tmp_path / hub.MINILM_PACKAGE / "__init__.py").touch()
    (tmp_path / hub.MINILM_PACKAGE / "model" / "model.safetensors").write_bytes(b"other")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, hub.MINILM_PACKAGE, raising=False)
    with pytest.raises(QualcodeError, match=hub.MINILM_SHA256):
        hub.packaged_minilm()


def test_absent_minilm_names_the_extra(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(QualcodeError, match=r"hf-qualcode\[offline\]"):
        hub.resolve_model("minilm")


def test_digest_is_remembered_until_the_file_changes(monkeypatch, tmp_path):
    monkeypatch.setenv("HF_QUALCODE_CACHE", str(tmp_path / "cache"))
    file = tmp_path / "weights"
    file.write_bytes(b"a" * (5 * 2**20))
    assert file_digest(file) == hashlib.sha256(file.read_bytes()).hexdigest()
    (record,) = (tmp_path / "cache" / "digests").glob("*.json")
    content = json.loads(record.read_text())
    record.write_text(json.dumps(content | {"sha256": "remembered"}))
    assert file_digest(file) == "remembered"
    file.write_bytes(b"b" * (5 * 2**20))
    os.utime(file, ns=(0, content["stamp"][1] + 10**9))
    assert file_digest(file) == hashlib.sha256(file.read_bytes()).hexdigest()
    record.write_text("{ damaged")
    assert file_digest(file) == hashlib.sha256(file.read_bytes()).hexdigest()


def test_digest_without_a_writable_cache(monkeypatch, tmp_path):
    (tmp_path / "file").write_bytes(b"a" * (5 * 2**20))
    monkeypatch.setenv("HF_QUALCODE_CACHE", str(tmp_path / "file" / "below-a-file"))
    assert file_digest(tmp_path / "file") == hashlib.sha256(b"a" * (5 * 2**20)).hexdigest()


def test_a_cache_folder_of_nobody_is_wrong_usage(monkeypatch):
    from hf_qualcode.hub import cache_dir
    from hf_qualcode.types import UsageError

    monkeypatch.setenv("HF_QUALCODE_CACHE", "~no-such-user-here/x")
    with pytest.raises(UsageError, match="set HF_QUALCODE_CACHE"):
        cache_dir()
