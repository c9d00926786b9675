"""How the bundled reranker is made: its lists, its relevance map, and the rule by which its mixture is chosen."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch

from hf_qualcode.quality import dimension_names, instruction_for
from hf_qualcode.quality.static_features import static_features
from hf_qualcode.quality.wishes import read_wishes, standard_instruction
from hf_qualcode.rerank.fusion_training import RelevanceSource, _Tensors, fit_relevance_map, fit_static_weights
from hf_qualcode.rerank.recipe.lists import reading_lists
from hf_qualcode.rerank.recipe.mixture import _GRID, START, Evidence, choose_mixture
from hf_qualcode.rerank.recipe.sources import RelevantPairs
from hf_qualcode.types import PreferencePair


def make_pairs(problems=6, programs=5, dimensions=("speed", "maintainability")):
    pairs = []
    for problem, name in product(range(problems), dimensions):
        codes = [f"x = {problem}\nprint({number} * {len(name)})\n" for number in range(programs)]
        for better in range(programs):
            for worse in range(better + 1, programs):
                pairs.append(
                    PreferencePair(
                        id=f"{name}/{problem}-{better}/{problem}-{worse}", instruction=instruction_for(name),
                        query=f"Task {problem}", positive=codes[better], negative=codes[worse], dimensions=(name,),
                        missing_dimension="", problem_id=f"p{problem}", positive_id=f"{problem}-{better}",
                        negative_id=f"{problem}-{worse}", positive_value=better + 1.0, negative_value=worse + 1.0,
                    )
                )  # fmt: skip
    return pairs


def test_lessons_teach_what_their_words_say():
    sources = [
        RelevantPairs("docs", ("a", "b", "c"), ("A", "B", "C"), ("E", "F", "G")),
        RelevantPairs("more", ("x", "y"), ("X", "Y"), ("Z",)),
    ]
    lists = reading_lists(sources, size=60, warm=20, seed=7)
    assert len(lists) == 60
    assert lists == reading_lists(sources, size=60, warm=20, seed=7)
    assert not any(each.id.endswith("negated") for each in lists[:20])
    for each in lists:
        wishes = read_wishes(each.instruction)
        assert any(wishes)
        # All that a wording lets through to the model.
        assert standard_instruction(each.instruction) == each.instruction
        judged, texts = zip(*(code.split("\n") for code in each.codes), strict=True)
        assert set(texts[:4]) == {each.query.upper()}
        assert each.query.upper() not in texts[4:]
        # Of the codes that belong to the query, those whose words agree with the wish stand first.
        agreement = [_agreement(wishes, words) for words in judged]
        own = list(zip(agreement[:4], each.teacher_scores[:4], strict=True))
        assert sorted(own, key=lambda pair: pair[0]) == sorted(own, key=lambda pair: (pair[1], pair[0]))
        # What does not belong is below what does, at equal agreement.
        for first, second in product(range(4), range(4, 6)):
            if agreement[first] >= agreement[second]:
                assert each.teacher_scores[first] > each.teacher_scores[second]


def _agreement(wishes, words):
    """By the words alone: +-1, 2 or 3 for plain, very and extremely, 0 for neither."""
    total = 0
    for wish, word, name in zip(wishes, words.split(", "), dimension_names(), strict=True):
        degree = 0 if word.startswith("neither") else 1 + word.startswith("very") + 2 * word.startswith("extremely")
        total += wish * degree * (read_wishes(word)[dimension_names().index(name)] if degree else 0)
    return total


@pytest.fixture
def source():
    """Queries and codes that share a hidden direction each, below noise in a direction that all codes share."""
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=(40, 12))
    queries = np.concatenate([hidden, np.full((40, 4), 2.0)], axis=1)
    rows = np.repeat(np.arange(40), 3)
    codes = np.concatenate([hidden[rows] + rng.normal(size=(120, 12)), rng.normal(size=(120, 4)) * 3], axis=1)

    def unit(vectors):
        return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)

    return RelevanceSource(unit(queries), unit(codes), rows)


def first_places(scores, source):
    """Share of queries whose best code is their own; `scores` is [queries, codes]."""
    return np.mean(source.query_of_code[scores.argmax(axis=1)] == np.arange(len(scores)))


def test_a_relevance_map_finds_what_the_cosine_does_not(source):
    relevance = fit_relevance_map([source], rank=4, seed=1)
    every = np.array([relevance(np.repeat(query[None], 120, axis=0), source.codes) for query in source.queries])
    assert first_places(every, source) > first_places(source.queries @ source.codes.T, source) + 0.2
    own = source.query_of_code == np.arange(40)[:, None]
    assert (every[own] > 0).mean() > 0.8
    assert (every[~own] < 0).mean() > 0.8


def test_equal_seeds_give_equal_maps(source, monkeypatch):
    monkeypatch.setattr("hf_qualcode.rerank.fusion_training._STEPS", 3)
    first, again, other = (fit_relevance_map([source], rank=2, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.left, again.left)
    assert (first.left != other.left).any()


def test_a_sample_knows_what_belongs_together(source):
    without = np.where(source.query_of_code == 7, -1, source.query_of_code)
    short = RelevanceSource(source.queries, source.codes, without)
    queries, codes, same = _Tensors.of(short).sample(torch.Generator().manual_seed(0))
    assert same.shape == (len(queries), len(codes))
    assert same.sum() == 117  # every code but those of nobody
    assert sorted(same.sum(dim=1).tolist()) == [0, *[3] * 39]


def test_static_weights_prefer_what_the_pairs_prefer():
    fast, slow = "print(1)\n", "import numpy\nfor i in range(9):\n    print(i)\n"
    pair = make_pairs(1, 2, ("speed",))[0]
    weights = fit_static_weights([replace(pair, positive=fast, negative=slow)])
    scores = weights @ np.stack([static_features(fast), static_features(slow)], axis=1)
    assert scores[0, 0] > scores[0, 1]
    assert not scores[1:].any()


def test_the_mixture_is_the_best_of_those_that_are_relevant_enough():
    rng = np.random.default_rng(5)
    pairs = Evidence(*(rng.normal(size=(300, 2)) for _ in range(4)), rng.integers(0, 3, 300))
    pairs.static[:, 0] += 1
    lists = Evidence(*(rng.normal(size=(60, 100)) for _ in range(4)), rng.integers(0, 3, 60))
    lists.meaning[:, 0] += 4
    lists.literals[:] /= 10
    pairs.literals[:] /= 10
    lists.cosine[:, 0] += 1
    chosen = choose_mixture(pairs, lists)

    def relevance(scores):
        ranks = [1 + sum(other >= row[0] for other in row[1:]) for row in scores]
        return np.mean([1 / rank if rank <= 10 else 0 for rank in ranks])

    def preference(weights):
        scores = pairs.scores(weights)
        return np.mean([np.mean([a > b for (a, b), d in zip(scores, pairs.dimension, strict=True) if d == k])
                        for k in range(3)])  # fmt: skip

    needed = relevance(lists.cosine)
    every = [replace(START, **dict(zip(_GRID, values, strict=True))) for values in product(*_GRID.values())]
    allowed = [weights for weights in every if relevance(lists.scores(weights)) >= needed]
    assert 0 < len(allowed) < len(every)
    assert chosen in allowed
    assert preference(chosen) == pytest.approx(max(map(preference, allowed)))
