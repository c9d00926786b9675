"""Rules that turn measured values into labels. Lower values are better in all of them."""

from collections.abc import Sequence


def less_than_half(positive: float, negative: float) -> bool:
    """Whether two measurements are a clear pair: 2 x positive < negative, strictly (SynH-Rank, section 3.1)."""
    return 2 * positive < negative


def label_thirds(values: Sequence[float]) -> list[int | None]:
    """Labels the best third 1 and the worst third 0 (SynH-Rank, section 3.2).

    A third is floor(n / 3). Equal values always share a label: a run of ties across a cut is labelled `None`, as the
    middle is. Fewer than 3 values have no thirds.

    Args:
        values (`Sequence[float]`): [n], lower is better.

    Returns:
        `list[int | None]`: [n], in the order of `values`.
    """
    ordered, third = sorted(values), len(values) // 3
    if not third:
        return [None] * len(values)
    best_ends_in_ties = ordered[third - 1] == ordered[third]
    worst_begins_in_ties = ordered[-third] == ordered[-third - 1]

    def label(value: float) -> int | None:
        if value < ordered[third - 1] or (value == ordered[third - 1] and not best_ends_in_ties):
            return 1
        if value > ordered[-third] or (value == ordered[-third] and not worst_begins_in_ties):
            return 0
        return None

    return [label(value) for value in values]
