"""From a name on the command line to the system it means: a searcher for retrieval, a scorer for the rest."""

import json
from collections.abc import Callable
from functools import partial
from importlib import import_module
from inspect import signature
from pathlib import Path
from pkgutil import iter_modules


def find_searcher(name: str) -> Callable:
    """The function `build(corpus_ids, corpus_texts, *, progress) -> Searcher` of a baseline's module or an encoder.

    Raises:
        `UsageError`: On a name that is none of these.
    """
    from hf_qualcode.types import UsageError

    build = _of_module(name, "build")
    if build is not None:
        return build
    if _may_be_model(name):
        from hf_qualcode.baselines.dense import encoder_searcher

        return partial(encoder_searcher, name)
    legal = ", ".join(_modules_with("build"))
    raise UsageError(f"unknown model {name!r}: one of {legal}, an encoder's folder or Hub id, a run file")


def find_scorer(name: str, progress: Callable[[str, int, int | None], None] | None = None):
    """The scorer that a name means: a baseline's module, a trivial scorer, a reranker or an encoder's cosine.

    Args:
        name (`str`):
            A module of `hf_qualcode.baselines` with `scorer()` (`bundled` is one), a name of `trivial_baselines()`, a
            model's folder or Hub id. A sequence classifier, a causal language model and an adapter are rerankers; of
            any other model the cosine is taken.
        progress (`Callable`, *optional*): Called as `progress(stage, done, total)` where the scorer can.

    Returns:
        `Scorer` or `TrainableScorer`.

    Raises:
        `UsageError`: On a name that is none of these.
        `QualcodeError`: On a model that cannot be loaded.
    """
    from hf_qualcode.types import UsageError

    scorer = _of_module(name, "scorer")
    if scorer is not None:
        return scorer(progress=progress) if "progress" in signature(scorer).parameters else scorer()
    trivial = {each.name: each.scorer for each in _trivial_baselines()}
    if name in trivial:
        return trivial[name]
    if _may_be_model(name):
        return _model_scorer(name, progress)
    legal = ", ".join(dict.fromkeys([*_modules_with("scorer"), *trivial]))
    raise UsageError(f"unknown model {name!r}: one of {legal}, a model's folder or Hub id, a file of scores")


def _trivial_baselines() -> list:
    from hf_qualcode.baselines.controls import trivial_baselines

    return list(trivial_baselines())


def _model_scorer(name: str, progress):
    if _is_reranker(name):
        from hf_qualcode.baselines.reranker import reranker_scorer

        return reranker_scorer(name, progress=progress)
    from hf_qualcode.baselines.dense import encoder_scorer

    return encoder_scorer(name, progress=progress)


def _is_reranker(name: str) -> bool:
    from hf_qualcode.hub import resolve_model

    folder = resolve_model(name)
    if (folder / "adapter_config.json").is_file():
        return True
    config = _json_of(folder / "config.json")
    architectures = config.get("architectures") if isinstance(config, dict) else None
    names = [str(name) for name in architectures] if isinstance(architectures, list) else []
    if any(name.endswith("ForSequenceClassification") for name in names):
        return True
    # A decoder that was trained to embed has a pooling; its causal head is left over.
    modules = _json_of(folder / "modules.json")
    pools = isinstance(modules, list) and any("Pooling" in str(module) for module in modules)
    return not pools and any(name.endswith("ForCausalLM") for name in names)


def _json_of(path: Path):
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):  # whoever loads the model says what is wrong with it
        return None


def _of_module(name: str, function: str) -> Callable | None:
    from hf_qualcode import baselines

    if name not in [module.name for module in iter_modules(baselines.__path__)]:
        return None
    return getattr(import_module(f"{baselines.__name__}.{name}"), function, None)


def _modules_with(function: str) -> list[str]:
    from hf_qualcode import baselines

    names = [module.name for module in iter_modules(baselines.__path__)]
    return [name for name in names if hasattr(import_module(f"{baselines.__name__}.{name}"), function)]


def _may_be_model(name: str) -> bool:
    return Path(name).is_dir() or name.count("/") == 1
