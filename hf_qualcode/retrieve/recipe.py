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


@dataclass(frozen=True)
class EncoderRecipe:
    """How the encoder in a folder turns a text into a vector.

    Attributes:
        folder (`Path`): The folder that was named.
        model_folder (`Path`): Where config.json, weights and tokenizer lie: `folder`, or a module's folder inside it.
        config (`dict`): config.json.
        pooling (`tuple[str, ...]`): Pooling modes whose results are concatenated.
        query_prompt, document_prompt (`str`): Put before each text.
        max_length (`int`): Tokens of a text that are read, special tokens included.
        exotic (`str`): Why only sentence-transformers itself can run this encoder, `""` where that is not so.
    """

    folder: Path
    model_folder: Path
    config: dict[str, Any]
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
            `QualcodeError`: If a file is not what it should be, or the encoder needs code from its repository.
        """
        modules = _read_json(folder / "modules.json") or []
        model_folder, pooling, exotic = folder, ("mean",), ""
        for module in modules:
            kind, path = module["type"], folder / module.get("path", "")
            if not kind.startswith("sentence_transformers."):
                raise QualcodeError(
                    f"encoder {folder} needs code of its own ({kind}), which is never run here; "
                    "name an encoder made of sentence-transformers modules"
                )
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
        if modules and not any(module["type"].endswith("Transformer") for module in modules):
            exotic = exotic or "no Transformer module"
        config = _read_json(model_folder / "config.json") or {}
        if not exotic and not config:
            raise QualcodeError(f"encoder {folder} has no config.json where its weights are ({model_folder})")
        _refuse_own_code(folder, config)
        settings = _read_json(model_folder / "sentence_bert_config.json") or {}
        exotic = exotic or _exotic_setting(config, settings)
        prompts = _read_json(folder / "config_sentence_transformers.json") or {}
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
        maximum length. Precision, device and the folder's place do not count."""
        files = [self.model_folder / "config.json", *self.weight_files()]
        files += [self.model_folder / name for name in _TOKENIZER_FILES]
        if self.exotic:
            files += [*self.folder.rglob("*.json"), *self.folder.rglob("*.safetensors")]
        content = {
            "files": {
                file.relative_to(self.folder).as_posix(): file_digest(file) for file in files if file.is_file()
            },
            "pooling": self.pooling,
            "prompts": [self.query_prompt, self.document_prompt],
            "max_length": self.max_length,
        }
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise QualcodeError(f"{path} cannot be read as JSON ({error}); copy or download the encoder again") from error


def _read_pooling(path: Path) -> tuple[tuple[str, ...], str]:
    config = _read_json(path / "config.json")
    if config is None:
        raise QualcodeError(f"{path} has no config.json, though modules.json names it as the pooling")
    modes = config.get("pooling_mode")
    if modes is None:
        modes = [mode for key, mode in _LEGACY_POOLING.items() if config.get(key)] or ["mean"]
    modes = (modes,) if isinstance(modes, str) else tuple(modes)
    unknown = [mode for mode in modes if mode not in POOLING_MODES]
    if unknown:
        raise QualcodeError(f"{path} asks for pooling {unknown[0]!r}; known are {', '.join(POOLING_MODES)}")
    return modes, "" if config.get("include_prompt", True) else "pooling without the prompt's tokens"


def _refuse_own_code(folder: Path, config: dict[str, Any]) -> None:
    own_code = config.get("auto_map", {}).get("AutoModel")
    if own_code is None:
        return
    # A model that has moved into transformers keeps its auto_map; the class of transformers is used then.
    from transformers import CONFIG_MAPPING

    if config.get("model_type") not in CONFIG_MAPPING:
        raise QualcodeError(
            f"encoder {folder} needs code of its own ({own_code}), which is never run here; "
            "name an encoder whose architecture is part of transformers"
        )


def _exotic_setting(config: dict[str, Any], settings: dict[str, Any]) -> str:
    if settings.get("do_lower_case"):
        return "texts lower-cased before the tokenizer"
    if settings.get("transformer_task", "feature-extraction") != "feature-extraction":
        return f"task {settings['transformer_task']}"
    if set(settings.get("modality_config", {"text": {}})) != {"text"}:
        return "inputs other than text"
    if config.get("is_encoder_decoder"):
        return "an encoder-decoder"
    return ""


def _read_prompts(content: dict[str, Any]) -> tuple[str, str]:
    prompts = content.get("prompts") or {}
    default = prompts.get(content.get("default_prompt_name"), "")
    query = prompts.get("query", default)
    document = next((prompts[name] for name in ("document", "passage", "corpus") if name in prompts), default)
    return query or "", document or ""


def _max_length(model_folder: Path, config: dict[str, Any], settings: dict[str, Any]) -> int:
    tokenizer = _read_json(model_folder / "tokenizer_config.json") or {}
    limits = [settings.get("max_seq_length") or tokenizer.get("model_max_length")]
    positions = config.get("max_position_embeddings")
    if positions is not None and positions > 0:
        offset = config.get("pad_token_id", 1) + 1 if config.get("model_type") in OFFSET_POSITIONS else 0
        limits.append(positions - offset)
    return int(min([limit for limit in limits if limit], default=_NO_LIMIT))
