"""What a caller gave, in words that an error may print."""

import enum
import numbers
from typing import Any


def is_setting(value: Any) -> bool:
    """Whether a value may be printed: arrays and tables that were given for a setting may be data."""
    return value is None or isinstance(value, str | numbers.Number | enum.Enum)


def printed(value: Any) -> str:
    """A setting as it is written; of anything else its type and length, since a column may have been given for it."""
    if is_setting(value):
        return repr(value)
    try:
        return f"a {type(value).__name__} of length {len(value)}"
    except TypeError:  # an array without axes has none
        return f"a {type(value).__name__}"
