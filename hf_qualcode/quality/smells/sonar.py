"""Smells by Sonar's own Python analyzer, run on its jars by a small Java main; no server and no project."""

import functools
import os
from collections.abc import Sequence
from pathlib import Path

from hf_qualcode.quality.smells import Finding
from hf_qualcode.quality.smells._analyzer import (
    ANALYZER_JAR,
    VERSION,
    compiled_main,
    find_java,
    require_jars,
    smell_rules,
    sonar_folder,
)
from hf_qualcode.quality.smells._base import BaseEngine, Progress, program_bytes
from hf_qualcode.quality.smells._process import RestartingProcess


IS_PROXY = False
# What a user must have; shown where an engine is to be chosen.
NEEDS = "Java 17 (a JDK) and hf-qualcode install-sonar; the analyser of the paper"
# The slowest module of Python's own library takes 1.4 s.
_PROGRAM_SECONDS = 60.0
_OPTIONS = (
    "-Djava.awt.headless=true",
    "-XX:+UseSerialGC",
    # Programs are many and small: what the second compiler gains it does not earn back. 30 % less processor time.
    "-XX:TieredStopAtLevel=1",
    "-Xmx768m",
    "-XX:+ExitOnOutOfMemoryError",
    "-XX:-UsePerfData",
    "-XX:-CreateCoredumpOnCrash",
    "-XX:ErrorFile=/dev/null",
    # A library in the jars brings another one, with which the analyzer's log cannot be set up.
    "-Djavax.xml.parsers.SAXParserFactory=com.sun.org.apache.xerces.internal.jaxp.SAXParserFactoryImpl",
)


class SonarEngine(BaseEngine):
    """The 121 maintainability rules of the profile "Sonar way", on each program alone.

    Types and profile are the jar's. `# NOSONAR` has no effect: in a scan it is the server that obeys it.

    Args:
        folder (`Path`, *optional*): Folder with the two jars. Defaults to where `install-sonar` puts them.
        seconds (`float`): Programs that take longer are `None`.

    Raises:
        `QualcodeError`: The jars or Java are missing.
    """

    name = "sonar"
    version = VERSION
    is_proxy = IS_PROXY
    description = f'Sonar\'s Python analyzer {VERSION}, rules of type CODE_SMELL in the profile "Sonar way"'

    def __init__(self, folder: Path | None = None, seconds: float = _PROGRAM_SECONDS):
        self._folder, self._seconds = folder, seconds
        self._jars = [jar.resolve() for jar in require_jars(folder or sonar_folder())]
        self._java = find_java()
        self._classes = compiled_main(self._jars, self._java)
        self._process = RestartingProcess(self._command, lambda: self._classes, seconds)

    def __reduce__(self):
        return SonarEngine, (self._folder, self._seconds)

    @functools.cached_property
    def rules(self) -> tuple[str, ...]:
        """Ids of the rules, sorted."""
        return tuple(f"python:{key}" for key in self._keys)

    @functools.cached_property
    def _keys(self) -> list[str]:
        return smell_rules(next(jar for jar in self._jars if jar.name == ANALYZER_JAR))

    def _command(self) -> list[str]:
        class_path = os.pathsep.join(map(str, [self._classes.resolve(), *self._jars]))
        return [self._java.java, *_OPTIONS, "-cp", class_path, "SonarPy", *self._keys]

    def examine(self, texts: Sequence[str], progress: Progress | None = None) -> list[tuple[Finding, ...] | None]:
        """See `SmellEngine.examine`. A program that hangs the analyzer, or brings it down, is `None`."""
        examined = []
        for done, text in enumerate(texts, 1):
            examined.append(self._examine(text))
            if progress is not None:
                progress("smells (sonar)", done, len(texts))
        return examined

    def _examine(self, text: str) -> tuple[Finding, ...] | None:
        program = program_bytes(text)
        answer = None if program is None else self._process.ask(program)
        if answer is None or "findings" not in answer:
            return None
        return tuple(sorted(Finding(f"python:{rule}", line, message) for rule, line, message in answer["findings"]))

    def close(self) -> None:
        """See `SmellEngine.close`."""
        self._process.close()


def engine() -> SonarEngine:
    """The engine on the jars in the cache."""
    return SonarEngine()
