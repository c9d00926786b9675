"""Writers: where variants of code come from. One module a writer, found by its name.

A module `hf_qualcode/synthesis/writers/<name>.py` sets

- `NEEDS`: one clause, what a user must have for it;
- `ANSWERS_PROMPTS`: whether it answers prompts, as a language model does, or changes the code that tasks come with.

If it answers prompts, it also has `open_writer(settings) -> Writer`; if it does not,
`write_variants(tasks, out, settings, progress) -> dict`, which leaves `variants.jsonl` in the folder `out` and returns
counts for the report. Adding a writer is adding that file.
"""

import importlib
import pkgutil
from types import ModuleType

from hf_qualcode.synthesis.writers._base import Writer, WriterSettings
from hf_qualcode.types import UsageError


__all__ = ["Writer", "WriterSettings", "load_writer", "writer_names"]


def writer_names() -> tuple[str, ...]:
    """Names of all writers, sorted."""
    return tuple(sorted(found.name for found in pkgutil.iter_modules(__path__) if not found.name.startswith("_")))


def load_writer(name: str) -> ModuleType:
    """The module of a writer.

    Raises:
        `UsageError`: No such writer; the message lists those there are and what each needs.
    """
    if name not in writer_names():
        raise UsageError(f"unknown writer {name!r}; choose one of: {writer_list()}")
    return importlib.import_module(f"{__name__}.{name}")


def writer_list() -> str:
    """All writers and what they need, for messages."""
    needs = {name: importlib.import_module(f"{__name__}.{name}").NEEDS for name in writer_names()}
    return "; ".join(f"{name} (needs {need})" for name, need in needs.items())
