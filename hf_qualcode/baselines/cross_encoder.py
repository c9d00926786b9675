"""Any cross-encoder: a transformer that reads instruction, query and code together and gives one number."""

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from hf_qualcode.batching import replace_surrogates, token_batches
from hf_qualcode.evaluation.protocols import LOG_ODDS
from hf_qualcode.hub import resolve_model
from hf_qualcode.retrieve.recipe import EncoderRecipe
from hf_qualcode.types import QualcodeError, UsageError


logger = logging.getLogger(__name__)

# The part of a long input that is the code's whatever the query's length: two programs that are both cut away cannot
# be told apart.
_CODE_SHARE = 0.25
# A token of code is about 3.5 characters long; what lies beyond this many is never read.
_CHARACTERS_A_TOKEN = 64
_TOKENS_A_BATCH = 2048
_TOKENS_A_BATCH_ACCELERATED = 32768
# Inputs that are tokenised, then sorted by length, together.
_INPUTS_A_WINDOW = 8192


class Trims(NamedTuple):
    """How many of a call's distinct inputs were too long.

    Attributes:
        inputs (`int`): Distinct inputs.
        codes, queries (`int`): Of them, those whose code, or whose query as well, was cut at its end.
    """

    inputs: int
    codes: int
    queries: int


class CrossEncoderScorer:
    """A `Scorer`: the logit of a sequence classifier with one label, for instruction, newline and query as its first
    segment and the code as its second.

    Long inputs: the code is cut first, down to a quarter of the room, then the query. The instruction stays.

    Args:
        folder (`Path`): A transformers or sentence-transformers folder with safetensors weights.
        name (`str`): What messages call it.
        device (`str`, *optional*): Defaults to the accelerator that torch finds, else the CPU.
        max_length (`int`, *optional*): Tokens of an input, special ones included; defaults to what the model can read.
        progress (`Callable`, *optional*): Called as `progress(stage, done, total)`.

    Attributes:
        trims (`Trims`): Of the last call.

    Raises:
        `QualcodeError`: If the model cannot be loaded, has not one label, or its head was never trained.
    """

    scale = LOG_ODDS

    def __init__(
        self,
        folder: Path,
        *,
        name: str,
        device: str | None = None,
        max_length: int | None = None,
        progress: Callable[[str, int, int | None], None] | None = None,
    ):
        recipe = EncoderRecipe.read(folder)
        recipe.refuse_own_code()
        self.name, self.progress = name, progress
        self.max_length = recipe.max_length if max_length is None else min(max_length, recipe.max_length)
        self.trims = Trims(0, 0, 0)
        accelerated = torch.accelerator.is_available()
        self.device = torch.device(device or (torch.accelerator.current_accelerator() if accelerated else "cpu"))
        self.model = _load_model(recipe.model_folder, name).to(self.device)
        self._load_tokenizer(recipe.model_folder)

    def _load_tokenizer(self, folder: Path) -> None:
        from transformers import AutoTokenizer

        try:
            tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
            backend = tokenizer.backend_tokenizer if tokenizer.is_fast else None
        except Exception as error:  # what tokenizers raises for any damage is a bare Exception
            reason = str(error).strip().partition("\n")[0]
            raise QualcodeError(f"tokenizer of cross-encoder {self.name} cannot be loaded ({reason})") from error
        if backend is None:
            raise QualcodeError(f"cross-encoder {self.name} has no tokenizer.json; save its tokenizer as a fast one")
        backend.no_padding()
        backend.no_truncation()
        self._tokenizer = backend
        self._with_types = "token_type_ids" in tokenizer.model_input_names
        self._padding_id = tokenizer.pad_token_id or 0
        self._room = self.max_length - backend.num_special_tokens_to_add(True)
        if self._room < 4:
            raise QualcodeError(f"cross-encoder {self.name} reads {self.max_length} tokens: too few for two texts")

    def score(self, instructions: Sequence[str], queries: Sequence[str], codes: Sequence[str]) -> np.ndarray:
        """See `Scorer.score`. Each distinct input is scored once."""
        first = [f"{instruction}\n{query}" for instruction, query in zip(instructions, queries, strict=True)]
        place: dict[tuple[str, str], int] = {}
        rows = [place.setdefault(texts, len(place)) for texts in zip(first, codes, strict=True)]
        inputs = list(place)
        self.trims = Trims(len(inputs), 0, 0)
        logits = np.empty(len(inputs), dtype=np.float32)
        done = 0
        for start in range(0, len(inputs), _INPUTS_A_WINDOW):
            encodings = self._encode(inputs[start : start + _INPUTS_A_WINDOW])
            budget = _TOKENS_A_BATCH if self.device.type == "cpu" else _TOKENS_A_BATCH_ACCELERATED
            for batch in token_batches([len(encoding.ids) for encoding in encodings], budget):
                logits[start + batch] = self._run([encodings[row] for row in batch])
                done += len(batch)
                if self.progress is not None:
                    self.progress("scoring programs", done, len(inputs))
        if self.trims.codes:
            logger.warning(
                "cross-encoder %s reads %d tokens: of %d inputs, the code of %d was cut, and the query of %d",
                self.name, self.max_length, *self.trims,
            )  # fmt: skip
        return logits[rows]

    def _encode(self, inputs: list[tuple[str, str]]) -> list:
        """Token ids of both segments with special tokens, at most `max_length`."""
        tokens = {text: None for pair in inputs for text in pair}
        most = self.max_length * _CHARACTERS_A_TOKEN
        texts = [replace_surrogates(text[:most]) for text in tokens]
        tokens = dict(zip(tokens, self._tokenizer.encode_batch(texts, add_special_tokens=False), strict=True))
        pairs = []
        for first, code in inputs:
            query_length, code_length = len(tokens[first].ids), len(tokens[code].ids)
            excess = max(0, query_length + code_length - self._room)
            code_cut = min(excess, max(0, code_length - int(self._room * _CODE_SHARE)))
            query_cut = excess - code_cut
            self.trims = Trims(
                self.trims.inputs, self.trims.codes + (code_cut > 0), self.trims.queries + (query_cut > 0)
            )
            pairs.append(
                self._tokenizer.post_process(
                    _cut(tokens[first], query_length - query_cut), _cut(tokens[code], code_length - code_cut)
                )
            )
        return pairs

    @torch.inference_mode()
    def _run(self, batch: list) -> np.ndarray:
        """Logits of one batch, float32 [num_inputs]."""
        longest = max(1, *(len(encoding.ids) for encoding in batch))

        def padded(rows: list[list[int]], filler: int) -> torch.Tensor:
            return torch.tensor([[*row, *[filler] * (longest - len(row))] for row in rows], device=self.device)

        tensors = {
            "input_ids": padded([encoding.ids for encoding in batch], self._padding_id),
            "attention_mask": padded([encoding.attention_mask for encoding in batch], 0),
        }
        if self._with_types:
            tensors["token_type_ids"] = padded([encoding.type_ids for encoding in batch], 0)
        logits = self.model(**tensors).logits.float().cpu().numpy()[:, 0]
        if not np.isfinite(logits).all():
            raise QualcodeError(f"cross-encoder {self.name} gave NaN or infinite scores; its weights are damaged")
        return logits


