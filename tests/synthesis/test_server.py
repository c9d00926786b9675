"""The writer `server` against a server on this machine that answers slowly, wrongly and out of order."""

import asyncio
import hashlib
import json
import logging
import socket
import threading
import time
from collections import Counter

import pytest

from hf_qualcode.quality import get_dimension
from hf_qualcode.synthesis.plan import Plan
from hf_qualcode.synthesis.store import RunStore
from hf_qualcode.synthesis.tasks import Task
from hf_qualcode.synthesis.writers import WriterSettings, load_writer, server
from hf_qualcode.synthesis.writers._chat import Endpoint, UnreadableReply, endpoint_of, read_reply, said_by
from hf_qualcode.types import QualcodeError, UsageError
from tests.synthesis.loopback import PASSING_FAULTS, Behaviour, Loopback, misbehaving


TASKS = [Task(f"t{number}", f"Do the number {number}.") for number in range(5)]
KEY = "sk-loopback-secret"


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch):
    monkeypatch.setattr(server, "_FIRST_PAUSE_S", 0.001)
    monkeypatch.setattr(server, "_LONGEST_PAUSE_S", 0.01)
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def settings(url, **changes):
    return WriterSettings(url=url, model="loopback", timeout=10, **changes)


def plan_of(told, num_samples=2, tasks=TASKS):
    sampling = {"temperature": told.temperature, "seed": told.seed}
    return Plan(tasks, told.model, sampling, num_samples=num_samples)


def write(url, folder, *, num_samples=2, tasks=TASKS, **changes):
    """Runs the writer; its tally and the last record of every key."""
    told = settings(url, **changes)
    writer = load_writer("server").open_writer(told)
    with RunStore(folder) as store:
        writer.write(plan_of(told, num_samples, tasks), store)
        return writer.tally, {record.key.digest(): record for record in store.records()}


def test_every_request_is_answered_whatever_goes_wrong_on_the_way(tmp_path):
    with Loopback(Behaviour(answers=misbehaving().answers)) as good:
        _, expected = write(good.url, tmp_path / "good", num_samples=6)
    with Loopback(misbehaving(delay=0.02)) as bad:
        tally, found = write(bad.url, tmp_path / "bad", num_samples=6)
        assert set(bad.faults) == set(PASSING_FAULTS), "a kind of fault was not tried"
        arrived = [hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest() for asked in bad.requests]
        assert bad.order != list(dict.fromkeys(arrived)), "answers came in the order of the requests"
    assert found == expected
    assert (tally.written, tally.known) == (len(expected), 0) == (5 * 3 * 2 * 6, 0)
    assert tally.prompt_tokens == 100 * len(expected)
    assert {record.error for record in found.values()} == {None}


def test_a_request_carries_messages_sampling_its_own_seed_and_top_k(tmp_path):
    with Loopback() as there:
        write(there.url, tmp_path, temperature=0.3, top_p=0.9, top_k=7, max_tokens=33)
    told = settings(None, temperature=0.3)
    by_seed = {asked["seed"]: asked for asked in there.requests}
    for request in plan_of(told):
        assert by_seed[request.seed] == {
            "model": "loopback", "temperature": 0.3, "top_p": 0.9, "top_k": 7, "max_tokens": 33, "seed": request.seed,
            "messages": [
                {"role": "system", "content": request.prompt.system}, {"role": "user", "content": request.prompt.user}
            ],
        }  # fmt: skip
    assert len(by_seed) == len(there.requests) == 60


def test_without_a_bound_top_k_is_not_sent(tmp_path):
    with Loopback() as there:
        write(there.url, tmp_path, top_k=0, num_samples=1, tasks=TASKS[:1])
    assert all("top_k" not in asked for asked in there.requests)


@pytest.mark.parametrize("concurrency", [1, 7])
def test_so_many_are_under_way_and_no_more(tmp_path, concurrency):
    with Loopback(Behaviour(delay=0.02)) as there:
        write(there.url, tmp_path, concurrency=concurrency)
    assert there.most_in_flight == concurrency


def test_what_is_known_is_not_asked_again(tmp_path):
    with Loopback() as there:
        write(there.url, tmp_path, num_samples=1)
        tally, _ = write(there.url, tmp_path, num_samples=2)
        assert (tally.written, tally.known) == (30, 30)
        assert len(there.requests) == 60
        assert set(there.attempts.values()) == {1}


