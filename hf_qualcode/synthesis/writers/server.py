"""`--writer server`: any OpenAI-compatible endpoint, vLLM first.

Requests run concurrently, bounded; each carries the seed of its own key, so that it gets the same draw whatever runs
beside it (as far as the server's numbers are the same). What fails is sent again with growing pauses. A run ends at
once where every further request would fail the same way: a wrong address, model or key, or a server that is gone.
"""

import asyncio
import contextlib
import email.utils
import http
import math
import random
import threading
import time
from collections.abc import Iterable, Iterator

from hf_qualcode.synthesis.plan import Request
from hf_qualcode.synthesis.store import Record, RunStore
from hf_qualcode.synthesis.writers._base import (
    Progress,
    Tally,
    WriterSettings,
    check_sampling,
    length_of,
    missing_requests,
)
from hf_qualcode.synthesis.writers._chat import (
    Reply,
    UnreadableReply,
    body_of,
    endpoint_of,
    read_reply,
    said_by,
)
from hf_qualcode.types import QualcodeError, UsageError


NEEDS = "--url of an OpenAI-compatible server and --model, the name it serves"
ANSWERS_PROMPTS = True

# Statuses that say "later". Every other status of 4xx is about the request, or about all of them.
_LATER = {
    http.HTTPStatus.REQUEST_TIMEOUT,
    http.HTTPStatus.CONFLICT,
    http.HTTPStatus.TOO_EARLY,
    http.HTTPStatus.TOO_MANY_REQUESTS,
}
_FOR_ALL = {
    http.HTTPStatus.UNAUTHORIZED: "name the variable that holds the right key by --api-key-env",
    http.HTTPStatus.FORBIDDEN: "name the variable that holds the right key by --api-key-env",
    http.HTTPStatus.NOT_FOUND: "check --url and --model against the server's list of models (URL/v1/models)",
    http.HTTPStatus.METHOD_NOT_ALLOWED: "check --url",
    http.HTTPStatus.PROXY_AUTHENTICATION_REQUIRED: "check HTTP_PROXY and HTTPS_PROXY",
}
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 60.0
_LONGEST_RETRY_AFTER_S = 300.0
_SECONDS_TO_CONNECT = 30.0
# Refusals of so many tasks before any answer mean that every request will be refused; so many requests that failed in
# every attempt, while no other was answered, mean that the server is broken. Those that failed in an earlier run say
# nothing: a prompt that is too long always is, and a run that has such ones must still come to its end.
_REFUSED_TASKS_THAT_STOP, _FAILURES_THAT_STOP = 8, 3
# Of an answer, at the least; a token of code is a few bytes, escaped in JSON a few more.
_ANSWER_BYTES, _BYTES_PER_TOKEN = 4 << 20, 256
_CHUNK_BYTES = 1 << 16


class _NoAnswer(Exception):
    """This attempt brought nothing. `pause` is what the server asks for, in seconds; `is_final`: a refusal; `is_gone`:
    nobody listens there."""

    def __init__(self, reason: str, *, pause: float = 0.0, is_final: bool = False, is_gone: bool = False):
        super().__init__(reason)
        self.pause, self.is_final, self.is_gone = pause, is_final, is_gone


