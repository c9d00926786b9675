"""Rows of `rerank`: read, checked, scored together, written again."""

import json
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from hf_qualcode.cli.qualities import parse_quality
from hf_qualcode.cli.reranking.lines import LONGEST_LINE, Line
from hf_qualcode.quality import instruction_for
from hf_qualcode.types import UsageError


# What is scored together: enough codes to sort them by length, few enough that answers do not keep one waiting.
_CODES_A_BATCH = 512
_ROWS_A_BATCH = 4096
# JSON with so few brackets is not nested too deeply for anyone.
_SURELY_SHALLOW = 500


class _Row(NamedTuple):
    """A line that can be read."""

    number: int
    content: dict[str, Any]
    instruction: str
    query: str
    codes: list[str]


class _BadLine(NamedTuple):
    """A line that cannot."""

    error: str
    number: int


class RowReranker:
    """Answers lines.

    Args:
        reranker (`Reranker`): What scores.
        quality (`Sequence[str]`): Asked of rows that say nothing.
        progress (`Callable`): Called as `progress(stage, done, total)`.

    Attributes:
        num_rows, num_bad (`int`): Lines so far, blank ones aside; of them, those that could not be used.
    """

    def __init__(self, reranker, quality: Sequence[str], progress: Callable[[str, int, int | None], None]):
        self._reranker, self._quality, self._progress = reranker, tuple(quality), progress
        self.num_rows = self.num_bad = self._num_scored = 0

    def answer(self, lines: Sequence[Line]) -> Iterator[list[str]]:
        """One JSON text for each line that is not blank, in their order, batch by batch.

        Raises:
            `QualcodeError`: If the model gives no usable scores.
        """
        waiting: list[_Row | _BadLine] = []
        num_codes = 0
        for line in lines:
            row = self._read(line)
            if row is None:
                continue
            waiting.append(row)
            num_codes += 0 if isinstance(row, _BadLine) else len(row.codes)
            if num_codes >= _CODES_A_BATCH or len(waiting) >= _ROWS_A_BATCH:
                yield self._answered(waiting)
                waiting, num_codes = [], 0
        yield self._answered(waiting)

    def _read(self, line: Line) -> _Row | _BadLine | None:
        if line.content is not None and not line.content.strip():
            return None
        self.num_rows += 1
        try:
            content = _parse(line)
            return _Row(line.number, content, self._instruction(content), _query(content), _codes(content))
        except ValueError as error:
            return self._refused(line.number, error)

    def _refused(self, number: int, error: Exception) -> _BadLine:
        self.num_bad += 1
        return _BadLine(" ".join(str(error).split()), number)

    def _instruction(self, content: dict) -> str:
        quality = self._quality
        if content.get("quality") is not None:
            given = content["quality"]
            if not isinstance(given, str | list):
                raise ValueError(f"quality is {_kind(given)}: a list of names, or text with commas")
            try:
                quality = parse_quality(given)
            except UsageError as error:
                raise ValueError(str(error)) from None
        instruction = content.get("instruction")
        if instruction is None:
            return instruction_for(quality)
        if not isinstance(instruction, str):
            raise ValueError(f"instruction is {_kind(instruction)}: text is needed")
        return instruction

    def _answered(self, rows: Sequence[_Row | _BadLine]) -> list[str]:
        scores = iter(self._scores([row for row in rows if isinstance(row, _Row)]))
        answers = []
        for row in rows:
            result = next(scores) if isinstance(row, _Row) else row
            if isinstance(result, _BadLine):
                answers.append(json.dumps({"error": result.error, "line": result.number}))
            else:
                order = np.argsort(-result, kind="stable")
                answers.append(json.dumps({**row.content, "scores": result.tolist(), "order": order.tolist()}))
        return answers

    def _scores(self, rows: Sequence[_Row]) -> list[np.ndarray | _BadLine]:
        """Scores of each row, or what the model cannot read of it, for example an instruction without end."""
        try:
            return self._scored(rows)
        except UsageError as error:
            if len(rows) == 1:
                return [self._refused(rows[0].number, error)]
        half = len(rows) // 2
        return self._scores(rows[:half]) + self._scores(rows[half:])

    def _scored(self, rows: Sequence[_Row]) -> list[np.ndarray]:
        lengths = [len(row.codes) for row in rows]
        codes = [code for row in rows for code in row.codes]
        if not codes:
            return [np.zeros(0, dtype=np.float32) for _ in rows]
        queries = [row.query for row in rows for _ in row.codes]
        instructions = [row.instruction for row in rows for _ in row.codes]
        before = self._num_scored

        def progress(stage: str, done: int, _: int | None) -> None:
            self._progress(stage, before + done, None)

        scores = self._reranker.score(queries, codes, instruction=instructions, progress=progress)
        self._num_scored += len(codes)
        return np.split(scores, np.cumsum(lengths)[:-1])


def _parse(line: Line) -> dict:
    if line.content is None:
        raise ValueError(f"the line is longer than {LONGEST_LINE >> 20} MiB: give its codes in several lines")
    try:
        text = line.content.decode("utf-8-sig" if line.number == 1 else "utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8: byte 0x{error.object[error.start]:02x} at {error.start}") from None
    try:
        content = json.loads(text, parse_constant=_refuse_constant, parse_float=_finite)
        if text.count("[") + text.count("{") > _SURELY_SHALLOW:
            json.dumps(content)  # what can be read nested so deeply that it cannot be written is found now
    except RecursionError:
        raise ValueError("not usable JSON: nested too deeply") from None
    except ValueError as error:
        raise ValueError(f"not JSON: {error}") from None
    if not isinstance(content, dict):
        raise ValueError(f"the line is {_kind(content)}: an object with query and codes is needed")
    return content


def _query(content: dict) -> str:
    if "query" not in content:
        raise ValueError("query is missing: an object with query and codes is needed")
    if not isinstance(content["query"], str):
        raise ValueError(f"query is {_kind(content['query'])}: text is needed")
    return content["query"]


def _codes(content: dict) -> list[str]:
    if "codes" not in content:
        raise ValueError("codes is missing: an object with query and codes is needed")
    codes = content["codes"]
    if not isinstance(codes, list):
        raise ValueError(f"codes is {_kind(codes)}: a list of texts is needed")
    for place, code in enumerate(codes):
        if not isinstance(code, str):
            raise ValueError(f"codes[{place}] is {_kind(code)}: text is needed")
    return codes


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is no number of JSON")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:40]} is too large for a number")
    return value


def _kind(value: object) -> str:
    names = {type(None): "null", bool: "true or false", str: "text", list: "a list", dict: "an object"}
    return names.get(type(value), "a number")
