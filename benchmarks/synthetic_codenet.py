"""A made-up Project_CodeNet of any size, and what building QualCode from it costs as it grows.

    python benchmarks/synthetic_codenet.py make 200000 FOLDER [--seed 0]
    python benchmarks/synthetic_codenet.py measure [--sizes 25000 50000 100000 200000] [--num-proc 1] [--only collect]

The shares of languages, verdicts, blank and zero measurements are about those of the real set, in which 3.3 of 14
million submissions are Python; programs are variations of a few that really compile, some are Python 2, in other
encodings or missing. `measure` prints for each size the wall-clock and processor time, the peak memory (of the process
and all that it starts: the sum of their VmHWM while they run together) and the processor time for the real set, were
it to go on like that. The programs are about as long as people's (some 430 bytes).
"""

import argparse
import json
import math
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path


REAL_SUBMISSIONS, REAL_PROBLEMS = 13_916_868, 4_053
ROWS_PER_PROBLEM = REAL_SUBMISSIONS // REAL_PROBLEMS
HEAD = (
    "submission_id,problem_id,user_id,date,language,original_language,filename_ext,status,cpu_time,memory,code_size,"
    "accuracy\n"
)
LANGUAGES = {("C++", "cpp"): 57.4, ("Python", "py"): 23.6, ("Java", "java"): 5, ("C", "c"): 6.5, ("Ruby", "rb"): 2.5,
             ("C#", "cs"): 3, ("JavaScript", "js"): 1, ("Go", "go"): 1}  # fmt: skip
STATUSES = {"Accepted": 53.6, "Wrong Answer": 29.5, "Time Limit Exceeded": 5.5, "Runtime Error": 6.5,
            "Compile Error": 3, "Memory Limit Exceeded": 0.5, "WA: Presentation Error": 1.3,
            "accepted": 0.1}  # fmt: skip
PROGRAMS = (
    """import sys


def {f}({x}):
    {total} = 0
    for {i} in range(len({x})):
        {total} += {x}[{i}] * {n}
    return {total}


{a} = list(map(int, sys.stdin.read().split()))
print({f}({a}) % {m})
""",
    """{n1} = int(input())
{a} = [int({i}) for {i} in input().split()]
{x} = {{}}
for {i} in {a}:
    if {i} in {x}:
        {x}[{i}] += {n}
    else:
        {x}[{i}] = 1
if max({x}.values()) > {m}:
    print("Yes")
else:
    print("No")
""",
    """from collections import deque
{n1}, {total} = map(int, input().split())
{a} = [[] for _ in range({n1})]
for _ in range({total}):
    {x}, {f} = map(int, input().split())
    {a}[{x} - 1].append({f} - 1)
    {a}[{f} - 1].append({x} - 1)
{i} = deque([0])
seen = [-1] * {n1}
seen[0] = {n}
while {i}:
    {x} = {i}.popleft()
    for {f} in {a}[{x}]:
        if seen[{f}] == -1:
            seen[{f}] = seen[{x}] + 1
            {i}.append({f})
print(sum(seen) % {m})
""",
    """import numpy as np
{n1} = int(input())
{a} = np.array([input().split() for _ in range({n1})], dtype=np.int64)  # {total} {f}
{x} = np.zeros(({n1}, {n}), np.int64)
for {i} in range(1, {n1}):
    {x}[{i}] = {a}[{i}].max() + np.roll({x}[{i} - 1], 1)
print({x}.max() % {m})
""",
)
PYTHON_2 = "{a} = raw_input().split()\nprint {a}[{n} % 2], {m}\n"
ENDINGS = ("a", "b", "c", "s", "x", "y", "res", "ans", "cnt", "tmp", "dp")
NAMES = [beginning + ending for beginning in ("", "my_", "the_", "n") for ending in ENDINGS]
SUBJECTS = ("numbers", "cards", "towns", "roads", "students", "boxes", "coins", "stones", "words", "points")


def choose(rng, shares):
    return rng.choices(list(shares), list(shares.values()))[0]


