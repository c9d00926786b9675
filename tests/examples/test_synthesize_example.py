"""`examples/synthesize.py` as it is called in its own text."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

from hf_qualcode.rerank.data import lists_from_dataset
from hf_qualcode.synthesis.variants import read_variants
from tests.synthesis.loopback import Loopback


SCRIPT = Path(__file__).parents[2] / "examples" / "synthesize.py"


def example(*arguments):
    return subprocess.run([sys.executable, SCRIPT, *map(str, arguments)], capture_output=True, text=True, timeout=300)


def test_a_server_run_leaves_variants_and_training_lists(tmp_path):
    from datasets import load_dataset

    rows = [{"id": name, "query": f"Do {name}."} for name in "abcdef"]
    (tmp_path / "tasks.json").write_text(json.dumps(rows))
    out = tmp_path / "run"
    with Loopback() as there:
        done = example(
            "--tasks", tmp_path / "tasks.json", "--writer", "server", "--url", there.url, "--model", "m", "--out", out,
            "--dimensions", "speed", "--num-tasks", 5,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    # Four good and four bad ones of each task, by the sampling of the paper (5.4), each with a seed of its own.
    assert len(there.requests) == len({asked["seed"] for asked in there.requests}) == 5 * 2 * 4
    for asked in there.requests:
        sampling = (asked["temperature"], asked["top_p"], asked["top_k"], asked["max_tokens"])
        assert sampling == (0.7, 0.8, 20, 1024)
    report = json.loads(done.stdout)
    assert report["tasks"]["used"] == 5
    variants = list(read_variants(out / "variants.jsonl"))
    assert report["variants"] == len(variants) > 20
    assert {variant.dimension for variant in variants} == {"speed"}
    # One list for each good program of a task that has a bad one too.
    levels = Counter((variant.query, variant.level) for variant in variants)
    queries = {variant.query for variant in variants}
    expected = {query: levels[query, "high"] for query in queries if levels[query, "high"] and levels[query, "low"]}
    data = load_dataset("parquet", data_files=str(out / "lists" / "train.parquet"), split="train")
    assert Counter(each.query for each in lists_from_dataset(data)) == expected
    assert len(data) == report["lists"] > 5


def test_what_cannot_be_done_is_one_line(tmp_path):
    done = example("--tasks", tmp_path / "nowhere.json", "--out", tmp_path / "run", "--writer", "rules")
    assert done.returncode == 1
    assert "nowhere.json cannot be read" in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
