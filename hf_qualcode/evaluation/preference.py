"""Preference: which of two programs for one problem does a system prefer under an instruction, and why might it?

Everything is scored here, once; `preference_report` turns the scores into numbers.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hf_qualcode.evaluation.protocols import NamedScorer, Perturbation, Slice
from hf_qualcode.evaluation.scoring import AnyScorer, PairScorer, PairScores
from hf_qualcode.types import PreferencePair, QualcodeError


SWAPPED = "swapped presentation"


@dataclass(frozen=True)
class ChosenSlice:
    """A slice and the pairs in it, bool [n]."""

    description: str
    rows: np.ndarray


@dataclass(frozen=True)
class PerturbedScores:
    """What the model gave after a change to the pairs.

    Attributes:
        description (`str`), expected (`str`): Of the [`Perturbation`].
        scores (`PairScores`): `positive` is the score of what was the positive.
        changed (`np.ndarray`): bool [n], pairs of which some text or the instruction changed.
    """

    description: str
    expected: str
    scores: PairScores
    changed: np.ndarray


@dataclass(frozen=True)
class PreferenceReportData:
    """Everything a preference report is made of.

    Attributes:
        pairs (`Sequence[PreferencePair]`): [n].
        name (`str`): Of the model.
        scores (`PairScores`): Of the model.
        baselines (`dict[str, PairScores]`): Name -> scores.
        slices (`dict[str, ChosenSlice]`): Name -> its pairs.
        perturbations (`dict[str, PerturbedScores]`): Name -> the model's scores after the change.
        labels (`Mapping[str, Any]`): Submission id -> row of the data set's labels; may be empty.
        notes (`list[str]`): What was left out, and why.
    """

    pairs: Sequence[PreferencePair]
    name: str
    scores: PairScores
    baselines: dict[str, PairScores] = field(default_factory=dict)
    slices: dict[str, ChosenSlice] = field(default_factory=dict)
    perturbations: dict[str, PerturbedScores] = field(default_factory=dict)
    labels: Mapping[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def problem_ids(self) -> np.ndarray:
        """str [n], the clusters of every interval."""
        return np.array([pair.problem_id for pair in self.pairs])

    def groups(self) -> dict[str, np.ndarray]:
        """Bool [n] for each combination of dimensions; for pairs that lack one, also by how many are asked (when that
        differs) and by the missing one."""
        combinations = ["+".join(pair.dimensions) for pair in self.pairs]
        columns = [combinations]
        if any(pair.missing_dimension for pair in self.pairs):
            counts = [f"{len(pair.dimensions)}-condition" for pair in self.pairs]
            if len(set(counts)) > 1:
                columns.insert(0, counts)
            columns.append([f"{pair.missing_dimension} missing" for pair in self.pairs])
        return {
            name: np.array([label == name for label in column]) for column in columns for name in dict.fromkeys(column)
        }

    def rows(self) -> list[dict]:
        """One JSON-ready row a pair, for `--save-scores`."""
        scale = {"scale": self.scores.scale} if self.scores.scale else {}
        return [
            {
                "id": pair.id, "positive_score": float(self.scores.positive[i]),
                "negative_score": float(self.scores.negative[i]), "problem_id": pair.problem_id,
                "dimension": "+".join(pair.dimensions), "missing_dimension": pair.missing_dimension,
                "positive_id": pair.positive_id, "negative_id": pair.negative_id, **scale,
            }
            for i, pair in enumerate(self.pairs)
        ]  # fmt: skip


def evaluate_preference(
    pairs: Sequence[PreferencePair],
    scorer: AnyScorer | PairScores,
    *,
    name: str = "model",
    labels: Mapping[str, Any] | None = None,
    controls: Sequence[Slice | Perturbation] = (),
    baselines: Sequence[NamedScorer] = (),
    folds: int = 5,
    seed: int = 42,
    progress: Callable[[str, int, int | None], None] | None = None,
) -> PreferenceReportData:
    """Scores pairs with a system, and what is needed to understand the result.

    Distinct (instruction, query, code) triples are scored in one call, once more for each perturbation. Trainable
    systems are run out-of-fold by problem.

    Args:
        pairs (`Sequence[PreferencePair]`): [n], with distinct ids.
        scorer (`Scorer`, `TrainableScorer`, `Callable` or `PairScores`):
            The model under test; scores that were made elsewhere cannot be perturbed, which `notes` says.
        name (`str`, *optional*): Of the model.
        labels (`Mapping[str, Any]`, *optional*): Submission id -> row of the data set's labels.
        controls (`Sequence[Slice | Perturbation]`, *optional*):
            Slices are reported on their own. Perturbations are scored with the model; where there are any, so is the
            same input presented the other way round.
        baselines (`Sequence[NamedScorer]`, *optional*): Scored on the same pairs (or `PairScores` already).
        folds (`int`, *optional*, defaults to 5), seed (`int`, *optional*, defaults to 42): Of trainable systems.
        progress (`Callable`, *optional*): Called as `progress(stage, done, total)`.

    Returns:
        `PreferenceReportData`: Scores; see `preference_report`.

    Raises:
        `QualcodeError`: On no pairs, repeated ids or names, scores that are not finite or of a wrong shape, or a
            control that does not keep to its protocol.
    """
    _check_pairs(pairs)
    names = [name, *(baseline.name for baseline in baselines)]
    slices = [control for control in controls if isinstance(control, Slice)]
    perturbations = [control for control in controls if isinstance(control, Perturbation)]
    for kind, given in (("systems", names), ("controls", [c.name for c in (*slices, *perturbations)])):
        repeated = [each for i, each in enumerate(given) if each in given[:i]]
        if repeated:
            raise QualcodeError(f"two {kind} are named {repeated[0]!r}; names must be distinct")
    labels = labels or {}
    notes, perturbed = [], {}
    steps = len(names) + (1 + len(perturbations) if perturbations and not isinstance(scorer, PairScores) else 0)
    report = _Steps(progress, steps)

    def score(system: AnyScorer | PairScores) -> PairScores:
        scores = system if isinstance(system, PairScores) else PairScorer(system, pairs, folds, seed)(pairs)
        if len(scores.positive) != len(pairs):
            raise QualcodeError(f"scores of {len(scores.positive)} pairs were given for {len(pairs)} pairs")
        report()
        return scores

    if isinstance(scorer, PairScores):
        scores = score(scorer)
        if perturbations:
            notes.append("the scores come from a file: instructions and texts cannot be changed without the model")
    else:
        model = PairScorer(scorer, pairs, folds, seed)
        scores = model(pairs)
        report()
        for perturbation in perturbations:
            perturbed[perturbation.name] = _perturb(perturbation, pairs, model)
            report()
        if perturbations:
            swapped = model(pairs, negatives_first=True)
            words = "the same texts in the opposite order, negatives first"
            perturbed[SWAPPED] = PerturbedScores(words, "same", swapped, np.zeros(len(pairs), dtype=bool))
            report()
    return PreferenceReportData(
        pairs=pairs,
        name=name,
        scores=scores,
        baselines={baseline.name: score(baseline.scorer) for baseline in baselines},
        slices={part.name: _choose(part, pairs, labels) for part in slices},
        perturbations=perturbed,
        labels=labels,
        notes=notes,
    )


class _Steps:
    def __init__(self, progress: Callable | None, total: int):
        self._progress, self._done, self._total = progress, 0, total

    def __call__(self) -> None:
        self._done += 1
        if self._progress is not None:
            self._progress("scoring", self._done, self._total)


def _check_pairs(pairs: Sequence[PreferencePair]) -> None:
    if not pairs:
        raise QualcodeError("there are no pairs to evaluate")
    seen = set()
    for pair in pairs:
        if pair.id in seen:
            raise QualcodeError(f"pair id {pair.id!r} appears twice; ids must be distinct")
        seen.add(pair.id)


def _choose(part: Slice, pairs: Sequence[PreferencePair], labels: Mapping[str, Any]) -> ChosenSlice:
    rows = np.asarray(part.select(pairs, labels))
    if rows.shape != (len(pairs),) or rows.dtype != bool:
        raise QualcodeError(
            f"slice {part.name!r} gave {rows.dtype} of shape {rows.shape}; expected bool of shape ({len(pairs)},)"
        )
    return ChosenSlice(part.description, rows)


def _perturb(perturbation: Perturbation, pairs: Sequence[PreferencePair], model: PairScorer) -> PerturbedScores:
    changed = perturbation.transform(pairs)
    if [pair.id for pair in changed] != [pair.id for pair in pairs]:
        raise QualcodeError(f"perturbation {perturbation.name!r} must keep the pairs' ids and order")
    differs = np.array([old != new for old, new in zip(pairs, changed, strict=True)])
    return PerturbedScores(perturbation.description, perturbation.expected, model(changed), differs)
