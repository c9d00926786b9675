"""Hits by words, shown while better ones are made ready."""

import shutil
import sys
import unicodedata


def clip(text: str, columns: int) -> str:
    """The beginning of a text that fits into so many columns of a terminal."""
    width = 0
    for i, character in enumerate(text):
        width += 2 if unicodedata.east_asian_width(character) in "WF" else 1
        if width > columns:
            return text[:i]
    return text


class Preview:
    """The hits by words, on the terminal, while those by meaning are made ready; gone when they are.

    Plain escape sequences: importing rich would keep the first hits back by a tenth of a second.
    """

    def __init__(self, active: bool):
        self._active = active
        self._lines = 0

    def show(self, searcher, query: str, options: dict, rest: str) -> None:
        """Search by words and show one line a hit, below what `rest` says is still to be done."""
        if not self._active:
            return
        from hf_qualcode.cli.output import printable_line

        columns, rows = shutil.get_terminal_size()
        lines = [f"by words so far; {rest} ..."]
        for hit in searcher.search(query, retriever="bm25", **options):
            lines.append(f"{hit.rank:>3}  {hit.path}:{hit.start_line}-{hit.end_line}  {hit.name}")
        # Lines that wrap or scroll away could not be taken back.
        lines = [clip(printable_line(line), columns - 1) for line in lines[: max(1, rows - 3)]]
        self._lines = len(lines)
        sys.stderr.write("\x1b[2m" + "\n".join(lines) + "\x1b[0m\n")
        sys.stderr.flush()

    def __enter__(self) -> "Preview":
        return self

    def __exit__(self, *_) -> None:
        if self._lines:
            sys.stderr.write(f"\r\x1b[{self._lines}A\x1b[J")
            sys.stderr.flush()
