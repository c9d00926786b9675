"""The wire of `server`: an address, a chat request as bytes, and what can be believed of an answer."""

import json
import os
import urllib.parse
import urllib.request
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from hf_qualcode.synthesis.plan import Request
from hf_qualcode.synthesis.writers._base import WriterSettings
from hf_qualcode.types import UsageError


_PATH = "/chat/completions"
# Of what a server says about itself or an error, so much goes into a message.
_QUOTED_CHARACTERS = 200
_LONGEST_FINISH_REASON = 40


class Reply(NamedTuple):
    """What a server answered: raw text, why it ended, and the tokens it counted."""

    answer: str
    finish_reason: str | None
    usage: dict[str, int]


class UnreadableReply(ValueError):
    """An answer that is no chat completion. The message says in which way, and quotes nothing."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where requests go, and the key they carry.

    Attributes:
        url (`str`): Address of the chat completions, without credentials.
        proxy (`str`, *optional*): Of the environment (`HTTP_PROXY`, `HTTPS_PROXY`, `NO_PROXY`).
        key (`str`, *optional*): Never shown: it is in no `repr`, and `quoted` takes it out of what others say.
    """

    url: str
    proxy: str | None = field(default=None, repr=False)
    key: str | None = field(default=None, repr=False)

    @property
    def headers(self) -> dict[str, str]:
        """Headers of every request. Compressed answers are not asked for: their size could not be bounded by bytes."""
        headers = {"Content-Type": "application/json", "Accept": "application/json", "Accept-Encoding": "identity"}
        return headers | ({"Authorization": f"Bearer {self.key}"} if self.key else {})

    @property
    def shown(self) -> str:
        """The address for messages: no query, no credentials."""
        return self.url.removesuffix(_PATH)

    def quoted(self, text: str) -> str:
        """The beginning of a stranger's text on one line, without the key: servers repeat what they were sent."""
        if self.key:
            # Also as JSON writes it, for a text may be what is left of some.
            for form in (self.key, json.dumps(self.key)[1:-1]):
                text = text.replace(form, "***")
        line = " ".join(text.split())
        return line if len(line) <= _QUOTED_CHARACTERS else line[:_QUOTED_CHARACTERS] + "..."


def endpoint_of(settings: WriterSettings) -> Endpoint:
    """The endpoint that settings and environment name.

    Raises:
        `UsageError`: The address is none, or the variable of the key is not set.
    """
    if not settings.url:
        raise UsageError("--writer server needs --url, the address of an OpenAI-compatible server (http://host:8000)")
    try:
        parts = urllib.parse.urlsplit(settings.url)
        named_rightly = parts.scheme in ("http", "https") and parts.hostname and (parts.port is None or parts.port)
    except ValueError:
        named_rightly = False
    if not named_rightly or "@" in parts.netloc or parts.query or parts.fragment or not settings.url.isprintable():
        # Not quoted: it may hold a password.
        raise UsageError(
            "--url is no plain http(s) address; give one like http://host:8000 or https://host/v1, and name the "
            "variable that holds a key by --api-key-env"
        )
    path = parts.path.rstrip("/").removesuffix(_PATH)
    url = f"{parts.scheme}://{parts.netloc}{path or '/v1'}{_PATH}"
    proxy = None if urllib.request.proxy_bypass(parts.hostname) else urllib.request.getproxies().get(parts.scheme)
    return Endpoint(url, proxy, _key_of(settings.api_key_env))


def _key_of(variable: str | None) -> str | None:
    if variable is None:
        return None
    key = os.environ.get(variable, "").strip()
    if not key:
        raise UsageError(f"--api-key-env names {variable!r}, and no such variable is set; set it to the key")
    if not (key.isascii() and key.isprintable()):
        raise UsageError(f"the variable {variable!r} (--api-key-env) holds characters that no key has; set it again")
    return key


def body_of(request: Request, settings: WriterSettings) -> bytes:
    """One chat request. `top_k` is no field of OpenAI's; vLLM, SGLang and others read it from the body's top level."""
    body: dict[str, Any] = {
        "model": settings.model,
        "messages": [
            {"role": "system", "content": request.prompt.system},
            {"role": "user", "content": request.prompt.user},
        ],
        "temperature": settings.temperature,
        "top_p": settings.top_p,
        "max_tokens": settings.max_tokens,
        "seed": request.seed,
    }
    if settings.top_k:
        body["top_k"] = settings.top_k
    return json.dumps(body).encode()


def read_reply(data: bytes) -> Reply:
    """Reads a chat completion.

    Raises:
        `UnreadableReply`: It is none. Whatever a server sends, no other error leaves here.
    """
    try:
        content = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise UnreadableReply("the answer is no JSON") from error
    choices = content.get("choices") if isinstance(content, dict) else None
    if not isinstance(choices, list):
        raise UnreadableReply("the answer has no list of choices")
    if not choices:
        raise UnreadableReply("the answer's list of choices is empty")
    choice = choices[0]
    message = choice.get("message") if isinstance(choice, dict) else None
    text = message.get("content") if isinstance(message, dict) else None
    if not isinstance(message, dict) or not isinstance(text, str | None):
        raise UnreadableReply("the answer's first choice holds no message with text")
    reason = choice.get("finish_reason")
    reason = reason[:_LONGEST_FINISH_REASON] if isinstance(reason, str) else None
    return Reply(text or "", reason, _usage(content.get("usage")))


def said_by(data: bytes) -> str:
    """What an error's body says, in whichever of the usual shapes; `""` where it says nothing that can be read."""
    try:
        content = json.loads(data)
    except (ValueError, RecursionError):
        return ""
    for name in ("error", "message", "detail"):
        if isinstance(content, dict) and name in content:
            content = content[name]
    return content if isinstance(content, str) else json.dumps(content) if content else ""


def _usage(usage: object) -> dict[str, int]:
    counts = usage if isinstance(usage, dict) else {}
    names = ("prompt_tokens", "completion_tokens")
    return {name: counts[name] for name in names if type(counts.get(name)) is int and 0 <= counts[name] < 2**53}
