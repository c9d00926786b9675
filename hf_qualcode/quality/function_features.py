"""What is looked at in code that is less than a whole program: static features without imports, and lint features.

What a function's file imports was paid for before the function is called, and says which library it uses rather than
how well; of whole programs it is the clearest sign of start-up time.
"""

import numpy as np

from hf_qualcode.quality.lint_features import LINT_FEATURE_NAMES, lint_features
from hf_qualcode.quality.static_features import FEATURE_NAMES, static_features


_ABOUT_IMPORTS = ("no import", "imported modules", "star import", "attributes")
_KEPT = np.array([not name.startswith("imports ") and name not in _ABOUT_IMPORTS for name in FEATURE_NAMES])
FUNCTION_FEATURE_NAMES = (
    *(name for name, kept in zip(FEATURE_NAMES, _KEPT, strict=True) if kept), *LINT_FEATURE_NAMES
)  # fmt: skip


def function_features(code: str) -> np.ndarray:
    """The features of a function or another part of a program.

    Args:
        code (`str`): Any text. One that is not Python 3 has 0 everywhere.

    Returns:
        `np.ndarray`: float64 [len(FUNCTION_FEATURE_NAMES)].
    """
    return np.concatenate([static_features(code)[_KEPT], lint_features(code)])
