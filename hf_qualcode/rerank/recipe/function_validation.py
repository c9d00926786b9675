"""What the recipe makes of functions that were changed in ways it has not seen.

Pairs of single transformations are scored with weights that were fitted to pairs of other transformations and of other
tasks. The rest of the score is that of a reranker whose relevance map has not seen the functions either.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np

from hf_qualcode.benchmark.drawing import Draws, draw_key
from hf_qualcode.evaluation.significance import bootstrap_mean
from hf_qualcode.quality import dimension_names, instruction_for
from hf_qualcode.quality.function_features import function_features
from hf_qualcode.rerank.function_pairs import FunctionPair, fit_function_weights, spread_of_programs
from hf_qualcode.rerank.recipe.report import interval_numbers
from hf_qualcode.rerank.recipe.sources import Sources
from hf_qualcode.rerank.recipe.training import train_bundled
from hf_qualcode.rerank.recipe.validation import Progress, score_parts
from hf_qualcode.rerank.relevance import TextVectors
from hf_qualcode.rerank.reranker import Reranker


NUM_FOLDS = 5
# Of a quality; more are drawn from, for the model reads both sides of each.
MOST_PAIRS = 800
# Of the relevant pairs, those of the functions themselves.
_SAME_CODES = "mbpp"


def validate_functions(
    sources: Sources, reader: Reranker, vectors: TextVectors, *, seed: int = 42, progress: Progress | None = None
) -> dict[str, Any]:
    """Scores pairs of functions, at most `MOST_PAIRS` drawn ones of each quality.

    Args:
        sources (`Sources`): With `functions`.
        reader (`Reranker`): Of `train_reader`.
        vectors (`TextVectors`): Of the base model's text encoder.
        seed (`int`, *optional*, defaults to 42): Of the folds over tasks.
        progress (`Callable`, *optional*): Called as `progress(stage, done, total)`.

    Returns:
        `dict`: Dimension -> numbers, JSON-able: QPA (strict) of the fused score and its ablations, with intervals that
        draw tasks; `by transformation`, the mean over transformations with an interval that draws them; of each
        guideline group.
    """
    pairs = drawn_pairs(sources.functions, seed)
    without = replace(sources, relevant=tuple(each for each in sources.relevant if each.name != _SAME_CODES))
    reranker = train_bundled(without, sources.problem_ids, reader, vectors, seed=seed)
    fusion = reranker.fusion
    programs = sorted({code for pair in sources.pairs for code in (pair.positive, pair.negative)})
    spread = spread_of_programs(fusion.static_weights, programs)
    weights = held_out_weights(pairs, sources.functions, spread, seed, progress)
    sides = [(instruction_for(pair.dimension), pair.query, code) for pair in pairs for code in (pair.high, pair.low)]
    parts = score_parts(reranker, *zip(*sides, strict=True), progress=progress).reshape(len(pairs), 2, -1)
    certainty = fusion.weights.fragment_certainty * np.array(fusion.weights.quality_weights)
    for row, (pair, own) in enumerate(zip(pairs, weights, strict=True)):
        place = dimension_names().index(pair.dimension)
        for side, code in enumerate((pair.high, pair.low)):
            parts[row, side, 2] = certainty[place] * (own @ function_features(code))
    right = {
        "all": _right(parts.sum(axis=2)),
        "static alone": _right(parts[:, :, 2]),
        "model alone": _right(parts[:, :, 0]),
        "shorter": np.array([float(len(pair.high) < len(pair.low)) for pair in pairs]),
    }
    return {name: _numbers(pairs, right, name) for name in dimension_names()}


def drawn_pairs(pairs: Sequence[FunctionPair], seed: int) -> list[FunctionPair]:
    """Pairs of single transformations, so many of each quality, in their order."""
    chosen: list[int] = []
    for name in dimension_names():
        own = [row for row, p in enumerate(pairs) if p.dimension == name and len(p.transformations) == 1]
        places = islice(Draws(seed, "function pairs", name).permutation(len(own)), MOST_PAIRS)
        chosen += [own[place] for place in places]
    return [pairs[row] for row in sorted(chosen)]


def held_out_weights(
    pairs: Sequence[FunctionPair],
    known: Sequence[FunctionPair],
    spread: np.ndarray,
    seed: int = 42,
    progress: Progress | None = None,
) -> list[np.ndarray]:
    """For each pair the weights of its quality, learnt from known pairs that share neither a transformation nor a fold
    of tasks with it."""
    folds = task_folds(known, seed)
    groups: dict[tuple[str, str, int], list[int]] = defaultdict(list)
    for row, pair in enumerate(pairs):
        groups[pair.dimension, pair.transformation, folds[pair.task_id]].append(row)
    found: list[np.ndarray] = [np.zeros(0)] * len(pairs)
    for done, ((dimension, _, fold), rows) in enumerate(sorted(groups.items()), start=1):
        hidden = pairs[rows[0]].transformations
        allowed = [
            pair
            for pair in known
            if pair.dimension == dimension and folds[pair.task_id] != fold and not pair.transformations & hidden
        ]
        own = fit_function_weights(allowed, spread)[dimension_names().index(dimension)]
        for row in rows:
            found[row] = own
        if progress is not None:
            progress("held-out transformations", done, len(groups))
    return found


def task_folds(pairs: Sequence[FunctionPair], seed: int) -> dict[str, int]:
    """Task -> its fold."""
    tasks = sorted({pair.task_id for pair in pairs}, key=lambda name: draw_key(seed, "function fold", name))
    return {name: place % NUM_FOLDS for place, name in enumerate(tasks)}


def _numbers(pairs: Sequence[FunctionPair], right: dict[str, np.ndarray], dimension: str) -> dict[str, Any]:
    rows = np.array([row for row, pair in enumerate(pairs) if pair.dimension == dimension], dtype=np.int64)
    tasks = [pairs[row].task_id for row in rows]
    changes = [pairs[row].transformation for row in rows]
    numbers: dict[str, Any] = {"pairs": len(rows), "tasks": len(set(tasks)), "transformations": len(set(changes))}
    if not len(rows):
        return numbers
    for name, values in right.items():
        numbers[name] = interval_numbers(bootstrap_mean(values[rows], tasks))
    numbers["by transformation"] = interval_numbers(_mean_of_means(right["all"][rows], changes))
    for key, labels in (("groups", [pairs[row].group for row in rows]), ("each", changes)):
        numbers[key] = {
            label: {
                "pairs": labels.count(label),
                **{name: float(values[rows][np.array(labels) == label].mean()) for name, values in right.items()},
            }
            for label in sorted(set(labels))
        }
    return numbers


def _mean_of_means(values: np.ndarray, labels: Sequence[str]):
    means = [values[np.array(labels) == label].mean() for label in sorted(set(labels))]
    return bootstrap_mean(np.array(means), sorted(set(labels)))


def _right(scores: np.ndarray) -> np.ndarray:
    """A tie is a miss."""
    return (scores[:, 0] > scores[:, 1]).astype(float)
