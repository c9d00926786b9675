"""Tiny real rerankers, made in code."""

from pathlib import Path

from tests.conftest import TINY_TEXTS, train_word_pieces


QUALITY = ["Retrieve code that is fast", "yes or no", "Judge whether the Document meets the requirements"]
CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def byte_pairs(*, chat_template: str | None = CHAT_TEMPLATE, pad: bool = True, vocab_size: int = 400):
    """A byte-level BPE tokenizer with Qwen's pattern and control tokens; `yes` and `no` are single tokens."""
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    words = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    pattern = words + r"|\s*[\r\n]+|\s+(?!\S)|\s+"
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(pattern), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    backend.decoder = decoders.ByteLevel()
    backend.post_processor = processors.ByteLevel(trim_offsets=False)
    specials = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), special_tokens=specials,
        show_progress=False, min_frequency=1,
    )  # fmt: skip
    backend.train_from_iterator(["yes no yes no yes no\nyes\nno"] * 20 + TINY_TEXTS + QUALITY, trainer)
    backend.add_tokens([AddedToken(token, normalized=False) for token in ("<think>", "</think>")])
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, eos_token="<|im_end|>", pad_token="<|endoftext|>" if pad else None,
        chat_template=chat_template, model_max_length=2048,
        extra_special_tokens=["<|im_start|>", "<|endoftext|>"],
    )  # fmt: skip


def save_tiny_decoder(
    folder: Path, *, kind: str = "qwen3", classifier: bool = False, tied: bool = True, dtype=None, seed: int = 0,
    tokenizer=None, **config,
) -> Path:  # fmt: skip
    """A folder of a two-layer language model (or classifier) with grouped-query attention and random weights."""
    import torch
    import transformers

    name = {"qwen3": "Qwen3", "llama": "Llama"}[kind]
    tokenizer = tokenizer or byte_pairs()
    torch.manual_seed(seed)
    made = getattr(transformers, f"{name}Config")(
        **{
            "vocab_size": len(tokenizer) + 3, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
            "num_key_value_heads": 2, "head_dim": 8, "intermediate_size": 48, "max_position_embeddings": 2048,
            "pad_token_id": tokenizer.pad_token_id, "tie_word_embeddings": tied, "initializer_range": 0.3,
            "num_labels": 1, **config,
        }
    )  # fmt: skip
    model_class = getattr(transformers, f"{name}For{'SequenceClassification' if classifier else 'CausalLM'}")
    model_class(made).to(dtype or torch.float32).eval().save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def save_tiny_encoder(folder: Path, *, kind: str = "bert", num_labels: int = 1, seed: int = 0) -> Path:
    """A folder of a two-layer cross-encoder with random weights: `bert` or `xlm-roberta`."""
    import torch
    from tokenizers.processors import TemplateProcessing
    from transformers import AutoConfig, AutoModelForSequenceClassification, PreTrainedTokenizerFast

    words = train_word_pieces()
    bert = kind == "bert"
    words.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1" if bert else "[CLS] $A [SEP] [SEP] $B [SEP]",
        special_tokens=[(token, words.token_to_id(token)) for token in ("[CLS]", "[SEP]")],
    )
    types = ["token_type_ids"] if bert else []
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=words, model_max_length=128, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]",
        sep_token="[SEP]", mask_token="[MASK]", model_input_names=["input_ids", "attention_mask", *types],
    )  # fmt: skip
    torch.manual_seed(seed)
    config = AutoConfig.for_model(
        kind, vocab_size=words.get_vocab_size(), hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=64, max_position_embeddings=128 + (not bert) * (tokenizer.pad_token_id + 1),
        type_vocab_size=1 + bert, pad_token_id=tokenizer.pad_token_id, initializer_range=0.2, num_labels=num_labels,
    )  # fmt: skip
    AutoModelForSequenceClassification.from_config(config).eval().save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
