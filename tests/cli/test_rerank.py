"""`hf-qualcode rerank` as a user meets it: lines in, lines out, with a tiny real reranker."""

import contextlib
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys

import numpy as np
import pytest

from hf_qualcode.cli.main import main
from hf_qualcode.cli.reranking import lines as lines_module
from hf_qualcode.cli.reranking.lines import Line, line_windows
from hf_qualcode.quality import instruction_for
from hf_qualcode.rerank.reranker import Reranker
from tests.rerank.tiny import save_tiny_encoder


CODES = ["def read(path):\n    return open(path).read()", "def put(item):\n    queue.append(item)", "sort(numbers)"]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return save_tiny_encoder(tmp_path_factory.mktemp("reranker"))


@pytest.fixture(scope="module")
def reranker(model):
    return Reranker.from_pretrained(model)


@pytest.fixture
def rerank(model, monkeypatch, capsys, tmp_path):
    """Runs the command on `text`; exit code, rows and stderr."""

    def run(text, *arguments):
        content = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
        (tmp_path / "stdin").write_bytes(content)
        with (tmp_path / "stdin").open() as stdin:
            monkeypatch.setattr(sys, "stdin", stdin)
            exit_code = main(["rerank", "--model", str(model), *arguments])
        streams = capsys.readouterr()
        return exit_code, [json.loads(line) for line in streams.out.splitlines()], streams.err

    return run


def test_each_row_comes_back_with_scores_and_order(rerank, reranker):
    rows = [
        {"id": 7, "query": "read a file", "codes": CODES, "more": {"kept": [1.5, None, "\u00e9\u2028"]}},
        {"codes": [CODES[1], CODES[0], CODES[1], CODES[1]], "query": "put an item"},
        {"query": "", "codes": [""]},
    ]
    exit_code, answers, err = rerank("".join(json.dumps(row) + "\n" for row in rows), "--quality", "speed")
    assert (exit_code, err) == (0, "")
    for row, answer in zip(rows, answers, strict=True):
        assert {key: answer[key] for key in row} == row
        assert list(answer) == [*row, "scores", "order"]
        expected = reranker.score([row["query"]] * len(row["codes"]), row["codes"], quality=("speed",))
        np.testing.assert_allclose(answer["scores"], expected, atol=1e-5)
        assert answer["order"] == sorted(range(len(expected)), key=lambda i: (-answer["scores"][i], i))
    scores = answers[1]["scores"]
    assert scores[0] == scores[2] == scores[3] != scores[1]  # equal ones keep their order


def test_a_row_says_what_is_asked_of_it(rerank, reranker):
    asked = [
        ({}, instruction_for(("memory",))),
        ({"quality": None}, instruction_for(("memory",))),
        ({"quality": ["speed"]}, instruction_for(("speed",))),
        ({"quality": "speed, maintainability"}, instruction_for(("speed", "maintainability"))),
        ({"quality": []}, instruction_for(())),
        ({"quality": "speed", "instruction": "Retrieve code that is slow"}, "Retrieve code that is slow"),
        ({"instruction": None}, instruction_for(("memory",))),
    ]
    text = "\n".join(json.dumps({"query": "sort", "codes": CODES, **extra}) for extra, _ in asked)
    exit_code, answers, _ = rerank(text, "--quality", "memory")
    assert exit_code == 0
    for (_, instruction), answer in zip(asked, answers, strict=True):
        expected = reranker.score(["sort"] * 3, CODES, instruction=instruction)
        np.testing.assert_allclose(answer["scores"], expected, atol=1e-5)


GOOD = json.dumps({"query": "sort", "codes": CODES})
BAD = [
    (b"nonsense", "not JSON"),
    (b'{"query": "a", "codes": [', "not JSON"),
    (b"[1]", "the line is a list"),
    (b'"text"', "the line is text"),
    (b'{"codes": []}', "query is missing"),
    (b'{"query": "a"}', "codes is missing"),
    (b'{"query": null, "codes": []}', "query is null"),
    (b'{"query": "a", "codes": "b"}', "codes is text"),
    (b'{"query": "a", "codes": ["b", 1]}', r"codes\[1\] is a number"),
    (b'{"query": "a", "codes": ["b"], "quality": "beauty"}', "unknown quality 'beauty'.*memory"),
    (b'{"query": "a", "codes": ["b"], "quality": ["speed", 3]}', "unknown quality '3'"),
    (b'{"query": "a", "codes": ["b"], "quality": 3}', "quality is a number"),
    (b'{"query": "a", "codes": ["b"], "instruction": ["c"]}', "instruction is a list"),
    (b'{"query": "a", "codes": ["b"], "weight": NaN}', "NaN is no number of JSON"),
    (b'{"query": "a", "codes": ["b"], "weight": -1e999}', "too large"),
    (b'{"query": "a", "codes": ["b"], "n": ' + b"9" * 5000 + b"}", "not JSON"),
    (b'{"query": "caf\xe9", "codes": []}', "not UTF-8: byte 0xe9 at 14"),
    (b"[" * 100_000 + b"]" * 100_000, "nested too deeply"),
    (b"\x00", "not JSON"),
]


