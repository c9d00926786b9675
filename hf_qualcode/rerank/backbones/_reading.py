"""Instruction, query and code to token ids: what the model reads, and what is cut where that is too long.

Two texts are tokenised, each on its own, and joined as the tokenizer joins pairs: the ids equal those that any stock
tool makes of `PairReader.text_pair`, as long as nothing is cut.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from tokenizers import Encoding

from hf_qualcode.batching import replace_surrogates
from hf_qualcode.rerank.inputs import EncodedInput, EncodedInputs, Trims
from hf_qualcode.types import QualcodeError, UsageError


# The part of the room that is the code's whatever the query's length: two programs that are both cut away cannot be
# told apart.
CODE_SHARE = 0.25
# Code has about 3.5 characters a token. What lies beyond this many a token is tokenised only where the text before it
# turned out to have few tokens.
_CHARACTERS_A_TOKEN = 64
INSTRUCTION, QUERY, CODE = "{instruction}", "{query}", "{code}"


class PairTemplate(NamedTuple):
    """The texts around instruction, query and code: text = head + instruction + middle + query + tail; its pair =
    lead + code + suffix."""

    head: str
    middle: str
    tail: str
    lead: str
    suffix: str

    @classmethod
    def parse(cls, text: str, pair: str, name: str) -> "PairTemplate":
        """A template from its two texts, with `{instruction}` and then `{query}` in the first and `{code}` in the
        second.

        Raises:
            `QualcodeError`: If a place is absent or repeated, so that different inputs could look the same.
        """
        for place, where, other in ((INSTRUCTION, text, pair), (QUERY, text, pair), (CODE, pair, text)):
            if where.count(place) != 1 or other.count(place):
                raise QualcodeError(
                    f"the template of {name} has {place} {where.count(place) + other.count(place)} times, or in the "
                    "wrong half; it needs each of instruction, query and code once, else different inputs look the "
                    "same to the model"
                )
        head, _, rest = text.partition(INSTRUCTION)
        middle, place, tail = rest.partition(QUERY)
        if not place:
            raise QualcodeError(f"the template of {name} has the query before the instruction; exchange them")
        lead, _, suffix = pair.partition(CODE)
        return cls(head, middle, tail, lead, suffix)

    def texts(self) -> tuple[str, str]:
        """The two texts that `parse` reads."""
        return f"{self.head}{INSTRUCTION}{self.middle}{QUERY}{self.tail}", f"{self.lead}{CODE}{self.suffix}"


# How encoders read: instruction, newline and query, then the code.
BARE = PairTemplate(head="", middle="\n", tail="", lead="", suffix="")


class PairReader:
    """Makes `EncodedInput`s.

    Text of strangers never becomes a control token: a space goes into the middle of anything that reads as one of the
    tokenizer's special tokens (`[SEP]` becomes `[ SEP]`), in `text_pair` as well, so that stock tools agree.

    Args:
        tokenizer (`PreTrainedTokenizerFast`): Of the model.
        template (`PairTemplate`): What stands around the texts.
        max_length (`int`): Tokens of an input, special ones and template included.
        name (`str`): What messages call the model.
        shares_prefix (`bool`): Whether tokens before the code depend on nothing behind them.

    Attributes:
        code_share (`float`): Of a long input's room, the part that is the code's whatever the query's length; .25.

    Raises:
        `QualcodeError`: If the maximum length leaves no room for the texts, or the tokenizer does not join pairs.
    """

    def __init__(self, tokenizer, template: PairTemplate, *, max_length: int, name: str, shares_prefix: bool):
        self.template, self.max_length, self.name, self.shares_prefix = template, max_length, name, shares_prefix
        self.code_share = CODE_SHARE
        self._backend = tokenizer.backend_tokenizer
        self._special = _special_tokens(tokenizer, template)
        with_types = "token_type_ids" in tokenizer.model_input_names
        self._layout = _Layout.learn(self._backend, name=name, with_types=with_types)
        around = self._tokenise([template.head + template.middle + template.tail, template.lead + template.suffix])
        self._around = [token for encoding in around for token in encoding.ids]
        self._room = max_length - self._layout.num_special - len(self._around)
        self._lead = self._tokenise([template.lead.rstrip(" ")])[0].ids if shares_prefix else []
        if self._room < 4:
            raise QualcodeError(
                f"reranker {name} would read {max_length} tokens, of which {max_length - self._room} are its "
                "template's: too few for two texts; give a larger maximum length"
            )

    def largest_id(self, num_embeddings: int) -> int:
        """The largest token id of an input, of those below `num_embeddings` and of those that a text may become."""
        layout = self._layout
        ids = [*layout.head, *layout.middle, *layout.tail, *self._around]
        for token, number in self._backend.get_vocab(with_added_tokens=True).items():
            # Models of texts alone keep special tokens for images, which no text becomes.
            if number >= num_embeddings and not (self._special and self._special.search(token)):
                ids.append(number)
        return max(ids, default=0)

    def largest_segment(self) -> int:
        """The largest segment of a token; 0 for models without segments."""
        return max(self._layout.type_ids(1, 1) or [0])

    def text_pair(self, instruction: str, query: str, code: str) -> tuple[str, str]:
        """The very texts that stock tools are given as text and its pair."""
        head, middle, tail, lead, suffix = self.template
        first = f"{head}{self._clean(instruction)}{middle}{self._clean(query)}{tail}"
        return first, f"{lead}{self._clean(code)}{suffix}"

    def __call__(self, instructions: Sequence[str], queries: Sequence[str], codes: Sequence[str]) -> EncodedInputs:
        """Token ids of each input, cut where it is too long.

        The code is cut first, down to `code_share` of the room and no further than to one token, then the query, then
        the rest of the code but for that token; instruction and template stay whole. Trims are counted over distinct
        inputs.

        Raises:
            `UsageError`: If an instruction alone is longer than the model can read.
        """
        head, middle, tail, lead, suffix = self.template
        asked = list(zip(instructions, queries, strict=True))
        firsts = self._segments(
            {key: (f"{head}{self._clean(key[0][: self._most])}{middle}", key[1], tail) for key in asked}
        )
        seconds = self._segments({code: (lead, code, suffix) for code in codes})
        made: dict[tuple, EncodedInput] = {}
        trims = Trims(0, 0, 0)
        inputs = []
        for key, code in zip(asked, codes, strict=True):
            encoded = made.get((key, code))
            if encoded is None:
                encoded, code_cut, query_cut = self._join(firsts[key], seconds[code])
                made[key, code] = encoded
                trims = Trims(trims.inputs + 1, trims.codes + (code_cut > 0), trims.queries + (query_cut > 0))
            inputs.append(encoded)
        return EncodedInputs(inputs, trims)

    @property
    def _most(self) -> int:
        return self.max_length * _CHARACTERS_A_TOKEN

    def _join(self, first: "_Segment", second: "_Segment") -> tuple[EncodedInput, int, int]:
        """One input, and how many tokens of code and query were cut."""
        first_length, second_length = len(first.ids), len(second.ids)
        excess = first_length + second_length + self._layout.num_special - self.max_length
        if excess <= 0:
            return self._assemble(first.ids, second.ids), 0, 0
        query, code = first.body(), second.body()
        kept = max(1, int(self._room * self.code_share))
        code_cut = min(excess, max(0, len(code) - kept))
        query_cut = min(excess - code_cut, len(query))
        code_cut = excess - query_cut
        if code_cut >= len(code) and code_cut > 0:
            raise UsageError(
                f"an instruction of {first_length - len(query)} tokens, its template included, leaves no room for "
                f"code in the {self.max_length} tokens that reranker {self.name} reads; give a shorter one"
            )
        return self._assemble(first.without(query_cut), second.without(code_cut)), code_cut, query_cut

    def _assemble(self, first: list[int], second: list[int]) -> EncodedInput:
        layout, prefix_length = self._layout, 0
        ids = [*layout.head, *first, *layout.middle, *second, *layout.tail]
        if self.shares_prefix:
            shared = len(self._lead) if second[: len(self._lead)] == self._lead else 0
            # The score stands at the last token, which must be a candidate's own: an empty code may have no other.
            prefix_length = min(len(ids) - len(layout.tail) - len(second) + shared, len(ids) - 1)
        return EncodedInput(ids, layout.type_ids(len(first), len(second)), prefix_length)

    def _segments(self, parts: dict) -> dict[object, "_Segment"]:
        """Tokens of (text before, text that may be cut, text behind), by the keys of `parts`."""
        pending, limit, segments = parts, self._most, {}
        while pending:
            cleaned = {
                key: (before, self._clean(text[:limit]), after) for key, (before, text, after) in pending.items()
            }
            encodings = self._tokenise(["".join(part) for part in cleaned.values()])
            longer = {}
            for (key, (before, text, _)), encoding in zip(cleaned.items(), encodings, strict=True):
                # Few tokens for many characters, for example a page of blanks: what follows may still be read.
                if len(pending[key][1]) > limit and len(encoding.ids) < self.max_length:
                    longer[key] = pending[key]
                else:
                    segments[key] = _Segment(encoding, len(before), len(before) + len(text))
            pending, limit = longer, 8 * limit
        return segments

    def _clean(self, text: str) -> str:
        text = replace_surrogates(text)
        return self._special.sub(lambda found: f"{found[0][0]} {found[0][1:]}", text) if self._special else text

    def _tokenise(self, texts: list[str]) -> list[Encoding]:
        self._backend.no_padding()
        self._backend.no_truncation()
        return self._backend.encode_batch(texts, add_special_tokens=False)


class _Segment:
    """Tokens of a text of which the characters `start` to `stop` may be cut."""

    def __init__(self, encoding: Encoding, start: int, stop: int):
        self.ids: list[int] = encoding.ids
        self._encoding, self._start, self._stop = encoding, start, stop

    def body(self) -> range:
        """Places of the tokens that may be cut. One that reaches over an end belongs to what is kept."""
        offsets = self._encoding.offsets
        first = next((at for at, (_, end) in enumerate(offsets) if end > self._start), len(offsets))
        last = next((at for at, (_, end) in enumerate(offsets) if end > self._stop), len(offsets))
        return range(first, last)

    def without(self, number: int) -> list[int]:
        """The ids without the last `number` tokens that may be cut."""
        stop = self.body().stop
        return self.ids[: stop - number] + self.ids[stop:]


class _Layout(NamedTuple):
    """Special tokens around the two texts of a pair; `types` are the segments of head, text, middle, text and tail,
    `None` for models without segments."""

    head: list[int]
    middle: list[int]
    tail: list[int]
    types: tuple[list[int], int, list[int], int, list[int]] | None

    @classmethod
    def learn(cls, backend, *, name: str, with_types: bool) -> "_Layout":
        """What a tokenizer puts around a pair.

        Raises:
            `QualcodeError`: If it drops a text, repeats one, or exchanges them.
        """
        backend.no_padding()
        backend.no_truncation()
        first, second = backend.encode_batch(["first text", "second"], add_special_tokens=False)
        joined = backend.post_process(first, second)
        ids, types = joined.ids, joined.type_ids
        # The texts are the only tokens that the template of a pair does not add.
        texts = [at for at, added in enumerate(joined.special_tokens_mask) if not added]
        if [ids[at] for at in texts] != [*first.ids, *second.ids] or not first.ids or not second.ids:
            raise QualcodeError(
                f"the tokenizer of {name} does not join the two texts of a pair, each once and in their order, so the "
                "model would not see what it is to compare; copy or download the model again"
            )
        start, middle = texts[0], texts[len(first.ids)]
        stop, end = texts[len(first.ids) - 1] + 1, texts[-1] + 1
        segments = (types[:start], types[start], types[stop:middle], types[middle], types[end:])
        return cls(ids[:start], ids[stop:middle], ids[end:], segments if with_types else None)

    @property
    def num_special(self) -> int:
        return len(self.head) + len(self.middle) + len(self.tail)

    def type_ids(self, first: int, second: int) -> list[int] | None:
        if self.types is None:
            return None
        head, of_first, middle, of_second, tail = self.types
        return [*head, *[of_first] * first, *middle, *[of_second] * second, *tail]


def _special_tokens(tokenizer, template: PairTemplate) -> re.Pattern[str] | None:
    """What no text of a stranger may contain: special tokens, and added ones that the template is made of."""
    written = "".join(template)
    tokens = {
        token.content
        for token in tokenizer.added_tokens_decoder.values()
        if len(token.content) > 1 and (token.special or token.content in written)
    }
    return re.compile("|".join(sorted(map(re.escape, tokens), key=len, reverse=True))) if tokens else None
