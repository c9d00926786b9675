"""What a saved reranker says about itself: `config.json["hf_qualcode"]`, or `reranker_config.json` beside an adapter.

Folders that others made have neither, and are read as their architecture says.
"""

import json
import os
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hf_qualcode.types import QualcodeError, UsageError


KEY = "hf_qualcode"
CONFIG_FILE = "config.json"
ADAPTER_FILE = "adapter_config.json"
ADAPTER_SETTINGS_FILE = "reranker_config.json"
# A configuration is a few kilobytes; what is larger than this is none.
_LARGEST_FILE = 2**24
_LONGEST_INPUT = 2**24


@dataclass(frozen=True)
class RerankerSettings:
    """How the model in a folder is to be fed, and what is done with its logit.

    Attributes:
        backbone (`str`, *optional*): Family, a module of `hf_qualcode.rerank.backbones`; `None` where the folder does
            not say.
        max_length (`int`, *optional*): Tokens of an input, special ones included; `None`: what the model can read.
        tags (`str`, *optional*): Which tags are put before each code.
        wording (`str`, *optional*): In which words the model is given instructions; `None`: as they are.
        fusion (`dict`, *optional*): What else enters the score; `None` where the logit is the score.
        base (`str`, *optional*): Of an adapter, the model it was trained on: an alias, a folder or a Hub id.
        others (`dict`): What the backbone says besides.
    """

    backbone: str | None = None
    max_length: int | None = None
    tags: str | None = None
    wording: str | None = None
    fusion: dict[str, Any] | None = None
    base: str | None = None
    others: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def read(cls, folder: Path) -> "RerankerSettings":
        """Reads a folder's settings. A folder that others made has none: everything is `None`.

        Raises:
            `QualcodeError`: If a file is no JSON object, or a value is not what it should be.
        """
        if (folder / ADAPTER_FILE).is_file():
            path = folder / ADAPTER_SETTINGS_FILE
            # A link to nowhere is a file that was lost, and with it how the adapter is to be fed.
            return cls.parse(read_json(path) if os.path.lexists(path) else {}, path)
        path = folder / CONFIG_FILE
        content = read_json(path).get(KEY) if path.is_file() else None
        if content is None:
            return cls()
        if not isinstance(content, dict):
            raise _wrong(path, KEY, content, "an object")
        return cls.parse(content, path)

    @classmethod
    def parse(cls, content: Mapping[str, Any], path: Path) -> "RerankerSettings":
        """`content`, the settings in the file `path`, checked."""
        values = {key: value for key, value in content.items() if value is not None}
        names = ("backbone", "max_length", "tags", "wording", "fusion", "base")
        known = {name: values.pop(name, None) for name in names}
        for name in ("backbone", "tags", "wording", "base"):
            if known[name] is not None and not isinstance(known[name], str):
                raise _wrong(path, name, known[name], "a string")
        if known["fusion"] is not None and not isinstance(known["fusion"], dict):
            raise _wrong(path, "fusion", known["fusion"], "an object")
        length = known["max_length"]
        if length is not None and not (type(length) is int and 0 < length <= _LONGEST_INPUT):
            raise _wrong(path, "max_length", length, f"an integer from 1 to {_LONGEST_INPUT}")
        return cls(**known, others=values)

    def to_dict(self) -> dict[str, Any]:
        """As it is written: what the backbone says, then the rest; `tags` and `fusion` also where they are `None`."""
        content = {"backbone": self.backbone, "max_length": self.max_length, **self.others}
        content |= {"tags": self.tags, "fusion": self.fusion}
        if self.wording is not None:
            content["wording"] = self.wording
        return content if self.base is None else {**content, "base": self.base}


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file.

    Raises:
        `QualcodeError`: If it cannot be read, or holds anything else.
    """
    try:
        found = path.stat()
        if found.st_size > _LARGEST_FILE:
            raise QualcodeError(f"{path} is larger than {_LARGEST_FILE} bytes, so it is no configuration; {_AGAIN}")
        if not stat.S_ISREG(found.st_mode):  # a pipe would keep its reader waiting for ever
            raise QualcodeError(f"{path} is no file; {_AGAIN}")
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        reason = " ".join(str(error).split())[:200]
        raise QualcodeError(f"{path} cannot be read as JSON ({reason}); {_AGAIN}") from error
    if not isinstance(content, dict):
        raise QualcodeError(f"{path} holds {_shown(content)}, expected an object; {_AGAIN}")
    return content


_AGAIN = "copy or download the reranker again"


def _wrong(path: Path, key: str, value: Any, expected: str) -> QualcodeError:
    return QualcodeError(f"{path}: {key!r} is {_shown(value)}, expected {expected}; {_AGAIN}")


def _shown(value: Any) -> str:
    try:
        text = json.dumps(value)
    except RecursionError:  # what can just be read may be nested too deeply to be written
        text = repr(type(value).__name__)
    return text if len(text) <= 40 else f"{text[:40]}..."


def resolve_tags(name: str, folder: Path | None = None) -> Callable[[str], str]:
    """The function that puts tags of this name before a code: code -> text that the model reads.

    Args:
        name (`str`): As in the settings.
        folder (`Path`, *optional*): Of the model, where its tags keep what they were fitted to.

    Raises:
        `QualcodeError`: If there are no such tags here, or their file is missing or damaged.
    """
    from hf_qualcode.rerank.tags import JUDGED_TAGS, PYTHON_TAGS, JudgedTags, with_tags

    if name == JUDGED_TAGS and folder is not None:
        return JudgedTags.load(folder)
    if name != PYTHON_TAGS:
        raise QualcodeError(
            f"the reranker was trained on code with tags {name[:40]!r}, which this version does not make "
            f"(it makes: {PYTHON_TAGS}, {JUDGED_TAGS}); install the hf-qualcode that made it"
        )
    return with_tags


def tags_name(tags: Callable[[str], str] | None) -> str | None:
    """What settings call these tags: the name that `resolve_tags` knows, else their attribute `name`.

    Raises:
        `UsageError`: If they have no name.
    """
    from hf_qualcode.rerank.tags import PYTHON_TAGS, with_tags

    if tags is None:
        return None
    name = PYTHON_TAGS if tags is with_tags else getattr(tags, "name", None)
    if not isinstance(name, str) or not name:
        raise UsageError("these tags have no name to be saved under; set their attribute `name`")
    return name


STANDARD_WORDING = "standard-1"


def resolve_wording(name: str) -> Callable[[str], str]:
    """The function that puts instructions into the words of this name.

    Raises:
        `QualcodeError`: If there is none of this name here.
    """
    from hf_qualcode.quality.wishes import standard_instruction

    if name != STANDARD_WORDING:
        raise QualcodeError(
            f"the reranker was trained on instructions in the wording {name[:40]!r}, which this version does not make "
            f"(it makes: {STANDARD_WORDING}); install the hf-qualcode that made it"
        )
    return standard_instruction


def wording_name(wording: Callable[[str], str] | None) -> str | None:
    """What settings call this wording.

    Raises:
        `UsageError`: If it is not the one that `resolve_wording` knows.
    """
    from hf_qualcode.quality.wishes import standard_instruction

    if wording is None:
        return None
    if wording is not standard_instruction:
        raise UsageError("this wording of instructions cannot be saved; use standard_instruction, or none")
    return STANDARD_WORDING
