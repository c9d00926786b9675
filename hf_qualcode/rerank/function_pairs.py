"""Pairs of functions of which one is proven better (`synthesize --writer rules`), and what is learnt from them."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hf_qualcode.quality import dimension_names
from hf_qualcode.quality.function_features import FUNCTION_FEATURE_NAMES, function_features
from hf_qualcode.quality.static_features import is_whole_program, static_features
from hf_qualcode.types import QualcodeError


# As a feature's unit: a count of 1 beside none is log 2, some two of these.
_SCALE = 0.3
_REGULARISATION = 0.1
_TEXTS = ("task_id", "query", "dimension", "group", "transformation", "high", "low")


@dataclass(frozen=True, slots=True)
class FunctionPair:
    """Two versions of one function.

    Attributes:
        task_id, query (`str`): What both do.
        dimension, group (`str`): The quality, and the guideline group of the change.
        transformation (`str`): Name of the change; of several one after the other, joined by `+`.
        high, low (`str`): The better and the worse version.
    """

    task_id: str
    query: str
    dimension: str
    group: str
    transformation: str
    high: str
    low: str

    @property
    def transformations(self) -> frozenset[str]:
        """The single ones."""
        return frozenset(self.transformation.split("+"))


def read_function_pairs(path: str | Path) -> list[FunctionPair]:
    """Reads `pairs.jsonl` of the rules writer. Pairs of whole programs are left out.

    Raises:
        `QualcodeError`: The file cannot be read, or a line is no pair.
    """
    path, pairs, number = Path(path), [], 0
    try:
        with path.open(encoding="utf-8") as lines:
            for line in lines:
                number += 1
                row = json.loads(line)
                pair = FunctionPair(*(row[name] for name in _TEXTS))
                if pair.dimension not in dimension_names():
                    raise ValueError(f"its quality is {pair.dimension!r}")
                if not (is_whole_program(pair.high) or is_whole_program(pair.low)):
                    pairs.append(pair)
    except OSError as error:
        raise QualcodeError(f"{path} cannot be read ({error.strerror or error})") from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise QualcodeError(
            f"{path}, line {number} is no pair of the rules writer ({type(error).__name__}: {error}); name the "
            "pairs.jsonl that `hf-qualcode synthesize --writer rules` wrote"
        ) from error
    return pairs


def fit_function_weights(pairs: Sequence[FunctionPair], spread: np.ndarray) -> np.ndarray:
    """Weights of function features in each quality, by logistic regression on differences.

    A transformation weighs as the root of its number of pairs, so that the most frequent one does not drown the rest.

    Args:
        pairs (`Sequence[FunctionPair]`): Of all qualities.
        spread (`np.ndarray`): float64 [num_dimensions], the standard deviation that scores shall have over the
            functions.

    Returns:
        `np.ndarray`: float64 [num_dimensions, num_function_features]; 0 in a quality without pairs.
    """
    from sklearn.linear_model import LogisticRegression

    weights = np.zeros((len(dimension_names()), len(FUNCTION_FEATURE_NAMES)))
    for row, name in enumerate(dimension_names()):
        own = [pair for pair in pairs if pair.dimension == name]
        if not own:
            continue
        high = np.stack([function_features(pair.high) for pair in own])
        low = np.stack([function_features(pair.low) for pair in own])
        counts = Counter(pair.transformation for pair in own)
        shares = np.array([counts[pair.transformation] ** -0.5 for pair in own])
        # Every other pair turned round, for two classes are needed; without an intercept it makes no difference.
        signs = np.where(np.arange(len(own)) % 2, -1, 1)
        model = LogisticRegression(
            C=_REGULARISATION, fit_intercept=False, solver="newton-cholesky", max_iter=100, tol=1e-8
        )
        # One pair alone is given both ways.
        differences, signs, shares = _two_classes(signs[:, None] * (high - low) / _SCALE, signs, shares)
        model.fit(differences, signs, sample_weight=shares)
        weights[row] = model.coef_[0] / _SCALE
        deviation = (np.concatenate([high, low]) @ weights[row]).std()
        weights[row] *= spread[row] / deviation if deviation else 0.0
    return weights


def _two_classes(differences: np.ndarray, signs: np.ndarray, shares: np.ndarray):
    if len(signs) > 1:
        return differences, signs, shares
    return np.concatenate([differences, -differences]), np.array([1, -1]), np.tile(shares / 2, 2)


def spread_of_programs(static_weights: np.ndarray, programs: Sequence[str]) -> np.ndarray:
    """The standard deviation of static scores over whole programs, float64 [num_dimensions]."""
    return (np.stack([static_features(code) for code in programs]) @ static_weights.T).std(axis=0)
