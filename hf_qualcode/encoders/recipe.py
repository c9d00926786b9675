"""What a saved encoder says about itself: pooling, prompts, maximum length, and the fingerprint of all of it."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hf_qualcode.digests import file_digest
from hf_qualcode.types import QualcodeError


POOLING_MODES = ("cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken")
# Key of sentence-transformers before 6.0, in the order in which several modes are concatenated.
_LEGACY_POOLING = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
# Position ids of these begin after the padding id, so that many rows of the position table are never used.
OFFSET_POSITIONS = ("roberta", "xlm-roberta", "camembert")
_TOKENIZER_FILES = (
    "tokenizer.json", "tokenizer_config.json", "vocab.txt", "vocab.json", "merges.txt", "tokenizer.model",
    "sentencepiece.bpe.model", "spiece.model", "special_tokens_map.json", "added_tokens.json",
)  # fmt: skip
_NO_LIMIT = 10**9
_JSON_NAMES = {dict: "an object", list: "a list", str: "a string", int: "an integer", float: "a number"}
_SHORTEST = 3  # the special tokens around a text, and one of its own
# Keys of config.json that say how large the model is, by a part of their name: no real model comes near.
_LARGEST = {"layers": 10**3, "size": 10**8, "dim": 10**8, "head": 10**8, "position": 2**22, "embd": 10**8}


class Settings(dict[str, Any]):
    """One JSON object and the file it comes from. A key that is null counts as absent."""

    def __init__(self, path: Path, content: dict[str, Any]):
        super().__init__({key: value for key, value in content.items() if value is not None})
        self.path = path

    def typed(self, key: str, kind: type, default: Any = None) -> Any:
        """The value of `key`, `default` where it is absent.

        Raises:
            `QualcodeError`: If it is not a `kind`; `float` stands for any number.
        """
        value = self.get(key, default)
        fits = type(value) in (int, float) if kind is float else type(value) is kind
        if key in self and not fits:
            wanted = _JSON_NAMES[kind]
            raise QualcodeError(
                f"{self.path}: {key!r} is {_shown(value)}, expected {wanted}; copy or download the encoder again"
            )
        return value


@dataclass(frozen=True)
class EncoderRecipe:
    """How the encoder in a folder turns a text into a vector.

    Attributes:
        folder (`Path`): The folder that was named.
        model_folder (`Path`): Where config.json, weights and tokenizer lie: `folder`, or a module's folder inside it.
        config (`Settings`): config.json.
        pooling (`tuple[str, ...]`): Pooling modes whose results are concatenated.
        query_prompt, document_prompt (`str`): Put before each text.
        max_length (`int`): Tokens of a text that are read, special tokens included.
        exotic (`str`): Why only sentence-transformers itself can run this encoder, `""` where that is not so.
    """

    folder: Path
    model_folder: Path
    config: Settings
    pooling: tuple[str, ...]
    query_prompt: str
    document_prompt: str
    max_length: int
    exotic: str

    @classmethod
    def read(cls, folder: Path) -> "EncoderRecipe":
        """Read a sentence-transformers folder, or a plain transformers one (mean pooling, as sentence-transformers
        reads it).

        Raises:
            `QualcodeError`: If a file is not what it should be, or a module needs code from its repository.
        """
        modules = _read_modules(folder)
        model_folder, pooling, exotic = folder, ("mean",), ""
        for kind, path in modules:
            match kind.rpartition(".")[2]:
                case "Transformer":
                    model_folder = path
                case "Pooling":
                    pooling, without_prompt = _read_pooling(path)
                    exotic = exotic or without_prompt
                case "Normalize":
                    pass  # every vector is normalised anyway
                case other:
                    exotic = exotic or f"module {other}"
        if modules and not any(kind.endswith("Transformer") for kind, _ in modules):
            exotic = exotic or "no Transformer module"
        config = _read_json(model_folder / "config.json")
        if not exotic and not config:
            raise QualcodeError(f"encoder {folder} has no config.json where its weights are ({model_folder})")
        _check_sizes(config)
        settings = _read_json(model_folder / "sentence_bert_config.json")
        exotic = exotic or _exotic_setting(config, settings)
        prompts = _read_json(folder / "config_sentence_transformers.json")
        query_prompt, document_prompt = _read_prompts(prompts)
        return cls(
            folder=folder,
            model_folder=model_folder,
            config=config,
            pooling=pooling,
            query_prompt=query_prompt,
            document_prompt=document_prompt,
            max_length=_max_length(model_folder, config, settings),
            exotic=exotic,
        )

    def weight_files(self) -> list[Path]:
        """The safetensors files of the model, sorted by name."""
        return sorted(self.model_folder.glob("*.safetensors"))

    def fingerprint(self) -> str:
        """SHA-256 over everything that shapes the vectors: weights, configuration, tokenizer, pooling, prompts and
        maximum length. Precision, device and the folder's place do not count.

        Raises:
            `QualcodeError`: If a file cannot be read.
        """
        files = [self.model_folder / "config.json", *self.weight_files()]
        files += [self.model_folder / name for name in _TOKENIZER_FILES]
        if self.exotic:
            files += [*self.folder.rglob("*.json"), *self.folder.rglob("*.safetensors")]
        try:
            digests = {file.relative_to(self.folder).as_posix(): file_digest(file) for file in files if file.is_file()}
        except OSError as error:
            raise QualcodeError(f"encoder {self.folder} cannot be read ({error})") from error
        content = {
            "files": digests,
            "pooling": self.pooling,
            "prompts": [self.query_prompt, self.document_prompt],
            "max_length": self.max_length,
        }
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

    def refuse_own_code(self) -> None:
        """Refuse an encoder that only runs with code from its folder. Imports transformers where there is a doubt.

        Raises:
            `QualcodeError`: If a configuration names code of its own and its model type is not one of transformers'.
        """
        files = [self.model_folder / "config.json", self.model_folder / "tokenizer_config.json"]
        if self.exotic:
            files = [file for name in ("config.json", "tokenizer_config.json") for file in self.folder.rglob(name)]
        for file in files:
            own_code = _read_json(file).typed("auto_map", dict)
            if not own_code:
                continue
            # A model that has moved into transformers keeps its auto_map; the class of transformers is used then.
            from transformers import CONFIG_MAPPING

            if _read_json(file.with_name("config.json")).typed("model_type", str) not in CONFIG_MAPPING:
                raise QualcodeError(
                    f"encoder {self.folder} needs code of its own ({_shown(next(iter(own_code.values())))} in "
                    f"{file.name}), which is never run here; name an encoder whose architecture is part of "
                    "transformers"
                )


def _shown(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 40 else f"{text[:40]}..."


def _load_json(path: Path, kind: type) -> Any:
    """The content of a JSON file whose top must be a `kind`, an empty one where there is no file."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return kind()
    except (OSError, ValueError, RecursionError) as error:
        raise QualcodeError(f"{path} cannot be read as JSON ({error}); copy or download the encoder again") from error
    if not isinstance(content, kind):
        raise QualcodeError(
            f"{path} holds {_shown(content)}, expected {_JSON_NAMES[kind]}; copy or download the encoder again"
        )
    return content


