"""How fast folders are read and cut into units.

    python benchmarks/extract_units.py [PATH...] [--num-proc N]

Without PATH: the standard library of this interpreter, with its tests.
"""

import argparse
import json
import sysconfig
import time

from hf_qualcode.corpus.folder import ScanOptions, ScanReport, find_roots, scan


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("paths", nargs="*", metavar="PATH", help="folders or files")
    parser.add_argument("--num-proc", type=int, default=1, help="processes that read")
    arguments = parser.parse_args()
    paths = arguments.paths or [sysconfig.get_path("stdlib")]
    # What is installed is not part of the standard library, though its folder may be inside.
    options = ScanOptions() if arguments.paths else ScanOptions(exclude=("/site-packages/",))
    report = ScanReport()
    known = {}
    began, began_cpu, began_ns = time.perf_counter(), time.process_time(), time.time_ns()
    for scanned in scan(find_roots(paths), options, num_proc=arguments.num_proc):
        report.add(scanned.record)
        known[scanned.record.root, scanned.record.path] = scanned.record
    seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - began_cpu
    began = time.perf_counter()
    num_again = sum(1 for _ in scan(find_roots(paths), options, known=known, known_at_ns=began_ns))
    again_seconds = time.perf_counter() - began
    print(json.dumps(report.to_dict(), indent=2))
    print(f"{report.num_indexed} files, {report.num_units} units in {seconds:.2f} s (CPU {cpu_seconds:.2f} s)")
    print(f"{report.num_units / seconds:.0f} units/s, {report.num_units / cpu_seconds:.0f} units per CPU second")
    print(f"again, unchanged: {num_again} files seen in {again_seconds:.3f} s")


if __name__ == "__main__":
    main()
