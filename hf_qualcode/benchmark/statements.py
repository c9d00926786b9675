"""A problem's statement: from CodeNet's HTML to plain text, its sections and its samples.

The pages come from strangers and from two decades of hand-written HTML, so nothing here raises on what is in them: a
page that cannot be parsed at all still gives its text, and a page of any size or depth is read in bounded time.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from bs4 import BeautifulSoup, NavigableString, Tag
from bs4.element import PreformattedString
from bs4.exceptions import ParserRejectedMarkup

from hf_qualcode.benchmark.detection import is_english, language_of_text


__all__ = ["Sample", "Section", "Statement", "is_english", "language_of_text", "read_statement"]

# The longest page of CodeNet is far below this. It bounds what a hostile page can cost: seconds, not hours.
MAX_PAGE_CHARACTERS = 300_000

# Names of elements, all in lower case: the parser folds them.
_DROPPED = frozenset({"script", "style", "head", "template", "noscript", "iframe", "object", "svg", "math"})
_HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
# Elements that start a new paragraph, and those that only start a new line.
_PARAGRAPHS = frozenset(
    {"p", "div", "section", "article", "ul", "ol", "dl", "table", "blockquote", "center", "hr", "body", "html", "form",
     "header", "footer", "main", "figure", "details"}
)  # fmt: skip
_LINES = frozenset({"br", "tr", "li", "dt", "dd", "caption", "figcaption", "summary"})
_CELLS = frozenset({"td", "th"})
_SCRIPTS = {"sup": "^", "sub": "_"}
_FILE_NAME = re.compile(r"^\S+\.(?:png|jpe?g|gif|svg|bmp|webp)$", re.IGNORECASE)
_SAMPLE_OUTPUT = re.compile(r"^(?:sample\s+output|output\s+(?:for|of)\s+(?:the\s+)?sample|output\s+example|"
                            r"example\s+output|出力例)", re.IGNORECASE)  # fmt: skip
_SAMPLE_INPUT = re.compile(r"^(?:sample\s+input|input\s+example|example\s+input|入力例)", re.IGNORECASE)
# A "<" that opens no tag of a legible length: a comment, a declaration, or a sign in the text.
_LEFT_BRACKET = re.compile(r"<!--|<!|<\?|<(?!/?[a-zA-Z][^<>]{0,2000}>)")
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a statement under one heading.

    Attributes:
        heading (`str`): The heading, empty for what stands before the first one.
        text (`str`): The section's text without the heading.
        lines (`tuple[str, ...]`): The paragraphs, list items and table rows of the text, each on one line, without the
            preformatted blocks.
        blocks (`tuple[str, ...]`): The preformatted blocks (`<pre>`), whitespace as it was, in order.
    """

    heading: str
    text: str
    lines: tuple[str, ...] = ()
    blocks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Sample:
    """An input the statement shows, and its expected output; both end in one line feed."""

    input: str
    output: str


@dataclass(frozen=True, slots=True)
class Statement:
    """A problem's statement.

    Attributes:
        text (`str`): The whole text: headings on lines of their own, paragraphs separated by one blank line.
        sections (`tuple[Section, ...]`): The text by heading, in order.
        samples (`tuple[Sample, ...]`): The samples that have both an input and an output, in order.
    """

    text: str
    sections: tuple[Section, ...] = ()
    samples: tuple[Sample, ...] = ()

    @property
    def prose(self) -> str:
        """The text without preformatted blocks: what a language detector should see."""
        return "\n".join(line for section in self.sections for line in (section.heading, *section.lines) if line)


def read_statement(html: str) -> Statement:
    """The statement on a page of CodeNet's `problem_descriptions`.

    `<sup>` and `<sub>` become `10^5` and `a_i`, formulas (`<var>`) lose their mark-up, `<pre>` keeps its whitespace,
    list items start with "- ", images give their alternative text unless it is a file name. Scripts, styles and
    comments go. Where the page has English and Japanese parts (`lang-en`, `lang-ja`), only the English ones stay.

    Args:
        html (`str`): The page. What lies behind the first 300,000 characters is not read.

    Returns:
        `Statement`: Empty for a page without text. Never raises on a page's content.
    """
    soup = _parse(html[:MAX_PAGE_CHARACTERS].replace("\r\n", "\n").replace("\r", "\n"))
    writer = _Writer()
    for event, node in _walk(soup, _unwanted_languages(soup)):
        if event == "text":
            writer.add(str(node))
        elif event == "open":
            writer.open(node)
        else:
            writer.close(node)
    sections = _sections(writer.finish())
    parts = [part for section in sections for part in (section.heading, section.text) if part]
    return Statement("\n\n".join(parts), sections, _samples(sections))