@pytest.mark.parametrize(("line", "message"), BAD, ids=[message for _, message in BAD])
def test_a_bad_line_is_answered_with_its_error_and_the_rest_goes_on(rerank, line, message):
    exit_code, answers, err = rerank(b"\n".join([GOOD.encode(), b"", line, GOOD.encode(), b""]))
    assert exit_code == 1
    assert [list(answer)[-2:] for answer in answers] == [["scores", "order"], ["error", "line"], ["scores", "order"]]
    assert answers[1]["line"] == 3
    assert re.search(message, answers[1]["error"])
    assert "\n" not in answers[1]["error"]
    assert err == "hf-qualcode: 1 of 3 lines could not be used: see error and line on stdout\n"


def test_what_the_model_cannot_read_costs_its_own_lines_alone(rerank, reranker):
    rows = [{"query": f"sort {i}", "codes": CODES, "i": i} for i in range(9)]
    for number in (2, 3, 8):
        rows[number]["instruction"] = "fast " * 5000
    exit_code, answers, err = rerank("\n".join(map(json.dumps, rows)))
    assert exit_code == 1
    for i, answer in enumerate(answers):
        if i in (2, 3, 8):
            assert list(answer) == ["error", "line"] and answer["line"] == i + 1
            assert "leaves no room for code" in answer["error"]
        else:
            assert answer["i"] == i
            np.testing.assert_allclose(answer["scores"], reranker.score([f"sort {i}"] * 3, CODES), atol=1e-5)
    assert err == "hf-qualcode: 3 of 9 lines could not be used: see error and line on stdout\n"


def test_odd_but_legal_lines(rerank):
    surrogate = '{"query": "a \\ud800", "codes": ["\\ud800", "b\\u0000c"]}'
    empty = '{"query": "a", "codes": []}'
    crlf = GOOD + "\r\n  \t\r\n\n"
    exit_code, answers, err = rerank(f"\ufeff{GOOD}\n{crlf}{surrogate}\n{empty}\n{GOOD}")  # the last without its end
    assert (exit_code, err) == (0, "")
    assert [len(answer["scores"]) for answer in answers] == [3, 3, 2, 0, 3]
    assert answers[3] == {"query": "a", "codes": [], "scores": [], "order": []}
    assert answers[2]["codes"] == ["\ud800", "b\0c"]
    assert rerank("") == (0, [], "")
    assert rerank("\n\n") == (0, [], "")


def test_many_rows_are_answered_in_their_order(rerank, monkeypatch):
    monkeypatch.setattr("hf_qualcode.cli.reranking.rows._CODES_A_BATCH", 8)
    rows = [json.dumps({"query": "q", "codes": CODES[: i % 4], "i": i}) for i in range(40)]
    text = "".join(f"{row}\n{'' if i % 3 else 'x'}\n" for i, row in enumerate(rows))
    exit_code, answers, _ = rerank(text)
    assert exit_code == 1
    assert [answer["i"] for answer in answers if "i" in answer] == list(range(40))
    assert [answer["line"] for answer in answers if "line" in answer] == [2 * i + 2 for i in range(0, 40, 3)]
    assert all(len(answer["scores"]) == answer["i"] % 4 for answer in answers if "i" in answer)


@pytest.mark.parametrize(
    ("arguments", "exit_code", "message"),
    [
        (["--quality", "beauty"], 2, "unknown quality 'beauty': choose from speed, memory, maintainability"),
        (["--quality", ""], 2, "--quality names nothing"),
        (["--quality", " , "], 2, "--quality names nothing"),
        (["--model", "nowhere-at-all"], 2, "no model 'nowhere-at-all'"),
        (["--model", ""], 2, "no model ''"),
    ],
)
def test_wrong_calls_are_one_clear_line(rerank, arguments, exit_code, message):
    got, answers, err = rerank(GOOD, *arguments)
    assert (got, answers) == (exit_code, [])
    assert message in err and err.count("\n") == 1


def test_without_the_bundled_reranker_one_line_says_what_to_do(rerank, monkeypatch):
    monkeypatch.setattr("hf_qualcode.rerank.reranker._BUNDLED", "none")
    exit_code, answers, err = rerank(GOOD, "--model", "bundled")
    assert (exit_code, answers) == (1, [])
    assert "no bundled reranker" in err and err.count("\n") == 1


def written(*chunks):
    """What `line_windows` makes of chunks that are written one after the other, each once the last was taken."""
    reading, writing = os.pipe()
    windows = line_windows(reading)
    seen = []
    try:
        for chunk in chunks:
            os.write(writing, chunk)
            if chunk.endswith(b"\n"):
                seen.append(next(windows))
        os.close(writing)
        return seen + list(windows)
    finally:
        os.close(reading)


