"""What is asked for: a request for each task, dimension, level and sample, known by a key that never changes."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import product
from typing import Any

from hf_qualcode.quality import dimension_names
from hf_qualcode.quality.guidelines import LEVELS, guideline_groups
from hf_qualcode.synthesis.prompts import Prompt, prompt_version, render_prompt
from hf_qualcode.synthesis.tasks import Task
from hf_qualcode.types import UsageError


@dataclass(frozen=True, slots=True)
class RecordKey:
    """What makes an answer the answer to a request: whatever is changed here is asked again.

    Attributes:
        model (`str`): The writer's model.
        prompt_version (`str`): See `prompts.prompt_version`.
        language, dimension, level, group, task_id (`str`): What is asked for; `group` is `""` without guidelines.
        sample (`int`): From 0, of equal requests.
        statement (`str`): Digest of the task's text, for ids may be given anew.
        sampling (`str`): Canonical JSON of the sampling's settings and the run's seed.
    """

    model: str
    prompt_version: str
    language: str
    dimension: str
    level: str
    group: str
    task_id: str
    sample: int
    statement: str
    sampling: str

    def digest(self) -> str:
        """SHA-256 of the key, 64 hexadecimal digits."""
        return hashlib.sha256(json.dumps(self.to_dict(), sort_keys=True).encode()).hexdigest()

    def to_dict(self) -> dict[str, Any]:
        """As it is stored."""
        return {entry.name: getattr(self, entry.name) for entry in fields(self)}

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> "RecordKey":
        """The key of a stored record.

        Raises:
            `KeyError`, `TypeError`: It is none.
        """
        key = cls(**{entry.name: values[entry.name] for entry in fields(cls)})
        if not all(isinstance(getattr(key, entry.name), str) != (entry.name == "sample") for entry in fields(cls)):
            raise TypeError("a part of the key is of another type")
        return key


@dataclass(frozen=True, slots=True)
class Request:
    """One request.

    Attributes:
        key (`RecordKey`): Its identity.
        prompt (`Prompt`): The messages.
        seed (`int`): Of its sampling, from its key: no two requests share draws by accident. 31 bits.
    """

    key: RecordKey
    prompt: Prompt
    seed: int


class Plan:
    """All requests of a run, made one after the other when they are asked for.

    For each task, dimension and level there are `num_samples` requests, which take the dimension's guideline groups
    in turn (SynH-Rank, section 5.4: four high and four low, one for each group).

    Args:
        tasks (`Sequence[Task]`): At least one.
        model (`str`): The writer's model.
        sampling (`Mapping`): JSON-able; whatever shapes answers, the seed of the run included.
        dimensions (`Sequence[str]`, *optional*): Defaults to all.
        language (`str`, *optional*, defaults to `"python"`): To write in.
        num_samples (`int`, *optional*, defaults to 4): Of each level.
        guided (`bool`, *optional*, defaults to `True`): With guidelines.

    Raises:
        `UsageError`: On numbers and names out of range.
    """

    def __init__(
        self,
        tasks: Sequence[Task],
        model: str,
        sampling: Mapping[str, Any],
        *,
        dimensions: Sequence[str] | None = None,
        language: str = "python",
        num_samples: int = 4,
        guided: bool = True,
    ):
        self.dimensions = tuple(dimension_names() if dimensions is None else dict.fromkeys(dimensions))
        unknown = [name for name in self.dimensions if name not in dimension_names()]
        if unknown or not self.dimensions:
            raise UsageError(
                f"unknown quality {unknown[0] if unknown else ''!r}; choose from: {', '.join(dimension_names())}"
            )
        if num_samples < 1:
            raise UsageError(f"--samples {num_samples}: 1 or more is needed")
        if guided and (bare := [name for name in self.dimensions if not guideline_groups(name)]):
            raise UsageError(f"the quality {bare[0]} has no guidelines; write its GUIDELINES, or use --no-guidelines")
        self.tasks, self.model, self.language = tasks, model, language
        self.num_samples, self.guided = num_samples, guided
        self._sampling = json.dumps(dict(sampling), sort_keys=True)

    def __len__(self) -> int:
        return len(self.tasks) * len(self.dimensions) * len(LEVELS) * self.num_samples

    def __iter__(self) -> Iterator[Request]:
        queries = {task.id: task.query for task in self.tasks}
        for key in self.request_keys():
            prompt = render_prompt(
                queries[key.task_id], key.dimension, key.level, key.group or None, language=self.language
            )
            yield Request(key, prompt, int(key.digest()[:8], 16) & 0x7FFFFFFF)

    def request_keys(self) -> Iterator[RecordKey]:
        """Of all requests, in their order."""
        version = prompt_version()
        groups = {name: guideline_groups(name) if self.guided else () for name in self.dimensions}
        for task in self.tasks:
            statement = hashlib.sha256(task.query.encode()).hexdigest()[:16]
            for dimension, level, sample in product(self.dimensions, LEVELS, range(self.num_samples)):
                own = groups[dimension]
                yield RecordKey(
                    model=self.model,
                    prompt_version=version,
                    language=self.language,
                    dimension=dimension,
                    level=level,
                    group=own[sample % len(own)] if own else "",
                    task_id=task.id,
                    sample=sample,
                    statement=statement,
                    sampling=self._sampling,
                )
