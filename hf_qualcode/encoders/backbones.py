"""Token ids to token states. Both kinds of backbone yield the states of texts of equal length together, without
padding: `PackedBert` for BERT and its kin on the CPU, `TransformersBackbone` for everything else.
"""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from hf_qualcode.encoders.recipe import EncoderRecipe
from hf_qualcode.packed_bert import PackedBert, Span, equal_length_spans
from hf_qualcode.types import QualcodeError


def packed_bert(recipe: EncoderRecipe, dtype: torch.dtype) -> PackedBert:
    """The encoder in a folder that `PackedBert.fits`, its weights in `dtype`.

    Raises:
        `QualcodeError`: If a weight is absent or has another shape than the configuration says.
    """
    return PackedBert(recipe.config, _Weights(recipe, dtype))


class _Weights:
    """The tensors of a checkpoint, each checked for being there with the right shape."""

    def __init__(self, recipe: EncoderRecipe, dtype: torch.dtype):
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        self.folder, self.dtype, self.tensors = recipe.folder, dtype, {}
        for file in recipe.weight_files():
            try:
                tensors = load_file(file)
            except (SafetensorError, OSError) as error:
                raise QualcodeError(f"weights {file} are damaged ({error}); copy or download them again") from error
            for name, tensor in tensors.items():
                # A checkpoint of a model with a head has a prefix; the oldest name the norms as TensorFlow did.
                name = name.removeprefix("bert.").removeprefix("roberta.")
                name = name.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")
                self.tensors[name] = tensor

    def take(self, name: str, *shape: int | None) -> Tensor:
        tensor = self.tensors.get(name)
        if tensor is None:
            raise QualcodeError(
                f"weights of encoder {self.folder} lack {name}; they are incomplete or of another architecture than "
                "config.json says"
            )
        expected = tuple(have if want is None else want for want, have in zip(shape, tensor.shape, strict=False))
        if len(shape) != tensor.dim() or expected != tensor.shape:
            raise QualcodeError(
                f"weights of encoder {self.folder}: {name} has shape {tuple(tensor.shape)}, config.json says {shape}"
            )
        return tensor.to(self.dtype)

    def take_pair(self, name: str, *shape: int) -> tuple[Tensor, Tensor]:
        return self.take(f"{name}.weight", *shape), self.take(f"{name}.bias", shape[0])


class TransformersBackbone:
    """Any encoder of transformers, by `AutoModel`, over batches padded on the right.

    Args:
        recipe (`EncoderRecipe`): The encoder.
        dtype (`torch.dtype`): Of weights and states.
        device (`torch.device`): Where it runs.

    Raises:
        `QualcodeError`: If it cannot be loaded, or weights are missing (those of an unused pooler excepted).
    """

    def __init__(self, recipe: EncoderRecipe, dtype: torch.dtype, device: torch.device):
        from transformers import AutoModel

        try:
            model, report = AutoModel.from_pretrained(
                recipe.model_folder,
                dtype=dtype,
                use_safetensors=True,
                local_files_only=True,
                trust_remote_code=False,
                output_loading_info=True,
            )
        except Exception as error:  # an odd configuration raises anything
            reason = str(error).strip().partition("\n")[0]
            raise QualcodeError(f"encoder {recipe.folder} cannot be loaded: {reason}") from error
        missing = sorted(name for name in report["missing_keys"] if "pooler" not in name)
        if missing:
            raise QualcodeError(
                f"weights of encoder {recipe.folder} lack {missing[0]} ({len(missing)} in all); they are incomplete "
                "or of another architecture than config.json says"
            )
        self.model = model.eval().to(device)
        self.device = device
        padding_id = recipe.config.typed("pad_token_id", int, 0)
        # Any id will do, for padding is masked; some configurations name one that has no vector.
        self.padding_id = padding_id if 0 <= padding_id < recipe.config.typed("vocab_size", int, 0) else 0

    def __call__(self, batch: Sequence[Sequence[int]]) -> Iterator[tuple[Span, Tensor]]:
        """As `PackedBert.__call__`."""
        longest = max(len(row) for row in batch)
        ids = torch.tensor([[*row, *[self.padding_id] * (longest - len(row))] for row in batch])
        lengths = torch.tensor([len(row) for row in batch])
        mask = torch.arange(longest)[None, :] < lengths[:, None]
        states = self.model(
            input_ids=ids.to(self.device), attention_mask=mask.long().to(self.device)
        ).last_hidden_state
        for span in equal_length_spans(batch):
            yield span, states[span.start : span.stop, : span.length]
