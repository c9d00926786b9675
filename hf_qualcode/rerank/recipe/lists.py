"""The lists the bundled model is trained on: quality under many words and both polarities, and plain relevance."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

from hf_qualcode.benchmark.drawing import Draws, draw_key
from hf_qualcode.quality import instruction_for
from hf_qualcode.rerank.lists import RankingList, lists_from_pairs, negated_instruction
from hf_qualcode.rerank.paraphrases import paraphrase
from hf_qualcode.rerank.recipe.sources import RelevantPairs
from hf_qualcode.types import PreferencePair


_NUM_LOW, _NUM_IRRELEVANT = 3, 2
_LISTS_A_PROBLEM = 4
_NUM_OTHERS = 5


def quality_lists(pairs: Sequence[PreferencePair], *, both: bool, size: int, seed: int) -> list[RankingList]:
    """`size` lists of quality pairs, at most four a problem and dimension, in paraphrases.

    Args:
        pairs (`Sequence[PreferencePair]`): Of one dimension each.
        both (`bool`): Each list under both polarities, one right after the other (so `size` counts twins singly).
        size (`int`): At most so many.
        seed (`int`): Of the draws.
    """
    lists = lists_from_pairs(
        pairs,
        num_low=_NUM_LOW,
        num_irrelevant=_NUM_IRRELEVANT,
        negate=negated_instruction if both else None,
        seed=seed,
    )
    twins: dict[str, list[RankingList]] = {}
    for each in lists:
        twins.setdefault(each.id.removesuffix("/negated"), []).append(each)
    chosen, counts = [], {}
    for name in sorted(twins, key=lambda name: draw_key(seed, "quality list", name)):
        group = name.rpartition("/")[0]
        counts[group] = counts.get(group, 0) + 1
        if counts[group] <= _LISTS_A_PROBLEM:
            chosen.append(name)
    result = []
    for name in chosen:
        if len(result) >= size:
            break
        for each in twins[name]:
            negated = each.id != name
            dimension = name.split("/")[1]
            draws = Draws(seed, "paraphrase", each.id)
            result.append(replace(each, instruction=paraphrase([dimension], negated, draws)))
    return result


def relevance_lists(source: RelevantPairs, *, size: int, seed: int) -> list[RankingList]:
    """`size` lists of one relevant code (grade 1) and five others, under "Retrieve code that is relevant"."""
    result = []
    order = sorted(range(len(source.queries)), key=lambda row: draw_key(seed, source.name, source.queries[row]))
    pool = sorted({*source.codes, *source.others})
    for row in order[:size]:
        query, code = source.queries[row], source.codes[row]
        places = Draws(seed, "others", source.name, query).permutation(len(pool))
        others = list(islice((pool[place] for place in places if pool[place] != code), _NUM_OTHERS))
        result.append(
            RankingList(
                id=f"{source.name}/{row}", instruction=instruction_for(()), query=query, codes=(code, *others),
                grades=(1, *[0] * len(others)), problem_id=f"{source.name}/{row}",
            )
        )  # fmt: skip
    return result
