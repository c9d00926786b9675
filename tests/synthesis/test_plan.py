"""The plan: which requests there are, and keys that tell them apart and never change."""

import hashlib
import itertools
import json
import subprocess
import sys
from collections import Counter
from dataclasses import asdict, replace

import pytest

from hf_qualcode.quality import dimension_names
from hf_qualcode.quality.guidelines import guideline_groups
from hf_qualcode.synthesis import plan as plan_module
from hf_qualcode.synthesis.plan import Plan, RecordKey
from hf_qualcode.synthesis.prompts import prompt_version, render_prompt
from hf_qualcode.synthesis.tasks import Task
from hf_qualcode.types import UsageError


TASKS = [Task("a", "Add."), Task("b", "Sort."), Task("c", "Search.")]
SAMPLING = {"temperature": 0.7, "seed": 42}


def test_each_task_quality_and_level_is_asked_as_often_and_takes_all_groups():
    plan = Plan(TASKS, "m", SAMPLING, num_samples=4)
    requests = list(plan)
    assert len(requests) == len(plan) == 3 * 3 * 2 * 4
    asked = Counter((r.key.task_id, r.key.dimension, r.key.level, r.key.group) for r in requests)
    assert set(asked.values()) == {1}
    for request in requests:
        assert request.key.group in guideline_groups(request.key.dimension)


def test_each_request_asks_for_what_its_key_says():
    for options in ({}, {"guided": False}, {"language": "java", "dimensions": ["memory"]}):
        for request in Plan(TASKS, "m", SAMPLING, **options):
            key = request.key
            query = {task.id: task.query for task in TASKS}[key.task_id]
            assert request.prompt == render_prompt(
                query, key.dimension, key.level, key.group or None, language=key.language
            )
            assert (key.model, key.language) == ("m", options.get("language", "python"))


def test_requests_are_in_the_order_of_tasks_qualities_levels_and_samples():
    keys = list(Plan(TASKS, "m", SAMPLING, dimensions=["memory", "speed"], num_samples=2).request_keys())
    assert [(key.task_id, key.dimension, key.level, key.sample) for key in keys] == [
        *itertools.product("abc", ["memory", "speed"], ["high", "low"], range(2))
    ]


def test_more_samples_than_groups_begin_anew():
    keys = list(Plan(TASKS[:1], "m", SAMPLING, dimensions=["speed"], num_samples=6).request_keys())
    groups = [key.group for key in keys if key.level == "high"]
    assert groups == [*guideline_groups("speed"), *guideline_groups("speed")[:2]]
    assert [key.sample for key in keys] == [*range(6), *range(6)]


def test_without_guidelines_there_is_no_group_and_as_many_requests():
    plan = Plan(TASKS, "m", SAMPLING, guided=False)
    assert {key.group for key in plan.request_keys()} == {""}
    assert len({key.digest() for key in plan.request_keys()}) == len(plan) == 72
    assert "Guidelines" not in next(iter(plan)).prompt.user


def test_a_digest_is_sha256_of_the_key_as_sorted_json():
    key = RecordKey("m", "0123456789ab", "python", "speed", "low", "speed/patterns", "t\u00e9", 2, "ff", '{"seed": 1}')
    # Written out by hand, so that a stored digest means the same in every version.
    text = (
        '{"dimension": "speed", "group": "speed/patterns", "language": "python", "level": "low", "model": "m", '
        '"prompt_version": "0123456789ab", "sample": 2, "sampling": "{\\"seed\\": 1}", "statement": "ff", '
        '"task_id": "t\\u00e9"}'
    )
    assert key.digest() == hashlib.sha256(text.encode()).hexdigest()
    assert key.digest() == "96f0f35b0761c98a1462e06b295f5def0440b0078cdf0a34d319d8ba306d39de"
    assert RecordKey.of(json.loads(json.dumps(key.to_dict()))) == key


def test_a_plan_in_another_process_has_the_same_keys_and_seeds():
    program = (
        "from hf_qualcode.synthesis.plan import Plan; from hf_qualcode.synthesis.tasks import Task\n"
        "for r in Plan([Task('a', 'Add.')], 'm', {'seed': 42, 'temperature': 0.7}): print(r.key.digest(), r.seed)"
    )
    printed = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout
    assert printed.splitlines() == [f"{r.key.digest()} {r.seed}" for r in Plan(TASKS[:1], "m", SAMPLING)]


