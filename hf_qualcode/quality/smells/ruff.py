"""Smells by ruff: the rules nearest to those of Sonar. A proxy for where there is no Java, not a substitute.

On 110 modules of Python's own library these rules hit about half of the lines that Sonar hits, and many that it does
not. Sonar's second commonest rule there, duplicated string literals, has no counterpart.
"""

import functools
import hashlib
import json
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from hf_qualcode.quality.smells import Finding
from hf_qualcode.quality.smells._base import BaseEngine, Progress, program_bytes
from hf_qualcode.types import QualcodeError


IS_PROXY = True
# What a user must have; shown where an engine is to be chosen.
NEEDS = "nothing more, but it is a proxy for Sonar"
# ruff's rule for each of Sonar's that has one and is on in "Sonar way". Left out: UP034 for S1110, which finds the
# double parentheses that 2to3 leaves rather than what people write.
SONAR_RULES = {
    "S3776": ("C901",),
    "S107": ("PLR0913",),
    "S1172": ("ARG001", "ARG002", "ARG003", "ARG004", "ARG005"),
    "S1481": ("F841",),
    "S125": ("ERA001",),
    "S1135": ("FIX002",),
    "S1134": ("FIX001",),
    "S1066": ("SIM102",),
    "S108": ("S110", "SIM105", "PIE790"),
    "S1542": ("N802",),
    "S101": ("N801",),
    "S117": ("N803", "N806"),
    "S112": ("TRY002",),
    "S5754": ("E722",),
    "S5713": ("B014",),
    "S2737": ("TRY203",),
    "S1871": ("SIM114",),
    "S1940": ("SIM201", "SIM202", "SIM208"),
    "S3626": ("PLR1711",),
    "S3457": ("F541", "F507", "F509", "F524"),
    "S5806": ("A001", "A002"),
    "S6660": ("E721",),
    "S2208": ("F403",),
    "S1515": ("B023",),
    "S5717": ("B006",),
    "S5720": ("N805",),
    "S2710": ("N804",),
    "S5914": ("B011", "F631"),
    "S5797": ("SIM222", "SIM223", "PLR0133"),
    "S2836": ("PLW0120",),
    "S6546": ("UP007",),
    "S6659": ("FURB188", "PIE810"),
    "S6709": ("NPY002",),
    "S6730": ("NPY001",),
    "S6734": ("PD002",),
    "S6735": ("PD015",),
    "S6741": ("PD011",),
    "S6903": ("DTZ003", "DTZ004"),
    "S5799": ("ISC001", "ISC003"),
    "S5795": ("F632",),
    "S5780": ("F601",),
    "S5781": ("B033",),
}
RULES = tuple(sorted({code for codes in SONAR_RULES.values() for code in codes}))
# Everything that decides what is found. No file of the user's has a say, and no comment of the program.
_ARGUMENTS = (
    "check",
    "--isolated",
    "--no-cache",
    "--ignore-noqa",
    "--no-fix",
    "--no-preview",
    "--no-respect-gitignore",
    "--exit-zero",
    "--target-version=py313",
    "--select=" + ",".join(RULES),
    "--config=exclude=[]",
    "--config=lint.mccabe.max-complexity=10",
    "--config=lint.pylint.max-args=13",  # Sonar's
)
_BATCH_PROGRAMS = 2_000
_BATCH_SECONDS = 60.0


@functools.cache
def _ruff() -> tuple[str, str]:
    """Path and version of the installed ruff."""
    from ruff import find_ruff_bin

    try:
        path = find_ruff_bin()
        done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        raise QualcodeError(
            f"ruff does not run ({error}); install it again: `pip install --force-reinstall 'ruff>=0.17,<0.18'`"
        ) from error
    return path, done.stdout.split()[1]


class RuffEngine(BaseEngine):
    """The rules of ruff that are nearest to Sonar's, on each program alone.

    Raises:
        `QualcodeError`: ruff does not run.
    """

    name = "ruff"
    is_proxy = IS_PROXY
    description = 'a proxy, not Sonar: the rules of ruff that are nearest to those of the profile "Sonar way"'

    def __init__(self):
        self._path, version = _ruff()
        self.version = f"{version}+{hashlib.sha256(' '.join(_ARGUMENTS).encode()).hexdigest()[:8]}"

    def __reduce__(self):
        return RuffEngine, ()

    def examine(self, texts: Sequence[str], progress: Progress | None = None) -> list[tuple[Finding, ...] | None]:
        """See `SmellEngine.examine`."""
        examined: list[tuple[Finding, ...] | None] = []
        for start in range(0, len(texts), _BATCH_PROGRAMS):
            examined += self._examine_batch([program_bytes(text) for text in texts[start : start + _BATCH_PROGRAMS]])
            if progress is not None:
                progress("smells (ruff)", len(examined), len(texts))
        return examined

    def _examine_batch(self, programs: list[bytes | None]) -> list[tuple[Finding, ...] | None]:
        entries = self._check(programs)
        if entries is None and len(programs) > 1:
            # One of them brings ruff down: halve until it is alone.
            middle = len(programs) // 2
            return self._examine_batch(programs[:middle]) + self._examine_batch(programs[middle:])
        if entries is None:
            return [None]
        findings, failed = defaultdict(list), set()
        for entry in entries:
            number = int(Path(entry["filename"]).stem)
            if entry["code"] in RULES:
                findings[number].append(Finding(entry["code"], entry["location"]["row"], entry["message"]))
            else:
                failed.add(number)  # a syntax error, or an error of ruff's own
        return [
            None if program is None or number in failed else tuple(sorted(findings[number]))
            for number, program in enumerate(programs)
        ]

    def _check(self, programs: list[bytes | None]) -> list[dict] | None:
        """What ruff writes about the programs, named by their numbers; `None` where it fails."""
        with tempfile.TemporaryDirectory(prefix="hf-qualcode-ruff-") as folder:
            for number, program in enumerate(programs):
                if program is not None:
                    Path(folder, f"{number}.py").write_bytes(program)
            try:
                done = subprocess.run(
                    [self._path, *_ARGUMENTS, "--output-format=json", "."],
                    cwd=folder,
                    capture_output=True,
                    timeout=_BATCH_SECONDS + 0.1 * len(programs),
                    check=True,
                )
                return json.loads(done.stdout)
            except (subprocess.SubprocessError, ValueError):
                return None


def engine() -> RuffEngine:
    """The engine on the installed ruff."""
    return RuffEngine()
