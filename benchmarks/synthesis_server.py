"""`synthesize --writer server` against a server on this machine: how fast it is, and what a kill costs.

    python benchmarks/synthesis_server.py rate --tasks taco_prompts.json
    python benchmarks/synthesis_server.py kills --tasks taco_prompts.json

`rate` measures requests a second with a server that answers at once, so all time is ours and the server's. `kills`
runs the command against one that answers slowly, wrongly and out of order, kills it three times (SIGKILL), lets it
end, and compares its records with those of a run that nobody disturbed. The server is `tests/synthesis/loopback.py`,
in a process of its own. Prints one JSON object.
"""

import argparse
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path


SERVER = Path(__file__).parents[1] / "tests" / "synthesis" / "loopback.py"
NUM_KILLS = 3


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("what", choices=["rate", "kills"])
    parser.add_argument("--tasks", type=Path, required=True, help="file of tasks, as for the command")
    parser.add_argument("--samples", type=int, default=1, help="programs of each level a task and quality (1)")
    parser.add_argument("--delay", type=float, default=0.05, help="seconds, the most that an answer takes in kills")
    parser.add_argument("--concurrency", type=int, default=32)
    parser.add_argument("--seed", type=int, default=0, help="of the moments of the kills")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        result = {"rate": rate, "kills": kills}[options.what](options, Path(folder))
    print(json.dumps(result))
    return 0 if result.get("equal", True) else 1


def rate(options: argparse.Namespace, folder: Path) -> dict:
    """Requests a second of a whole command, its start included, and of the part between."""
    with Server() as url:
        command = synthesize(options, url, folder / "run")
        began = time.perf_counter()
        done = subprocess.run([*command, "--json"], check=True, capture_output=True, text=True)
        seconds = time.perf_counter() - began
        report = json.loads(done.stdout)
        again = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        again = time.perf_counter() - again
    return {
        "requests": report["requests"],
        "seconds": round(seconds, 2),
        "seconds_of_a_run_with_nothing_to_ask": round(again, 2),
        "requests_a_second": round(report["requests"] / seconds, 1),
        "requests_a_second_while_asking": round(report["requests"] / (seconds - again), 1),
    }


def kills(options: argparse.Namespace, folder: Path) -> dict:
    """Whether three kills change what is in the store at the end."""
    draws = random.Random(options.seed)
    misbehaving = ["--misbehave", "--delay", str(options.delay)]
    with Server(*misbehaving) as url:
        began = time.perf_counter()
        subprocess.run(synthesize(options, url, folder / "whole"), check=True, capture_output=True)
        seconds = time.perf_counter() - began
    killed_at = []
    with Server(*misbehaving) as url:
        command = synthesize(options, url, folder / "killed")
        for _ in range(NUM_KILLS):
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                process.wait(timeout=seconds * draws.uniform(0.15, 0.3))
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                process.wait()
            killed_at.append(len(records(folder / "killed")))
        subprocess.run(command, check=True, capture_output=True)
    whole, killed = records(folder / "whole"), records(folder / "killed")
    same_variants = (folder / "whole" / "variants.jsonl").read_bytes() == (
        folder / "killed" / "variants.jsonl"
    ).read_bytes()
    return {
        "records": len(whole),
        "seconds_undisturbed": round(seconds, 1),
        "records_at_the_kills": killed_at,
        "equal": whole == killed and same_variants,
        "variants_byte_for_byte": same_variants,
    }


def synthesize(options: argparse.Namespace, url: str, out: Path) -> list[str]:
    return [
        sys.executable, "-m", "hf_qualcode", "synthesize", "--tasks", str(options.tasks), "--writer", "server",
        "--out", str(out), "--url", url, "--model", "loopback", "--samples", str(options.samples),
        "--concurrency", str(options.concurrency), "--timeout", "20",
    ]  # fmt: skip


def records(folder: Path) -> dict[str, tuple]:
    """Digest -> what was answered; the last answer of each counts, a cut line is none."""
    found = {}
    path = folder / "records.jsonl"
    for line in path.read_bytes().split(b"\n")[:-1] if path.exists() else ():
        row = json.loads(line)
        if row["error"] is None:
            found[row["digest"]] = (row["answer"], row["finish_reason"], json.dumps(row["usage"], sort_keys=True))
    return found


class Server:
    """The loopback server in a process of its own; entering gives its address."""

    def __init__(self, *arguments: str):
        self._command = [sys.executable, str(SERVER), *arguments]

    def __enter__(self) -> str:
        self._process = subprocess.Popen(self._command, stdout=subprocess.PIPE, text=True)
        return self._process.stdout.readline().strip()

    def __exit__(self, *_) -> None:
        self._process.kill()
        self._process.wait()


if __name__ == "__main__":
    sys.exit(main())
