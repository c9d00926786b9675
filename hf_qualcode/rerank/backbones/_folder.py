"""A model's folder as it lies on disk: what its configuration says, and single tensors of its weights."""

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from hf_qualcode.encoders.recipe import OFFSET_POSITIONS, EncoderRecipe
from hf_qualcode.types import QualcodeError


# Key of config.json under which rerankers of this package say how they are read.
SETTINGS_KEY = "hf_qualcode"
_NO_LIMIT = 10**9


class ModelFolder:
    """A folder with config.json, tokenizer and safetensors weights. Nothing of it is trusted.

    Args:
        path (`Path`): The folder.
        name (`str`): What messages call it.

    Attributes:
        path (`Path`): Where config.json lies: the folder, or the one of its transformer module.
        config (`Settings`): config.json.
        usual_length (`int`): Tokens that sentence-transformers or the tokenizer would have the model read.

    Raises:
        `QualcodeError`: If config.json is absent or damaged, or the model needs code of its own.
    """

    def __init__(self, path: Path, name: str):
        recipe = EncoderRecipe.read(path)
        recipe.refuse_own_code()
        self.path, self.name = recipe.model_folder, name
        self.config, self.usual_length = recipe.config, recipe.max_length
        if not self.config:
            raise QualcodeError(f"reranker {name} has no config.json; name a folder that `save_pretrained` wrote")

    @property
    def model_type(self) -> str:
        """`model_type` of config.json, `""` where it says none."""
        return str(self.config.get("model_type", ""))

    @property
    def architecture(self) -> str:
        """First of the architectures of config.json, `""` where it names none."""
        named = self.config.get("architectures")
        return str(named[0]) if isinstance(named, list) and named else ""

    @property
    def settings(self) -> dict[str, Any]:
        """What this package wrote into config.json, `{}` for a model of others."""
        return self.config.typed(SETTINGS_KEY, dict, {})

    def is_named(self, part: str) -> bool:
        """Whether the folder, or the model that it says it was loaded from, is named so; `part` is in lower case."""
        return part in f"{self.name} {self.path} {self.config.get('_name_or_path', '')}".lower()

    def longest(self) -> int:
        """Tokens for which the model has positions."""
        positions = self.config.typed("max_position_embeddings", int, _NO_LIMIT)
        offset = self.config.typed("pad_token_id", int, 1) + 1 if self.model_type in OFFSET_POSITIONS else 0
        return positions - offset

    @cached_property
    def tensor_files(self) -> dict[str, Path]:
        """The weights file of each tensor, by the tensor's name.

        Raises:
            `QualcodeError`: If a file is damaged.
        """
        return {name: file for file in sorted(self.path.glob("*.safetensors")) for name in self._names(file)}

    @cached_property
    def tensor_kinds(self) -> dict[str, str]:
        """The type of each tensor as safetensors names it (`"F32"`, `"I64"`), by the tensor's name."""
        from safetensors import safe_open

        kinds = {}
        for file in sorted(set(self.tensor_files.values())):
            with safe_open(file, framework="pt") as weights:
                kinds |= {name: weights.get_slice(name).get_dtype() for name in weights.keys()}  # noqa: SIM118
        return kinds

    def tensor(self, name: str, rows: list[int] | None = None) -> Tensor:
        """A tensor, or some of its rows, read without the rest of its file.

        Raises:
            `QualcodeError`: If there is none of this name, or it lacks a row.
        """
        from safetensors import safe_open

        if name not in self.tensor_files:
            raise QualcodeError(f"weights of {self.name} lack {name}; they are incomplete or of another architecture")
        with safe_open(self.tensor_files[name], framework="pt") as weights:
            if rows is None:
                return weights.get_tensor(name)
            part = weights.get_slice(name)
            if not all(row < part.get_shape()[0] for row in rows):
                raise QualcodeError(f"{name} of {self.name} has {part.get_shape()[0]} rows, too few for its tokenizer")
            return torch.cat([part[row : row + 1] for row in rows])

    def _names(self, file: Path) -> Iterator[str]:
        from safetensors import SafetensorError, safe_open

        try:
            with safe_open(file, framework="pt") as weights:
                yield from list(weights.keys())
        except (SafetensorError, OSError) as error:
            raise QualcodeError(f"weights {file} are damaged ({error}); copy or download them again") from error
