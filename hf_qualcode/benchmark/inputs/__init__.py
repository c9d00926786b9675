"""Inputs for programs, generated from what a problem's statement says about its input, where that is understood.

What is not understood in full is refused with its reason, never guessed.
"""

from hf_qualcode.benchmark.inputs.specification import (
    GeneratedInput,
    InputSpec,
    generate_inputs,
    read_input_format,
)
from hf_qualcode.benchmark.inputs.unread import Refusal, Unread


__all__ = ["GeneratedInput", "InputSpec", "Refusal", "Unread", "generate_inputs", "read_input_format"]
