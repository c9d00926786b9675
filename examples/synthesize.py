"""Training data by a language model, from tasks to a data set, step by step in Python.

    python examples/synthesize.py --tasks mbpp.jsonl --num-tasks 20 --out runs/synthetic            SmolLM2, offline
    python examples/synthesize.py --tasks FILE --writer server --url http://localhost:8000/v1 --model ID --out DIR
    python examples/synthesize.py --tasks mbpp.jsonl --writer rules --out DIR                       no language model

Leaves variants and, where a task has good and bad programs, training lists in `DIR/lists` for `train_reranker.py`.
`hf-qualcode synthesize` does the same with more options; each step goes on where it was interrupted.
"""

import argparse
import json
import sys
from pathlib import Path

from hf_qualcode.cli.progress import ProgressLine
from hf_qualcode.rerank.lists import lists_to_dataset
from hf_qualcode.rerank.synthetic_lists import synthetic_lists
from hf_qualcode.synthesis.run import VARIANTS, RunSettings, synthesize
from hf_qualcode.synthesis.variants import read_variants
from hf_qualcode.synthesis.writers import WriterSettings, writer_names
from hf_qualcode.types import QualcodeError


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--tasks", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--writer", choices=writer_names(), default="local")
    parser.add_argument("--model", help="default: smollm2, which `hf-qualcode install-smollm2` gets")
    parser.add_argument("--url")
    parser.add_argument("--dimensions", nargs="+")
    parser.add_argument("--num-tasks", type=int)
    parser.add_argument("--max-tokens", type=int, default=1024)
    options = parser.parse_args(arguments)
    settings = RunSettings(
        num_tasks=options.num_tasks, dimensions=None if options.dimensions is None else tuple(options.dimensions)
    )
    writer = WriterSettings(model=options.model, url=options.url, max_tokens=options.max_tokens)
    with ProgressLine() as progress:
        report = synthesize(options.tasks, options.writer, options.out, settings, writer, progress)
    variants = list(read_variants(options.out / VARIANTS))
    if {variant.level for variant in variants} == {"high", "low"}:
        lists = synthetic_lists(variants)
        lists_to_dataset(lists).to_parquet(options.out / "lists" / "train.parquet")
        report["lists"] = len(lists)
    print(json.dumps(report))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except QualcodeError as error:
        sys.exit(f"{error}")