def _read_json(path: Path) -> Settings:
    return Settings(path, _load_json(path, dict))


def _read_modules(folder: Path) -> list[tuple[str, Path]]:
    """Class and folder of each module of a sentence-transformers encoder, none for a plain transformers one."""
    file = folder / "modules.json"
    modules = []
    for entry in _load_json(file, list):
        if not isinstance(entry, dict) or not isinstance(entry.get("type"), str):
            raise QualcodeError(f"{file} has the entry {_shown(entry)}, expected an object with a 'type'")
        kind, place = entry["type"], Settings(file, entry).typed("path", str, "")
        if not kind.startswith("sentence_transformers."):
            raise QualcodeError(
                f"encoder {folder} needs code of its own ({kind}), which is never run here; "
                "name an encoder made of sentence-transformers modules"
            )
        if Path(place).is_absolute() or ".." in Path(place).parts or "\0" in place:
            raise QualcodeError(f"{file} has the path {_shown(place)}, which leads out of the encoder's folder")
        modules.append((kind, folder / place))
    return modules


def _read_pooling(path: Path) -> tuple[tuple[str, ...], str]:
    config = _read_json(path / "config.json")
    if not config:
        raise QualcodeError(f"{path} has no config.json, though modules.json names it as the pooling")
    modes = config.get("pooling_mode")
    if modes is None:
        modes = [mode for key, mode in _LEGACY_POOLING.items() if config.get(key)] or ["mean"]
    modes = (modes,) if isinstance(modes, str) else tuple(config.typed("pooling_mode", list, modes))
    unknown = [mode for mode in modes or (None,) if mode not in POOLING_MODES]
    if unknown:
        raise QualcodeError(f"{path} asks for pooling {_shown(unknown[0])}; known are {', '.join(POOLING_MODES)}")
    return modes, "" if config.get("include_prompt", True) else "pooling without the prompt's tokens"


def _check_sizes(config: Settings) -> None:
    """Refuse a configuration whose model could not even be laid out, before a library tries."""
    config.typed("model_type", str)
    for key, value in config.items():
        limit = next((limit for part, limit in _LARGEST.items() if part in key), None)
        if limit is not None and type(value) in (int, float) and not value <= limit:
            raise QualcodeError(f"{config.path}: {key!r} is {_shown(value)}, more than {limit}; it is damaged")


def _exotic_setting(config: Settings, settings: Settings) -> str:
    if settings.get("do_lower_case"):
        return "texts lower-cased before the tokenizer"
    task = settings.typed("transformer_task", str, "feature-extraction")
    if task != "feature-extraction":
        return f"task {task}"
    if set(settings.typed("modality_config", dict, {"text": {}})) != {"text"}:
        return "inputs other than text"
    if config.get("is_encoder_decoder"):
        return "an encoder-decoder"
    return ""


def _read_prompts(settings: Settings) -> tuple[str, str]:
    prompts = Settings(settings.path, settings.typed("prompts", dict, {}))
    default = prompts.typed(settings.typed("default_prompt_name", str, ""), str, "")
    query = prompts.typed("query", str, default)
    document = next(
        (prompts.typed(name, str) for name in ("document", "passage", "corpus") if name in prompts), default
    )
    return query, document


def _max_length(model_folder: Path, config: Settings, settings: Settings) -> int:
    tokenizer = _read_json(model_folder / "tokenizer_config.json")
    limits = [_NO_LIMIT]
    limits += [settings.typed("max_seq_length", float) or tokenizer.typed("model_max_length", float) or _NO_LIMIT]
    positions = config.typed("max_position_embeddings", float, 0)
    if positions > 0:
        roberta = config.get("model_type") in OFFSET_POSITIONS
        limits.append(positions - (config.typed("pad_token_id", int, 1) + 1 if roberta else 0))
    longest = min(limits)
    if not longest >= _SHORTEST:
        raise QualcodeError(
            f"encoder {model_folder} reads {_shown(longest)} tokens of a text by its configuration, expected "
            f"{_SHORTEST} or more; it is damaged"
        )
    return int(longest)
