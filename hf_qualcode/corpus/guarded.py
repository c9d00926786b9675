"""Extraction in a process of its own, for the few files that could hold the parser up or bring it down.

A time limit stops the parser between its steps, but on some repetitive texts one step never ends (80 kB of `a<` read
as Java take minutes and gigabytes). Text that people write does not repeat itself so much, so such files are told
apart by how far they compress, as they are or with every word the same, and extracted where time and memory can be
cut off from outside.
"""

import contextlib
import pickle
import re
import resource
import signal
import subprocess
import sys
import time
import zlib

from hf_qualcode.corpus.notebooks import extract_notebook_units, read_notebook
from hf_qualcode.corpus.units import Extraction, extract_units
from hf_qualcode.languages import ParseLimitError, get_language
from hf_qualcode.types import QualcodeError


WINDOW_CHARS = 16_000
# Of 5,000 files of installed libraries 25, nearly all tables, hold a window that compresses so far; those are only
# read more slowly.
HOSTILE_RATIO = 20
WORD = re.compile(r"\w+")
SPACE = re.compile(r"\s+")
# The limit proper is one of processor time, so on a busy machine this much longer is waited.
START_SECONDS = 5.0
PATIENCE = 4
MEMORY_BYTES = 4 << 30


class ParserCrashError(QualcodeError):
    """The process that parsed the text died."""


def is_repetitive(text: str) -> bool:
    """Says whether some stretch of a text repeats itself far more than code does."""
    last = max(len(text) - WINDOW_CHARS, 0)
    for start in (*range(0, last, WINDOW_CHARS), last):
        window = text[start : start + WINDOW_CHARS]
        # The parser does not care how things are called and spaced, so random names do not make a text another one.
        if _is_repetitive(window) or _is_repetitive(SPACE.sub("", WORD.sub("a", window))):
            return True
    return False


def _is_repetitive(window: str) -> bool:
    data = window.encode()
    return len(zlib.compress(data, 1)) * HOSTILE_RATIO < len(data)


def extract_guarded(text: str, path: str, language_name: str, id_prefix: str, time_limit: float) -> Extraction:
    """Does what `extract_units` does, or `extract_notebook_units` where `language_name` is empty, in another process.

    Raises:
        [`ParseLimitError`]: Over the time limit.
        [`ParserCrashError`]: The process died.
    """
    program = f"import sys; sys.path[:] = {sys.path!r}; from hf_qualcode.corpus.guarded import serve; serve()"
    try:
        done = subprocess.run(
            [sys.executable, "-c", program],
            input=pickle.dumps((text, path, language_name, id_prefix, time_limit)),
            capture_output=True,
            timeout=PATIENCE * (time_limit + START_SECONDS),
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise ParseLimitError(f"not parsed within {time_limit:g} s") from error
    if done.returncode == -signal.SIGXCPU:
        raise ParseLimitError(f"not parsed within {time_limit:g} s")
    if done.returncode:
        last_line = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
        raise ParserCrashError(last_line or f"the parser's process ended with {done.returncode}")
    answer = pickle.loads(done.stdout)
    if isinstance(answer, str):
        raise ParseLimitError(answer)
    return answer


def serve() -> None:
    """The other process: reads one request from stdin, writes its answer to stdout."""
    with contextlib.suppress(ValueError, OSError):  # macOS has no such limit
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    text, path, language_name, id_prefix, time_limit = pickle.load(sys.stdin.buffer)
    # Should the parser hang, the system ends this process, even if nobody waits for it any more.
    # The first limit says why it ended (SIGXCPU), the second is for a process that does not listen.
    seconds = int(time.process_time() + time_limit) + 2
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    try:
        limits = {"id_prefix": id_prefix, "time_limit": time_limit}
        if language_name:
            answer = extract_units(text, path, get_language(language_name), **limits)
        else:
            answer = extract_notebook_units(read_notebook(text), path, **limits)
    except ParseLimitError as error:
        answer = str(error)
    pickle.dump(answer, sys.stdout.buffer)
