"""One bundled reranker from some problems: the parts of its fusion, their mixture, and its model."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from hf_qualcode.benchmark.drawing import draw_key
from hf_qualcode.rerank.fusion import Fusion, FusionWeights
from hf_qualcode.rerank.fusion_training import RelevanceSource, fit_relevance_map, fit_static_weights
from hf_qualcode.rerank.lists import RankingList
from hf_qualcode.rerank.literals import document_frequencies
from hf_qualcode.rerank.recipe.lists import quality_lists, relevance_lists
from hf_qualcode.rerank.recipe.mixture import START, Evidence, choose_mixture, list_evidence, pair_evidence
from hf_qualcode.rerank.recipe.sources import Sources
from hf_qualcode.rerank.relevance import TextVectors
from hf_qualcode.rerank.reranker import Reranker
from hf_qualcode.rerank.tags import JudgedTags
from hf_qualcode.types import PreferencePair


logger = logging.getLogger(__name__)

BASE = "minilm"


@dataclass(frozen=True)
class Recipe:
    """What is fixed beforehand.

    Attributes:
        max_length (`int`): Tokens of an input.
        code_share (`float`): Of a long input, the part that is the code's whatever the query's length.
        rank (`int`), num_layers (`int`): Of the LoRA adapter, on the last layers.
        learning_rate (`float`), lists_a_step (`int`): Of both stages.
        warm_lists (`int`): Quality lists of the first stage, none of them negated: a model that hears both polarities
            from the start learns neither.
        both_lists (`int`): Quality lists of the second stage, in twins.
        relevance_lists (`int`): Of each source of relevance, in each stage.
        model_weight (`float`): Of the model's logit in the fused score.
        relevance_weight (`float`): Of a source of relevance beside the problems' own.
        num_inner_folds (`int`): Of the folds on which the mixture is chosen.
    """

    max_length: int = 128
    code_share: float = 0.5
    rank: int = 16
    num_layers: int = 3
    learning_rate: float = 1e-3
    lists_a_step: int = 8
    warm_lists: int = 160
    both_lists: int = 240
    relevance_lists: int = 32
    model_weight: float = 0.3
    relevance_weight: float = 0.3
    num_inner_folds: int = 3


DEFAULT = Recipe()


def train_bundled(
    sources: Sources,
    problem_ids: Sequence[str],
    vectors: TextVectors,
    work: Path,
    *,
    recipe: Recipe = DEFAULT,
    seed: int = 42,
    progress: Callable[[str, int, int | None], None] | None = None,
) -> Reranker:
    """Trains on some problems, and sees nothing of the others.

    Args:
        sources (`Sources`): All data.
        problem_ids (`Sequence[str]`): The problems to learn from.
        vectors (`TextVectors`): Of the base model's text encoder.
        work (`Path`): Folder for the trainer's output.
        recipe (`Recipe`, *optional*): What is fixed beforehand.
        seed (`int`, *optional*, defaults to 42): Of every draw.
        progress (`Callable`, *optional*): Called as `progress(stage, done, total)`.
    """
    pairs = sources.pairs_of(problem_ids)
    fusion = fit_fusion(sources, pairs, vectors, recipe, seed)
    reranker = train_model(sources, pairs, work, recipe, seed)
    reranker.fusion = fusion
    return reranker


def fit_fusion(
    sources: Sources, pairs: Sequence[PreferencePair], vectors: TextVectors, recipe: Recipe, seed: int
) -> Fusion:
    """The fusion of some problems. The mixture is chosen on inner folds over the problems, each asked about by parts
    that were fitted to the others."""
    problems = sorted({pair.problem_id for pair in pairs}, key=lambda name: draw_key(seed, "inner fold", name))
    fold = {name: place % recipe.num_inner_folds for place, name in enumerate(problems)}
    asked: list[tuple[Evidence, Evidence]] = []
    for number in range(recipe.num_inner_folds):
        parts = _fit_parts(sources, [p for p in pairs if fold[p.problem_id] != number], START, vectors, recipe, seed)
        held_out = [pair for pair in pairs if fold[pair.problem_id] == number]
        asked.append((pair_evidence(parts, held_out), list_evidence(parts, held_out, seed)))
    weights = choose_mixture(*(Evidence.joined(part) for part in zip(*asked, strict=True)))
    weights = replace(weights, model_weight=recipe.model_weight)
    return _fit_parts(sources, pairs, weights, vectors, recipe, seed)


def _fit_parts(
    sources: Sources,
    pairs: Sequence[PreferencePair],
    weights: FusionWeights,
    vectors: TextVectors,
    recipe: Recipe,
    seed: int,
) -> Fusion:
    queries = {pair.problem_id: pair.query for pair in pairs}
    programs = sorted({(code, pair.problem_id) for pair in pairs for code in (pair.positive, pair.negative)})
    rows = {name: row for row, name in enumerate(queries)}
    own = RelevanceSource(
        vectors(list(queries.values()), is_query=True),
        vectors([code for code, _ in programs], is_query=False),
        np.array([rows[name] for _, name in programs]),
    )
    others = [
        RelevanceSource(
            vectors(source.queries, is_query=True),
            vectors([*source.codes, *source.others], is_query=False),
            np.array([*range(len(source.codes)), *[-1] * len(source.others)]),
            recipe.relevance_weight,
        )
        for source in sources.relevant
    ]
    return Fusion(
        weights,
        fit_static_weights(pairs),
        fit_relevance_map([own, *others], seed=seed),
        # Words of the problems alone: what is rare among them says which one a literal belongs to.
        document_frequencies(queries.values()),
        len(set(queries.values())),
        encoder=BASE,
        vectors=vectors,
    )


def train_model(sources: Sources, pairs: Sequence[PreferencePair], work: Path, recipe: Recipe, seed: int) -> Reranker:
    """The model: a LoRA adapter and a head on the packaged MiniLM, in two stages (see `Recipe`)."""
    from peft import LoraConfig
    from transformers import set_seed

    from hf_qualcode.rerank.backbones import load_backbone
    from hf_qualcode.rerank.config import RerankConfig
    from hf_qualcode.rerank.lists import lists_to_dataset
    from hf_qualcode.rerank.trainer import RerankTrainer

    set_seed(seed)  # of the new head
    backbone = load_backbone(BASE, training=True, max_length=recipe.max_length)
    backbone.code_share = recipe.code_share
    programs = sorted({code for pair in pairs for code in (pair.positive, pair.negative)})
    tags = JudgedTags.fit(fit_static_weights(pairs), programs)
    stages = [
        quality_lists(pairs, both=False, size=recipe.warm_lists, seed=seed),
        quality_lists(pairs, both=True, size=recipe.both_lists, seed=seed + 1),
    ]
    for number, lists in enumerate(stages):
        for source in sources.relevant:
            lists += relevance_lists(source, size=recipe.relevance_lists, seed=seed + number)
    ordered = [each for number, lists in enumerate(stages) for each in _shuffled(lists, seed + number)]
    last = backbone.model.config.num_hidden_layers
    adapter = LoraConfig(
        task_type="SEQ_CLS", r=recipe.rank, lora_alpha=2 * recipe.rank,
        target_modules=["query", "key", "value", "dense"],
        layers_to_transform=list(range(last - recipe.num_layers, last)), layers_pattern="layer",
        modules_to_save=["classifier", "pooler"],
    )  # fmt: skip
    config = RerankConfig(
        output_dir=str(work), per_device_train_batch_size=recipe.lists_a_step, learning_rate=recipe.learning_rate,
        train_sampling_strategy="sequential", warmup_steps=5, save_strategy="no", report_to="none", seed=seed,
        logging_steps=10,
    )  # fmt: skip
    trainer = RerankTrainer(
        backbone, config, train_dataset=lists_to_dataset(ordered), peft_config=adapter, tags=tags
    )
    trainer.train()
    backbone.model = trainer.model.eval()
    return Reranker(backbone, tags, name="bundled", base=BASE)


def _shuffled(lists: Sequence[RankingList], seed: int) -> list[RankingList]:
    """In random order, twins side by side."""

    def key(each: RankingList) -> tuple[int, str]:
        return draw_key(seed, each.id.removesuffix("/negated")), each.id

    return sorted(lists, key=key)
