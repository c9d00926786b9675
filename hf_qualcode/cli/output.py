"""Hits for people and for programs."""

import argparse
import json
import re
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from hf_qualcode.types import Hit


if TYPE_CHECKING:
    from hf_qualcode.evaluation.report import Table


Explanation = Sequence[tuple[str, float]]

# Of a long unit only so many lines are shown; --json has all.
_SHOWN_LINES = 16
# Everything a terminal might obey: code and file names are strangers' text.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def named_path(text: str) -> Path:
    """An argument that names a path; an empty one (an unset variable in a script) is wrong usage, not this folder."""
    if not text:
        raise argparse.ArgumentTypeError("the name is empty (an unset variable?)")
    return Path(text)


def printable(text: str) -> str:
    """Text with every control and direction character made visible, so that showing it changes nothing else."""
    return _CONTROL.sub(lambda match: repr(match[0])[1:-1], text)


def printable_line(text: str) -> str:
    """`printable`, on one line: for names and paths."""
    return printable(text).replace("\n", "\\n").replace("\t", "\\t")


def hit_to_dict(hit: Hit, explanation: Explanation | None = None) -> dict:
    """The JSON object of one hit, keys in the order of the contract; `explanation` last, where it was asked for."""
    row = asdict(hit)
    del row["unit_id"]
    if explanation is not None:
        row["explanation"] = [{"name": name, "value": value} for name, value in explanation]
    return row


def print_hits(
    hits: Sequence[Hit],
    *,
    as_json: bool = False,
    context: int = 0,
    explanations: Sequence[Explanation] | None = None,
) -> None:
    """Write hits to stdout: JSON lines, or coloured on a terminal, or plain.

    Args:
        hits (`Sequence[Hit]`): Best first.
        as_json (`bool`, *optional*, defaults to `False`): One JSON object a line.
        context (`int`, *optional*, defaults to 0): Lines around each hit.
        explanations (*optional*): One a hit: name and value, in log-odds, of what spoke for it or against it.
    """
    told = [None] * len(hits) if explanations is None else explanations
    if as_json:
        for hit, explanation in zip(hits, told, strict=True):
            sys.stdout.write(json.dumps(hit_to_dict(hit, explanation)) + "\n")
    elif sys.stdout.isatty():
        _print_rich(hits, context, told)
    else:
        _print_plain(hits, context, told)


def print_table(table: "Table") -> None:
    """Write a table to stdout: drawn on a terminal, aligned plain text elsewhere."""
    if not sys.stdout.isatty():
        sys.stdout.write(printable(table.to_text()))
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

    title, note = Text(printable_line(table.title)), Text(printable_line(table.note))
    drawn = RichTable(title=title, title_justify="left", caption=note, caption_justify="left", box=box.SIMPLE_HEAD)
    header, *rows = table.rows
    for cell in header:
        drawn.add_column(Text(cell))
    for row in rows:
        drawn.add_row(*(Text(printable_line(cell)) for cell in row))
    Console(highlight=False).print(drawn)


def _heading(hit: Hit) -> str:
    notes = f"  ({hit.language}"
    if hit.copies:
        notes += f", {len(hit.copies)} {'copy' if len(hit.copies) == 1 else 'copies'}"
    if hit.stale:
        notes += ", changed since it was indexed"
    name = printable_line(hit.name)
    place = f"{printable_line(hit.path)}:{hit.start_line}-{hit.end_line}  {name}" if hit.root else name
    return f"{hit.rank}. {place}{notes})  {_scores(hit)}"


def _scores(hit: Hit) -> str:
    """The score; where it is a mixture, its parts, and where a hit was too far down to be judged, that."""
    if hit.quality_score is not None:
        return f"{hit.score:.3f}  retrieval {hit.retrieval_score:.3f}, quality {hit.quality_score:+.2f}"
    if hit.score != hit.retrieval_score:
        return f"retrieval {hit.retrieval_score:.3f}, quality not judged"
    return f"{hit.score:.3f}"


def _explained(explanation: Explanation) -> str:
    return "because of " + ", ".join(f"{printable_line(name)} {value:+.2f}" for name, value in explanation)


def _snippet(hit: Hit, context: int) -> tuple[int, list[str], int]:
    """First line number, lines to show, and how many lines of the unit are left out."""
    lines = hit.code.split("\n")
    left_out = max(0, len(lines) - _SHOWN_LINES) if not context else 0
    lines = lines[: len(lines) - left_out]
    start = hit.start_line
    if context and hit.root and not hit.stale:
        around = _file_lines(hit)
        if around is not None and around[hit.start_line - 1 : hit.end_line] == lines:
            start = max(1, hit.start_line - context)
            lines = around[start - 1 : hit.end_line + context]
    return start, lines, left_out


def _file_lines(hit: Hit) -> list[str] | None:
    from hf_qualcode.corpus.lines import split_lines
    from hf_qualcode.corpus.reading import BinaryFileError, decode
    from hf_qualcode.corpus.walking import real_path

    try:
        data = Path(real_path(f"{hit.root}/{hit.path}")).read_bytes()
        return split_lines(decode(data, is_python=hit.language == "python").text)
    except (OSError, BinaryFileError):
        return None  # the hit's own text is shown without what is around it


def _print_plain(hits: Sequence[Hit], context: int, explanations: Sequence[Explanation | None]) -> None:
    out = sys.stdout
    for hit, explanation in zip(hits, explanations, strict=True):
        out.write(_heading(hit) + "\n")
        start, lines, left_out = _snippet(hit, context)
        for number, line in enumerate(lines, start):
            out.write(f"{number:>6}  {printable(line)}".rstrip() + "\n")
        if left_out:
            out.write(f"        ... {left_out} more lines\n")
        for copy in hit.copies[:3]:
            out.write(f"        also {printable_line(copy.path)}:{copy.start_line}-{copy.end_line}\n")
        if explanation:
            out.write(f"        {_explained(explanation)}\n")
        out.write("\n")


def _print_rich(hits: Sequence[Hit], context: int, explanations: Sequence[Explanation | None]) -> None:
    from rich.console import Console
    from rich.syntax import Syntax
    from rich.text import Text

    console = Console(highlight=False)
    if not hits:
        sys.stderr.write("nothing found\n")
    for hit, explanation in zip(hits, explanations, strict=True):
        console.print(Text(_heading(hit), style="bold"), soft_wrap=True)
        start, lines, left_out = _snippet(hit, context)
        console.print(
            Syntax(
                printable("\n".join(lines)),
                hit.language,
                theme="ansi_dark",
                line_numbers=True,
                start_line=start,
                highlight_lines=set(range(hit.start_line, hit.end_line + 1)) if context else None,
            )
        )
        if left_out:
            console.print(Text(f"       ... {left_out} more lines", style="dim"))
        for copy in hit.copies[:3]:
            place = f"{printable_line(copy.path)}:{copy.start_line}-{copy.end_line}"
            console.print(Text(f"       also {place}", style="dim"))
        if explanation:
            console.print(Text(f"       {_explained(explanation)}", style="italic"), soft_wrap=True)
        console.print()
