"""How relevance and static quality are mixed: chosen on problems that the parts have not seen, by a stated rule.

Of the mixtures that put the best program of a problem at least as far up among programs of other problems as a plain
cosine does, the one that most often prefers the better of two right programs.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from itertools import product

import numpy as np

from hf_qualcode.benchmark.drawing import Draws
from hf_qualcode.quality import dimension_names
from hf_qualcode.quality.static_features import static_features
from hf_qualcode.rerank.fusion import Fusion, FusionWeights
from hf_qualcode.types import PreferencePair


START = FusionWeights(
    model_weight=0.0, literal_weight=6.0, slope=0.5, threshold=1.0,
    # Set, not chosen. In a page of functions, whose evidence is all beyond the threshold, the leak is what still
    # orders them by relevance. How far a score that was learnt from whole programs holds for functions is not known.
    leak=0.05, fragment_certainty=0.25,
    quality_weights=(1.0,) * len(dimension_names()),
)  # fmt: skip
_GRID = {
    "literal_weight": (2.0, 4.0, 6.0), "slope": (0.2, 0.3, 0.4, 0.5, 0.8), "threshold": (-2.0, -1.0, 0.0, 1.0, 2.0)
}  # fmt: skip
_NUM_IRRELEVANT = 99
_CUT = 10


@dataclass(frozen=True)
class Evidence:
    """What the parts say of candidates of problems that they were not fitted to.

    Attributes:
        meaning, literals, static, cosine (`np.ndarray`): float64 [n, candidates]; the one that should win comes first.
        dimension (`np.ndarray`): int64 [n].
    """

    meaning: np.ndarray
    literals: np.ndarray
    static: np.ndarray
    cosine: np.ndarray
    dimension: np.ndarray

    @classmethod
    def of(cls, parts: Fusion, queries: Sequence[str], candidates: Sequence[Sequence[str]], dimension) -> "Evidence":
        """Asks a fusion's parts about `candidates`, [n] lists of one length."""
        width = len(candidates[0])
        asked = [query for query in queries for _ in range(width)]
        codes = [code for row in candidates for code in row]
        static = np.array([parts.static_weights @ static_features(code) for code in codes])
        vectors = parts.vectors(asked, is_query=True), parts.vectors(codes, is_query=False)
        dimension = np.asarray(dimension)
        columns = (
            parts.relevance(*vectors), parts.by_literals(asked, codes),
            static[np.arange(len(codes)), np.repeat(dimension, width)], np.einsum("ij,ij->i", *vectors),
        )  # fmt: skip
        return cls(*(column.reshape(-1, width) for column in columns), dimension)

    @classmethod
    def joined(cls, parts: Sequence["Evidence"]) -> "Evidence":
        """Several as one; of lists of unequal lengths the ends are left out."""
        width = min(part.meaning.shape[1] for part in parts)
        names = [field.name for field in fields(cls)][:-1]
        columns = [np.concatenate([getattr(part, name)[:, :width] for part in parts]) for name in names]
        return cls(*columns, np.concatenate([part.dimension for part in parts]))

    def scores(self, weights: FusionWeights) -> np.ndarray:
        """Fused scores of whole programs without a model, float64 [n, candidates]."""
        evidence = self.meaning + weights.literal_weight * self.literals
        scale = np.array(weights.quality_weights)[self.dimension][:, None]
        return weights.saturated(evidence) + scale * self.static


def pair_evidence(parts: Fusion, pairs: Sequence[PreferencePair]) -> Evidence:
    """Of preference pairs."""
    return Evidence.of(
        parts,
        [pair.query for pair in pairs],
        [(pair.positive, pair.negative) for pair in pairs],
        [dimension_names().index(pair.dimensions[0]) for pair in pairs],
    )


def list_evidence(
    parts: Fusion, pairs: Sequence[PreferencePair], pool_pairs: Sequence[PreferencePair], seed: int
) -> Evidence:
    """Of the best program of each problem and dimension against 99 programs of other problems, drawn from
    `pool_pairs`. As in QualCode's own lists, most of those belong to problems that the parts have seen."""
    programs: dict[str, str] = {}  # code -> problem
    for pair in pool_pairs:
        programs.setdefault(pair.positive, pair.problem_id)
        programs.setdefault(pair.negative, pair.problem_id)
    best: dict[tuple[str, str], PreferencePair] = {}
    for pair in pairs:
        key = (pair.problem_id, pair.dimensions[0])
        if key not in best or (pair.positive_value, pair.positive) < (best[key].positive_value, best[key].positive):
            best[key] = pair
    pool = sorted(programs)
    candidates = []
    for (problem_id, name), pair in sorted(best.items()):
        places = Draws(seed, "mixture", problem_id, name).permutation(len(pool))
        others = [pool[place] for place in places if programs[pool[place]] != problem_id]
        candidates.append((pair.positive, *others[:_NUM_IRRELEVANT]))
    width = min(map(len, candidates))
    return Evidence.of(
        parts,
        [best[key].query for key in sorted(best)],
        [row[:width] for row in candidates],
        [dimension_names().index(name) for _, name in sorted(best)],
    )


def choose_mixture(pairs: Evidence, lists: Evidence) -> FusionWeights:
    """The mixture of the rule above; the preference counted as a mean over dimensions. Where none is as good at
    relevance as the cosine, the one that is best at it."""
    needed = _reciprocal_rank(lists.cosine)
    found = []
    for values in product(*_GRID.values()):
        weights = replace(START, **dict(zip(_GRID, values, strict=True)))
        relevance = _reciprocal_rank(lists.scores(weights))
        scores = pairs.scores(weights)
        right = scores[:, 0] > scores[:, 1]
        preference = np.mean([right[pairs.dimension == row].mean() for row in np.unique(pairs.dimension)])
        found.append((min(relevance, needed), preference, weights))
    return max(found, key=lambda entry: entry[:2])[2]


def _reciprocal_rank(scores: np.ndarray) -> float:
    """MRR@10 of lists whose first candidate is the relevant one; equal scores count as above it."""
    rank = 1 + (scores[:, 1:] >= scores[:, :1]).sum(axis=1)
    return float(np.where(rank <= _CUT, 1 / rank, 0).mean())
