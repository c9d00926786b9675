"""Logits of many inputs: each distinct one once, in batches of like length, tokenised ahead of the model.

Measured on 2 cores in float32: what pays is what pays for encoders of texts (see `hf_qualcode.encoders.transformer`);
for decoders it is that instruction and query are computed once for all codes of a query.
"""

import contextlib
import hashlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import torch

from hf_qualcode.batching import token_batches
from hf_qualcode.rerank.inputs import EncodedInput, EncodedInputs, Trims
from hf_qualcode.threads import map_side_by_side
from hf_qualcode.types import QualcodeError


Progress = Callable[[str, int, int | None], None]
Triple = tuple[str, str, str]

STAGE = "scoring programs"
# Inputs that are tokenised, then sorted by length, together: bounds memory.
_INPUTS_A_WINDOW = 4096
# On a CPU the states of a batch should stay in its caches; an accelerator wants to be filled.
_TOKENS_A_BATCH = 2048
_TOKENS_A_PACKED_BATCH = 1024
_TOKENS_A_BATCH_ACCELERATED = 32768


class Logits(NamedTuple):
    """`values`, float32 [n] in the order of the inputs, and how many distinct inputs were cut."""

    values: np.ndarray
    trims: Trims


def score_triples(backbone, triples: Sequence[Triple], *, progress: Progress | None = None) -> Logits:
    """The model's logit for each triple.

    Args:
        backbone (`Backbone`): See `hf_qualcode.rerank.backbones`.
        triples (`Sequence[tuple[str, str, str]]`): [n], instruction, query, and the code as the model reads it.
        progress (`Callable`, *optional*): Called as `progress(stage, done, total)`, counting distinct triples.

    Returns:
        `Logits`: Of each triple.

    Raises:
        `QualcodeError`: If a logit is NaN or infinite.
    """
    # Codes of one query are neighbours, so that what they share can be computed once.
    groups: dict[tuple[str, str], dict[str, int]] = {}
    for instruction, query, code in triples:
        groups.setdefault((instruction, query), {})[code] = 0
    distinct = [(*shared, code) for shared, codes in groups.items() for code in codes]
    place = {triple: row for row, triple in enumerate(distinct)}
    values, trims = np.empty(len(distinct), dtype=np.float32), Trims(0, 0, 0)
    known: dict[bytes, int] = {}  # what the model reads -> first triple that it reads so
    with _evaluating(backbone.model):
        run = _choose_run(backbone)
        for start, encoded in _encode_ahead(backbone, distinct):
            trims = Trims(*(before + now for before, now in zip(trims, encoded.trims, strict=True)))

            def tell(done: int, start: int = start) -> None:
                if progress is not None:
                    progress(STAGE, start + done, len(distinct))

            # Texts that are alike up to where they were cut are one input, and get one score to the last bit.
            first = [known.setdefault(_digest(entry), start + row) for row, entry in enumerate(encoded.inputs)]
            new = [row for row, earlier in enumerate(first) if earlier == start + row]
            if new:
                with _running(backbone):
                    scores = run([encoded.inputs[row] for row in new], tell)
                values[[start + row for row in new]] = scores
            values[start : start + len(first)] = values[first]
    _check_finite(values, distinct, backbone)
    return Logits(values[[place[triple] for triple in triples]] if len(triples) else values, trims)


def _digest(encoded: EncodedInput) -> bytes:
    content = np.array([encoded.ids, encoded.type_ids or [0] * len(encoded.ids)], dtype=np.int32)
    return hashlib.blake2b(content.tobytes(), digest_size=16).digest()


@contextlib.contextmanager
def _evaluating(model: torch.nn.Module) -> Iterator[None]:
    """Without dropout, also amid training."""
    training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(training)


@contextlib.contextmanager
def _running(backbone) -> Iterator[None]:
    """With one line for a configuration that loads and cannot run, and for memory that does not suffice."""
    try:
        yield
    except (RuntimeError, IndexError) as error:
        reason = " ".join(str(error).split())[:200]
        raise QualcodeError(
            f"reranker {backbone.source} cannot be run on {backbone.device} ({type(error).__name__}: {reason}); give "
            "a smaller max_length or another device, or copy the model again if its config.json was changed"
        ) from error


def _encode_ahead(backbone, triples: list[Triple]) -> Iterator[tuple[int, EncodedInputs]]:
    """Windows of encoded inputs and where each begins. While one is with the model, the next is tokenised."""
    starts = range(0, len(triples), _INPUTS_A_WINDOW)

    def encode(start: int) -> EncodedInputs:
        instructions, queries, codes = zip(*triples[start : start + _INPUTS_A_WINDOW], strict=True)
        return backbone.encode(instructions, queries, codes)

    with ThreadPoolExecutor(max_workers=1) as ahead:
        waiting = ahead.submit(encode, 0) if triples else None
        for start in starts:
            encoded = waiting.result()
            following = start + _INPUTS_A_WINDOW
            waiting = ahead.submit(encode, following) if following < len(triples) else None
            yield start, encoded


# Scores of inputs, telling now and then how many are done.
Run = Callable[[list[EncodedInput], Callable[[int], None]], np.ndarray]


def _choose_run(backbone) -> Run:
    """What runs this backbone best, as it is now."""
    from hf_qualcode.rerank.packed import PackedScorer
    from hf_qualcode.rerank.shared_prefix import can_share_prefix, score_with_shared_prefix

    on_cpu = backbone.device.type == "cpu"
    if PackedScorer.fits(backbone):
        run = PackedScorer(backbone)
        return lambda inputs, tell: _in_batches(run, inputs, _TOKENS_A_PACKED_BATCH, tell, side_by_side=True)
    budget = _TOKENS_A_BATCH if on_cpu else _TOKENS_A_BATCH_ACCELERATED
    if can_share_prefix(backbone):
        return lambda inputs, tell: score_with_shared_prefix(
            backbone, inputs, budget, progress=lambda stage, done, total: tell(done)
        )

    @torch.inference_mode()
    def run_padded(inputs: list[EncodedInput]) -> np.ndarray:
        return backbone.scores(backbone.model, backbone.collate(inputs)).float().cpu().numpy()

    return lambda inputs, tell: _in_batches(run_padded, inputs, budget, tell, side_by_side=on_cpu)


def _in_batches(
    run: Callable[[list[EncodedInput]], np.ndarray],
    inputs: list[EncodedInput],
    budget: int,
    tell: Callable[[int], None],
    *,
    side_by_side: bool,
) -> np.ndarray:
    """Scores of inputs in batches of like length, on a CPU one beside the other."""
    values, done = np.empty(len(inputs), dtype=np.float32), 0
    batches = list(token_batches([len(encoded.ids) for encoded in inputs], budget))

    def run_rows(rows: np.ndarray) -> np.ndarray:
        return run([inputs[row] for row in rows])

    pairs = (
        map_side_by_side(run_rows, batches)
        if side_by_side and len(batches) > 1
        else ((rows, run_rows(rows)) for rows in batches)
    )
    for rows, scores in pairs:
        values[rows] = scores
        done += len(rows)
        tell(done)
    return values


def _check_finite(values: np.ndarray, triples: list[Triple], backbone) -> None:
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        dtype = next(backbone.model.parameters()).dtype
        raise QualcodeError(
            f"the reranker gave NaN or infinite scores for {len(bad)} of {len(values)} inputs, first for the code "
            f"{triples[bad[0]][2][:60]!r}; its weights are damaged, or {dtype} is too coarse for it"
        )
