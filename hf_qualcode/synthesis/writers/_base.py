"""What every writer is given, and what it does."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from hf_qualcode.types import UsageError


if TYPE_CHECKING:
    from hf_qualcode.synthesis.plan import Request
    from hf_qualcode.synthesis.store import RunStore


Progress = Callable[[str, int, int | None], None]


@dataclass(frozen=True, slots=True)
class WriterSettings:
    """What a run tells its writer; each writer reads what concerns it.

    What shapes answers (the sampling, the model's name) is in the key of every request as well. The rest, such as the
    address, may change from one start to the next without a request being made again.

    Attributes:
        model (`str`, *optional*): What a server calls the model; of `local` a folder, a Hub id, or `smollm2`.
        temperature, top_p (`float`), top_k (`int`), max_tokens (`int`): Sampling; defaults are the paper's
            (SynH-Rank, section 5.4). `top_k` 0: no such bound. `max_tokens` counts new tokens of one answer.
        url (`str`, *optional*): Of `server`: address of an OpenAI-compatible endpoint.
        api_key_env (`str`, *optional*): Of `server`: name of the environment variable that holds the key.
        concurrency (`int`, defaults to 32): Of `server`: requests in flight.
        timeout (`float`, defaults to 300): Of `server`: seconds that one request may take.
        max_retries (`int`, defaults to 5): Of `server`: how often a request is sent again.
        batch_size (`int`, defaults to 8): Of `local`: requests that are answered together.
        seed (`int`, defaults to 42): Of draws that are no request's own.
        unsafe (`bool`, defaults to `False`): Of writers that run programs: run them unisolated where need be.
    """

    model: str | None = None
    temperature: float = 0.7
    top_p: float = 0.8
    top_k: int = 20
    max_tokens: int = 1024
    url: str | None = None
    api_key_env: str | None = None
    concurrency: int = 32
    timeout: float = 300.0
    max_retries: int = 5
    batch_size: int = 8
    seed: int = 42
    unsafe: bool = False


def check_sampling(settings: WriterSettings) -> None:
    """Checks what shapes answers, before any is asked for.

    Raises:
        `UsageError`: A number is out of range.
    """
    for name, fits, needed in (
        ("temperature", 0 <= settings.temperature < math.inf, "0 or more"),
        ("top_p", 0 < settings.top_p <= 1, "more than 0 and at most 1"),
        ("top_k", settings.top_k >= 0, "0 (no such bound) or more"),
        ("max_tokens", settings.max_tokens >= 1, "1 or more"),
    ):
        if not fits:
            raise UsageError(f"--{name.replace('_', '-')} {getattr(settings, name)}: {needed} is needed")


class Writer(Protocol):
    """Answers requests by a language model.

    Attributes:
        model (`str`): The model's name, as it goes into the keys of requests.
        tally (`Tally`): What was done so far, for whoever shows progress.
    """

    model: str
    tally: "Tally"

    def write(self, requests: Iterable["Request"], store: "RunStore", progress: Progress | None = None) -> None:
        """Leaves a record of every request in the store; those that it has already are not made again.

        Args:
            requests (`Iterable[Request]`): The whole plan, in its order.
            store (`RunStore`): Where records go as soon as they are there.
            progress (`Callable`, *optional*): Called as `progress(stage, done, total)`, in requests.

        Raises:
            `QualcodeError`: Nothing more can be got. What was got is in the store, and the same call goes on.
        """
        ...


@dataclass(slots=True)
class Tally:
    """What a writer did since it was started, and who is told of it.

    Attributes:
        written (`int`): Records that it put into the store.
        known (`int`): Requests whose records were there.
        prompt_tokens, completion_tokens (`int`): As far as they were told.
    """

    written: int = 0
    known: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    _stage: str = ""
    _total: int | None = None
    _progress: Progress | None = None

    def begin(self, stage: str, total: int | None, progress: Progress | None) -> None:
        """Counts from nothing, of `total` requests where it is known how many there are."""
        self.written = self.known = self.prompt_tokens = self.completion_tokens = 0
        self._stage, self._total, self._progress = stage, total, progress
        self._report()

    def skip(self) -> None:
        """Counts a request whose record was there."""
        self.known += 1

    def add(self, usage: Mapping[str, int] | None) -> None:
        """Counts one record."""
        self.written += 1
        self.prompt_tokens += (usage or {}).get("prompt_tokens", 0)
        self.completion_tokens += (usage or {}).get("completion_tokens", 0)
        self._report()

    def note(self) -> str:
        """The tokens, for a progress line; `""` before any were told."""
        if not self.prompt_tokens + self.completion_tokens:
            return ""
        return f"{_short(self.prompt_tokens)} tokens in, {_short(self.completion_tokens)} out"

    def _report(self) -> None:
        if self._progress is not None:
            # Those that were there are not counted, or the rate would promise too much.
            self._progress(self._stage, self.written, None if self._total is None else self._total - self.known)


def _short(count: int) -> str:
    for unit, name in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if count >= unit:
            return f"{count / unit:.1f}{name}"
    return str(count)


def missing_requests(requests: Iterable["Request"], store: "RunStore", tally: Tally) -> Iterator["Request"]:
    """The requests that have no answer yet, each once: in the order of the plan, those that failed before at the end.
    Those that have one are counted."""
    known, failed = set(store.known_digests()), set(store.failed_digests())
    later = []
    for request in requests:
        digest = request.key.digest()
        if digest in known:
            tally.skip()
            continue
        known.add(digest)
        if digest in failed:
            later.append(request)
        else:
            yield request
    yield from later


def length_of(requests: Iterable["Request"]) -> int | None:
    """How many there are, where that is known without going through them."""
    return len(requests) if isinstance(requests, Sized) else None
