"""From a model's answer to a program: every answer ends in one outcome, kept or a named reason."""

import ast
import re
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from hf_qualcode.languages import get_language, language_names


OUTCOMES = {
    "kept": "holds a program that compiles",
    "failed": "no answer came, after all attempts",
    "empty": "nothing but blanks",
    "too_long": "longer than any solution",
    "truncated": "cut off before its end",
    "no_code": "no program in it",
    "other_language": "a program in another language",
    "does_not_compile": "a program that does not compile",
}
_MOST_CHARACTERS = 200_000
# Of a text without fences, so many beginnings and ends are tried.
_MOST_BEGINNINGS, _MOST_ENDS = 4, 12
_MOST_CLOSINGS = 8
_THOUGHT = re.compile(r"<(think|thinking|reasoning)>")
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})[ \t]*([^`\s]*)[^`]*$")
_ALIASES = {
    "py": "python", "python3": "python", "python2": "python", "js": "javascript", "node": "javascript",
    "ts": "typescript", "c++": "cpp", "cc": "cpp", "golang": "go", "rs": "rust",
}  # fmt: skip
# Languages that no module of ours is about.
_FOREIGN = frozenset(
    ("ruby", "rb", "php", "perl", "kotlin", "swift", "scala", "haskell", "csharp", "c#", "cs", "lua", "r", "julia")
)
# A line that could open a program.
_BEGINNING = re.compile(
    r"(import |from [\w.]+ import |def |async def |class |@|for |while |if |with |try:|print\(|"
    r"[A-Za-z_][\w, ]*\s*=[^=])"
)
_SIGNS_OF_OTHERS = re.compile(
    r"(?m)^\s*(#include\s*<|using namespace |public (static |final )?(class|void|int) |package main\b|fn main\(|"
    r"(const|let|var) \w+ = .*;\s*$|function \w+\(.*\)\s*\{|console\.log\(|int main\s*\()"
)
_CODE = (
    ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom, ast.Assign, ast.AugAssign,
    ast.AnnAssign, ast.For, ast.While, ast.If, ast.With, ast.Try, ast.Call,
)  # fmt: skip


class Answer(NamedTuple):
    """What became of an answer.

    Attributes:
        outcome (`str`): Key of `OUTCOMES`.
        code (`str`): The program where it is kept, else `""`.
        fragment (`str`): What looked most like one where it is not.
    """

    outcome: str
    code: str = ""
    fragment: str = ""


class _Block(NamedTuple):
    language: str
    closings: tuple[str, ...]  # its text up to each line that could close it, the shortest first
    rest: str  # up to the end of the answer, where no line could


def read_answer(text: str, finish_reason: str | None = None, language: str = "python") -> Answer:
    """Finds the program in an answer.

    - What stands between `<think>` and `</think>` is no part of it.
    - Of several fenced blocks in the language asked for, or in none that is named, the longest that compiles is the
      program; of equally long ones the last.
    - A fence inside a block (in a docstring, say) does not end it where the block compiles only with what follows.
    - Without any fence, the text itself is read, prose before and after it left out.
    - An answer that the model was not allowed to finish, or whose last block or thought is open, was cut off, whatever
      can be found in it.

    Args:
        text (`str`): The raw answer.
        finish_reason (`str`, *optional*): Of the server; `"length"` means that it was cut off.
        language (`str`, *optional*, defaults to `"python"`): The one asked for.
    """
    if not text.strip():
        return Answer("truncated" if finish_reason == "length" else "empty")
    if len(text) > _MOST_CHARACTERS:
        return Answer("too_long")
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    spoken, is_thinking = _spoken(text)
    if is_thinking:
        return Answer("truncated", fragment=spoken.strip())
    blocks = list(_blocks(spoken))
    cut = finish_reason == "length" or bool(blocks and not blocks[-1].closings)
    own = [block for block in blocks if block.language in ("", language)]
    programs = [code for block in own if (code := _program(block, language)) is not None]
    best = max(reversed(programs), key=len, default=None) if programs else None
    if best is None and not blocks:
        best = _unfenced(spoken, language)
    fragment = best or max(((block.closings or (block.rest,))[0] for block in own), key=len, default="").strip("\n")
    if cut:
        return Answer("truncated", fragment=fragment)
    if best is not None:
        return Answer("kept", best)
    others = [block for block in blocks if block.language in _languages() and block.language != language]
    if (others and not own) or _SIGNS_OF_OTHERS.search(fragment or ("" if blocks else spoken)):
        return Answer("other_language")
    if not own and (blocks or not _looks_like_code(spoken)):
        return Answer("no_code")
    if own and not any(_looks_like_code(closing) for block in own for closing in block.closings[:1]):
        return Answer("no_code")
    return Answer("does_not_compile", fragment=fragment or spoken.strip())


def _languages() -> frozenset[str]:
    return frozenset(language_names()) | _FOREIGN


def _spoken(text: str) -> tuple[str, bool]:
    """The text without thoughts, up to one that does not end; and whether there is such a one."""
    parts, place = [], 0
    while opening := _THOUGHT.search(text, place):
        parts.append(text[place : opening.start()])
        closing = f"</{opening[1]}>"
        end = text.find(closing, opening.end())
        if end < 0:
            return "\n".join(parts), True
        place = end + len(closing)
    spoken = "\n".join((*parts, text[place:]))
    # Templates may open the thought themselves.
    return spoken.rpartition("</think>")[2], False


def _blocks(text: str) -> Iterator[_Block]:
    """The fenced blocks, outermost ones only."""
    lines = text.split("\n")
    fences = [(number, found) for number, line in enumerate(lines) if (found := _FENCE.match(line))]
    first = 0
    while first < len(fences):
        start, opening = fences[first]
        mark, label = opening[1], opening[2].strip("{}.").lower()
        closing_fences = (
            number
            for number in range(first + 1, len(fences))
            if fences[number][1][1].startswith(mark) and not fences[number][1][2]
        )
        ends = list(islice(closing_fences, _MOST_CLOSINGS))
        closings = tuple("\n".join(lines[start + 1 : fences[end][0]]) for end in ends)
        yield _Block(_ALIASES.get(label, label), closings, "" if ends else "\n".join(lines[start + 1 :]))
        if not ends:
            return
        first = ends[_closing_of(closings)] + 1


def _closing_of(closings: tuple[str, ...]) -> int:
    """Which line closes the block: the first behind an even number of triple quotes, else the first."""
    for number, text in enumerate(closings):
        if text.count('"""') % 2 == 0 and text.count("'''") % 2 == 0:
            return number
    return 0


def _program(block: _Block, language: str) -> str | None:
    """The text of a block that compiles, up to the earliest line that can close it."""
    for text in block.closings:
        if _compiles(text, language):
            return text.strip("\n") + "\n"
    return None


def _unfenced(text: str, language: str) -> str | None:
    """The program in a text without fences."""
    if language != "python":
        return None  # nothing says where prose ends
    if _compiles(text, language):
        return text.strip("\n") + "\n"
    lines = text.split("\n")
    beginnings = [number for number, line in enumerate(lines) if _BEGINNING.match(line)][:_MOST_BEGINNINGS]
    for start in beginnings:
        gaps = [number for number in range(len(lines) - 1, start, -1) if not lines[number].strip()][:_MOST_ENDS]
        for end in (len(lines), *gaps):
            code = "\n".join(lines[start:end])
            if _compiles(code, language):
                return code.strip("\n") + "\n"
    return None


def _compiles(text: str, language: str) -> bool:
    """Whether it is a program of the language; where we cannot compile one, whether there is any text."""
    if not text.strip():
        return False
    check = get_language(language).compile_error
    if check is None:
        return True
    return check(text) is None and (language != "python" or _does_something(text))


def _does_something(text: str) -> bool:
    """Prose such as "yes" compiles too."""
    try:
        return any(isinstance(node, _CODE) for node in ast.walk(ast.parse(text)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False


def _looks_like_code(text: str) -> bool:
    return any(_BEGINNING.match(line.lstrip()) for line in text.split("\n"))