def test_a_window_is_what_is_there_when_the_writer_pauses():
    assert written(b"a\n", b"b\nc\n", b"d", b"e\n", b"f") == [
        [Line(1, b"a")], [Line(2, b"b"), Line(3, b"c")], [Line(4, b"de")], [Line(5, b"f")],
    ]  # fmt: skip
    assert written() == []
    assert written(b"\n") == [[Line(1, b"")]]


def test_lines_are_the_same_in_whatever_chunks_they_come(monkeypatch, tmp_path):
    content = b"".join(b"%d" % i * (i % 50) + b"\n" for i in range(200)) + b"rest"
    (tmp_path / "file").write_bytes(content)
    for chunk, window in ((1, 10), (7, 1), (1000, 100), (1 << 20, 1 << 23)):
        monkeypatch.setattr(lines_module, "_CHUNK", chunk)
        monkeypatch.setattr(lines_module, "_WINDOW", window)
        with (tmp_path / "file").open("rb") as file:
            given = [line for lines in line_windows(file.fileno()) for line in lines]
        assert given == [Line(number, line) for number, line in enumerate(content.split(b"\n"), 1)]


def test_a_line_without_bounds_is_not_kept(rerank, monkeypatch):
    monkeypatch.setattr(lines_module, "LONGEST_LINE", 4096)
    monkeypatch.setattr(lines_module, "_CHUNK", 100)
    exit_code, answers, _ = rerank(f"{GOOD}\n{'x' * 5000}\n{GOOD}\n")
    assert exit_code == 1
    assert answers[1]["line"] == 2 and "longer than" in answers[1]["error"]
    assert "scores" in answers[2]


def test_a_megabyte_of_code_is_answered_and_what_was_cut_said_once(rerank, monkeypatch):
    monkeypatch.setattr("hf_qualcode.cli.reranking.rows._CODES_A_BATCH", 2)
    row = json.dumps({"query": "sort", "codes": ["x = 1\n" * 200_000, CODES[0]]})
    exit_code, answers, err = rerank(f"{row}\n{row}\n{row}\n")
    assert exit_code == 0
    assert [len(answer["scores"]) for answer in answers] == [2, 2, 2]
    assert "the code of 1 was cut" in err and err.count("\n") == 1


# These tests are about pipes: a model of libraries that take seconds to import would only make them slow.
WITHOUT_A_MODEL = """
import sys
import numpy
from hf_qualcode.cli import rerank
from hf_qualcode.cli.main import main

class Lengths:
    def score(self, queries, codes, **_):
        return numpy.array([len(code) for code in codes], dtype=numpy.float32)

rerank.load_reranker = lambda name: Lengths()
sys.exit(main())
"""


def start(*command, **options):
    return subprocess.Popen([sys.executable, *command, "rerank"], stderr=subprocess.PIPE, **options)


def read_line(stream):
    ready, _, _ = select.select([stream], [], [], 120)
    assert ready, "no answer came"
    return stream.readline()


def test_a_writer_who_waits_for_each_answer_gets_it_and_an_interrupt_ends_it_in_one_line():
    process = start("-c", WITHOUT_A_MODEL, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    for i in range(3):
        process.stdin.write(json.dumps({"query": "sort", "codes": CODES, "i": i}).encode() + b"\n")
        assert json.loads(read_line(process.stdout))["i"] == i
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130
    assert process.stderr.read() == b"hf-qualcode: interrupted; what was done so far is kept\n"
    process.stdin.close()
    process.stdout.close()


def test_a_reader_that_goes_away_is_no_failure():
    process = start("-c", WITHOUT_A_MODEL, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    process.stdout.close()
    with contextlib.suppress(BrokenPipeError):  # it may be gone before all is written
        process.stdin.write((GOOD + "\n").encode() * 2000)
        process.stdin.close()
    assert process.stderr.read() == b""
    assert process.wait(60) == 0


def test_on_a_terminal_it_says_what_it_waits_for():
    leader, follower = pty.openpty()
    process = start("-c", WITHOUT_A_MODEL, stdin=follower, stdout=subprocess.PIPE)
    os.close(follower)
    os.write(leader, b"\x04")  # Ctrl-D
    out, err = process.communicate(timeout=120)
    os.close(leader)
    assert (process.returncode, out) == (0, b"")
    assert err.startswith(b'hf-qualcode: waiting for JSON lines {"query"') and err.count(b"\n") == 1


def test_a_closed_stdin_is_wrong_usage():
    done = subprocess.run(
        ["sh", "-c", '"$0" -m hf_qualcode rerank <&-', sys.executable], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("hf-qualcode: stdin is closed") and done.stderr.count("\n") == 1
