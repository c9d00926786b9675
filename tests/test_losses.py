"""Ranking losses against twins in plain Python floats, values worked out by hand, and the properties they promise."""

import math
import random
from itertools import permutations

import pytest
import torch

from hf_qualcode.losses import delta_ndcg_loss, info_nce_loss, pairwise_logistic_loss, rank_distillation_loss


GRADED = [delta_ndcg_loss, info_nce_loss, pairwise_logistic_loss]


def log1p_exp(x):
    return max(x, 0) + math.log1p(math.exp(-abs(x)))


def sigmoid(x):
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))


def pairs_of(grades):
    return [(i, j) for i, a in enumerate(grades) for j, b in enumerate(grades) if a > b]


# Each twin takes one list without padding, and returns its loss and gradient.
def plain_delta_ndcg(scores, grades):
    order = sorted(range(len(scores)), key=lambda i: (-scores[i], grades[i]))
    rank = {item: place for place, item in enumerate(order, 1)}
    ideal = sum((2**g - 1) / math.log2(1 + place) for place, g in enumerate(sorted(grades, reverse=True), 1))
    loss, gradient = 0.0, [0.0] * len(scores)
    for i, j in pairs_of(grades):
        weight = abs(2 ** grades[i] - 2 ** grades[j]) / ideal
        weight *= abs(1 / math.log2(1 + rank[i]) - 1 / math.log2(1 + rank[j]))
        loss += weight * log1p_exp(-(scores[i] - scores[j]))
        slope = weight * sigmoid(-(scores[i] - scores[j]))
        gradient[i] -= slope
        gradient[j] += slope
    return loss, gradient


def plain_delta_ndcg_of_every_order(scores, grades):
    """The mean over all orders of the list: its loss must be that of each, its gradient that of none in particular."""
    losses, gradient = [], [0.0] * len(scores)
    orders = list(permutations(range(len(scores))))
    for order in orders:
        loss, part = plain_delta_ndcg([scores[i] for i in order], [grades[i] for i in order])
        losses.append(loss)
        for place, item in enumerate(order):
            gradient[item] += part[place] / len(orders)
    assert max(losses) - min(losses) < 1e-12
    return losses[0], gradient


def plain_pairwise(scores, grades):
    pairs = pairs_of(grades)
    loss, gradient = 0.0, [0.0] * len(scores)
    for i, j in pairs:
        loss += log1p_exp(-(scores[i] - scores[j])) / len(pairs)
        slope = sigmoid(-(scores[i] - scores[j])) / len(pairs)
        gradient[i] -= slope
        gradient[j] += slope
    return loss, gradient


def plain_info_nce(scores, grades, temperature=1.0):
    positives = [i for i, g in enumerate(grades) if g == max(grades)]
    negatives = [i for i, g in enumerate(grades) if g < max(grades)]
    loss, gradient = 0.0, [0.0] * len(scores)
    for p in positives if negatives else []:
        items = [p, *negatives]
        top = max(scores[i] for i in items)
        shares = [math.exp((scores[i] - top) / temperature) for i in items]
        loss += (math.log(sum(shares)) - (scores[p] - top) / temperature) / len(positives)
        for i, share in zip(items, shares, strict=True):
            gradient[i] += (share / sum(shares) - (i == p)) / temperature / len(positives)
    return loss, gradient


def plain_distillation(student, teacher, temperature=1.0):
    def softmax(values):
        shares = [math.exp((v - max(values)) / temperature) for v in values]
        return [share / sum(shares) for share in shares]

    p, q = softmax(teacher), softmax(student)
    return sum(a * math.log(a / b) for a, b in zip(p, q, strict=True)), [
        (b - a) / temperature for a, b in zip(p, q, strict=True)
    ]


def random_lists(seed, num_lists=40, longest=6, scores=(-2.0, -0.5, 0.0, 0.5, 3.0)):
    """Ragged lists of few distinct scores and grades: most hold ties of every kind."""
    rng = random.Random(seed)
    lists = []
    for _ in range(num_lists):
        size = rng.randint(1, longest)
        lists.append(([rng.choice(scores) for _ in range(size)], [rng.randint(0, 3) for _ in range(size)]))
    return lists


def padded(lists, width, score=float("nan"), dtype=torch.float64):
    scores = torch.tensor([s + [score] * (width - len(s)) for s, _ in lists], dtype=dtype, requires_grad=True)
    return scores, torch.tensor([g + [-1] * (width - len(g)) for _, g in lists])


