"""How long indexing, refreshing and searching take, and how much memory: each part in a process of its own.

    python benchmarks/index_and_search.py [--only NAME] [--json]

The standard library of this Python is the code. `--large PATH` indexes another folder (of 100,000 units, say) and
gives its peak memory. Times are wall-clock seconds, after imports unless "cold" says otherwise.
"""

import argparse
import json
import os
import pty
import re
import select
import shutil
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

from hf_qualcode.cli.quickstart import NOT_THE_LIBRARY, QUERIES


STDLIB = Path(sysconfig.get_path("stdlib"))
COMMAND = [sys.executable, "-m", "hf_qualcode"]

# Runs one statement after imports; prints its seconds, the process's peak memory and what it returned.
_TIMED = """
import json, sys, time
from hf_qualcode.retrieve import building, encoder, static
from hf_qualcode.retrieve.index import CodeIndex
paths, out, encoder_name, exclude = json.loads(sys.argv[1])
begun = time.perf_counter()
index = CodeIndex.build(paths, out, encoder_name, exclude=exclude)
seconds = time.perf_counter() - begun
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(json.dumps({"seconds": seconds, "peak_mb": int(peak.split()[1]) / 1024, "units": len(index),
                  "files": index.report["seen"], "torch": "torch" in sys.modules}))
"""


def timed_build(paths, out, encoder, exclude=()):
    arguments = json.dumps([[str(path) for path in paths], str(out), encoder, list(exclude)])
    done = subprocess.run([sys.executable, "-c", _TIMED, arguments], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def small_repository(folder, num_units=1000):
    """A folder of about `num_units` units: modules of the standard library, in the order of their names."""
    from hf_qualcode.corpus.folder import find_roots, scan

    units = 0
    for module in sorted(STDLIB.glob("*.py")):
        count = sum(item.record.num_units for item in scan(find_roots([module])))
        if units + count <= num_units + 20:
            folder.mkdir(exist_ok=True)
            shutil.copy(module, folder)
            units += count
        if units >= num_units - 20:
            break
    return units


def index_standard_library(work):
    result = timed_build([STDLIB], work / "stdlib.index", "static", NOT_THE_LIBRARY)
    result["none"] = timed_build([STDLIB], work / "words.index", "none", NOT_THE_LIBRARY)["seconds"]
    return result


def index_small_repository(work):
    units = small_repository(work / "small")
    runs = [timed_build([work / "small"], work / f"small{i}.index", "static") for i in range(3)]
    return {"units": units, "seconds": statistics.median(run["seconds"] for run in runs)}


def refresh_unchanged(work):
    folder = work / "many"
    for i in range(5000):
        file = folder / f"p{i % 50}" / f"m{i}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"def function_{i}(x):\n    return x + {i}\n")
    (folder / ".gitignore").write_text("*.log\nbuild/\n/dist\n*.py[co]\n.cache/\n")
    time.sleep(2.5)  # younger files are read again, lest a change within one clock tick is missed
    timed_build([folder], work / "many.index", "static")
    runs = [timed_build([folder], work / "many.index", "static") for _ in range(5)]
    return {"files": 5000, "seconds": statistics.median(run["seconds"] for run in runs)}


def warm_search(work):
    from hf_qualcode.retrieve.index import CodeIndex
    from hf_qualcode.retrieve.search import CodeSearcher

    index = CodeIndex.build([STDLIB], work / "warm.index", "static", exclude=[*NOT_THE_LIBRARY, "[p-z]*"])
    searcher = CodeSearcher(index)
    result = {"units": len(index)}
    queries = [f"{query} {word}" for query in QUERIES for word in ("", "quickly", "in a loop", "or fail")]
    for retriever in ("bm25", "hybrid"):
        searcher.search_many(queries, retriever=retriever)  # the candidates' vectors are there from now on
        times = []
        for _ in range(3):
            for query in queries:
                searcher._query_vectors.clear()
                begun = time.perf_counter()
                searcher.search(query, retriever=retriever)
                times.append(time.perf_counter() - begun)
        result[f"{retriever}_ms_median"] = 1000 * statistics.median(times)
        result[f"{retriever}_ms_worst"] = 1000 * max(times)
    return result


def cold_command(*arguments, cache):
    begun = time.perf_counter()
    subprocess.run(
        [*COMMAND, *map(str, arguments)],
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"HF_QUALCODE_CACHE": str(cache)},
    )
    return time.perf_counter() - begun


def cold_search(work):
    from hf_qualcode.hub import cache_dir

    index = work / "cold.index"
    timed_build([STDLIB], index, "static", NOT_THE_LIBRARY)
    cache = cache_dir()
    result = {}
    for retriever in ("bm25", "hybrid"):
        search = ["search", QUERIES[0], "--index", index, "--retriever", retriever]
        runs = [cold_command(*search, cache=cache) for _ in range(4)]
        result[f"{retriever}_seconds"] = statistics.median(runs[1:])
    return result


def first_search(work):
    """A never-seen folder of 1,000 units, on a pseudo-terminal: when the hits by words appear, when all is done."""
    from hf_qualcode.hub import cache_dir

    units = small_repository(work / "unseen")
    cache = work / "cache"
    # A machine that was used before, a folder that was not.
    shutil.copytree(cache_dir(), cache, ignore=shutil.ignore_patterns("indexes", "quickstart"))
    leader, follower = pty.openpty()
    begun = time.perf_counter()
    process = subprocess.Popen(
        [*COMMAND, "search", "parse a date", str(work / "unseen")],
        stdout=follower,
        stderr=follower,
        env=os.environ | {"HF_QUALCODE_CACHE": str(cache), "TERM": "xterm"},
    )
    os.close(follower)
    shown, by_words = "", None
    while True:
        ready, _, _ = select.select([leader], [], [], 0.05)
        if ready:
            try:
                shown += os.read(leader, 65536).decode(errors="replace")
            except OSError:
                break
        if by_words is None and re.search(r"\.py:\d+-\d+", shown):
            by_words = time.perf_counter() - begun
    process.wait()
    return {"units": units, "by_words_seconds": by_words, "all_seconds": time.perf_counter() - begun}


PARTS = {
    "index the standard library, static": index_standard_library,
    "index 1,000 units, static": index_small_repository,
    "refresh, nothing changed": refresh_unchanged,
    "search, warm": warm_search,
    "search, cold": cold_search,
    "search, first of a folder": first_search,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=PARTS, help="one part")
    parser.add_argument("--large", type=Path, metavar="PATH", help="index this folder too, for its peak memory")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    results = {}
    from hf_qualcode.retrieve.encoder import load_encoder

    begun = time.perf_counter()
    load_encoder("static")
    results["static, distilled once, or loaded"] = {"seconds": time.perf_counter() - begun}
    with tempfile.TemporaryDirectory() as folder:
        for number, (name, part) in enumerate(PARTS.items()):
            if args.only in (None, name):
                work = Path(folder) / str(number)
                work.mkdir()
                results[name] = part(work)
                print(name, results[name], file=sys.stderr)
        if args.large:
            results["large"] = timed_build([args.large], Path(folder) / "large.index", "static")
            print("large", results["large"], file=sys.stderr)
    if args.json:
        print(json.dumps(results))
    else:
        for name, result in results.items():
            shown = ", ".join(f"{k} {v:.3g}" if isinstance(v, float) else f"{k} {v}" for k, v in result.items())
            print(f"{name:<36}{shown}")


if __name__ == "__main__":
    main()
