"""What can be told from a program's syntax tree at a glance, by pairwise logistic regression.

A trained scorer without any language model: `StaticFeatureScorer().fit(pairs)` learns one weight a feature and
instruction. A model that is said to judge quality has to beat it.
"""

import logging
from collections import defaultdict
from collections.abc import Sequence
from itertools import combinations

import numpy as np

from hf_qualcode.quality import dimension_names, instruction_for
from hf_qualcode.quality.static_features import FEATURE_NAMES, static_features
from hf_qualcode.types import PreferencePair, QualcodeError


logger = logging.getLogger(__name__)

# Strong, for the programs of some eighty problems must carry over a hundred weights. Fixed beforehand.
REGULARISATION = 0.003
# Features are divided by their standard deviation, or by this where that is less: what one program in a hundred has
# would otherwise be magnified tenfold. Chosen by cross-validation inside training folds (speed .758 against .749).
LEAST_SCALE = 0.2


class StaticFeatureScorer:
    """A `TrainableScorer`: logistic regression without intercept on differences of static features.

    One model an instruction. Features are standardised over the distinct programs it is trained on; every pair weighs
    the same, as in the metric (weights by problem made no difference beyond noise in cross-validation).

    Args:
        regularisation (`float`, *optional*, defaults to 0.003): scikit-learn's C; smaller is stronger.
    """

    def __init__(self, regularisation: float = REGULARISATION):
        if not regularisation > 0:
            raise ValueError(f"regularisation is {regularisation}; expected a number above 0.")
        self.regularisation = regularisation

    def fit(self, pairs: Sequence[PreferencePair], progress=None) -> "FittedStaticScorer":
        """Trains on labelled pairs.

        Args:
            pairs (`Sequence[PreferencePair]`): At least one.
            progress (`Callable`, *optional*): Called as `progress(stage, done, total)`.

        Returns:
            `FittedStaticScorer`: The trained scorer.

        Raises:
            `QualcodeError`: On no pairs.
        """
        if not pairs:
            raise QualcodeError("the static-feature scorer got no pairs to learn from; give at least one")
        groups: dict[str, list[PreferencePair]] = defaultdict(list)
        for pair in pairs:
            groups[pair.instruction].append(pair)
        return FittedStaticScorer({name: self._fit(group, progress) for name, group in groups.items()})

    def _fit(self, pairs: Sequence[PreferencePair], progress) -> np.ndarray:
        """The weights of raw features, float64 [num_features]."""
        from sklearn.linear_model import LogisticRegression

        codes = list(dict.fromkeys(code for pair in pairs for code in (pair.positive, pair.negative)))
        features = feature_matrix(codes, progress)
        row = {code: number for number, code in enumerate(codes)}
        deviation = features.std(axis=0)
        # A feature without variation says nothing: weight 0.
        scale = np.where(deviation > 0, np.maximum(deviation, LEAST_SCALE), np.inf)
        differences = features[[row[p.positive] for p in pairs]] - features[[row[p.negative] for p in pairs]]
        # Both orders of every pair, half the weight each.
        differences = np.concatenate([differences, -differences]) / scale
        labels = np.repeat([1, 0], len(pairs))
        weights = np.full(len(labels), 0.5)
        model = LogisticRegression(
            C=self.regularisation, fit_intercept=False, solver="newton-cholesky", max_iter=100, tol=1e-8
        )
        return model.fit(differences, labels, sample_weight=weights).coef_[0] / scale


class FittedStaticScorer:
    """A `Scorer`: weighted sum of a program's static features. The query is ignored.

    Instructions are told apart, not understood:

    - one that was trained on has its own weights;
    - one that `instruction_for` makes of trained dimensions has the sum of theirs ("fast and maintainable");
    - the negation of either has the weights' negative ("slow");
    - any other gives every program the score 0, so its pairs are ties.

    Args:
        weights (`dict[str, np.ndarray]`): Instruction -> float64 [num_features].
    """

    def __init__(self, weights: dict[str, np.ndarray]):
        self.weights = {**_derived(weights), **weights}
        self.trained_on = tuple(weights)

    def score(
        self, instructions: Sequence[str], queries: Sequence[str], codes: Sequence[str], progress=None
    ) -> np.ndarray:
        """See `Scorer.score`."""
        scores = np.zeros(len(codes))
        unknown = sorted({*instructions} - self.weights.keys())
        if unknown:
            logger.warning(
                "the static-feature scorer was not trained on %d of the instructions (%.80r): it scores them 0",
                len(unknown), unknown[0],
            )  # fmt: skip
        distinct = list(dict.fromkeys(codes))
        features = feature_matrix(distinct, progress)
        row = {code: number for number, code in enumerate(distinct)}
        rows = np.array([row[code] for code in codes], dtype=np.int64)
        asked = np.array(instructions, dtype=object)
        for instruction in {*instructions} & self.weights.keys():
            here = asked == instruction
            scores[here] = (features @ self.weights[instruction])[rows[here]]
        return scores.astype(np.float32)

    def explain(self, code: str, instruction: str, top_k: int | None = None) -> list[tuple[str, float]]:
        """What each feature adds to the score of a program.

        Args:
            code (`str`): The program.
            instruction (`str`): One the scorer knows.
            top_k (`int`, *optional*): Only so many; defaults to all that are not 0.

        Returns:
            `list[tuple[str, float]]`: Feature names and what they add, the largest first, whatever its sign. The sum
            of all is the score.

        Raises:
            `QualcodeError`: On another instruction.
        """
        if instruction not in self.weights:
            raise QualcodeError(f"instruction {instruction!r} is not known; choose from: {', '.join(self.weights)}")
        added = static_features(code) * self.weights[instruction]
        order = np.argsort(-np.abs(added), kind="stable")[:top_k]
        return [(FEATURE_NAMES[i], float(added[i])) for i in order if added[i]]


def _derived(weights: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    single = {name: weights[instruction_for(name)] for name in dimension_names() if instruction_for(name) in weights}
    derived: dict[str, np.ndarray] = {}
    for size in range(1, len(single) + 1):
        for names in combinations(single, size):
            derived.setdefault(instruction_for(names), sum(single[name] for name in names))
    known = {**derived, **weights}
    for size in range(1, len(dimension_names()) + 1):
        for names in combinations(dimension_names(), size):
            if instruction_for(names) in known:
                derived[instruction_for(names, negated=True)] = -known[instruction_for(names)]
    return derived


def feature_matrix(codes: Sequence[str], progress=None) -> np.ndarray:
    """Static features of every code, float64 [num_codes, num_features]."""
    rows = np.zeros((len(codes), len(FEATURE_NAMES)))
    for number, code in enumerate(codes):
        rows[number] = static_features(code)
        if progress is not None and (number % 100 == 99 or number == len(codes) - 1):
            progress("reading programs", number + 1, len(codes))
    return rows