def make_program(rng):
    a, x, f, i, total, n1 = rng.sample(NAMES, 6)
    values = {"a": a, "x": x, "f": f, "i": i, "total": total, "n1": n1}
    values |= {"n": rng.randrange(1, 99), "m": rng.randrange(1, 10**9)}
    kind = rng.random()
    text = (PYTHON_2 if kind < 0.05 else rng.choice(PROGRAMS)).format(**values)
    text += "".join(f"# {rng.choice(SUBJECTS)} {rng.randrange(1000)}\n" for _ in range(rng.randrange(20)))
    if kind > 0.995:
        return (text + "# \u548c\n").encode("cp932")
    return text.replace("\n", "\r\n").encode() if kind > 0.9 else text.encode()


def make_statement(rng, number):
    if rng.random() < 0.15:
        return (
            f"<h1>問題{number}</h1><p>{rng.randrange(2, 99)}個の整数が与えられる。これらの整数を読み込み、最大の値と"
            "最小の値の差を出力するプログラムを作成せよ。</p><h2>入力</h2><p>最初の行に整数の個数が与えられる。</p>"
        )
    one, two = rng.sample(SUBJECTS, 2)
    return (
        f"<h1>The {one} and the {two} {number}</h1><p>You are given {rng.randrange(2, 99)} {one} and a list of {two}. "
        f"Write a program that reads them and finds how many of the {one} can be put together with the {two}.</p>"
        f"<h2>Input</h2><p>The first line holds the number of {one}, the second line holds the {two}, separated by "
        "spaces.</p><h2>Constraints</h2><p>1 &le; N &le; 1000</p><h2>Sample Input</h2><pre>2\n1 2\n</pre>"
        "<h2>Sample Output</h2><pre>3\n</pre>"
    )


def make_time(rng, scale):
    kind = rng.random()
    if kind < 0.02:
        return ""
    if kind < 0.05:
        return "0"
    return "-1" if kind < 0.051 else str(max(1, round(rng.lognormvariate(math.log(scale), 0.8))))


def make(num_submissions, out, seed=0):
    """Writes the folder; the same seed gives the same one."""
    rng = random.Random(seed)
    for name in ("metadata", "data", "problem_descriptions"):
        (out / name).mkdir(parents=True, exist_ok=True)
    num_problems = max(10, round(num_submissions / ROWS_PER_PROBLEM))
    weights = [rng.lognormvariate(0, 1) for _ in range(num_problems)]
    next_id, left, listed, num_python = 100_000_000, num_submissions, [], 0
    for number, weight in enumerate(weights):
        problem_id = f"p{number:05}"
        listed.append(f"{problem_id},Problem {number},AtCoder,2000,1048576,,,\n")
        (out / "problem_descriptions" / f"{problem_id}.html").write_text(make_statement(rng, number), encoding="utf-8")
        programs = out / "data" / problem_id / "Python"
        programs.mkdir(parents=True)
        num_rows = left if number == num_problems - 1 else round(num_submissions * weight / sum(weights))
        num_rows = min(num_rows, left)
        left -= num_rows
        with (out / "metadata" / f"{problem_id}.csv").open("w", encoding="utf-8") as table:
            table.write(HEAD)
            for _ in range(num_rows):
                next_id += rng.randrange(1, 50)
                language, suffix = choose(rng, LANGUAGES)
                status = choose(rng, STATUSES)
                table.write(
                    f"s{next_id},{problem_id},u{rng.randrange(10**9):09},{rng.randrange(10**9)},{language},{language},"
                    f"{suffix},{status},{make_time(rng, 60)},{make_time(rng, 9000)},{rng.randrange(50, 3000)},\n"
                )
                if language == "Python":
                    num_python += 1
                    if rng.random() > 0.002:
                        (programs / f"s{next_id}.py").write_bytes(make_program(rng))
    (out / "metadata" / "problem_list.csv").write_text(
        "id,name,dataset,time_limit,memory_limit,rating,tags,complexity\n" + "".join(listed), encoding="utf-8"
    )
    return {"problems": num_problems, "submissions": num_submissions, "python": num_python}


COLLECT = """
import json, sys
from pathlib import Path
from hf_qualcode.benchmark.collecting import collect
if __name__ == "__main__":
    codenet, work, num_proc = sys.argv[1:]
    collection = collect(Path(codenet), Path(work), smells=None, num_proc=int(num_proc))
    print(sum(len(problem.programs) for problem in collection.problems()))
"""


