"""Any causal language model: the log-odds of the answer "yes" against "no"."""

from typing import NamedTuple

from transformers import PretrainedConfig, PreTrainedModel, PreTrainedTokenizerFast

from hf_qualcode.rerank.backbones._base import Backbone
from hf_qualcode.rerank.backbones._chat_template import render
from hf_qualcode.rerank.backbones._folder import ModelFolder
from hf_qualcode.rerank.backbones._loading import (
    CLASSIFIER,
    LoadOptions,
    classifier_class,
    load_classifier,
    load_config,
    load_tokenizer,
    loading,
    max_length,
)
from hf_qualcode.rerank.backbones._reading import BARE, CODE, INSTRUCTION, QUERY, PairTemplate
from hf_qualcode.rerank.modeling import is_decoder
from hf_qualcode.types import QualcodeError


# The wording of Qwen3-Reranker, for models that were never trained to rerank.
TASK = (
    "Judge whether the Document meets the requirements based on the Query and the Instruct provided. "
    'Note that the answer can only be "yes" or "no".'
)
FIELDS = (f"<Instruct>: {INSTRUCTION}\n<Query>: {QUERY}\n", f"<Document>: {CODE}")
_PLAIN = (f"{TASK}\n\n{FIELDS[0]}", f"{FIELDS[1]}\n\nAnswer:")
# A language model with one of these does something to its logits that the difference of two rows of its head lacks.
_ALTERED_LOGITS = ("final_logit_softcapping", "logit_scale", "logits_scaling", "lm_head_multiplier")


class Answers(NamedTuple):
    """Token ids of the two answers."""

    yes: int
    no: int


def claims(folder: ModelFolder) -> int:
    """How well this family fits a folder: 2 for causal language models and for classifiers made from one."""
    if folder.architecture.endswith("ForCausalLM"):
        return 2
    return 2 if folder.architecture.endswith(CLASSIFIER) and _is_decoder(folder) else 0


def load(
    folder: ModelFolder, options: LoadOptions, *, name: str = "causal", template=None, template_id=None, license=None
) -> Backbone:
    """The backbone in a folder.

    Args:
        folder (`ModelFolder`): A causal language model, or a sequence classifier that was made from one.
        options (`LoadOptions`): See `load_backbone`.
        name, template, template_id, license (*optional*): Of the family that reads its model as this one does.

    Raises:
        `QualcodeError`: If it cannot be loaded, "yes" or "no" is not one token, or its template drops a text.
    """
    config = load_config(folder)
    if not is_decoder(classifier_class(folder, config)):
        raise QualcodeError(f"{folder.name} ({folder.architecture}) is no decoder; read it by the backbone 'encoder'")
    tokenizer = load_tokenizer(folder)
    if template is None:
        template = _template(folder, tokenizer)
        template_id = list(template.texts())
    converted = folder.architecture.endswith(CLASSIFIER)
    if not converted and "score.weight" in folder.tensor_files:
        raise QualcodeError(
            f"{folder.name} has a trained head (score.weight), and its config.json names no architecture "
            f"...{CLASSIFIER} that has one; it is damaged: copy or download the model again"
        )
    if not converted:
        answers = find_answers(tokenizer, template, folder.name)
        template = _join_bare(tokenizer, template)
        template_id = template_id if isinstance(template_id, str) else list(template.texts())
    if config.pad_token_id is None or converted is False:
        config.pad_token_id = tokenizer.pad_token_id
    config._attn_implementation = "sdpa"
    model = load_classifier(folder, config, options) if converted else _convert(folder, config, options, answers)
    if options.device is not None:
        model.to(options.device)
    return Backbone(
        name=name,
        model=model,
        tokenizer=tokenizer,
        template=template,
        max_length=max_length(folder, options),
        template_id=template_id,
        license=license,
        source=folder.name,
    )


