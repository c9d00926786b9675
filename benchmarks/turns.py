"""Contestants that take turns in one process, for the benchmarks beside this file."""

import os
import platform
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np


class Turns(NamedTuple):
    """What one contestant took in its fastest turn, and what it returned last.

    Attributes:
        wall (`float`): Seconds.
        cpu (`float`): Seconds of all threads; says more than `wall` where other processes keep the machine busy, but
            counts threads that spin while they wait.
        result (`Any`): Of the last turn.
    """

    wall: float
    cpu: float
    result: Any


def take_turns(contestants: Mapping[str, Callable[[], Any]], rounds: int) -> dict[str, Turns]:
    """Runs A B C, C B A, A B C ..., so that a machine that grows slower or faster is nobody's luck."""
    walls, cpus, results = {name: [] for name in contestants}, {name: [] for name in contestants}, {}
    for number in range(rounds):
        names = list(contestants) if number % 2 == 0 else list(contestants)[::-1]
        for name in names:
            wall, cpu = time.perf_counter(), time.process_time()
            results[name] = contestants[name]()
            walls[name].append(time.perf_counter() - wall)
            cpus[name].append(time.process_time() - cpu)
    return {name: Turns(min(walls[name]), min(cpus[name]), results[name]) for name in contestants}


def fastest(trial: Mapping[Any, Callable[[], Any]]) -> Any:
    """The key of the trial that takes the least time of two."""
    turns = take_turns(trial, 2)
    return min(turns, key=lambda key: turns[key].wall)


def quiet_transformers() -> None:
    """No progress bars and no reports about heads that are drawn at random, which is what is wanted here."""
    import transformers

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()


def machine() -> dict[str, Any]:
    """Processor, threads and versions, as far as they decide speed."""
    import torch
    import transformers

    return {
        "processor": platform.processor() or platform.machine(),
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "threads": torch.get_num_threads(),
        "load": os.getloadavg()[0],
        "torch": torch.__version__,
        "transformers": transformers.__version__,
    }


def show_machine(said: Mapping[str, Any]) -> None:
    print("  " + ", ".join(f"{name} {value}" for name, value in said.items()))


def kendall(first: np.ndarray, second: np.ndarray) -> float:
    """Concordant minus discordant pairs over all pairs of entries; a pair tied in either counts 0 (tau-a)."""
    rows, columns = np.triu_indices(len(first), 1)
    agree = np.sign(first[rows] - first[columns]) * np.sign(second[rows] - second[columns])
    return float(agree.mean())
