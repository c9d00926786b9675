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
    """The scorer that a name means: a baseline's module, a trivial scorer, a cross-encoder or an encoder's cosine.

    Args:
        name (`str`):
            A module of `hf_qualcode.baselines` with `scorer()`, a name of `trivial_baselines()`, a model's folder or
            Hub id. A model whose configuration says sequence classification is a cross-encoder; of any other the
            cosine is taken.
        progress (`Callable`, *optional*): Called as `progress(stage, done, total)` where the scorer can.

    Returns:
        `Scorer` or `TrainableScorer`.

    Raises:
        `UsageError`: On a name that is none of these.
        `QualcodeError`: On a model that cannot be loaded.
    """
    from hf_qualcode.types import UsageError

    if name == "bundled":
        raise UsageError("this version holds no trained reranker yet: name a baseline, a model's folder or a Hub id")
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
    from hf_qualcode.hub import resolve_model

    if _is_classifier(resolve_model(name)):
        from hf_qualcode.baselines.cross_encoder import cross_encoder_scorer

        return cross_encoder_scorer(name, progress=progress)
    from hf_qualcode.baselines.dense import encoder_scorer

    return encoder_scorer(name, progress=progress)


def _is_classifier(folder: Path) -> bool:
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):  # whoever loads the model says what is wrong with it
        return False
    architectures = config.get("architectures") if isinstance(config, dict) else None
    return any(str(name).endswith("ForSequenceClassification") for name in architectures or ())


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
