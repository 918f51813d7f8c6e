"""What every call checks and says alike: a budget that means something, names in a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jaxdp._base import check
from jaxdp._base.amounts import spent

MIN_EPSILON, MAX_EPSILON = 1e-6, 1e3


def budget(epsilon: Any) -> float:
    """The epsilon as a float. Errors: ValueError unless a release for it exists and means something."""
    if not check.is_concrete(epsilon) or np.ndim(epsilon):
        raise TypeError(f"epsilon must be one number > 0, got {type(epsilon).__name__}.")
    check.positive(epsilon=epsilon)
    value = float(epsilon)
    if not MIN_EPSILON <= value <= MAX_EPSILON:
        raise ValueError(
            f"epsilon must lie between {MIN_EPSILON:g} and {MAX_EPSILON:g}, got {spent(value)}: "
            "below, noise drowns everything; above, nothing is protected."
        )
    return value


def listing(names: Sequence[str]) -> str:
    """Names in a sentence: "a", "a and b", "a, b and c"."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
