"""An OpenAI-compatible server on this machine that answers slowly, wrongly and out of order, or at once and rightly.

    python tests/synthesis/loopback.py [--misbehave] [--delay 0.05] ...     prints its address, serves until killed

What it answers depends on the request alone: model, messages, seed and sampling. Whether and how it fails depends on
the request and on how often it came, so a client that tries again gets the same answers in the end, however often it
was stopped on the way. It is plain asyncio on one core, so that a client is measured and not this.
"""

import argparse
import asyncio
import hashlib
import json
import threading
from collections import Counter
from dataclasses import dataclass, field


# What can go wrong with an attempt. Every fault passes when the request comes again.
PASSING_FAULTS = (
    *("429", "500", "503", "malformed", "html", "empty_choices", "wrong_shape", "drop", "cut", "nested", "bad_header"),
)
# Faults that cost the client its whole time limit.
SLOW_FAULTS = ("hang", "stall")
ANSWERS = (
    *("fenced", "fenced", "fenced", "fenced", "unfenced", "prose", "two_blocks", "thinking", "other_language"),
    *("empty", "null", "cut_off", "broken", "surrogate"),
)
OTHER_LANGUAGE = "#include <stdio.h>\nint main(void) {\n    printf(\"%d\\n\", 7);\n    return 0;\n}\n"


@dataclass
class Behaviour:
    """How the server behaves.

    Attributes:
        answers: Kinds of answers, drawn by request.
        faults: Kinds of faults, drawn by request.
        fault_share: Share of requests whose first attempts fail.
        attempts: Most attempts of one request that fail.
        delay: Seconds; each answer takes from 0 to this, drawn by request.
        hopeless: Share of requests that get status 500 whatever is done.
        refused: Share of requests that get status 400.
        poison: Answer requests that hold this text by `poisoned`, whatever is done.
        poisoned: A status.
        status: Answer everything by this status.
        headers: Sent with `status` and with 429.
        body: Of `status`.
        key: Refuse requests without this key.
        model: Answer 404 to requests for any other.
        close_after: Stop serving after so many good answers.
    """

    answers: tuple[str, ...] = ("fenced",)
    faults: tuple[str, ...] = ()
    fault_share: float = 0.0
    attempts: int = 2
    delay: float = 0.0
    hopeless: float = 0.0
    refused: float = 0.0
    poison: str | None = None
    poisoned: int = 500
    status: int | None = None
    headers: dict = field(default_factory=dict)
    body: str = '{"error": {"message": "as it was told"}}'
    key: str | None = None
    model: str | None = None
    close_after: int | None = None


def misbehaving(**changes):
    """All that goes wrong and passes quickly, for half of the requests, and every kind of answer."""
    return Behaviour(answers=ANSWERS, faults=PASSING_FAULTS, fault_share=0.5, **changes)


def draw(digest: str, what: str) -> int:
    """A number in [0, 2^32) for a request."""
    return int.from_bytes(hashlib.sha256(f"{what}:{digest}".encode()).digest()[:4])


def share(digest: str, what: str) -> float:
    return draw(digest, what) / 2**32


def code_for(digest: str) -> str:
    """A small program of its own for each request; a tenth of them are the same one, so that there are duplicates."""
    number = draw(digest, "code")
    if number % 10 == 0:
        number = 0
    loop = "    for value in values:\n        total += value\n"
    return f"def solve(values):\n    total = {number}\n{loop}    return total\n"


def answer_text(kind: str, digest: str) -> str | None:
    """The content of an answer of some kind."""
    code = code_for(digest)
    fenced = f"```python\n{code}```"
    return {
        "fenced": f"Here it is.\n\n{fenced}\n\nIt takes linear time.",
        "unfenced": code,
        "prose": "I am sorry, there is no program that does this.",
        "two_blocks": f"{fenced}\n\nCall it like this:\n\n```python\nprint(solve([1, 2]))\n```",
        "thinking": f"<think>First ```python\nx = 1\n``` maybe.</think>\n{fenced}",
        "other_language": f"```c\n{OTHER_LANGUAGE}```",
        "empty": "",
        "null": None,
        "cut_off": f"```python\n{code[: len(code) // 2]}",
        "broken": "```python\ndef solve(:\n```",
        "surrogate": f"\ud800\n{fenced}",
    }[kind]


class Connection(asyncio.Protocol):
    """One connection: HTTP/1.1 requests with a length, one after another."""

    def __init__(self, server: "Loopback"):
        self.server, self.buffer, self.transport = server, bytearray(), None

    def connection_made(self, transport):
        self.transport = transport
        self.server.connections.add(self)

    def connection_lost(self, error):
        self.server.connections.discard(self)

    def data_received(self, data):
        self.buffer += data
        end = self.buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        head = bytes(self.buffer[:end]).decode("latin-1")
        headers = {}
        for line in head.split("\r\n")[1:]:
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        stop = end + 4 + int(headers.get("content-length", 0))
        if len(self.buffer) < stop:
            return
        body = bytes(self.buffer[end + 4 : stop])
        del self.buffer[:stop]
        self.server.handle(self, head.split(" ", 2)[1], headers, body)

    def send(self, status: int, body: bytes, headers: dict | None = None, *, length: int | None = None):
        if self.transport.is_closing():
            return
        lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(body) if length is None else length}"]
        lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
        self.transport.write(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + body)


