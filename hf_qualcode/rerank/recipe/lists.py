"""The lists the bundled model is trained on: what instructions and judgements mean, and what belongs to a query."""

from collections.abc import Sequence

import numpy as np

from hf_qualcode.benchmark.drawing import Draws, draw_key
from hf_qualcode.quality import dimension_names, instruction_for
from hf_qualcode.rerank.lists import RankingList
from hf_qualcode.rerank.recipe.sources import RelevantPairs
from hf_qualcode.rerank.tags import NUM_LEVELS, judgement


_NUM_JUDGEMENTS, _NUM_UNRELATED = 4, 2
# Teacher's log-odds: one level of a judgement, and what does not belong to the query.
_LEVEL_WEIGHT, _UNRELATED = 0.7, 6.0


def reading_lists(
    sources: Sequence[RelevantPairs], *, size: int, warm: int, seed: int
) -> list[RankingList]:
    """Lessons in reading: lists from which a model learns what instructions and judgements mean, and what belongs to a
    query. No program's quality is known or used: the judgements before the codes are drawn at random, and the teacher
    scores follow from them.

    A list holds one code that belongs to the query, under four judgements, and two that do not. Codes are texts as
    `JudgedTags` makes them.

    Args:
        sources (`Sequence[RelevantPairs]`): Where queries and codes come from, in turn.
        size (`int`): How many lists.
        warm (`int`): Of them, the first that ask for one quality and never for its opposite.
        seed (`int`): Of the draws.
    """
    orders = [
        sorted(range(len(source.queries)), key=lambda row: draw_key(seed, source.name, source.queries[row]))
        for source in sources
    ]
    pools = [sorted({*source.codes, *source.others}) for source in sources]
    lists: list[RankingList] = []
    number = 0
    while len(lists) < size:
        turn = number % len(sources)
        source, order = sources[turn], orders[turn]
        row = order[number // len(sources) % len(order)]
        draws = Draws(seed, "lesson", str(number))
        names = _asked(draws, only_one=len(lists) < warm)
        levels = [_levels(draws) for _ in range(_NUM_JUDGEMENTS)]
        code, others = source.codes[row], []
        while len(others) < _NUM_UNRELATED:
            other = pools[turn][draws.below(len(pools[turn]))]
            if other != code:
                others.append(other)
        levels += [_levels(draws) for _ in others]
        texts = tuple(
            f"{judgement(level)}\n{text}"
            for level, text in zip(levels, [*[code] * _NUM_JUDGEMENTS, *others], strict=True)
        )
        wished = np.array([sum(level[dimension_names().index(name)] for name in names) for level in levels])
        for negated in (False,) if len(lists) < warm else (False, True):
            liked = (wished if negated else -wished) * _LEVEL_WEIGHT / np.sqrt(len(names))
            liked[_NUM_JUDGEMENTS:] -= _UNRELATED
            lists.append(
                RankingList(
                    id=f"lesson/{number}" + "/negated" * negated,
                    instruction=instruction_for(names, negated=negated), query=source.queries[row], codes=texts,
                    grades=(*[1] * _NUM_JUDGEMENTS, *[0] * len(others)), teacher_scores=tuple(liked.tolist()),
                )
            )  # fmt: skip
        number += 1
    return lists[:size]


def _asked(draws: Draws, only_one: bool) -> tuple[str, ...]:
    """One quality in most cases, else two, seldom all."""
    names = list(dimension_names())
    count = 1 if only_one else (1, 1, 1, 1, 1, 1, 1, 2, 2, 3)[draws.below(10)]
    return tuple(names[place] for place in sorted(list(draws.permutation(len(names)))[:count]))


def _levels(draws: Draws) -> tuple[int, ...]:
    return tuple(draws.below(NUM_LEVELS) for _ in dimension_names())
