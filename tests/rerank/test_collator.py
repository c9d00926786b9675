"""The collator: ragged lists, shared inputs, length-sorted batches, packed prefixes, worker processes."""

import pickle
from dataclasses import replace

import pytest
import torch
from torch.utils.data import DataLoader

from hf_qualcode.rerank import RankingCollator, RankingList
from hf_qualcode.rerank.backbones import load_backbone
from hf_qualcode.rerank.data import lists_to_dataset
from hf_qualcode.types import QualcodeError, UsageError
from tests.rerank.material import ragged_lists
from tests.rerank.tiny import save_tiny_decoder, save_tiny_encoder


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return load_backbone(str(save_tiny_encoder(tmp_path_factory.mktemp("encoder"))), device="cpu")


@pytest.fixture(scope="module")
def decoder(tmp_path_factory):
    return load_backbone(str(save_tiny_decoder(tmp_path_factory.mktemp("decoder"))), device="cpu")


def list_scores(backbone, batch):
    """[lists, longest], NaN where padded."""
    with torch.no_grad():
        flat = torch.cat([backbone.scores(backbone.model, each) for each in batch["batches"]])
    return flat[batch["places"]].masked_fill(batch["grades"] < 0, torch.nan)


def single_scores(backbone, lists):
    """The same, one input at a time."""
    rows = torch.full((len(lists), max(len(each.codes) for each in lists)), torch.nan)
    for row, each in enumerate(lists):
        for column, code in enumerate(each.codes):
            encoded = backbone.encode([each.instruction], [each.query], [code]).inputs
            with torch.no_grad():
                rows[row, column] = backbone.scores(backbone.model, backbone.collate(encoded))[0]
    return rows


@pytest.mark.parametrize("name", ["encoder", "decoder"])
@pytest.mark.parametrize(
    "options", [{}, {"tokens_per_forward": 60}, {"inputs_per_forward": 2}, {"share_prefix": False}]
)
def test_every_item_gets_the_score_of_its_own_input(name, options, request):
    backbone, lists = request.getfixturevalue(name), ragged_lists(7)
    batch = RankingCollator(backbone, **options)(lists)
    torch.testing.assert_close(
        list_scores(backbone, batch), single_scores(backbone, lists), equal_nan=True, rtol=1e-4, atol=1e-5
    )
    for row, each in enumerate(lists):
        size = len(each.grades)
        assert tuple(batch["grades"][row].tolist()) == each.grades + (-1,) * (batch["grades"].shape[1] - size)


def test_batches_hold_inputs_of_like_length(encoder):
    lists = ragged_lists(20)
    batches = RankingCollator(encoder, tokens_per_forward=120)(lists)["batches"]
    real = sum(int(batch["attention_mask"].sum()) for batch in batches)
    padded = sum(batch["input_ids"].numel() for batch in batches)
    assert padded < 1.1 * real
    assert all(batch["input_ids"].numel() <= 120 or len(batch["input_ids"]) == 1 for batch in batches)
    lengths = [batch["input_ids"].shape[1] for batch in batches]
    assert lengths == sorted(lengths, reverse=True)


def test_an_input_that_lists_share_is_read_once(encoder):
    [one] = ragged_lists(1)
    lists = [one, replace(one, id="other", codes=one.codes[::-1], grades=one.grades[::-1])]
    batch = RankingCollator(encoder)(lists)
    assert sum(len(each["input_ids"]) for each in batch["batches"]) == len(one.codes)
    scores = list_scores(encoder, batch)
    torch.testing.assert_close(scores[0], scores[1].flip(0), rtol=0, atol=0)


def test_decoders_share_the_prefix_of_a_list(decoder):
    lists = ragged_lists(5)
    shared = RankingCollator(decoder)(lists)["batches"]
    apart = RankingCollator(decoder, share_prefix=False)(lists)["batches"]
    assert all("score_positions" in batch for batch in shared)
    assert sum(b["input_ids"].numel() for b in shared) < 0.8 * sum(b["input_ids"].numel() for b in apart)