class ServerWriter:
    """Answers requests by a server.

    Args:
        settings (`WriterSettings`): `url` and `model` are needed.

    Raises:
        `UsageError`: What is needed is missing, or wrong in itself.
    """

    def __init__(self, settings: WriterSettings):
        if not settings.model:
            raise UsageError("--writer server needs --model, the name under which the server serves it")
        for name in ("concurrency", "timeout"):
            if not 0 < getattr(settings, name) < 1e6:
                raise UsageError(f"--{name} {getattr(settings, name)}: above 0 and below 1,000,000 is needed")
        if settings.max_retries < 0:
            raise UsageError(f"--max-retries {settings.max_retries}: 0 or more is needed")
        check_sampling(settings)
        self.model = settings.model
        self.tally = Tally()
        self._settings = settings
        self._endpoint = endpoint_of(settings)
        self._most_bytes = max(_ANSWER_BYTES, _BYTES_PER_TOKEN * settings.max_tokens)
        self._forget()

    def write(self, requests: Iterable[Request], store: RunStore, progress: Progress | None = None) -> None:
        """Leaves a record of every request in the store; see `Writer`."""
        self._forget()
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            asyncio.run(self._write(requests, store, progress))
            return
        # In a notebook a loop runs already, and two cannot run in one thread.
        errors: list[BaseException] = []

        def run() -> None:
            try:
                asyncio.run(self._write(requests, store, progress))
            except BaseException as error:
                errors.append(error)

        thread = threading.Thread(target=run, name="synthesis", daemon=True)
        thread.start()
        thread.join()
        if errors:
            raise errors[0]

    async def _write(self, requests: Iterable[Request], store: RunStore, progress: Progress | None) -> None:
        import aiohttp

        self.tally.begin("requests answered", length_of(requests), progress)
        self._failed_before = set(store.failed_digests())
        open_ = missing_requests(requests, store, self.tally)
        session = aiohttp.ClientSession(
            headers=self._endpoint.headers,
            connector=aiohttp.TCPConnector(limit=self._settings.concurrency),
            timeout=aiohttp.ClientTimeout(
                total=self._settings.timeout, sock_connect=min(_SECONDS_TO_CONNECT, self._settings.timeout)
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
        )
        async with session:
            try:
                async with asyncio.TaskGroup() as group:
                    for _ in range(self._settings.concurrency):
                        group.create_task(self._work(session, open_, store))
            except BaseExceptionGroup as several:
                # All say the same, or one broke and the rest were told to stop.
                raise several.exceptions[0] from several.exceptions[0].__cause__
        if self._last_error and self._answered_at == float("-inf") and not self.tally.known:
            raise QualcodeError(
                f"{self._endpoint.shown} answered none of {self.tally.written} requests ({self._last_error}); see to "
                "the server or change the settings, and run the same command again"
            )

    def _forget(self) -> None:
        """What is known of the server, before it was asked anything."""
        self._answered_at = float("-inf")
        self._refused_tasks: set[str] = set()
        self._failures = 0
        self._failed_before: set[str] = set()
        self._last_error = ""

    async def _work(self, session, open_: Iterator[Request], store: RunStore) -> None:
        for request in open_:
            record = await self._record(session, request)
            store.append(record)
            self.tally.add(record.usage)

    async def _record(self, session, request: Request) -> Record:
        """The answer to a request, or the error that is left after all attempts."""
        began, body = time.monotonic(), body_of(request, self._settings)
        attempt = 0
        while True:
            try:
                reply = await self._ask(session, body)
            except _NoAnswer as failure:
                if failure.is_final or attempt >= self._settings.max_retries:
                    self._last_error = str(failure)
                    self._stop_if_hopeless(request, failure, began, attempt)
                    return Record(request.key, "", None, {}, error=str(failure))
                pause = min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2 ** min(attempt, 60)) * random.uniform(0.5, 1.0)
                await asyncio.sleep(max(pause, failure.pause))
                attempt += 1
            else:
                self._answered_at, self._failures = time.monotonic(), 0
                return Record(request.key, reply.answer, reply.finish_reason, reply.usage, error=None)

    def _stop_if_hopeless(self, request: Request, failure: _NoAnswer, began: float, attempt: int) -> None:
        """Ends the run where the failure is not this request's own."""
        is_news = request.key.digest() not in self._failed_before
        if failure.is_final:
            self._refused_tasks.update([request.key.task_id] * is_news)
            if self._answered_at == float("-inf") and len(self._refused_tasks) >= _REFUSED_TASKS_THAT_STOP:
                raise QualcodeError(
                    f"{self._endpoint.shown} refuses every request ({failure}); change the settings it names and run "
                    "the same command again"
                )
        elif self._answered_at < began:
            self._failures += is_news
            if not failure.is_gone and self._failures < _FAILURES_THAT_STOP:
                return
            raise QualcodeError(
                f"{self._endpoint.shown} gave no answer at all in {time.monotonic() - began:.0f} s ({failure}, tried "
                f"{attempt + 1} times); what was written is kept: start the server and run the same command again"
            )

    async def _ask(self, session, body: bytes) -> Reply:
        """One attempt.

        Raises:
            `_NoAnswer`: It brought nothing.
            `QualcodeError`: No request can bring anything.
        """
        import aiohttp

        endpoint = self._endpoint
        try:
            async with session.post(
                endpoint.url, data=body, proxy=endpoint.proxy, allow_redirects=False
            ) as answer:
                data = await self._read(answer)
                status, retry_after = answer.status, answer.headers.get("Retry-After")
        except aiohttp.ClientSSLError as error:
            raise QualcodeError(
                f"no secure connection to {endpoint.shown}: {endpoint.quoted(str(error))}; check --url and its "
                "certificate"
            ) from None
        except TimeoutError:
            raise _NoAnswer(f"no answer within {self._settings.timeout:g} s") from None
        except (aiohttp.ClientError, OSError) as error:
            is_gone = isinstance(error, aiohttp.ClientConnectorError)
            raise _NoAnswer(endpoint.quoted(str(error)) or type(error).__name__, is_gone=is_gone) from None
        if status == http.HTTPStatus.OK:
            try:
                return read_reply(data)
            except UnreadableReply as error:
                raise _NoAnswer(str(error)) from None
        said = endpoint.quoted(said_by(data))
        reason = f"status {status}{': ' * bool(said)}{said}"
        if status in _LATER or status >= http.HTTPStatus.INTERNAL_SERVER_ERROR:
            raise _NoAnswer(reason, pause=_seconds(retry_after))
        if status < http.HTTPStatus.BAD_REQUEST or status in _FOR_ALL:
            advice = _FOR_ALL.get(status, "redirects are not followed: give the address itself as --url")
            raise QualcodeError(f"{endpoint.shown} answered {reason}; {advice} (what was written is kept)")
        raise _NoAnswer(reason, is_final=True)

    async def _read(self, answer) -> bytes:
        """The body, if it is not endless."""
        parts, size = [], 0
        async for part in answer.content.iter_chunked(_CHUNK_BYTES):
            size += len(part)
            if size > self._most_bytes:
                answer.close()
                raise _NoAnswer(f"the answer is longer than {self._most_bytes:,} bytes")
            parts.append(part)
        return b"".join(parts)


def open_writer(settings: WriterSettings) -> ServerWriter:
    """The writer of these settings."""
    return ServerWriter(settings)


def _seconds(retry_after: str | None) -> float:
    """What `Retry-After` asks for: seconds or a date. Nonsense asks for nothing, and nobody is waited for all day."""
    if retry_after is None:
        return 0.0
    seconds = 0.0
    try:
        seconds = float(retry_after)
    except ValueError:
        with contextlib.suppress(ValueError, OverflowError):
            seconds = email.utils.parsedate_to_datetime(retry_after).timestamp() - time.time()
    return 0.0 if math.isnan(seconds) else min(max(seconds, 0.0), _LONGEST_RETRY_AFTER_S)
