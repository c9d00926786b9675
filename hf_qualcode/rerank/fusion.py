"""What enters the bundled reranker's score beside its model: relevance by text vectors and literals, and what a
program's syntax tree says of its quality.

    score = model_weight x logit + relevance(query, code) + sum over qualities of wish x certainty x static(code)

Relevance counts fully where it is in doubt and little where it is clear, so that among the right programs quality
decides and among the others it does not: `leak x evidence - softplus(-slope x (evidence - threshold))`. Wishes are
read from the instruction (`hf_qualcode.quality.wishes`). The static part has two sets of weights: of whole programs in
Python, and of functions and other parts of them, where it is turned down (`certainty`); code in another language has
none.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from hf_qualcode.hub import MINILM, resolve_model
from hf_qualcode.quality import dimension_names
from hf_qualcode.quality.function_features import FUNCTION_FEATURE_NAMES, function_features
from hf_qualcode.quality.static_features import FEATURE_NAMES, is_whole_program, static_features
from hf_qualcode.quality.wishes import read_wishes
from hf_qualcode.rerank.literals import literal_overlap
from hf_qualcode.rerank.relevance import RelevanceMap, TextVectors
from hf_qualcode.rerank.settings import RerankerSettings, read_json
from hf_qualcode.types import QualcodeError


_KIND = "static-2"
_TENSORS = "fusion.safetensors"
_WORDS = "fusion_words.json"
_SHOWN_FEATURES = 5


@dataclass(frozen=True)
class FusionWeights:
    """As in the formulas above; `quality_weights` has one a dimension, in the order of `dimension_names()`."""

    model_weight: float
    literal_weight: float
    slope: float
    threshold: float
    leak: float
    fragment_certainty: float
    quality_weights: tuple[float, ...]

    def saturated(self, evidence: np.ndarray) -> np.ndarray:
        """Relevance of any shape from its evidence."""
        return self.leak * evidence - np.logaddexp(0, -self.slope * (evidence - self.threshold))


class Fusion:
    """See the module.

    Args:
        weights (`FusionWeights`): How the parts are mixed.
        static_weights (`np.ndarray`): float64 [num_dimensions, num_features], log-odds of raw static features, for
            whole programs.
        function_weights (`np.ndarray`): float64 [num_dimensions, num_function_features], for anything less.
        relevance (`RelevanceMap`): Over the vectors of `encoder`.
        frequencies (`Mapping[str, int]`), num_queries (`int`): Of words in reference queries; see `literals`.
        encoder (`str`, *optional*, defaults to `"minilm"`): The text encoder.
        vectors (`TextVectors`, *optional*): In place of loading that encoder on first use.
    """

    def __init__(
        self,
        weights: FusionWeights,
        static_weights: np.ndarray,
        function_weights: np.ndarray,
        relevance: RelevanceMap,
        frequencies: Mapping[str, int],
        num_queries: int,
        *,
        encoder: str = MINILM,
        vectors: TextVectors | None = None,
    ):
        self.weights, self.relevance, self.encoder = weights, relevance, encoder
        self.static_weights = np.asarray(static_weights, dtype=np.float64)
        self.function_weights = np.asarray(function_weights, dtype=np.float64)
        self.frequencies, self.num_queries = frequencies, num_queries
        self._vectors = vectors

    description = (
        "The score is not the model's logit alone. Added to it are the relevance of the code to the query (text "
        "vectors of the base model through a learnt map of low rank, and shared literals) and, for each quality that "
        "the instruction asks for, a linear score of static features of the syntax tree. `Reranker.explain` shows "
        "each part."
    )

    def scores(
        self, instructions: Sequence[str], queries: Sequence[str], codes: Sequence[str], logits: np.ndarray
    ) -> np.ndarray:
        """Fused scores, float32 [n]."""
        relevant = self.weights.saturated(self.evidence(queries, codes))
        model = self.weights.model_weight * np.asarray(logits, dtype=np.float64)
        return (model + relevant + self.quality(instructions, codes)).astype(np.float32)

    def evidence(self, queries: Sequence[str], codes: Sequence[str]) -> np.ndarray:
        """Log-odds of relevance before they saturate, float64 [n]."""
        return self.by_meaning(queries, codes) + self.weights.literal_weight * self.by_literals(queries, codes)

    def by_meaning(self, queries: Sequence[str], codes: Sequence[str]) -> np.ndarray:
        """What the vectors of the texts say, float64 [n]."""
        vectors = self.vectors
        return self.relevance(vectors(queries, is_query=True), vectors(codes, is_query=False))

    def by_literals(self, queries: Sequence[str], codes: Sequence[str]) -> np.ndarray:
        """What the literals of the codes say, float64 [n]."""
        pairs = zip(queries, codes, strict=True)
        return np.array([literal_overlap(query, code, self.frequencies, self.num_queries) for query, code in pairs])

    def quality(self, instructions: Sequence[str], codes: Sequence[str]) -> np.ndarray:
        """What the syntax trees say under the wishes of the instructions, float64 [n]."""
        wishes = np.array([read_wishes(instruction) for instruction in instructions])
        return (wishes * np.stack([self.static(code) for code in codes])).sum(axis=1)

    def static(self, code: str) -> np.ndarray:
        """The static score of a code in each dimension, float64 [num_dimensions]."""
        _, added = self._static_parts(code)
        return np.array(self.weights.quality_weights) * added.sum(axis=1)

    def explain(self, instruction: str, query: str, code: str, logit: float) -> list[tuple[str, float]]:
        """The parts of one score, which add up to it: model, relevance, and for each quality asked for its strongest
        features, the largest first, and the rest of them."""
        relevant = self.weights.saturated(self.evidence([query], [code]))
        parts = [("model", self.weights.model_weight * logit), ("relevance to the query", float(relevant[0]))]
        names, static = self._static_parts(code)
        for name, wish, weight, row in zip(
            dimension_names(), read_wishes(instruction), self.weights.quality_weights, static, strict=True
        ):
            added = wish * weight * row
            order = [place for place in np.argsort(-np.abs(added), kind="stable") if added[place]]
            shown, rest = order[:_SHOWN_FEATURES], order[_SHOWN_FEATURES:]
            parts += [(f"{name}: {names[place]}", float(added[place])) for place in shown]
            if rest:
                parts.append((f"{name}: {len(rest)} other features", float(added[rest].sum())))
        return parts

    @property
    def vectors(self) -> TextVectors:
        """Of the encoder, which is loaded on first use."""
        if self._vectors is None:
            from hf_qualcode.encoders.transformer import load_transformer

            self._vectors = TextVectors(load_transformer(resolve_model(self.encoder), id=self.encoder).encode)
        return self._vectors

    def _static_parts(self, code: str) -> tuple[Sequence[str], np.ndarray]:
        """Names of the features that count for a code, and what each adds: float64 [num_dimensions, features]."""
        if is_whole_program(code):
            return FEATURE_NAMES, self.static_weights * static_features(code)
        certainty = self.weights.fragment_certainty
        return FUNCTION_FEATURE_NAMES, certainty * self.function_weights * function_features(code)

    def save(self, folder: Path) -> dict[str, Any]:
        """Writes the arrays and words beside the model; returns what its configuration says of them."""
        from safetensors.numpy import save_file

        relevance = self.relevance
        tensors = {
            "static_weights": self.static_weights,
            "function_weights": self.function_weights,
            "shift": relevance.shift,
            "left": relevance.left,
            "right": relevance.right,
        }
        save_file({name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}, folder / _TENSORS)
        words = {"num_queries": self.num_queries, "frequencies": dict(sorted(self.frequencies.items()))}
        (folder / _WORDS).write_text(json.dumps(words, ensure_ascii=False) + "\n", encoding="utf-8")
        return {
            "kind": _KIND,
            "encoder": self.encoder,
            "features": len(FEATURE_NAMES),
            "function_features": len(FUNCTION_FEATURE_NAMES),
            "qualities": list(dimension_names()),
            "scale": relevance.scale,
            "bias": relevance.bias,
            **asdict(self.weights),
        }

    @classmethod
    def load(cls, folder: Path) -> "Fusion":
        """Reads what `save` wrote, and what the folder's configuration says of it.

        Raises:
            `QualcodeError`: If a file or setting is missing, damaged, or of another version.
        """
        from safetensors import SafetensorError
        from safetensors.numpy import load_file

        settings = RerankerSettings.read(folder).fusion or {}
        if settings.get("kind") != _KIND:
            raise QualcodeError(
                f"{folder} has a fusion {str(settings.get('kind'))[:40]!r}, which this version does not know; load it "
                "with fusion=False, or install the hf-qualcode that made it"
            )
        try:
            tensors = load_file(folder / _TENSORS)
            if not all(tensor.dtype.kind == "f" for tensor in tensors.values()):
                raise ValueError("its arrays are no floating point numbers")
            words = read_json(folder / _WORDS)
            numbers = {field.name: settings[field.name] for field in fields(FusionWeights)}
            qualities = tuple(float(each) for each in numbers.pop("quality_weights"))
            weights = FusionWeights(**{name: float(each) for name, each in numbers.items()}, quality_weights=qualities)
            relevance = RelevanceMap(
                float(settings["scale"]), float(settings["bias"]),
                tensors["shift"], tensors["left"], tensors["right"],
            )  # fmt: skip
            fusion = cls(
                weights, tensors["static_weights"], tensors["function_weights"], relevance,
                {str(word): int(count) for word, count in words["frequencies"].items()}, int(words["num_queries"]),
                encoder=str(settings["encoder"]),
            )  # fmt: skip
            fusion._check(settings)
        except (
            OSError, SafetensorError, KeyError, TypeError, ValueError, AttributeError, ArithmeticError, QualcodeError
        ) as error:  # fmt: skip
            reason = " ".join(str(error).split())[:200]
            raise QualcodeError(
                f"fusion of {folder} cannot be read ({type(error).__name__}: {reason}); copy or download the reranker "
                "again, or load it with fusion=False"
            ) from error
        return fusion

    def _check(self, settings: Mapping[str, Any]) -> None:
        names, sizes = list(dimension_names()), (len(FEATURE_NAMES), len(FUNCTION_FEATURE_NAMES))
        shapes = (self.static_weights.shape, self.function_weights.shape)
        if settings["qualities"] != names or shapes != tuple((len(names), size) for size in sizes):
            raise ValueError(f"it was made for other qualities or features than {names} and {sizes}")
        if self.encoder != MINILM:
            # A folder that was downloaded must not make us fetch another.
            raise ValueError(f"its text encoder is {self.encoder[:40]!r}, and only {MINILM!r} is known here")
        if len(self.weights.quality_weights) != len(names) or self.num_queries < 1:
            raise ValueError("its weights are incomplete")
        size, rank = self.relevance.left.shape
        if self.relevance.right.shape != (size, rank) or self.relevance.shift.shape != (size - 1,):
            raise ValueError("its arrays do not fit together")
        arrays = (
            self.static_weights, self.function_weights, self.relevance.left, self.relevance.right, self.relevance.shift
        )  # fmt: skip
        *numbers, qualities = asdict(self.weights).values()
        numbers = [*numbers, *qualities, self.relevance.scale, self.relevance.bias]
        if not all(np.isfinite(array).all() for array in (*arrays, np.array(numbers))):
            raise ValueError("its weights hold NaN or infinite values")
        if any(count < 0 for count in self.frequencies.values()):
            raise ValueError("a word of it has a negative frequency")
