"""Milliseconds to look 200 vectors up in the cache beside an index, and to put them.

    python benchmarks/vector_cache.py [--vectors 20000] [--dimension 384]

The cache is filled first, then pages of random keys are looked up, all present.
"""

import argparse
import hashlib
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np

from hf_qualcode.retrieve.vector_cache import VectorCache


PAGE = 200


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--vectors", type=int, default=20_000, help="how many the cache holds (default 20000)")
    parser.add_argument("--dimension", type=int, default=384)
    arguments = parser.parse_args()
    generator = np.random.default_rng(0)
    vectors = generator.standard_normal((arguments.vectors, arguments.dimension)).astype(np.float32)
    keys = [hashlib.sha256(str(number).encode()).digest() for number in range(arguments.vectors)]
    gets, puts = [], []
    with (
        tempfile.TemporaryDirectory() as folder,
        VectorCache(Path(folder) / "vectors.sqlite", "encoder", arguments.dimension) as cache,
    ):
        for start in range(0, len(keys), PAGE):
            begin = time.perf_counter()
            cache.put(keys[start : start + PAGE], vectors[start : start + PAGE])
            puts.append(time.perf_counter() - begin)
        for _ in range(50):
            asked = [keys[row] for row in generator.integers(0, len(keys), PAGE)]
            begin = time.perf_counter()
            found, _ = cache.get(asked)
            gets.append(time.perf_counter() - begin)
            assert found.all()
        size = cache.path.stat().st_size / len(keys)
    print(f"{len(keys)} vectors of {arguments.dimension}, {size:.0f} bytes each")
    for name, took in (("get", gets), ("put", puts)):
        print(f"  {name} of {PAGE}: median {1e3 * statistics.median(took):.2f} ms, fastest {1e3 * min(took):.2f} ms")


if __name__ == "__main__":
    main()
