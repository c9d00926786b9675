"""Seconds and peak memory of decontamination, up to a million training rows, beside a set of tuples.

    python benchmarks/decontamination.py [--rows 62500 250000 1000000] [--problems 4000] [--json FILE]

Rows are made as they are read: a statement and a program of 60 words each, drawn from 50,000 words by Zipf's law; one
row in 1,000 is given twelve words of a test text. Making them is timed alone and subtracted. Each size runs in a
process of its own, so that its peak memory is its own. The set of tuples is what one would write first; it sees
one row in 20, is projected, and must find the same rows.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from hf_qualcode.benchmark.decontaminate import Decontamination, HeldOutSet, HeldOutText, NgramIndex, TrainingRow
from hf_qualcode.benchmark.ngrams import CODE, QUERY, code_tokens, query_words


WORDS, LENGTH, PLANTED, EVERY, PART = 50_000, 60, 12, 1_000, 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[62_500, 250_000, 1_000_000], help="sizes")
    parser.add_argument("--problems", type=int, default=4_000, help="problems of the test set (default 4000)")
    parser.add_argument("--json", type=Path, help="write the figures to this file as well")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measure(arguments.one, arguments.problems)))
        return
    results = []
    for rows in arguments.rows:
        call = [sys.executable, __file__, "--one", str(rows), "--problems", str(arguments.problems)]
        done = subprocess.run(call, capture_output=True, text=True, check=True)
        results.append(json.loads(done.stdout))
        print(
            "{rows:>9,} rows: {seconds:7.1f} s ({rows_per_second:,.0f} rows/s), peak {peak_mb:,.0f} MB (before the "
            "rows {base_mb:,.0f}), {hits} hits; set of tuples {tuples_seconds:,.1f} s, ratio {ratio:.1f}".format(
                **results[-1]
            ),
            flush=True,
        )
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=2), encoding="utf-8")


def measure(num_rows: int, num_problems: int) -> dict:
    words = np.array([f"w{number:x}" for number in range(WORDS)], dtype=object)
    test = held_out(words, num_problems)
    index = NgramIndex.build([test])
    base = peak_mb()
    found = Decontamination(index)
    start = time.perf_counter()
    for _ in found.keep(training_rows(words, test, num_rows), as_row=lambda row: row):
        pass
    both = time.perf_counter() - start
    peak = peak_mb()
    start = time.perf_counter()
    for _ in training_rows(words, test, num_rows):
        pass
    seconds = both - (time.perf_counter() - start)
    part = num_rows // PART
    expected, tuples_seconds = with_tuples(test, list(training_rows(words, test, part)))
    ours = {hit.row_id for hit in found.hits if int(hit.row_id) < part}
    if ours != expected:
        raise SystemExit(f"the two differ: {sorted(ours ^ expected)[:5]}")
    return {
        "rows": num_rows,
        "seconds": seconds,
        "rows_per_second": num_rows / seconds,
        "hits": found.num_hits,
        "base_mb": base,
        "peak_mb": peak,
        "tuples_seconds": tuples_seconds * PART,
        "ratio": tuples_seconds * PART / seconds,
    }


def held_out(words: np.ndarray, num_problems: int) -> HeldOutSet:
    rng = np.random.default_rng(1)
    texts = []
    for number in range(num_problems):
        name = str(number)
        texts += [HeldOutText(name, name, kind, " ".join(words[drawn(rng, 200)])) for kind in (QUERY, CODE)]
    return HeldOutSet("test", tuple(texts))


def training_rows(words: np.ndarray, test: HeldOutSet, num_rows: int) -> Iterator[TrainingRow]:
    rng = np.random.default_rng(2)
    for number in range(num_rows):
        query, code = words[drawn(rng, LENGTH)].tolist(), words[drawn(rng, LENGTH)].tolist()
        if number % EVERY == EVERY - 1:
            held = test.texts[number // EVERY % len(test.texts)]
            (query if held.kind == QUERY else code)[5:5] = held.text.split()[50 : 50 + PLANTED]
        yield TrainingRow(str(number), " ".join(query), " ".join(code))


def drawn(rng: np.random.Generator, size: int) -> np.ndarray:
    """Places of words, a few of them often (Zipf's law with exponent 1)."""
    return (WORDS ** rng.random(size)).astype(np.int64) - 1


def with_tuples(test: HeldOutSet, rows: list[TrainingRow]) -> tuple[set[str], float]:
    """Ids of rows that share ten tokens, and the seconds for looking them up."""
    runs = {
        kind: {run for text in test.texts if text.kind == kind for run in tuples(tokens(text.text))}
        for kind, tokens in ((QUERY, query_words), (CODE, code_tokens))
    }
    start = time.perf_counter()
    hits = {
        row.id for row in rows
        if any(run in runs[QUERY] for run in tuples(query_words(row.query)))
        or any(run in runs[CODE] for run in tuples(code_tokens(row.code)))
    }  # fmt: skip
    return hits, time.perf_counter() - start


def tuples(tokens: list[str]) -> Iterator[tuple[str, ...]]:
    return zip(*(tokens[place:] for place in range(10)), strict=False)


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