def _cut(encoding, length: int):
    from tokenizers import Encoding

    if len(encoding.ids) <= length:
        return encoding
    copy = Encoding.merge([encoding])
    copy.truncate(length)
    return copy


def _load_model(folder: Path, name: str):
    """The classifier, in float32: in half precision many programs would get one and the same score."""
    from transformers import AutoModelForSequenceClassification

    try:
        model, report = AutoModelForSequenceClassification.from_pretrained(
            folder,
            dtype=torch.float32,
            use_safetensors=True,
            local_files_only=True,
            trust_remote_code=False,
            output_loading_info=True,
        )
    except Exception as error:  # an odd configuration raises anything
        reason = str(error).strip().partition("\n")[0]
        raise QualcodeError(f"cross-encoder {name} cannot be loaded: {reason}") from error
    if model.config.num_labels != 1:
        raise UsageError(
            f"{name} has {model.config.num_labels} labels, or no trained head at all; a cross-encoder gives one score "
            "and has 1 label"
        )
    missing = sorted(report["missing_keys"])
    if missing:
        raise QualcodeError(
            f"weights of cross-encoder {name} lack {missing[0]} ({len(missing)} in all), so its scores would be "
            "random; name a model that was trained as a cross-encoder"
        )
    return model.eval()


def cross_encoder_scorer(name: str, *, device: str | None = None, progress=None) -> CrossEncoderScorer:
    """A scorer of single programs.

    Args:
        name (`str`): A folder or a Hub id of a sequence classifier with one label.
        device (`str`, *optional*): Defaults to the accelerator that torch finds, else the CPU.
        progress (`Callable`, *optional*): Called as `progress(stage, done, total)`.

    Raises:
        `QualcodeError`: If there is no such model, it cannot be loaded, or its head was never trained.
    """
    return CrossEncoderScorer(resolve_model(name), name=name, device=device, progress=progress)
