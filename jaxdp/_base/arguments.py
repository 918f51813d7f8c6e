"""Values of the arguments of a command, read from texts: argparse shows the sentence of an `ArgumentTypeError`."""

from __future__ import annotations

import argparse
import contextlib
import csv
import io
import json
import math
import re
import sys
from collections.abc import Callable
from typing import Any

from jaxdp._base.printed import printed

MAX_SEED = 2**32 - 1  # a simulation key keeps 32 bits of its seed
MIN_EPSILON, MAX_EPSILON = 1e-6, 1e3
USUAL_DELTA = 1e-6  # of which an answer without delta says what it would change
MIN_MEMORY = 10**8  # bytes: a chunk and its sums take that much


def positive_number(text: str) -> float:
    """argparse type: a finite number > 0, such as a privacy budget."""
    value = _number(text)
    if not (value > 0 and math.isfinite(value)) or value < sys.float_info.min:
        raise argparse.ArgumentTypeError(f"must be a finite number > 0, got {text!r}")
    return value


def budget(text: str) -> float:
    """argparse type: an epsilon for which a release exists and means something."""
    value = positive_number(text)
    if not MIN_EPSILON <= value <= MAX_EPSILON:
        raise argparse.ArgumentTypeError(
            f"must lie between {MIN_EPSILON:g} and {MAX_EPSILON:g}, got {text!r}: "
            "below, noise drowns everything; above, nothing is protected"
        )
    return value


def probability(text: str) -> float:
    """argparse type: a number strictly between 0 and 1."""
    value = _number(text)
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"must be strictly between 0 and 1, got {text!r}")
    return value


def count(text: str) -> int:
    """argparse type: a whole number >= 1."""
    return _whole(text, 1, "a whole number >= 1")


def count_or_zero(text: str) -> int:
    """argparse type: a whole number >= 0."""
    return _whole(text, 0, "a whole number >= 0")


def seed(text: str) -> int:
    """argparse type: a seed of a simulation."""
    value = _whole(text, 0, f"a whole number from 0 to {MAX_SEED}")
    if value > MAX_SEED:
        raise argparse.ArgumentTypeError(f"must be a whole number from 0 to {MAX_SEED}, got {text!r}")
    return value


class Names(list[str]):
    """Column names of one argument, and the argument as it was written: it may be one name with commas in it."""

    text = ""


def names(text: str) -> Names:
    """argparse type: column names separated by commas (`columns` finds names with commas in them)."""
    rows = csv.reader(io.StringIO(text, newline=""), skipinitialspace=True)
    found = Names(name.strip() for row in rows for name in row)
    if not found or not all(found):
        raise argparse.ArgumentTypeError(f"must be column names separated by commas, got {text!r}")
    found.text = text.strip()
    return found


def numbers(text: str) -> list[float]:
    """argparse type: numbers separated by commas."""
    return [_number(part) for part in text.split(",")]


def counts(text: str) -> list[int]:
    """argparse type: whole numbers >= 1 separated by commas."""
    return [count(part) for part in text.split(",")]


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a number, got {text!r}") from None


def _whole(text: str, smallest: int, wanted: str) -> int:
    try:
        value = int(text)
    except ValueError:
        value = smallest - 1
    if value < smallest:
        raise argparse.ArgumentTypeError(f"must be {wanted}, got {text!r}")
    return value


def setting(text: str) -> tuple[str, Any]:
    """(name, value) of NAME=VALUE; the value is JSON, True, False, numbers separated by commas, or a text."""
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise argparse.ArgumentTypeError(f"must be NAME=VALUE, got {text!r}")
    value = {"True": "true", "False": "false"}.get(value.strip(), value)
    for form in (value, f"[{value}]"):
        with contextlib.suppress(ValueError):
            return name.strip(), json.loads(form)
    return name.strip(), value.strip()


def memory(text: str) -> int:
    """argparse type: bytes of a text such as 2GB."""
    try:
        return bytes_of(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def bytes_of(memory: int | str) -> int:
    """Bytes of a text such as "2GB" or "500 MB", or of a number. Errors: ValueError for anything else."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kMGT]?)i?B?\s*", str(memory), re.IGNORECASE)
    units = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
    size = int(float(found[1]) * units[found[2].lower()]) if found else 0
    if isinstance(memory, bool) or size < MIN_MEMORY:
        raise ValueError(f'memory must be a size such as "2GB", 100 MB at least, got {printed(memory)}.')
    return size


def whole_number(least: int, most: int) -> Callable[[str], int]:
    """argparse type: a whole number between these; 1e6 is one."""

    def read(text: str) -> int:
        value = _number(text)
        if not (least <= value <= most and value == int(value)):
            raise argparse.ArgumentTypeError(f"must be a whole number from {least} to {most:g}, got {text!r}")
        return int(value)

    return read


def share(text: str) -> float:
    """argparse type: a number from 0 to below 1."""
    value = _number(text)
    if not 0.0 <= value < 1.0:
        raise argparse.ArgumentTypeError(f"must be at least 0 and below 1, got {text}")
    return value


def interval(text: str) -> tuple[str, tuple[float, float]]:
    """argparse type: NAME=LOW:HIGH."""
    name, equals, limits = text.rpartition("=")
    low, colon, high = limits.partition(":")
    try:
        found = float(low), float(high)
    except ValueError:
        found = (0.0, 0.0)
    if not (name and equals and colon and found[0] < found[1]):
        raise argparse.ArgumentTypeError(f"must be NAME=LOW:HIGH with LOW < HIGH, got {text!r}")
    return name, found
