"""How much the programs of a synthesis run differ, with guidelines and without: a table, a report and a figure.

    hf-qualcode synthesize --tasks mbpp.jsonl --writer local --out guided ...
    python examples/diversity.py --guided guided/records.jsonl --unguided unguided/records.jsonl --out diversity

Files are `records.jsonl` of a run (all answers that hold a program, before filters, as the paper measures it) or
`variants.jsonl` (what the filters kept). `--encoder Qwen/Qwen3-Embedding-0.6B` is the paper's; `minilm` needs no
network. The table goes to stderr, the report as one JSON line to stdout.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from hf_qualcode.synthesis.diversity import GUIDED, UNGUIDED, WITHIN, load_encoder, measure_diversity
from hf_qualcode.synthesis.diversity_plot import plot_diversity
from hf_qualcode.synthesis.diversity_report import diversity_report, diversity_table
from hf_qualcode.types import QualcodeError, UsageError


class Written(NamedTuple):
    """A program and what it was written for."""

    task_id: str
    dimension: str
    level: str
    code: str


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0].partition(":")[0])
    parser.add_argument("--guided", type=Path, required=True, metavar="FILE", help="records or variants of a run")
    parser.add_argument("--unguided", type=Path, metavar="FILE", help="the same of a run without guidelines")
    parser.add_argument("--encoder", default="minilm", help="minilm (the default), a folder or a Hub id")
    parser.add_argument("--device", help="of the encoder; defaults to the accelerator that torch finds")
    parser.add_argument("--language", default="python", help="of the programs (default python)")
    parser.add_argument("--within", default="level", choices=WITHIN, help="what makes a set of a task's programs")
    parser.add_argument("--out", type=Path, help="folder for report.json and diversity.png; the latter by matplotlib")
    options = parser.parse_args(arguments)
    try:
        files = {GUIDED: options.guided, UNGUIDED: options.unguided}
        programs = {name: list(read_programs(file, options.language)) for name, file in files.items() if file}
        encoder = load_encoder(options.encoder, device=options.device)
        conditions = [
            measure_diversity(written, encoder, name=name, language=options.language, within=options.within)
            for name, written in programs.items()
        ]
        report = diversity_report(conditions)
        if options.out:
            options.out.mkdir(parents=True, exist_ok=True)
            (options.out / "report.json").write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
            plot_diversity(conditions, options.out / "diversity.png")
    except UsageError as error:
        parser.error(str(error))
    except (QualcodeError, OSError) as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 1
    print(diversity_table(report), file=sys.stderr)
    print(json.dumps(report))
    return 0


def read_programs(file: Path, language: str) -> Iterator[Written]:
    """Programs of `variants.jsonl`, or those in the answers of `records.jsonl`."""
    with file.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
                key = row.get("key", row)
                about = [str(key[name]) for name in Written._fields[:-1]]
                if "code" in row:
                    code = row["code"]
                elif row.get("answer") is not None:
                    from hf_qualcode.synthesis.answers import read_answer

                    code = read_answer(row["answer"], row.get("finish_reason"), language).code
                else:  # a request that failed
                    continue
            except (ValueError, KeyError, AttributeError) as error:
                raise QualcodeError(
                    f"{file}, line {number} is neither a record nor a variant ({type(error).__name__}: {error})"
                ) from None
            if code:
                yield Written(*about, code)


if __name__ == "__main__":
    sys.exit(main())