def command_of(codenet, out, num_proc, only, script):
    if only == "collect":
        script.write_text(COLLECT)
        return [sys.executable, script, codenet, out, str(num_proc)]
    kind = only or "qualcode"
    options = ["--out", out, "--smells", "none", "--num-proc", str(num_proc)]
    return [sys.executable, "-m", "hf_qualcode", "dataset", "build", kind, codenet, *options]


def tree_of(pid):
    """The process and all below it."""
    found = [pid]
    for parent in found:
        for children in Path(f"/proc/{parent}/task").glob("*/children"):
            try:
                found += map(int, children.read_text().split())
            except OSError:
                continue
    return found


def high_water_mb(pid):
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM"):
                return int(line.split()[1]) / 1024
    except OSError:
        pass
    return 0.0


def run_measured(command, log):
    """Wall-clock seconds, processor seconds, and the highest sum of VmHWM seen over the process tree."""
    begun = time.perf_counter()
    peak = 0.0
    with log.open("w") as file:
        process = subprocess.Popen([str(part) for part in command], stdout=file, stderr=file)
        while not (done := os.wait4(process.pid, os.WNOHANG))[0]:
            peak = max(peak, sum(map(high_water_mb, tree_of(process.pid))))
            time.sleep(0.05)
    seconds = time.perf_counter() - begun
    _, status, usage = done
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{' '.join(map(str, command))} ended with {process.returncode}:\n{log.read_text()[-2000:]}")
    return seconds, usage.ru_utime + usage.ru_stime, peak


def measure(sizes, num_proc, only, folder, seed):
    results = []
    for size in sizes:
        codenet, out = folder / f"codenet{size}", folder / f"out{size}"
        made = make(size, codenet, seed)
        seconds, cpu_seconds, peak_mb = run_measured(
            command_of(codenet, out, num_proc, only, folder / "collect.py"), folder / "log.txt"
        )
        shutil.rmtree(codenet)
        shutil.rmtree(out, ignore_errors=True)
        row = made | {"seconds": seconds, "cpu_seconds": cpu_seconds, "peak_mb": peak_mb}
        row["cpu_ms_per_submission"] = 1000 * cpu_seconds / size
        row["cpu_ms_per_python"] = 1000 * cpu_seconds / made["python"]
        row["cpu_hours_for_the_real_set"] = cpu_seconds / size * REAL_SUBMISSIONS / 3600
        results.append(row)
        print({name: round(value, 3) for name, value in row.items()}, file=sys.stderr, flush=True)
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    maker = commands.add_parser("make", help="write a folder")
    maker.add_argument("num_submissions", type=int)
    maker.add_argument("out", type=Path)
    measurer = commands.add_parser("measure", help="build from folders of several sizes")
    measurer.add_argument("--sizes", type=int, nargs="+", default=[25_000, 50_000, 100_000, 200_000])
    measurer.add_argument("--num-proc", type=int, default=1)
    measurer.add_argument("--only", choices=["collect", "qualcode", "mc-qualcode"], help="default: qualcode")
    measurer.add_argument("--json", action="store_true")
    for command in (maker, measurer):
        command.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    if args.command == "make":
        print(json.dumps(make(args.num_submissions, args.out, args.seed)))
        return
    with tempfile.TemporaryDirectory() as folder:
        results = measure(args.sizes, args.num_proc, args.only, Path(folder), args.seed)
    if args.json:
        print(json.dumps(results))
        return
    heads = f"{'submissions':>12}{'Python':>9}{'seconds':>9}{'CPU s':>9}{'CPU ms each':>13}{'peak MB':>9}"
    print(f"{heads}{'real set, CPU h':>17}")
    for row in results:
        print(
            f"{row['submissions']:>12,}{row['python']:>9,}{row['seconds']:>9.1f}{row['cpu_seconds']:>9.1f}"
            f"{row['cpu_ms_per_submission']:>13.3f}{row['peak_mb']:>9.0f}{row['cpu_hours_for_the_real_set']:>17.1f}"
        )
    if len(results) > 1:
        first, last = results[0], results[-1]
        times, sizes = (last[name] / first[name] for name in ("cpu_seconds", "submissions"))
        growth = math.log(times) / math.log(sizes)
        print(f"CPU time grows as submissions to the power of {growth:.2f}; the real set has {REAL_SUBMISSIONS:,}")


if __name__ == "__main__":
    main()
