"""NumPy's threads and torch's do not share the cores well."""

import contextlib
from functools import cache

from threadpoolctl import ThreadpoolController


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


@contextlib.contextmanager
def one_blas_thread():
    """Keep NumPy's matrix products in the calling thread.

    After a product OpenBLAS's threads wait for the next one at full speed for some milliseconds. On two cores that
    made encoding a query right after it three times slower (50 against 15 ms), and the product itself, one query
    against some ten thousand vectors, takes a millisecond.
    """
    with _controller().limit(limits=1, user_api="blas"):
        yield
