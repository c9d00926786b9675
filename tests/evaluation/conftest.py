"""Pairs and scorers made here."""

import numpy as np
import pytest

from hf_qualcode.types import PreferencePair


class ByText:
    """A `Scorer` by a table of texts (or a function), which remembers what it was asked."""

    def __init__(self, table, scale=None):
        self.table, self.calls = table, []
        if scale:
            self.scale = scale

    def score(self, instructions, queries, codes):
        self.calls.append(list(zip(instructions, queries, codes, strict=True)))
        if callable(self.table):
            return np.array([self.table(*each) for each in self.calls[-1]], dtype=np.float32)
        return np.array([self.table[code] for code in codes], dtype=np.float32)


def make_pair(number, problem, positive=None, negative=None, dimension="speed", missing="", **values):
    dimensions = tuple(dimension.split("+"))
    return PreferencePair(
        id=f"{dimension}/{missing + '/' if missing else ''}a{number}/b{number}",
        instruction="Retrieve code that is " + " and ".join(dimensions),
        query=f"statement of {problem}",
        positive=f"p{number}" if positive is None else positive,
        negative=f"n{number}" if negative is None else negative,
        dimensions=dimensions,
        missing_dimension=missing,
        problem_id=problem,
        positive_id=f"a{number}",
        negative_id=f"b{number}",
        **values,
    )


def make_pairs(sizes, **kwargs):
    """So many pairs a problem."""
    problems = [f"q{i}" for i, size in enumerate(sizes) for _ in range(size)]
    return [make_pair(number, problem, **kwargs) for number, problem in enumerate(problems)]


@pytest.fixture
def by_text():
    return ByText


@pytest.fixture
def pair():
    return make_pair


@pytest.fixture
def pairs_of():
    return make_pairs
