"""`examples/synthesize.py` as it is called in its own text."""

import json
import subprocess
import sys
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
    report = json.loads(done.stdout)
    assert report["tasks"]["used"] == 5
    assert report["variants"] == len(list(read_variants(out / "variants.jsonl"))) > 20
    data = load_dataset("parquet", data_files=str(out / "lists" / "train.parquet"), split="train")
    assert len(data) == len(list(lists_from_dataset(data))) == report["lists"] > 0


def test_what_cannot_be_done_is_one_line(tmp_path):
    done = example("--tasks", tmp_path / "nowhere.json", "--out", tmp_path / "run", "--writer", "rules")
    assert done.returncode == 1
    assert "nowhere.json cannot be read" in done.stderr
    assert "Traceback" not in done.stderr
