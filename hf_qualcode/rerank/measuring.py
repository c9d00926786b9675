"""What a reranker is measured by while it trains."""

from collections.abc import Sequence

from hf_qualcode.evaluation.protocols import Scorer
from hf_qualcode.evaluation.reranking import METRICS, evaluate_reranking
from hf_qualcode.evaluation.scoring import score_pairs
from hf_qualcode.metrics import quality_preference_accuracy
from hf_qualcode.rerank.ranking_list import RankingList
from hf_qualcode.types import GradedList, PreferencePair, QualcodeError


def available_metrics(pairs: Sequence[PreferencePair], lists: Sequence[GradedList | RankingList]) -> tuple[str, ...]:
    """Names of what `measure` gives for such data."""
    names = [] if not pairs else ["qpa", "tie_rate"]
    dimensions = _dimensions(pairs)
    if len(set(dimensions)) > 1:
        names += [f"qpa_{dimension}" for dimension in sorted(set(dimensions))]
    return (*names, *(METRICS if lists else ()))


def measure(data: Sequence[PreferencePair | GradedList | RankingList], scorer: Scorer) -> dict[str, float]:
    """QPA and tie rate of the pairs, each dimension's QPA where there are several, and MRR and nDCG of the lists.

    Args:
        data (`Sequence`): Pairs, lists or both.
        scorer (`Scorer`): What is measured.

    Raises:
        `QualcodeError`: On anything else, repeated ids, nothing at all, or scores that are not finite.
    """
    pairs = [each for each in data if isinstance(each, PreferencePair)]
    lists = [_graded(each) for each in data if isinstance(each, (GradedList, RankingList))]
    if not data or len(pairs) + len(lists) < len(data):
        raise QualcodeError("evaluation takes PreferencePair, GradedList and RankingList objects, at least one")
    metrics = {}
    if pairs:
        scores = score_pairs(scorer, pairs)
        dimensions = _dimensions(pairs)
        groups = dimensions if len(set(dimensions)) > 1 else None
        # Intervals are for reports; one resample is the least there is.
        result = quality_preference_accuracy(scores.positive, scores.negative, groups=groups, num_resamples=1)
        metrics |= {"qpa": result.accuracy, "tie_rate": result.tie_rate}
        metrics |= {f"qpa_{name}": group.accuracy for name, group in result.by_group.items()}
    if lists:
        metrics |= evaluate_reranking(lists, scorer).metrics()
    return metrics


def _dimensions(pairs: Sequence[PreferencePair]) -> list[str]:
    return ["+".join(pair.dimensions) for pair in pairs]


def _graded(each: GradedList | RankingList) -> GradedList:
    if isinstance(each, GradedList):
        return each
    doc_ids = tuple(str(number) for number in range(len(each.codes)))
    return GradedList(each.id, each.instruction, each.query, doc_ids, each.codes, each.grades, each.problem_id, "")
