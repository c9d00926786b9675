"""Text encoders as both halves use them: what a folder says, its tokens, its states, and one vector a text."""

from collections.abc import Callable


EncodeProgress = Callable[[int, int], None]
"""Called with the number of texts done and their total."""