def test_the_statement_and_the_seed_are_parts_of_digests():
    request = next(iter(Plan(TASKS, "m", SAMPLING)))
    # Of "Add.", by `printf Add. | sha256sum`.
    assert request.key.statement == "80a7ba692bbefc6c"
    assert request.key.sampling == '{"seed": 42, "temperature": 0.7}'
    # The first 32 bits of the digest without the highest one: a run that is resumed draws as it would have drawn.
    assert request.seed == int(request.key.digest()[:8], 16) % 2**31


def test_seeds_differ_and_fit_into_31_bits():
    seeds = [request.seed for request in Plan(TASKS, "m", SAMPLING, num_samples=20)]
    assert len(set(seeds)) == len(seeds)
    assert all(0 <= seed < 2**31 for seed in seeds)
    assert max(seeds) > 2**29


def _digests(tasks=TASKS, model="m", sampling=SAMPLING, **options):
    return {key.digest() for key in Plan(tasks, model, sampling, **options).request_keys()}


@pytest.mark.parametrize(
    "change",
    [
        {"model": "n"},
        {"sampling": {**SAMPLING, "temperature": 0.8}},
        {"sampling": {**SAMPLING, "seed": 43}},
        {"tasks": [replace(task, query=task.query + "!") for task in TASKS]},
        {"tasks": [replace(task, id=task.id + "!") for task in TASKS]},
        {"guided": False},
        {"language": "java"},
    ],
)
def test_whatever_shapes_an_answer_makes_new_keys(change):
    assert not _digests() & _digests(**change)


def test_so_does_another_version_of_the_prompts(monkeypatch):
    before = _digests()
    monkeypatch.setattr(plan_module, "prompt_version", lambda: "another")
    assert not before & _digests()


def test_more_samples_qualities_or_tasks_keep_the_keys_there_were():
    few = _digests(TASKS[:1], dimensions=["speed"], num_samples=2)
    assert few < _digests(TASKS[:1], dimensions=["speed"], num_samples=3)
    assert few < _digests(TASKS[:1], num_samples=2)
    assert few < _digests(TASKS, dimensions=["speed"], num_samples=2)
    assert _digests(sampling=dict(reversed(SAMPLING.items()))) == _digests()


def test_one_sample_is_of_the_first_group():
    keys = list(Plan(TASKS, "m", SAMPLING, num_samples=1).request_keys())
    assert len(keys) == 3 * 3 * 2
    assert {key.group for key in keys} == {guideline_groups(name)[0] for name in dimension_names()}


def test_repeated_qualities_count_once():
    assert len(Plan(TASKS, "m", SAMPLING, dimensions=["speed", "speed"])) == 24


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"num_samples": 0}, "--samples 0: 1 or more"),
        ({"num_samples": -1}, "--samples -1: 1 or more"),
        ({"dimensions": ["speed", "colour"]}, "unknown quality 'colour'; choose from: speed, memory, maintainability"),
        ({"dimensions": []}, "unknown quality ''; choose from: speed, memory, maintainability"),
    ],
)
def test_numbers_and_names_out_of_range_are_usage_errors(options, said):
    with pytest.raises(UsageError, match=said):
        Plan(TASKS, "m", SAMPLING, **options)


def test_a_quality_without_guidelines_says_what_to_do(monkeypatch):
    monkeypatch.setattr(plan_module, "guideline_groups", lambda name: ())
    with pytest.raises(UsageError, match=r"speed has no guidelines; write its GUIDELINES, or use --no-guidelines$"):
        Plan(TASKS, "m", SAMPLING)
    assert len(Plan(TASKS, "m", SAMPLING, guided=False)) == 72


@pytest.mark.parametrize("change", [{"sample": "2"}, {"model": 5}, {"group": None}])
def test_a_stored_key_of_other_types_is_none(change):
    key = next(Plan(TASKS, "m", SAMPLING).request_keys())
    with pytest.raises(TypeError):
        RecordKey.of(asdict(key) | change)
    with pytest.raises(KeyError):
        RecordKey.of({name: value for name, value in asdict(key).items() if name not in change})


def test_the_version_is_that_of_the_prompts():
    keys = list(Plan(TASKS, "m", SAMPLING).request_keys())
    assert {key.prompt_version for key in keys} == {prompt_version()}
    assert {key.dimension for key in keys} == set(dimension_names())