def find_answers(tokenizer: PreTrainedTokenizerFast, template: PairTemplate, name: str) -> Answers:
    """The tokens with which a model goes on behind its template.

    Raises:
        `QualcodeError`: If the tokenizer has no single token for "yes" or "no".
    """
    # Behind a blank, a line end or a control token the word stands bare, else it brings its blank along.
    bare = template.suffix[-1:].isspace() or template.suffix.endswith(tuple(tokenizer.all_special_tokens))
    found = []
    for word in ("yes", "no"):
        ids = tokenizer.backend_tokenizer.encode(word if bare else f" {word}", add_special_tokens=False).ids
        if len(ids) != 1 or ids[0] == tokenizer.unk_token_id:
            raise QualcodeError(
                f"the tokenizer of {name} has no single token for {word!r} ({len(ids)} tokens), so that answer has no "
                "probability of its own; name another language model"
            )
        found += ids
    if found[0] == found[1]:
        raise QualcodeError(f"the tokenizer of {name} has one token for 'yes' and 'no'; name another language model")
    return Answers(*found)


def _convert(folder: ModelFolder, config: PretrainedConfig, options: LoadOptions, answers: Answers) -> PreTrainedModel:
    """A causal language model as a classifier: its head is the difference of two rows of the language model's."""
    altered = [key for key in _ALTERED_LOGITS if getattr(config, key, None) not in (None, 1, 1.0)]
    if altered or "lm_head.bias" in folder.tensor_files:
        what = altered[0] if altered else "lm_head.bias"
        raise QualcodeError(f"{folder.name} has {what}, which a classifier has no place for; name another model")
    model = load_classifier(folder, config, options, new=frozenset({"score.weight"}))
    source = "lm_head.weight"
    if source not in folder.tensor_files:
        if not config.tie_word_embeddings:
            raise QualcodeError(f"weights of {folder.name} lack {source}; they are incomplete")
        embeddings = [name for name in folder.tensor_files if name.endswith("embed_tokens.weight")]
        source = embeddings[0] if embeddings else "model.embed_tokens.weight"
    rows = folder.tensor(source, rows=list(answers)).float()
    model.score.weight.data = rows[:1] - rows[1:]
    return model


def _template(folder: ModelFolder, tokenizer: PreTrainedTokenizerFast) -> PairTemplate:
    """The template that was saved with a reranker, else the tokenizer's own chat template, else a plain one."""
    saved = folder.settings.get("template")
    if isinstance(saved, list) and len(saved) == 2 and all(isinstance(text, str) for text in saved):
        return PairTemplate.parse(*saved, name=folder.name)
    if folder.architecture.endswith(CLASSIFIER):
        return BARE
    if not tokenizer.chat_template:
        return PairTemplate.parse(*_PLAIN, name=folder.name)
    with loading(folder, "chat template"):
        text = render(tokenizer, f"{TASK}\n\n{''.join(FIELDS)}", named=folder.name)
    before, document, after = text.partition(FIELDS[1])
    return PairTemplate.parse(before, document + after, name=folder.name)


def _join_bare(tokenizer: PreTrainedTokenizerFast, template: PairTemplate) -> PairTemplate:
    """Make the tokenizer join the texts of a pair with nothing between, its beginning token in the template."""
    backend = tokenizer.backend_tokenizer
    added = backend.post_process(backend.encode("", add_special_tokens=False)).tokens
    bos = tokenizer.bos_token
    if added and added[0] == bos and not template.head.startswith(bos):
        template = template._replace(head=bos + template.head)
    if backend.num_special_tokens_to_add(True):
        for flag in ("add_bos_token", "add_eos_token"):
            if getattr(tokenizer, flag, False):
                setattr(tokenizer, flag, False)
        from tokenizers.processors import Sequence

        backend.post_processor = Sequence([])
    return template


def _is_decoder(folder: ModelFolder) -> bool:
    return is_decoder(classifier_class(folder, load_config(folder)))
