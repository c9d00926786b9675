"""How much the programs written for one task differ (SynH-Rank, section 6.2.1), with guidelines and without.

Two distances, each the mean over all pairs of a set of programs:

- syntactic: 1 - CodeBLEU, taken in both directions, since CodeBLEU is not symmetric;
- semantic: 1 - cosine of the encoder's vectors, of as much of a program as the encoder reads.

A set is what one task has for one dimension and level: with guidelines one program a guideline group, without them as
many draws from one prompt. The paper measures programs before filters, so copies count here as well. Figures are means
over sets, with intervals from a bootstrap over tasks.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import NamedTuple, Protocol

import numpy as np

from hf_qualcode.languages import ParseLimitError
from hf_qualcode.resampling import cluster_sums, percentile_interval
from hf_qualcode.synthesis.codebleu import CodeFeatures, code_features, compare
from hf_qualcode.types import QualcodeError, UsageError


GUIDED, UNGUIDED = "with guidelines", "without guidelines"
MEASURES = ("syntactic", "semantic")
NUM_RESAMPLES = 10_000
WITHIN = ("level", "dimension", "task")
ALL = "all"

Progress = Callable[[str, int, int | None], None]


class Program(Protocol):
    """What is compared: a `Variant`, or anything that has these."""

    task_id: str
    dimension: str
    level: str
    code: str


class Encoder(Protocol):
    """Texts to vectors of unit norm, float32 [n, dimension]."""

    id: str

    def encode(self, texts: Sequence[str]) -> np.ndarray: ...


class Estimate(NamedTuple):
    """A mean over `n` sets, and the ends of its 95 % interval."""

    mean: float
    low: float
    high: float
    n: int


@dataclass(frozen=True, slots=True)
class SetDiversity:
    """Mean distances between the programs of one task, dimension and level."""

    task_id: str
    dimension: str
    level: str
    num_programs: int
    syntactic: float
    semantic: float

    @property
    def key(self) -> tuple[str, str, str]:
        return self.task_id, self.dimension, self.level


@dataclass(frozen=True)
class Diversity:
    """What was measured under one condition.

    Attributes:
        name (`str`): The condition.
        encoder (`str`): Id of what made the vectors.
        language (`str`): Of the programs.
        sets (`list[SetDiversity]`): Sorted by task, dimension and level.
        left_out (`dict[str, int]`): Reason -> programs that were not compared.
    """

    name: str
    encoder: str
    language: str
    sets: list[SetDiversity]
    left_out: dict[str, int] = field(default_factory=dict)

    def estimate(
        self, measure: str, sets: Sequence[SetDiversity] | None = None, *, num_resamples: int = NUM_RESAMPLES,
        seed: int = 42,
    ) -> Estimate:  # fmt: skip
        """The mean of a measure over `sets`, which defaults to all."""
        chosen = self.sets if sets is None else sets
        return estimate_mean(
            [getattr(each, measure) for each in chosen], [each.task_id for each in chosen], num_resamples, seed
        )


def load_encoder(name: str, *, device: str | None = None) -> Encoder:
    """The encoder for semantic distances: `"minilm"`, a folder or a Hub id; see `hf_qualcode.hub.resolve_model`."""
    from hf_qualcode.encoders.transformer import load_transformer
    from hf_qualcode.hub import resolve_model

    return load_transformer(resolve_model(name), id=name, device=device)


def measure_diversity(
    programs: Iterable[Program],
    encoder: Encoder,
    *,
    name: str = GUIDED,
    language: str = "python",
    within: str = "level",
    progress: Progress | None = None,
) -> Diversity:
    """Mean distances within each set of programs.

    Args:
        programs (`Iterable[Program]`): In any order, copies included.
        encoder (`Encoder`): See `load_encoder`.
        name (`str`, *optional*, defaults to `"with guidelines"`): The condition under which they were written.
        language (`str`, *optional*, defaults to `"python"`): One of `hf_qualcode.languages`.
        within (`str`, *optional*, defaults to `"level"`):
            What makes a set of one task's programs: `"level"` (dimension and level), `"dimension"` (both levels
            together) or `"task"` (all of them; the paper can be read so).
        progress (`Callable`, *optional*): Called as `progress(stage, done, total)`.

    Returns:
        `Diversity`: Without the sets of fewer than two programs.

    Raises:
        `QualcodeError`: When no set has two programs.
        `UsageError`: On another `within`.
    """
    if within not in WITHIN:
        raise UsageError(f"within is {within!r}; choose from: {', '.join(WITHIN)}")
    left_out: Counter[str] = Counter()
    groups: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for each in programs:
        if each.code.strip():
            groups[_key(each, within)].append(each.code)
        else:
            left_out["empty"] += 1
    compared: dict[tuple[str, str, str], list[str]] = {}
    syntactic: dict[tuple[str, str, str], float] = {}
    for done, (key, codes) in enumerate(sorted(groups.items()), 1):
        features = _readable(codes, language)
        readable = sorted(code for code in codes if code in features)
        left_out["too long to parse"] += len(codes) - len(readable)
        if len(readable) > 1:
            compared[key], syntactic[key] = readable, _syntactic(readable, features)
        else:
            left_out["alone in its set"] += len(readable)
        if progress is not None:
            progress("comparing programs", done, len(groups))
    if not compared:
        raise QualcodeError(
            f"no diversity can be measured {name}: of {sum(map(len, groups.values()))} programs no two are of one "
            "task, dimension and level"
        )
    unique = sorted({code for codes in compared.values() for code in codes})
    if progress is not None:
        progress("encoding programs", 0, len(unique))
    vectors = dict(zip(unique, np.asarray(encoder.encode(unique), dtype=np.float64), strict=True))
    if progress is not None:
        progress("encoding programs", len(unique), len(unique))
    sets = [
        SetDiversity(*key, len(codes), syntactic[key], _semantic(codes, vectors)) for key, codes in compared.items()
    ]
    return Diversity(name, encoder.id, language, sets, {reason: count for reason, count in left_out.items() if count})


def _key(program: Program, within: str) -> tuple[str, str, str]:
    dimension = ALL if within == "task" else program.dimension
    return program.task_id, dimension, program.level if within == "level" else ALL


def _readable(codes: Iterable[str], language: str) -> dict[str, CodeFeatures]:
    """What CodeBLEU needs to know of each program; without those that the parser would need too long for."""
    features = {}
    for code in set(codes):
        try:
            features[code] = code_features(code, language)
        except ParseLimitError:
            continue
    return features


def _syntactic(codes: Sequence[str], features: dict[str, CodeFeatures]) -> float:
    scores = [
        compare(features[first], features[second]).score
        for one, other in combinations(codes, 2)
        for first, second in ((one, other), (other, one))
    ]
    return float(1 - np.mean(scores))


def _semantic(codes: Sequence[str], vectors: dict[str, np.ndarray]) -> float:
    stacked = np.stack([vectors[code] for code in codes])
    cosines = np.clip(stacked @ stacked.T, -1, 1)
    return float(np.mean(1 - cosines[np.triu_indices(len(codes), 1)]))


def estimate_mean(
    values: Sequence[float], tasks: Sequence[str], num_resamples: int = NUM_RESAMPLES, seed: int = 42
) -> Estimate:
    """The mean of values, with an interval from a bootstrap over the tasks that they are of."""
    array = np.array(values, dtype=np.float64)
    sums, sizes = cluster_sums(array, np.array(tasks))
    low, high = percentile_interval(sums, sizes, num_resamples=num_resamples, seed=seed)
    return Estimate(float(array.mean()), low, high, len(array))
