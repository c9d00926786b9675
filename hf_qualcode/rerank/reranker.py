"""`Reranker`: orders code by how well it does what was asked, and how well it was written."""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.resources import files
from numbers import Integral
from pathlib import Path

import numpy as np

from hf_qualcode.evaluation.protocols import LOG_ODDS
from hf_qualcode.quality import instruction_for
from hf_qualcode.rerank.inputs import Trims
from hf_qualcode.rerank.results import Explanation, Part, RankedCode
from hf_qualcode.rerank.scoring import Progress, score_triples
from hf_qualcode.rerank.settings import RerankerSettings, tags_name, wording_name
from hf_qualcode.types import QualcodeError, UsageError


logger = logging.getLogger(__name__)

_BUNDLED = "reranker"


class Reranker:
    """A sequence classifier of one label that reads instruction, query and code, and what it is to be fed with.

    ```python
    reranker = Reranker.bundled()
    best, *rest = reranker.rank("sum the numbers of each line", codes, quality=["speed"])
    ```

    Args:
        backbone (`Backbone`): The model and its tokenizer; see `hf_qualcode.rerank.backbones.load_backbone`.
        tags (`Callable`, *optional*): code -> text that the model reads in its place, such as
            `hf_qualcode.rerank.tags.with_tags`.
        fusion (*optional*): What else enters the score, an object with `scores(instructions, queries, codes, logits)`,
            `explain(instruction, query, code, logit)` and `save(folder)`.
        wording (`Callable`, *optional*): instruction -> instruction that the model reads in its place, such as
            `hf_qualcode.quality.wishes.standard_instruction`.
        name (`str`, *optional*): What messages and cards call it.
        base (`str`, *optional*): Name of the model it was trained from, for its card and for adapters.

    Attributes:
        trims (`Trims`): Of the last call, over distinct inputs.
        scale (`str`): `"log-odds"`: the sigmoid of a score is a probability.
    """

    scale = LOG_ODDS

    def __init__(
        self,
        backbone,
        tags: Callable[[str], str] | None = None,
        fusion=None,
        *,
        wording: Callable[[str], str] | None = None,
        name: str = "reranker",
        base: str | None = None,
    ):
        self.backbone, self.tags, self.fusion, self.name, self.base = backbone, tags, fusion, name, base
        self.wording = wording
        self.trims = Trims(0, 0, 0)

    @classmethod
    def from_pretrained(
        cls,
        id_or_dir: str | Path,
        *,
        device: str | None = None,
        precision: str = "auto",
        max_length: int | None = None,
        fusion: bool = True,
        base: str | None = None,
    ) -> "Reranker":
        """Loads a reranker: one of ours, a LoRA adapter, or any cross-encoder or sequence classifier of one label.

        Only safetensors are read, and no code from the folder is run.

        Args:
            id_or_dir (`str` or `Path`): A folder, a Hub id (`org/name`, `org/name@revision`) or `"minilm"`.
            device (`str`, *optional*): Defaults to the accelerator that torch finds, else the CPU.
            precision (`str`, *optional*, defaults to `"auto"`):
                Of the body: `"float32"`, `"bfloat16"`, or `"auto"`: bfloat16 where the hardware multiplies in it. The
                head is float32.
            max_length (`int`, *optional*): Tokens of an input; defaults to what the folder says.
            fusion (`bool`, *optional*, defaults to `True`): `False` leaves the model's logit as the score.
            base (`str`, *optional*): Of an adapter, the model to put it on, in place of the one it names. That one is
                fetched from the Hub where it is a Hub id that is not in the cache.

        Raises:
            `UsageError`: If `id_or_dir` names nothing.
            `QualcodeError`: If the model cannot be loaded, has not one label, or its head was never trained.
        """
        from hf_qualcode.rerank.loading import load_reranker_parts

        for argument, value in (("id_or_dir", id_or_dir), ("base", base)):
            if not isinstance(value, str | Path) and (value is not None or argument != "base"):
                raise UsageError(f"{argument} is {_kind(value)}; give a folder, a Hub id (org/name) or 'minilm'")
        parts = load_reranker_parts(
            str(id_or_dir),
            device=device,
            precision=precision,
            max_length=max_length,
            fusion=fusion,
            base=None if base is None else str(base),
        )
        return cls(
            parts.backbone, parts.tags, parts.fusion, wording=parts.wording, name=Path(id_or_dir).name, base=parts.base
        )

    @classmethod
    def bundled(cls, *, device: str | None = None, precision: str = "auto", fusion: bool = True) -> "Reranker":
        """The small reranker of this package, an adapter on the packaged MiniLM. See its card for what it can do.

        Raises:
            `QualcodeError`: If this installation lacks it, or the MiniLM it needs.
        """
        folder = Path(str(files("hf_qualcode") / "bundled" / _BUNDLED))
        if not folder.is_dir():
            raise QualcodeError(
                "this installation has no bundled reranker; install hf-qualcode from its wheel, or name a model: "
                "Reranker.from_pretrained(id_or_folder)"
            )
        reranker = cls.from_pretrained(folder, device=device, precision=precision, fusion=fusion)
        reranker.name = "bundled"
        return reranker

    @property
    def settings(self) -> RerankerSettings:
        """What a saved folder says of this reranker, but for what `fusion.save` returns."""
        said = RerankerSettings.parse(self.backbone.settings(), Path(self.name))
        return RerankerSettings(
            backbone=said.backbone or self.backbone.name,
            max_length=said.max_length or self.backbone.max_length,
            tags=tags_name(self.tags),
            wording=wording_name(self.wording),
            fusion=None if self.fusion is None else {},
            others=said.others,
        )

    def score(
        self,
        queries: Sequence[str],
        codes: Sequence[str],
        *,
        quality: str | Iterable[str] = (),
        instruction: str | Sequence[str] | None = None,
        progress: Progress | None = None,
    ) -> np.ndarray:
        """Scores pairs of query and code.

        Equal inputs are computed once. What is longer than the model reads is cut, the code first; `trims` counts it.

        Args:
            queries, codes (`Sequence[str]`): [n], parallel.
            quality (`str` or `Iterable[str]`, *optional*): Dimensions to ask for, such as `["speed", "memory"]`.
            instruction (`str` or `Sequence[str]`, *optional*): In place of `quality`: one for all, or [n].
            progress (`Callable`, *optional*): Called as `progress(stage, done, total)`.

        Returns:
            `np.ndarray`: float32 [n], log-odds, higher is better.

        Raises:
            `UsageError`: If the lists differ in length or hold anything but text, or a quality is unknown.
            `QualcodeError`: If a score is NaN or infinite.
        """
        queries, codes = _texts("queries", queries), _texts("codes", codes)
        if len(queries) != len(codes):
            raise UsageError(f"{len(queries)} queries and {len(codes)} codes; give one query for each code")
        return self.score_triples(_instructions(quality, instruction, len(codes)), queries, codes, progress)

    def score_triples(
        self,
        instructions: Sequence[str],
        queries: Sequence[str],
        codes: Sequence[str],
        progress: Progress | None = None,
    ) -> np.ndarray:
        """Scores three parallel lists of text, as an evaluation does.

        Returns:
            `np.ndarray`: float32 [n], log-odds.

        Raises:
            `UsageError`: If they differ in length or hold anything but text.
            `QualcodeError`: If a score is NaN or infinite.
        """
        instructions, queries, codes = (
            _texts(name, texts)
            for name, texts in (("instructions", instructions), ("queries", queries), ("codes", codes))
        )
        if not len(instructions) == len(queries) == len(codes):
            raise UsageError(
                f"{len(instructions)} instructions, {len(queries)} queries and {len(codes)} codes; give one of each "
                "for each code"
            )
        scores = self._logits(instructions, queries, codes, progress)
        if self.fusion is None or not len(scores):
            return scores
        return self._fused(instructions, queries, codes, scores)

    def _fused(self, instructions, queries, codes, logits: np.ndarray) -> np.ndarray:
        """Scores of a reranker with a fusion, float32 [n]."""
        fused = np.asarray(self.fusion.scores(instructions, queries, codes, logits), dtype=np.float32)
        if not np.isfinite(fused).all():
            raise QualcodeError(f"fusion of reranker {self.name} gave NaN or infinite scores; its file is damaged")
        return fused

    def _logits(self, instructions, queries, codes, progress: Progress | None = None) -> np.ndarray:
        """The model's own scores, float32 [n]."""
        if self.tags is None:
            read = codes
        else:
            tagged = {code: self.tags(code) for code in set(codes)}
            read = [tagged[code] for code in codes]
        if self.wording is not None:
            worded = {instruction: self.wording(instruction) for instruction in set(instructions)}
            instructions = [worded[instruction] for instruction in instructions]
        logits, self.trims = score_triples(
            self.backbone, list(zip(instructions, queries, read, strict=True)), progress=progress
        )
        if self.trims.codes or self.trims.queries:
            logger.warning(
                "reranker %s reads %d tokens: of %d inputs, the code of %d was cut, and the query of %d",
                self.name, self.backbone.max_length, *self.trims,
            )  # fmt: skip
        return logits

    def rank(
        self,
        query: str,
        codes: Sequence[str],
        *,
        quality: str | Iterable[str] = (),
        instruction: str | None = None,
        top_k: int | None = None,
        progress: Progress | None = None,
    ) -> list[RankedCode]:
        """Orders the candidates of one query, best first; equal scores by their place in `codes`.

        Args:
            query (`str`): What the code should do.
            codes (`Sequence[str]`): Candidates.
            quality, instruction, progress (*optional*): As for `score`.
            top_k (`int`, *optional*): How many to return; defaults to all.

        Raises:
            `UsageError`: On an argument that is not as described.
        """
        codes = _texts("codes", codes)
        _texts("query", [query])
        if instruction is not None:
            _texts("instruction", [instruction])
        if top_k is not None and (isinstance(top_k, bool) or not isinstance(top_k, Integral) or top_k < 1):
            raise UsageError(f"top_k is {top_k!r}; give an integer of 1 or more, or None for all")
        scores = self.score([query] * len(codes), codes, quality=quality, instruction=instruction, progress=progress)
        order = np.argsort(-scores, kind="stable")[:top_k]
        return [RankedCode(int(index), float(scores[index])) for index in order]

    def probability(self, scores: np.ndarray | Sequence[float]) -> np.ndarray:
        """Sigmoid of log-odds, float32 of the same shape: what the model takes for the chance that the code is what
        was asked for (SynH-Rank, Eq. 1). For display: rank by the scores, which tell apart what rounds to 1 here."""
        return np.exp(-np.logaddexp(0, -np.asarray(scores, dtype=np.float64))).astype(np.float32)

    def explain(
        self, query: str, code: str, *, quality: str | Iterable[str] = (), instruction: str | None = None
    ) -> Explanation:
        """What one score is made of.

        Raises:
            `UsageError`, `QualcodeError`: As `score`.
        """
        _texts("query and code", [query, code])
        (asked,) = _instructions(quality, instruction, 1)
        (logit,) = self._logits([asked], [query], [code])
        if self.fusion is None:
            score, parts = logit, [Part("model", float(logit))]
        else:
            (score,) = self._fused([asked], [query], [code], np.array([logit], dtype=np.float32))
            parts = [Part(*part) for part in self.fusion.explain(asked, query, code, float(logit))]
        read = code if self.tags is None else self.tags(code)
        tags = read.removesuffix(code).rstrip("\n") if read != code else ""
        return Explanation(float(score), float(self.probability(score)), asked, tags, parts)

    def save_pretrained(self, folder: str | Path, *, card=None, merge: bool = False, base: str | None = None) -> Path:
        """Saves a folder that `AutoModelForSequenceClassification`, sentence-transformers' `CrossEncoder`,
        text-embeddings-inference and `from_pretrained` take as it is; of a model with a LoRA adapter, the adapter.

        The folder is written beside its place and moved there whole. An earlier reranker there is replaced. Weights
        keep the precision they are in: load with `precision="float32"` what is to be saved in float32.

        Args:
            folder (`str` or `Path`): Where.
            card (`CardFacts` or `str`, *optional*): What its README says of training and results, or the whole README.
            merge (`bool`, *optional*, defaults to `False`): Save the whole model, the adapter merged into it.
            base (`str`, *optional*): Of an adapter, how it names the model it belongs to, such as `"org/name"` or
                `"minilm"`; defaults to `self.base`, else to what peft knows.

        Returns:
            `Path`: The folder.

        Raises:
            `UsageError`: If the place is taken by anything but a reranker.
            `QualcodeError`: If it cannot be written.
        """
        from hf_qualcode.rerank.saving import save_reranker

        if not isinstance(folder, str | Path):
            raise UsageError(f"folder is {_kind(folder)}; give the path of a folder to save to")
        return save_reranker(self, Path(folder), card=card, merge=merge, base=base)

    def push_to_hub(
        self,
        repo_id: str,
        *,
        card=None,
        merge: bool = False,
        base: str | None = None,
        private: bool | None = None,
        revision: str | None = None,
        commit_message: str = "Reranker saved by hf-qualcode",
    ) -> str:
        """Saves to a repository of the Hugging Face Hub, which is made where it does not exist.

        Args:
            repo_id (`str`): `org/name`.
            card, merge, base (*optional*): As for `save_pretrained`.
            private (`bool`, *optional*): Of a new repository; defaults to what the owner's settings say.
            revision (`str`, *optional*): Branch; defaults to `main`.
            commit_message (`str`, *optional*): Of the commit.

        Returns:
            `str`: Address of the commit.

        Raises:
            `UsageError`: If `repo_id` is no name of a repository.
            `QualcodeError`: If nobody is logged in, or the Hub refuses or cannot be reached.
        """
        from hf_qualcode.rerank.publishing import push_reranker

        return push_reranker(
            self, repo_id, card=card, merge=merge, base=base, private=private, revision=revision,
            commit_message=commit_message,
        )  # fmt: skip