def _parse(html: str) -> BeautifulSoup:
    # Characters that no file in UTF-8 can hold, and the null character, would fail whoever writes the text.
    html = _plain_markup(html.encode("utf-8", "replace").decode("utf-8").replace("\0", ""))
    try:
        return BeautifulSoup(html, "html.parser")
    except (ParserRejectedMarkup, AssertionError):
        return BeautifulSoup(html.replace("<", "&lt;"), "html.parser")


def _plain_markup(html: str) -> str:
    """The page with tags only: comments, declarations and processing instructions gone, any other "<" escaped.

    Left to the parser, a comment that is never closed would be searched to the end of the page each time, and a tag
    with unclosed quotes even longer: quadratic time.
    """
    kept: list[str] = []
    position = 0
    for match in _LEFT_BRACKET.finditer(html):
        if match.start() < position:
            continue
        kept.append(html[position : match.start()])
        position = match.end()
        if match.group() == "<":
            kept.append("&lt;")
            continue
        closing = "-->" if match.group() == "<!--" else ">"
        end = html.find(closing, position)
        if end < 0:  # as browsers do: all the rest belongs to it
            return "".join(kept)
        position = end + len(closing)
    kept.append(html[position:])
    return "".join(kept)


def _unwanted_languages(soup: BeautifulSoup) -> frozenset[str]:
    """Classes whose elements are left out: Japanese parts, where there is an English one with any text."""
    english = soup.find_all(class_="lang-en")
    has_text = any(text.strip() for part in english for text in part.strings)
    return frozenset({"lang-ja"}) if has_text else frozenset()


def _walk(soup: BeautifulSoup, unwanted: frozenset[str]) -> Iterator[tuple[str, Tag | NavigableString]]:
    """Events ("open", "text", "close") of the tree in order. With a stack of its own: pages may nest without end."""
    stack: list[tuple[bool, Tag | NavigableString]] = [(True, soup)]
    while stack:
        opening, node = stack.pop()
        if not opening:
            yield "close", node
        elif isinstance(node, Tag):
            classes = node.get("class") or ()
            classes = classes.split() if isinstance(classes, str) else classes
            if node.name in _DROPPED or not unwanted.isdisjoint(classes):
                continue
            yield "open", node
            stack.append((False, node))
            stack.extend((True, child) for child in reversed(node.contents))
        elif not isinstance(node, PreformattedString):  # comments and the like
            yield "text", node


@dataclass(frozen=True, slots=True)
class _Block:
    """A heading, a paragraph or line of text, or a preformatted block; `gap` asks for a blank line before it."""

    kind: str
    text: str
    gap: bool


