"""Encoders for the tests of index and search."""

import pytest

from tests.conftest import save_tiny_bert


@pytest.fixture(scope="session")
def other_tiny_bert(tmp_path_factory):
    """The same architecture and tokenizer as `tiny_bert`, other weights."""
    return save_tiny_bert(tmp_path_factory.mktemp("other_tiny_bert"), seed=1)


@pytest.fixture
def encoded(monkeypatch):
    """The texts that transformers encode from now on, in order."""
    from hf_qualcode.encoders import transformer

    texts_seen = []
    original = transformer.TransformerEncoder.encode

    def counting(self, texts, **options):
        texts_seen.extend(texts)
        return original(self, texts, **options)

    monkeypatch.setattr(transformer.TransformerEncoder, "encode", counting)
    return texts_seen
