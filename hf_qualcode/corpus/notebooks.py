"""Jupyter notebooks: their code cells as one source text, and its units.

The text is the code cells' sources in order, joined by line ends; line numbers are 1-based in it.
"""

import hashlib
import json
import re
import time
from typing import NamedTuple

from hf_qualcode.corpus.lines import encodable, normalize_newlines
from hf_qualcode.corpus.units import Extraction, Ids, TopLevel, build_units
from hf_qualcode.languages import get_language, language_names
from hf_qualcode.languages._outline import outline
from hf_qualcode.languages._parsing import TIME_LIMIT_SECONDS
from hf_qualcode.types import QualcodeError, Unit


# `%matplotlib inline`, `!ls`, `?help`; `files = !ls` and `x = %magic` are commands too.
LINE_MAGIC = re.compile(r"^(\s*+)(?:%{1,2}[A-Za-z]|[!?]|[\w., ]+=\s*(?:!|%\w)|[\w.]+\?{1,2}\s*$)")
# After these the cell is still Python.
PYTHON_CELL_MAGIC = re.compile(r"^%%(?:time|timeit|capture|prun|snakeviz|mprun|memit|writefile\s.*\.py$)")
KERNEL_LANGUAGES = {"python2": "python", "python3": "python", "ipython": "python", "c++": "cpp", "node": "javascript"}
CELL_ID_MAX_CHARS = 64  # what nbformat allows


class NotebookError(QualcodeError):
    """The file is no notebook that can be read."""


class UnknownKernelError(QualcodeError):
    """The notebook's cells are in a language that is not known."""


class Cell(NamedTuple):
    """A code cell: its id (in old formats a hash of its source, so that other cells have no say) and its source."""

    id: str
    source: str


class Notebook(NamedTuple):
    """The code cells of a notebook, and their language's name."""

    language: str
    cells: list[Cell]

    @property
    def source(self) -> str:
        """The text that line numbers count in."""
        return "\n".join(cell.source for cell in self.cells)


def read_notebook(text: str) -> Notebook:
    """Reads a notebook of nbformat 3 or later.

    Args:
        text (`str`): The file's JSON.

    Returns:
        [`Notebook`]

    Raises:
        [`NotebookError`]: Not JSON, or not a notebook.
        [`UnknownKernelError`]: The kernel's language is not known.
    """
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise NotebookError(f"not JSON: {error or 'nested too deeply'}") from error
    if not isinstance(content, dict):
        raise NotebookError("not a notebook: the file holds no JSON object")
    sheets = content.get("cells")
    if sheets is None and isinstance(content.get("worksheets"), list):  # nbformat 3
        sheets = [
            cell for sheet in content["worksheets"] if isinstance(sheet, dict) for cell in _list(sheet.get("cells"))
        ]
    if not isinstance(sheets, list):
        raise NotebookError("not a notebook: no list of cells")
    cells: list[Cell] = []
    taken: set[str] = set()
    for cell in sheets:
        if not isinstance(cell, dict) or cell.get("cell_type") != "code":
            continue
        source = cell.get("source", cell.get("input", ""))
        if isinstance(source, list):
            source = "".join(part for part in source if isinstance(part, str))
        if not isinstance(source, str):
            raise NotebookError(f"not a notebook: the source of code cell {len(cells) + 1} is not text")
        # JSON can spell out lone surrogates, text cannot hold them.
        source = encodable(normalize_newlines(source))
        cell_id = cell.get("id")
        cell_id = encodable(cell_id)[:CELL_ID_MAX_CHARS] if isinstance(cell_id, str) else ""
        if not cell_id or cell_id in taken:
            cell_id = hashlib.sha256(source.encode()).hexdigest()[:8]
        taken.add(cell_id)
        cells.append(Cell(cell_id, source))
    return Notebook(_kernel_language(content.get("metadata")), cells)


def _list(value: object) -> list:
    return value if isinstance(value, list) else []


def _kernel_language(metadata: object) -> str:
    metadata = metadata if isinstance(metadata, dict) else {}
    kernel, info = metadata.get("kernelspec"), metadata.get("language_info")
    name = kernel.get("language") or kernel.get("name") if isinstance(kernel, dict) else None
    if not isinstance(name, str):
        name = info.get("name") if isinstance(info, dict) else None
    if not isinstance(name, str) or not name:
        return "python"
    name = name.lower()
    if name not in language_names() and isinstance(info, dict) and isinstance(info.get("name"), str):
        name = info["name"].lower()  # kernels have names of their own: `conda-env-x`
    name = KERNEL_LANGUAGES.get(name, name)
    if name not in language_names():
        raise UnknownKernelError(f"cells in {name!r}")
    return name


def extract_notebook_units(
    notebook: Notebook, path: str, *, id_prefix: str = "", time_limit: float = TIME_LIMIT_SECONDS
) -> Extraction:
    """Finds the units in a notebook: functions and classes as elsewhere, and what else is in a cell as a unit of kind
    `"cell"` named `<cell ID>`.

    A name defined in several cells gets `#2`, as in a file.

    Args:
        notebook ([`Notebook`]): As read.
        path (`str`): POSIX path of the file, for the ids.
        id_prefix (`str`, *optional*, defaults to `""`): Put in front of every id.
        time_limit (`float`, *optional*, defaults to 2.0): Seconds that the parser may take, for all cells.

    Returns:
        [`Extraction`]

    Raises:
        [`ParseLimitError`]: The cells are too much for the parser.
    """
    language = get_language(notebook.language)
    ids = Ids(id_prefix + path)
    units: list[Unit] = []
    has_errors = False
    first_line = 1
    deadline = time.thread_time() + time_limit
    for cell in notebook.cells:
        lines = cell.source.split("\n")
        parsed = lines
        if any(line.strip() for line in lines):
            found = outline(cell.source, lines, language, path, deadline - time.thread_time())
            if found.has_errors and language.name == "python":
                parsed = without_magics(parsed)
                found = outline("\n".join(parsed), parsed, language, path, deadline - time.thread_time())
            has_errors |= found.has_errors
            top_level = TopLevel(kind="cell", name=f"<cell {cell.id}>", min_code_lines=1)
            units += build_units(found, lines, parsed, path, language, ids, top_level, first_line)
        first_line += len(lines)
    units.sort(key=lambda unit: (unit.start_line, -unit.end_line))
    return Extraction(units, has_errors)


def without_magics(lines: list[str]) -> list[str]:
    """Returns a Python cell's lines with IPython's commands replaced by `pass`, so that the rest can be parsed.

    A cell that is handed to something else whole (`%%bash`) becomes empty.
    """
    opening = next((position for position, line in enumerate(lines) if line.strip()), 0)
    if lines[opening].startswith("%%"):
        if not PYTHON_CELL_MAGIC.match(lines[opening]):
            return [""] * len(lines)
        lines = [*lines[:opening], "", *lines[opening + 1 :]]
    plain = []
    continues = False
    for line in lines:
        match = None if continues else LINE_MAGIC.match(line)
        is_magic = continues or match is not None
        plain.append(("" if continues else match[1] + "pass") if is_magic else line)
        continues = is_magic and line.endswith("\\")
    return plain