def test_failures_are_kept_with_their_reason_and_asked_again_next_time(tmp_path):
    with Loopback(Behaviour(hopeless=0.3, refused=0.3)) as there:
        _, found = write(there.url, tmp_path, max_retries=2)
    reasons = Counter(record.error for record in found.values())
    assert reasons.keys() == {None, "status 500: out of memory", "status 400: This prompt is too long."}
    attempts = Counter(there.attempts.values())
    assert attempts[3] == reasons["status 500: out of memory"], "2 retries are 3 attempts; a refusal is final"
    assert attempts[1] == reasons[None] + reasons["status 400: This prompt is too long."]
    # Some requests always fail. A run of which only such ones are left comes to its end all the same.
    with Loopback(Behaviour(hopeless=0.3, refused=0.3)) as there:
        tally, again = write(there.url, tmp_path, max_retries=2)
    assert again == found
    assert (tally.known, tally.written) == (reasons[None], 60 - reasons[None])
    with Loopback() as there:
        tally, found = write(there.url, tmp_path)
    assert tally.known == reasons[None]
    assert {record.error for record in found.values()} == {None}


@pytest.mark.parametrize("status", [400, 500])
def test_requests_that_always_fail_do_not_block_the_others(tmp_path, status):
    """With one at a time nothing else is answered meanwhile; and those that failed are asked after the new ones."""
    poison = Behaviour(poison=f"must be {get_dimension('speed').PHRASE}:", poisoned=status)
    tasks = [Task(f"t{number}", f"Do the number {number}.") for number in range(9)]
    told = {"max_retries": 1, "concurrency": 1, "tasks": tasks}
    with Loopback(poison) as there:
        write(there.url, tmp_path, num_samples=1, **told)
    with Loopback(poison) as there:
        tally, found = write(there.url, tmp_path, **told)
    requests = sorted(plan_of(settings(None), tasks=tasks), key=lambda request: request.key.sample == 0)
    bad = {request.seed for request in requests if poison.poison in request.prompt.user}
    assert {record.error for record in found.values()} == {None, f"status {status}: poison"}
    assert sum(record.error is not None for record in found.values()) == len(bad) == 9 * 2
    assert (tally.known, tally.written) == (9 * 5, 9 * 7)
    seeds = list(dict.fromkeys(asked["seed"] for asked in there.requests))
    assert seeds == [request.seed for request in requests if request.key.sample == 1 or request.seed in bad]
    # Nothing is left but those.
    with Loopback(poison) as there:
        tally, again = write(there.url, tmp_path, **told)
    assert (again, tally.known, tally.written) == (found, 9 * 10, 9 * 2)


def test_one_task_that_is_refused_is_no_reason_to_stop(tmp_path):
    with Loopback(Behaviour(poison="Do the number 0.", poisoned=400)) as there:
        _, found = write(there.url, tmp_path, concurrency=1)
    assert {record.key.task_id for record in found.values() if record.error} == {"t0"}
    assert len(found) == 60


def test_pauses_grow_to_a_bound_and_are_never_shorter_than_what_the_server_asks_for(monkeypatch):
    monkeypatch.setattr(server, "_FIRST_PAUSE_S", 1.0)
    monkeypatch.setattr(server, "_LONGEST_PAUSE_S", 60.0)
    pauses = []

    async def sleep(seconds):
        pauses.append(seconds)

    async def ask(*_):
        raise server._NoAnswer("status 503", pause=7.0 if len(pauses) == 1 else 0.0)

    writer = server.open_writer(settings("http://host", max_retries=1500))
    monkeypatch.setattr(server.asyncio, "sleep", sleep)
    monkeypatch.setattr(writer, "_ask", ask)
    request = next(iter(plan_of(settings(None))))
    assert asyncio.run(writer._record(None, request)).error == "status 503"
    assert len(pauses) == 1500
    assert pauses[1] == 7.0
    del pauses[1]
    for pause, most in zip(pauses, [1, 4, 8, 16, 32] + [60] * 1494, strict=True):
        assert most / 2 <= pause <= most
    assert len(set(pauses)) > 1000, "all would come again at the same moment"


