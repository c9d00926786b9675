"""The top level of a module or class as runs of lines between its definitions."""

import re
from typing import NamedTuple


# A module holds much that nobody looks for; a run of it is a unit only from this many lines of code.
MODULE_MIN_CODE_LINES = 3


class Run(NamedTuple):
    """Contiguous rows that belong to no definition inside. Rows are 0-based, inclusive.

    Attributes:
        start_row, end_row (`int`): Without blank rows at either end.
        after (`int`): Position of the definition before the run in the list given, -1 for the head.
    """

    start_row: int
    end_row: int
    after: int


def find_runs(lines: list[str], start_row: int, end_row: int, spans: list[tuple[int, int]]) -> list[Run]:
    """Returns what is left of rows `start_row` to `end_row` once the spans are taken out.

    Args:
        lines (`list[str]`): The whole file.
        start_row, end_row (`int`): The module or class.
        spans (`list[tuple[int, int]]`): First and last row of each definition directly inside, in order.
    """
    runs = []
    row, after = start_row, -1
    for position, (span_start, span_end) in enumerate(spans):
        _append_run(runs, lines, row, span_start - 1, after)
        if span_end >= row:
            row, after = span_end + 1, position
    _append_run(runs, lines, row, end_row, after)
    return runs


def _append_run(runs: list[Run], lines: list[str], start: int, end: int, after: int) -> None:
    while start <= end and not lines[start].strip():
        start += 1
    while end >= start and not lines[end].strip():
        end -= 1
    if start <= end:
        runs.append(Run(start, end, after))


def count_code_lines(lines: list[str], start: int, end: int, idle_rows: set[int], idle_line: re.Pattern) -> int:
    """Returns how many of the rows `start` to `end` hold content, not comments, imports or brackets alone."""
    return sum(
        row not in idle_rows and not idle_line.match(line)  # a blank line matches too
        for row, line in enumerate(lines[start : end + 1], start)
    )
