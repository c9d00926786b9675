"""SynH-Rank: rerankers that put relevant code first, and among it the fast, lean and maintainable.

`Reranker` is for use; `RerankConfig`, `RankingCollator` and `RerankTrainer` are for training. Everything is resolved
on first use, so importing the package loads nothing large.
"""

from importlib import import_module


_PUBLIC = {
    "CardFacts": "cards",
    "GradedVariant": "lists",
    "RankingCollator": "data",
    "RankingList": "data",
    "RerankConfig": "config",
    "RerankTrainer": "trainer",
    "Reranker": "reranker",
    "build_lists": "data",
    "lists_from_dataset": "data",
    "lists_from_pairs": "data",
    "lists_to_dataset": "data",
    "srcl_lists": "data",
}

__all__ = sorted(_PUBLIC)


def __getattr__(name: str):
    if name not in _PUBLIC:
        raise AttributeError(f"module 'hf_qualcode.rerank' has no attribute {name!r}; it has: {', '.join(__all__)}")
    value = getattr(import_module(f"hf_qualcode.rerank.{_PUBLIC[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