def value_and_gradient(loss, scores, *arguments, **keywords):
    scores = scores.detach().clone().requires_grad_()
    value = loss(scores, *arguments, **keywords)
    return value.detach(), torch.autograd.grad(value, scores)[0]


def check_against_twin(loss, twin, lists, width):
    scores, grades = padded(lists, width)
    value, gradient = value_and_gradient(loss, scores, grades)
    expected = [twin(s, g) for s, g in lists]
    assert value.item() == pytest.approx(sum(v for v, _ in expected) / len(lists), abs=1e-12)
    rows = torch.tensor([row + [0.0] * (width - len(row)) for _, row in expected], dtype=torch.float64) / len(lists)
    torch.testing.assert_close(gradient, rows, rtol=0, atol=1e-12)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "loss, twin",
    [
        (delta_ndcg_loss, plain_delta_ndcg_of_every_order),
        (pairwise_logistic_loss, plain_pairwise),
        (info_nce_loss, plain_info_nce),
        (
            lambda s, g: info_nce_loss(s, g, temperature=0.3),
            lambda s, g: plain_info_nce(s, g, temperature=0.3),
        ),
    ],
    ids=["delta_ndcg", "pairwise", "info_nce", "info_nce at 0.3"],
)
def test_equals_its_plain_twin_on_ragged_lists_with_ties(loss, twin, seed):
    check_against_twin(loss, twin, random_lists(seed, longest=5), width=7)


@pytest.mark.parametrize("loss, twin", [(delta_ndcg_loss, plain_delta_ndcg), (pairwise_logistic_loss, plain_pairwise)])
def test_equals_its_plain_twin_on_lists_of_a_hundred(loss, twin):
    rng = random.Random(5)
    lists = [
        ([rng.gauss(0, 3) for _ in range(size)], [rng.randint(0, 4) for _ in range(size)]) for size in (100, 99, 40)
    ]
    check_against_twin(loss, twin, lists, width=100)


@pytest.mark.parametrize("temperature", [1.0, 0.25, 8.0])
def test_distillation_equals_its_plain_twin(temperature):
    rng = random.Random(7)
    lists = [[(rng.gauss(0, 2), rng.gauss(0, 2)) for _ in range(rng.randint(1, 6))] for _ in range(20)]
    width = 8
    student, teacher = (
        torch.tensor([[pair[side] for pair in row] + [math.nan] * (width - len(row)) for row in lists]).double()
        for side in (0, 1)
    )
    value, gradient = value_and_gradient(rank_distillation_loss, student, teacher, temperature, ~student.isnan())
    expected = [plain_distillation(*zip(*row, strict=True), temperature) for row in lists]
    assert value.item() == pytest.approx(sum(v for v, _ in expected) / len(lists), rel=1e-6)
    rows = torch.tensor([row + [0.0] * (width - len(row)) for _, row in expected]).double() / len(lists)
    torch.testing.assert_close(gradient, rows, rtol=0, atol=1e-6)


def test_values_worked_out_by_hand():
    scores, grades = torch.tensor([[0.0, 1.0, 2.0]]), torch.tensor([[2, 1, 0]])
    value, gradient = value_and_gradient(delta_ndcg_loss, scores, grades)
    assert value.item() == pytest.approx(1.106870, abs=1e-6)
    torch.testing.assert_close(gradient, torch.tensor([[-0.416596, -0.021586, 0.438182]]), rtol=0, atol=1e-6)

    # log(1 + e + e^2): one positive that is last of three.
    assert info_nce_loss(scores, grades).item() == pytest.approx(math.log(1 + math.e + math.e**2), rel=1e-6)
    # Margins -1, -2 and -1.
    expected = (2 * math.log(1 + math.e) + math.log(1 + math.e**2)) / 3
    assert pairwise_logistic_loss(scores, grades).item() == pytest.approx(expected, rel=1e-6)
    # A uniform student and a teacher of 3/4 and 1/4.
    value = rank_distillation_loss(torch.zeros(1, 2), torch.tensor([[math.log(3), 0.0]]))
    assert value.item() == pytest.approx(math.log(2) + 0.75 * math.log(0.75) + 0.25 * math.log(0.25), rel=1e-6)