class Loopback:
    """The server. In a `with` block it runs in a thread of its own; `serve` runs it in this one."""

    def __init__(self, behaviour: Behaviour | None = None):
        self.behaviour = behaviour or Behaviour()
        self.attempts, self.faults = Counter(), Counter()
        self.requests, self.headers, self.order = [], [], []
        self.in_flight = self.most_in_flight = self.answered = 0
        self.keep = True  # the requests; a long run does without
        self.connections = set()
        self.loop = self.url = None

    # ---- life ----

    async def serve(self, started):
        self.loop = asyncio.get_running_loop()
        self.listening = await self.loop.create_server(lambda: Connection(self), "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self.listening.sockets[0].getsockname()[1]}"
        self.done = asyncio.Event()
        started()
        await self.done.wait()
        self.listening.close()
        for connection in list(self.connections):
            connection.transport.abort()

    def __enter__(self):
        ready = threading.Event()
        self.thread = threading.Thread(target=lambda: asyncio.run(self.serve(ready.set)), daemon=True)
        self.thread.start()
        assert ready.wait(10)
        return self

    def __exit__(self, *_):
        if not self.loop.is_closed():  # as it is after `close_after`
            self.loop.call_soon_threadsafe(self.done.set)
        self.thread.join(10)

    # ---- answers ----

    def handle(self, connection, path, headers, body):
        told = self.behaviour
        if self.keep:
            self.headers.append(headers)
        if told.status is not None:
            connection.send(told.status, told.body.encode(), told.headers)
            return
        if told.key is not None and headers.get("authorization") != f"Bearer {told.key}":
            said = {"error": {"message": f"Incorrect API key provided: {headers.get('authorization')}"}}
            connection.send(401, json.dumps(said).encode())
            return
        asked = json.loads(body)
        if not path.endswith("/v1/chat/completions") or (told.model and asked["model"] != told.model):
            said = {"error": {"message": f"The model `{asked.get('model')}` does not exist."}}
            connection.send(404, json.dumps(said).encode())
            return
        digest = hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()
        if self.keep:
            self.requests.append(asked)
        self.attempts[digest] += 1
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        if told.poison and told.poison in asked["messages"][1]["content"]:
            self.in_flight -= 1
            connection.send(told.poisoned, b'{"error": "poison"}')
            return
        wait = told.delay * share(digest, f"delay {self.attempts[digest]}")
        if wait:
            self.loop.call_later(wait, self.respond, connection, digest)
        else:
            self.respond(connection, digest)

    def respond(self, connection, digest):
        told = self.behaviour
        self.in_flight -= 1
        if share(digest, "hopeless") < told.hopeless:
            connection.send(500, b'{"error": "out of memory"}')
            return
        if share(digest, "refused") < told.refused:
            connection.send(400, b'{"object": "error", "message": "This prompt is too long.", "code": 400}')
            return
        failing = 1 + draw(digest, "attempts") % told.attempts if share(digest, "fault") < told.fault_share else 0
        if told.faults and self.attempts[digest] <= failing:
            kind = told.faults[draw(digest, "kind") % len(told.faults)]
            self.faults[kind] += 1
            self.fail(connection, kind)
            return
        if self.keep:
            self.order.append(digest)
        connection.send(200, json.dumps(self.completion(digest)).encode(), {"Content-Type": "application/json"})
        self.answered += 1
        if self.answered == told.close_after:
            self.done.set()

    def completion(self, digest):
        kind = self.behaviour.answers[draw(digest, "answer") % len(self.behaviour.answers)]
        text = answer_text(kind, digest)
        return {
            "id": f"chatcmpl-{digest[:8]}",
            "choices": [
                {
                    "index": 0,
                    "message": {"role": "assistant", "content": text},
                    "finish_reason": "length" if kind == "cut_off" else "stop",
                }
            ],
            "usage": {"prompt_tokens": 100, "completion_tokens": len((text or "").split())},
        }

    def fail(self, connection, kind):
        if kind in ("429", "503"):
            headers = {"Retry-After": "0", **self.behaviour.headers}
            connection.send(int(kind), b'{"error": {"message": "busy"}}', headers)
        elif kind == "500":
            connection.send(500, b"Internal Server Error")
        elif kind == "malformed":
            connection.send(200, b'{"choices": [{"message": {"content": "```pyth')
        elif kind == "html":
            connection.send(200, b"<html><body>Bad gateway</body></html>", {"Content-Type": "text/html"})
        elif kind == "empty_choices":
            connection.send(200, b'{"choices": []}')
        elif kind == "wrong_shape":
            connection.send(200, b'{"choices": [{"message": {"content": {"text": 7}}}]}')
        elif kind == "nested":
            connection.send(200, b"[" * 100_000)
        elif kind == "drop":
            connection.transport.abort()
        elif kind == "cut":
            connection.send(200, b'{"choices": [{"message"', length=5000)
            connection.transport.close()
        elif kind == "bad_header":
            connection.transport.write(b"SMTP ready\r\n\r\n")
            connection.transport.close()
        elif kind == "stall":
            connection.send(200, b'{"choices": [', length=5000)
        elif kind == "endless":
            connection.send(200, b" " * (6 << 20), length=1 << 40)
        elif kind != "hang":
            raise ValueError(kind)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--misbehave", action="store_true", help="faults and answers of every quick kind")
    parser.add_argument("--delay", type=float, default=0.0, help="longest seconds of an answer (default 0)")
    parser.add_argument("--attempts", type=int, default=2, help="most attempts of a request that fail (default 2)")
    parser.add_argument("--hopeless", type=float, default=0.0, help="share of requests that never succeed (default 0)")
    args = parser.parse_args()
    make = misbehaving if args.misbehave else Behaviour
    server = Loopback(make(delay=args.delay, attempts=args.attempts, hopeless=args.hopeless))
    server.keep = False
    asyncio.run(server.serve(lambda: print(server.url, flush=True)))


if __name__ == "__main__":
    main()
