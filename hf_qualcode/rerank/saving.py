"""A reranker's folder: whole or not there, and one that the stock tools take as it is.

A full model is read by `AutoModelForSequenceClassification` (weights and configuration at the top),
sentence-transformers' `CrossEncoder` (modules.json and its companions, raw logits) and text-embeddings-inference (one
stock architecture, one label with a name, tokenizer.json). No code is ever written there.
"""

import contextlib
import fcntl
import glob
import json
import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from safetensors import SafetensorError

from hf_qualcode.hub import MINILM, existing_path
from hf_qualcode.rerank.adapters import TASK_TYPE
from hf_qualcode.rerank.settings import (
    ADAPTER_FILE,
    ADAPTER_SETTINGS_FILE,
    CONFIG_FILE,
    KEY,
    RerankerSettings,
    read_json,
)
from hf_qualcode.types import QualcodeError, UsageError


logger = logging.getLogger(__name__)

CARD_FILE = "README.md"
RESULTS_FOLDER = ".eval_results"
RESULTS_FILE = f"{RESULTS_FOLDER}/hf-qualcode.yaml"
# What a saved reranker may consist of. A folder that holds anything else is not replaced.
OWN_FILES = (
    CONFIG_FILE, "model.safetensors", "model-*.safetensors", "model.safetensors.index.json", "tokenizer.json",
    "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "chat_template.jinja", "vocab.txt",
    "vocab.json", "merges.txt", "*.model", "generation_config.json", "modules.json",
    "config_sentence_transformers.json", "sentence_bert_config.json", ADAPTER_FILE, "adapter_model.safetensors",
    ADAPTER_SETTINGS_FILE, "fusion.safetensors", "fusion_words.json", "tags.safetensors", CARD_FILE, RESULTS_FOLDER,
)  # fmt: skip
# What a workplace may hold: the reranker to come, and the one to go.
_NEW, _OLD = "new", "old"
_IDENTITY = "torch.nn.modules.linear.Identity"
# What transformers writes about the place that a tokenizer was loaded from.
_PLACES = ("name_or_path", "local_files_only", "is_local", "tokenizer_file", "auto_map")


def save_reranker(reranker, folder: Path, *, card=None, merge: bool = False, base: str | None = None) -> Path:
    """Saves a reranker; see `Reranker.save_pretrained`.

    Raises:
        `UsageError`: If `folder` is a file, or holds what no reranker has.
        `QualcodeError`: If it cannot be written.
    """
    try:
        folder = folder.expanduser().resolve()
        _check_place(folder)
        folder.parent.mkdir(parents=True, exist_ok=True)
        workplace, lock = _make_workplace(folder)
    except (OSError, RuntimeError, ValueError) as error:  # a loop of links, ~user of nobody; a text that is no path
        raise _unwritable(folder, error) from error
    try:
        draft = workplace / _NEW
        draft.mkdir()
        write_reranker(reranker, draft, card=card, merge=merge, base=base)
        _set_modes(draft)
        _check_place(folder)
        if folder.exists():
            folder.rename(workplace / _OLD)
        try:
            draft.rename(folder)
        except OSError:
            if (workplace / _OLD).exists():
                (workplace / _OLD).rename(folder)
            raise
        _remove_leavings(folder)
    except (OSError, SafetensorError, UnicodeEncodeError) as error:
        raise _unwritable(folder, error) from error
    finally:
        shutil.rmtree(workplace, ignore_errors=True)
        os.close(lock)
    return folder


def _make_workplace(folder: Path) -> tuple[Path, int]:
    """A new folder beside `folder`, and a descriptor that holds its lock for as long as this process lives."""
    while True:
        workplace = Path(tempfile.mkdtemp(prefix=_workplaces(folder), dir=folder.parent))
        # Another process may take it for a leaving until it is locked.
        with contextlib.suppress(FileNotFoundError):
            lock = os.open(workplace, os.O_RDONLY)
            if _try_lock(lock, unknown=True) and workplace.exists():
                return workplace, lock
            os.close(lock)


