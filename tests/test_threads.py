"""Work side by side gives what work in turn gives, in order, and leaves the thread settings as they were."""

import threading

import pytest
import torch

from hf_qualcode.threads import map_side_by_side, one_blas_thread


@pytest.fixture
def three_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


def test_results_come_in_order_with_one_torch_thread_each(three_threads):
    seen = set()

    def run(item):
        seen.add((threading.get_ident(), torch.get_num_threads()))
        return item * item

    assert list(map_side_by_side(run, range(50))) == [(i, i * i) for i in range(50)]
    assert {num_threads for _, num_threads in seen} == {1}
    assert threading.get_ident() not in {ident for ident, _ in seen}
    assert torch.get_num_threads() == 3


def test_a_failure_is_raised_and_ends_the_rest(three_threads):
    started = []

    def run(item):
        started.append(item)
        if item == 3:
            raise ValueError("three")
        return item

    with pytest.raises(ValueError, match="three"):
        list(map_side_by_side(run, range(1000)))
    assert len(started) < 100
    assert torch.get_num_threads() == 3


def test_with_one_thread_nothing_is_started(three_threads):
    torch.set_num_threads(1)
    threads = {item: threading.get_ident() for item, _ in map_side_by_side(lambda item: item, range(3))}
    assert set(threads.values()) == {threading.get_ident()}


def test_blas_threads_are_given_back():
    from threadpoolctl import threadpool_info

    def blas():
        return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]

    before = blas()
    with one_blas_thread():
        assert set(blas()) <= {1}
    assert blas() == before
