"""The writer `local` with a tiny real language model: draws that belong to requests, whatever runs beside them."""

import json
import shutil
from collections import Counter
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file, save_file

from hf_qualcode.synthesis.plan import Plan
from hf_qualcode.synthesis.store import RunStore
from hf_qualcode.synthesis.tasks import Task
from hf_qualcode.synthesis.writers import WriterSettings, load_writer
from hf_qualcode.synthesis.writers.local import LocalWriter, SeededSampler
from hf_qualcode.types import QualcodeError, UsageError
from tests.rerank.tiny import byte_pairs, save_tiny_decoder


TASKS = [Task("a", "Add."), Task("b", "Sort the numbers of a list, " * 8)]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    # What a model's own folder says of sampling must not reach the answers.
    folder = save_tiny_decoder(tmp_path_factory.mktemp("decoder"), max_position_embeddings=4096)
    config = json.loads((folder / "generation_config.json").read_text())
    config |= {"repetition_penalty": 50.0, "temperature": 0.01, "top_k": 1, "do_sample": True, "max_length": 3}
    (folder / "generation_config.json").write_text(json.dumps(config))
    return folder


def settings(model, **changes):
    return WriterSettings(**{"model": str(model), "max_tokens": 12, "batch_size": 4, **changes})


def plan_of(told, tasks=TASKS):
    # Not by the name of a folder that is another one in each run, or draws would be others too.
    return Plan(tasks, "tiny", {"temperature": told.temperature}, dimensions=["speed"], num_samples=3)


def write(told, folder, requests=None, writer=None):
    writer = writer or load_writer("local").open_writer(told)
    with RunStore(folder) as store:
        writer.write(plan_of(told) if requests is None else requests, store)
        return {record.key.digest(): record for record in store.records()}


@pytest.fixture(scope="module")
def whole(model, tmp_path_factory):
    return write(settings(model), tmp_path_factory.mktemp("whole"))


def test_every_request_has_an_answer_of_its_own(whole):
    assert len(whole) == 12
    assert len({record.answer for record in whole.values()}) == 12
    for record in whole.values():
        assert record.error is None
        assert record.usage["completion_tokens"] == 12 or record.finish_reason == "stop"
        assert record.usage["prompt_tokens"] > 100


def test_an_interrupted_run_ends_with_the_very_same_texts(model, whole, tmp_path, monkeypatch):
    def stop(_, done, __):
        if done == 6:
            raise KeyboardInterrupt

    told, sizes = settings(model), []
    writer = LocalWriter(told)
    with RunStore(tmp_path) as store, pytest.raises(KeyboardInterrupt):
        writer.write(plan_of(told), store, stop)
    generate = writer._generate
    monkeypatch.setattr(writer, "_generate", lambda ids, seeds: sizes.append(len(ids)) or generate(ids, seeds))
    assert write(told, tmp_path, writer=writer) == whole
    assert (writer.tally.known, writer.tally.written) == (6, 6)
    assert sizes == [4, 4], "a batch of which a part is known is computed again as a whole"


def test_answers_do_not_depend_on_what_shares_the_batch(model, whole, tmp_path):
    told = settings(model, batch_size=5)
    assert write(told, tmp_path, list(plan_of(told))[::-1]) == whole


def test_an_answer_ends_before_its_end_token_and_others_go_on(model, tmp_path):
    told = settings(model)
    requests = list(plan_of(told))[:4]
    writer = LocalWriter(told)
    prompts = [writer._tokenizer(writer._prompt(one), add_special_tokens=False)["input_ids"] for one in requests]
    rows = writer._generate(prompts, [request.seed for request in requests])
    end = rows[1][5]  # as if the model had learned to stop there
    writer._ends = writer._net.generation_config.eos_token_id = [end]
    found = write(told, tmp_path, requests, writer)
    for request, row in zip(requests, rows, strict=True):
        record = found[request.key.digest()]
        told_tokens = row[: row.index(end)] if end in row else row
        assert record.answer == writer._tokenizer.decode(told_tokens, skip_special_tokens=True)
        assert record.finish_reason == ("stop" if end in row else "length")
        assert record.usage["completion_tokens"] == (row.index(end) + 1 if end in row else 12)
    assert {record.finish_reason for record in found.values()} == {"stop", "length"}