def _remove_leavings(folder: Path) -> None:
    """Removes the workplaces of processes that were killed amid saving to `folder`. A living one holds its lock."""
    for leaving in folder.parent.glob(f"{glob.escape(_workplaces(folder))}????????"):
        with contextlib.suppress(OSError):  # it is of another user, or was removed just now
            lock = os.open(leaving, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                if {entry.name for entry in leaving.iterdir()} <= {_NEW, _OLD} and _try_lock(lock, unknown=False):
                    shutil.rmtree(leaving, ignore_errors=True)
            finally:
                os.close(lock)


def _workplaces(folder: Path) -> str:
    return f".{folder.name}.saving-"


def _try_lock(descriptor: int, *, unknown: bool) -> bool:
    """Whether the lock is ours now; `unknown` on file systems without locks. It ends with the process, however."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return unknown
    return True


def _set_modes(folder: Path) -> None:
    """safetensors makes its files for their owner alone; here all are as readable as any file that is written."""
    mode = (folder / CARD_FILE).stat().st_mode
    for file in folder.rglob("*"):
        if file.is_file():
            file.chmod(mode)


def write_reranker(
    reranker, folder: Path, *, card=None, merge: bool = False, base: str | None = None, max_shard_size: str = "5GB"
) -> None:
    """Writes a reranker's files into a folder that exists, such as a checkpoint's.

    Args:
        reranker (`Reranker`): What to write.
        folder (`Path`): Where; files of the same names are written over.
        card, merge, base (*optional*): See `Reranker.save_pretrained`.
        max_shard_size (`str`, *optional*, defaults to `"5GB"`): Most that one file of weights holds.

    Raises:
        `UsageError`: If an adapter is to be saved, and it is not known of which model.
    """
    from hf_qualcode.rerank.cards import write_card

    settings = reranker.settings
    if hasattr(reranker.tags, "save"):
        reranker.tags.save(folder)
    if reranker.fusion is not None:
        settings = _with(settings, fusion=dict(reranker.fusion.save(folder) or {}))
    model = reranker.backbone.model
    if is_adapter(model) and not merge:
        settings = _with(settings, base=_base_name(base or reranker.base, model))
        _write_adapter(model, folder, settings)
    else:
        _write_model(_merged(model), folder, settings, max_shard_size)
        _write_tokenizer(reranker.backbone, folder, settings)
        _write_sentence_transformers(folder, settings)
    write_card(reranker, folder, settings, card)


def is_adapter(model) -> bool:
    """Whether `model` is peft's wrapper around a sequence classifier.

    Raises:
        `UsageError`: If it is the classifier inside such a wrapper.
    """
    if not hasattr(model, "peft_config"):
        return False
    from peft import PeftModel

    if not isinstance(model, PeftModel):
        raise UsageError(
            "the model has an adapter's layers, not its wrapper; set backbone.model to what get_peft_model gave"
        )
    return True


def _with(settings: RerankerSettings, **changes: Any) -> RerankerSettings:
    from dataclasses import replace

    return replace(settings, **changes)


def _base_name(base: str | None, model) -> str:
    """How an adapter names its base: an alias, a Hub id, or the absolute path of a folder."""
    name = base or model.peft_config[model.active_adapter].base_model_name_or_path
    if not name:
        raise UsageError('it is not known which model the adapter belongs to; give base="org/name", or base="minilm"')
    folder = base_folder(name)
    if folder is None:
        return name
    logger.warning(
        "the adapter names its base model by a folder of this machine, %s; before it leaves, save it with "
        'base="org/name"', folder,
    )  # fmt: skip
    return str(folder.resolve())


def base_folder(base: str | None) -> Path | None:
    """The folder of this machine that a base model's name stands for, `None` where it is a name for everyone."""
    return None if base in (None, MINILM) else existing_path(base)


def _write_adapter(model, folder: Path, settings: RerankerSettings) -> None:
    with _quiet():
        # "auto" would look the base model up on the Hub.
        model.save_pretrained(folder, save_embedding_layers=False)

    def patch(config: dict[str, Any]) -> None:
        config.update(base_model_name_or_path=hub_name(settings.base), task_type=TASK_TYPE, auto_mapping=None)
        # Sets, whose order changes from run to run; peft names heads twice.
        for name in ("target_modules", "modules_to_save"):
            if isinstance(config.get(name), list):
                config[name] = sorted(set(config[name]))

    _patch(folder / ADAPTER_FILE, patch)
    _write_json(folder / ADAPTER_SETTINGS_FILE, settings.to_dict())


def hub_name(base: str | None) -> str | None:
    """A base model's name as other tools know it."""
    return "sentence-transformers/all-MiniLM-L6-v2" if base == MINILM else base


def _merged(model):
    """The plain model. Of one with an adapter, a copy that the adapter is merged into."""
    if not is_adapter(model):
        return model
    from copy import deepcopy

    return deepcopy(model).merge_and_unload()


def _write_model(model, folder: Path, settings: RerankerSettings, max_shard_size: str) -> None:
    import transformers

    architecture = type(model).__name__
    if not architecture.endswith("ForSequenceClassification") or not hasattr(transformers, architecture):
        raise QualcodeError(f"{architecture} is no sequence classifier of transformers: no other tool could load it")
    with _quiet():
        model.save_pretrained(folder, max_shard_size=max_shard_size)

    def patch(config: dict[str, Any]) -> None:
        labels = config.get("id2label") or {"0": "LABEL_0"}
        if len(labels) != 1:
            raise QualcodeError(f"the model has {len(labels)} labels; a reranker has one")
        config.update(architectures=[architecture], id2label=labels, dtype=_body_dtype(model))
        config["label2id"] = {label: int(number) for number, label in labels.items()}
        for name in ("auto_map", "_name_or_path", "num_labels"):
            config.pop(name, None)
        config["sentence_transformers"] = {"activation_fn": _IDENTITY, "version": _sentence_transformers_version()}
        config[KEY] = settings.to_dict()

    _patch(folder / CONFIG_FILE, patch)


def _body_dtype(model) -> str:
    """What other tools load the weights in. The head, which is always in float32, has no say."""
    return str(next(model.base_model.parameters()).dtype).removeprefix("torch.")


def _write_tokenizer(backbone, folder: Path, settings: RerankerSettings) -> None:
    from tokenizers import Tokenizer

    tokenizer = backbone.tokenizer
    try:
        tokenizer.save_pretrained(folder)
    except Exception as error:
        if type(error) is Exception:  # all that tokenizers says of a full disk
            raise OSError(str(error)) from error
        raise
    if tokenizer.backend_tokenizer.truncation or tokenizer.backend_tokenizer.padding:
        # State of the last call, which other tools would take for the model's wish.
        saved = Tokenizer.from_file(str(folder / "tokenizer.json"))
        saved.no_padding()
        saved.no_truncation()
        saved.save(str(folder / "tokenizer.json"))

    def patch(config: dict[str, Any]) -> None:
        for name in _PLACES:
            config.pop(name, None)
        config["model_max_length"] = settings.max_length
        if backbone.is_decoder:
            config["padding_side"] = "left"

    _patch(folder / "tokenizer_config.json", patch)

    def patch_padding(config: dict[str, Any]) -> None:
        if config.get("pad_token_id") is None:
            # Without it a decoder's head cannot tell where an input ends, and refuses batches.
            config["pad_token_id"] = tokenizer.pad_token_id

    _patch(folder / CONFIG_FILE, patch_padding)


def _write_sentence_transformers(folder: Path, settings: RerankerSettings) -> None:
    kind = "sentence_transformers.base.modules.transformer.Transformer"
    _write_json(folder / "modules.json", [{"idx": 0, "name": "0", "path": "", "type": kind}])
    _write_json(
        folder / "config_sentence_transformers.json",
        {
            "__version__": {"sentence_transformers": _sentence_transformers_version()},
            "activation_fn": _IDENTITY,
            "default_prompt_name": None,
            "model_type": "CrossEncoder",
            "prompts": {},
        },
    )
    # Said outright: left out, a tokenizer with a chat template would have every pair go through it.
    text = {"text": {"method": "forward", "method_output_name": "logits"}}
    _write_json(
        folder / "sentence_bert_config.json",
        {
            "transformer_task": "sequence-classification",
            "modality_config": text,
            "module_output_name": "scores",
            "max_seq_length": settings.max_length,
        },
    )


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without the bars of transformers, which are gone before anyone has read them."""
    from transformers.utils import logging

    bars = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if bars:
            logging.enable_progress_bar()


def _sentence_transformers_version() -> str:
    from importlib.metadata import version

    return version("sentence-transformers")


def _patch(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    content = read_json(path)
    change(content)
    _write_json(path, dict(sorted(content.items())))


def _write_json(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _check_place(folder: Path) -> None:
    if not folder.exists():
        return
    if not folder.is_dir():
        raise UsageError(f"{folder} is a file; name a folder to save the reranker to")
    names = sorted(entry.name for entry in folder.iterdir())
    foreign = [name for name in names if not _is_own(folder / name)]
    if (folder / RESULTS_FOLDER).is_dir():
        results = {f"{RESULTS_FOLDER}/{entry.name}" for entry in (folder / RESULTS_FOLDER).iterdir()}
        foreign += sorted(results - {RESULTS_FILE})
    if names and (foreign or not _is_reranker(folder)):
        what = f"holds {foreign[0]!r}, which is no part of a reranker" if foreign else "holds a model of another kind"
        raise UsageError(f"{folder} {what}, so it is not replaced; name a new or an empty folder")


def _is_own(path: Path) -> bool:
    """Whether a reranker has a file of this name, or a folder where it has one."""
    if path.name == RESULTS_FOLDER:
        return path.is_dir()
    return any(fnmatch(path.name, pattern) for pattern in OWN_FILES) and (path.is_file() or path.is_symlink())


def _is_reranker(folder: Path) -> bool:
    if (folder / ADAPTER_SETTINGS_FILE).is_file():
        return True
    try:
        return isinstance(read_json(folder / CONFIG_FILE).get(KEY), dict)
    except QualcodeError:
        return False


def _unwritable(folder: Path, error: Exception) -> QualcodeError:
    reason = getattr(error, "strerror", None) or error
    return QualcodeError(f"no reranker can be saved to {folder} ({reason}); choose another folder")
