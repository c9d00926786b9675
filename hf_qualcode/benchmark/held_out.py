"""Texts that no training data may share: test sets read for their statements and programs."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hf_qualcode.benchmark.ngrams import CODE, QUERY
from hf_qualcode.hub import existing_path
from hf_qualcode.types import QualcodeError, UsageError


PREFIXES = ("qualcode:", "mc-qualcode:")
_ROW_FILES = (".jsonl", ".json")
# What files call a statement and a program, the first that is there.
_QUERY_COLUMNS, _CODE_COLUMNS = ("query", "prompt", "text"), ("code",)
_ID_COLUMNS, _PROBLEM_COLUMNS = ("id", "task_id", "problem_id"), ("problem_id", "task_id", "id")
# Of the configurations of a data set that are read: the ones with these.
_QUERY, _PROBLEM, _PROGRAMS = "query", "problem_id", ("positive", "negative")


@dataclass(frozen=True, slots=True)
class HeldOutText:
    """A statement or program of a test set.

    Attributes:
        id (`str`): What reports call it.
        problem_id (`str`): Which problem it belongs to.
        kind (`str`): `"query"` or `"code"`.
        text (`str`): The text.
    """

    id: str
    problem_id: str
    kind: str
    text: str


@dataclass(frozen=True)
class HeldOutSet:
    """A test set: its name in reports, and its texts."""

    name: str
    texts: tuple[HeldOutText, ...]


def read_held_out(source: str, name: str | None = None) -> HeldOutSet:
    """Reads the statements and programs of a test set.

    Args:
        source (`str`):
            A folder or Hub id of QualCode, MC-QualCode or another data set with the columns query, problem_id,
            positive and negative (of relevance lists the positives; what is irrelevant there belongs to other
            problems), or a file: JSON lines, or JSON of one list. Rows of a file have a statement (`query`, `prompt`
            or `text`), a program (`code`) or both, and may have `id` or `task_id`, and `problem_id`; a row may be the
            statement alone.
        name (`str`, *optional*): Defaults to `source`.

    Returns:
        `HeldOutSet`: Each text of a problem once.

    Raises:
        `QualcodeError`: When it cannot be read, or has no text.
        `UsageError`: When nothing is called so.
    """
    plain = next((source.removeprefix(prefix) for prefix in PREFIXES if source.startswith(prefix)), source)
    path = existing_path(plain)
    if path is not None and path.is_file():
        rows = _file_rows(path)
    elif path is not None or plain.count("/") == 1:
        rows = _data_set_rows(plain if path is None else str(path))
    else:
        raise UsageError(f"no test set {source!r}: no file or folder has this path, and it is no Hub id (org/name)")
    seen: dict[tuple[str, str, str], HeldOutText] = {}
    for each in rows:
        if each.text.strip():
            seen.setdefault((each.problem_id, each.kind, each.text), each)
    if not seen:
        raise QualcodeError(f"test set {source} has no statement and no program")
    return HeldOutSet(name or source, tuple(seen.values()))


def _data_set_rows(path: str) -> Iterator[HeldOutText]:
    from datasets import get_dataset_config_names, get_dataset_split_names, load_dataset

    used = False
    try:
        for config in get_dataset_config_names(path):
            for split in get_dataset_split_names(path, config):
                rows = load_dataset(path, config, split=split, streaming=True)
                columns = set(rows.features or ())
                if not {_QUERY, _PROBLEM, _PROGRAMS[0]} <= columns:
                    continue
                used = True
                programs = [name for name in _PROGRAMS if name in columns]
                wanted = [_QUERY, _PROBLEM, *programs, *(f"{name}_id" for name in programs if f"{name}_id" in columns)]
                for row in rows.select_columns(wanted):
                    yield from _pair_texts(path, row, programs)
    except QualcodeError:
        raise
    except Exception as error:  # of datasets, huggingface_hub, pyarrow, the network and the disk
        detail = " ".join(str(error).split())[:200]
        raise QualcodeError(f"{path} cannot be read as a test set ({type(error).__name__}: {detail})") from error
    if not used:
        raise QualcodeError(f"{path} has no configuration with the columns query, problem_id and positive")


def _pair_texts(path: str, row: Mapping[str, Any], programs: list[str]) -> Iterator[HeldOutText]:
    missing = [name for name in (_QUERY, _PROBLEM, *programs) if not isinstance(row[name], str)]
    if missing:
        raise QualcodeError(f"{path}: {missing[0]} is {row[missing[0]]!r}; expected text")
    yield HeldOutText(row[_PROBLEM], row[_PROBLEM], QUERY, row[_QUERY])
    for name in programs:
        yield HeldOutText(row.get(f"{name}_id") or row[_PROBLEM], row[_PROBLEM], CODE, row[name])


def _file_rows(path: Path) -> Iterator[HeldOutText]:
    if path.suffix not in _ROW_FILES:
        raise UsageError(f"test set {path} is none of {', '.join(_ROW_FILES)}")
    try:
        rows = _json_lines(path) if path.suffix == ".jsonl" else enumerate(_json_list(path), 1)
        for number, row in rows:
            yield from _row_texts(f"{path}, row {number}", number, row)
    except (OSError, UnicodeDecodeError, RecursionError) as error:
        raise QualcodeError(f"test set {path} cannot be read ({type(error).__name__}: {error})") from error


def _json_lines(path: Path) -> Iterator[tuple[int, Any]]:
    with path.open(encoding="utf-8-sig") as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                try:
                    yield number, json.loads(line)
                except ValueError as error:
                    raise QualcodeError(f"{path}, line {number} is not JSON ({error})") from None


def _json_list(path: Path) -> list:
    try:
        rows = json.loads(path.read_text(encoding="utf-8-sig"))
    except json.JSONDecodeError as error:
        raise QualcodeError(f"test set {path} is not JSON ({error})") from None
    if not isinstance(rows, list):
        raise QualcodeError(f"test set {path} is a JSON {type(rows).__name__}; expected a list of rows")
    return rows


def _row_texts(where: str, number: int, row: Any) -> Iterator[HeldOutText]:
    if isinstance(row, str):
        row = {_QUERY: row}
    if not isinstance(row, Mapping):
        raise QualcodeError(f"{where} is a {type(row).__name__}; expected an object or a text")
    texts = {
        QUERY: next((row[name] for name in _QUERY_COLUMNS if row.get(name) is not None), None),
        CODE: next((row[name] for name in _CODE_COLUMNS if row.get(name) is not None), None),
    }
    if texts[QUERY] is None and texts[CODE] is None:
        raise QualcodeError(f"{where} has none of {', '.join((*_QUERY_COLUMNS, *_CODE_COLUMNS))}")
    for kind, text in texts.items():
        if text is None:
            continue
        if not isinstance(text, str):
            raise QualcodeError(f"{where}: its {kind} is a {type(text).__name__}; expected text")
        yield HeldOutText(_name(row, _ID_COLUMNS, number), _name(row, _PROBLEM_COLUMNS, number), kind, text)


def _name(row: Mapping[str, Any], columns: tuple[str, ...], number: int) -> str:
    """The first of the columns that the row has, as text; numbers are names as well."""
    return next((str(row[name]) for name in columns if row.get(name) not in (None, "")), f"row {number}")
