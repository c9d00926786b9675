"""A reranker's card: the template `model_cards/reranker.md` filled with what is known of it.

Names and sentences from outside are escaped, so that they cannot end a table or open a tag.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml
from huggingface_hub import EvalResult, EvalResultEntry, ModelCardData, eval_result_entries_to_yaml

from hf_qualcode import __version__
from hf_qualcode.benchmark.cards import Markdown, markdown_table, markdown_text
from hf_qualcode.quality import instruction_for
from hf_qualcode.rerank.saving import CARD_FILE, RESULTS_FILE, hub_name, is_adapter
from hf_qualcode.rerank.settings import RerankerSettings
from hf_qualcode.types import UsageError


TEMPLATE = "reranker.md"
# Of any model.
LIMITS = ("It reads code and does not run it: a score is a guess about cost, not a measurement.",)
# Of models trained on programs of CodeNet; see the card of QualCode.
QUALCODE_LIMITS = (
    "Learnt from stand-alone Python programs, mostly solutions to contest problems: functions, libraries and other "
    "languages are not what it knows, and its preferences there are unmeasured.",
    "Length bias: among solutions of one problem the shorter is often the better by its label, so length alone goes a "
    "long way. Compare with the trivial scorers.",
    "Speed and memory labels are a judge's single runs, start-up of the interpreter and imports included; memory is "
    "mostly about which interpreter ran. An expensive import weighs more than it would in a long run.",
    *LIMITS,
)
_PROGRAM = "import json\nprint(json.load(open(0)))\n"
_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")


@dataclass(frozen=True)
class Result:
    """One figure, and what to hold it against.

    Attributes:
        metric (`str`): As shown, for example `"QPA"`.
        value (`float`): The figure.
        data (`str`): On what, for example `"QualCode, speed"`.
        low, high (`float`, *optional*): Ends of its 95 % interval.
        n (`int`, *optional*): Pairs or queries.
        baselines (`Mapping[str, float]`): Trivial scorers and others -> the same figure for them.
        dataset_id (`str`): Hub id of the data set, where it has one.
        config, split (`str`): Of the data set.
    """

    metric: str
    value: float
    data: str
    low: float | None = None
    high: float | None = None
    n: int | None = None
    baselines: Mapping[str, float] = field(default_factory=dict)
    dataset_id: str = ""
    config: str = ""
    split: str = "test"


@dataclass(frozen=True)
class TrainingData:
    """One source of training data: its name, licence, what it taught, and its Hub id where it has one."""

    name: str
    license: str
    purpose: str
    dataset_id: str = ""


@dataclass(frozen=True)
class CardFacts:
    """What a card says that the model itself does not know.

    Attributes:
        title (`str`, *optional*): Defaults to the folder's name.
        base_model (`str`, *optional*): Hub id of what was trained; defaults to what the reranker knows.
        license (`str`, *optional*): Identifier as the Hub knows it; defaults to that of the base model.
        results (`Sequence[Result]`): Figures.
        clustered (`bool`): Whether their intervals are by problem.
        data (`Sequence[TrainingData]`): What it was trained on.
        training (`Mapping[str, object]`): Settings of the run, seed included.
        command (`str`): The command that made it.
        notes, limits (`Sequence[str]`): Sentences. Limits default to those of models trained on QualCode.
        languages (`Sequence[str]`): Of the texts.
    """

    title: str | None = None
    base_model: str | None = None
    license: str | None = None
    results: Sequence[Result] = ()
    clustered: bool = True
    data: Sequence[TrainingData] = ()
    training: Mapping[str, object] = field(default_factory=dict)
    command: str = ""
    notes: Sequence[str] = ()
    limits: Sequence[str] = QUALCODE_LIMITS
    languages: Sequence[str] = ("en", "code")


def write_card(reranker, folder: Path, settings: RerankerSettings, card: CardFacts | str | None) -> None:
    """Writes README.md, and the results file that the Hub shows where a result names its data set.

    Args:
        reranker (`Reranker`): Of which.
        folder (`Path`): Where.
        settings (`RerankerSettings`): As they are saved there.
        card (`CardFacts` or `str`, *optional*): What is known, or the whole text.

    Raises:
        `UsageError`: If `card` is neither, or takes a licence that the base model's forbids.
    """
    if isinstance(card, str):
        (folder / CARD_FILE).write_text(card, encoding="utf-8")
        return
    if card is not None and not isinstance(card, CardFacts):
        raise UsageError(f"card is of type {type(card).__name__}; give CardFacts, or the card's text")
    facts = card or CardFacts(limits=LIMITS)
    (folder / CARD_FILE).write_text(render_card(reranker, settings, facts), encoding="utf-8")
    entries = _result_entries(facts)
    if entries:
        (folder / RESULTS_FILE).parent.mkdir(exist_ok=True)
        text = yaml.safe_dump(eval_result_entries_to_yaml(entries), sort_keys=False)
        (folder / RESULTS_FILE).write_text(text, encoding="utf-8")


def render_card(reranker, settings: RerankerSettings, facts: CardFacts) -> str:
    """The README of a reranker: Markdown with the metadata block that the Hub reads.

    Args:
        reranker (`Reranker`): Of which.
        settings (`RerankerSettings`): As they are saved.
        facts (`CardFacts`): What else is known.
    """
    import jinja2

    facts = _complete(reranker, settings, facts)
    backbone = reranker.backbone
    adapter = settings.base is not None
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, keep_trailing_newline=True)
    template = (files("hf_qualcode") / "bundled" / "model_cards" / TEMPLATE).read_text(encoding="utf-8")
    base_license = getattr(backbone, "license", None)
    return environment.from_string(template).render(
        card_data=_metadata(facts, settings, adapter).to_yaml(),
        text=markdown_text,
        number=lambda value: f"{value:,}",
        version=__version__,
        title=facts.title,
        base_model=facts.base_model,
        is_adapter=adapter,
        is_decoder=backbone.is_decoder,
        architecture=_architecture(backbone.model),
        max_length=settings.max_length,
        code_share=f"{100 * backbone.code_share:g} %",
        example=_example(reranker),
        tags=settings.tags,
        fusion=_described(reranker.fusion),
        results=_results_table(facts.results),
        clustered=facts.clustered,
        data=_data_table(facts.data),
        training=_training_table(facts.training),
        command=facts.command,
        notes=facts.notes,
        limits=facts.limits,
        license=facts.license,
        base_license=base_license,
        non_commercial=_forbids_commerce(facts.license),
    )


def _complete(reranker, settings: RerankerSettings, facts: CardFacts) -> CardFacts:
    base = facts.base_model or hub_name(settings.base or reranker.base)
    if base is not None and not _HUB_ID.fullmatch(base):
        base = None  # a folder's path: means nothing elsewhere
    base_license = getattr(reranker.backbone, "license", None)
    license = facts.license or base_license
    if _forbids_commerce(base_license) and not _forbids_commerce(license):
        raise UsageError(
            f"the card says licence {license!r}, and the model it was made from is under {base_license!r}, which "
            f"forbids commercial use of what is made from it; say {base_license!r}"
        )
    return replace(facts, title=facts.title or reranker.name, base_model=base, license=license)


def _forbids_commerce(license: str | None) -> bool:
    return license is not None and "-nc" in license.lower()


def _metadata(facts: CardFacts, settings: RerankerSettings, adapter: bool) -> ModelCardData:
    results = [
        EvalResult(
            task_type="text-ranking",
            task_name="Text Ranking",
            dataset_type=result.dataset_id or re.sub(r"[^\w.-]+", "-", result.data.lower()).strip("-"),
            dataset_name=result.data,
            dataset_config=result.config or None,
            dataset_split=result.split or None,
            metric_type=re.sub(r"\W+", "_", result.metric.lower()).strip("_"),
            metric_name=result.metric,
            metric_value=result.value,
        )
        for result in facts.results
    ]
    data_sets = sorted({data.dataset_id for data in facts.data if data.dataset_id})
    return ModelCardData(
        language=list(facts.languages),
        license=facts.license,
        library_name="peft" if adapter else "sentence-transformers",
        pipeline_tag="text-ranking",
        tags=["hf-qualcode", "code", "code-search", "code-quality", "reranker", "cross-encoder"] + ["lora"] * adapter,
        base_model=facts.base_model,
        base_model_relation=("adapter" if adapter else "finetune") if facts.base_model else None,
        datasets=data_sets or None,
        model_name=facts.title if results else None,
        eval_results=results or None,
    )


def _result_entries(facts: CardFacts) -> list[EvalResultEntry]:
    return [
        EvalResultEntry(
            dataset_id=result.dataset_id,
            task_id=result.config or "default",
            value=result.value,
            notes=f"{result.metric}, {result.split}{_interval(result)}",
        )
        for result in facts.results
        if _HUB_ID.fullmatch(result.dataset_id)
    ]


def _interval(result: Result) -> str:
    if result.low is None or result.high is None:
        return ""
    return f" [{result.low:.3f}, {result.high:.3f}]"


def _results_table(results: Sequence[Result]) -> str:
    if not results:
        return ""
    names = list(dict.fromkeys(name for result in results for name in result.baselines))
    rows = [
        [
            result.data, result.metric, Markdown(f"{result.value:.3f}{_interval(result)}"), result.n,
            *(f"{result.baselines[name]:.3f}" if name in result.baselines else "" for name in names),
        ]
        for result in results
    ]  # fmt: skip
    return markdown_table(["data", "metric", "this model", "n", *names], rows)


def _data_table(data: Sequence[TrainingData]) -> str:
    rows = [[source.name, source.license, source.purpose] for source in data]
    return markdown_table(["data", "licence", "what it taught"], rows) if rows else ""


def _training_table(training: Mapping[str, object]) -> str:
    rows = [[name, str(value)] for name, value in training.items()]
    return markdown_table(["setting", "value"], rows) if rows else ""


def _example(reranker) -> dict[str, str]:
    """A pair as the model reads it, spelled as Python."""
    instruction, query = instruction_for("speed"), "read a json file and print it"
    code = _PROGRAM if reranker.tags is None else reranker.tags(_PROGRAM)
    text, pair = reranker.backbone.text_pair(instruction, query, code)
    return {"instruction": instruction, "query": query, "text": json.dumps(text), "pair": json.dumps(pair)}


def _described(fusion: Any) -> str:
    """A sentence about what a fusion adds; its own where it has one."""
    if fusion is None:
        return ""
    own = getattr(fusion, "description", None)
    return own if isinstance(own, str) and own else "The score is not the model's logit alone."


def _architecture(model) -> str:
    return type(model.get_base_model() if is_adapter(model) else model).__name__
