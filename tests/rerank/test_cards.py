"""Model cards: metadata as the Hub parses it, what must be said is said, and nothing from outside breaks the page."""

import json

import numpy as np
import pytest
import yaml
from huggingface_hub import ModelCard, ModelCardData

from hf_qualcode import Reranker, instruction_for
from hf_qualcode.rerank.backbones import load_backbone
from hf_qualcode.rerank.cards import CardFacts, Result, TrainingData
from hf_qualcode.types import UsageError
from tests.rerank.tiny import save_tiny_decoder, save_tiny_encoder


FACTS = CardFacts(
    title="Tiny | <b>quality</b> reranker",
    base_model="org/base",
    license="apache-2.0",
    results=[
        Result(
            "QPA", 0.752, "QualCode, speed", low=0.731, high=0.771, n=1234,
            baselines={"shorter code": 0.61, "no numpy": 0.74}, dataset_id="org/qualcode", config="speed",
        ),
        Result("MRR@10", 0.9, "QualCode, relevance", baselines={"BM25": 0.8}),
    ],
    data=[
        TrainingData("QualCode", "CDLA-Permissive-2.0", "speed, memory and maintainability", "org/qualcode"),
        TrainingData("CoSQA", "MIT", "relevance"),
    ],
    training={"seed": 42, "epochs": 1, "loss": "delta_ndcg"},
    command="python examples/train_reranker.py --seed 42",
    notes=["Figures are out of fold: {{ 7 * 7 }}."],
)  # fmt: skip


@pytest.fixture(scope="module")
def backbone(tmp_path_factory):
    folder = save_tiny_encoder(tmp_path_factory.mktemp("sources") / "bert")
    return load_backbone(folder, device="cpu", precision="float32")


@pytest.fixture
def decoder(tmp_path):
    return load_backbone(save_tiny_decoder(tmp_path / "qwen3"), device="cpu", precision="float32")


def saved_card(reranker, folder, card):
    reranker.save_pretrained(folder, card=card)
    return ModelCard((folder / "README.md").read_text(encoding="utf-8"))


def test_metadata_is_what_the_hub_reads(backbone, tmp_path):
    card = saved_card(Reranker(backbone), tmp_path / "saved", FACTS)
    assert isinstance(card.data, ModelCardData)
    assert card.data.pipeline_tag == "text-ranking"
    assert card.data.library_name == "sentence-transformers"
    assert card.data.license == "apache-2.0"
    assert card.data.base_model == "org/base"
    assert {"cross-encoder", "reranker", "hf-qualcode"} <= set(card.data.tags)
    assert card.data.datasets == ["org/qualcode"]
    first, second = card.data.eval_results
    assert (first.metric_type, first.metric_value, first.dataset_type) == ("qpa", 0.752, "org/qualcode")
    assert (first.dataset_config, first.dataset_split, first.task_type) == ("speed", "test", "text-ranking")
    assert second.metric_name == "MRR@10" and second.dataset_type == "qualcode-relevance"
    (entry,) = yaml.safe_load((tmp_path / "saved" / ".eval_results" / "hf-qualcode.yaml").read_text())
    assert entry["dataset"] == {"id": "org/qualcode", "task_id": "speed"} and entry["value"] == 0.752
    assert "[0.731, 0.771]" in entry["notes"]


def test_what_must_be_said_is_said(backbone, tmp_path):
    text = saved_card(Reranker(backbone), tmp_path / "saved", FACTS).text
    row = next(line for line in text.splitlines() if line.startswith("| QualCode, speed"))
    for figure in ("0.752 [0.731, 0.771]", "1,234", "0.610", "0.740"):
        assert figure in row
    for said in (
        "SynH-Rank: Quality-Aware Code Search", "CodeHID: Learning an Addressable", "arXiv:2608.24089",
        "stand-alone Python programs", "Length bias", "judge's single runs",
        "CDLA-Permissive-2.0", "python examples/train_reranker.py --seed 42",
        "Reranker.from_pretrained", "AutoModelForSequenceClassification", "CrossEncoder", "text-embeddings-router",
        "BertForSequenceClassification", "**Tags**: none", "**Fusion**: none", "`apache-2.0`",
    ):  # fmt: skip
        assert said in text, said


