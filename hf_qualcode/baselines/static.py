"""`static`: what can be told from a program's syntax tree at a glance, by pairwise logistic regression."""

from hf_qualcode.quality.static_scorer import StaticFeatureScorer


def scorer() -> StaticFeatureScorer:
    """The baseline, to be trained."""
    return StaticFeatureScorer()
