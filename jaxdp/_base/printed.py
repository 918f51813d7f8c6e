"""What a caller gave, in words that an error may print: a column, a list of texts or a mapping may have been given."""

import difflib
import enum
import numbers
import os
from collections.abc import Iterable, Sequence
from typing import Any

LONGEST, LONGEST_PATH = 80, 4096  # letters of a text that may be the name of something, or a path


def is_setting(value: Any) -> bool:
    """Whether a value may be printed: arrays and tables that were given for a setting may be data, and so may pages."""
    if isinstance(value, str):
        return len(value) <= LONGEST and value.isprintable()
    return value is None or isinstance(value, numbers.Number | enum.Enum)


def printed(value: Any) -> str:
    """A setting as it is written; of anything else its type and length, since a column may have been given for it."""
    if is_setting(value):
        return repr(value)
    try:
        return f"a {type(value).__name__} of length {len(value)}"
    except TypeError:  # an array without axes has none
        return f"a {type(value).__name__}"


def printed_name(names: Sequence[str], place: int, known: Iterable[str]) -> str:
    """A name that was given: as it is where it was given alone or resembles a known one, else by its place.

    Of a column of texts that was given for names each text is a cell.
    """
    name = names[place]
    if is_setting(name) and (len(names) == 1 or difflib.get_close_matches(name, list(known), 1)):
        return repr(name)
    return f"number {place + 1} of {len(names)} names"


def path_of(what: str, value: str | os.PathLike) -> str:
    """The path as text. Errors: ValueError for a text that is none: the content of a file may have been given."""
    path = os.fspath(value)
    if isinstance(path, str) and (len(path) > LONGEST_PATH or not path.isprintable()):
        raise ValueError(f"{what} must be the path of a file, got a text of {len(path)} letters.")
    return path