def test_prefixes_are_not_packed_where_nothing_is_shared(decoder):
    lists = [replace(each, codes=each.codes[:1], grades=each.grades[:1]) for each in ragged_lists(5)]
    assert "score_positions" not in RankingCollator(decoder)(lists)["batches"][0]


def test_an_encoder_cannot_share_a_prefix(encoder):
    with pytest.raises(QualcodeError, match="no decoder"):
        RankingCollator(encoder, share_prefix=True)


def test_at_most_so_many_inputs_a_forward(encoder, decoder):
    lists = ragged_lists(4)
    for batch in RankingCollator(encoder, inputs_per_forward=3)(lists)["batches"]:
        assert len(batch["input_ids"]) <= 3
    for batch in RankingCollator(decoder, inputs_per_forward=3, share_prefix=True)(lists)["batches"]:
        assert len(batch["score_positions"]) <= 3


def test_tags_stand_before_the_code(encoder):
    def tags(code):
        return f"tagged {code}"

    lists = ragged_lists(2)
    tagged = [replace(each, codes=tuple(map(tags, each.codes))) for each in lists]
    check_equal(RankingCollator(encoder, tags=tags)(lists), RankingCollator(encoder)(tagged))


def test_teacher_scores(encoder):
    taught = ragged_lists(3, teacher=True)
    batch = RankingCollator(encoder, distillation=True)(taught)
    for row, each in enumerate(taught):
        torch.testing.assert_close(batch["teacher_scores"][row, : len(each.codes)], torch.tensor(each.teacher_scores))
    with pytest.raises(QualcodeError, match="has no teacher scores, and the loss distils them"):
        RankingCollator(encoder, distillation=True)(ragged_lists(3))
    with pytest.raises(QualcodeError, match=r"others have \(1 of 4 without\)"):
        RankingCollator(encoder)([*taught, *ragged_lists(1)])


def check_equal(here, there):
    assert torch.equal(there["places"], here["places"]) and torch.equal(there["grades"], here["grades"])
    for a, b in zip(there["batches"], here["batches"], strict=True):
        assert a.keys() == b.keys() and all(torch.equal(a[key], b[key]) for key in a)


@pytest.mark.parametrize("name", ["encoder", "decoder"])
def test_a_copy_for_another_process_gives_the_same_batches_and_has_no_weights(name, request):
    backbone, lists = request.getfixturevalue(name), ragged_lists(6)
    collator = RankingCollator(backbone)
    sent = pickle.dumps(collator)
    assert backbone.model is not None and pickle.loads(sent).backbone.model is None
    assert len(sent) < len(pickle.dumps(backbone.tokenizer)) * 4
    check_equal(collator(lists), pickle.loads(sent)(lists))


@pytest.mark.parametrize(
    "start", ["fork", pytest.param("spawn", marks=pytest.mark.slow)]  # starting anew imports torch in each worker
)
def test_worker_processes_give_the_same_batches(start, decoder):
    lists = ragged_lists(6)
    collator = RankingCollator(decoder)
    loader = DataLoader(
        lists_to_dataset(lists), batch_size=3, collate_fn=collator, num_workers=2, multiprocessing_context=start
    )
    for there, first in zip(loader, (0, 3), strict=True):
        check_equal(collator(lists[first : first + 3]), there)


def test_odd_texts_have_tensors(encoder, decoder):
    odd = RankingList("odd", "", "", ("", "\ud800", "x" * 5000, "\x00"), (2, 1, 0, 0))
    for backbone in (encoder, decoder):
        batch = RankingCollator(backbone)([odd])
        scores = list_scores(backbone, batch)
        assert scores.shape == (1, 4) and scores.isfinite().all()


def test_wrong_options_and_rows(encoder):
    with pytest.raises(UsageError, match="share_prefix is 'yes'; choose from: auto, True, False"):
        RankingCollator(encoder, share_prefix="yes")
    with pytest.raises(UsageError, match="tokens_per_forward is 0"):
        RankingCollator(encoder, tokens_per_forward=0)
    with pytest.raises(QualcodeError, match="row 0 has no instruction"):
        RankingCollator(encoder)([{"query": "q"}])
