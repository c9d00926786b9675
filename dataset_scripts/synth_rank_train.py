"""Makes training lists of synthesised variants: `python dataset_scripts/synth_rank_train.py VARIANTS --out DIR`.

VARIANTS are `variants.jsonl` files of `hf-qualcode synthesize`. DIR gets Parquet, a card and a report, loads with
`datasets.load_dataset(DIR, split="train")` and trains with `examples/train_reranker.py --lists DIR`.
"""

import argparse
import json
import sys
from pathlib import Path

from hf_qualcode.types import QualcodeError, UsageError


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0].partition(":")[0])
    parser.add_argument("variants", type=Path, nargs="+", metavar="VARIANTS", help="variants.jsonl of a synthesis run")
    parser.add_argument("--out", type=Path, required=True, help="folder to make")
    parser.add_argument(
        "--kind", default="synh-rank", metavar="KIND",
        help="synh-rank (one condition, the default), multi-condition, or srcl (relevance alone)",
    )  # fmt: skip
    parser.add_argument("--num-low", type=int, default=4, help="relevant programs beside the best (default 4)")
    parser.add_argument("--num-irrelevant", type=int, help="programs of other tasks a list (default 1, of srcl 5)")
    parser.add_argument("--one-list-per-query", action="store_true", help="one list a task and instruction")
    parser.add_argument("--negated", action="store_true", help="each list under the opposite instruction too")
    parser.add_argument(
        "--partial", action="store_true",
        help="multi-condition: also programs that are bad in one condition and unknown in another",
    )  # fmt: skip
    parser.add_argument("--seed", type=int, default=42, help="of the draws (default 42)")
    parser.add_argument("--license", default="unknown", help="of the variants, as the Hub spells it (default unknown)")
    options = vars(parser.parse_args(arguments))

    from hf_qualcode.rerank.synthetic_data_set import build_synth_rank_train

    try:
        report = build_synth_rank_train(options.pop("variants"), options.pop("out"), **options)
    except UsageError as error:
        parser.error(str(error))
    except (QualcodeError, OSError) as error:
        sys.stderr.write(f"{parser.prog}: {error}\n")
        return 1
    summary = {name: report[name] for name in ("data_set", "configs", "lists", "variants")}
    sys.stdout.write(json.dumps(summary) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
