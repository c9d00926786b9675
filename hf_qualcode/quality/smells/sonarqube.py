"""Smells by a SonarQube server of the user's: a temporary project is scanned, its issues are read, it is deleted.

Set `SONAR_HOST_URL` and `SONAR_TOKEN`; `sonar-scanner` must be on the path. Rules are those of the server's default
profile, and comments such as `# NOSONAR` are obeyed, as the server does.
"""

import json
import os
import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from hf_qualcode.quality.smells import Finding
from hf_qualcode.quality.smells._base import BaseEngine, Progress, program_bytes
from hf_qualcode.types import QualcodeError


IS_PROXY = False
# What a user must have; shown where an engine is to be chosen.
NEEDS = "a SonarQube server (SONAR_HOST_URL, SONAR_TOKEN) and sonar-scanner"
# The server lists no more than 10,000 issues a question.
_LISTED_ISSUES = 10_000
_PAGE_ISSUES = 500
# So many names of files fit into one address.
_FILES_A_QUESTION = 50
_BATCH_PROGRAMS = 2_000
_SCAN_SECONDS = 3_600.0
_SECONDS_TO_ANSWER = 60
_PAUSE_SECONDS = 1.0


class SonarQubeEngine(BaseEngine):
    """Issues of type CODE_SMELL that a SonarQube server finds, each program a file of a temporary project.

    Raises:
        `QualcodeError`: Address, token or scanner is missing, or the server does not answer.
    """

    name = "sonarqube"
    is_proxy = IS_PROXY

    def __init__(self):
        self._address = os.environ.get("SONAR_HOST_URL", "").rstrip("/")
        parts = urllib.parse.urlsplit(self._address)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
            raise QualcodeError("SONAR_HOST_URL is no plain http(s) address; set it to that of your SonarQube server")
        if not os.environ.get("SONAR_TOKEN"):
            raise QualcodeError("SONAR_TOKEN is not set; make a user token in SonarQube (My Account, Security)")
        scanner = shutil.which("sonar-scanner")
        if scanner is None:
            raise QualcodeError("sonar-scanner is not on the path; install it, or use `--smells sonar`")
        self._scanner = scanner
        self.version = str(self._call("api/system/status", {}).get("version", "unknown"))
        # Renamed in 10.2.
        self._components = "componentKeys" if _release(self.version) < (10, 2) else "components"
        self.description = f"SonarQube {self.version}, issues of type CODE_SMELL under the server's default profile"

    def __reduce__(self):
        return SonarQubeEngine, ()

    def examine(self, texts: Sequence[str], progress: Progress | None = None) -> list[tuple[Finding, ...] | None]:
        """See `SmellEngine.examine`. Programs that the server could not parse are `None`."""
        examined: list[tuple[Finding, ...] | None] = []
        for start in range(0, len(texts), _BATCH_PROGRAMS):
            examined += self._examine_batch([program_bytes(text) for text in texts[start : start + _BATCH_PROGRAMS]])
            if progress is not None:
                progress("smells (sonarqube)", len(examined), len(texts))
        return examined

    def _examine_batch(self, programs: list[bytes | None]) -> list[tuple[Finding, ...] | None]:
        project = f"hf-qualcode-{uuid.uuid4().hex}"
        with tempfile.TemporaryDirectory(prefix="hf-qualcode-sonarqube-") as folder:
            sources = Path(folder, "sources")
            sources.mkdir()
            for number, program in enumerate(programs):
                if program is not None:
                    (sources / f"{number}.py").write_bytes(program)
            try:
                failed = self._scan(project, Path(folder))
                findings = self._findings(project, [n for n, program in enumerate(programs) if program is not None])
            finally:
                self._delete(project)
        return [
            None if program is None or number in failed else tuple(sorted(findings[number]))
            for number, program in enumerate(programs)
        ]

    def _scan(self, project: str, folder: Path) -> set[int]:
        """Scan the sources and wait for the server. Returns the numbers of programs that did not parse."""
        report = folder / "report-task.txt"
        settings = {
            "projectKey": project,
            "projectBaseDir": str(folder),
            "sources": "sources",
            "sourceEncoding": "UTF-8",
            "scm.disabled": "true",
            "cpd.exclusions": "**",
            "working.directory": str(folder / "work"),
            "scanner.metadataFilePath": str(report),
        }
        # Address and token go by the environment, where other users of the machine do not see them.
        command = [self._scanner, *(f"-Dsonar.{name}={value}" for name, value in settings.items())]
        try:
            done = subprocess.run(
                command,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                timeout=_SCAN_SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise QualcodeError(f"sonar-scanner failed: {type(error).__name__}; see if it runs by hand") from error
        if done.returncode:
            errors = [line for line in done.stdout.splitlines() if "ERROR" in line] or done.stdout.splitlines()
            said = _without_token(errors[0].strip() if errors else "nothing")
            raise QualcodeError(f"sonar-scanner ended with {done.returncode} and said: {said}")
        self._wait(report)
        unparsed = [line for line in done.stdout.splitlines() if "Unable to parse file" in line]
        return {number for line in unparsed for number in _numbers_in(line)}

    def _wait(self, report: Path) -> None:
        try:
            entries = dict(
                line.split("=", 1) for line in report.read_text(encoding="utf-8").splitlines() if "=" in line
            )
            task = entries["ceTaskId"]
        except (OSError, KeyError) as error:
            raise QualcodeError("sonar-scanner left no report-task.txt that names the server's task") from error
        deadline = time.monotonic() + _SCAN_SECONDS
        while time.monotonic() < deadline:
            status = self._call("api/ce/task", {"id": task}).get("task", {}).get("status")
            if status == "SUCCESS":
                return
            if status in ("FAILED", "CANCELED"):
                raise QualcodeError(f"SonarQube's background task {task} ended with {status}; see it on the server")
            time.sleep(_PAUSE_SECONDS)
        raise QualcodeError(f"SonarQube's background task {task} did not end within {_SCAN_SECONDS:g} s")

    def _findings(self, project: str, numbers: list[int]) -> dict[int, list[Finding]]:
        findings: dict[int, list[Finding]] = defaultdict(list)
        for start in range(0, len(numbers), _FILES_A_QUESTION):
            self._read(project, numbers[start : start + _FILES_A_QUESTION], findings)
        return findings

    def _read(self, project: str, numbers: list[int], findings: dict[int, list[Finding]]) -> None:
        question = {
            self._components: ",".join(f"{project}:sources/{number}.py" for number in numbers),
            "types": "CODE_SMELL",
            "ps": _PAGE_ISSUES,
        }
        page, seen = 1, 0
        while True:
            answer = self._call("api/issues/search", {**question, "p": page})
            total = int(answer.get("paging", {}).get("total", answer.get("total", 0)))
            if total > _LISTED_ISSUES and len(numbers) > 1:
                middle = len(numbers) // 2
                self._read(project, numbers[:middle], findings)
                self._read(project, numbers[middle:], findings)
                return
            issues = answer.get("issues", [])
            for issue in issues:
                number = int(Path(issue["component"]).stem)
                findings[number].append(Finding(issue["rule"], int(issue.get("line", 0)), issue.get("message", "")))
            seen += len(issues)
            if not issues or seen >= min(total, _LISTED_ISSUES):
                return
            page += 1

    def _delete(self, project: str) -> None:
        try:
            self._call("api/projects/delete", {"project": project}, post=True)
        except QualcodeError:
            # Without the right to delete, or when it was never made: the results are what matters, not the rest.
            return

    def _call(self, path: str, question: dict, *, post: bool = False) -> dict:
        data = urllib.parse.urlencode(question)
        address = f"{self._address}/{path}" + ("" if post or not question else f"?{data}")
        request = urllib.request.Request(address, data=data.encode() if post else None)
        # Not sent on to where a redirect points.
        request.add_unredirected_header("Authorization", f"Bearer {os.environ.get('SONAR_TOKEN', '')}")
        try:
            with urllib.request.urlopen(request, timeout=_SECONDS_TO_ANSWER) as answer:
                content = answer.read()
            return json.loads(content) if content else {}
        except urllib.error.HTTPError as error:
            hint = "; SONAR_TOKEN is not valid there, or lacks the right" if error.code in (401, 403) else ""
            raise QualcodeError(f"SonarQube answered {error.code} to {path}{hint}") from None
        except (OSError, ValueError) as error:
            raise QualcodeError(
                f"SonarQube at SONAR_HOST_URL does not answer {path} ({type(error).__name__}); is it running?"
            ) from None


def _without_token(text: str) -> str:
    return text.replace(os.environ.get("SONAR_TOKEN") or "\0", "***")


def _release(version: str) -> tuple[int, ...]:
    return tuple(int(part) if part.isdecimal() else 0 for part in version.split(".")[:2])


def _numbers_in(line: str) -> list[int]:
    """Numbers of the programs that a line of the scanner's log names."""
    names = line.replace(":", " ").replace("'", " ").split()
    return [int(Path(name).stem) for name in names if name.endswith(".py") and Path(name).stem.isdecimal()]


def engine() -> SonarQubeEngine:
    """The engine on the server that the environment names."""
    return SonarQubeEngine()
