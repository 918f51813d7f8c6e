"""The one writer of JSON results, which every reader accepts."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def write(path: Path, payload: Any) -> None:
    """Writes JSON: an infinite number becomes the text "inf", NaN null."""
    path.write_text(text(payload), encoding="utf-8")


def text(payload: Any) -> str:
    """The text that `write` writes."""
    return json.dumps(plain(payload, infinite=str), indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def plain(value: Any, infinite: Any = None) -> Any:
    """Dicts, lists, numbers and texts. infinite: what an infinite number becomes, and NaN None; None keeps both."""
    if isinstance(value, Mapping):
        return {str(name): plain(item, infinite) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item, infinite) for item in value]
    if hasattr(value, "tolist"):  # arrays and their scalars, of NumPy and JAX
        return plain(value.tolist(), infinite)
    if infinite and isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else infinite(value)
    return value
