"""Where a model runs, and in which precision."""

import torch


def choose_dtype(precision: str, device: torch.device) -> torch.dtype:
    """`torch.bfloat16` where it is asked for, or `"auto"` and the hardware multiplies matrices in it."""
    if precision == "auto":
        return torch.bfloat16 if _multiplies_bfloat16(device) else torch.float32
    return torch.bfloat16 if precision == "bfloat16" else torch.float32


def _multiplies_bfloat16(device: torch.device) -> bool:
    if device.type == "cpu":
        # oneDNN emulates bfloat16 on any AVX512 CPU, slower than float32: ask for the instructions themselves.
        return torch.cpu._is_amx_tile_supported() or torch.cpu._is_avx512_bf16_supported()
    return device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)


def default_device() -> torch.device:
    """The accelerator that torch finds, else the CPU."""
    return torch.accelerator.current_accelerator() if torch.accelerator.is_available() else torch.device("cpu")
