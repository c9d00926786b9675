"""Cross-validation of the recipe over all problems: what it makes of problems it has not seen.

Folds are of whole problems, made before anything else is done. Each fold is scored by a reranker whose static scores,
tags, relevance map and mixture were fitted to the problems of the other folds alone; its model has seen no problem at
all. A fold's scores are kept in a file, so an interrupted run goes on where it stopped.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from hf_qualcode.evaluation.folds import assign_folds, training_pairs
from hf_qualcode.quality import instruction_for
from hf_qualcode.rerank.recipe.sources import Sources
from hf_qualcode.rerank.recipe.training import DEFAULT, Recipe, train_bundled
from hf_qualcode.rerank.relevance import TextVectors
from hf_qualcode.rerank.reranker import Reranker
from hf_qualcode.types import GradedList, PreferencePair


Progress = Callable[[str, int, int | None], None]
# What a score is made of, so that each part can be looked at alone.
PARTS = ("model", "relevance", "static")


@dataclass(frozen=True)
class Triples:
    """What is scored, [n] texts each, and the problem that decides which fold scores it."""

    instructions: list[str]
    queries: list[str]
    codes: list[str]
    problem_ids: list[str]

    @classmethod
    def of(cls, pairs: Iterable[PreferencePair], lists: Iterable[GradedList]) -> "Triples":
        """All sides of pairs and all documents of lists, each distinct one once."""
        rows = [(p.instruction, p.query, code, p.problem_id) for p in pairs for code in (p.positive, p.negative)]
        rows += [(each.instruction, each.query, code, each.problem_id) for each in lists for code in each.documents]
        columns = list(zip(*dict.fromkeys(rows), strict=True)) or [(), (), (), ()]
        return cls(*map(list, columns))


def out_of_fold(
    sources: Sources,
    reader: Reranker,
    vectors: TextVectors,
    triples: Triples,
    out: Path,
    *,
    num_folds: int = 5,
    fold_seed: int = 0,
    recipe: Recipe = DEFAULT,
    progress: Progress | None = None,
) -> dict[tuple[str, str, str], np.ndarray]:
    """Scores every triple by the reranker that has not seen its problem.

    Args:
        sources (`Sources`): All data.
        reader (`Reranker`): Of `train_reader`, which has seen no problem.
        vectors (`TextVectors`): Of the base model's text encoder.
        triples (`Triples`): What to score.
        out (`Path`): Folder for `fold-SEED-NUMBER.npz`.
        num_folds, fold_seed (`int`): As in `assign_folds`, over all pairs of all dimensions.
        recipe (`Recipe`, *optional*): How to train.
        progress (`Callable`, *optional*): Called as `progress(stage, done, total)`.

    Returns:
        `dict`: (instruction, query, code) -> float64 [3], the parts of its score.
    """
    out.mkdir(parents=True, exist_ok=True)
    folds = assign_folds(sources.pairs, num_folds, fold_seed)
    fold_of = {pair.problem_id: int(fold) for pair, fold in zip(sources.pairs, folds, strict=True)}
    scores: dict[tuple[str, str, str], np.ndarray] = {}
    for fold in range(int(folds.max()) + 1):
        rows = [row for row, name in enumerate(triples.problem_ids) if fold_of.get(name) == fold]
        columns = [[column[row] for row in rows] for column in (triples.instructions, triples.queries, triples.codes)]
        path = out / f"fold-{fold_seed}-{fold}.npz"
        if not path.exists():
            allowed = training_pairs(sources.pairs, folds, fold)
            problem_ids = sorted({pair.problem_id for pair in allowed})
            reranker = train_bundled(sources, problem_ids, reader, vectors, recipe=recipe, seed=42 + fold_seed)
            parts = score_parts(reranker, *columns, progress=progress)
            with path.with_suffix(".part").open("wb") as file:
                np.savez_compressed(file, parts=parts, weights=_mixture(reranker))
            path.with_suffix(".part").replace(path)
        with np.load(path) as saved:
            parts = saved["parts"]
        if len(parts) != len(rows):
            raise ValueError(f"{path} holds {len(parts)} scores, expected {len(rows)}; remove it to score again.")
        scores.update(zip(zip(*columns, strict=True), parts, strict=True))
        if progress is not None:
            progress(f"folds of seed {fold_seed}", fold + 1, num_folds)
    return scores


def score_parts(
    reranker: Reranker, instructions: Sequence[str], queries: Sequence[str], codes: Sequence[str], *, progress=None
) -> np.ndarray:
    """The parts of a fused score, float64 [n, 3]; their sum is the score."""
    fusion, weights = reranker.fusion, reranker.fusion.weights
    alone = Reranker(reranker.backbone, reranker.tags, wording=reranker.wording, name=reranker.name)
    logits = alone.score_triples(instructions, queries, codes, progress)
    relevant = weights.saturated(fusion.evidence(queries, codes))
    return np.stack([weights.model_weight * logits, relevant, fusion.quality(instructions, codes)], axis=1)


def _mixture(reranker: Reranker) -> np.ndarray:
    weights = reranker.fusion.weights
    return np.array([weights.literal_weight, weights.slope, weights.threshold, weights.leak, *weights.quality_weights])


@dataclass(frozen=True)
class Validation:
    """What rerankers said of problems they had not seen, for one seed of the folds.

    Attributes:
        seed (`int`): Of the folds.
        pairs, triplets (`list[PreferencePair]`): All-pairs of QualCode, and MC-QualCode.
        lists (`list[GradedList]`): Relevance lists that were scored.
        conditions (`dict[str, np.ndarray]`): Name of a wording -> float64 [num_pairs, 2, 3], positive first, and the
            parts of each score.
        triplet_parts (`np.ndarray`): float64 [num_triplets, 2, 3].
        list_parts (`list[np.ndarray]`): One float64 [list, 3] a list.
        list_cosines (`list[np.ndarray]`): The plain cosine of the text encoder for each.
    """

    seed: int
    pairs: list[PreferencePair]
    triplets: list[PreferencePair]
    lists: list[GradedList]
    conditions: dict[str, np.ndarray]
    triplet_parts: np.ndarray
    list_parts: list[np.ndarray]
    list_cosines: list[np.ndarray]


def validate(
    sources: Sources,
    reader: Reranker,
    vectors: TextVectors,
    triplets: Sequence[PreferencePair],
    lists: Sequence[GradedList],
    out: Path,
    *,
    rewordings: Mapping[str, Mapping[str, str]],
    fold_seed: int = 0,
    recipe: Recipe = DEFAULT,
    progress: Progress | None = None,
) -> Validation:
    """Cross-validates the recipe for one seed.

    Args:
        sources (`Sources`), reader (`Reranker`), vectors (`TextVectors`), out (`Path`), fold_seed, recipe, progress:
            As `out_of_fold`.
        triplets (`Sequence[PreferencePair]`): MC-QualCode, of the same problems.
        lists (`Sequence[GradedList]`): Relevance lists; may be none.
        rewordings (`Mapping`): Name of a wording -> dimension -> instruction, which no model was trained on.
    """
    known = set(sources.problem_ids)
    triplets = [pair for pair in triplets if pair.problem_id in known]
    lists = [each for each in lists if each.problem_id in known]
    wordings = {"plain": _under(sources.pairs, False), "negated": _under(sources.pairs, True)}
    for name, instructions in rewordings.items():
        wordings[name] = [replace(pair, instruction=instructions[pair.dimensions[0]]) for pair in sources.pairs]
    asked = [pair for pairs in wordings.values() for pair in pairs]
    scores = out_of_fold(
        sources, reader, vectors, Triples.of([*asked, *triplets], lists), out,
        fold_seed=fold_seed, recipe=recipe, progress=progress,
    )  # fmt: skip

    def sides(pairs: Sequence[PreferencePair]) -> np.ndarray:
        return np.array(
            [[scores[p.instruction, p.query, code] for code in (p.positive, p.negative)] for p in pairs]
        ).reshape(-1, 2, len(PARTS))

    cosines = []
    for each in lists:
        query = vectors([each.query], is_query=True)[0]
        cosines.append((vectors(each.documents, is_query=False) @ query).astype(np.float64))
    return Validation(
        seed=fold_seed,
        pairs=sources.pairs,
        triplets=triplets,
        lists=lists,
        conditions={name: sides(pairs) for name, pairs in wordings.items()},
        triplet_parts=sides(triplets),
        list_parts=[np.array([scores[e.instruction, e.query, code] for code in e.documents]) for e in lists],
        list_cosines=cosines,
    )


def _under(pairs: Sequence[PreferencePair], negated: bool) -> list[PreferencePair]:
    return [replace(pair, instruction=instruction_for(pair.dimensions, negated=negated)) for pair in pairs]