def test_pairwise_loss_with_one_positive_is_the_lexical_loss():
    scores = torch.randn(6, 5, generator=torch.Generator().manual_seed(0))
    grades = torch.tensor([[1, 0, 0, 0, 0]]).expand(6, -1)
    expected = -torch.log(torch.sigmoid(scores[:, :1] - scores[:, 1:])).mean()
    torch.testing.assert_close(pairwise_logistic_loss(scores, grades), expected)


def test_info_nce_positives_do_not_compete_with_each_other():
    one = value_and_gradient(info_nce_loss, torch.tensor([[1.0, 0.0]]), torch.tensor([[2, 0]]))
    two = value_and_gradient(info_nce_loss, torch.tensor([[1.0, 1.0, 0.0]]), torch.tensor([[2, 2, 0]]))
    torch.testing.assert_close(one[0], two[0])
    torch.testing.assert_close(two[1], torch.tensor([[one[1][0, 0] / 2, one[1][0, 0] / 2, one[1][0, 1]]]))


def test_distillation_is_zero_for_equal_scores_up_to_a_constant_and_leaves_the_teacher_alone():
    teacher = torch.randn(3, 4, generator=torch.Generator().manual_seed(0)).requires_grad_()
    value, gradient = value_and_gradient(rank_distillation_loss, teacher + 5, teacher)
    torch.testing.assert_close(value, torch.tensor(0.0), rtol=0, atol=1e-6)
    torch.testing.assert_close(gradient, torch.zeros(3, 4), rtol=0, atol=1e-6)
    assert not rank_distillation_loss(teacher.detach(), teacher).requires_grad


@pytest.mark.parametrize("loss", GRADED)
def test_gradcheck(loss):
    # Scores far enough apart that no rank changes within the check's step; ranks carry no gradient.
    scores, grades = padded([([2.0, 0.5, -1.0, 0.1], [0, 2, 1, 1]), ([3.0, 4.0], [1, 0]), ([1.0], [2])], 5, score=0.0)
    assert torch.autograd.gradcheck(lambda s: loss(s, grades), scores)


def test_gradcheck_of_distillation():
    generator = torch.Generator().manual_seed(0)
    student = torch.randn(3, 4, dtype=torch.float64, generator=generator, requires_grad=True)
    teacher = torch.randn(3, 4, dtype=torch.float64, generator=generator)
    mask = torch.tensor([[True, True, False, True], [True] * 4, [False] * 4])
    assert torch.autograd.gradcheck(lambda s: rank_distillation_loss(s, teacher, 0.7, mask), student)


def with_distillation(test):
    """Runs a test over every loss; the distillation learns from the grades, and is masked where they are -1."""

    def distillation(scores, grades, **keywords):
        return rank_distillation_loss(scores, grades.to(scores.dtype), mask=grades >= 0, **keywords)

    ids = ["delta_ndcg", "info_nce", "pairwise", "distillation"]
    return pytest.mark.parametrize("loss", [*GRADED, distillation], ids=ids)(test)


@with_distillation
@pytest.mark.parametrize("filling", [0.0, -1e30, math.inf, -math.inf, math.nan])
def test_padding_changes_nothing(loss, filling):
    lists = random_lists(11, num_lists=10)
    width = max(len(s) for s, _ in lists)
    value, gradient = value_and_gradient(loss, *padded(lists, width, score=0.0))
    wider, wider_gradient = value_and_gradient(loss, *padded([*lists, ([], [])], width + 3, score=filling))
    torch.testing.assert_close(wider, value)
    torch.testing.assert_close(wider_gradient[:-1, :width], gradient)
    assert not wider_gradient[-1].any() and not wider_gradient[:, width:].any()

    # The padding may stand anywhere.
    scores, grades = padded([*lists, ([], [])], width + 3, score=filling)
    order = torch.randperm(width + 3, generator=torch.Generator().manual_seed(0))
    moved, moved_gradient = value_and_gradient(loss, scores[:, order], grades[:, order])
    torch.testing.assert_close(moved, value)
    torch.testing.assert_close(moved_gradient, wider_gradient[:, order])


@with_distillation
def test_order_within_and_of_lists_changes_nothing(loss):
    scores, grades = padded(random_lists(3), 6)
    value, gradient = value_and_gradient(loss, scores, grades)
    generator = torch.Generator().manual_seed(0)
    for _ in range(20):
        rows, columns = torch.randperm(len(scores), generator=generator), torch.randperm(6, generator=generator)
        moved, moved_gradient = value_and_gradient(loss, scores[rows][:, columns], grades[rows][:, columns])
        torch.testing.assert_close(moved, value, rtol=0, atol=1e-12)
        torch.testing.assert_close(moved_gradient, gradient[rows][:, columns], rtol=0, atol=1e-12)


