"""The bundled reranker: its model, and from some problems its tags, the parts of its fusion and their mixture."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from hf_qualcode.benchmark.drawing import draw_key
from hf_qualcode.quality import dimension_names
from hf_qualcode.quality.wishes import standard_instruction
from hf_qualcode.rerank.function_pairs import fit_function_weights, spread_of_programs
from hf_qualcode.rerank.fusion import Fusion, FusionWeights
from hf_qualcode.rerank.fusion_training import RelevanceSource, fit_relevance_map, fit_static_weights
from hf_qualcode.rerank.literals import document_frequencies
from hf_qualcode.rerank.recipe.lists import reading_lists
from hf_qualcode.rerank.recipe.mixture import START, Evidence, choose_mixture, list_evidence, pair_evidence
from hf_qualcode.rerank.recipe.sources import Sources
from hf_qualcode.rerank.relevance import TextVectors
from hf_qualcode.rerank.reranker import Reranker
from hf_qualcode.rerank.tags import JudgedTags
from hf_qualcode.types import PreferencePair


BASE = "minilm"


@dataclass(frozen=True)
class Recipe:
    """What is fixed beforehand.

    Attributes:
        max_length (`int`): Tokens of an input.
        code_share (`float`): Of a long input, the part that is the code's whatever the query's length.
        rank (`int`), num_layers (`int`): Of the LoRA adapter, on the last layers.
        learning_rate (`float`), lists_a_step (`int`): Of the lessons.
        lessons, warm_lessons (`int`): Lists, and of them the first that are never negated: a model that hears both
            polarities from the start learns neither.
        model_weight (`float`): Of the model's logit in the fused score.
        relevance_weight (`float`): Of a source of relevance beside the problems' own.
        num_inner_folds (`int`): Of the folds on which the mixture is chosen.
    """

    max_length: int = 96
    code_share: float = 0.5
    rank: int = 16
    num_layers: int = 3
    learning_rate: float = 1.5e-3
    lists_a_step: int = 8
    lessons: int = 6400
    warm_lessons: int = 400
    model_weight: float = 0.1
    relevance_weight: float = 0.3
    num_inner_folds: int = 4


DEFAULT = Recipe()


def train_reader(sources: Sources, work: Path, *, recipe: Recipe = DEFAULT, seed: int = 42) -> Reranker:
    """Trains the model: a LoRA adapter and a head on the packaged MiniLM.

    It learns from lessons (`reading_lists`) alone, so it has seen no problem of CodeNet and no label of quality, and
    serves every fold of a cross-validation as it is. What it is told about a program comes from tags, which are fitted
    to problems (`train_bundled`).

    Args:
        sources (`Sources`): Queries and codes; the quality pairs are not looked at.
        work (`Path`): Folder for the trainer's output.
        recipe (`Recipe`, *optional*): What is fixed beforehand.
        seed (`int`, *optional*, defaults to 42): Of every draw.
    """
    from peft import LoraConfig
    from transformers import set_seed

    from hf_qualcode.rerank.backbones import load_backbone
    from hf_qualcode.rerank.config import RerankConfig
    from hf_qualcode.rerank.lists import lists_to_dataset
    from hf_qualcode.rerank.trainer import RerankTrainer

    set_seed(seed)  # of the new head
    backbone = load_backbone(BASE, training=True, max_length=recipe.max_length)
    backbone.code_share = recipe.code_share
    lessons = reading_lists(sources.relevant, size=recipe.lessons, warm=recipe.warm_lessons, seed=seed)
    last = backbone.model.config.num_hidden_layers
    adapter = LoraConfig(
        task_type="SEQ_CLS", r=recipe.rank, lora_alpha=2 * recipe.rank,
        target_modules=["query", "key", "value", "dense"],
        layers_to_transform=list(range(last - recipe.num_layers, last)), layers_pattern="layer",
        modules_to_save=["classifier", "pooler"],
    )  # fmt: skip
    config = RerankConfig(
        output_dir=str(work), loss="distillation", per_device_train_batch_size=recipe.lists_a_step,
        learning_rate=recipe.learning_rate, train_sampling_strategy="sequential", warmup_steps=10,
        save_strategy="no", report_to="none", seed=seed, logging_steps=20,
    )  # fmt: skip
    trainer = RerankTrainer(backbone, config, train_dataset=lists_to_dataset(lessons), peft_config=adapter)
    trainer.train()
    backbone.model = trainer.model.eval()
    return Reranker(backbone, name="reader", base=BASE)


def load_reader(folder: Path, *, recipe: Recipe = DEFAULT) -> Reranker:
    """The reader that `train_reader(...).save_pretrained(folder)` saved, its adapter not merged, so that it can be
    saved again as one."""
    from peft import PeftModel

    from hf_qualcode.rerank.backbones import load_backbone

    backbone = load_backbone(BASE, training=True, max_length=recipe.max_length)
    backbone.code_share = recipe.code_share
    backbone.model = PeftModel.from_pretrained(backbone.model, folder).eval()
    return Reranker(backbone, name="reader", base=BASE)


def train_bundled(
    sources: Sources,
    problem_ids: Sequence[str],
    reader: Reranker,
    vectors: TextVectors,
    *,
    recipe: Recipe = DEFAULT,
    seed: int = 42,
) -> Reranker:
    """Fits what is learnt from problems: the tags that the reader reads, the other parts of the score, their mixture.

    Args:
        sources (`Sources`): All data; proven pairs of functions are learnt from whatever the problems.
        problem_ids (`Sequence[str]`): The problems to learn from; nothing of the others is seen.
        reader (`Reranker`): Of `train_reader`.
        vectors (`TextVectors`): Of the base model's text encoder.
        recipe (`Recipe`, *optional*): What is fixed beforehand.
        seed (`int`, *optional*, defaults to 42): Of every draw.
    """
    pairs = sources.pairs_of(problem_ids)
    fusion = fit_fusion(sources, pairs, vectors, recipe, seed)
    programs = sorted({code for pair in pairs for code in (pair.positive, pair.negative)})
    spread = spread_of_programs(fusion.static_weights, programs)
    fusion.function_weights = fit_function_weights(sources.functions, spread)
    tags = JudgedTags.fit(fusion.static_weights, programs)
    return Reranker(reader.backbone, tags, fusion, wording=standard_instruction, name="bundled", base=BASE)


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
        asked.append((pair_evidence(parts, held_out), list_evidence(parts, held_out, pairs, seed)))
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
        # Of functions, about which the mixture is not asked.
        fit_function_weights((), np.ones(len(dimension_names()))),
        fit_relevance_map([own, *others], seed=seed),
        # Words of the problems alone: what is rare among them says which one a literal belongs to.
        document_frequencies(queries.values()),
        len(set(queries.values())),
        encoder=BASE,
        vectors=vectors,
    )