@pytest.mark.parametrize(
    ("behaviour", "reason"),
    [
        ({"status": 503}, "status 503: as it was told"),
        ({"faults": ("empty_choices",), "fault_share": 1, "attempts": 10**9}, "list of choices is empty"),
        ({"faults": ("drop",), "fault_share": 1, "attempts": 10**9}, "."),
    ],
)
def test_a_server_that_answers_nothing_is_left_soon(tmp_path, behaviour, reason):
    with Loopback(Behaviour(**behaviour)) as there:
        with pytest.raises(QualcodeError, match=f"gave no answer at all in .*{reason}.*tried 2 times"):
            write(there.url, tmp_path, max_retries=1, concurrency=4)
        assert len(there.headers) <= 16


@pytest.mark.parametrize("status", [400, 500])
def test_few_requests_without_any_answer_are_a_failure_too(tmp_path, status):
    with Loopback(Behaviour(status=status)) as there:
        with pytest.raises(QualcodeError, match=f"answered none of 2 requests .status {status}: as it was told"):
            told = settings(there.url, max_retries=0, concurrency=1)
            with RunStore(tmp_path) as store:
                server.open_writer(told).write(list(plan_of(told))[:2], store)
        assert len(there.headers) == 2


@pytest.mark.parametrize("fault", ["hang", "stall"])
def test_a_server_that_hangs_is_left_after_the_time_limit(tmp_path, fault):
    with Loopback(Behaviour(faults=(fault,), fault_share=0.3, attempts=1)) as there:
        began = time.monotonic()
        told = WriterSettings(url=there.url, model="loopback", timeout=0.3)
        with RunStore(tmp_path) as store:
            server.open_writer(told).write(plan_of(told), store)
            assert {record.error for record in store.records()} == {None}
        assert there.faults[fault] > 3
    assert 0.3 <= time.monotonic() - began < 20


def test_an_endless_answer_is_given_up(tmp_path):
    with Loopback(Behaviour(faults=("endless",), fault_share=0.2, attempts=1)) as there:
        _, found = write(there.url, tmp_path / "some", num_samples=1)
        assert there.faults["endless"]
    assert {record.error for record in found.values()} == {None}
    said = pytest.raises(QualcodeError, match="the answer is longer than 4,194,304 bytes")
    with Loopback(Behaviour(faults=("endless",), fault_share=1, attempts=10**9)) as there, said:
        write(there.url, tmp_path / "all", max_retries=0)


def closed_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def test_no_server_at_all_is_one_clear_line(tmp_path):
    with pytest.raises(QualcodeError, match=r"gave no answer at all .*start the server and run the same command"):
        write(f"http://127.0.0.1:{closed_port()}", tmp_path, max_retries=1)
    # Nor if all that is left failed before.
    with Loopback(Behaviour(refused=0.3)) as there:
        write(there.url, tmp_path)
    with pytest.raises(QualcodeError, match="gave no answer at all"):
        write(f"http://127.0.0.1:{closed_port()}", tmp_path, max_retries=1)


def test_a_server_that_speaks_no_tls_is_one_clear_line_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr(server, "_FIRST_PAUSE_S", 60.0)
    monkeypatch.setattr(server, "_LONGEST_PAUSE_S", 60.0)
    with socket.create_server(("127.0.0.1", 0)) as there:

        def speak():
            for _ in range(2):
                connection = there.accept()[0]
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
                connection.close()

        threading.Thread(target=speak, daemon=True).start()
        began = time.monotonic()
        with pytest.raises(QualcodeError, match="no secure connection to https://127.0.0.1") as caught:
            write(f"https://127.0.0.1:{there.getsockname()[1]}", tmp_path, concurrency=1)
        assert "\n" not in str(caught.value)
        assert time.monotonic() - began < 20


def test_the_proxy_of_the_environment_is_used_unless_it_says_not_to(tmp_path, monkeypatch):
    with Loopback() as proxy, Loopback() as there:
        monkeypatch.setenv("http_proxy", proxy.url)
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        write("http://no-such-host.invalid:8000", tmp_path / "one", num_samples=1)
        write(there.url, tmp_path / "two", num_samples=1)
        assert (len(proxy.requests), len(there.requests)) == (30, 30)


