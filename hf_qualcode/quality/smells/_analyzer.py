"""Sonar's Python analyzer on this machine: where its two jars lie, what they must be, and the Java that runs them.

The jars are not part of this package. `hf-qualcode install-sonar` gets them (see `_fetching`).
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
import zipfile
from pathlib import Path
from typing import NamedTuple

from hf_qualcode.digests import file_digest
from hf_qualcode.hub import cache_dir
from hf_qualcode.types import QualcodeError


VERSION = "4.19.0.15616"
ANALYZER_JAR = "sonarpython.jar"
SERVER_JAR = "sonarlint-ls.jar"
JAR_SHA256 = {
    ANALYZER_JAR: "6d31703e618c9f8f88726955504fb9588c05d1090dedc227178be65c19d97baf",
    # The plugin API and the rule annotations are in this one.
    SERVER_JAR: "9c220c9c13297e403a111f88657131e757150734c26d8d22ba2ab4d427bc2d9b",
}
INSTALL = "run `hf-qualcode install-sonar`"
JAVA_MAJOR = 17
GET_JAVA = f"install a JDK {JAVA_MAJOR} or newer, or set JAVA_HOME to one"

_RULES = "org/sonar/l10n/py/rules/python"
_MAIN = Path(__file__).with_name("SonarPy.java")
_VERSION_LINE = re.compile(r'version "(?:1\.)?(\d+)')


class Java(NamedTuple):
    """The programs `java` and `javac`; the latter is `None` where there is only a run-time environment."""

    java: str
    javac: str | None


def sonar_folder() -> Path:
    """Where the jars belong. The folder may not exist."""
    return cache_dir() / "sonar" / VERSION


def find_jars(folder: Path) -> list[Path] | None:
    """The two jars in a folder, `None` where one is not there or is not the pinned one."""
    jars = [folder / name for name in JAR_SHA256]
    try:
        intact = all(file_digest(jar) == JAR_SHA256[jar.name] for jar in jars)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise QualcodeError(f"Sonar's analyzer cannot be read: {error.strerror} ({error.filename})") from error
    return jars if intact else None


def require_jars(folder: Path) -> list[Path]:
    """`find_jars`, or the error that says what to do."""
    jars = find_jars(folder)
    if jars is None:
        what = (
            "is damaged or another version" if any((folder / name).exists() for name in JAR_SHA256) else "is missing"
        )
        raise QualcodeError(f"Sonar's Python analyzer {VERSION} {what} in {folder}; {INSTALL}")
    return jars


def find_java() -> Java:
    """The Java of `$JAVA_HOME`, else of the path.

    Raises:
        `QualcodeError`: There is none, or it is too old.
    """
    home = os.environ.get("JAVA_HOME")
    folder = str(Path(home) / "bin") if home else None
    java = shutil.which("java", path=folder)
    if java is None:
        where = f"in JAVA_HOME ({home})" if home else "on the path"
        raise QualcodeError(f"there is no Java {where}, and Sonar's analyzer needs it; {GET_JAVA}")
    try:
        done = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise QualcodeError(f"{java} does not run ({error}); {GET_JAVA}") from error
    found = _VERSION_LINE.search(done.stderr + done.stdout)
    if done.returncode or found is None:
        raise QualcodeError(f"{java} does not say its version; {GET_JAVA}")
    if int(found[1]) < JAVA_MAJOR:
        raise QualcodeError(f"{java} is Java {found[1]}, and Sonar's analyzer needs {JAVA_MAJOR}; {GET_JAVA}")
    # The compiler of the same Java, not another one's that comes first on the path.
    beside = shutil.which("javac", path=str(Path(java).resolve().parent))
    return Java(java, beside or shutil.which("javac", path=folder))


def require_compiler(java: Java) -> str:
    """Path of `javac`, or the error that says what to do."""
    if java.javac is None:
        raise QualcodeError(
            f"{java.java} is a run-time environment without the compiler javac, which is needed once; {GET_JAVA}"
        )
    return java.javac


def smell_rules(jar: Path) -> list[str]:
    """Keys of the rules whose type is CODE_SMELL and which the profile "Sonar way" turns on, as the jar says."""
    with zipfile.ZipFile(jar) as archive:
        profile = json.loads(archive.read(f"{_RULES}/Sonar_way_profile.json"))["ruleKeys"]
        return sorted(
            key for key in profile if json.loads(archive.read(f"{_RULES}/{key}.json"))["type"] == "CODE_SMELL"
        )


def compiled_main(jars: list[Path], java: Java) -> Path:
    """Folder with our compiled main, compiled now where it is not there yet.

    The folder is named by what it is made from. It is filled aside, then renamed, so that of two processes that
    compile at once one wins and both find whole files.

    Raises:
        `QualcodeError`: There is no compiler, or it fails.
    """
    source = _MAIN.read_bytes()
    made_from = hashlib.sha256(source + "".join(JAR_SHA256[jar.name] for jar in jars).encode()).hexdigest()
    target = cache_dir() / "sonar" / f"main-{made_from[:16]}"
    if (target / "SonarPy.class").is_file():
        return target
    javac = require_compiler(java)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".compiling-") as aside:
            classes = Path(aside, "classes")
            command = [javac, "-J-XX:+UseSerialGC", "--release", str(JAVA_MAJOR), "-encoding", "UTF-8"]
            command += ["-cp", os.pathsep.join(map(str, jars)), "-d", str(classes), str(_MAIN)]
            done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=300, check=False)
            if done.returncode:
                said = next(iter((done.stderr or done.stdout).splitlines()), f"it ended with {done.returncode}")
                raise QualcodeError(f"{javac} cannot compile our Java main: {said}; {GET_JAVA}")
            try:
                classes.rename(target)
            except OSError:
                # Another process was faster, unless the file is still not there.
                if not (target / "SonarPy.class").is_file():
                    raise
    except subprocess.TimeoutExpired as error:
        raise QualcodeError(f"{javac} did not end within 300 s") from error
    except OSError as error:
        raise QualcodeError(
            f"our Java main cannot be kept in {target.parent}: {error.strerror}; make room there, or set "
            "HF_QUALCODE_CACHE to another folder"
        ) from error
    return target
