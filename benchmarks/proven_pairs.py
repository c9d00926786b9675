"""What pairs of the rules writer are worth beside real ones: scorers trained on either, judged on real pairs.

    python benchmarks/proven_pairs.py --qualcode DIR --pairs runs/rules-codenet/pairs.jsonl runs/rules-mbpp/pairs.jsonl

Five folds over the problems of QualCode, for each seed. In each fold one static-feature scorer learns from the real
pairs of the other folds' problems, one from the proven pairs (of programs of those problems, and of functions of
elsewhere), one from both; all are judged on the fold's real pairs. Beside them, what needs no training. Prints one
JSON object: QPA (strict) with 95 % intervals that draw problems.
"""

import argparse
import json
import sys
from pathlib import Path

import numpy as np

from hf_qualcode.benchmark.loading import load_pairs
from hf_qualcode.evaluation.folds import assign_folds
from hf_qualcode.evaluation.significance import bootstrap_mean, paired_bootstrap
from hf_qualcode.quality import dimension_names, instruction_for
from hf_qualcode.quality.static_scorer import StaticFeatureScorer
from hf_qualcode.types import PreferencePair


NUM_FOLDS = 5


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--qualcode", required=True, help="folder of `hf-qualcode dataset build qualcode`")
    parser.add_argument("--pairs", type=Path, nargs="+", required=True, help="pairs.jsonl of the rules writer")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    options = parser.parse_args()
    real = load_pairs(options.qualcode, "all-pairs").pairs
    proven = [pair for path in options.pairs for pair in proven_pairs(path)]
    report = {"real": len(real), "proven": len(proven), "seeds": options.seeds}
    for name in dimension_names():
        own = [pair for pair in real if pair.dimensions == (name,)]
        made = [pair for pair in proven if pair.dimensions == (name,)]
        report[name] = {"real": len(own), "proven": len(made), **compared(own, made, real, options.seeds)}
    print(json.dumps(report))
    return 0


def proven_pairs(path: Path) -> list[PreferencePair]:
    """The pairs of a file; a program's task begins with its problem's id."""
    pairs = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines()):
        row = json.loads(line)
        pairs.append(
            PreferencePair(
                id=f"{path.parent.name}-{number}", instruction=instruction_for(row["dimension"]), query=row["query"],
                positive=row["high"], negative=row["low"], dimensions=(row["dimension"],), missing_dimension="",
                problem_id=row["task_id"].partition("/")[0], positive_id=f"{number}-high", negative_id=f"{number}-low",
                positive_value=0.0, negative_value=1.0,
            )
        )  # fmt: skip
    return pairs


def compared(own: list[PreferencePair], made: list[PreferencePair], real: list[PreferencePair], seeds: list[int]):
    """QPA of each scorer on all real pairs of a quality, the mean of seeds."""
    problems = [pair.problem_id for pair in own]
    right = {name: np.zeros(len(own)) for name in ("real", "proven", "both")}
    for seed in seeds:
        fold_of = {p.problem_id: fold for p, fold in zip(real, assign_folds(real, NUM_FOLDS, seed), strict=True)}
        for fold in range(NUM_FOLDS):
            held_out = [row for row, pair in enumerate(own) if fold_of[pair.problem_id] == fold]
            known = {
                "real": [pair for pair in own if fold_of[pair.problem_id] != fold],
                # A program of a held-out problem is no training data, whoever changed it.
                "proven": [pair for pair in made if fold_of.get(pair.problem_id, -1) != fold],
            }
            known["both"] = known["real"] + known["proven"]
            for name, pairs in known.items():
                if pairs:
                    right[name][held_out] += judged(pairs, [own[row] for row in held_out]) / len(seeds)
    shorter = np.array([float(len(pair.positive) < len(pair.negative)) for pair in own])
    right_of = right | {"shorter": shorter}
    numbers = {name: interval(bootstrap_mean(values, problems)) for name, values in right_of.items()}
    numbers["proven against real"] = interval(paired_bootstrap(right["proven"], right["real"], problems))
    numbers["both against real"] = interval(paired_bootstrap(right["both"], right["real"], problems))
    return numbers


def judged(pairs: list[PreferencePair], held_out: list[PreferencePair]) -> np.ndarray:
    """1 for every held-out pair that a scorer trained on `pairs` orders rightly; a tie is a miss."""
    scorer = StaticFeatureScorer().fit(pairs)
    sides = []
    for name in ("positive", "negative"):
        codes = [getattr(pair, name) for pair in held_out]
        sides.append(scorer.score([pair.instruction for pair in held_out], [""] * len(codes), codes))
    return (sides[0] > sides[1]).astype(float)


def interval(found) -> dict[str, float]:
    return {"value": round(found.mean, 3), "low": round(found.low, 3), "high": round(found.high, 3)}


if __name__ == "__main__":
    sys.exit(main())