def _texts(name: str, values: Sequence[str]) -> list[str]:
    """`values` as a list, checked to hold text alone, in an order that its giver chose."""
    no_list = isinstance(values, str | bytes | Mapping | set | frozenset) or not isinstance(values, Iterable)
    if no_list or getattr(values, "ndim", 1) != 1:
        raise UsageError(f"{name} is {_kind(values)}; give a list of texts")
    values = list(values)
    for place, value in enumerate(values):
        if not isinstance(value, str):
            where = f"{name}[{place}]" if len(values) > 1 else name
            raise UsageError(f"{where} is {_kind(value)}; give text")
    return values


def _kind(value: object) -> str:
    return "None" if value is None else f"of type {type(value).__name__}"


def _instructions(quality: str | Iterable[str], instruction: str | Sequence[str] | None, number: int) -> list[str]:
    if instruction is None:
        try:
            return [instruction_for(quality)] * number
        except TypeError:
            raise UsageError(f"quality is {quality!r:.60}; give a list of names, such as ['speed']") from None
        except ValueError as error:
            raise UsageError(str(error)) from None
    if isinstance(instruction, str):
        return [instruction] * number
    instructions = _texts("instruction", instruction)
    if len(instructions) != number:
        raise UsageError(f"{len(instructions)} instructions for {number} codes; give one for each, or one for all")
    return instructions
