"""Smell engines: tools that list what makes a program hard to maintain. One module an engine, found by its name.

A module `hf_qualcode/quality/smells/<name>.py` defines `engine() -> SmellEngine`, `IS_PROXY`, and `NEEDS`, what a user
must have for it; adding an engine is adding that file.
"""

import functools
import importlib
import pkgutil
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, Self

from hf_qualcode.types import UsageError


class Finding(NamedTuple):
    """One maintainability smell of one program.

    Attributes:
        rule (`str`): Id of the rule, for example `python:S1192` or `C901`.
        line (`int`): 1-based; 0 where the whole file is meant.
        message (`str`): What is wrong, in the tool's words. It may quote the program.
    """

    rule: str
    line: int
    message: str


class SmellEngine(Protocol):
    """Lists the maintainability smells of Python programs, each program taken alone.

    Engines obey no comment of a program that asks for silence (`# noqa`, `# NOSONAR`), except `sonarqube`, whose
    server does. They can be pickled: the copy starts processes of its own.

    Attributes:
        name (`str`): Module name in `hf_qualcode.quality.smells`.
        version (`str`): Two engines of equal name and version give equal results.
        is_proxy (`bool`): The engine stands in for Sonar, and whoever shows its results says so.
        description (`str`): One sentence for reports and cards.
    """

    name: str
    version: str
    is_proxy: bool
    description: str

    def examine(
        self, texts: Sequence[str], progress: Callable[[str, int, int], None] | None = None
    ) -> list[tuple[Finding, ...] | None]:
        """Findings of each program, sorted; `None` where it could not be analysed, which is not the same as clean."""
        ...

    def analyse(
        self, texts: Sequence[str], progress: Callable[[str, int, int], None] | None = None
    ) -> list[tuple[str, ...] | None]:
        """Rule id of every finding of each program, sorted; `None` where it could not be analysed."""
        ...

    def close(self) -> None:
        """End the processes of the engine. The next call starts them again."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *_) -> None: ...


@functools.cache
def engine_names() -> tuple[str, ...]:
    """Returns the names of all engines, sorted."""
    return tuple(sorted(found.name for found in pkgutil.iter_modules(__path__) if found.name[0] != "_"))


def load_engine(name: str) -> SmellEngine:
    """Returns the engine called `name`, ready to use. It starts no process yet.

    Raises:
        `UsageError`: No such engine; the message lists those there are.
        `QualcodeError`: The engine lacks something on this machine; the message says what to do.
    """
    if name not in engine_names():
        raise UsageError(f"unknown smell engine {name!r}; choose one of: {', '.join(engine_names())}")
    return importlib.import_module(f"{__name__}.{name}").engine()


def is_proxy(name: str) -> bool:
    """Whether the engine called `name` stands in for Sonar; one that this package does not know is no proxy of it."""
    return name in engine_names() and importlib.import_module(f"{__name__}.{name}").IS_PROXY