def test_a_server_that_goes_away_keeps_what_it_gave(tmp_path):
    going = Behaviour(delay=0.01, close_after=20)
    with Loopback(going) as there, pytest.raises(QualcodeError, match="no answer at all"):
        write(there.url, tmp_path, max_retries=1, concurrency=2)
    with Loopback() as there:
        tally, found = write(there.url, tmp_path)
    assert tally.known >= 20
    assert len(found) == 60


@pytest.mark.parametrize(
    ("status", "headers", "advice"),
    [
        (401, {}, "--api-key-env"),
        (403, {}, "--api-key-env"),
        (404, {}, "--url and --model"),
        (405, {}, "--url"),
        (307, {"Location": "http://elsewhere"}, "redirects are not followed"),
    ],
)
def test_what_every_request_would_meet_ends_the_run_at_once(tmp_path, status, headers, advice):
    with Loopback(Behaviour(status=status, headers=headers)) as there:
        with pytest.raises(QualcodeError, match=f"status {status}: as it was told.*{advice}"):
            write(there.url, tmp_path, concurrency=3)
        assert len(there.headers) <= 3


def test_refusals_of_all_end_the_run(tmp_path):
    tasks = [Task(f"t{number}", f"Do the number {number}.") for number in range(30)]
    with Loopback(Behaviour(status=400)) as there:
        with pytest.raises(QualcodeError, match="refuses every request .status 400: as it was told"):
            write(there.url, tmp_path, concurrency=2, num_samples=1, tasks=tasks)
        assert len(there.headers) <= 8 * 6 + 2


def test_the_key_goes_to_the_server_and_nowhere_else(tmp_path, monkeypatch, caplog, capfd):
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("LOOPBACK_KEY", f" {KEY}\n")
    with Loopback(Behaviour(key=KEY)) as there:
        write(there.url, tmp_path / "right", api_key_env="LOOPBACK_KEY", num_samples=1)
        assert {headers["authorization"] for headers in there.headers} == {f"Bearer {KEY}"}
    # It repeats the key that it was given, as some do.
    with Loopback(Behaviour(key="another")) as there, pytest.raises(QualcodeError) as caught:
        write(there.url, tmp_path / "wrong", api_key_env="LOOPBACK_KEY")
    assert "Incorrect API key provided: Bearer ***" in str(caught.value)
    # Errors of one request go into its record.
    echo = json.dumps({"error": {"message": f"What is {KEY}?"}})
    for status in (400, 500):
        said = pytest.raises(QualcodeError, match=r"What is \*{3}\?")
        with Loopback(Behaviour(status=status, body=echo)) as there, said:
            write(there.url, tmp_path / str(status), api_key_env="LOOPBACK_KEY", max_retries=0)
        assert "What is ***?" in (tmp_path / str(status) / "records.jsonl").read_text()
    told = settings(there.url, api_key_env="LOOPBACK_KEY")
    seen = [repr(told), repr(endpoint_of(told)), repr(vars(server.open_writer(told))), str(caught.value), caplog.text]
    seen += capfd.readouterr()
    seen += [path.read_text() for path in tmp_path.rglob("*") if path.is_file()]
    assert not any(KEY in text for text in seen)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"url": None}, "needs --url"),
        ({"model": None}, "needs --model"),
        ({"url": "localhost:8000"}, "no plain http"),
        ({"url": "ftp://host"}, "no plain http"),
        ({"url": "http://user:secret@host"}, "no plain http"),
        ({"url": "http://host:99999"}, "no plain http"),
        ({"url": "http://host?key=secret"}, "no plain http"),
        ({"url": "http://host\nX: secret"}, "no plain http"),
        ({"concurrency": 0}, "--concurrency 0"),
        ({"timeout": float("nan")}, "--timeout nan"),
        ({"max_retries": -1}, "--max-retries -1"),
        ({"temperature": -0.1}, "--temperature -0.1: 0 or more"),
        ({"temperature": float("nan")}, "--temperature nan"),
        ({"temperature": float("inf")}, "--temperature inf"),
        ({"top_p": 0.0}, "--top-p 0.0"),
        ({"top_p": 1.1}, "--top-p 1.1"),
        ({"top_k": -1}, "--top-k -1"),
        ({"max_tokens": 0}, "--max-tokens 0"),
        ({"api_key_env": "NOT_SET_ANYWHERE"}, "'NOT_SET_ANYWHERE', and no such variable is set"),
    ],
)
def test_settings_that_are_wrong_in_themselves(changes, said):
    told = {"url": "http://host:8000", "model": "m", **changes}
    with pytest.raises(UsageError, match=said) as caught:
        server.open_writer(WriterSettings(**told))
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://host:8000", "http://host:8000/v1/chat/completions"),
        ("http://host:8000/", "http://host:8000/v1/chat/completions"),
        ("https://host/openai/v1", "https://host/openai/v1/chat/completions"),
        ("http://host/v1/chat/completions", "http://host/v1/chat/completions"),
    ],
)
def test_an_address_may_be_given_in_several_ways(url, expected):
    assert endpoint_of(WriterSettings(url=url, model="m")).url == expected


