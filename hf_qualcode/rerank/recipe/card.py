"""What the bundled reranker's card says: its data, its recipe, and the figures of its cross-validation."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from hf_qualcode.quality import dimension_names
from hf_qualcode.rerank.cards import QUALCODE_LIMITS, CardFacts, Result, TrainingData
from hf_qualcode.rerank.recipe.training import Recipe


_DATA = (
    TrainingData("Project_CodeNet (cut)", "cdla-permissive-2.0", "which of two right programs is better"),
    TrainingData("CoSQA, training queries and docstrings of its pool", "c-uda-1.0", "which code belongs to a query"),
    TrainingData(
        "MBPP", "cc-by-4.0",
        "which code belongs to a query; which of two versions of a function is better, one of them made by a "
        "transformation and proven",
        "google-research-datasets/mbpp",
    ),
)
_NOTES = (
    "All figures are of problems that the reranker which scored them had not seen: five folds of whole problems, "
    "its static scores, relevance map and mixture fitted within the training folds. What is here is a last fit on "
    "all problems, which nothing is left to measure.",
    "Most of its judgement of quality comes from static features of the syntax tree, as words before the code and as "
    "a linear score beside the model; the table shows both alone.",
    "Functions have weights of their own, learnt from changes that were proven to make a function slower, larger or "
    "worse by a linter's count. The figures of functions are of transformations and tasks that were held out; the "
    "changes are ours all the same, and most make code longer, so \"the shorter one\" stands beside them.",
)
_LIMITS = (
    "Instructions in words that `hf_qualcode.quality.wishes` does not know reach the model alone, which is the weaker "
    "part.",
    *QUALCODE_LIMITS,
)


def bundled_card(recipe: Recipe, seed: int, report: Mapping[str, Any] | None) -> CardFacts:
    """The facts.

    Args:
        recipe (`Recipe`): Of the training.
        seed (`int`): Of the training.
        report (`Mapping`, *optional*): Of `validation_report`; without one the card has no figures.
    """
    return CardFacts(
        title="hf-qualcode bundled reranker",
        results=(*_results(report["mean"]), *_function_results(report.get("functions", {}))) if report else (),
        data=_DATA,
        training={**asdict(recipe), "seed": seed},
        command=(
            "python examples/train_bundled_reranker.py --codenet DIR --cosqa DIR --mbpp DIR --out FOLDER "
            f"--seed {seed}"
        ),
        notes=_NOTES,
        limits=_LIMITS,
    )


def _results(mean: Mapping[str, Any]) -> list[Result]:
    results = []
    for name in dimension_names():
        parts = mean["preference"].get(name, {})
        for part, numbers in parts.items():
            if part not in ("all", "no numpy", "speed and memory disagree"):
                continue
            where = "" if part == "all" else f", {part}"
            baselines = {
                "static features alone": numbers["static alone"]["value"],
                "model alone": numbers["model alone"]["value"],
            }
            results.append(_result("QPA", numbers["all"], f"QualCode all-pairs, {name}{where}", numbers["pairs"],
                                   baselines))  # fmt: skip
            if part == "all":
                results.append(
                    _result("QPA, opposite asked for", numbers["negated"], f"QualCode all-pairs, {name}",
                            numbers["pairs"], {})
                )  # fmt: skip
    for name, numbers in mean["multi-condition"].items():
        baselines = {"static features alone": numbers["static alone"]["value"]}
        results.append(_result("MCA", numbers["all"], f"MC-QualCode, {name}", numbers["triplets"], baselines))
    relevance = mean["relevance"]
    if relevance.get("all"):
        baselines = {"cosine of the base model": relevance["cosine"]["value"]}
        results.append(
            _result("MRR@10", relevance["all"], "QualCode relevance, 99 negatives", relevance["lists"], baselines)
        )
    return results


def _function_results(numbers: Mapping[str, Any]) -> list[Result]:
    results = []
    for name, own in numbers.items():
        if not own["pairs"]:
            continue
        baselines = {
            "static features alone": own["static alone"]["value"],
            "model alone": own["model alone"]["value"],
            "the shorter one": own["shorter"]["value"],
        }
        where = f"functions, held-out transformations, {name}"
        results.append(_result("QPA", own["all"], where, own["pairs"], baselines))
        results.append(
            _result("QPA, mean over transformations", own["by transformation"], where, own["transformations"], {})
        )
    return results


def _result(metric: str, interval: Mapping[str, float], data: str, n: float, baselines: dict[str, float]) -> Result:
    return Result(
        metric, interval["value"], data, low=interval["low"], high=interval["high"], n=round(n), baselines=baselines
    )