class _Writer:
    """Collects the blocks of a page from the events of its tree."""

    def __init__(self) -> None:
        self._blocks: list[_Block] = []
        self._pieces: list[str] = []
        self._gap = True  # the next block starts a paragraph
        self._bullet = False  # the next block is a list item
        self._preformatted = 0
        self._heading = 0
        self._scripts: list[int] = []  # where the content of each open <sup> or <sub> starts in `_pieces`

    def open(self, tag: Tag) -> None:
        name = tag.name
        if name == "pre":
            if self._preformatted == 0:
                self._flush(gap=True)
            self._preformatted += 1
        elif name == "img":
            alternative = tag.get("alt") or ""
            if isinstance(alternative, str) and not _FILE_NAME.match(alternative.strip()):
                self.add(alternative)
        elif name in _SCRIPTS:
            self._scripts.append(len(self._pieces))
        elif name == "br" and self._preformatted:
            self._pieces.append("\n")
        elif not self._preformatted:
            self._break(tag)

    def close(self, tag: Tag) -> None:
        name = tag.name
        if name == "pre":
            self._preformatted -= 1
            if self._preformatted == 0:
                self._flush(gap=True, kind="pre")
        elif name in _SCRIPTS and self._scripts:
            self._close_script(name, self._scripts.pop())
        elif not self._preformatted and name not in ("br", "hr"):
            self._break(tag, closing=True)

    def _break(self, tag: Tag, closing: bool = False) -> None:
        name = tag.name
        if name in _HEADINGS:
            if closing:
                self._heading -= 1
                if self._heading == 0:
                    self._flush(gap=True, kind="heading")
            else:
                if self._heading == 0:
                    self._flush(gap=True)
                self._heading += 1
        elif self._heading:
            self._pieces.append(" " if name in _PARAGRAPHS or name in _LINES else "")
        elif name in _PARAGRAPHS:
            # A paragraph inside a list item goes on after the bullet.
            self._flush(gap=True)
        elif name in _LINES:
            self._flush(gap=False)
            if name == "li" and not closing:
                self._bullet = True
        elif name in _CELLS and closing:
            self._pieces.append(" ")

    def add(self, text: str) -> None:
        self._pieces.append(text)

    def _close_script(self, name: str, start: int) -> None:
        content = "".join(self._pieces[start:]).strip()
        before = self._pieces[start - 1] if 0 < start <= len(self._pieces) else ""
        del self._pieces[start:]
        if not content:
            return
        mark = _SCRIPTS[name]
        if not before or before[-1].isspace():
            self._pieces.append(content)  # nothing to stand above or below: a footnote, an ordinal
        else:
            self._pieces.append(f"{mark}{content}" if content.isalnum() else f"{mark}{{{content}}}")

    def _flush(self, *, gap: bool, kind: str = "text") -> None:
        """End the open block, if it has text; the next one starts a paragraph if this one or it asks for that."""
        text = "".join(self._pieces)
        self._pieces.clear()
        self._scripts = [0] * len(self._scripts)
        if kind == "pre":
            text = _tidy_preformatted(text)
        else:
            text = " ".join(text.split())
        if text:
            if self._bullet and kind == "text":
                text = f"- {text}"
            self._bullet = False
            self._blocks.append(_Block(kind, text, self._gap or kind != "text"))
            self._gap = gap
        elif gap and not self._bullet:
            self._gap = True

    def finish(self) -> list[_Block]:
        self._flush(gap=True, kind="pre" if self._preformatted > 0 else "heading" if self._heading > 0 else "text")
        return self._blocks


def _tidy_preformatted(text: str) -> str:
    """Whitespace as it was, but for trailing blanks, blank lines at either end and runs of them in between."""
    lines = [line.rstrip() for line in text.split("\n")]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n")


def _sections(blocks: list[_Block]) -> tuple[Section, ...]:
    groups: list[tuple[str, list[_Block]]] = [("", [])]
    for block in blocks:
        if block.kind == "heading":
            groups.append((block.text, []))
        else:
            groups[-1][1].append(block)
    return tuple(
        Section(
            heading,
            "".join(("\n\n" if block.gap else "\n") + block.text for block in content).strip("\n"),
            tuple(block.text for block in content if block.kind == "text"),
            tuple(block.text + "\n" for block in content if block.kind == "pre"),
        )
        for heading, content in groups
        if heading or content
    )


def _samples(sections: tuple[Section, ...]) -> tuple[Sample, ...]:
    """Pairs of a "Sample Input" and the "Sample Output" of the same number that follows it."""
    samples: list[Sample] = []
    waiting: dict[tuple[str, ...], str] = {}
    for section in sections:
        key = tuple(_NUMBER.findall(section.heading))
        content = section.blocks[0] if section.blocks else section.text + "\n" if section.text else None
        if content is None:
            continue
        if _SAMPLE_OUTPUT.match(section.heading):
            if key in waiting:
                samples.append(Sample(waiting.pop(key), content))
        elif _SAMPLE_INPUT.match(section.heading):
            waiting[key] = content
    return tuple(samples)