@with_distillation
def test_a_shift_of_all_scores_changes_nothing(loss):
    scores, grades = padded(random_lists(4), 6)
    expected = value_and_gradient(loss, scores, grades)
    for moved, value in zip(value_and_gradient(loss, scores + 8, grades), expected, strict=True):
        torch.testing.assert_close(moved, value, rtol=0, atol=1e-12)


@with_distillation
def test_micro_batches_add_up_to_the_large_batch(loss):
    scores, grades = padded(random_lists(8, num_lists=10), 6)
    value, gradient = value_and_gradient(loss, scores, grades)
    for count in (10, torch.tensor(10), torch.tensor(10.0)):
        parts = [
            value_and_gradient(loss, scores[rows], grades[rows], num_lists=count)
            for rows in (slice(0, 1), slice(1, 6), slice(6, 10), slice(10, 10))
        ]
        torch.testing.assert_close(sum(part for part, _ in parts), value)
        torch.testing.assert_close(torch.cat([part for _, part in parts]), gradient)
        assert parts[0][0].dtype == torch.float64


@pytest.mark.parametrize("grades", list(permutations([2, 1, 1, 0])))
def test_dead_start_has_gradient_whatever_the_order(grades):
    grades = torch.tensor([grades])
    for loss in GRADED:
        _, gradient = value_and_gradient(loss, torch.zeros(1, 4), grades)
        assert (gradient[grades == 2] < -0.05).all() and (gradient[grades == 0] > 0.05).all()
        # Items that nothing tells apart move alike.
        assert torch.equal(*gradient[grades == 1])