def test_nothing_from_outside_breaks_the_page(backbone, tmp_path):
    text = saved_card(Reranker(backbone), tmp_path / "saved", FACTS).text
    assert "<b>" not in text and r"Tiny \| &lt;b&gt;quality&lt;/b&gt; reranker" in text
    assert "{{ 7 \\* 7 }}" in text  # text, not a template of its own


def test_without_facts_the_card_claims_nothing(backbone, tmp_path):
    card = saved_card(Reranker(backbone, name="mine"), tmp_path / "saved", None)
    assert card.data.eval_results is None and card.data.license is None and card.data.base_model is None
    assert "# mine" in card.text and "Not evaluated" in card.text and "is not said" in card.text
    assert "Not stated" in card.text and "contest problems" not in card.text
    assert not (tmp_path / "saved" / ".eval_results").exists()
    with pytest.raises(UsageError, match="of type dict"):
        Reranker(backbone).save_pretrained(tmp_path / "other", card={})
    Reranker(backbone).save_pretrained(tmp_path / "own", card="# Mine\n")
    assert (tmp_path / "own" / "README.md").read_text() == "# Mine\n"


@pytest.mark.parametrize("kind", ["encoder", "decoder"])
def test_the_pair_that_the_card_shows_gives_our_score(backbone, decoder, kind, tmp_path):
    from sentence_transformers import CrossEncoder

    reranker = Reranker(backbone if kind == "encoder" else decoder)
    text = saved_card(reranker, tmp_path / "saved", FACTS).text
    (line,) = [line for line in text.splitlines() if line.startswith("text, pair = ")]
    shown, end = json.JSONDecoder().raw_decode(line.removeprefix("text, pair = "))
    pair = json.loads(line.removeprefix("text, pair = ")[end + 2 :])
    query, code = "read a json file and print it", "import json\nprint(json.load(open(0)))\n"
    assert (shown, pair) == reranker.backbone.text_pair(instruction_for("speed"), query, code)
    given = CrossEncoder(str(tmp_path / "saved"), device="cpu", local_files_only=True).predict([(shown, pair)])
    np.testing.assert_allclose(given, reranker.score([query], [code], quality="speed"), atol=1e-4)


def test_tags_and_fusion_are_declared_in_words(backbone, tmp_path):
    class Fusion:
        description = "A linear model of the syntax tree is added."

        def save(self, folder):
            return {"kind": "linear"}

    def tags(code):
        return f"loops: 0\n{code}"

    tags.name = "python-1"
    text = saved_card(Reranker(backbone, tags, Fusion()), tmp_path / "saved", FACTS).text
    assert "**Tags** (`python-1`)" in text and "A linear model of the syntax tree is added." in text
    assert "fusion=False" in text and '"loops: 0\\nimport json' in text


def test_a_licence_against_commerce_reaches_what_is_derived(backbone, tmp_path, monkeypatch):
    monkeypatch.setattr(backbone, "license", "cc-by-nc-4.0")
    card = saved_card(Reranker(backbone), tmp_path / "saved", None)
    assert card.data.license == "cc-by-nc-4.0" and "Not for commercial use" in card.text
    with pytest.raises(UsageError, match="forbids commercial use"):
        Reranker(backbone).save_pretrained(tmp_path / "other", card=FACTS)
    assert not (tmp_path / "other").exists()


def test_an_adapters_card_says_what_it_is(tmp_path):
    from peft import LoraConfig, get_peft_model

    source = save_tiny_encoder(tmp_path / "bert")
    backbone = load_backbone(source, device="cpu", precision="float32", training=True)
    config = LoraConfig(task_type="SEQ_CLS", r=2, target_modules=["query"])
    backbone.model = get_peft_model(backbone.model, config).eval()
    Reranker(backbone).save_pretrained(tmp_path / "saved", base="minilm", card=CardFacts(title="Adapter"))
    card = ModelCard((tmp_path / "saved" / "README.md").read_text())
    assert card.data.library_name == "peft" and "lora" in card.data.tags
    assert card.data.base_model == "sentence-transformers/all-MiniLM-L6-v2"
    assert "LoRA adapter and a head" in card.text and "num_labels=1" in card.text
    assert "text-embeddings-router" not in card.text