def test_of_equal_requests_one_is_answered(model, whole, tmp_path):
    told = settings(model)
    first = next(iter(plan_of(told)))
    writer = LocalWriter(told)
    with RunStore(tmp_path) as store:
        writer.write([first, first, first], store)
        assert [record.key for record in store.records()] == [first.key]
    assert (writer.tally.written, writer.tally.known) == (1, 2)


def test_another_seed_is_another_answer(model, whole, tmp_path):
    told = settings(model)
    first = next(iter(plan_of(told)))
    writer = LocalWriter(told)
    others = [
        write(told, tmp_path / str(number), [replace(first, seed=first.seed + number)], writer)[first.key.digest()]
        for number in range(4)
    ]
    assert others[0] == whole[first.key.digest()]
    assert len({other.answer for other in others}) > 1


def test_it_says_what_it_did(model, tmp_path):
    told, stages = settings(model), []
    writer = LocalWriter(told)
    write(told, tmp_path, list(plan_of(told))[:4], writer)
    with RunStore(tmp_path) as store:
        writer.write(plan_of(told), store, lambda *state: stages.append(state))
    assert (writer.tally.written, writer.tally.known) == (8, 4)
    assert stages[-1] == ("requests answered", 8, 8)
    assert writer.tally.note().endswith("out")


