"""Quality-aware code search: find the code that does what was asked, and among it the code that is fast, lean and
maintainable.

Importing the package is cheap: every public name is resolved on first use, so `import hf_qualcode` loads neither
torch nor any other large library.
"""

from importlib import import_module


__version__ = "0.1.0"

_PUBLIC = {
    "CodeIndex": "hf_qualcode.retrieve.index",
    "CodeSearcher": "hf_qualcode.retrieve.search",
    "Hit": "hf_qualcode.types",
    "Reranker": "hf_qualcode.rerank.reranker",
    "instruction_for": "hf_qualcode.quality",
    "losses": None,
    "metrics": None,
    "register_metrics": "hf_qualcode.registration",
}

__all__ = ["__version__", *sorted(_PUBLIC)]


def __getattr__(name: str):
    if name not in _PUBLIC:
        raise AttributeError(f"module 'hf_qualcode' has no attribute {name!r}; public names: {', '.join(__all__)}")
    module = _PUBLIC[name]
    value = import_module(f"hf_qualcode.{name}") if module is None else getattr(import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
