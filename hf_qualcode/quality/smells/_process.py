"""A long-lived process that is asked over a pipe, and what happens when it dies or never answers.

Request: a length of four bytes, big-endian, then so many bytes. Answer: one line with a JSON object. The first line
comes unasked, once the process is ready.
"""

import contextlib
import json
import os
import selectors
import struct
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from hf_qualcode.types import QualcodeError


# Of what the process writes to stderr only the end is kept.
_STDERR_BYTES = 4_000
_CHUNK_BYTES = 1 << 16
_START_SECONDS = 120.0


class LostProcessError(QualcodeError):
    """The process died, or wrote what is no answer."""


class SilentProcessError(LostProcessError):
    """The process did not answer in time."""


class PipedProcess:
    """One process. After a `LostProcessError` it is dead, and another has to be made.

    All three pipes are served in one loop, so that none of them can fill up and hold the process, or us.

    Args:
        command (`list[str]`): Program and arguments.
        folder (`Path`): Where the process runs.

    Raises:
        `LostProcessError`: It cannot be started, or ends before it is ready; the message has the end of its stderr.
    """

    def __init__(self, command: list[str], folder: Path):
        self._errors = b""
        self._received = b""
        try:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=folder, bufsize=0
            )
        except OSError as error:
            raise LostProcessError(f"{command[0]} cannot be started: {error.strerror}") from error
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            os.set_blocking(pipe.fileno(), False)
        try:
            self.ready = self._exchange(b"", _START_SECONDS)
        except BaseException:
            self.kill()
            raise

    def ask(self, request: bytes, seconds: float) -> dict:
        """The answer to one request.

        Raises:
            `SilentProcessError`: None came within `seconds`. The process is killed.
            `LostProcessError`: The process died, or its answer is not a JSON object. It is killed too.
        """
        try:
            return self._exchange(struct.pack(">I", len(request)) + request, seconds)
        except BaseException:
            # After an interrupt, too: the answer that is still to come would be taken for that to the next request.
            self.kill()
            raise

    def kill(self) -> None:
        """End the process, whatever it does."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            with contextlib.suppress(OSError):
                pipe.close()

    def _exchange(self, to_send: bytes, seconds: float) -> dict:
        deadline = time.monotonic() + seconds
        stdin, stdout, stderr = self._process.stdin, self._process.stdout, self._process.stderr
        with selectors.DefaultSelector() as selector:
            selector.register(stdout, selectors.EVENT_READ)
            selector.register(stderr, selectors.EVENT_READ)
            if to_send:
                selector.register(stdin, selectors.EVENT_WRITE)
            while b"\n" not in self._received:
                events = selector.select(max(0.0, deadline - time.monotonic()))
                if not events and time.monotonic() >= deadline:
                    raise SilentProcessError(f"no answer within {seconds:g} s")
                for key, _ in events:
                    if key.fileobj is stdin:
                        to_send = self._send(to_send)
                        if not to_send:
                            selector.unregister(stdin)
                    elif not self._receive(key.fileobj):
                        selector.unregister(key.fileobj)
                        if key.fileobj is stdout:
                            raise LostProcessError(self._last_words())
        line, _, self._received = self._received.partition(b"\n")
        try:
            answer = json.loads(line)
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            raise LostProcessError(f"not an answer: {line[:100]!r}")
        return answer

    def _send(self, data: bytes) -> bytes:
        try:
            return data[os.write(self._process.stdin.fileno(), data[:_CHUNK_BYTES]) :]
        except BlockingIOError:
            return data
        except OSError as error:
            raise LostProcessError(self._last_words()) from error

    def _receive(self, pipe) -> bool:
        """Take what a pipe holds; `False` at its end."""
        try:
            data = os.read(pipe.fileno(), _CHUNK_BYTES)
        except BlockingIOError:
            return True
        if pipe is self._process.stderr:
            self._errors = (self._errors + data)[-_STDERR_BYTES:]
        else:
            self._received += data
        return bool(data)

    def _last_words(self) -> str:
        """Why it died, as far as it said so."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(1.0)
        self._receive(self._process.stderr)
        lines = [line for line in self._errors.decode("utf-8", "replace").splitlines() if line.strip()]
        return lines[-1].strip() if lines else "it ended without a word"


class RestartingProcess:
    """A process that is started when first asked, and again after it was lost.

    Args:
        command (`Callable[[], list[str]]`): Makes the command, when it is first needed.
        folder (`Callable[[], Path]`): Says where the process runs.
        seconds (`float`): How long one request may take.
    """

    def __init__(self, command: Callable[[], list[str]], folder: Callable[[], Path], seconds: float):
        self._command, self._folder, self._seconds = command, folder, seconds
        self._process: PipedProcess | None = None
        self._owner = 0

    def ask(self, request: bytes) -> dict | None:
        """The answer, `None` for a request that ends or silences the process, whichever came before it.

        A process that dies may have been worn out by earlier requests, so a new one is asked once more. One that does
        not answer in time is not: that would only wait twice as long.

        Raises:
            `QualcodeError`: The process cannot be started.
        """
        for _ in range(2):
            process = self._started()
            try:
                return process.ask(request, self._seconds)
            except SilentProcessError:
                self._process = None
                return None
            except LostProcessError:
                self._process = None
            except BaseException:
                self._process = None
                raise
        return None

    def _started(self) -> PipedProcess:
        if self._process is not None and self._owner != os.getpid():
            self._process = None  # of the process we were forked from: its pipes are not ours to use
        if self._process is None:
            self._process, self._owner = PipedProcess(self._command(), self._folder()), os.getpid()
        return self._process

    def close(self) -> None:
        """End the process, if it runs and is ours."""
        process, self._process = self._process, None
        if process is not None and self._owner == os.getpid():
            process.kill()
