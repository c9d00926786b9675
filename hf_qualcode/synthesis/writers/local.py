"""`--writer local`: a causal language model of transformers on this machine, in batches.

Every request draws from a generator of its own, seeded by its key, on the CPU: which requests share a batch changes no
draw. What a batch does change is the last bits of the logits, which now and then tip a choice between two tokens; so
batches are cut from the whole plan, and one of which a record is missing is computed again as a whole. A run that was
interrupted therefore gets the very texts of one that was not, on the same machine and with the same libraries.
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING

from hf_qualcode.synthesis.plan import Request
from hf_qualcode.synthesis.store import Record, RunStore
from hf_qualcode.synthesis.writers._base import Progress, Tally, WriterSettings, check_sampling, length_of
from hf_qualcode.types import QualcodeError, UsageError


if TYPE_CHECKING:
    import torch


NEEDS = "--model: a folder or Hub id of a causal language model with a chat template, or smollm2 (the default)"
ANSWERS_PROMPTS = True


class LocalWriter:
    """Answers requests by a model in this process.

    Args:
        settings (`WriterSettings`): `model` is a folder, a Hub id or `smollm2`, which is also what `None` means.

    Raises:
        `QualcodeError`: The model is not there, or is no causal language model with a chat template.
    """

    def __init__(self, settings: WriterSettings):
        from hf_qualcode import smollm2

        if settings.batch_size < 1:
            raise UsageError(f"--batch-size {settings.batch_size}: 1 or more is needed")
        check_sampling(settings)
        self.model = settings.model or smollm2.NAME
        self.tally = Tally()
        self._settings = settings
        self._load()

    def _load(self) -> None:
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig

        from hf_qualcode import smollm2
        from hf_qualcode.devices import choose_dtype, default_device
        from hf_qualcode.hub import resolve_model

        folder = smollm2.require_smollm2() if self.model == smollm2.NAME else resolve_model(self.model)
        self._device = default_device()
        try:
            self._tokenizer = AutoTokenizer.from_pretrained(
                folder, padding_side="left", local_files_only=True, trust_remote_code=False
            )
            if len(self._tokenizer) <= len(self._tokenizer.all_special_ids):  # made from nothing
                raise ValueError("its tokenizer has no vocabulary")
            self._net, loaded = AutoModelForCausalLM.from_pretrained(
                folder,
                dtype=choose_dtype("auto", self._device),
                local_files_only=True,
                use_safetensors=True,
                trust_remote_code=False,
                output_loading_info=True,
            )
            if missing := loaded["missing_keys"]:  # they would be random
                raise ValueError(f"its weights lack {min(missing)}, {len(missing)} in all")
        except Exception as error:  # an odd configuration, or a damaged file, raises anything
            said = " ".join(str(error).split())[:200]
            raise QualcodeError(
                f"model {self.model!r} cannot be loaded as a causal language model ({said}); name another folder or "
                "Hub id"
            ) from error
        if not self._tokenizer.chat_template:
            raise QualcodeError(f"model {self.model!r} has no chat template; name one that was tuned to instructions")
        ends = self._net.generation_config.eos_token_id
        ends = ends if isinstance(ends, list) else [ends, self._tokenizer.eos_token_id]
        self._ends = sorted({end for end in ends if end is not None})
        self._pad = next((end for end in (self._tokenizer.pad_token_id, *self._ends) if end is not None), 0)
        self._tokenizer.pad_token_id = self._pad
        # What the model's own generation_config says (penalties, a temperature) would be filled into ours. The choice
        # of a token is left to `SeededSampler`, which leaves a single one to take.
        self._net.generation_config = GenerationConfig(
            do_sample=False,
            max_new_tokens=self._settings.max_tokens,
            eos_token_id=self._ends or None,
            pad_token_id=self._pad,
        )
        self._net.eval().to(self._device)
        self._inference = torch.inference_mode

    def write(self, requests: Iterable[Request], store: RunStore, progress: Progress | None = None) -> None:
        """Leaves a record of every request in the store; see `Writer`."""
        self.tally.begin("requests answered", length_of(requests), progress)
        known = set(store.known_digests())
        for batch in _batches(requests, self._settings.batch_size):
            open_ = {request.key.digest() for request in batch} - known
            known |= open_
            records = self._answer(batch, open_) if open_ else [None] * len(batch)
            for request, record in zip(batch, records, strict=True):
                if request.key.digest() not in open_:
                    self.tally.skip()
                    continue
                open_.discard(request.key.digest())
                store.append(record)
                self.tally.add(record.usage)

    def _answer(self, batch: list[Request], open_: set[str]) -> list[Record]:
        """One record a request of the batch, in its order; those that are not `open_` may be anything."""
        texts = [self._prompt(request) for request in batch]
        ids = self._tokenizer(texts, add_special_tokens=False)["input_ids"]
        room = self._room()
        fits = [i for i, row in enumerate(ids) if len(row) <= room]
        # Never a part of the batch: see the head of this file.
        if any(batch[i].key.digest() in open_ for i in fits):
            rows = self._generate([ids[i] for i in fits], [batch[i].seed for i in fits])
        else:
            fits, rows = [], []
        records = [
            Record(request.key, "", None, {}, error=f"the prompt has {len(row)} tokens, and {self.model} takes {room}")
            for request, row in zip(batch, ids, strict=True)
        ]
        for i, row in zip(fits, rows, strict=True):
            end = next((place for place, token in enumerate(row) if token in self._ends), None)
            text = self._tokenizer.decode(row[:end], skip_special_tokens=True)
            usage = {"prompt_tokens": len(ids[i]), "completion_tokens": len(row) if end is None else end + 1}
            records[i] = Record(batch[i].key, text, "length" if end is None else "stop", usage, error=None)
        return records

    def _prompt(self, request: Request) -> str:
        from jinja2 import TemplateError

        messages = [
            {"role": "system", "content": request.prompt.system},
            {"role": "user", "content": request.prompt.user},
        ]
        try:
            return self._tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        except TemplateError as error:
            raise QualcodeError(
                f"the chat template of {self.model!r} refuses a system and a user message ({error}); "
                "name another model"
            ) from error

    def _room(self) -> int:
        """Tokens that a prompt may have, so that the whole answer has its place."""
        positions = getattr(self._net.config.get_text_config(), "max_position_embeddings", None)
        room = (positions or 10**9) - self._settings.max_tokens
        if room < 1:
            raise UsageError(
                f"--max-tokens {self._settings.max_tokens}: {self.model!r} has {positions} positions for prompt and "
                "answer"
            )
        return room

    def _generate(self, ids: list[list[int]], seeds: list[int]) -> list[list[int]]:
        """New tokens of each row; a row that ended earlier than others has padding behind its end."""
        import torch

        padded = self._tokenizer.pad({"input_ids": ids}, padding=True, return_tensors="pt").to(self._device)
        sampler = SeededSampler(seeds, self._settings)
        try:
            with self._inference():
                out = self._net.generate(
                    input_ids=padded["input_ids"], attention_mask=padded["attention_mask"], logits_processor=[sampler]
                )
        except torch.OutOfMemoryError as error:
            raise QualcodeError(
                f"{len(ids)} answers at a time do not fit into the memory of {self._device}; lower --batch-size (what "
                "was written is kept)"
            ) from error
        return out[:, padded["input_ids"].shape[1] :].tolist()


class SeededSampler:
    """A logits processor that draws each row's next token from the row's own generator and leaves no other to take.

    Order of the cuts as usual: temperature, top-k, then top-p of what is left. Temperature 0 takes the likeliest.

    Args:
        seeds (`list[int]`): [rows].
        settings (`WriterSettings`): Temperature, top-p, top-k.
    """

    def __init__(self, seeds: list[int], settings: WriterSettings):
        import torch

        self._settings = settings
        self._generators = [torch.Generator().manual_seed(seed) for seed in seeds]

    def __call__(self, input_ids: "torch.Tensor", scores: "torch.Tensor") -> "torch.Tensor":
        """[rows, vocabulary] logits -> the same with 0 at the token drawn and minus infinity elsewhere."""
        import torch

        tokens = self.draw(scores).to(scores.device)
        return torch.full_like(scores, float("-inf")).scatter_(1, tokens[:, None], 0.0)

    def draw(self, scores: "torch.Tensor") -> "torch.Tensor":
        """[rows, vocabulary] logits -> [rows] tokens, on the CPU."""
        import torch

        width = scores.shape[1]
        if self._settings.temperature == 0:
            return scores.argmax(dim=1).cpu()
        size = min(self._settings.top_k or width, width)
        values, tokens = (part.cpu() for part in scores.float().topk(size, dim=1))
        # In float64 and on the CPU, so that equal logits give equal draws on every device.
        shares = torch.softmax(values.double() / self._settings.temperature, dim=1)
        before = shares.cumsum(dim=1) - shares
        shares = shares.masked_fill(before >= self._settings.top_p, 0.0)
        shares[:, 0] = shares[:, 0].clamp(min=torch.finfo(shares.dtype).tiny)
        sums = shares.cumsum(dim=1)
        drawn = torch.stack([torch.rand(1, generator=one, dtype=torch.float64) for one in self._generators])
        places = torch.searchsorted(sums, drawn * sums[:, -1:], right=True)
        kept = (shares > 0).sum(dim=1, keepdim=True)
        return tokens.gather(1, torch.minimum(places, kept - 1))[:, 0]


def open_writer(settings: WriterSettings) -> LocalWriter:
    """The writer of these settings."""
    return LocalWriter(settings)


def _batches(requests: Iterable[Request], size: int) -> Iterator[list[Request]]:
    source = iter(requests)
    while batch := list(islice(source, size)):
        yield batch
