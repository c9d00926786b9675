"""Makes the reranker that the package ships, from public data, and measures the recipe on problems it has not seen.

    python examples/train_bundled_reranker.py --codenet DIR --cosqa DIR --mbpp DIR --out FOLDER
    python examples/train_bundled_reranker.py --codenet DIR --cosqa DIR --mbpp DIR --out FOLDER --cross-validate

DIR are a Project_CodeNet folder (as for `hf-qualcode dataset build`, which is run first), the published CoSQA files
and MBPP's `mbpp.jsonl`, whose functions are changed and the changes proven first (`hf-qualcode synthesize --writer
rules`, the better part of an hour). The first form trains on all problems and saves an adapter. The second trains
nothing that is kept: five folds over problems, for each seed, and a report of what every fold's reranker says of the
problems it has not seen, and of functions changed in ways it has not seen. Both go on where they were interrupted.
"""

import argparse
import json
import logging
import os
import sys
from pathlib import Path

import numpy as np

from hf_qualcode.baselines.controls import paraphrase, standard_slices
from hf_qualcode.baselines.trivial import TRIVIAL_SCORERS
from hf_qualcode.benchmark.building import build
from hf_qualcode.benchmark.loading import load_lists, load_pairs
from hf_qualcode.cli.progress import ProgressLine
from hf_qualcode.encoders.transformer import load_transformer
from hf_qualcode.hub import resolve_model
from hf_qualcode.quality import dimension_names
from hf_qualcode.quality.smells import engine_names, load_engine
from hf_qualcode.rerank.recipe.card import bundled_card
from hf_qualcode.rerank.recipe.function_validation import validate_functions
from hf_qualcode.rerank.recipe.report import validation_report
from hf_qualcode.rerank.recipe.sources import read_sources
from hf_qualcode.rerank.recipe.training import BASE, DEFAULT, load_reader, train_bundled, train_reader
from hf_qualcode.rerank.recipe.validation import validate
from hf_qualcode.rerank.relevance import TextVectors
from hf_qualcode.rerank.reranker import Reranker
from hf_qualcode.synthesis.run import RunSettings, synthesize
from hf_qualcode.synthesis.writers import WriterSettings
from hf_qualcode.synthesis.writers.rules import PAIRS
from hf_qualcode.types import QualcodeError


NUM_WORDINGS = 1  # each is another scoring of all programs


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--codenet", type=Path, required=True, help="Project_CodeNet folder")
    parser.add_argument("--cosqa", type=Path, required=True, help="folder with CoSQA's published files")
    parser.add_argument("--mbpp", type=Path, required=True, help="folder with mbpp.jsonl")
    parser.add_argument("--functions", type=Path, help="pairs.jsonl of the rules writer (made beside the output)")
    parser.add_argument("--out", type=Path, required=True, help="where the adapter, or the validation, goes")
    parser.add_argument("--smells", choices=engine_names(), default="sonar", help="what counts smells (sonar)")
    parser.add_argument("--seed", type=int, default=42, help="of every draw (42)")
    parser.add_argument("--report", type=Path, help="report.json of a cross-validation, for the card")
    parser.add_argument("--cross-validate", action="store_true", help="measure the recipe; nothing is shipped")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2], help="with --cross-validate: of the folds")
    parser.add_argument("--wordings", type=Path, help="JSON {quality: {good: [...], bad: [...]}}: instructions to try")
    parser.add_argument("--lists-seeds", type=int, nargs="*", default=[0], help="of them, those that score lists too")
    return parser.parse_args()


def built_data(arguments: argparse.Namespace, progress: ProgressLine) -> dict[str, Path]:
    """QualCode and MC-QualCode beside the output, built unless they are there."""
    folders = {}
    for name in ("qualcode", "mc-qualcode"):
        folders[name] = arguments.out.with_name(f"{arguments.out.name}.data") / name
        if not (folders[name] / "README.md").is_file():
            folders[name].parent.mkdir(parents=True, exist_ok=True)
            with load_engine(arguments.smells) as smells:
                build(name, arguments.codenet, folders[name], smells=smells, seed=arguments.seed, progress=progress)
    return folders


def proven_functions(arguments: argparse.Namespace, progress: ProgressLine) -> Path:
    """Pairs of functions, the given ones or those made beside the output."""
    if arguments.functions is not None:
        return arguments.functions
    folder = arguments.out.with_name(f"{arguments.out.name}.functions")
    if not (folder / PAIRS).is_file():
        settings = RunSettings(seed=arguments.seed, num_proc=os.cpu_count() or 1)
        synthesize(arguments.mbpp / "mbpp.jsonl", "rules", folder, settings, WriterSettings(), progress)
    return folder / PAIRS


def trained_reader(sources, arguments: argparse.Namespace) -> Reranker:
    """The model, from its folder beside the output, where it is put once it is trained."""
    folder = arguments.out.with_name(f"{arguments.out.name}.reader")
    if not folder.is_dir():
        train_reader(sources, folder.with_suffix(".work"), seed=arguments.seed).save_pretrained(folder)
    return load_reader(folder)


def held_out_wordings(path: Path | None) -> dict[str, dict[str, str]]:
    """Name -> dimension -> instruction; a negated one is named so."""
    wordings = {"paraphrase": {name: paraphrase((name,)) for name in dimension_names()}}
    for polarity, prefix in (("good", "wording"), ("bad", "negated wording")) if path else ():
        rows = json.loads(path.read_text(encoding="utf-8"))
        for number in range(NUM_WORDINGS):
            wordings[f"{prefix} {number + 1}"] = {name: rows[name][polarity][number] for name in dimension_names()}
    return wordings


def main() -> int:
    arguments = parse_arguments()
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    with ProgressLine() as progress:
        data = built_data(arguments, progress)
        functions = proven_functions(arguments, progress)
        sources = read_sources(data["qualcode"], arguments.cosqa, arguments.mbpp, functions, seed=arguments.seed)
        vectors = TextVectors(load_transformer(resolve_model(BASE), id=BASE).encode)
        reader = trained_reader(sources, arguments)
        if arguments.cross_validate:
            triplets, lists = load_pairs(str(data["mc-qualcode"])), load_lists(str(data["qualcode"]))
            every = load_pairs(str(data["qualcode"]), "all-pairs")
            sides = [(p.instruction, p.query, code) for p in every.pairs for code in (p.positive, p.negative)]
            no_numpy = np.array(TRIVIAL_SCORERS["no-numpy"].score(*zip(*sides, strict=True))).reshape(-1, 2)
            results = [
                validate(
                    sources, reader, vectors, triplets.pairs,
                    lists if seed in arguments.lists_seeds else [], arguments.out,
                    rewordings=held_out_wordings(arguments.wordings), fold_seed=seed, progress=progress,
                )
                for seed in arguments.seeds
            ]  # fmt: skip
            report = validation_report(results, every.labels, standard_slices(), {"no-numpy": no_numpy})
            report["functions"] = validate_functions(sources, reader, vectors, seed=arguments.seed, progress=progress)
            (arguments.out / "report.json").write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
            print(json.dumps(report))
        else:
            reranker = train_bundled(sources, sources.problem_ids, reader, vectors, seed=arguments.seed)
            report = json.loads(arguments.report.read_text(encoding="utf-8")) if arguments.report else None
            reranker.save_pretrained(arguments.out, card=bundled_card(DEFAULT, arguments.seed, report))
            print(json.dumps({"saved": str(arguments.out), "problems": len(sources.problem_ids)}))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except QualcodeError as error:
        sys.exit(f"{error}")