def test_greedy_rows_of_a_batch_are_those_of_transformers_alone(model, tmp_path):
    """Left padding, masks and ends: the same as one row at a time by `generate` itself."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    told = settings(model, temperature=0.0, batch_size=3)
    found = write(told, tmp_path)
    tokenizer = AutoTokenizer.from_pretrained(model)
    net = AutoModelForCausalLM.from_pretrained(model).eval()
    for request in list(plan_of(told))[::3]:
        said = {"system": request.prompt.system, "user": request.prompt.user}
        messages = [{"role": role, "content": content} for role, content in said.items()]
        text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        tokens = tokenizer(text, add_special_tokens=False)["input_ids"]
        for _ in range(12):
            with torch.inference_mode():
                logits = net(torch.tensor([tokens])).logits[0, -1]
            tokens.append(int(logits.argmax()))
            if tokens[-1] == tokenizer.eos_token_id:
                break
        record = found[request.key.digest()]
        new = tokens[record.usage["prompt_tokens"] :]
        assert record.usage["completion_tokens"] == len(new)
        assert record.answer == tokenizer.decode(new, skip_special_tokens=True)


def _shares(logits, told):
    """Temperature, then top-k, then top-p, by hand."""
    order = sorted(range(len(logits)), key=lambda token: -logits[token])[: told.top_k or None]
    weights = torch.softmax(torch.tensor([logits[token] / told.temperature for token in order]).double(), dim=0)
    kept, total = {}, 0.0
    for token, weight in zip(order, weights.tolist(), strict=True):
        if kept and total >= told.top_p:
            break
        kept[token] = weight
        total += weight
    return {token: weight / total for token, weight in kept.items()}


@pytest.mark.parametrize(
    ("temperature", "top_p", "top_k"),
    [(1.0, 1.0, 0), (1.0, 1.0, 3), (0.7, 0.8, 20), (0.7, 0.8, 3), (2.0, 0.5, 0), (0.2, 0.01, 5)],
)
def test_draws_have_the_shares_they_should(temperature, top_p, top_k):
    told = WriterSettings(temperature=temperature, top_p=top_p, top_k=top_k)
    logits = [2.0, 0.5, 1.5, -1.0, 1.0, 0.0, -3.0, 1.9]
    shares = _shares(logits, told)
    rounds, rows = 40, 250
    sampler = SeededSampler(list(range(rows)), told)
    drawn = Counter()
    for _ in range(rounds):
        drawn.update(sampler.draw(torch.tensor([logits] * rows)).tolist())
    assert drawn.keys() == shares.keys()
    for token, share in shares.items():
        spread = (share * (1 - share) / (rounds * rows)) ** 0.5
        assert abs(drawn[token] / (rounds * rows) - share) <= 5 * spread + 1e-12


def test_a_draw_belongs_to_its_seed_whatever_stands_beside():
    told = WriterSettings()
    logits = torch.randn(5, 40, generator=torch.Generator().manual_seed(0))
    together = SeededSampler([3, 1, 4, 1, 5], told).draw(logits)
    for row, seed in enumerate([3, 1, 4, 1, 5]):
        assert SeededSampler([seed], told).draw(logits[row : row + 1]) == together[row]
    masked = SeededSampler([3, 1, 4, 1, 5], told)(torch.zeros(5, 1, dtype=torch.long), logits)
    assert (masked == 0).sum() == 5
    assert torch.equal(masked.argmax(dim=1), together)


def test_a_prompt_that_leaves_no_room_is_an_error_of_that_request_alone(model, tmp_path):
    told = settings(model, max_tokens=8)
    requests = list(plan_of(told, [TASKS[0], Task("long", "word " * 4000)]))
    found = write(told, tmp_path, requests)
    errors = {record.key.task_id: record.error for record in found.values()}
    assert errors["a"] is None
    assert "takes 4088" in errors["long"]
    assert "tokens, and" in errors["long"]


def test_more_new_tokens_than_places_is_a_usage_error(model, tmp_path):
    with pytest.raises(UsageError, match="--max-tokens 5000: .* has 4096 positions"):
        write(settings(model, max_tokens=5000), tmp_path)


def test_what_is_no_chat_model_says_so(tmp_path):
    bare = save_tiny_decoder(tmp_path / "bare", tokenizer=byte_pairs(chat_template=None))
    with pytest.raises(QualcodeError, match="has no chat template"):
        LocalWriter(settings(bare))
    refusing = save_tiny_decoder(
        tmp_path / "refusing", tokenizer=byte_pairs(chat_template="{{ raise_exception('no system here') }}")
    )
    with pytest.raises(QualcodeError, match="refuses a system and a user message .no system here"):
        write(settings(refusing), tmp_path / "run")
    with pytest.raises(QualcodeError, match="nowhere': no folder has this path"):
        LocalWriter(settings(tmp_path / "nowhere"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(QualcodeError, match="has no config.json"):
        LocalWriter(settings(tmp_path / "empty"))


def _without_a_weight(folder):
    weights = load_file(folder / "model.safetensors")
    del weights["model.layers.1.mlp.up_proj.weight"]
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda folder: (folder / "model.safetensors").write_bytes(b"\x08"), "header too small"),
        (_without_a_weight, "its weights lack model.layers.1.mlp.up_proj.weight, 1 in all"),
        (lambda folder: (folder / "config.json").write_text('{"model_type": "bert"}'), "its weights lack"),
        (lambda folder: (folder / "config.json").write_text('{"model_type": "qwen3", "hidden_size": "x"}'), "int"),
        (lambda folder: (folder / "config.json").write_text("[1]"), ""),
        (lambda folder: (folder / "tokenizer.json").write_text("{"), ""),
        (lambda folder: [path.unlink() for path in folder.glob("tokenizer*")], "its tokenizer has no vocabulary"),
    ],
    ids=["cut", "a weight less", "other weights", "odd config", "no config", "tokenizer", "no tokenizer"],
)
def test_a_damaged_folder_is_one_line(model, tmp_path, damage, said):
    folder = tmp_path / "model"
    shutil.copytree(model, folder)
    damage(folder)
    with pytest.raises(QualcodeError, match=f"cannot be loaded as a causal language model .*{said}") as caught:
        LocalWriter(settings(folder))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"batch_size": 0}, "--batch-size 0"),
        ({"max_tokens": 0}, "--max-tokens 0"),
        ({"temperature": -1.0}, "--temperature -1.0"),
        ({"temperature": float("nan")}, "--temperature nan"),
        ({"top_p": 0.0}, "--top-p 0.0"),
        ({"top_k": -3}, "--top-k -3"),
    ],
)
def test_numbers_out_of_range_are_usage_errors(model, changes, said):
    with pytest.raises(UsageError, match=said):
        LocalWriter(settings(model, **changes))


def test_without_smollm2_its_command_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("HF_QUALCODE_CACHE", str(tmp_path))
    with pytest.raises(QualcodeError, match="install-smollm2"):
        LocalWriter(WriterSettings())