def test_of_equal_scores_the_lower_grade_ranks_first():
    grades = torch.tensor([[2, 0]])
    # Ranks 2 and 1: the swap is worth 3 / IDCG x (1 - 1 / log2(3)).
    expected = (1 - 1 / math.log2(3)) * math.log(2)
    assert delta_ndcg_loss(torch.zeros(1, 2), grades).item() == pytest.approx(expected, rel=1e-6)
    assert delta_ndcg_loss(torch.zeros(1, 2), grades.flip(1)).item() == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("scale", [1.0, 30.0, 1000.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_wide_margins_are_finite_and_keep_their_gradient(scale, dtype):
    wrong, right = torch.tensor([[0.0, scale]], dtype=dtype), torch.tensor([[scale, 0.0]], dtype=dtype)
    grades = torch.tensor([[2, 0]])
    weight = 1 - 1 / math.log2(3)
    for loss, share in ((delta_ndcg_loss, weight), (pairwise_logistic_loss, 1.0), (info_nce_loss, 1.0)):
        value, gradient = value_and_gradient(loss, wrong, grades)
        assert value.item() == pytest.approx(share * log1p_exp(scale), rel=1e-6)
        slope = share * sigmoid(scale)
        assert gradient.tolist()[0] == pytest.approx([-slope, slope], rel=1e-6)
        value, gradient = value_and_gradient(loss, right, grades)
        assert value.item() == pytest.approx(share * log1p_exp(-scale), rel=1e-6)
        slope = share * sigmoid(-scale)
        assert gradient.tolist()[0] == pytest.approx([-slope, slope], rel=1e-5)
    # The student is sure of the wrong item, the teacher of the right one.
    value, gradient = value_and_gradient(rank_distillation_loss, wrong, right)
    assert value.item() == pytest.approx(plain_distillation([0, scale], [scale, 0])[0] if scale < 700 else scale)
    assert gradient.tolist()[0] == pytest.approx([sigmoid(-scale) - sigmoid(scale), sigmoid(scale) - sigmoid(-scale)])


@pytest.mark.parametrize("highest", [10, 127, 128, 5000])
def test_no_grade_is_too_large(highest):
    # Lower gains vanish beside the highest: the pairs of the lower grades weigh nothing, and IDCG is the highest gain.
    value, gradient = value_and_gradient(delta_ndcg_loss, torch.tensor([[0.0, 1.0]]), torch.tensor([[highest, 0]]))
    assert value.item() == pytest.approx((1 - 1 / math.log2(3)) * log1p_exp(1), rel=1e-6)
    assert gradient.isfinite().all() and gradient[0, 0] < 0


def test_grades_may_be_fractions_or_booleans():
    scores = torch.tensor([[0.3, -1.0, 2.0]])
    value = delta_ndcg_loss(scores, torch.tensor([[0.5, 2.25, 0.0]]))
    assert value.item() == pytest.approx(plain_delta_ndcg(scores[0].tolist(), [0.5, 2.25, 0.0])[0], rel=1e-6)
    for loss in GRADED:
        torch.testing.assert_close(
            loss(scores, torch.tensor([[True, False, True]])), loss(scores, torch.tensor([[1.0, 0.0, 1.0]]))
        )


@pytest.mark.parametrize("loss", GRADED)
@pytest.mark.parametrize(
    "scores, grades",
    [
        ([[1.0, 2.0, 3.0]], [[1, 1, 1]]),
        ([[1.0, 2.0, 3.0]], [[0, 0, 0]]),
        ([[1.0]], [[2]]),
        ([[1.0, math.nan]], [[2, -1]]),
        ([[math.nan, math.inf]], [[-1, -1]]),
    ],
    ids=["one grade", "all grade 0", "one item", "one item beside padding", "padding alone"],
)
def test_lists_with_nothing_to_learn_are_zero_with_a_zero_gradient(loss, scores, grades):
    scores = torch.tensor(scores, requires_grad=True)
    value = loss(scores, torch.tensor(grades))
    value.backward()
    # No sign either: a trainer would print -0.0.
    assert str(value.item()) == "0.0" and torch.equal(scores.grad, torch.zeros_like(scores))


@pytest.mark.parametrize("loss", GRADED)
def test_lists_with_nothing_to_learn_count_in_the_mean(loss):
    alone = loss(torch.tensor([[0.0, 1.0]]), torch.tensor([[1, 0]]))
    both = loss(torch.tensor([[0.0, 1.0], [0.0, 1.0]]), torch.tensor([[1, 0], [1, 1]]))
    torch.testing.assert_close(both, alone / 2)


@with_distillation
@pytest.mark.parametrize("shape", [(0, 4), (0, 0), (3, 0)])
def test_empty_batches_are_zero_and_keep_the_graph(loss, shape):
    scores = torch.zeros(shape, requires_grad=True)
    value = loss(scores, torch.zeros(shape, dtype=torch.int64))
    value.backward()
    assert value.item() == 0 and value.shape == () and scores.grad.shape == shape


@with_distillation
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("autocast", [False, True])
def test_losses_are_float32_under_autocast_and_float64_for_float64(loss, dtype, autocast):
    scores = torch.randn(4, 6, generator=torch.Generator().manual_seed(1)).mul(3).to(dtype)
    grades = torch.tensor([[2, 1, 1, 0, 0, -1]]).expand(4, -1)
    double = dtype == torch.float64
    expected = value_and_gradient(loss, scores if double else scores.float(), grades)
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
        value, gradient = value_and_gradient(loss, scores, grades)
    assert value.dtype == (torch.float64 if double else torch.float32) and gradient.dtype == dtype
    assert value.item() == expected[0].item()
    assert torch.equal(gradient, expected[1].to(dtype))


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_score_that_is_not_finite_is_named(value):
    scores = torch.zeros(3, 4)
    scores[1, 2] = scores[2, 3] = value
    grades = torch.tensor([[2, 1, 0, 0]]).expand(3, -1)
    for loss in GRADED:
        with pytest.raises(ValueError, match=rf"scores\[1, 2\] is {value} .*list 1 .*item 2; 2 such of 12"):
            loss(scores, grades)
    with pytest.raises(ValueError, match=r"student_scores\[1, 2\]"):
        rank_distillation_loss(scores, torch.zeros(3, 4))
    with pytest.raises(ValueError, match=r"teacher_scores\[1, 2\]"):
        rank_distillation_loss(torch.zeros(3, 4), scores)


@pytest.mark.parametrize("loss", GRADED)
@pytest.mark.parametrize(
    "scores, grades, message",
    [
        (torch.zeros(3), torch.zeros(3), r"scores have shape \(3,\); expected \[batch, list\]"),
        (torch.zeros(2, 3, 1), torch.zeros(2, 3, 1), r"scores have shape \(2, 3, 1\)"),
        (torch.zeros(2, 3), torch.zeros(2, 1), r"grades has shape \(2, 1\) and scores \(2, 3\)"),
        (torch.zeros(2, 3), torch.zeros(3), r"grades has shape \(3,\)"),
        (torch.zeros(1, 2, dtype=torch.int64), torch.zeros(1, 2), "scores are torch.int64; expected a tensor"),
        ([[0.0, 1.0]], torch.zeros(1, 2), "scores are a list"),
        (torch.zeros(1, 2), [[1, 0]], "grades are a list"),
        (torch.zeros(1, 2), torch.tensor([[1, -100]]), r"grades\[0, 1\] is -100.* or -1"),
        (torch.zeros(1, 2), torch.tensor([[1.0, math.nan]]), r"grades\[0, 1\] is nan"),
        (torch.zeros(1, 2), torch.tensor([[math.inf, 0.0]]), r"grades\[0, 0\] is inf"),
    ],
)
def test_wrong_input_is_a_value_error(loss, scores, grades, message):
    with pytest.raises(ValueError, match=message):
        loss(scores, grades)


def test_wrong_keywords_are_a_value_error():
    scores, grades = torch.zeros(1, 2), torch.tensor([[1, 0]])
    for temperature in (0, -1.0, math.nan, math.inf):
        with pytest.raises(ValueError, match="temperature is"):
            info_nce_loss(scores, grades, temperature)
        with pytest.raises(ValueError, match="temperature is"):
            rank_distillation_loss(scores, scores, temperature)
    for loss in GRADED:
        with pytest.raises(ValueError, match="num_lists is 0"):
            loss(scores, grades, num_lists=0)
    with pytest.raises(ValueError, match="mask is torch.int64; expected a bool tensor"):
        rank_distillation_loss(scores, scores, mask=grades)
    with pytest.raises(ValueError, match="mask has shape"):
        rank_distillation_loss(scores, scores, mask=torch.ones(1, 1, dtype=torch.bool))
    with pytest.raises(ValueError, match="teacher_scores has shape"):
        rank_distillation_loss(scores, torch.zeros(1, 3))


@with_distillation
@pytest.mark.filterwarnings("ignore:Anomaly Detection")
def test_no_step_of_the_backward_pass_is_nan(loss):
    # Where such a NaN is masked later it costs nothing, except to those who search for another one in this mode.
    scores, grades = padded([*random_lists(2), ([], []), ([1.0, 2.0], [1, 1])], 7)
    with torch.autograd.detect_anomaly():
        loss(scores, grades).backward()


def test_input_is_left_as_it_is():
    scores, grades = padded(random_lists(2), 7)
    before = scores.detach().clone(), grades.clone()
    for loss in GRADED:
        loss(scores, grades).backward()
    rank_distillation_loss(scores, before[0], mask=grades >= 0).backward()
    torch.testing.assert_close(scores.detach(), before[0], equal_nan=True, rtol=0, atol=0)
    assert torch.equal(grades, before[1])


@pytest.mark.slow
def test_equals_lambda_loss_of_sentence_transformers_where_the_two_agree():
    """One list without ties: LambdaRank weights and natural logarithm, and the mean over its pairs made the sum."""
    losses = pytest.importorskip(
        "sentence_transformers.cross_encoder.losses", reason="sentence-transformers is not installed"
    )

    class Scores(torch.nn.Module):
        """Stands where a cross-encoder stands, and answers with given scores."""

        num_labels, device = 1, torch.device("cpu")

        def preprocess(self, pairs, prompt=None, task=None):
            return {"index": torch.tensor([int(document) for _, document in pairs])}

        def forward(self, tokens):
            return {"scores": self.values[tokens["index"]]}

    model = Scores()
    peer = losses.LambdaLoss(model, losses.LambdaRankScheme(), reduction_log="natural", mini_batch_size=-1)
    generator = torch.Generator().manual_seed(0)
    for size in (2, 3, 6, 30):
        model.values = torch.randn(size, generator=generator).mul(4).requires_grad_()
        grades = torch.randint(0, 3, (size,), generator=generator)
        grades[0], grades[1] = 2, 0
        theirs = peer([["query"], [[str(i) for i in range(size)]]], [grades]) * len(pairs_of(grades.tolist()))
        ours, gradient = value_and_gradient(delta_ndcg_loss, model.values[None], grades[None])
        torch.testing.assert_close(ours, theirs.detach(), rtol=1e-5, atol=1e-6)
        torch.testing.assert_close(gradient[0], *torch.autograd.grad(theirs, model.values), rtol=1e-4, atol=1e-6)
