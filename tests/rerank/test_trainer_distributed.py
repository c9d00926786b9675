"""Two real processes train as one does. Launched as users launch them: `accelerate launch` with a configuration."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.rerank import two_processes
from tests.rerank.tiny import save_tiny_decoder, save_tiny_encoder


ROOT = Path(__file__).parents[2]
# MULTI_CPU starts one process, silently; this starts two with gloo.
LAUNCH = """\
compute_environment: LOCAL_MACHINE
distributed_type: MULTI_GPU
gpu_ids: all
num_machines: 1
num_processes: 2
machine_rank: 0
main_process_port: 0
mixed_precision: 'no'
use_cpu: true
"""


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return save_tiny_encoder(tmp_path_factory.mktemp("encoder"))


@pytest.fixture(scope="module")
def decoder(tmp_path_factory):
    return save_tiny_decoder(tmp_path_factory.mktemp("decoder"))


def run(folder, processes, **job):
    """What came of the run in each process; one alone is this process."""
    folder.mkdir(exist_ok=True)
    job = {"out": str(folder), **job, "model": str(job["model"])}
    if processes == 1:
        return [two_processes.run(job)]
    (folder / "launch.yaml").write_text(LAUNCH)
    start = [
        sys.executable, "-m", "accelerate.commands.launch", "--config_file", str(folder / "launch.yaml"),
        "--module", "tests.rerank.two_processes",
    ]  # fmt: skip
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [*start, json.dumps(job)], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    results = [json.loads(path.read_text()) for path in sorted(folder.glob("result-*.json"))]
    assert [result["world"] for result in results] == [processes] * processes
    return results


def check_alike(one, two, tolerance):
    first, second = two
    assert first["digest"] == second["digest"]  # both hold the same model
    assert first["scores"] == second["scores"]
    assert first["loss"] == pytest.approx(one["loss"], rel=1e-4)
    assert first["weights"] == pytest.approx(one["weights"], abs=tolerance)
    assert first["scores"] == pytest.approx(one["scores"], abs=1e-3)
    assert first["metrics"] == pytest.approx(one["metrics"], abs=1e-6)


# 11 lists in steps of 4: the last step has 3, so that one process is given a list that the other has had.
@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("encoder", {"per_device_train_batch_size": 1, "gradient_accumulation_steps": 2}),
        pytest.param("encoder", {"chunk_size": 2, "activation_checkpointing": True}, marks=pytest.mark.slow),
        pytest.param("decoder", {}, marks=pytest.mark.slow),
    ],
    ids=["accumulation", "chunks and checkpointing", "decoder"],
)
def test_two_processes_and_one_have_the_same_curve(kind, settings, request, tmp_path):
    model, whole = request.getfixturevalue(kind), {"per_device_train_batch_size": 4, "num_train_epochs": 2}
    [one] = run(tmp_path / "one", 1, model=model, lists=11, settings=whole)
    assert len(one["loss"]) == 6
    settings = {**whole, "per_device_train_batch_size": 2, **settings}
    check_alike(one, run(tmp_path / "two", 2, model=model, lists=11, settings=settings), tolerance=1e-4)


@pytest.mark.slow
def test_processes_that_must_run_equally_many_batches_do(encoder, tmp_path):
    for size in (None, 2):
        whole = {"per_device_train_batch_size": 4, "chunk_size": size}
        [one] = run(tmp_path / f"one {size}", 1, model=encoder, lists=11, settings=whole)
        settings = {**whole, "per_device_train_batch_size": 2}
        two = run(tmp_path / f"two {size}", 2, model=encoder, lists=11, settings=settings, in_step=True)
        check_alike(one, two, tolerance=1e-4)


@pytest.mark.slow
def test_two_processes_resume(encoder, tmp_path):
    settings = {
        "per_device_train_batch_size": 1, "gradient_accumulation_steps": 2, "num_train_epochs": 2, "save_steps": 1,
        "save_strategy": "steps", "optim": "adamw_torch", "learning_rate": 1e-3, "dropout": 0.1,
    }  # fmt: skip
    job = {"model": encoder, "lists": 11, "settings": settings, "adapter": True}
    whole = run(tmp_path / "whole", 2, **job)
    resumed = run(tmp_path / "resumed", 2, **job, resume=str(tmp_path / "whole" / "checkpoint-2"))
    assert resumed == whole