def test_retry_after_is_seconds_or_a_date_and_nobody_is_waited_for_all_day(monkeypatch):
    monkeypatch.setattr(time, "time", lambda: 1_000_000_000.0)
    for text, seconds in (
        (None, 0), ("2", 2), ("0.5", 0.5), ("-3", 0), ("nan", 0), ("inf", 300), ("1e9", 300), ("soon", 0), ("", 0),
        ("Sun, 09 Sep 2001 01:46:50 GMT", 10), ("Sun, 09 Sep 2001 01:46:30 GMT", 0),
        ("Sun, 09 Sep 2091 01:46:50 GMT", 300), ("Sun, 99 Sep 2001", 0),
    ):  # fmt: skip
        assert server._seconds(text) == seconds, text


def test_what_the_server_asks_for_is_waited(tmp_path):
    with Loopback(Behaviour(faults=("429",), fault_share=1, attempts=1, headers={"Retry-After": "0.4"})) as there:
        began = time.monotonic()
        write(there.url, tmp_path, tasks=TASKS[:1], num_samples=1)
    assert time.monotonic() - began >= 0.4


def test_it_runs_where_a_loop_runs_already(tmp_path):
    async def notebook():
        with Loopback() as there:
            return write(there.url, tmp_path, num_samples=1)

    assert asyncio.run(notebook())[0].written == 30


def test_an_error_on_disk_ends_the_run_with_its_own_words(tmp_path, monkeypatch):
    def no_room(*_):
        raise QualcodeError("records.jsonl cannot be written (No space left on device)")

    monkeypatch.setattr(RunStore, "append", no_room)
    with Loopback() as there, pytest.raises(QualcodeError, match="No space left on device"):
        write(there.url, tmp_path)


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"[]", b"null", b'{"choices": {}}', b'{"choices": []}', b'{"choices": [1]}', b"\xff\xff",
     b'{"choices": [{"message": null}]}', b'{"choices": [{"message": {"content": ["x"]}}]}', b"[" * 200_000],
)  # fmt: skip
def test_what_is_no_completion_is_refused_by_one_kind_of_error(data):
    with pytest.raises(UnreadableReply):
        read_reply(data)
    assert isinstance(said_by(data), str)


def test_counts_of_tokens_are_believed_if_they_can_be():
    def usage(told):
        message = {"message": {"content": "x"}, "finish_reason": "stop" * 50}
        return read_reply(json.dumps({"choices": [message], "usage": told}).encode())

    assert usage({"prompt_tokens": 3, "completion_tokens": True}).usage == {"prompt_tokens": 3}
    assert usage({"prompt_tokens": -3, "completion_tokens": 10**300}).usage == {}
    assert usage("many").usage == {}
    assert len(usage(None).finish_reason) == 40


def test_a_strangers_text_is_one_short_line_without_the_key():
    endpoint = Endpoint("http://host/v1/chat/completions", key=KEY)
    quoted = endpoint.quoted(f"a\n\tb {KEY} " + "x" * 1000)
    assert quoted.startswith("a b *** xxx")
    assert len(quoted) <= 203
    assert "\n" not in quoted
    odd = Endpoint("http://host/v1/chat/completions", key='a"\\b')
    assert odd.quoted(said_by(json.dumps({"sent": 'a"\\b'}).encode())) == '{"sent": "***"}'
