"""Out-of-fold by problem: what a model is tested on, it has not been trained on, not even in part."""

from collections.abc import Sequence

import numpy as np

from hf_qualcode.types import PreferencePair, QualcodeError


def assign_folds(pairs: Sequence[PreferencePair], num_folds: int = 5, seed: int = 42) -> np.ndarray:
    """Deals whole problems out to folds that hold about equally many pairs.

    Problems go from the one with most pairs to the one with fewest, each to the fold that is smallest so far; the seed
    decides among problems of equal size. The order of the pairs decides nothing.

    Args:
        pairs (`Sequence[PreferencePair]`): [n].
        num_folds (`int`, *optional*, defaults to 5): At most as many as there are problems are made.
        seed (`int`, *optional*, defaults to 42): Equal seeds give equal folds.

    Returns:
        `np.ndarray`: int64 [n], the fold of each pair.

    Raises:
        `QualcodeError`: With fewer than two folds or problems.
    """
    problem_ids, problem_of_pair, counts = np.unique(
        [pair.problem_id for pair in pairs], return_inverse=True, return_counts=True
    )
    if num_folds < 2 or len(problem_ids) < 2:
        raise QualcodeError(
            f"{num_folds} folds over {len(problem_ids)} problem(s): a model that is trained on the pairs needs at "
            "least two folds and two problems"
        )
    num_folds = min(num_folds, len(problem_ids))
    shuffled = np.random.default_rng(seed).permutation(len(problem_ids))
    fold_of_problem = np.empty(len(problem_ids), dtype=np.int64)
    sizes = np.zeros((num_folds, 2), dtype=np.int64)  # pairs, then problems
    for problem in shuffled[np.argsort(-counts[shuffled], kind="stable")]:
        fold = min(range(num_folds), key=lambda fold: tuple(sizes[fold]))
        fold_of_problem[problem] = fold
        sizes[fold] += (counts[problem], 1)
    return fold_of_problem[problem_of_pair]


def training_pairs(pairs: Sequence[PreferencePair], folds: np.ndarray, fold: int) -> list[PreferencePair]:
    """What a model may be trained on before it is tested on a fold: the pairs of every problem that shares neither its
    id nor any text (statement or program) with the fold.

    Args:
        pairs (`Sequence[PreferencePair]`): [n].
        folds (`np.ndarray`): int64 [n], of `assign_folds`.
        fold (`int`): The fold to be tested.

    Raises:
        `QualcodeError`: When nothing is left.
    """
    tested = [pair for pair, number in zip(pairs, folds, strict=True) if number == fold]
    texts = {text for pair in tested for text in (pair.query, pair.positive, pair.negative)}
    shared = {pair.problem_id for pair in tested}
    shared |= {pair.problem_id for pair in pairs if not texts.isdisjoint((pair.query, pair.positive, pair.negative))}
    kept = [pair for pair in pairs if pair.problem_id not in shared]
    if not kept:
        raise QualcodeError(
            f"every problem shares a text with fold {fold + 1} of {folds.max() + 1}, so nothing is left to train on; "
            "use more folds"
        )
    return kept
