"""Encoders for the tests of index and search."""

import pytest

from tests.conftest import save_tiny_bert


@pytest.fixture(scope="session")
def other_tiny_bert(tmp_path_factory):
    """The same architecture and tokenizer as `tiny_bert`, other weights."""
    return save_tiny_bert(tmp_path_factory.mktemp("other_tiny_bert"), seed=1)
