"""Which units a search may find: by language and by path."""

import re
from collections.abc import Sequence

import numpy as np
import pathspec

from hf_qualcode.languages import get_language
from hf_qualcode.retrieve.index import CodeIndex
from hf_qualcode.types import UsageError


def eligible_units(
    index: CodeIndex, language: str | None, include: Sequence[str], exclude: Sequence[str]
) -> np.ndarray | None:
    """The units that the filters of a search leave.

    Args:
        index (`CodeIndex`): What is searched.
        language (`str`, *optional*): Only units of this language.
        include, exclude (`list[str]`): Globs in the manner of .gitignore over the units' paths.

    Returns:
        bool `[num_units]`, or `None` where there is no filter.

    Raises:
        `UsageError`: an unknown language, or a malformed glob.
    """
    if language is None and not include and not exclude:
        return None
    table = index.table
    eligible = np.ones(len(index), dtype=bool)
    if language is not None:
        get_language(language)  # an unknown name is an error, not an empty page
        eligible &= np.array([name == language for name in table["language"].to_pylist()], dtype=bool)
    if include or exclude:
        paths = table["path"].to_pylist()
        for globs, wanted in ((include, True), (exclude, False)):
            if globs:
                spec = _glob_spec(globs)
                keep = {path: spec.match_file(path) == wanted for path in set(paths)}
                eligible &= np.array([keep[path] for path in paths], dtype=bool)
    return eligible


def _glob_spec(globs: Sequence[str]) -> pathspec.GitIgnoreSpec:
    globs = [globs] if isinstance(globs, str) else globs
    try:
        return pathspec.GitIgnoreSpec.from_lines(globs)
    except (ValueError, re.error) as error:
        raise UsageError(f"a glob cannot be read: {error}") from None
