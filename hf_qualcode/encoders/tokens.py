"""Texts to token ids: truncated, in batches, whatever the text holds."""

import re
from collections.abc import Sequence
from typing import Any

from hf_qualcode.batching import replace_surrogates
from hf_qualcode.encoders.recipe import EncoderRecipe
from hf_qualcode.types import QualcodeError


# A token of code is about 3.5 characters long; a text that is cut too short at this rate is tokenised again in full.
_CHARACTERS_A_TOKEN = 16


class TextTokenizer:
    """Token ids as the encoder wants them, special tokens included, no padding.

    Args:
        recipe (`EncoderRecipe`):
            The encoder. With `tokenizer.json` present and `direct=True` that file alone is read, without transformers.
        direct (`bool`, *optional*, defaults to `False`):
            Whether `tokenizer.json` may be trusted to be complete, as it is for BERT and its kin; other tokenizers get
            their special tokens from transformers.
    """

    def __init__(self, recipe: EncoderRecipe, *, direct: bool = False):
        from tokenizers import Tokenizer

        self.max_length = recipe.max_length
        file = recipe.model_folder / "tokenizer.json"
        self._slow: Any = None
        try:
            if direct and file.is_file():
                self._tokenizer = Tokenizer.from_file(str(file))
                side = (self._tokenizer.truncation or {}).get("direction", "right").lower()
            else:
                from transformers import AutoTokenizer

                tokenizer = AutoTokenizer.from_pretrained(
                    recipe.model_folder, local_files_only=True, trust_remote_code=False
                )
                if len(tokenizer) <= len(tokenizer.all_special_ids):  # made from nothing, where the files are absent
                    raise ValueError("it has no vocabulary")
                side = tokenizer.truncation_side
                if tokenizer.is_fast:
                    self._tokenizer = tokenizer.backend_tokenizer
                else:
                    self._slow = tokenizer
        except Exception as error:  # what tokenizers raises for any damage is a bare Exception
            reason = str(error).strip().partition("\n")[0]
            raise QualcodeError(
                f"tokenizer of encoder {recipe.folder} cannot be loaded ({reason}); it is absent or damaged"
            ) from error
        if self._slow is None:
            self._tokenizer.no_padding()
            self._tokenizer.enable_truncation(self.max_length, direction=side)
        # Only a text that is cut at its end may be cut before it is tokenised.
        self._cut = self.max_length * _CHARACTERS_A_TOKEN if side == "right" else None

    def __call__(self, texts: Sequence[str]) -> list[list[int]]:
        """Tokenise.

        Args:
            texts (`Sequence[str]`): Any strings; lone surrogates are read as U+FFFD.

        Returns:
            `list[list[int]]`: At most `max_length` ids a text. A text without a token gets one padding token.
        """
        heads = [self._head(text) for text in texts]
        ids = self._encode(heads)
        again = [
            row
            for row, (text, head) in enumerate(zip(texts, heads, strict=True))
            if len(head) < len(text) and len(ids[row]) < self.max_length
        ]
        if again:
            for row, full in zip(again, self._encode([texts[row] for row in again]), strict=True):
                ids[row] = full
        return [row or [self._padding_id()] for row in ids]

    def _head(self, text: str) -> str:
        """The start of a long text, up to a white space, so that no token at the cut is another than in the full text.

        Without it a megabyte would be tokenised for the sake of its first kilobyte.
        """
        if self._cut is None or len(text) <= self._cut:
            return text
        space = re.compile(r"\s").search(text, self._cut)
        return text[: space.start()] if space else text

    def _encode(self, texts: Sequence[str]) -> list[list[int]]:
        try:
            return self._encode_valid(texts)
        except (TypeError, UnicodeEncodeError):  # what tokenizers raises on a lone surrogate
            return self._encode_valid([replace_surrogates(text) for text in texts])

    def _encode_valid(self, texts: Sequence[str]) -> list[list[int]]:
        if self._slow is not None:
            return self._slow(list(texts), truncation=True, max_length=self.max_length)["input_ids"]
        return [encoding.ids for encoding in self._tokenizer.encode_batch_fast(list(texts))]

    def _padding_id(self) -> int:
        if self._slow is not None:
            return self._slow.pad_token_id or 0
        return next((id for name in ("[PAD]", "<pad>") if (id := self._tokenizer.token_to_id(name)) is not None), 0)
